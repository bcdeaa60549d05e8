//! What a run ends with: a table for people, one line of JSON for programs.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use comfy_table::{Cell, CellAlignment, Table, presets};
use serde_json::{Value, json};

use crate::client::Counters;
use crate::ledger::Findings;

/// A queue as the run left it.
#[derive(Clone, Copy, Debug)]
pub struct QueueLine {
    pub queue_id: u32,
    /// Messages sent to it.
    pub end_offset: i64,
    /// What the broker has stored for the group.
    pub committed_offset: i64,
    /// How often it was assigned.
    pub generations: u64,
}

impl QueueLine {
    pub fn is_consumed(&self) -> bool {
        self.committed_offset == self.end_offset
    }
}

pub struct Report<'r> {
    pub source: &'r str,
    /// The column whose values decide what is in order, if any.
    pub seq: Option<&'r str>,
    pub findings: Findings,
    pub counters: &'r Counters,
    pub queues: Vec<QueueLine>,
    pub seconds: f64,
}

impl Report<'_> {
    /// Nothing lost, nothing out of order, everything consumed.
    pub fn is_clean(&self) -> bool {
        self.findings.is_clean() && self.queues.iter().all(QueueLine::is_consumed)
    }

    fn events_per_second(&self) -> f64 {
        self.findings.delivered as f64 / self.seconds.max(1e-9)
    }

    pub fn write_tables(&self, out: &mut impl Write) -> io::Result<()> {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed).to_string();
        let found = &self.findings;
        let order = match self.seq {
            Some(column) => format!("out of order (by column {column})"),
            None => "out of order (by position)".to_owned(),
        };
        let rows = [
            ("input", self.source.to_owned()),
            ("events", found.events.to_string()),
            ("keys", found.keys.to_string()),
            ("seconds", format!("{:.3}", self.seconds)),
            ("throughput, events/s", format!("{:.0}", self.events_per_second())),
            ("delivered, distinct", found.delivered.to_string()),
            ("redeliveries", found.redelivered.to_string()),
            ("batches", count(&self.counters.batches)),
            ("batches failed", count(&self.counters.failed_batches)),
            ("rebalances", count(&self.counters.rebalances)),
            ("pauses by flow control", count(&self.counters.pauses)),
            (&order, found.out_of_order.to_string()),
            ("lost", found.lost.to_string()),
            ("foreign deliveries", found.foreign.to_string()),
            ("offsets stored early", found.stored_early.to_string()),
        ];
        let mut summary = plain_table();
        for (name, value) in rows {
            summary.add_row([Cell::new(name), right(value)]);
        }
        let mut queues = plain_table();
        queues.set_header(["queue", "end offset", "committed", "generations", ""]);
        for line in &self.queues {
            queues.add_row([
                right(line.queue_id.to_string()),
                right(line.end_offset.to_string()),
                right(line.committed_offset.to_string()),
                right(line.generations.to_string()),
                Cell::new(if line.is_consumed() { "" } else { "not consumed to its end" }),
            ]);
        }
        writeln!(out, "{summary}\n{queues}")
    }

    pub fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let found = &self.findings;
        let queue = |line: &QueueLine| {
            json!({
                "queue": line.queue_id,
                "end": line.end_offset,
                "committed": line.committed_offset,
                "generations": line.generations,
            })
        };
        let queues: Vec<Value> = self.queues.iter().map(queue).collect();
        let line = json!({
            "events": found.events,
            "keys": found.keys,
            "delivered": found.delivered,
            "redelivered": found.redelivered,
            "out_of_order": found.out_of_order,
            "lost": found.lost,
            "foreign": found.foreign,
            "stored_early": found.stored_early,
            "seconds": self.seconds,
            "events_per_second": self.events_per_second(),
            "batches": count(&self.counters.batches),
            "failed_batches": count(&self.counters.failed_batches),
            "rebalances": count(&self.counters.rebalances),
            "queues": queues,
        });
        writeln!(out, "{line}")
    }
}

fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED);
    table
}

fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}
