//! What has to be reached, and how much of a miss is noise.

use crate::report::short;
use crate::results::Results;
use crate::subject::Cache;
use crate::subjects::{Lane, MutexBtreeMap, MutexVecDeque, SpscRing};
use crate::workloads::LANE_C;

/// Ratios of two medians of one run move by this part between runs on a shared machine with two
/// cores. A floor missed by less is not told as missed by `--check`.
pub const NOISE: f64 = 0.15;

/// What is asked for.
#[derive(Clone, Copy)]
enum Bound {
    /// The rival needs at least so many times our time.
    Faster(f64),
    /// We need at most so many times the rival's time.
    Within(f64),
    /// The observer polls at least so often a second.
    Polls(f64),
    /// At most so many bytes a message.
    Bytes(f64),
}

/// One floor.
struct Floor {
    workload: &'static str,
    ours: &'static str,
    rival: &'static str,
    bound: Bound,
}

const fn rival(workload: &'static str, rival: &'static str, bound: Bound) -> Floor {
    Floor { workload, ours: Lane::NAME, rival, bound }
}

const fn in_c(workload: &'static str, times: f64) -> Floor {
    Floor { workload, ours: LANE_C, rival: Lane::NAME, bound: Bound::Within(times) }
}

const MAPS: &str = MutexBtreeMap::NAME;
const DEQUE: &str = MutexVecDeque::NAME;
const RING: &str = SpscRing::NAME;

const FLOORS: [Floor; 43] = [
    rival("B1", MAPS, Bound::Faster(4.0)),
    rival("B1b", MAPS, Bound::Faster(4.5)),
    rival("B2", MAPS, Bound::Faster(13.0)),
    rival("B2b", MAPS, Bound::Faster(8.0)),
    rival("B3", MAPS, Bound::Faster(6.0)),
    rival("B4", MAPS, Bound::Faster(20.0)),
    rival("B5", MAPS, Bound::Faster(4.5)),
    rival("B6", MAPS, Bound::Faster(5.0)),
    rival("B6", "", Bound::Polls(50e6)),
    rival("B7-dense", "", Bound::Bytes(24.0)),
    rival("B7-sparse", "", Bound::Bytes(24.0)),
    // One thread and a plain ring.
    rival("B1", RING, Bound::Within(2.3)),
    rival("B1b", RING, Bound::Within(2.0)),
    rival("B2", RING, Bound::Within(1.1)),
    rival("B2b", RING, Bound::Within(1.8)),
    rival("B5", RING, Bound::Within(2.0)),
    rival("B8-0", RING, Bound::Within(2.0)),
    rival("B8-1k", RING, Bound::Within(2.0)),
    rival("B8-100k", RING, Bound::Within(1.6)),
    rival("B8-1M", RING, Bound::Within(1.6)),
    // Nowhere slower than the mutex around a ring buffer with two threads, hardly with one.
    rival("B1", DEQUE, Bound::Within(1.15)),
    rival("B1b", DEQUE, Bound::Within(1.15)),
    rival("B2", DEQUE, Bound::Within(1.0)),
    rival("B2b", DEQUE, Bound::Within(1.0)),
    rival("B3", DEQUE, Bound::Within(1.0)),
    rival("B4", DEQUE, Bound::Within(1.15)),
    rival("B5", DEQUE, Bound::Within(1.15)),
    rival("B6", DEQUE, Bound::Within(1.0)),
    rival("B8-0", DEQUE, Bound::Within(1.15)),
    rival("B8-1k", DEQUE, Bound::Within(1.15)),
    rival("B8-100k", DEQUE, Bound::Within(1.15)),
    rival("B8-1M", DEQUE, Bound::Within(1.15)),
    // Through the C ABI, called from C, against Rust: batches of one, batches of 32.
    in_c("B1", 2.0),
    in_c("B2", 2.0),
    in_c("B3", 2.0),
    in_c("B1b", 1.3),
    in_c("B2b", 1.3),
    in_c("B4", 1.3),
    in_c("B5", 1.3),
    in_c("B8-0", 1.3),
    in_c("B8-1k", 1.3),
    in_c("B8-100k", 1.3),
    in_c("B8-1M", 1.3),
];

/// A floor beside what was reached.
pub struct Verdict {
    text: String,
    holds: bool,
    missed: bool,
    /// Name of the workload.
    pub workload: &'static str,
}

impl Verdict {
    /// For the table: `maps >= 4x: 4.71 ok`.
    pub fn cell(&self) -> String {
        let end = match (self.holds, self.missed) {
            (true, _) => "ok",
            (_, true) => "MISSED",
            _ => "within noise",
        };
        format!("{} {end}", self.text)
    }
}

fn judge(floor: &Floor, results: &Results) -> Option<Verdict> {
    let ours = results.find(floor.workload, floor.ours)?;
    let subject = if floor.ours == LANE_C { "in C" } else { short(floor.rival) };
    let ratio = |of: &str| results.find(floor.workload, of).map(|l| l.ns_median / ours.ns_median);
    let (reached, bound, at_least, text) = match floor.bound {
        Bound::Faster(times) => {
            let reached = ratio(floor.rival)?;
            (reached, times, true, format!("{subject} >= {times}x: {reached:.2}"))
        }
        Bound::Within(times) => {
            let reached = 1.0 / ratio(floor.rival)?;
            (reached, times, false, format!("{subject} <= {times}x: {reached:.2}"))
        }
        Bound::Polls(polls) => {
            let reached = ours.polls_per_s? / 1e6;
            (reached, polls / 1e6, true, format!("polls >= {}M: {reached:.0}M", polls / 1e6))
        }
        Bound::Bytes(bytes) => {
            let reached = ours.bytes?;
            (reached, bytes, false, format!("bytes <= {bytes}: {reached:.1}"))
        }
    };
    let quality = if at_least { reached / bound } else { bound / reached };
    // Bytes do not vary.
    let noise = if matches!(floor.bound, Bound::Bytes(_)) { 0.0 } else { NOISE };
    let missed = quality < 1.0 - noise;
    Some(Verdict { text, holds: quality >= 1.0, missed, workload: floor.workload })
}

/// Every floor that can be judged by these results.
pub fn verdicts(results: &Results) -> Vec<Verdict> {
    FLOORS.iter().filter_map(|floor| judge(floor, results)).collect()
}

/// The floors missed by more than noise, a line each.
pub fn missed(results: &Results) -> Vec<String> {
    let verdicts = verdicts(results).into_iter().filter(|verdict| verdict.missed);
    verdicts.map(|verdict| format!("{} {}", verdict.workload, verdict.text)).collect()
}
