//! Seeds: each decides a script and, with one scheduler or the other, a schedule.

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, FailurePersistence, Runner};

fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

/// The configuration of every run; `steps` in one execution are too many.
pub fn config(steps: usize) -> Config {
    let mut config = Config::new();
    config.stack_size = 1 << 18;
    config.failure_persistence = FailurePersistence::None;
    config.max_steps = shuttle::MaxSteps::FailAfter(steps);
    config.silence_warnings = true;
    config
}

/// Says on the way out of a panic how to come back to it.
struct Replay {
    name: &'static str,
    seed: u64,
    scheduler: &'static str,
}

impl Drop for Replay {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { name, seed, scheduler } = self;
            eprintln!("{name} failed under the {scheduler} scheduler: LK_SHUTTLE_SEED={seed}");
        }
    }
}

/// Runs `body` for many seeds under both schedulers.
pub fn explore(name: &'static str, seeds: u64, body: impl Fn(u64) + Copy + Send + Sync + 'static) {
    let (first, count) = match setting("LK_SHUTTLE_SEED") {
        Some(seed) => (seed, 1),
        None => (0, setting("LK_SHUTTLE_SEEDS").unwrap_or(seeds)),
    };
    println!("{name}: seeds {first}..{} under random and PCT", first + count);
    for seed in first..first + count {
        run(name, seed, body);
    }
}

fn run(name: &'static str, seed: u64, body: impl Fn(u64) + Copy + Send + Sync + 'static) {
    let steps = 200_000;
    let replay = Replay { name, seed, scheduler: "random" };
    let random = RandomScheduler::new_from_seed(seed, 1);
    Runner::new(random, config(steps)).run(move || body(seed));
    drop(replay);
    let _replay = Replay { name, seed, scheduler: "PCT" };
    let pct = PctScheduler::new_from_seed(seed, 2 + (seed % 3) as usize, 1);
    Runner::new(pct, config(steps)).run(move || body(seed));
}
