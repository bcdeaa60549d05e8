//! Every atomic access says why its ordering is right, and none asks for what the models lack.

use crate::source::{File, closing, line_of, words};

/// Lines above an access within which its reason stands.
const REASON_LINES: usize = 6;

const ORDERINGS: &[&str] = &["Relaxed", "Acquire", "Release", "AcqRel", "SeqCst"];

pub fn reasons(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files {
        if !file.is_rust() || !(file.is_in("src/lockfree") || file.is_in("src/process_queue")) {
            continue;
        }
        let code: Vec<&str> = file.code.lines().collect();
        let comments: Vec<&str> = file.comments.lines().collect();
        for (line, text) in code.iter().enumerate() {
            let orders = |name: &&&str| words(text, name).any(|at| !text[..at].contains("use "));
            if ORDERINGS.iter().any(|name| orders(&name)) {
                let above = &comments[line.saturating_sub(REASON_LINES)..=line];
                if !above.iter().any(|comment| states_reason(comment)) {
                    found.push(file.at(line, "an atomic access without an ORDERING: line"));
                }
            }
        }
    }
    found
}

/// "ORDERING: name — reason"
fn states_reason(comment: &str) -> bool {
    comment.split_once("ORDERING:").is_some_and(|(_, reason)| reason.trim().len() > 10)
}

/// The models do not know a total order of loads and stores: fences and exchanges have one.
pub fn total_order(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.is_in("src") || file.is_in("ffi/src")) {
        for method in ["load", "store"] {
            for at in words(&file.code, method) {
                let open = at + method.len();
                if !file.code[..at].ends_with('.') || !file.code[open..].starts_with('(') {
                    continue;
                }
                let end = closing(&file.code, open).unwrap_or(file.code.len());
                if words(&file.code[open..end], "SeqCst").next().is_some() {
                    let line = line_of(&file.code, at);
                    found.push(file.at(line, format!("a SeqCst {method}; take a fence")));
                }
            }
        }
    }
    found
}

/// Models that comments name exist.
pub fn models(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.is_rust() && file.is_in("src")) {
        for (line, comment) in file.comments.lines().enumerate() {
            for name in named_models(comment) {
                if !exists(files, name) {
                    found.push(file.at(line, format!("there is no model `{name}`")));
                }
            }
        }
    }
    found
}

/// "Model: a" and "Models: a, b."
fn named_models(comment: &str) -> Vec<&str> {
    let after = |key| comment.split_once(key).map(|(_, list): (&str, &str)| list);
    let Some(list) = after("Model: ").or_else(|| after("Models: ")) else { return Vec::new() };
    let names = list.split(',').map(|name| name.trim().trim_matches(['`', '.']));
    names.filter(|name| !name.is_empty()).collect()
}

fn exists(files: &[File], model: &str) -> bool {
    let (folder, name) = match model.split_once("::") {
        Some((folder, name)) => (format!("tests/{folder}"), name),
        None => ("tests/loom".to_owned(), model),
    };
    let definition = format!("fn {name}");
    files.iter().any(|file| file.is_in(&folder) && words(&file.code, &definition).next().is_some())
}
