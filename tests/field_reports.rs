//! Faults that people reported against the clients and the building blocks of this kind, each as
//! the smallest scenario on this queue.
//!
//! A test bears the name of the public report; each stands for its whole kind. Reports about the
//! header and the exported symbols are tested from C: mozilla/cbindgen#326 (header and library
//! differ), rustls/rustls-ffi#286 (a function without its guard), libbpf/blazesym#84 (an integer
//! that is no enum value) and rust-lang/rust#104707 (symbol clashes of two static archives).
//! tokio-rs/loom#180 (what the model checker cannot show) has its litmus file beside the models.

#[path = "field_reports/allocation.rs"]
mod allocation;
#[path = "field_reports/around.rs"]
mod around;
#[path = "field_reports/blocks.rs"]
mod blocks;
#[path = "field_reports/window.rs"]
mod window;

use lanekeeper::process_queue::{Config, Consumer, Incoming, Mode, ProcessQueue, Target, Turn};

type Queue = ProcessQueue<u64>;

fn queue(mode: Mode) -> Queue {
    ProcessQueue::new(Config { mode, ..Config::default() }).unwrap()
}

fn put(queue: &Queue, messages: &[(i64, u32)]) {
    let mut batch: Vec<Incoming<u64>> =
        messages.iter().map(|(offset, size)| Incoming::new(*offset, 0, *size)).collect();
    let put = queue.puller().unwrap().put(&mut batch, 0, None).unwrap();
    assert_eq!(put.accepted as usize, messages.len());
}

fn taken(turn: &mut Turn<'_, u64>, n: usize) -> Vec<i64> {
    turn.take(n, 0).unwrap().map(|message| message.offset).collect()
}

/// Expiry as a host does it: `expired`, then per message `claim`, the send-back, `settle`.
fn expire(consumer: &mut Consumer<'_, u64>, now_ms: i64, mut send_back: impl FnMut(i64) -> bool) {
    let mut named = Vec::new();
    consumer.queue().expired(now_ms, 0, usize::MAX, &mut named);
    for message in named {
        let target = Target { offset: message.offset, delivery: message.delivery };
        if let Ok(claim) = consumer.claim(target, now_ms).unwrap() {
            let sent = send_back(message.offset);
            claim.settle(sent, now_ms, now_ms).unwrap();
        }
    }
}
