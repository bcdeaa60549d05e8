//! Runs the `orders` example as a user does: totals, exit status, and the errors it ends with.

#[allow(dead_code)]
#[path = "demo/random.rs"]
mod random;
#[allow(dead_code)]
#[path = "demo/sample.rs"]
mod sample;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::Value;

/// The program, built in the profile this test was built in: naming one test target alone makes
/// cargo leave the examples as they are.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let test = std::env::current_exe().expect("the test knows its own path");
        let profile_dir = test.parent().and_then(Path::parent).expect("it lies in deps");
        let profile = match profile_dir.file_name().and_then(|name| name.to_str()) {
            Some("debug") => "test",
            Some(name) => name,
            None => panic!("{} has no name", profile_dir.display()),
        };
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--example", "orders", "--profile", profile])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status();
        assert!(built.expect("cargo runs").success(), "the example does not build");
        profile_dir.join("examples").join(format!("orders{}", std::env::consts::EXE_SUFFIX))
    })
}

fn orders(arguments: &[&str]) -> Output {
    Command::new(program()).args(arguments).output().expect("the example starts")
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("the example writes UTF-8")
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("the example writes UTF-8")
}

/// The totals, from the last line.
fn totals(output: &Output) -> Value {
    let last = stdout(output).lines().last().expect("--json prints a line");
    serde_json::from_str(last).expect("the last line is JSON")
}

fn number(totals: &Value, name: &str) -> u64 {
    totals[name].as_u64().unwrap_or_else(|| panic!("{name} in {totals}"))
}

fn assert_clean(output: &Output, events: u64, keys: u64) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(output), stderr(output));
    let totals = totals(output);
    let expected = [("events", events), ("keys", keys), ("delivered", events), ("out_of_order", 0)];
    for (name, value) in expected.into_iter().chain([("lost", 0), ("foreign", 0)]) {
        assert_eq!(number(&totals, name), value, "{name}");
    }
    totals
}

/// A file of the test's own, removed with the directory.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, contents: &[u8]) -> Self {
        let unique = format!("lanekeeper-orders-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(unique);
        std::fs::write(&path, contents).expect("the temporary directory can be written");
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a UTF-8 path")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0);
    }
}

fn unpacked_sample() -> Vec<u8> {
    let mut csv = Vec::new();
    GzDecoder::new(sample::SAMPLE).read_to_end(&mut csv).expect("the sample is gzipped");
    csv
}

#[test]
fn the_bundled_sample_is_what_the_generator_makes() {
    let made = sample::make(sample::SAMPLE_SEED).unwrap();
    assert!(
        made == unpacked_sample(),
        "make it anew: orders --make-sample tests/data/orders.csv.gz"
    );
}

#[test]
fn the_sample_is_consumed_in_order_with_nothing_lost() {
    let output = orders(&["--json"]);
    let totals = assert_clean(&output, 19_950, 2_000);
    assert!(number(&totals, "redelivered") > 0, "failing batches deliver again");
    assert!(number(&totals, "failed_batches") > 0);
    assert_eq!(number(&totals, "rebalances"), 8);
    assert_eq!(totals["queues"].as_array().unwrap().len(), 8);
    let ends = totals["queues"].as_array().unwrap().iter().map(|queue| number(queue, "end"));
    assert_eq!(ends.sum::<u64>(), 19_950);
    assert!(totals["seconds"].as_f64().unwrap() > 0.0);
    let table = stdout(&output);
    for word in ["events", "keys", "throughput", "redeliveries", "out of order", "lost", "queue"] {
        assert!(table.contains(word), "{word} is missing in\n{table}");
    }
}

#[test]
fn the_table_comes_without_json_unless_asked() {
    let output = orders(&["--fail-rate", "0", "--rebalances", "0"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(!stdout(&output).contains('{'));
}

#[test]
fn hard_weather_changes_no_total() {
    let shapes = [
        ["--workers", "1", "--queues", "1", "--batch", "1", "--rebalances", "3"],
        ["--workers", "8", "--queues", "3", "--batch", "64", "--rebalances", "500"],
        ["--workers", "2", "--queues", "64", "--batch", "7", "--rebalances", "50"],
    ];
    for (shape, fail_rate) in shapes.iter().zip(["0.05", "0.3", "0.2"]) {
        let weather = ["--json", "--seed", "7", "--suspend-ms", "0", "--fail-rate", fail_rate];
        let output = orders(&[&weather[..], shape].concat());
        assert_clean(&output, 19_950, 2_000);
    }
}

// One key, so most queues stay empty, and every assignment of one waits there for messages: it has
// to stop waiting when it ends, or the broker fills up with pulls of the past.
#[test]
fn queues_that_stay_empty_may_move_as_often_as_others() {
    let mut csv = "k,n\n".to_owned();
    (0..6_000).for_each(|n| csv.push_str(&format!("only,{n}\n")));
    let file = Scratch::new("one-key", csv.as_bytes());
    let often = ["--queues", "2", "--batch", "1", "--rebalances", "4000", "--fail-rate", "0"];
    let input = ["--json", file.path(), "--key", "k", "--seq", "n"];
    let totals = assert_clean(&orders(&[&input[..], &often].concat()), 6_000, 1);
    let generations = totals["queues"].as_array().unwrap().iter();
    assert!(generations.map(|queue| number(queue, "generations")).min() > Some(1_024));
}

#[test]
fn a_file_may_be_plain_or_gzipped_whatever_its_name() {
    let csv = unpacked_sample();
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(&csv).unwrap();
    for (name, contents) in [("plain.gz", csv), ("packed.csv", packer.finish().unwrap())] {
        let file = Scratch::new(name, &contents);
        let output = orders(&["--json", file.path(), "--key", "order_id", "--seq", "seq"]);
        assert_clean(&output, 19_950, 2_000);
        // Another key is another order; without --seq the position in the file decides.
        assert_clean(&orders(&["--json", file.path(), "--key", "event"]), 19_950, 20);
    }
}

#[test]
fn quotes_line_ends_and_the_empty_file_with_a_header_are_fine() {
    let cases: [(&str, &str, u64, u64); 5] = [
        ("quoted", "\"k\",n\n\"a,\"\"1\",1\n\"a,\"\"1\",2\n", 2, 1),
        ("lines", "k,n\n\"two\nlines\",1\nx,2\n", 2, 2),
        ("windows", "k,n\r\na,1\r\nb,1\r\n", 2, 2),
        ("mark", "\u{feff}k,n\na,1\nb,1", 2, 2),
        ("header", "k,n\n", 0, 0),
    ];
    for (name, csv, events, keys) in cases {
        let file = Scratch::new(name, csv.as_bytes());
        let output = orders(&["--json", file.path(), "--key", "k", "--seq", "n"]);
        assert_clean(&output, events, keys);
    }
}

#[test]
fn a_file_that_is_itself_out_of_order_is_found_out() {
    let file = Scratch::new("disorder", b"k,n\na,1\nb,1\na,3\na,2\n");
    let output = orders(&["--json", file.path(), "--key", "k", "--seq", "n"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(number(&totals(&output), "out_of_order"), 1);
    assert!(stderr(&output).contains("line 5"), "{}", stderr(&output));
}

// The verdict is worth something only if it can be the other one.
#[test]
fn planted_faults_are_found() {
    let cases = [
        ("drop", "lost"),
        ("swap", "out_of_order"),
        ("corrupt", "foreign"),
        ("finish-failed", "lost"),
        ("partial-replay", "out_of_order"),
        ("store-ahead", "stored_early"),
        ("store-ahead", "lost"),
    ];
    for (fault, found_as) in cases {
        let output = orders(&["--json", "--fail-rate", "0.1", "--fault", fault]);
        assert_found(&output, found_as);
    }
}

// A queue that nobody pulls any more; a rebalance would heal it.
#[test]
fn a_run_that_stands_still_is_ended_and_its_rest_is_lost() {
    let output = orders(&["--json", "--rebalances", "0", "--stall-ms", "1000", "--fault", "stall"]);
    assert_found(&output, "lost");
    assert!(stderr(&output).contains("nothing was delivered"), "{}", stderr(&output));
}

fn assert_found(output: &Output, found_as: &str) {
    assert_eq!(output.status.code(), Some(1), "{}", stdout(output));
    let totals = totals(output);
    assert!(number(&totals, found_as) > 0, "not seen as {found_as}: {totals}");
}

#[test]
fn bad_input_is_named_by_line_and_column() {
    let cases: [(&str, &[u8], &[&str]); 9] = [
        ("empty", b"", &["line 1", "empty"]),
        ("no-key", b"a,n\nx,1\n", &["line 1", "column \"k\"", "no such column", "a, n"]),
        ("two-keys", b"k,n,k\nx,1,y\n", &["line 1", "column \"k\"", "two columns"]),
        ("short", b"k,n,z\n1,2,3\n\n4,5\n", &["line 4", "column \"z\"", "2 fields", "names 3"]),
        ("long", b"k,n\n1,2\n4,5,6\n", &["line 3", "column \"3\"", "3 fields", "\"6\""]),
        ("latin", b"k,n,z\n1,2,\xe9t\xe9\n", &["line 2", "column \"z\"", "UTF-8", "0xe9"]),
        ("latin-key", b"k,n\nok,1\n\xff,2\n", &["line 3", "column \"k\"", "UTF-8", "0xff"]),
        ("number", b"k,n\nx,1\nx,two\n", &["line 3", "column \"n\"", "\"two\"", "whole number"]),
        ("open-quote", b"k,n\nx,1\nx,\"2\ny,3\n", &["line 3", "column \"n\"", "never closed"]),
    ];
    for (name, contents, words) in cases {
        let file = Scratch::new(name, contents);
        let output = orders(&[file.path(), "--key", "k", "--seq", "n"]);
        assert_refused(&output, words);
        assert!(stderr(&output).contains(file.path()), "the file is named");
    }
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let missing = orders(&["/nowhere/orders.csv", "--key", "k"]);
    assert_refused(&missing, &["/nowhere/orders.csv", "cannot be read", "No such file"]);
    let directory = std::env::temp_dir();
    let directory = orders(&[directory.to_str().unwrap(), "--key", "k"]);
    assert_refused(&directory, &["cannot be read"]);
    let cut = Scratch::new("cut", &sample::SAMPLE[..sample::SAMPLE.len() / 2]);
    let cut = orders(&[cut.path(), "--key", "order_id"]);
    assert_refused(&cut, &["gzip", "line "]);
    let unwritable = orders(&["--make-sample", "/nowhere/sample.csv.gz"]);
    assert_refused(&unwritable, &["/nowhere/sample.csv.gz", "cannot be written"]);
}

#[test]
fn bad_options_are_refused() {
    let cases: [&[&str]; 7] = [
        &["--queues", "0"],
        &["--workers", "0"],
        &["--batch", "0"],
        &["--fail-rate", "1.5"],
        &["--fail-rate", "NaN"],
        &["--seed", "x"],
        &["some.csv"],
    ];
    for arguments in cases {
        assert_refused(&orders(arguments), &["error:"]);
    }
}

fn assert_refused(output: &Output, words: &[&str]) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    assert_eq!(stdout(output), "", "nothing was consumed");
    for word in words {
        assert!(said.contains(word), "{word:?} is missing in: {said}");
    }
}
