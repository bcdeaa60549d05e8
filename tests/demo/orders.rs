//! Ordered consumption of a real event log, from the file to the verdict.
//!
//! Reads events from CSV, sends them by key to the queues of an embedded broker, and consumes them
//! in order with a pool of worker threads through `ProcessQueue`, while batches fail and queues are
//! taken away and given back. In the end it says whether any key was out of order or any event
//! lost.
//!
//! Exit status: 0 all in order and nothing lost, 1 otherwise, 2 for input or options it cannot use.

mod client;
mod fault;
mod input;
mod ledger;
mod pool;
mod random;
mod report;
mod sample;
mod worker;

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use lanekeeper::broker::{Broker, Topic};

use client::{Client, GROUP, Mailboxes, Settings};
use fault::{Fault, Plan};
use input::{Input, InputError};
use ledger::Ledger;
use report::{QueueLine, Report};

/// Consumes the events of a CSV file in order, key by key, while batches fail and queues move
#[derive(Parser)]
#[command(name = "orders", max_term_width = 100)]
struct Options {
    /// CSV file with a header, plain or gzipped; a bundled sample of 2,000 orders if left out
    #[arg(value_name = "FILE", requires = "key")]
    file: Option<PathBuf>,
    /// Column whose value decides which events must stay in order [for the sample: order_id]
    #[arg(long, value_name = "COLUMN")]
    key: Option<String>,
    /// Column with ascending numbers per key to check against; else the position in the file is
    #[arg(long, value_name = "COLUMN")]
    seq: Option<String>,
    /// Queues of the topic
    #[arg(long, value_name = "N", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4096))]
    queues: u32,
    /// Worker threads
    #[arg(long, value_name = "N", default_value_t = 4)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=256))]
    workers: u32,
    /// Messages per batch
    #[arg(long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    batch: u32,
    /// Probability that a batch fails and is suspended or rolled back
    #[arg(long, value_name = "P", default_value_t = 0.02, value_parser = probability)]
    fail_rate: f64,
    /// Milliseconds until a failed batch is tried again
    #[arg(long, value_name = "MS", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=5000))]
    suspend_ms: u64,
    /// How often half of the queues is closed and opened again
    #[arg(long, value_name = "N", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=100_000))]
    rebalances: u64,
    /// Seed of everything random [default: 1; of --make-sample: that of the bundled sample]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Print the result as a line of JSON, last
    #[arg(long)]
    json: bool,
    /// Write the bundled sample anew to this file, and do nothing else
    #[arg(long, value_name = "OUT")]
    make_sample: Option<PathBuf>,
    #[arg(long, hide = true)]
    fault: Option<Fault>,
    #[arg(long, hide = true, default_value_t = 30_000)]
    stall_ms: u64,
}

impl Options {
    fn settings(&self) -> Settings {
        Settings {
            consume_batch: self.batch as usize,
            fail_rate: self.fail_rate,
            suspend: Duration::from_millis(self.suspend_ms),
            rebalances: self.rebalances,
            seed: self.seed.unwrap_or(1),
        }
    }

    /// Name of the source, key column, sequence column.
    fn columns(&self) -> (String, &str, Option<&str>) {
        let source = self.file.as_ref().map(|path| path.display().to_string());
        match &self.key {
            Some(key) => (source.unwrap_or_else(sample_name), key.as_str(), self.seq.as_deref()),
            None => {
                let seq = self.seq.as_deref().unwrap_or(sample::SAMPLE_SEQ);
                (sample_name(), sample::SAMPLE_KEY, Some(seq))
            }
        }
    }

    fn read_input(&self) -> Result<Input, InputError> {
        let (source, key, seq) = self.columns();
        match &self.file {
            Some(path) => Input::from_file(path, key, seq),
            None => Input::from_bytes(&source, sample::SAMPLE.to_vec(), key, seq),
        }
    }
}

fn sample_name() -> String {
    "the bundled sample".to_owned()
}

fn probability(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err("a probability is a number from 0 to 1".to_owned()),
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(path) = &options.make_sample {
        let seed = options.seed.unwrap_or(sample::SAMPLE_SEED);
        return match sample::write_file(path, seed) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => usage_failure(&format!(
                "{}: cannot be written: {error}. Give the path of a file that can be",
                path.display()
            )),
        };
    }
    let input = match options.read_input() {
        Ok(input) => input,
        Err(error) => return usage_failure(&error.to_string()),
    };
    match run(&options, &input) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("orders: {error}");
            ExitCode::from(1)
        }
    }
}

fn usage_failure(message: &str) -> ExitCode {
    eprintln!("orders: {message}");
    ExitCode::from(2)
}

/// Sends, consumes, reports; whether all was in order and nothing lost.
fn run(options: &Options, input: &Input) -> Result<bool, Box<dyn Error>> {
    let broker = Broker::new();
    let topic = broker.create_topic("orders", options.queues)?;
    let ledger = Ledger::new(input, options.queues as usize);
    let plan = Plan::new(options.fault);
    let events = input.events.len() as u64;
    let (client, mailboxes) = Client::new(&topic, events, options.settings(), &ledger, &plan)?;
    let Mailboxes { requests, outcome } = mailboxes;
    let started = Instant::now();
    let (mut ended, mut seconds) = (Ok(()), 0.0);
    thread::scope(|scope| {
        scope.spawn(|| client.watch(|| send(input, &topic, &client)));
        // The receiver moves in: it can be owned by one thread only.
        let client = &client;
        scope.spawn(move || client.watch(|| client.pull_loop(&requests)));
        for _ in 0..options.workers {
            scope.spawn(|| client.watch(|| client.work_loop()));
        }
        ended = wait(&outcome, &ledger, events, Duration::from_millis(options.stall_ms));
        seconds = started.elapsed().as_secs_f64();
        client.stop();
        broker.shut_down();
    });
    let (source, _, seq) = options.columns();
    let report = Report {
        source: &source,
        seq,
        findings: ledger.findings(),
        counters: &client.counters,
        queues: queue_lines(&topic, &client)?,
        seconds,
    };
    print(&report, options.json)?;
    ended?;
    explain(&report);
    Ok(report.is_clean())
}

/// The producer: every event by its key, in the order of the file.
fn send(input: &Input, topic: &Topic, client: &Client<'_>) -> Result<(), Box<dyn Error>> {
    for (position, event) in input.events.iter().enumerate() {
        topic.append(&input.keys[event.key], client.ledger.body(position))?;
    }
    client.all_sent()
}

/// Shows progress until the run is over, a thread gave up, or nothing moves any more.
fn wait(
    outcome: &Receiver<Result<(), String>>,
    ledger: &Ledger<'_>,
    events: u64,
    stall: Duration,
) -> Result<(), String> {
    const LOOK: Duration = Duration::from_millis(100);
    let bar = ProgressBar::new(events);
    let style = ProgressStyle::with_template("{wide_bar} {human_pos} of {human_len} events{msg}");
    bar.set_style(style.expect("the template is well-formed"));
    let (mut last, mut moved) = ((0, 0), Instant::now());
    let ended = loop {
        match outcome.recv_timeout(LOOK) {
            Ok(ended) => break ended,
            Err(RecvTimeoutError::Disconnected) => break Err("every thread has ended".to_owned()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let deliveries = ledger.deliveries();
        bar.set_position(deliveries.0);
        let per_second = deliveries.0 as f64 / bar.elapsed().as_secs_f64();
        bar.set_message(format!(", {per_second:.0}/s, {} redelivered", deliveries.1));
        if deliveries != last {
            (last, moved) = (deliveries, Instant::now());
        } else if moved.elapsed() > stall {
            break Err(format!("nothing was delivered for {stall:?}, and not all is consumed"));
        }
    };
    bar.finish_and_clear();
    ended
}

fn queue_lines(topic: &Topic, client: &Client<'_>) -> Result<Vec<QueueLine>, Box<dyn Error>> {
    let line = |queue_id| {
        Ok(QueueLine {
            queue_id,
            end_offset: topic.max_offset(queue_id)?,
            committed_offset: topic.committed_offset(GROUP, queue_id)?.unwrap_or(0),
            generations: client.current(queue_id).queue.generation(),
        })
    };
    (0..topic.queue_count()).map(line).collect()
}

fn print(report: &Report<'_>, with_json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let printed = report
        .write_tables(&mut out)
        .and_then(|()| if with_json { report.write_json(&mut out) } else { Ok(()) });
    match printed.and_then(|()| out.flush()) {
        // The reader of a pipe that went away, head for example, wanted no more.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Says on stderr what a verdict other than a clean one means.
fn explain(report: &Report<'_>) {
    let found = &report.findings;
    if let Some(line) = found.first_disorder_line {
        let by = report.seq.map_or("the position in the file".to_owned(), |column| {
            format!("column {column:?} (is it ascending for each key in the file itself?)")
        });
        eprintln!("orders: out of order first at line {line}, judged by {by}");
    }
    if found.lost > 0 {
        eprintln!("orders: {} events were never delivered", found.lost);
    }
}
