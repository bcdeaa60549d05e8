//! What was measured, and the file it is kept in.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::harness::Measured;
use crate::workloads::{WORKLOADS, Workload};

/// The runs of one implementation in one workload.
#[derive(Default)]
pub struct Sample {
    ns: Vec<f64>,
    polls_per_s: Vec<f64>,
    bytes: Vec<f64>,
}

impl Sample {
    /// Takes in one run.
    pub fn add(&mut self, measured: &Measured) {
        let seconds = measured.elapsed.as_secs_f64();
        self.ns.push(seconds * 1e9 / measured.units as f64);
        self.polls_per_s.push(measured.polls as f64 / seconds);
        self.bytes.push(measured.bytes as f64 / measured.units as f64);
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn rounded(value: f64, unit: f64) -> f64 {
    (value / unit).round() * unit
}

/// One line of `compare.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    /// Name of the workload.
    pub workload: String,
    /// Name of the implementation.
    #[serde(rename = "impl")]
    pub implementation: String,
    /// Fastest run, ns per message (B4: per cycle).
    pub ns_min: f64,
    /// Median run, ns per message (B4: per cycle).
    pub ns_median: f64,
    /// B6: polls of the observer, median run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polls_per_s: Option<f64>,
    /// B7: heap bytes per cached message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<f64>,
}

/// All lines of one run of the program.
#[derive(Default)]
pub struct Results {
    /// In the order they were measured.
    pub lines: Vec<Line>,
}

impl Results {
    /// Takes in the runs of one implementation in one workload.
    pub fn add(&mut self, workload: &Workload, implementation: &str, sample: &Sample) {
        let ns_min = sample.ns.iter().copied().fold(f64::INFINITY, f64::min);
        let polls = median(&sample.polls_per_s);
        let bytes = median(&sample.bytes);
        self.lines.push(Line {
            workload: workload.name.to_owned(),
            implementation: implementation.to_owned(),
            ns_min: rounded(ns_min, 0.01),
            ns_median: rounded(median(&sample.ns), 0.01),
            polls_per_s: (polls > 0.0).then(|| polls.round()),
            bytes: (bytes > 0.0).then(|| rounded(bytes, 0.01)),
        });
    }

    /// The line of one implementation in one workload.
    pub fn find(&self, workload: &str, implementation: &str) -> Option<&Line> {
        self.lines
            .iter()
            .find(|line| line.workload == workload && line.implementation == implementation)
    }

    fn path() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target").join("compare.json")
    }

    /// Writes `target/compare.json`, and leaves the rows of other benches there; where that is.
    pub fn save(&self) -> Result<PathBuf, String> {
        let path = Self::path();
        let known = Self::load().unwrap_or_default().lines;
        let ours = |line: &&Line| WORKLOADS.iter().any(|ours| ours.name == line.workload);
        let others = known.iter().filter(|line| !ours(line));
        let lines: Vec<String> = self
            .lines
            .iter()
            .chain(others)
            .map(|line| serde_json::to_string(line).map_err(|error| error.to_string()))
            .collect::<Result<_, _>>()?;
        let text = format!("[\n  {}\n]\n", lines.join(",\n  "));
        let write = || {
            path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            std::fs::write(&path, text)
        };
        write().map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }

    /// Takes in the lines of a later measurement, in place of those for the same workloads.
    pub fn replace(&mut self, later: Self) {
        let measured = |line: &Line| later.lines.iter().any(|new| new.workload == line.workload);
        self.lines.retain(|line| !measured(line));
        self.lines.extend(later.lines);
    }

    /// Reads `target/compare.json`.
    pub fn load() -> Result<Self, String> {
        Self::load_from(&Self::path())
    }

    /// Reads what `save` wrote.
    pub fn load_from(path: &Path) -> Result<Self, String> {
        let error = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = std::fs::read_to_string(path).map_err(|e| error(&e))?;
        let lines = serde_json::from_str(&text).map_err(|e| error(&e))?;
        Ok(Self { lines })
    }
}
