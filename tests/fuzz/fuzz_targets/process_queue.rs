//! Operation sequences on the queue and on its twin, chosen by the fuzzer.
//!
//! The same comparison as in `tests/property.rs`, with the fuzzer's view of which branches of the
//! queue a sequence reaches, and with AddressSanitizer watching.

#![no_main]

#[path = "../../twin/mod.rs"]
mod twin;

use arbitrary::{Arbitrary, Result, Unstructured};
use lanekeeper::process_queue::{Config, Mode};
use libfuzzer_sys::fuzz_target;
use twin::driver::run;
use twin::ops::{Batch, Delivery, Gaps, Op, Pick, Script};

/// Operations in one sequence at most; beyond, the twin makes it slow.
const OPS_MAX: usize = 400;

#[derive(Debug)]
struct Case {
    config: Config,
    script: Script,
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let mode = if u.arbitrary()? { Mode::Orderly } else { Mode::Concurrent };
        let config = Config {
            mode,
            start_offset: *u.choose(&[0, 1, 1 << 40, i64::MAX - 100_000])?,
            outstanding_max: *u.choose(&[1, 70, 1 << 20])?,
            consumers_max: u.int_in_range(1..=4)?,
            generation: 7,
            hand_over_ms: 500,
        };
        let mut ops = Vec::new();
        while !u.is_empty() && ops.len() < OPS_MAX {
            ops.push(op(u, mode)?);
        }
        Ok(Self { config, script: Script(ops) })
    }
}

fn op(u: &mut Unstructured<'_>, mode: Mode) -> Result<Op> {
    Ok(match u.int_in_range(0..=19)? {
        0..=4 => Op::Put { batch: batch(u)?, sink: u.arbitrary()? },
        5 => Op::Advance { by: *u.choose(&[0, 1, 7, -1, 1 << 33])? },
        6 => Op::Tick { ms: *u.choose(&[1, 10, 100, -10])? },
        7 => match u.int_in_range(0..=31)? {
            0 => Op::Stop,
            1 => Op::Close { sink: u.arbitrary()? },
            2 => Op::Puller,
            _ => Op::Expired { limit_ms: u.int_in_range(0..=50)?, max: u.arbitrary()? },
        },
        8..=11 => Op::Take { who: u.arbitrary()?, n: count(u)? },
        12..=13 => Op::Complete { who: u.arbitrary()?, picks: picks(u)?, sink: u.arbitrary()? },
        14 => Op::Requeue {
            who: u.arbitrary()?,
            picks: picks(u)?,
            plus: u.int_in_range(0..=2)?,
            sink: u.arbitrary()?,
        },
        _ if mode == Mode::Orderly => orderly(u)?,
        _ => concurrent(u)?,
    })
}

fn orderly(u: &mut Unstructured<'_>) -> Result<Op> {
    Ok(match u.int_in_range(0..=9)? {
        0..=2 => Op::Begin,
        3..=5 => Op::Commit { sink: u.arbitrary()? },
        6 => Op::Rollback { sink: u.arbitrary()? },
        7 => Op::End { sink: u.arbitrary()? },
        8 => Op::InFlight,
        _ => u.choose(&[Op::DropTurn, Op::SuspendTurn, Op::NewConsumer])?.clone(),
    })
}

fn concurrent(u: &mut Unstructured<'_>) -> Result<Op> {
    Ok(match u.int_in_range(0..=9)? {
        0..=1 => Op::NewConsumer,
        2..=3 => Op::Claim { who: u.arbitrary()?, pick: pick(u)? },
        4..=5 => Op::Settle {
            nth: u.arbitrary()?,
            sent: u.arbitrary()?,
            delay_ms: *u.choose(&[0, 5, 50, -5])?,
            sink: u.arbitrary()?,
        },
        6 => Op::GiveBack { who: u.arbitrary()?, picks: picks(u)?, sink: u.arbitrary()? },
        7 => Op::DropConsumer { who: u.arbitrary()?, sink: u.arbitrary()? },
        8 => Op::SuspendConsumer { who: u.arbitrary()? },
        _ => match u.arbitrary()? {
            true => Op::DropClaim { nth: u.arbitrary()? },
            false => Op::SuspendClaim { nth: u.arbitrary()? },
        },
    })
}

fn batch(u: &mut Unstructured<'_>) -> Result<Batch> {
    let gaps = match u.int_in_range(0..=3)? {
        0..=1 => Gaps::Stride(*u.choose(&[1, 1, 3, 1 << 16, (1 << 32) + 1])?),
        2 => Gaps::Jitter(*u.choose(&[2, 4, 97, 1 << 20])?),
        _ => Gaps::Cliff((1 << u.int_in_range(10..=47)?) + 1),
    };
    Ok(Batch {
        start: *u.choose(&[0, 0, 0, 1, -1, -9, 1 << 20, i64::MIN / 2])?,
        len: u.int_in_range(0..=150)?,
        gaps,
        shuffle: if u.ratio(1, 4)? { u.arbitrary()? } else { 0 },
        copy_every: *u.choose(&[0, 0, 0, 1, 3])?,
        size: *u.choose(&[0, 1, 1000, u32::MAX - 200])?,
        attempts: *u.choose(&[0, 1, 254, 300])?,
        broker_ahead: u.arbitrary()?,
    })
}

fn pick(u: &mut Unstructured<'_>) -> Result<Pick> {
    let delivery = [Delivery::Any, Delivery::Current, Delivery::Older, Delivery::Newer];
    Ok(Pick {
        nth: u32::from(u.arbitrary::<u8>()?),
        stray: u.ratio(1, 8)?,
        delivery: *u.choose(&delivery)?,
    })
}

fn picks(u: &mut Unstructured<'_>) -> Result<Vec<Pick>> {
    (0..u.int_in_range(0..=12)?).map(|_| pick(u)).collect()
}

fn count(u: &mut Unstructured<'_>) -> Result<u16> {
    let most = *u.choose(&[1, 1, 64, 300])?;
    u.int_in_range(0..=most)
}

fuzz_target!(|case: Case| run(case.config, &case.script.0));
