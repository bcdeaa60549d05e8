//! Plays the expiry sweeps and the calls on an interrupted thread.

use lanekeeper::process_queue::{Mode, Target};
use serde_json::Value;

use crate::data::{Body, Call, Ret, call, int, ret, row};
use crate::departures::{Departure, Tally};
use crate::player::Played;

/// Most messages upstream's sweep looks at in one go.
const SWEEP_MAX: usize = 16;
/// Delay level of a first send-back.
const FIRST_DELAY_LEVEL: i64 = 3;

/// What is left of a queue after a sweep.
#[derive(Debug, PartialEq, Eq)]
struct Swept {
    /// Offset, delay level, and whether the send-back went well.
    sent: Vec<(i64, i64, bool)>,
    left: Vec<i64>,
    count: i64,
    bytes: i64,
}

/// Plays one line of kind `clean` through `expired`, `claim` and `settle`.
pub fn play_clean<P: Played>(line: &Value, tally: &mut Tally) {
    let mode = if line["orderly"] == true { Mode::Orderly } else { Mode::Concurrent };
    let now_ms = int(&line["now"]);
    let starts: Vec<(i64, Option<&str>)> = line["msgs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| (int(&m[0]), m[1].as_str().filter(|start| !start.is_empty())))
        .collect();
    let mut player = P::open(mode);
    begin_consuming(&mut player, &starts);
    let fail_at: Vec<i64> = line["fail_at"].as_array().unwrap().iter().map(int).collect();
    let limit_ms = int(&line["timeout_min"]) * 60_000;
    let named = player.expired(now_ms, limit_ms, SWEEP_MAX);
    let mut sent = Vec::new();
    for (i, message) in named.iter().enumerate() {
        let ok = !fail_at.contains(&(i as i64));
        let target = Target { offset: message.offset, delivery: message.delivery };
        player.claim_and_settle(target, ok, now_ms).unwrap();
        sent.push((message.offset, FIRST_DELAY_LEVEL, ok));
    }
    let (before, snapshot) = (starts.iter().map(|(offset, _)| *offset), player.snapshot());
    let finished = |offset: &i64| sent.iter().any(|(o, _, ok)| o == offset && *ok);
    let swept = Swept {
        left: before.filter(|offset| !finished(offset)).collect(),
        sent,
        count: snapshot.count as i64,
        bytes: snapshot.bytes as i64,
    };
    assert_eq!(snapshot.count, swept.left.len() as u64, "what is left is outstanding");
    classify(line, &starts, &swept, tally);
}

/// Puts all at time 0 and takes each at its start time; what never started is ready.
fn begin_consuming<P: Played>(player: &mut P, starts: &[(i64, Option<&str>)]) {
    let batch: Vec<Body> = starts.iter().map(|(offset, _)| (*offset, 10)).collect();
    player.put(&batch, 0, None).unwrap();
    let start_ms = |start: Option<&str>| start.and_then(|text| text.parse::<i64>().ok());
    for (offset, start) in starts {
        let taken = player.take(1, start_ms(*start).unwrap_or(0)).unwrap();
        assert_eq!(taken, [(*offset, 10)]);
    }
    let unstarted: Vec<i64> = starts
        .iter()
        .filter(|(_, start)| start_ms(*start).is_none())
        .map(|(offset, _)| *offset)
        .collect();
    player.requeue(&unstarted).unwrap();
}

fn classify(line: &Value, starts: &[(i64, Option<&str>)], swept: &Swept, tally: &mut Tally) {
    let sent = line["sent"].as_array().unwrap();
    let golden = Swept {
        sent: sent.iter().map(|s| (int(&s[0]), int(&s[1]), s[2] == true)).collect(),
        left: line["left"].as_array().unwrap().iter().map(int).collect(),
        count: int(&line["msg_count"]),
        bytes: int(&line["msg_size"]),
    };
    if int(&line["last_consume"]) != 0 {
        // The sweep's removals moved it; here only `take` does, long before.
        tally.note(Departure::LastConsumeIsRemoval);
    }
    if *swept == golden {
        tally.agreed += 1;
        return;
    }
    let malformed =
        starts.iter().any(|(_, start)| start.is_some_and(|s| s.parse::<i64>().is_err()));
    let retried = golden.sent.iter().any(|(_, _, ok)| !ok) || swept.sent.iter().any(|s| !s.2);
    let beyond_the_head = swept.sent.len() > golden.sent.iter().filter(|s| s.2).count();
    let cause = match () {
        () if malformed => Departure::MalformedStartTime,
        () if retried && !beyond_the_head => Departure::SendBackTriedAgain,
        () if beyond_the_head && !retried => {
            assert!(swept.sent.starts_with(&golden.sent), "{line}\nswept {swept:?}");
            Departure::ExpiryStopsAtTheHead
        }
        () if beyond_the_head => {
            tally.note(Departure::SendBackTriedAgain);
            Departure::ExpiryStopsAtTheHead
        }
        () => panic!("{line}\nswept {swept:?}"),
    };
    tally.note(cause);
}

/// Plays one call that was recorded on an interrupted thread.
pub fn play_interrupted<P: Played>(line: &Value, tally: &mut Tally) {
    let mut player = P::open(Mode::Orderly);
    player.put(&[(0, 10), (1, 20), (2, 30)], 0, None).unwrap();
    player.take(1, 0).unwrap();
    assert_eq!(player.row(Mode::Orderly), row(&line["before"]));
    let text = line["op"].as_str().unwrap();
    let (name, arg) = text.split_once(' ').unwrap_or((text, "null"));
    let answer = match name {
        // Upstream's bean of the state; here the snapshot, which was just read.
        "info" => Ret::Null,
        _ => answer(&mut player, &call(name, &serde_json::from_str(arg).unwrap())),
    };
    if answer == ret(&line["ret"]) && player.row(Mode::Orderly) == row(&line["after"]) {
        tally.agreed += 1;
    } else {
        tally.note(Departure::Interrupted);
    }
}

fn answer<P: Played>(player: &mut P, call: &Call) -> Ret {
    let offsets = |messages: &[Body]| messages.iter().map(|m| m.0).collect::<Vec<i64>>();
    match call {
        Call::Put { batch, .. } => {
            Ret::Int(i64::from(player.put(batch, 0, None).unwrap().schedule))
        }
        Call::Take(n) => Ret::Messages(player.take(*n as usize, 0).unwrap()),
        Call::Commit => {
            player.commit().unwrap();
            Ret::Null
        }
        Call::Rollback => {
            player.rollback().unwrap();
            Ret::Null
        }
        Call::Again(messages) => {
            player.requeue(&offsets(messages)).unwrap();
            Ret::Null
        }
        Call::Remove(messages) => {
            Ret::Int(player.complete(&offsets(messages)).unwrap().safe_offset)
        }
        Call::Clear => {
            *player = P::open(Mode::Orderly);
            Ret::Null
        }
        Call::Span => Ret::Int(player.span()),
        Call::Has => Ret::Int(i64::from(player.has_ready())),
        Call::Contains(offset) => Ret::Int(i64::from(player.contains(offset.unwrap()))),
    }
}
