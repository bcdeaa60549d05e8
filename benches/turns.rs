//! Compares turns and leases of many queues with what else one would take: a concurrent map of
//! mutexes, and a mutex around a hash map. Writes its rows into `target/compare.json`, beside those
//! of `compare`.
//!
//! ```text
//! cargo bench --bench turns                all rows, some seconds
//! cargo bench --bench turns -- --check     exits 1 if a floor is missed by more than noise
//! ```
//!
//! | row | what one operation is |
//! |---|---|
//! | L1 | a turn begun and ended, on each of 1,000 queues in turn, one thread |
//! | L2 | the same by two threads, which share the queues out |
//! | L2-shared | the same by two threads, each over all 1,000 queues, half a round apart |
//! | R1 | a lease renewed, on each of 1,000 queues in turn, one thread |
//! | R2 | the same by two threads, a client each, which share the queues out |
//!
//! Every row shows ns for one operation of the whole: two threads that do not disturb each other
//! halve it. The rivals take the same interned ids as keys.

use std::collections::HashMap;
use std::hint::black_box;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use dashmap::DashMap;
use lanekeeper::intern::{Id, Interner};
use lanekeeper::lease::LeaseTable;
use lanekeeper::process_queue::TurnEnd;
use lanekeeper::queue_lock::QueueLockTable;
use parking_lot::Mutex;
use serde_json::{Value, json};

const QUEUES: usize = 1_000;
const OURS: &str = "lanekeeper";
const MAP_OF_MUTEXES: &str = "dashmap-mutex";
const MUTEX_OF_MAP: &str = "mutex-hashmap";
/// As in `compare`: ratios of medians of one run move by this part on a shared machine.
const NOISE: f64 = 0.15;

#[derive(Parser)]
struct Options {
    /// Runs of each after the warm-up.
    #[arg(long, default_value_t = 7)]
    runs: usize,
    /// Length of a run in ms.
    #[arg(long, default_value_t = 60)]
    run_ms: u64,
    /// Exit with status 1 if a floor is missed by more than noise.
    #[arg(long)]
    check: bool,
    /// What cargo passes to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

/// One thread's part of the work: `rounds` over its queues, from its place on.
type Work<'w> = &'w (dyn Fn(usize, u64) + Sync);

/// Runs `work` on so many threads at once, and answers the time until the last has ended.
fn timed(threads: usize, rounds: u64, work: Work<'_>) -> Duration {
    let barrier = Barrier::new(threads);
    let run = |index: usize| {
        barrier.wait();
        let started = Instant::now();
        work(index, rounds);
        started.elapsed()
    };
    if threads == 1 {
        return run(0);
    }
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    thread::scope(|scope| {
        let spawn = |index: usize| {
            let (run, core) = (&run, cores.get(index % cores.len().max(1)).copied());
            scope.spawn(move || {
                core.map(core_affinity::set_for_current);
                run(index)
            })
        };
        let threads: Vec<_> = (0..threads).map(spawn).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).max().unwrap_or_default()
    })
}

struct Subject<'w> {
    name: &'static str,
    work: Work<'w>,
    rounds: u64,
    ns: Vec<f64>,
}

/// One row: the subjects take turns, so that a noisy moment hits them alike.
fn measure(
    row: &'static str,
    threads: usize,
    each: usize,
    options: &Options,
    subjects: [(&'static str, Work<'_>); 2],
) -> Vec<Value> {
    let mut subjects = subjects.map(|(name, work)| Subject { name, work, rounds: 64, ns: vec![] });
    for subject in &mut subjects {
        let warm = timed(threads, 64, subject.work).min(timed(threads, 64, subject.work));
        let wanted = options.run_ms as f64 / 1e3 / (warm.as_secs_f64() / 64.0).max(1e-9);
        subject.rounds = (wanted as u64).clamp(16, 1 << 24);
    }
    for _ in 0..options.runs.max(1) {
        for subject in &mut subjects {
            let elapsed = timed(threads, subject.rounds, subject.work);
            let operations = subject.rounds as f64 * each as f64 * threads as f64;
            subject.ns.push(elapsed.as_secs_f64() * 1e9 / operations);
        }
    }
    let rounded = |ns: f64| (ns * 100.0).round() / 100.0;
    let line = |subject: Subject<'_>| {
        let mut ns = subject.ns;
        ns.sort_by(f64::total_cmp);
        let (min, median) = (rounded(ns[0]), rounded(ns[ns.len() / 2]));
        println!("{row:<9} {:<14} {median:>8.2} ns   min {min:>8.2}", subject.name);
        json!({"workload": row, "impl": subject.name, "ns_min": min, "ns_median": median})
    };
    subjects.map(line).into()
}

fn turns(options: &Options) -> Vec<Value> {
    let ids = Arc::new(Interner::<u64>::new());
    let queues: Vec<Id> = (0..QUEUES as u64).map(|key| ids.intern(&key).unwrap()).collect();
    let table = QueueLockTable::new(ids);
    let map: DashMap<Id, Arc<Mutex<u64>>> = DashMap::new();
    for &queue in &queues {
        table.open(queue, None, 1).unwrap();
        map.insert(queue, Arc::new(Mutex::new(0)));
    }
    let mut lines = Vec::new();
    for (row, threads, each) in [("L1", 1, QUEUES), ("L2", 2, QUEUES / 2), ("L2-shared", 2, QUEUES)]
    {
        let around = |thread: usize| {
            let (late, early) = queues.split_at(thread * QUEUES / 2);
            early.iter().chain(late).take(each)
        };
        let ours = |thread: usize, rounds: u64| {
            for _ in 0..rounds {
                for &queue in around(thread) {
                    // Turned away is an answer too: the other thread's end will tell.
                    if let Ok(turn) = table.begin(queue, None) {
                        black_box(turn.end() == TurnEnd::RunAgain);
                    }
                }
            }
        };
        let rival = |thread: usize, rounds: u64| {
            for _ in 0..rounds {
                for queue in around(thread) {
                    // As upstream: fetch the lock object, then synchronize on it.
                    let lock = map.get(queue).map(|entry| Arc::clone(entry.value())).unwrap();
                    *black_box(lock.lock()) += 1;
                }
            }
        };
        let subjects: [(&str, Work<'_>); 2] = [(OURS, &ours), (MAP_OF_MUTEXES, &rival)];
        lines.extend(measure(row, threads, each, options, subjects));
    }
    lines
}

fn renewals(options: &Options) -> Vec<Value> {
    struct Entry {
        client: Id,
        last_ms: i64,
    }
    let ids = Arc::new(Interner::<u64>::new());
    let queues: Vec<Id> = (0..QUEUES as u64).map(|key| ids.intern(&key).unwrap()).collect();
    let table = LeaseTable::new(ids, 0);
    let group = table.group("group").unwrap();
    let clients = ["a", "b"].map(|name| table.client(name).unwrap());
    let mut lines = Vec::new();
    for (row, threads) in [("R1", 1), ("R2", 2)] {
        let each = QUEUES / threads;
        let map: Mutex<HashMap<(Id, Id), Entry>> = Mutex::new(HashMap::new());
        for (index, &queue) in queues.iter().enumerate() {
            let client = clients[index / each];
            for other in clients {
                let _ = table.release(group, queue, other);
            }
            table.acquire(group, queue, client, 0).unwrap();
            map.lock().insert((group, queue), Entry { client, last_ms: 0 });
        }
        let ours = |thread: usize, rounds: u64| {
            let member = table.member(group, clients[thread]).unwrap();
            for round in 0..rounds {
                for &queue in &queues[thread * each..][..each] {
                    let now_ms = (round % 60_000).cast_signed();
                    let lease = member.acquire(queue, now_ms);
                    assert!(black_box(lease.is_ok_and(|lease| lease.renewed)), "this client's");
                }
            }
        };
        let rival = |thread: usize, rounds: u64| {
            for round in 0..rounds {
                for &queue in &queues[thread * each..][..each] {
                    let now_ms = (round % 60_000).cast_signed();
                    let mut map = map.lock();
                    let entry = map.get_mut(&(group, queue)).unwrap();
                    let given = entry.client == clients[thread] || now_ms - entry.last_ms > 60_000;
                    if given {
                        *entry = Entry { client: clients[thread], last_ms: now_ms };
                    }
                    assert!(black_box(given), "it is this client's");
                }
            }
        };
        let subjects: [(&str, Work<'_>); 2] = [(OURS, &ours), (MUTEX_OF_MAP, &rival)];
        lines.extend(measure(row, threads, each, options, subjects));
    }
    lines
}

/// Row, and how many times our time the rival needs at least.
const FLOORS: [(&str, f64); 4] = [("L1", 3.0), ("L2", 6.0), ("R1", 2.0), ("R2", 5.0)];

/// Judges and prints the floors; whether none is missed by more than noise.
fn floors(lines: &[Value]) -> bool {
    let mut all = true;
    for (row, times) in FLOORS {
        let mut of_row = lines.iter().filter(|line| line["workload"] == row);
        let mut median = || of_row.next().and_then(|line| line["ns_median"].as_f64());
        let (Some(ours), Some(rival)) = (median(), median()) else { continue };
        let reached = rival / ours;
        let verdict = match reached / times {
            1.0.. => "ok",
            part if part >= 1.0 - NOISE => "within noise",
            _ => {
                all = false;
                "MISSED"
            }
        };
        println!("{row}: rival >= {times}x: {reached:.2} {verdict}");
    }
    all
}

/// Puts the lines into `target/compare.json`, in place of older ones of the same rows.
fn save(lines: Vec<Value>) -> Result<PathBuf, String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target").join("compare.json");
    let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut all: Vec<Value> = match std::fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str(&text).map_err(|error| fail(&error))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(fail(&error)),
    };
    all.retain(|old| lines.iter().all(|new| new["workload"] != old["workload"]));
    all.extend(lines);
    let text: Vec<String> = all.iter().map(Value::to_string).collect();
    path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(|error| fail(&error))?;
    std::fs::write(&path, format!("[\n  {}\n]\n", text.join(",\n  "))).map_err(|e| fail(&e))?;
    Ok(path)
}

fn main() -> ExitCode {
    let options = Options::parse();
    let mut lines = turns(&options);
    lines.extend(renewals(&options));
    let reached = floors(&lines);
    match save(lines) {
        Ok(path) => println!("results: {}", path.display()),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    if options.check && !reached { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
