//! The table, and what stands above it.

use std::process::Command;

use comfy_table::presets::{ASCII_MARKDOWN, UTF8_FULL_CONDENSED};
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};

use crate::floors;
use crate::results::{Line, Results};
use crate::subject::Cache;
use crate::subjects::Lane;
use crate::workloads::{IMPLEMENTATIONS, WORKLOADS};

/// A name for narrow places.
pub fn short(implementation: &str) -> &str {
    match implementation {
        "mutex-btreemap" => "maps",
        "mutex-vecdeque" => "deque",
        "spsc-ring" => "ring",
        other => other,
    }
}

fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let directory = env!("CARGO_MANIFEST_DIR");
    let output = Command::new(program).args(arguments).current_dir(directory).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// From the kernel: the process is pinned by now, and would count one.
fn core_count() -> usize {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    cpuinfo.lines().filter(|line| line.starts_with("processor")).count()
}

/// Machine, cores, compiler and commit.
pub fn machine() -> String {
    let unknown = || "unknown".to_owned();
    let cores = core_count();
    let rustc = output_of("rustc", &["--version"]).unwrap_or_else(unknown);
    let commit = output_of("git", &["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(unknown);
    let dirty = output_of("git", &["status", "--porcelain", "--untracked-files=no"])
        .is_some_and(|text| !text.is_empty());
    format!(
        "machine: {} ({}-{}), {cores} cores\ncompiler: {rustc}, commit: {commit}{}",
        processor().unwrap_or_else(unknown),
        std::env::consts::ARCH,
        std::env::consts::OS,
        if dirty { " with changes" } else { "" },
    )
}

fn cell(line: &Line, ours: Option<&Line>) -> String {
    let mut text = format!("{:.1}", line.ns_median);
    if let Some(ours) = ours.filter(|_| line.implementation != Lane::NAME) {
        text += &format!(" ({:.2}x)", line.ns_median / ours.ns_median);
    }
    text += &format!("\nmin {:.1}", line.ns_min);
    if let Some(polls) = line.polls_per_s {
        text += &format!("\n{:.1}M polls/s", polls / 1e6);
    }
    if let Some(bytes) = line.bytes {
        text += &format!("\n{bytes:.1} bytes");
    }
    text
}

/// One row for each workload.
pub fn table(results: &Results) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    table.set_content_arrangement(ContentArrangement::Disabled);
    let measured = |name: &str| results.lines.iter().any(|line| line.implementation == name);
    let names: Vec<&str> = IMPLEMENTATIONS.into_iter().filter(|name| measured(name)).collect();
    let head = std::iter::once("workload").chain(names.iter().copied());
    table.set_header(head.chain(std::iter::once("floors")));
    let verdicts = floors::verdicts(results);
    for workload in &WORKLOADS {
        if !results.lines.iter().any(|line| line.workload == workload.name) {
            continue;
        }
        let ours = results.find(workload.name, Lane::NAME);
        let mut row = vec![Cell::new(format!("{}\n{}", workload.name, workload.about))];
        row.extend(names.iter().map(|name| {
            let line = results.find(workload.name, name);
            let text = line.map_or_else(|| "-".to_owned(), |line| cell(line, ours));
            Cell::new(text).set_alignment(CellAlignment::Right)
        }));
        let floors = verdicts.iter().filter(|verdict| verdict.workload == workload.name);
        let floors: Vec<String> = floors.map(floors::Verdict::cell).collect();
        row.push(Cell::new(floors.join("\n")));
        table.add_row(row);
    }
    table
}

/// The medians, for a page in Markdown.
pub fn markdown(results: &Results) -> Table {
    let mut table = Table::new();
    table.load_preset(ASCII_MARKDOWN);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["", "workload"].into_iter().chain(IMPLEMENTATIONS));
    for workload in &WORKLOADS {
        let ours = results.find(workload.name, Lane::NAME);
        let mut row = vec![workload.name.to_owned(), workload.about.to_owned()];
        row.extend(IMPLEMENTATIONS.iter().map(|name| {
            let Some(line) = results.find(workload.name, name) else { return "-".to_owned() };
            let ratio = ours.filter(|_| *name != Lane::NAME).map(|o| line.ns_median / o.ns_median);
            match (line.bytes, ratio) {
                (Some(bytes), _) => format!("{bytes:.1} bytes"),
                (None, Some(ratio)) => format!("{:.1} ({ratio:.1}x)", line.ns_median),
                (None, None) => format!("**{:.1}**", line.ns_median),
            }
        }));
        table.add_row(row);
    }
    table
}

/// How to read the table.
pub fn legend() -> String {
    format!(
        "ns per message (B4: per cycle), median over the runs, and the fastest; (2.00x) is twice \
         the time of {}.\nFloors compare medians of this run; a miss of less than {:.0} % is \
         noise. \
         maps, deque, ring: mutex-btreemap, mutex-vecdeque, spsc-ring.",
        Lane::NAME,
        floors::NOISE * 100.0,
    )
}
