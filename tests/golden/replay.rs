//! Plays a recorded line and finds the name of every difference.

use std::collections::BTreeSet;

use lanekeeper::process_queue::{Committed, Mode, PutError, Refusal};

use crate::data::{
    Body, COLUMN_BYTES, COLUMN_FLAG, COLUMN_HIGHEST, COLUMN_LAG, Call, Ret, Row, Step,
};
use crate::departures::{Departure, Tally};
use crate::player::Played;

/// The answer of a call in the words of the recording, and what may explain a difference.
struct Played1 {
    ret: Ret,
    /// Explains any difference of the answer.
    ret_cause: Option<Departure>,
    /// Explains a difference of the state, but only in these columns.
    row_causes: Vec<(Departure, &'static [usize])>,
}

const ALL: &[usize] = &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

impl Played1 {
    fn of(ret: Ret) -> Self {
        Self { ret, ret_cause: None, row_causes: Vec::new() }
    }

    fn because(mut self, cause: Option<Departure>) -> Self {
        self.ret_cause = cause;
        self
    }

    fn row(mut self, applies: bool, cause: Departure, columns: &'static [usize]) -> Self {
        if applies {
            self.row_causes.push((cause, columns));
        }
        self
    }
}

/// Columns that differ since an earlier, named departure, until they agree again.
#[derive(Default)]
struct Lasting {
    columns: Vec<(usize, Departure)>,
}

impl Lasting {
    fn cause(&self, column: usize) -> Option<Departure> {
        self.columns.iter().find(|(c, _)| *c == column).map(|(_, cause)| *cause)
    }
}

struct Line<'t, P> {
    mode: Mode,
    player: P,
    put: BTreeSet<i64>,
    lasting: Lasting,
    tally: &'t mut Tally,
}

/// Plays one line. `lenient`: the file misuses the class, so that the whole state may diverge.
pub fn play<P: Played>(mode: Mode, steps: &[Step], lenient: bool, tally: &mut Tally) {
    let mut line = Line {
        mode,
        player: P::open(mode),
        put: BTreeSet::new(),
        lasting: Lasting::default(),
        tally,
    };
    let mut diverged = false;
    for (i, step) in steps.iter().enumerate() {
        let played = line.call(&step.call, &step.ret);
        if diverged {
            line.player.row(mode);
            line.tally.twin_only += 1;
            continue;
        }
        let context = |what: &str| format!("step {i}, {:?}: {what}", step.call);
        let agreed = line.compare_ret(step, &played).map_err(|e| context(&e)).unwrap();
        let (same_row, ends) = line.compare_row(step, &played).map_err(|e| context(&e)).unwrap();
        if agreed && same_row {
            line.tally.agreed += 1;
        }
        assert!(lenient || !ends, "{}", context("the state diverged"));
        diverged = ends;
    }
}

impl<P: Played> Line<'_, P> {
    fn call(&mut self, call: &Call, golden: &Ret) -> Played1 {
        match call {
            Call::Put { batch, max_offset } => self.put(batch, max_offset.as_deref()),
            Call::Take(n) => self.take(*n, golden),
            Call::Commit => self.commit(golden),
            Call::Rollback => {
                if self.mode == Mode::Orderly {
                    self.player.rollback().unwrap();
                }
                Played1::of(Ret::Null)
            }
            Call::Again(messages) => {
                let answer = self.player.requeue(&offsets(messages)).unwrap();
                let foreign = answer.unknown > 0;
                Played1::of(Ret::Null).row(foreign, Departure::AgainOfTheUnknown, ALL)
            }
            Call::Remove(messages) => self.remove(messages, golden),
            Call::Clear => {
                self.player = P::open(self.mode);
                self.put.clear();
                let columns = &[COLUMN_FLAG, COLUMN_LAG];
                Played1::of(Ret::Null).row(true, Departure::ClearIsANewGeneration, columns)
            }
            Call::Span => Played1::of(Ret::Int(self.player.span())).because(Some(Departure::Span)),
            Call::Has => Played1::of(Ret::Int(i64::from(self.player.has_ready()))),
            Call::Contains(offset) => {
                let has = offset.is_some_and(|offset| self.player.contains(offset));
                Played1::of(Ret::Int(i64::from(has)))
            }
        }
    }

    fn put(&mut self, batch: &[Body], max_offset: Option<&str>) -> Played1 {
        let parsed = max_offset.map(str::parse::<i64>);
        // As upstream the property counts only where there is a message to carry it.
        let malformed = !batch.is_empty() && matches!(parsed, Some(Err(_)));
        let before = self.player.snapshot();
        match self.player.put(batch, 0, parsed.and_then(Result::ok)) {
            Ok(put) => {
                self.put.extend(batch.iter().map(|(offset, _)| *offset));
                let last = batch.last().map_or(before.highest_put, |(offset, _)| *offset);
                let highest = self.player.snapshot().highest_put;
                let below = last < highest;
                let dispatch = match self.mode {
                    Mode::Orderly => put.schedule,
                    Mode::Concurrent => before.highest_put < 0 && highest >= 0,
                };
                let cause = match () {
                    () if malformed => Some(Departure::MalformedMaxOffset),
                    () if put.duplicate > 0 => Some(Departure::Duplicate),
                    () if put.stale > 0 => Some(Departure::Stale),
                    () => None,
                };
                Played1::of(Ret::Int(i64::from(dispatch)))
                    .because(cause)
                    .row(below, Departure::HighestIsTheLast, &[COLUMN_HIGHEST])
                    .row(put.duplicate > 0, Departure::Duplicate, ALL)
                    .row(put.stale > 0, Departure::Stale, ALL)
            }
            Err(PutError::InvalidOffset { .. }) => Played1::of(Ret::Null)
                .because(Some(Departure::OffsetOutOfRange))
                .row(true, Departure::OffsetOutOfRange, ALL),
            Err(error) => panic!("put: {error}"),
        }
    }

    fn take(&mut self, n: i64, golden: &Ret) -> Played1 {
        let Ok(n) = usize::try_from(n) else {
            return Played1::of(Ret::Null).because(Some(Departure::TakeOfLessThanNone));
        };
        let taken = match self.player.take(n, 0) {
            Ok(taken) => taken,
            Err(Refusal::Empty) => Vec::new(),
            Err(refusal) => panic!("take: {refusal}"),
        };
        let same_offsets = match golden {
            Ret::Messages(messages) => offsets(messages) == offsets(&taken),
            _ => false,
        };
        Played1::of(Ret::Messages(taken))
            .because(same_offsets.then_some(Departure::SizeOfTheArgument))
            .row(n == 0, Departure::TakeOfNone, &[COLUMN_FLAG])
    }

    fn commit(&mut self, golden: &Ret) -> Played1 {
        match self.player.commit().unwrap() {
            Committed::Nothing => Played1::of(Ret::Null).because(Some(Departure::NothingToCommit)),
            Committed::Finished { safe_offset, .. } => {
                let cause = match golden {
                    Ret::Int(golden) if *golden < safe_offset => {
                        let between = self.put.range(golden..&safe_offset).next().is_some();
                        Some(match between {
                            true => Departure::CommitAroundAPutBack,
                            false => Departure::CommitOverAGap,
                        })
                    }
                    Ret::Int(golden) if *golden > safe_offset => {
                        let lower_ready = self.player.snapshot().cached_min == safe_offset;
                        lower_ready.then_some(Departure::CommitAroundAPutBack)
                    }
                    _ => None,
                };
                Played1::of(Ret::Int(safe_offset)).because(cause).row(
                    true,
                    Departure::SizeOfTheArgument,
                    &[COLUMN_BYTES],
                )
            }
        }
    }

    fn remove(&mut self, messages: &[Body], golden: &Ret) -> Played1 {
        let before = self.player.snapshot();
        let ready = messages.iter().any(|(offset, _)| self.player.contains(*offset));
        let answer = self.player.complete(&offsets(messages)).unwrap();
        let orderly = self.mode == Mode::Orderly;
        let cause = if *golden == Ret::Int(-1) && before.cached_count == 0 {
            Some(Departure::RemoveFromNothing)
        } else if orderly {
            // Upstream's answer leaves what is in flight out of account, ours what is ready in.
            Some(Departure::RemoveOfTheReady)
        } else {
            self.lasting.cause(COLUMN_HIGHEST)
        };
        let in_flight = answer.finished > 0;
        Played1::of(Ret::Int(answer.safe_offset))
            .because(cause)
            .row(!orderly, Departure::SizeOfTheArgument, &[COLUMN_BYTES])
            .row(orderly && (ready || in_flight), Departure::RemoveOfTheReady, ALL)
    }

    /// Did the answer agree? An error is a difference without a name.
    fn compare_ret(&mut self, step: &Step, played: &Played1) -> Result<bool, String> {
        if step.ret == played.ret {
            return Ok(true);
        }
        let lasting = match step.call {
            // What `put` answers is whether it raised the flag.
            Call::Put { .. } => self.lasting.cause(COLUMN_FLAG),
            _ => None,
        };
        let cause = lasting
            .or(played.ret_cause)
            .ok_or_else(|| format!("answered {:?}, recorded {:?}", played.ret, step.ret))?;
        self.tally.note(cause);
        Ok(false)
    }

    /// Did the state agree, and if not, is the line to be given up for the twin?
    fn compare_row(&mut self, step: &Step, played: &Played1) -> Result<(bool, bool), String> {
        let Some(golden) = step.row else {
            return Ok((true, false));
        };
        let row = self.player.row(self.mode);
        let differing: Vec<usize> = (0..row.len()).filter(|c| row[*c] != golden[*c]).collect();
        self.lasting.columns.retain(|(column, _)| differing.contains(column));
        let fresh: Vec<usize> =
            differing.iter().copied().filter(|c| self.lasting.cause(*c).is_none()).collect();
        if fresh.is_empty() {
            let lasting = differing.first().and_then(|column| self.lasting.cause(*column));
            if let Some(cause) = lasting {
                self.tally.note(cause);
            }
            return Ok((lasting.is_none(), false));
        }
        let covers = |columns: &[usize]| fresh.iter().all(|column| columns.contains(column));
        let Some((cause, _)) = played.row_causes.iter().find(|(_, columns)| covers(columns)) else {
            return Err(unexplained(&row, &golden, &fresh));
        };
        self.tally.note(*cause);
        let may_last = [COLUMN_FLAG, COLUMN_HIGHEST, COLUMN_LAG];
        if fresh.iter().all(|column| may_last.contains(column)) {
            self.lasting.columns.extend(fresh.iter().map(|column| (*column, *cause)));
            return Ok((false, false));
        }
        Ok((false, true))
    }
}

fn unexplained(row: &Row, golden: &Row, columns: &[usize]) -> String {
    format!("state {row:?}, recorded {golden:?}, differing without a name in columns {columns:?}")
}

fn offsets(messages: &[Body]) -> Vec<i64> {
    messages.iter().map(|(offset, _)| *offset).collect()
}
