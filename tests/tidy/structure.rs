//! Who may name what: layers, the facade, unsafe code, the outside world.

use crate::source::{File, line_of, words};

/// Modules of the core, lowest layer first. A module names those of lower layers only.
const LAYERS: &[&[&str]] = &[
    &["sync", "config_consts"],
    &["types", "java"],
    &["lockfree"],
    &["intern"],
    &["process_queue", "queue_lock", "lease"],
    &["select", "message_queue"],
    &["broker", "allocate"],
    &["docs"],
];

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|modules| modules.contains(&module))
}

/// The top-level module a file of the core belongs to.
fn module_of(path: &str) -> Option<&str> {
    let inside = path.strip_prefix("src/")?;
    let first = inside.split('/').next()?;
    let module = first.strip_suffix(".rs").unwrap_or(first);
    (module != "lib").then_some(module)
}

/// How deep the module of a file lies: 1 for `src/types.rs` and `src/lockfree/mod.rs`.
fn depth_of(path: &str) -> usize {
    let parts = path.split('/').count() - 1;
    if path.ends_with("/mod.rs") { parts - 1 } else { parts }
}

pub fn layers(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    for file in core(files) {
        let Some(module) = module_of(&file.path) else { continue };
        let Some(own) = layer(module) else {
            found.push(file.at(0, format!("`{module}` has no layer in tests/tidy")));
            continue;
        };
        for (position, named) in named_modules(file) {
            if named == module {
                continue;
            }
            if layer(named).is_some_and(|other| other >= own) {
                let line = line_of(&file.code, position);
                found.push(file.at(line, format!("`{module}` may not name `{named}`")));
            }
        }
    }
    found
}

/// Top-level modules that the file names through `crate::` or enough `super::`.
fn named_modules(file: &File) -> Vec<(usize, &str)> {
    let up = "super::".repeat(depth_of(&file.path));
    let mut found = Vec::new();
    for prefix in ["crate::", &up] {
        for (at, _) in file.code.match_indices(prefix) {
            let rest = &file.code[at + prefix.len()..];
            let names = match rest.strip_prefix('{') {
                Some(group) => group.split('}').next().unwrap_or_default().split(',').collect(),
                None => vec![rest],
            };
            found.extend(names.into_iter().map(|name| (at, first_name(name))));
        }
    }
    found
}

fn first_name(path: &str) -> &str {
    let path = path.trim_start();
    let end = path.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(path.len());
    &path[..end]
}

/// Paths of std that the code names: `std::sync::Arc` as `std::sync`, groups taken apart.
fn std_modules(file: &File) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for root in ["std", "core", "alloc"] {
        for at in words(&file.code, root) {
            let Some(rest) = file.code[at + root.len()..].strip_prefix("::") else { continue };
            match rest.strip_prefix('{') {
                Some(group) => {
                    let end = crate::source::closing(rest, 0).unwrap_or(rest.len());
                    let inside = &group[..end.saturating_sub(2)];
                    let mut depth = 0;
                    let mut starts = vec![0];
                    for (offset, c) in inside.char_indices() {
                        match c {
                            '{' => depth += 1,
                            '}' => depth -= 1,
                            ',' if depth == 0 => starts.push(offset + 1),
                            _ => {}
                        }
                    }
                    found
                        .extend(starts.into_iter().map(|start| (at, first_name(&inside[start..]))));
                }
                None => found.push((at, first_name(rest))),
            }
        }
    }
    found
}

/// The Rust of the core.
fn core(files: &[File]) -> impl Iterator<Item = &File> {
    files.iter().filter(|file| file.is_rust() && file.is_in("src"))
}

pub fn facade(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    for file in core(files).filter(|file| !file.is_in("src/sync")) {
        let mut say = |at: usize, what: &str| {
            let line = line_of(&file.code, at);
            found.push(file.at(line, format!("`{what}` is reached through crate::sync")));
        };
        for (at, module) in std_modules(file) {
            let statement = file.code[at..].split(';').next().unwrap_or_default();
            match module {
                "sync" => say(at, "std::sync"),
                "thread" => say(at, "std::thread"),
                "cell" if words(statement, "UnsafeCell").next().is_some() => say(at, "UnsafeCell"),
                _ => {}
            }
        }
        for tool in ["loom", "shuttle"] {
            let paths = words(&file.code, tool);
            for at in paths.filter(|at| file.code[at + tool.len()..].starts_with("::")) {
                say(at, tool);
            }
        }
    }
    found
}

pub fn unsafe_code(files: &[File]) -> Vec<String> {
    let rooms = ["src/sync", "src/lockfree", "ffi/src"];
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let product = file.is_in("src") || file.is_in("ffi") && !file.is_in("ffi/c/tests");
        if !product || rooms.iter().any(|room| file.is_in(room)) {
            continue;
        }
        for at in words(&file.code, "unsafe") {
            let line = line_of(&file.code, at);
            found.push(file.at(line, "unsafe code outside src/sync, src/lockfree and ffi/src"));
        }
    }
    found
}

/// The core has no clock, no chance, no environment and no input or output.
pub fn purity(files: &[File]) -> Vec<String> {
    let outside = ["fs", "env", "io", "net", "process", "os"];
    let names = ["println", "eprintln", "print", "eprint", "dbg", "SystemTime", "Instant"];
    let mut found = Vec::new();
    for file in core(files) {
        // The broker waits for messages as long as its caller says; that is a length of time.
        let may_wait = file.is_in("src/broker");
        for (at, module) in std_modules(file) {
            if outside.contains(&module) || module == "time" && !may_wait {
                let line = line_of(&file.code, at);
                found.push(file.at(line, format!("the core does not use std::{module}")));
            }
        }
        for name in names.iter().chain(&["rand"]) {
            for at in words(&file.code, name) {
                let shuttle_coin = file.path == "src/sync/shuttle_arm.rs" && *name == "rand";
                if !shuttle_coin {
                    let line = line_of(&file.code, at);
                    found.push(file.at(line, format!("the core does not use `{name}`")));
                }
            }
        }
    }
    found
}

/// Each unsafe block and each unsafe `impl` has a SAFETY comment of its own right above it; none
/// stands elsewhere.
pub fn safety(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        if !file.is_in("src") && !file.is_in("ffi/src") {
            continue;
        }
        let comments: Vec<&str> = file.comments.lines().collect();
        let code: Vec<&str> = file.code.lines().collect();
        let states = |line: usize| comments[line].contains("SAFETY:");
        let mut used = vec![false; comments.len()];
        for at in words(&file.code, "unsafe") {
            let rest = file.code[at + "unsafe".len()..].trim_start();
            if !rest.starts_with('{') && words(rest, "impl").next() != Some(0) {
                continue;
            }
            let line = line_of(&file.code, at);
            let beside = |above: &usize| {
                let text = code[*above].trim();
                let comment = text.is_empty() && !comments[*above].trim().is_empty();
                comment || text.starts_with("#[") || text.ends_with('=')
            };
            let mut above = (0..line).rev().take_while(beside);
            match above.find(|above| states(*above) && !used[*above]) {
                Some(reason) => used[reason] = true,
                None => found.push(file.at(line, "unsafe without a SAFETY: comment of its own")),
            }
        }
        let idle = (0..comments.len()).filter(|line| states(*line) && !used[*line]);
        found.extend(idle.map(|line| file.at(line, "a SAFETY: comment above nothing unsafe")));
    }
    found
}
