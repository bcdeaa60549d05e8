//! Payloads that tell on the queue: released twice, read after release, never released, or handed
//! from thread to thread without a happens-before edge (the last only under loom).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Counts every payload made and released. Standard atomics on purpose: no model checker sees them,
/// so they add neither orderings nor interleavings to what is being checked.
#[derive(Default)]
pub struct Ledger {
    made: AtomicU64,
    released: AtomicU64,
    faults: Mutex<Vec<String>>,
}

impl Ledger {
    pub fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// A payload for the message at `offset`.
    pub fn token(self: &Arc<Self>, offset: i64) -> Token {
        self.made.fetch_add(1, Ordering::Relaxed);
        Token {
            offset,
            ledger: Arc::clone(self),
            alive: AtomicU64::new(ALIVE),
            witness: Witness::new(),
        }
    }

    /// Made and not yet released.
    pub fn live(&self) -> u64 {
        self.made.load(Ordering::Relaxed) - self.released.load(Ordering::Relaxed)
    }

    /// Panics if a payload was released twice or read after its release.
    pub fn check_faults(&self) {
        let faults = self.faults.lock().unwrap();
        assert!(faults.is_empty(), "payload faults: {faults:?}");
    }

    /// To be called once the queue is gone: conservation, in = out.
    pub fn check_settled(&self) {
        self.check_faults();
        assert_eq!(self.live(), 0, "payloads never released");
    }

    fn fault(&self, what: String) {
        self.faults.lock().unwrap().push(what);
    }
}

const ALIVE: u64 = 0x0070_1d5e_a11a_11fe;
const GONE: u64 = 0x0dea_dbee_fdea_dbee;

/// A payload that knows its offset.
pub struct Token {
    offset: i64,
    ledger: Arc<Ledger>,
    alive: AtomicU64,
    witness: Witness,
}

impl Token {
    /// Reads the payload as a listener would; `offset` is where the queue says it lives.
    pub fn touch(&self, offset: i64) {
        self.witness.read();
        if self.alive.load(Ordering::Relaxed) != ALIVE {
            self.ledger.fault(format!("payload of {} read after its release", self.offset));
        }
        if self.offset != offset {
            self.ledger.fault(format!("payload of {} handed out as {offset}", self.offset));
        }
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        self.witness.write();
        if self.alive.swap(GONE, Ordering::Relaxed) != ALIVE {
            self.ledger.fault(format!("payload of {} released twice", self.offset));
        }
        self.ledger.released.fetch_add(1, Ordering::Relaxed);
    }
}

/// Under loom a tracked cell: reading it and releasing it must be ordered by the queue. The
/// standard mutex around it is never contended (loom runs one thread at a time and does not switch
/// inside), it is there because loom's cell is not `Sync`.
#[cfg(lk_loom)]
struct Witness(Mutex<loom::cell::UnsafeCell<()>>);

#[cfg(lk_loom)]
impl Witness {
    fn new() -> Self {
        Self(Mutex::new(loom::cell::UnsafeCell::new(())))
    }

    fn read(&self) {
        self.0.lock().unwrap().with(|_| ());
    }

    fn write(&self) {
        self.0.lock().unwrap().with_mut(|_| ());
    }
}

#[cfg(not(lk_loom))]
struct Witness;

#[cfg(not(lk_loom))]
impl Witness {
    fn new() -> Self {
        Self
    }

    fn read(&self) {}

    fn write(&self) {}
}
