//! Guards what was reached: each ratio of the committed measurement, minus a margin for noise.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::report::short;
use crate::results::Results;
use crate::subject::Cache;
use crate::subjects::{Lane, MutexBtreeMap, MutexVecDeque, SpscRing};
use crate::workloads::{Kind, LANE_C, WORKLOADS};

/// Part of a ratio that may be lost with one thread.
const MARGIN: f64 = 0.3;
/// With two threads: how near the two cores are to each other differs from machine to machine.
const MARGIN_TWO_THREADS: f64 = 0.5;
/// Bytes hardly vary.
const MARGIN_BYTES: f64 = 0.02;

/// Where the committed measurement is.
pub fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("benches/compare/reached.json")
}

fn margin(workload: &str) -> f64 {
    let kind = WORKLOADS.iter().find(|known| known.name == workload).map(|known| known.kind);
    match kind {
        Some(Kind::TwoThreads | Kind::AnyOrder | Kind::Observed) => MARGIN_TWO_THREADS,
        _ => MARGIN,
    }
}

/// How many times our time `rival` needs, by the fastest runs, which noise reaches least. Of the
/// program in C it is the other way round: how much of its speed it keeps.
fn ratio(results: &Results, workload: &str, rival: &str) -> Option<f64> {
    let ours = results.find(workload, Lane::NAME)?.ns_min;
    let rivals = results.find(workload, rival)?.ns_min;
    Some(if rival == LANE_C { ours / rivals } else { rivals / ours })
}

/// What was lost between `reached` and `now`: names of workloads, and a line each.
pub fn lost(reached: &Results, now: &Results) -> (BTreeSet<String>, Vec<String>) {
    let mut lost = (BTreeSet::new(), Vec::new());
    let mut tell = |workload: &str, what: String| {
        lost.0.insert(workload.to_owned());
        lost.1.push(format!("{workload} {what}"));
    };
    for workload in WORKLOADS.iter().map(|workload| workload.name) {
        for rival in [MutexBtreeMap::NAME, MutexVecDeque::NAME, SpscRing::NAME, LANE_C] {
            let ratios = (ratio(reached, workload, rival), ratio(now, workload, rival));
            let (Some(before), Some(after)) = ratios else { continue };
            if after < before * (1.0 - margin(workload)) {
                tell(workload, format!("{}: {before:.2}x before, {after:.2}x now", short(rival)));
            }
        }
        let bytes = |results: &Results| results.find(workload, Lane::NAME)?.bytes;
        let (Some(before), Some(after)) = (bytes(reached), bytes(now)) else { continue };
        if after > before * (1.0 + MARGIN_BYTES) {
            tell(workload, format!("{before:.1} bytes before, {after:.1} now"));
        }
    }
    lost
}
