//! The consuming client: who owns which queue, the pull loop, rebalances and hand-over.
//!
//! One thread pulls for all queues, as upstream's `PullMessageService`; workers run the turns (see
//! `worker.rs`). A queue is at any time owned through one [`Assignment`], a generation of it. A
//! rebalance closes assignments, at any moment and from any thread; whoever is told that the
//! hand-over is due stores the final safe offset and opens the next generation from there.

use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lanekeeper::broker::{HeldPull, PullStatus, StoredMessage, Topic};
use lanekeeper::process_queue::{Config, Incoming, ProcessQueue, PutError, Refusal};

use crate::fault::{Fault, Plan};
use crate::ledger::Ledger;
use crate::pool::RunQueue;
use crate::random::Random;

pub const GROUP: &str = "orders-demo";

/// Messages asked for in one pull.
const PULL_BATCH: usize = 32;
/// Pulling a queue pauses when so many of its messages are cached or in flight ...
const COUNT_MAX: u64 = 1000;
/// ... and goes on when no more than this are left.
const COUNT_LOW: u64 = 200;

/// How to consume.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub consume_batch: usize,
    /// Probability that a batch fails.
    pub fail_rate: f64,
    /// A failed batch is tried again after this.
    pub suspend: Duration,
    /// How often queues are closed and opened again, spread evenly over the run.
    pub rebalances: u64,
    pub seed: u64,
}

/// One generation of one queue in this client's hands.
pub struct Assignment {
    pub queue_id: u32,
    pub queue: ProcessQueue<Arc<StoredMessage>>,
    /// Flow control: the pull loop of this generation rests until somebody takes this flag back.
    paused: AtomicBool,
    /// The pull that waits at the broker for the next message.
    held: Mutex<Option<HeldPull>>,
}

/// What the pull thread is asked.
pub enum Request {
    Pull { queue_id: u32, generation: u64 },
    Stop,
}

/// Counts for the report.
#[derive(Default)]
pub struct Counters {
    pub batches: AtomicU64,
    pub failed_batches: AtomicU64,
    pub rebalances: AtomicU64,
    pub pauses: AtomicU64,
    finished: AtomicU64,
}

pub struct Client<'r> {
    pub settings: Settings,
    pub ledger: &'r Ledger<'r>,
    pub plan: &'r Plan,
    pub counters: Counters,
    pub runs: RunQueue<Arc<Assignment>>,
    topic: &'r Topic,
    events: u64,
    assignments: Vec<Mutex<Arc<Assignment>>>,
    requests: Sender<Request>,
    all_sent: AtomicBool,
    outcome: Sender<Result<(), String>>,
    started: Instant,
}

/// The ends that the client's threads wait on.
pub struct Mailboxes {
    pub requests: Receiver<Request>,
    /// Told when everything sent is consumed and stored, or what made a thread give up; perhaps
    /// more than once.
    pub outcome: Receiver<Result<(), String>>,
}

impl<'r> Client<'r> {
    /// Takes over every queue of the topic.
    pub fn new(
        topic: &'r Topic,
        events: u64,
        settings: Settings,
        ledger: &'r Ledger<'r>,
        plan: &'r Plan,
    ) -> Result<(Self, Mailboxes), Box<dyn Error>> {
        let (requests, request_box) = mpsc::channel();
        let (outcome, outcome_box) = mpsc::channel();
        let mut assignments = Vec::new();
        for queue_id in 0..topic.queue_count() {
            let assignment = open(topic, queue_id, 1)?;
            requests.send(Request::Pull { queue_id, generation: 1 })?;
            assignments.push(Mutex::new(Arc::new(assignment)));
        }
        let client = Self {
            settings,
            ledger,
            plan,
            counters: Counters::default(),
            runs: RunQueue::new(),
            topic,
            events,
            assignments,
            requests,
            all_sent: AtomicBool::new(false),
            outcome,
            started: Instant::now(),
        };
        Ok((client, Mailboxes { requests: request_box, outcome: outcome_box }))
    }

    /// Time as the queues are told it.
    pub fn now_ms(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    /// The current generation of a queue.
    pub fn current(&self, queue_id: u32) -> Arc<Assignment> {
        Arc::clone(&lock(&self.assignments[queue_id as usize]))
    }

    /// Body of the pull thread; ends after [`stop`](Self::stop).
    pub fn pull_loop(&self, requests: &Receiver<Request>) -> Result<(), Box<dyn Error>> {
        while let Ok(Request::Pull { queue_id, generation }) = requests.recv() {
            let assignment = self.current(queue_id);
            // A request that outlived its generation must not start a second pull loop.
            if assignment.queue.generation() == generation {
                self.pull_once(&assignment)?;
            }
        }
        Ok(())
    }

    /// The producer is done; if everything is consumed already, that is the end.
    pub fn all_sent(&self) -> Result<(), Box<dyn Error>> {
        self.all_sent.store(true, Ordering::SeqCst);
        self.check_complete()
    }

    /// Ends the pull loop and the workers.
    pub fn stop(&self) {
        // No receiver means that the pull thread has ended already.
        _ = self.requests.send(Request::Stop);
        self.runs.close();
    }

    /// Runs the body of a thread, and passes on the error it ends with.
    pub fn watch(&self, body: impl FnOnce() -> Result<(), Box<dyn Error>>) {
        if let Err(error) = body() {
            _ = self.outcome.send(Err(error.to_string()));
        }
    }

    fn request_pull(&self, assignment: &Assignment) {
        let generation = assignment.queue.generation();
        let request = Request::Pull { queue_id: assignment.queue_id, generation };
        // No receiver means that the run is over.
        _ = self.requests.send(request);
    }

    /// One pull: flow control, broker, put, schedule; then asks for the next one.
    fn pull_once(&self, assignment: &Arc<Assignment>) -> Result<(), Box<dyn Error>> {
        let queue = &assignment.queue;
        if queue.count() >= COUNT_MAX {
            self.counters.pauses.fetch_add(1, Ordering::Relaxed);
            assignment.paused.store(true, Ordering::SeqCst);
            // Looked at again after the flag is up: the drain may have happened in between.
            self.resume_if_drained(assignment);
            return Ok(());
        }
        let (queue_id, offset) = (assignment.queue_id, queue.pull_offset());
        if self.plan.strikes(Fault::Stall) {
            return Ok(());
        }
        let pulled = self.topic.pull(queue_id, offset, PULL_BATCH)?;
        match pulled.status {
            PullStatus::Found => {
                if self.put(assignment, pulled.messages)? {
                    self.request_pull(assignment);
                }
            }
            PullStatus::NoNewMessage => {
                let (requests, generation) = (self.requests.clone(), queue.generation());
                let held = self.topic.hold_pull(queue_id, offset, move || {
                    _ = requests.send(Request::Pull { queue_id, generation });
                })?;
                *lock(&assignment.held) = Some(held);
                // Looked at again after it is there to be found: the hand-over may be over.
                if queue.is_closed() {
                    self.cancel_held(assignment);
                }
            }
            PullStatus::OffsetIllegal => {
                return Err(format!("queue {queue_id} has no offset {offset}").into());
            }
        }
        Ok(())
    }

    /// Of a generation that is over, so that the broker does not hold its pull for ever.
    fn cancel_held(&self, assignment: &Assignment) {
        if let Some(held) = lock(&assignment.held).take() {
            self.topic.cancel_pull(held);
        }
    }

    /// Puts what was pulled; false if the generation has ended meanwhile.
    fn put(
        &self,
        assignment: &Arc<Assignment>,
        messages: Vec<Arc<StoredMessage>>,
    ) -> Result<bool, Box<dyn Error>> {
        let incoming = |message: Arc<StoredMessage>| {
            Incoming::new(message.offset(), Arc::clone(&message), message.size())
        };
        let mut batch = messages.into_iter().map(incoming).collect();
        self.plan.spoil(&mut batch);
        let mut puller = assignment.queue.puller()?;
        match puller.put(&mut batch, self.now_ms(), None) {
            Ok(put) => {
                if put.schedule {
                    self.runs.submit(Arc::clone(assignment));
                }
                Ok(true)
            }
            Err(PutError::Refused(Refusal::Closed)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets a paused pull loop go on, once per pause, when enough is consumed.
    pub fn resume_if_drained(&self, assignment: &Assignment) {
        if assignment.queue.count() <= COUNT_LOW && assignment.paused.swap(false, Ordering::SeqCst)
        {
            self.request_pull(assignment);
        }
    }

    /// Stores a safe offset at the broker; sees when it was the last.
    pub fn store(&self, queue_id: u32, safe_offset: i64) -> Result<(), Box<dyn Error>> {
        self.ledger.stored(queue_id, safe_offset);
        self.topic.commit_offset(GROUP, queue_id, safe_offset)?;
        if self.all_sent.load(Ordering::SeqCst) {
            self.check_complete()?;
        }
        Ok(())
    }

    fn check_complete(&self) -> Result<(), Box<dyn Error>> {
        for queue_id in 0..self.topic.queue_count() {
            let end = self.topic.max_offset(queue_id)?;
            if self.topic.committed_offset(GROUP, queue_id)?.unwrap_or(0) != end {
                return Ok(());
            }
        }
        // No receiver means that somebody said so before.
        _ = self.outcome.send(Ok(()));
        Ok(())
    }

    /// Counts finished messages; rebalances each time another share of the run is over.
    pub fn finished(&self, count: u32) -> Result<(), Box<dyn Error>> {
        let before = self.counters.finished.fetch_add(u64::from(count), Ordering::Relaxed);
        let steps = self.settings.rebalances;
        let step = |finished: u64| {
            let share = u128::from(finished) * u128::from(steps + 1) / u128::from(self.events);
            u64::try_from(share).unwrap_or(u64::MAX).min(steps)
        };
        for number in step(before)..step(before + u64::from(count)) {
            self.rebalance(number)?;
        }
        Ok(())
    }

    /// Gives away about half of the queues, whatever is going on in them, and gets them back.
    fn rebalance(&self, number: u64) -> Result<(), Box<dyn Error>> {
        let mut random = Random::of(self.settings.seed, &[number]);
        let queue_count = u64::from(self.topic.queue_count());
        let always = random.below(queue_count);
        for queue_id in 0..self.topic.queue_count() {
            if u64::from(queue_id) != always && random.chance(0.5) {
                continue;
            }
            let assignment = self.current(queue_id);
            match assignment.queue.close(self.now_ms()) {
                Ok(closed) if closed.hand_over => self.hand_over(&assignment)?,
                // A turn is running, and its end will tell; or another rebalance was first.
                Ok(_) | Err(Refusal::Closed) => {}
                Err(refusal) => return Err(refusal.into()),
            }
        }
        self.counters.rebalances.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// The end of a generation, told to exactly one thread: store how far it came, and begin the
    /// next one with what the broker knows. What was in flight is thereby delivered again.
    pub fn hand_over(&self, assignment: &Assignment) -> Result<(), Box<dyn Error>> {
        self.cancel_held(assignment);
        let queue_id = assignment.queue_id;
        let ahead = self.plan.is(Fault::StoreAhead);
        let queue = &assignment.queue;
        self.store(queue_id, if ahead { queue.pull_offset() } else { queue.safe_offset() })?;
        let next = Arc::new(open(self.topic, queue_id, queue.generation() + 1)?);
        *lock(&self.assignments[queue_id as usize]) = Arc::clone(&next);
        self.request_pull(&next);
        Ok(())
    }
}

/// A new generation of a queue, from the offset that is stored for it.
fn open(topic: &Topic, queue_id: u32, generation: u64) -> Result<Assignment, Box<dyn Error>> {
    let start_offset = topic.committed_offset(GROUP, queue_id)?.unwrap_or(0);
    let config = Config { start_offset, generation, ..Config::default() };
    let queue = ProcessQueue::new(config)?;
    Ok(Assignment { queue_id, queue, paused: AtomicBool::new(false), held: Mutex::new(None) })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
