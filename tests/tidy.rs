//! House rules that a machine can keep. Each also has a test that plants what it forbids.

#[path = "tidy/atomics.rs"]
mod atomics;
#[path = "tidy/facts.rs"]
mod facts;
#[path = "tidy/size.rs"]
mod size;
#[path = "tidy/source.rs"]
mod source;
#[path = "tidy/structure.rs"]
mod structure;

use source::{File, read, tree};

type Rule = fn(&[File]) -> Vec<String>;

/// Fails with all that `rule` finds in the repository.
fn holds(rule: Rule) {
    let found = rule(&tree());
    assert!(found.is_empty(), "{} findings:\n{}", found.len(), found.join("\n"));
}

/// What `rule` finds in one made-up file.
fn finds(rule: Rule, path: &str, text: &str) -> Vec<String> {
    rule(&[File::new(path, text)])
}

/// `rule` finds exactly one fault, in this line.
#[track_caller]
fn finds_at(rule: Rule, path: &str, text: &str, line: usize) {
    let found = finds(rule, path, text);
    let expected = format!("{path}:{line}: ");
    assert!(found.len() == 1 && found[0].starts_with(&expected), "{found:?}");
}

#[test]
fn modules_name_lower_layers_only() {
    holds(structure::layers);
}

#[test]
fn planted_layer_violations_are_found() {
    let rule = structure::layers;
    finds_at(rule, "src/lockfree/x.rs", "\nuse crate::process_queue::Turn;", 2);
    finds_at(rule, "src/select.rs", "use super::broker;", 1);
    finds_at(rule, "src/lockfree/window/x.rs", "use super::super::super::broker::Topic;", 1);
    finds_at(rule, "src/java.rs", "use crate::{sync, types};", 1);
    finds_at(rule, "src/novel.rs", "", 1);
    assert!(finds(rule, "src/broker/mod.rs", "use crate::{select, types};").is_empty());
    assert!(finds(rule, "src/lockfree/x.rs", "use super::types; // crate::broker").is_empty());
}

#[test]
fn concurrency_is_reached_through_the_facade() {
    holds(structure::facade);
}

#[test]
fn planted_ways_around_the_facade_are_found() {
    let rule = structure::facade;
    for text in [
        "use std::sync::Mutex;",
        "use core::sync::atomic::AtomicU64;",
        "use std::{fmt, sync::Arc};",
        "fn f() { std::thread::yield_now() }",
        "use std::cell::{Cell, UnsafeCell};",
        "use loom::model;",
    ] {
        finds_at(rule, "src/process_queue/x.rs", text, 1);
        assert!(finds(rule, "src/sync/x.rs", text).is_empty(), "{text}");
    }
    finds_at(rule, "src/broker/x.rs", "struct S(core::cell::UnsafeCell<u8>);", 1);
    let fine = "use crate::sync::UnsafeCell; use std::{fmt, mem}; // std::sync";
    assert!(finds(rule, "src/lockfree/x.rs", fine).is_empty());
}

#[test]
fn unsafe_code_stays_in_its_rooms() {
    holds(structure::unsafe_code);
}

#[test]
fn planted_unsafe_code_is_found() {
    let rule = structure::unsafe_code;
    let text = "// unsafe\nfn f() { unsafe { g() } }";
    finds_at(rule, "src/process_queue/mod.rs", text, 2);
    finds_at(rule, "ffi/examples/x.rs", text, 2);
    assert!(finds(rule, "src/lockfree/x.rs", text).is_empty());
    assert!(finds(rule, "src/broker/x.rs", "#![forbid(unsafe_code)]").is_empty());
}

#[test]
fn unsafe_code_says_why_it_is_safe() {
    holds(structure::safety);
}

#[test]
fn planted_unsafe_code_without_reason_is_found() {
    let rule = structure::safety;
    let reason = "// SAFETY: held.\n";
    finds_at(rule, "src/lockfree/x.rs", "fn f() {\n    unsafe { g() }\n}", 2);
    finds_at(rule, "ffi/src/x.rs", "unsafe impl Send for S {}", 1);
    finds_at(rule, "src/lockfree/x.rs", &format!("{reason}unsafe {{ f() }};\nunsafe {{ g() }}"), 3);
    finds_at(rule, "src/lockfree/x.rs", &format!("{reason}f()"), 1);
    assert_eq!(finds(rule, "src/x.rs", &format!("{reason}\nunsafe {{ f() }}")).len(), 2);
    let fine =
        format!("{reason}// More.\n#[cfg(x)]\nlet a = unsafe {{ f() }};\nunsafe fn f() {{}}");
    assert!(finds(rule, "src/lockfree/x.rs", &fine).is_empty());
}

#[test]
fn the_core_is_pure() {
    holds(structure::purity);
}

#[test]
fn planted_impurity_is_found() {
    let rule = structure::purity;
    for text in [
        "let now = std::time::Duration::ZERO;",
        "use std::{env, fmt};",
        "fn f() { println!(\"x\") }",
        "let t = Instant::now();",
        "let x = rand::random();",
        "std::fs::read(path)",
    ] {
        finds_at(rule, "src/process_queue/x.rs", text, 1);
    }
    assert!(finds(rule, "src/broker/x.rs", "use std::time::Duration;").is_empty());
    finds_at(rule, "src/broker/x.rs", "let t = Instant::now();", 1);
}

#[test]
fn every_ordering_has_its_reason() {
    holds(atomics::reasons);
}

#[test]
fn planted_orderings_without_reason_are_found() {
    let rule = atomics::reasons;
    let bare = "fn f() { x.load(Ordering::Acquire) }";
    finds_at(rule, "src/lockfree/window/x.rs", bare, 1);
    finds_at(rule, "src/process_queue/mod.rs", &format!("// ORDERING: Acquire\n{bare}"), 2);
    let reason = "// ORDERING: Acquire — pairs with put.\n";
    finds_at(rule, "src/lockfree/x.rs", &format!("{reason}\n\n\n\n\n\n{bare}"), 8);
    assert!(finds(rule, "src/lockfree/x.rs", &format!("{reason}\n\n{bare}")).is_empty());
    assert!(finds(rule, "src/lockfree/x.rs", "use atomic::Ordering::Acquire;").is_empty());
}

#[test]
fn total_order_comes_from_fences() {
    holds(atomics::total_order);
}

#[test]
fn planted_seqcst_accesses_are_found() {
    let rule = atomics::total_order;
    finds_at(rule, "src/lockfree/x.rs", "x.load(\n    Ordering::SeqCst,\n)", 1);
    finds_at(rule, "src/sync/x.rs", "x.store(f(1), SeqCst)", 1);
    assert!(finds(rule, "src/sync/x.rs", "x.swap(1, SeqCst); fence(SeqCst)").is_empty());
}

#[test]
fn models_that_comments_name_exist() {
    holds(atomics::models);
}

#[test]
fn planted_models_that_do_not_exist_are_found() {
    finds_at(atomics::models, "src/lockfree/x.rs", "// so it is. Model: put_take", 1);
    let both = [
        File::new("src/lockfree/x.rs", "// Models: put_take, `litmus::stale`, gone."),
        File::new("tests/loom/x.rs", "fn put_take() {}"),
        File::new("tests/litmus/x.rs", "fn stale() {}"),
    ];
    assert_eq!(atomics::models(&both), ["src/lockfree/x.rs:1: there is no model `gone`"]);
}

#[test]
fn files_are_short() {
    for warning in size::long_files(&tree()) {
        println!("above the goal of {} lines: {warning}", size::FILE_LINES_GOAL);
    }
    holds(size::file_lines);
}

#[test]
fn planted_long_files_are_found() {
    let text = "\n".repeat(size::FILE_LINES_MAX);
    assert!(finds(size::file_lines, "src/x.rs", &text).is_empty());
    assert_eq!(finds(size::long_files, "src/x.rs", &text).len(), 1);
    finds_at(size::file_lines, "tests/x.rs", &(text + "\n"), 1);
}

#[test]
fn lines_are_short() {
    holds(size::columns);
}

#[test]
fn planted_long_lines_are_found() {
    let text = format!("\n{}", "é".repeat(size::COLUMNS_MAX));
    assert!(finds(size::columns, "src/x.rs", &text).is_empty());
    finds_at(size::columns, "ffi/c/x.c", &(text + "é"), 2);
}

#[test]
fn functions_are_short() {
    holds(size::function_lines);
}

#[test]
fn planted_long_functions_are_found() {
    let body = |lines: usize| {
        format!("\npub fn long<F: Fn(u8)>(f: [F; 2]) -> u8 {{{}}}", "\n".repeat(lines - 1))
    };
    let rule = size::function_lines;
    assert!(finds(rule, "src/x.rs", &body(size::FUNCTION_LINES_MAX)).is_empty());
    finds_at(rule, "src/x.rs", &body(size::FUNCTION_LINES_MAX + 1), 2);
    let declared = format!("trait T {{ fn short(&self); }}{}", "\n".repeat(100));
    assert!(finds(rule, "src/x.rs", &declared).is_empty());
}

#[test]
fn nothing_is_left_unfinished() {
    holds(size::unfinished);
}

#[test]
fn planted_loose_ends_are_found() {
    for text in [
        concat!("// TO", "DO: more"),
        concat!("/* FIX", "ME */"),
        concat!("fn f() { to", "do!() }"),
        concat!("#[ign", "ore] fn t() {}"),
    ] {
        finds_at(size::unfinished, "src/x.rs", text, 1);
    }
}

#[test]
fn versions_agree() {
    let manifest = read("Cargo.toml").expect("the manifest");
    let found = facts::versions(&manifest, &tree());
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn planted_other_versions_are_found() {
    let manifest = "[workspace.package]\nversion = \"1.2.3\"\n[other]\nversion = \"9.9.9\"\n";
    let header = |patch: &str| {
        let lines = ["MAJOR 1", "MINOR 2", patch, "STRING \"1.2.3\""];
        let text: String = lines.map(|line| format!("#define LK_VERSION_{line}\n")).concat();
        File::new("include/lanekeeper.h", &text)
    };
    let changelog = |newest: &str| {
        let text = format!("## [Unreleased]\n## [{newest}] - 2026-01-01\n## [0.0.1]\n");
        File::new("CHANGELOG.md", &text)
    };
    let count =
        |patch, newest| facts::versions(manifest, &[header(patch), changelog(newest)]).len();
    assert_eq!(count("PATCH 3", "1.2.3"), 0);
    assert_eq!(count("PATCH 4", "1.2.3"), 1);
    assert_eq!(count("PATCH 3", "1.2.2"), 1);
    assert_eq!(count("", ""), 2);
}

#[test]
fn every_rule_has_its_tests() {
    holds(facts::rules);
}

#[test]
fn every_field_report_has_its_test() {
    holds(facts::field_reports);
}

#[test]
fn planted_gaps_in_the_tables_are_found() {
    let row = |id: &str, proof: &str| format!("| {id} | what | {proof} |\n");
    let mut text = String::from("| rule | meaning | tests |\n|---|---|---|\n");
    let mut contract = String::new();
    let letters = [('W', 0..=16), ('T', 1..=4), ('L', 1..=5), ('A', 1..=5), ('C', 1..=7)];
    for (letter, numbers) in letters {
        for number in numbers {
            let id = format!("{letter}{number}");
            text += &row(&id, "`tests/a.rs::t`, `ffi/c::c_t`");
            contract += &format!("**{id} Name.** Text.\n");
        }
    }
    let found = |text: &str, contract: &str| {
        facts::rules(&[
            File::new("src/docs/rules.md", text),
            File::new("src/docs/contract.md", contract),
            File::new("tests/a.rs", "fn t() {}"),
            File::new("ffi/c/tests/a.c", "static void c_t(void) {}"),
        ])
    };
    assert_eq!(found(&text, &contract), Vec::<String>::new());
    assert_eq!(found(&text.replace("| W7 |", "| W99 |"), &contract).len(), 1);
    assert_eq!(found(&text, &contract.replace("**C4", "**")).len(), 1);
    assert_eq!(found(&(text.clone() + &row("X", "`tests/a.rs::gone`")), &contract).len(), 1);
    let untested = text.replacen("`tests/a.rs::t`, `ffi/c::c_t`", "later", 1);
    assert_eq!(found(&untested, &contract).len(), 1);
}

#[test]
fn readme_shows_what_is_tested() {
    holds(facts::snippets);
    holds(facts::commands);
}

#[test]
fn planted_untested_snippets_and_commands_are_found() {
    let readme = |text: &str| File::new("README.md", text);
    let example = || File::new("ffi/c/examples/x.c", "int main(void)\n{\n    f();\n    g();\n}\n");
    let found = |text: &str| facts::snippets(&[readme(text), example()]).len();
    assert_eq!(found("```c\nf();\ng();\n```\n```rust\nx()\n```\n"), 0);
    assert_eq!(found("```c\ng();\nf();\n```\n"), 1);

    let makefile = || File::new("Makefile", "test: setup ## all\n");
    let found = |text: &str| facts::commands(&[readme(text), makefile()]).len();
    assert_eq!(found("make test   # all\nRun `make test`, or `make` alone."), 0);
    assert_eq!(found("Run `make tests` or `make testing`."), 2);
    assert_eq!(found("make lunch\n"), 1);
}

#[test]
fn every_symbol_is_in_the_changelog() {
    let symbols = read("ffi/symbols.txt").expect("the list of symbols");
    assert_eq!(facts::changelog(&symbols, &tree()), Vec::<String>::new());
}

#[test]
fn planted_unlisted_symbols_are_found() {
    let files = [File::new("CHANGELOG.md", "- `lk_put`")];
    assert_eq!(facts::changelog("lk_put\n", &files), Vec::<String>::new());
    assert_eq!(facts::changelog("lk_put\nlk_pu\n", &files).len(), 1);
}
