//! Sizes, and words that mark unfinished work.

use crate::source::{File, closing, line_of, words};

pub const FILE_LINES_MAX: usize = 700;
pub const FILE_LINES_GOAL: usize = 400;
pub const COLUMNS_MAX: usize = 100;
pub const FUNCTION_LINES_MAX: usize = 70;

/// Functions that were longer when the limit came: (path, name, lines). Only ever shrinks.
const LONG_FUNCTIONS: &[(&str, &str, usize)] = &[];

fn is_generated(file: &File) -> bool {
    file.path == "include/lanekeeper.h"
}

fn is_code(file: &File) -> bool {
    !file.path.ends_with(".md") && !is_generated(file)
}

pub fn file_lines(files: &[File]) -> Vec<String> {
    let long = files.iter().filter(|file| is_code(file));
    long.filter_map(|file| {
        let lines = file.text.lines().count();
        (lines > FILE_LINES_MAX)
            .then(|| file.at(0, format!("{lines} lines, {FILE_LINES_MAX} at most")))
    })
    .collect()
}

/// Files between the goal and the limit: told, not failed.
pub fn long_files(files: &[File]) -> Vec<String> {
    let goal = |file: &&File| is_code(file) && file.text.lines().count() > FILE_LINES_GOAL;
    files.iter().filter(goal).map(|file| file.at(0, file.text.lines().count())).collect()
}

pub fn columns(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| is_code(file)) {
        for (line, text) in file.text.lines().enumerate() {
            let columns = text.chars().count();
            // A link cannot be broken, nor can a row of a table in a comment.
            let unbreakable = text.contains("https://") || text.trim_start().starts_with("//! |");
            if columns > COLUMNS_MAX && !unbreakable {
                found.push(file.at(line, format!("{columns} columns, {COLUMNS_MAX} at most")));
            }
        }
    }
    found
}

pub fn function_lines(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        for at in words(&file.code, "fn") {
            let Some((name, lines)) = function(&file.code, at) else { continue };
            let known = |entry: &&(&str, &str, usize)| entry.0 == file.path && entry.1 == name;
            let most =
                LONG_FUNCTIONS.iter().find(known).map_or(FUNCTION_LINES_MAX, |entry| entry.2);
            if lines > most {
                let line = line_of(&file.code, at);
                found.push(file.at(line, format!("`{name}` has {lines} lines, {most} at most")));
            }
        }
    }
    found
}

/// Name and lines of the function whose `fn` stands at `at`; nothing if it has no body.
fn function(code: &str, at: usize) -> Option<(&str, usize)> {
    let rest = code[at + 2..].trim_start();
    let name = &rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_')?];
    if name.is_empty() {
        return None;
    }
    let mut open = at;
    loop {
        let next = open + code[open..].find(['{', ';', '(', '['])?;
        match code.as_bytes()[next] {
            b'{' => {
                let end = closing(code, next)?;
                return Some((name, code[at..end].matches('\n').count() + 1));
            }
            b';' => return None,
            _ => open = closing(code, next)?,
        }
    }
}

pub fn unfinished(files: &[File]) -> Vec<String> {
    // Taken apart, so that this file does not contain them.
    let notes =
        [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("HA", "CK")];
    let stubs = [concat!("to", "do!"), concat!("unimpl", "emented!"), concat!("#[ign", "ore")];
    let mut found = Vec::new();
    for file in files {
        for (line, text) in file.text.lines().enumerate() {
            for note in notes {
                if words(text, note).next().is_some() {
                    found.push(file.at(line, format!("`{note}`")));
                }
            }
        }
        for (line, text) in file.code.lines().enumerate() {
            for stub in stubs {
                if text.contains(stub) {
                    found.push(file.at(line, format!("`{stub}`")));
                }
            }
        }
    }
    found
}
