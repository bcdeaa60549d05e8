//! Long scripts from a seed, that keep the window within bounds while thousands of messages pass.

use lanekeeper::process_queue::Mode;

use super::ops::{Batch, Delivery, Gaps, Op, Pick, SplitMix};

/// `len` operations; about `window` messages are outstanding most of the time.
pub fn script(mode: Mode, seed: u64, len: usize, window: u64) -> Vec<Op> {
    let mut random = SplitMix(seed);
    let mut ops = match mode {
        Mode::Orderly => vec![Op::Begin],
        Mode::Concurrent => vec![Op::NewConsumer; 3],
    };
    // Put and finished roughly; what is requeued or refused makes no difference in the long run.
    let mut outstanding = 0i64;
    while ops.len() < len {
        let sink = random.below(2) == 0;
        if outstanding < random.below(2 * window) as i64 {
            let batch = batch(&mut random);
            outstanding += i64::from(batch.len);
            ops.push(Op::Put { batch, sink });
        }
        ops.push(Op::Tick { ms: random.below(20) as i16 });
        let n = 1 + random.below(100) as u16;
        let who = random.below(3) as u8;
        ops.push(Op::Take { who, n });
        match mode {
            Mode::Orderly => orderly(&mut random, &mut ops, n, sink),
            Mode::Concurrent => concurrent(&mut random, &mut ops, who, n, sink),
        }
        outstanding = (outstanding - i64::from(n)).max(0);
    }
    ops
}

fn batch(random: &mut SplitMix) -> Batch {
    let gaps = match random.below(8) {
        0..4 => Gaps::Stride(1),
        4 => Gaps::Stride(97),
        5 => Gaps::Jitter(5),
        6 => Gaps::Jitter(1 << 20),
        _ => Gaps::Cliff(1 << (16 + random.below(17))),
    };
    let len = match random.below(4) {
        0 => 1,
        1 => 32,
        _ => 1 + random.below(130) as u16,
    };
    let odd = random.below(16) == 0;
    Batch {
        start: if odd { -20 } else { random.below(3) as i64 },
        len,
        gaps,
        shuffle: if odd { random.next() } else { 0 },
        copy_every: if odd { 7 } else { 0 },
        size: random.below(10_000) as u32,
        attempts: 0,
        broker_ahead: None,
    }
}

fn orderly(random: &mut SplitMix, ops: &mut Vec<Op>, n: u16, sink: bool) {
    match random.below(12) {
        0 => ops.push(Op::Rollback { sink }),
        1 => ops.extend([Op::End { sink }, Op::Begin]),
        2 => ops.push(Op::Requeue { who: 0, picks: picks(random, n, 10), plus: 1, sink }),
        3 => ops.push(Op::Complete { who: 0, picks: picks(random, n, 10), sink }),
        4 => {}
        _ => ops.push(Op::Commit { sink }),
    }
}

fn concurrent(random: &mut SplitMix, ops: &mut Vec<Op>, who: u8, n: u16, sink: bool) {
    let other = random.below(3) as u8;
    match random.below(12) {
        0 => ops.push(Op::Requeue { who, picks: picks(random, n, 10), plus: 1, sink }),
        1 => ops.push(Op::GiveBack { who, picks: picks(random, n, 10), sink }),
        2 => ops.extend([Op::DropConsumer { who, sink }, Op::NewConsumer]),
        3 => ops.push(Op::Claim { who: other, pick: picks(random, n, 1)[0] }),
        4 => {
            let (sent, delay_ms) = (random.below(2) == 0, random.below(60) as i16);
            ops.push(Op::Settle { nth: other, sent, delay_ms, sink });
        }
        5 => ops.push(Op::Expired { limit_ms: 30, max: 40 }),
        _ => {}
    }
    ops.push(Op::Complete { who: other, picks: picks(random, n, u64::from(n)), sink });
}

/// Some of the lowest `n`, with now and then one from further up or beyond.
fn picks(random: &mut SplitMix, n: u16, most: u64) -> Vec<Pick> {
    (0..1 + random.below(most))
        .map(|_| {
            let far = random.below(10) == 0;
            let delivery = match random.below(8) {
                0 => Delivery::Current,
                1 => Delivery::Older,
                _ => Delivery::Any,
            };
            let nth = random.below(if far { 3_000 } else { u64::from(n) }) as u32;
            Pick { nth, stray: random.below(50) == 0, delivery }
        })
        .collect()
}
