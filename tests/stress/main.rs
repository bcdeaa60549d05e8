//! Real threads, no test harness: for ThreadSanitizer, AddressSanitizer with LeakSanitizer, and as
//! it is.
//!
//! ```text
//! cargo test --test stress                     LK_STRESS_SECONDS=2 is the default per part
//!
//! RUSTC_BOOTSTRAP=1 \
//!     RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer --cfg lk_tsan" \
//!     CARGO_TARGET_DIR=target/tsan cargo test --target x86_64-unknown-linux-gnu --test stress
//!
//! RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address" \
//!     CARGO_TARGET_DIR=target/asan cargo test --target x86_64-unknown-linux-gnu --test stress
//! ```
//!
//! ThreadSanitizer knows no fences, so under `lk_tsan` the facade's fences are visible
//! read-modify-writes; the standard test harness itself would be reported, hence a `main` of our
//! own. The sanitizer finds data races that the run comes by, not orderings that the machine hides:
//! those are for the models.

#[cfg(not(any(lk_loom, lk_shuttle)))]
mod churn;
#[cfg(not(any(lk_loom, lk_shuttle)))]
mod parked;
#[cfg(not(any(lk_loom, lk_shuttle)))]
#[path = "../lin/kit/payload.rs"]
#[allow(dead_code)]
mod payload;
#[cfg(not(any(lk_loom, lk_shuttle)))]
mod roles;
#[cfg(not(any(lk_loom, lk_shuttle)))]
mod swaps;
mod tables;

#[cfg(not(any(lk_loom, lk_shuttle)))]
fn main() {
    type Test = (&'static str, fn());
    const TESTS: &[Test] = &[
        ("orderly_roles", roles::orderly),
        ("concurrent_roles", roles::concurrent),
        ("closed_in_the_middle", roles::closed_in_the_middle),
        ("a_parked_listener_stops_nobody", parked::listener),
        ("a_parked_release_stops_nobody", parked::release),
        ("churn_leaves_nothing_behind", churn::nothing_left),
        ("churn_beside_readers", churn::beside_readers),
        ("allocations_swapped_beside_readers", swaps::allocations),
        ("turns_come_and_go", tables::turns_come_and_go),
        ("leases_come_and_go", tables::leases_come_and_go),
    ];
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        if !arguments.iter().any(|argument| argument == "--ignored") {
            TESTS.iter().for_each(|(name, _)| println!("{name}: test"));
        }
        return;
    }
    let filter = arguments.iter().find(|argument| !argument.starts_with('-'));
    let started = std::time::Instant::now();
    let mut passed = 0;
    for (name, run) in TESTS {
        if filter.is_none_or(|filter| name.contains(filter.as_str())) {
            // A panic ends the process with a status of its own; nothing is caught.
            run();
            println!("test {name} ... ok");
            passed += 1;
        }
    }
    let (left, seconds) = (TESTS.len() - passed, started.elapsed().as_secs_f64());
    println!(
        "\ntest result: ok. {passed} passed; 0 failed; 0 ignored; 0 measured; \
         {left} filtered out; finished in {seconds:.2}s\n"
    );
}

#[cfg(any(lk_loom, lk_shuttle))]
fn main() {}

/// How long each part runs.
#[cfg(not(any(lk_loom, lk_shuttle)))]
fn duration() -> std::time::Duration {
    let seconds = std::env::var("LK_STRESS_SECONDS").ok();
    let seconds = seconds.map_or(2.0, |text| text.parse().expect("a number of seconds"));
    std::time::Duration::from_secs_f64(seconds)
}
