//! Runs models in processes of their own and judges how they ended.

use std::io::Read;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;

use crate::table::{MODELS, Model};

/// A model that takes longer has outgrown its bound.
const TIME_MAX: Duration = Duration::from_secs(180);

#[derive(Parser)]
struct Arguments {
    /// Runs this model in this process.
    #[arg(long)]
    model: Option<String>,
    /// Plants this bug first.
    #[arg(long)]
    mutation: Option<String>,
    /// With `--model`: this many preemptions instead of the model's own bound.
    #[arg(long)]
    bound: Option<usize>,
    /// Prints a Markdown table of the results at the end.
    #[arg(long)]
    table: bool,
    /// Shows how each planted bug was noticed.
    #[arg(long)]
    why: bool,
    /// Lists the tests.
    #[arg(long)]
    list: bool,
    /// Only tests with exactly the given name.
    #[arg(long)]
    exact: bool,
    /// Only tests whose name contains this.
    filter: Option<String>,
    // What test runners pass along.
    #[arg(long, hide = true)]
    format: Option<String>,
    #[arg(long, hide = true)]
    test_threads: Option<usize>,
    #[arg(long, hide = true)]
    nocapture: bool,
    #[arg(long, hide = true)]
    ignored: bool,
}

/// One process: a model, perhaps with a bug planted.
#[derive(Clone, Copy)]
struct Job {
    model: &'static Model,
    mutation: Option<&'static str>,
}

/// How it ended.
enum Verdict {
    Passed { executions: u64 },
    Failed { why: String },
    TooLong,
}

struct Outcome {
    job: Job,
    verdict: Verdict,
    took: Duration,
}

impl Job {
    fn name(&self) -> String {
        match self.mutation {
            None => self.model.name.to_owned(),
            Some(mutation) => format!("{}::catches::{mutation}", self.model.name),
        }
    }
}

pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(name) = &arguments.model {
        return run_here(name, arguments.mutation.as_deref(), arguments.bound);
    }
    let jobs: Vec<Job> = all_jobs().filter(|job| wanted(&arguments, &job.name())).collect();
    if arguments.list {
        if !arguments.ignored {
            jobs.iter().for_each(|job| println!("{}: test", job.name()));
        }
        return ExitCode::SUCCESS;
    }
    let started = Instant::now();
    println!("\nrunning {} tests", jobs.len());
    let mut outcomes = run_all(&jobs, arguments.why);
    let mut failed = outcomes.iter().filter(|outcome| !as_expected(outcome)).count();
    let mut passed = outcomes.len() - failed;
    if arguments.filter.is_none() {
        let without: Vec<_> = MODELS.iter().filter(|model| model.mutations.is_empty()).collect();
        let names: Vec<_> = without.iter().map(|model| model.name).collect();
        let word = if names.is_empty() { "ok".to_owned() } else { format!("FAILED\n  {names:?}") };
        println!("test every_model_has_a_planted_bug ... {word}");
        passed += usize::from(names.is_empty());
        failed += usize::from(!names.is_empty());
        match unplanted() {
            names if names.is_empty() => {
                println!("test every_mutation_point_is_planted ... ok");
                passed += 1;
            }
            names => {
                println!(
                    "test every_mutation_point_is_planted ... FAILED\n  no model for {names:?}"
                );
                failed += 1;
            }
        }
    }
    if arguments.table {
        outcomes
            .sort_by_key(|outcome| MODELS.iter().position(|m| m.name == outcome.job.model.name));
        print_table(&outcomes);
    }
    let word = if failed == 0 { "ok" } else { "FAILED" };
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "\ntest result: {word}. {passed} passed; {failed} failed; 0 ignored; 0 measured; \
         0 filtered out; finished in {seconds:.2}s\n"
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn all_jobs() -> impl Iterator<Item = Job> {
    MODELS.iter().flat_map(|model| {
        let mutations = model.mutations.iter().map(|mutation| Some(*mutation));
        std::iter::once(None).chain(mutations).map(move |mutation| Job { model, mutation })
    })
}

fn wanted(arguments: &Arguments, name: &str) -> bool {
    match &arguments.filter {
        None => true,
        Some(filter) if arguments.exact => name == filter,
        Some(filter) => name.contains(filter.as_str()),
    }
}

/// The child: the model in this process.
fn run_here(name: &str, mutation: Option<&str>, bound: Option<usize>) -> ExitCode {
    static EXECUTIONS: AtomicU64 = AtomicU64::new(0);
    let Some(model) = MODELS.iter().find(|model| model.name == name) else {
        eprintln!("no model is called {name}");
        return ExitCode::from(2);
    };
    if let Some(mutation) = mutation {
        lanekeeper::sync::set_mutation(Some(mutation.to_owned().leak()));
    }
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 20_000;
    builder.preemption_bound = bound.or(model.bound);
    let run = model.run;
    let body = move || {
        EXECUTIONS.fetch_add(1, Ordering::Relaxed);
        run().check();
    };
    match std::env::var_os("LOOM_LOG") {
        // Sets up what prints the log, and takes its limits from the environment.
        Some(_) => loom::model(body),
        None => builder.check(body),
    }
    println!("executions {}", EXECUTIONS.load(Ordering::Relaxed));
    ExitCode::SUCCESS
}

/// The parent: as many children at once as there are processors.
fn run_all(jobs: &[Job], why: bool) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = run_child(*job);
                    report(&outcome, why);
                    outcomes.lock().unwrap().push(outcome);
                }
            });
        }
    });
    outcomes.into_inner().unwrap()
}

fn run_child(job: Job) -> Outcome {
    let started = Instant::now();
    let mut command = Command::new(std::env::current_exe().expect("path of this program"));
    command.args(["--model", job.model.name]);
    if let Some(mutation) = job.mutation {
        command.args(["--mutation", mutation]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("a process for the model");
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let verdict = std::thread::scope(|scope| {
        let out = scope.spawn(move || read_all(&mut out));
        let err = scope.spawn(move || read_all(&mut err));
        let status = loop {
            if let Some(status) = child.try_wait().expect("the state of the process") {
                break Some(status);
            }
            if started.elapsed() > TIME_MAX {
                child.kill().expect("the process to end");
                child.wait().expect("the process to end");
                break None;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let (out, err) = (out.join().unwrap(), err.join().unwrap());
        match status {
            None => Verdict::TooLong,
            Some(status) if status.success() => Verdict::Passed { executions: executions(&out) },
            Some(_) => Verdict::Failed { why: err },
        }
    });
    Outcome { job, verdict, took: started.elapsed() }
}

fn read_all(from: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).expect("output of the model");
    String::from_utf8_lossy(&bytes).into_owned()
}

fn executions(out: &str) -> u64 {
    let line = out.lines().find_map(|line| line.strip_prefix("executions "));
    line.and_then(|count| count.parse().ok()).expect("the model counts its executions")
}

/// A clean model passes; one with a bug planted fails, perhaps by going round for ever, which the
/// clean one does not within the same limit.
fn as_expected(outcome: &Outcome) -> bool {
    match &outcome.verdict {
        Verdict::Passed { executions } => outcome.job.mutation.is_none() && *executions > 1,
        Verdict::Failed { .. } => outcome.job.mutation.is_some(),
        Verdict::TooLong => false,
    }
}

fn report(outcome: &Outcome, why_too: bool) {
    let name = outcome.job.name();
    let seconds = outcome.took.as_secs_f64();
    let word = if as_expected(outcome) { "ok" } else { "FAILED" };
    match &outcome.verdict {
        Verdict::Passed { executions } => {
            println!("test {name} ... {word} ({executions} executions, {seconds:.1} s)");
        }
        Verdict::TooLong => println!("test {name} ... {word} (stopped after {seconds:.0} s)"),
        Verdict::Failed { why } => {
            println!("test {name} ... {word} ({seconds:.1} s)");
            if word != "ok" || why_too {
                why.lines().take(40).for_each(|line| println!("    {line}"));
            }
        }
    }
}

/// Mutation points of the sources that no model plants.
fn unplanted() -> Vec<String> {
    let mut names = Vec::new();
    visit(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut names);
    let planted = |name: &String| MODELS.iter().any(|m| m.mutations.contains(&name.as_str()));
    names.retain(|name| !planted(name));
    names.sort();
    names.dedup();
    names
}

fn visit(directory: &Path, names: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).expect("the sources").map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() && entry.file_name() != "sync" {
            visit(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source file");
            for call in ["mutated(", "ordering("] {
                names.extend(text.split(call).skip(1).filter_map(first_string));
            }
        }
    }
}

/// The first argument, if it is a string literal.
fn first_string(arguments: &str) -> Option<String> {
    let rest = arguments.trim_start().strip_prefix('"')?;
    Some(rest.split_once('"')?.0.to_owned())
}

fn print_table(outcomes: &[Outcome]) {
    println!("\n| model | threads | preemptions | executions | planted bugs, all caught |");
    println!("|---|---|---|---|---|");
    for outcome in outcomes.iter().filter(|outcome| outcome.job.mutation.is_none()) {
        let model = outcome.job.model;
        let executions = match &outcome.verdict {
            Verdict::Passed { executions } => executions.to_string(),
            Verdict::Failed { .. } => "FAILED".to_owned(),
            Verdict::TooLong => "too many".to_owned(),
        };
        let bound = model.bound.map_or("all".to_owned(), |bound| format!("up to {bound}"));
        let caught: Vec<String> = outcomes
            .iter()
            .filter(|other| other.job.model.name == model.name && as_expected(other))
            .filter_map(|other| other.job.mutation.map(|name| format!("`{name}`")))
            .collect();
        let caught = caught.join(", ");
        println!("| `{}` | {} | {bound} | {executions} | {caught} |", model.name, model.threads);
    }
}
