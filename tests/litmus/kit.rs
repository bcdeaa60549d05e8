//! Runs a model and collects what it did.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

/// Every answer `program` can give, over all executions loom explores.
pub fn outcomes<T: Ord + Send + 'static>(
    program: impl Fn() -> T + Send + Sync + 'static,
) -> BTreeSet<T> {
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let sink = Arc::clone(&seen);
    loom::model(move || {
        let outcome = program();
        sink.lock().unwrap().insert(outcome);
    });
    std::mem::take(&mut *seen.lock().unwrap())
}

/// Why loom rejects `program`, or nothing if every execution passes.
///
/// The program shares through std's `Arc`: loom's own cannot be dropped once the execution is
/// over, and the closures of threads that had not started when it failed are dropped then.
pub fn rejection(program: impl Fn() + Send + Sync + 'static) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(|| loom::model(program))).err()?;
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
    Some(text.unwrap_or_default())
}
