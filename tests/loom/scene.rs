//! The stage of a model: one queue, telling payloads, a recorded history, and the checks at the
//! end.

use std::sync::{Arc, Weak};

use lanekeeper::process_queue::{Config, Mode, ProcessQueue};
use loom::thread::JoinHandle;

use crate::kit::bounds;
use crate::kit::checker::{self, Order};
use crate::kit::history::{Journal, Log};
use crate::kit::payload::Ledger;
use crate::kit::record::Queue;
use crate::kit::spec::Spec;

/// Size in bytes of message `offset` in all models: tells messages apart in `bytes`.
pub fn sized(offset: i64) -> (i64, u32) {
    (offset, 10 + offset as u32)
}

/// One execution of a model.
pub struct Scene {
    pub queue: Arc<Queue>,
    pub ledger: Arc<Ledger>,
    /// Thread 0: sets up before the others run, looks around after they have ended.
    pub log: Log,
    journal: Arc<Journal>,
    start: Spec,
}

impl Scene {
    pub fn orderly() -> Self {
        Self::new(Mode::Orderly)
    }

    pub fn concurrent() -> Self {
        Self::new(Mode::Concurrent)
    }

    fn new(mode: Mode) -> Self {
        let config = Config { mode, consumers_max: 2, outstanding_max: 64, ..Config::default() };
        let journal = Journal::new();
        Self {
            queue: Arc::new(ProcessQueue::new(config).expect("a valid configuration")),
            ledger: Ledger::new(),
            log: journal.log(0),
            journal,
            start: Spec::new(mode, 0),
        }
    }

    /// Makes these offsets ready before the threads run.
    pub fn ready(&mut self, offsets: &[i64]) {
        let queue = Arc::clone(&self.queue);
        let mut puller = queue.puller().expect("nobody else pulls");
        let messages: Vec<_> = offsets.iter().map(|&offset| sized(offset)).collect();
        self.log.put(&mut puller, &self.ledger, &messages).expect("room for the messages");
    }

    /// A log for what the main thread does beside the others.
    pub fn beside(&self) -> Log {
        self.journal.log(1)
    }

    /// Another thread of the model.
    pub fn spawn(
        &self,
        thread: usize,
        script: impl FnOnce(&mut Log, &Queue, &Arc<Ledger>) + 'static,
    ) -> JoinHandle<()> {
        let (queue, ledger) = (Arc::clone(&self.queue), Arc::clone(&self.ledger));
        let mut log = self.journal.log(thread);
        loom::thread::spawn(move || script(&mut log, &queue, &ledger))
    }

    /// Joins the others, looks at everything, and asks whether some sequential order explains it
    /// all. All turns, consumers and claims must have ended.
    pub fn finish(self, others: impl IntoIterator<Item = JoinHandle<()>>) -> Rest {
        for other in others {
            other.join().expect("a thread of the model");
        }
        let Self { queue, ledger, mut log, journal, start } = self;
        log.everything(&queue);
        drop(log);
        assert_eq!(queue.payloads_live(), ledger.live(), "payloads held");
        if queue.is_closed() {
            assert_eq!(ledger.live(), 0, "closed, and nothing is lent any more");
        } else {
            assert_eq!(queue.count(), ledger.live(), "in = out + held");
        }
        let events = journal.take_events();
        if let Err(why) = checker::check(&start, &events, Order::Program) {
            panic!("{why}");
        }
        if let Err(why) = bounds::check(&events, Order::Program) {
            panic!("{why}");
        }
        Rest { queue: Arc::downgrade(&queue), ledger }
    }
}

/// What is left when the model's own references are gone: nothing may be alive.
#[must_use]
pub struct Rest {
    queue: Weak<Queue>,
    ledger: Arc<Ledger>,
}

impl Rest {
    /// Of a model without a queue.
    pub fn nothing() -> Self {
        Self { queue: Weak::new(), ledger: Ledger::new() }
    }

    pub fn check(self) {
        assert!(self.queue.upgrade().is_none(), "the queue is still referred to");
        self.ledger.check_settled();
    }
}
