//! A Rust static library of somebody else, to be linked into one program with ours (report 76).

use std::collections::BTreeMap;
use std::thread;

/// Uses threads, the allocator and a panic, all of which both archives bring along.
#[unsafe(no_mangle)]
pub extern "C" fn other_sum(count: u64) -> u64 {
    let caught = std::panic::catch_unwind(|| assert!(count == u64::MAX, "not really"));
    let map: BTreeMap<u64, u64> = (0..count).map(|n| (n, n)).collect();
    let sum = thread::spawn(move || map.values().sum::<u64>()).join().unwrap_or(0);
    if caught.is_err() { sum } else { 0 }
}
