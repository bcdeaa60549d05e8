//! Facts that stand in several places agree, and tables name what exists.

use std::collections::BTreeMap;

use crate::source::{File, words};

fn find<'f>(files: &'f [File], path: &str) -> Option<&'f File> {
    files.iter().find(|file| file.path == path)
}

/// The version in `[workspace.package]` of a manifest.
fn manifest_version(manifest: &str) -> Option<&str> {
    let (_, section) = manifest.split_once("[workspace.package]")?;
    let section = section.split("\n[").next()?;
    let line = section.lines().find(|line| line.starts_with("version"))?;
    line.split('"').nth(1)
}

/// `#define name value` in the C header.
fn define<'h>(header: &'h str, name: &str) -> Option<&'h str> {
    header.lines().find_map(|line| {
        let mut parts = line.strip_prefix("#define ")?.split_whitespace();
        (parts.next() == Some(name)).then(|| parts.next().unwrap_or_default())
    })
}

/// Cargo.toml is the source; the header's macros and the changelog's newest entry repeat it.
pub fn versions(manifest: &str, files: &[File]) -> Vec<String> {
    let Some(version) = manifest_version(manifest) else {
        return vec!["Cargo.toml: no version in [workspace.package]".to_owned()];
    };
    let mut stated = BTreeMap::new();
    if let Some(header) = find(files, "include/lanekeeper.h") {
        let part = |name| define(&header.text, name).unwrap_or("nothing").to_owned();
        let parts = ["LK_VERSION_MAJOR", "LK_VERSION_MINOR", "LK_VERSION_PATCH"].map(part);
        stated.insert("include/lanekeeper.h numbers", parts.join("."));
        stated.insert("include/lanekeeper.h string", part("LK_VERSION_STRING").replace('"', ""));
    }
    if let Some(changelog) = find(files, "CHANGELOG.md") {
        let released = |line: &&str| line.starts_with("## [") && !line.contains("Unreleased");
        let newest = changelog.text.lines().find(released).unwrap_or_default();
        let newest = newest.trim_start_matches("## [").split(']').next().unwrap_or_default();
        stated.insert("CHANGELOG.md", newest.to_owned());
    }
    let differs = stated.into_iter().filter(|(_, other)| other != version);
    differs.map(|(place, other)| format!("{place}: {other}, Cargo.toml: {version}")).collect()
}

/// Rows of the Markdown tables in `text`, cell by cell, headings left out.
fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().filter(|line| line.starts_with("| ")).map(cells)
}

fn cells(row: &str) -> Vec<&str> {
    row.trim().trim_matches('|').split(" | ").map(str::trim).collect()
}

/// `path::name` references between backticks.
fn references(cell: &str) -> impl Iterator<Item = &str> {
    let quoted = cell.split('`').skip(1).step_by(2);
    quoted.filter(|text| text.contains("::") && text.contains('/'))
}

/// Does the file, its folder of modules, or the folder before `::` define the function after it?
fn is_defined(files: &[File], reference: &str) -> bool {
    let Some((path, name)) = reference.split_once("::") else { return false };
    let folder = path.strip_suffix(".rs").unwrap_or(path);
    let here = |file: &&File| file.path == path || file.is_in(folder);
    files.iter().filter(here).any(|file| match file.is_rust() {
        true => words(&file.code, &format!("fn {name}")).next().is_some(),
        false => words(&file.text, name).any(|at| file.text[at + name.len()..].starts_with('(')),
    })
}

/// Each of `ids` has a row that names a test or says why it has none, and the tests exist.
fn table(files: &[File], path: &str, ids: &[String]) -> Vec<String> {
    let Some(table) = find(files, path) else { return vec![format!("{path}: missing")] };
    let mut found = Vec::new();
    for id in ids {
        let row = rows(&table.text).find(|cells| cells[0] == id);
        match row.as_ref().and_then(|cells| cells.last()) {
            None => found.push(format!("{path}: no row for {id}")),
            Some(proof) if references(proof).next().is_some() || proof.starts_with("Not here:") => {
            }
            Some(_) => found.push(format!("{path}: {id} names no test")),
        }
    }
    for (line, text) in table.text.lines().enumerate() {
        for reference in references(text).filter(|reference| !is_defined(files, reference)) {
            found.push(table.at(line, format!("there is no test `{reference}`")));
        }
    }
    found
}

fn numbered(letter: char, numbers: impl IntoIterator<Item = u32>) -> Vec<String> {
    numbers.into_iter().map(|number| format!("{letter}{number}")).collect()
}

pub fn rules(files: &[File]) -> Vec<String> {
    let letters = [('W', 0..=16), ('T', 1..=4), ('L', 1..=5), ('A', 1..=5), ('C', 1..=7)];
    let ids = letters.map(|(letter, numbers)| numbered(letter, numbers)).concat();
    let mut found = table(files, "src/docs/rules.md", &ids);
    let contract = find(files, "src/docs/contract.md").map_or("", |file| &file.text);
    for id in &ids {
        if !contract.contains(&format!("**{id} ")) {
            found.push(format!("src/docs/contract.md: no rule {id}"));
        }
    }
    found
}

/// The reports whose faults this library could have.
const REPORTS: &[&str] = &[
    "1", "2", "3", "4", "5", "7", "8", "10", "11", "12", "13", "14", "16", "17", "19", "37", "38",
    "40", "41", "42", "45", "51", "52", "54", "55", "56", "67", "68", "70", "71", "72", "73", "74",
    "76",
];

pub fn field_reports(files: &[File]) -> Vec<String> {
    let ids: Vec<String> = REPORTS.iter().map(|&id| id.to_owned()).collect();
    table(files, "src/docs/field-reports.md", &ids)
}

/// The C in the README is an excerpt of an example that is compiled and run, but for indentation.
pub fn snippets(files: &[File]) -> Vec<String> {
    let Some(readme) = find(files, "README.md") else { return vec!["README.md: missing".into()] };
    let examples = files.iter().filter(|file| file.is_in("ffi/c/examples"));
    let examples: Vec<String> = examples.map(|file| without_indentation(&file.text)).collect();
    let blocks = readme.text.split("```c\n").skip(1).filter_map(|rest| rest.split("```").next());
    let unknown = blocks
        .map(without_indentation)
        .filter(|block| !examples.iter().any(|example| example.contains(block.as_str())));
    unknown.map(|block| format!("README.md: not from ffi/c/examples:\n{block}")).collect()
}

fn without_indentation(text: &str) -> String {
    text.lines().map(|line| line.trim().to_owned() + "\n").collect()
}

/// Commands that the README names are targets of the Makefile.
pub fn commands(files: &[File]) -> Vec<String> {
    let (Some(readme), Some(makefile)) = (find(files, "README.md"), find(files, "Makefile")) else {
        return vec!["README.md or Makefile: missing".into()];
    };
    let mut found = Vec::new();
    for (line, text) in readme.text.lines().enumerate() {
        let begins = ["`make ", "make "].iter().find_map(|word| text.trim().strip_prefix(word));
        let quoted = text.split("`make ").skip(1).filter_map(|rest| rest.split('`').next());
        let names =
            begins.into_iter().chain(quoted).filter_map(|rest| rest.split(['`', ' ']).next());
        for name in names.filter(|name| !name.is_empty()) {
            if !makefile.text.lines().any(|rule| rule.starts_with(&format!("{name}:"))) {
                found.push(readme.at(line, format!("there is no `make {name}`")));
            }
        }
    }
    found
}

/// Every exported symbol stands in the changelog.
pub fn changelog(symbols: &str, files: &[File]) -> Vec<String> {
    let text = find(files, "CHANGELOG.md").map_or("", |file| &file.text);
    let unknown = symbols.lines().filter(|symbol| words(text, symbol).next().is_none());
    unknown.map(|symbol| format!("CHANGELOG.md: `{symbol}` is not in it")).collect()
}
