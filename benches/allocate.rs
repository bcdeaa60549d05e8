//! How long it takes to divide queues among clients; beside a plain hash ring, which is rebuilt and
//! scanned for each share, as upstream's class does. Adds its rows to `target/compare.json`.
//!
//! ```text
//! cargo bench --bench allocate               all strategies, 100,000 queues and 1,000
//! cargo bench --bench allocate -- --check    the hash ring only; exits 1 if a floor is missed
//! ```

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::Parser;
use lanekeeper::allocate::{
    Allocation, BoundedLoad, ConsistentHash, Members, Nearby, Owners, RingHash, Route, Strategy,
};
use lanekeeper::message_queue::MessageQueue;
use serde_json::{Value, json};

/// Runs of each measurement; the fastest counts, since noise only ever adds.
const RUNS: usize = 15;
const PLAIN: &str = "plain-ring";
const RING: &str = "CONSISTENT_HASH";

/// Measures allocation.
#[derive(Parser)]
#[command(name = "allocate")]
struct Options {
    /// Measure only what has a floor; exit with status 1 if one is missed.
    #[arg(long)]
    check: bool,
    /// What cargo passes to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

struct Size {
    name: &'static str,
    queues: usize,
    clients: usize,
}

const SIZES: [Size; 2] = [
    Size { name: "100k", queues: 100_000, clients: 1_000 },
    Size { name: "1k", queues: 1_000, clients: 100 },
];

/// One line of the results, and of `compare.json`.
struct Row {
    workload: String,
    name: &'static str,
    ns_min: f64,
    ns_median: f64,
}

/// `run` is told the number of the run.
fn measure(workload: String, name: &'static str, mut run: impl FnMut(usize)) -> Row {
    run(RUNS);
    let mut ns: Vec<f64> = (0..RUNS)
        .map(|number| {
            let start = Instant::now();
            run(number);
            start.elapsed().as_secs_f64() * 1e9
        })
        .collect();
    ns.sort_by(f64::total_cmp);
    Row { workload, name, ns_min: ns[0], ns_median: ns[RUNS / 2] }
}

fn queues(count: usize) -> Vec<MessageQueue> {
    let topic: Arc<str> = "order-events".into();
    let brokers = count.div_ceil(16);
    let names: Vec<Arc<str>> =
        (0..brokers).map(|at| format!("room{}@broker-{at}", at % 4).into()).collect();
    let queue = |at: usize| {
        let id = i32::try_from(at % 16).expect("below 16");
        MessageQueue::new(Arc::clone(&topic), Arc::clone(&names[at / 16]), id)
    };
    (0..count).map(|at| queue(at).expect("ids are not negative")).collect()
}

fn clients(count: usize) -> Vec<Arc<str>> {
    let id = |at: usize| format!("172.17.{}.{}@{}#{}", at / 250, at % 250, at * 7 + 1, at * 7919);
    (0..count).map(|at| id(at).into()).collect()
}

fn room_of(name: &str) -> Option<String> {
    Some(name.split_once('@')?.0.to_owned())
}

fn members(clients: &[Arc<str>]) -> Arc<Members> {
    let room = |client: &str| Some(format!("room{}", client.len() % 3));
    let members = Members::with_rooms(clients.iter().cloned(), room);
    Arc::new(members.expect("not too many"))
}

fn strategies() -> Vec<(&'static str, Strategy)> {
    let ring = ConsistentHash::default;
    let nearby = |inner| Strategy::MachineRoomNearby(Nearby::new(inner).expect("it may be inner"));
    vec![
        (RING, Strategy::ConsistentHash(ring())),
        ("AVG", Strategy::Average),
        ("AVG_BY_CIRCLE", Strategy::AverageByCircle),
        ("CONFIG", Strategy::Config(queues(100).into())),
        ("MACHINE_ROOM", Strategy::machine_room(["room1"])),
        ("NEARBY-AVG", nearby(Strategy::Average)),
        ("NEARBY-CONSISTENT_HASH", nearby(Strategy::ConsistentHash(ring()))),
        ("STICKY", Strategy::Sticky(Arc::new(Owners::default()))),
        ("BOUNDED_LOAD", Strategy::BoundedLoad(BoundedLoad::new(ring(), 125).expect("125 %"))),
    ]
}

/// What a client does that keeps nothing: points of all clients into a tree, then the hash and the
/// owner of every queue.
fn plain(route: &Route, members: &Members, client: &str) -> Vec<u32> {
    let hash = RingHash::Md5;
    let mut ring = BTreeMap::new();
    for id in members.clients() {
        for point in 0..10 {
            ring.insert(hash.hash(&format!("{id}-{point}")), id);
        }
    }
    let mut share = Vec::new();
    for (index, queue) in route.queues().iter().enumerate() {
        let key = hash.hash(&queue.to_string());
        let owner = ring.range(key..).next().or_else(|| ring.first_key_value());
        if owner.is_some_and(|(_, id)| ***id == *client) {
            share.push(u32::try_from(index).expect("below 2^32"));
        }
    }
    share
}

/// A1: one share of a known allocation. A2: the members have changed, the route has not; then one
/// share. A3: the whole group. A4: a route
/// made of an unsorted list, then one share.
fn measure_size(size: &Size, only_ring: bool, rows: &mut Vec<Row>) {
    let all = clients(size.clients);
    let route = Route::with_rooms(queues(size.queues), |queue| room_of(queue.broker_name()));
    let route = Arc::new(route.expect("not too many"));
    let (members, fewer) = (members(&all), self::members(&all[1..]));
    // Another one each time, so that none finds its own part in the caches.
    let client = |run: usize| &*all[1 + run * 61 % (all.len() - 1)];
    let workload = |name: &str| format!("{name}-{}", size.name);
    for (name, strategy) in strategies().into_iter().filter(|(name, _)| !only_ring || *name == RING)
    {
        let make = |strategy: &Strategy, route: &Arc<Route>| {
            let (route, fewer) = (Arc::clone(route), Arc::clone(&fewer));
            Allocation::new(strategy.clone(), route, fewer).expect("it fits")
        };
        let before = make(&strategy, &route);
        let strategy = match strategy {
            // As it is used: with the owners of before.
            Strategy::Sticky(_) => {
                Strategy::Sticky(Arc::new(before.shares().expect("shares").owners()))
            }
            other => other,
        };
        let before = make(&strategy, &route);
        let after = before.with_members(Arc::clone(&members)).expect("it fits");
        rows.push(measure(workload("A1"), name, |run| {
            black_box(after.share(client(run)).expect("a member"));
        }));
        rows.push(measure(workload("A2"), name, |run| {
            let members = self::members(black_box(&all));
            let after = before.with_members(members).expect("it fits");
            black_box(after.share(client(run)).expect("a member"));
        }));
        rows.push(measure(workload("A3"), name, |_| {
            black_box(after.shares().expect("shares"));
        }));
        let list = queues(size.queues);
        rows.push(measure(workload("A4"), name, |run| {
            let route = match strategy {
                Strategy::MachineRoomNearby(_) => {
                    Route::with_rooms(list.clone(), |queue| room_of(queue.broker_name()))
                }
                _ => Route::new(list.clone()),
            };
            let after = make(&strategy, &route.expect("not too many").into());
            black_box(after.share(client(run)).expect("a member"));
        }));
    }
    let expected = Allocation::new(strategies().swap_remove(0).1, Arc::clone(&route), members);
    let expected = expected.expect("it fits");
    let share = expected.share(client(0)).expect("a member");
    assert_eq!(plain(&route, expected.members(), client(0)), share.indexes());
    rows.push(measure(workload("A1"), PLAIN, |run| {
        black_box(plain(&route, expected.members(), client(run)));
    }));
}

fn find<'r>(rows: &'r [Row], workload: &str, name: &str) -> &'r Row {
    let row = rows.iter().find(|row| row.workload == workload && row.name == name);
    row.expect("it was measured")
}

/// Each floor: what was reached of the plain ring's time, and what it may be.
fn floors(rows: &[Row]) -> [(&'static str, f64, f64); 3] {
    let plain = find(rows, "A1-100k", PLAIN).ns_min;
    let reached = |workload| find(rows, workload, RING).ns_min / plain;
    [
        ("A1-100k, one share", reached("A1-100k"), 1.0 / 300.0),
        ("A2-100k, one share after a change of members", reached("A2-100k"), 1.0 / 5.0),
        ("A3-100k, the whole group", reached("A3-100k"), 1.5),
    ]
}

/// Replaces the rows of this program in `target/compare.json`.
fn save(rows: &[Row]) -> Result<PathBuf, String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target").join("compare.json");
    let known = std::fs::read_to_string(&path).unwrap_or_else(|_| "[]".to_owned());
    let known: Vec<Value> = serde_json::from_str(&known).map_err(|error| error.to_string())?;
    let ours = |line: &&Value| line["workload"].as_str().is_some_and(|name| name.starts_with('A'));
    let mut lines: Vec<Value> = known.iter().filter(|line| !ours(line)).cloned().collect();
    lines.extend(rows.iter().map(|row| {
        let (min, median) = (row.ns_min.round(), row.ns_median.round());
        json!({"workload": row.workload, "impl": row.name, "ns_min": min, "ns_median": median})
    }));
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let write = || {
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(&path, format!("[\n  {}\n]\n", lines.join(",\n  ")))
    };
    write().map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

fn main() -> ExitCode {
    let options = Options::parse();
    let mut rows = Vec::new();
    for size in SIZES.iter().filter(|size| !options.check || size.name == "100k") {
        measure_size(size, options.check, &mut rows);
    }
    for row in &rows {
        let (min, median) = (row.ns_min / 1e3, row.ns_median / 1e3);
        println!(
            "{:<8} {:<24} min {min:>10.1} us  median {median:>10.1} us",
            row.workload, row.name
        );
    }
    let mut missed = false;
    for (what, reached, most) in floors(&rows) {
        let verdict = if reached <= most { "ok" } else { "MISSED" };
        println!(
            "{what}: 1/{:.0} of a plain ring, floor 1/{:.2}: {verdict}",
            1.0 / reached,
            1.0 / most
        );
        missed |= reached > most;
    }
    if !options.check {
        match save(&rows) {
            Ok(path) => println!("results: {}", path.display()),
            Err(message) => {
                eprintln!("allocate: {message}");
                return ExitCode::from(2);
            }
        }
    }
    if options.check && missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
