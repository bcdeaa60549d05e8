//! One lease: who has it and when it was renewed last, in one word.
//!
//! ```text
//! word:   owner 48..64 | turnover 43..48 | time 0..43      held
//!         0            | turnover        | low bits of the token      free
//! token:  number of the holding, counted up by each takeover
//! queue:  id of the queue, while there is an owner
//!
//!   free --take--> held by A --take, expired--> held by B --release, sweep--> free
//!                  '--renew--^
//! ```
//!
//! - *owner*: a number of an interned client, 0 for none. The word holds a counted reference to
//!   its owner, so the number cannot become somebody else's while it stands here. 65,535 clients
//!   can hold leases at once.
//! - *time*: ms of the last renewal, signed, 2^42 either way: the years 1830 to 2109 if it counts
//!   from 1970. The caller checks the range ([`fits`]), so it never wraps.
//! - *turnover*: the low five bits of `token`. They bind the token to the word, see below.
//! - a free word keeps the token's other bits where the time was: it would else look the same
//!   after 32 takings and givings back, which a taker that stands still can sleep through.
//!
//! Taking, renewing, releasing and sweeping are one exchange of the whole word, from the value the
//! decision was made on: their linearization points. What is decided depends only on owner and
//! time, so a word that went and came back with both the same leads to the same decision, and it
//! is right: the owner was pinned by its reference and the caller by its own.
//!
//! The token is raised, by one, after the exchange that takes the lease, by who took it. So it is
//! never ahead of the word, and behind it by as many takers as stand still right there; the
//! turnover tells by how many, up to 31. A 32nd is answered as if the lease were held. Whoever
//! answers a token read it between reading the word and exchanging, or reading again, that very
//! word: of a held lease, 32 takeovers within that time, the last one with the same owner and the
//! same ms, would be needed for a wrong one; of a free one, 2^43.
//!
//! `queue` is written by who holds a reference to that id and finds the cell free; while the cell
//! has an owner it holds the reference, so the id does not change.
//!
//! Source of the rules: `broker/.../client/rebalance/RebalanceLockManager.java` of apache/rocketmq
//! at commit 8fc57f1468d1. Lock-free. Models: acquire_acquire_free,
//! acquire_acquire_expired, renew_takeover, release_acquire, sweep_reacquire, batch_batch,
//! owner_reuse.

use super::pages::Blank;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{mutated, ordering};

/// Expired means: longer ago than this, in ms.
pub(crate) const LEASE_LIFE_MS: i64 = 60_000;
/// Most owners.
pub(crate) const OWNERS_MAX: u32 = u16::MAX as u32;

const TIME_BITS: u32 = 43;
const TURNOVER_SHIFT: u32 = TIME_BITS;
const TURNOVER: u64 = 31;
const OWNER_SHIFT: u32 = 48;
const TIME: u64 = (1 << TIME_BITS) - 1;

/// Whether a time can be recorded.
#[inline]
pub(crate) fn fits(now_ms: i64) -> bool {
    now_ms >> (TIME_BITS - 1) == 0 || now_ms >> (TIME_BITS - 1) == -1
}

#[inline]
fn owner(word: u64) -> u16 {
    (word >> OWNER_SHIFT) as u16
}

#[inline]
fn turnover(word: u64) -> u64 {
    (word >> TURNOVER_SHIFT) & TURNOVER
}

#[inline]
fn last_ms(word: u64) -> i64 {
    let up = 64 - TIME_BITS;
    (word << up).cast_signed() >> up
}

#[inline]
fn pack(owner: u16, turnover: u64, ms: i64) -> u64 {
    debug_assert!(fits(ms), "{ms} ms");
    let time = ms.cast_unsigned() & TIME;
    u64::from(owner) << OWNER_SHIFT | (turnover & TURNOVER) << TURNOVER_SHIFT | time
}

/// A `now` below the recorded time counts as age 0 (L5).
#[inline]
fn is_expired(word: u64, now_ms: i64) -> bool {
    now_ms.saturating_sub(last_ms(word)) > LEASE_LIFE_MS
}

/// See the module.
#[repr(align(32))]
pub(crate) struct LeaseCell {
    word: AtomicU64,
    token: AtomicU64,
    queue: AtomicU64,
}

// SAFETY: numbers.
unsafe impl Blank for LeaseCell {
    const IS_ZERO: bool = true;
    fn blank() -> Self {
        Self { word: AtomicU64::new(0), token: AtomicU64::new(0), queue: AtomicU64::new(0) }
    }
}

/// Who asks, for what, when.
#[derive(Clone, Copy)]
pub(crate) struct Ask {
    pub(crate) queue: u64,
    /// Not 0.
    pub(crate) owner: u16,
    pub(crate) now_ms: i64,
}

/// What was found, or done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It was the asker's, and is renewed.
    Renewed { token: u64 },
    /// Another has it.
    Held,
    /// The queue's id was another one's when it was taken.
    OtherQueue,
    /// To be had, by exchanging this word.
    Free(Seen),
    /// As `Free`; another had it too long.
    Expired(Seen),
}

/// A word that may be exchanged by [`LeaseCell::take`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen(u64);

impl Seen {
    pub(crate) fn owner(self) -> u16 {
        owner(self.0)
    }
}

/// A lease that is held, as it is or was a moment ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holding {
    pub(crate) queue: u64,
    pub(crate) owner: u16,
    pub(crate) last_ms: i64,
    pub(crate) token: u64,
}

impl Holding {
    pub(crate) fn is_expired(&self, now_ms: i64) -> bool {
        now_ms.saturating_sub(self.last_ms) > LEASE_LIFE_MS
    }
}

impl LeaseCell {
    /// Renews, or tells what is there.
    #[inline]
    pub(crate) fn ask(&self, ask: &Ask) -> Found {
        // ORDERING: Acquire — pairs with the Release of `take`: token and queue of this word are
        // seen.
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            if owner(word) == 0 {
                return self.takeable(word, Found::Free);
            }
            // ORDERING: Relaxed — ordered by the word.
            if self.queue.load(Ordering::Relaxed) != ask.queue {
                return Found::OtherQueue;
            }
            if owner(word) != ask.owner {
                if is_expired(word, ask.now_ms) {
                    return self.takeable(word, Found::Expired);
                }
                return Found::Held;
            }
            let token = self.token_of(word);
            let next = pack(ask.owner, turnover(word), ask.now_ms);
            if mutated("lease_renew_no_cas") {
                // ORDERING: AcqRel — planted: the word is not compared.
                self.word.swap(next, Ordering::AcqRel);
                return Found::Renewed { token };
            }
            // ORDERING: AcqRel — Acquire: what the last holder did is seen by who has it now;
            // Release continues. Acquire on failure, as token and queue are read again. Model:
            // renew_takeover
            match self.word.compare_exchange(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Found::Renewed { token },
                Err(now) => word = now,
            }
        }
    }

    /// The token that belongs to a word read with Acquire, if that is still the word afterwards.
    #[inline]
    fn token_of(&self, word: u64) -> u64 {
        // ORDERING: Acquire — the word read again after it is not older.
        let token = self.token.load(Ordering::Acquire);
        token + (turnover(word).wrapping_sub(token) & TURNOVER)
    }

    #[cold]
    fn takeable(&self, word: u64, found: fn(Seen) -> Found) -> Found {
        // ORDERING: Acquire — as in `token_of`.
        let token = self.token.load(Ordering::Acquire);
        let standing = turnover(word).wrapping_sub(token) & TURNOVER;
        if standing == TURNOVER { Found::Held } else { found(Seen(word)) }
    }

    /// Takes the lease, if the word is still the one seen. The asker holds references to its id and
    /// to the queue's, which pass to the cell; those of the word seen pass to the asker.
    pub(crate) fn take(&self, seen: Seen, ask: &Ask) -> Option<u64> {
        let token = self.token_of(seen.0);
        if owner(seen.0) == 0 {
            // ORDERING: Relaxed — published by the word. Nobody with another id of this slot can
            // be here, since the asker holds a reference to its own. A swap, as others read it.
            self.queue.swap(ask.queue, Ordering::Relaxed);
        }
        let plus = if mutated("lease_same_token") { 0 } else { 1 };
        let next = pack(ask.owner, token + plus, ask.now_ms);
        if mutated("lease_take_no_cas") {
            // ORDERING: AcqRel — planted: the word is not compared.
            self.word.swap(next, Ordering::AcqRel);
            return Some(token + plus);
        }
        // ORDERING: AcqRel — Acquire pairs with the last holder's Release: its end comes before
        // this beginning; Release publishes the queue. Relaxed on failure: nothing is read.
        // Model: acquire_acquire_free
        let order = ordering("lease_take_relaxed", Ordering::AcqRel, Ordering::Relaxed);
        self.word.compare_exchange(seen.0, next, order, Ordering::Relaxed).ok()?;
        // ORDERING: AcqRel — pairs with the Acquire of `token_of`.
        self.token.fetch_add(1, Ordering::AcqRel);
        Some(token + plus)
    }

    /// Frees the lease if `owner` holds it, expired or not; the cell's references pass to the
    /// caller. `None`: another holds it, or nobody.
    pub(crate) fn release(&self, queue: u64, holder: u16) -> Option<()> {
        // ORDERING: Acquire — pairs with the Release of `take`: the queue of this word is seen.
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            // ORDERING: Relaxed — ordered by the word.
            if owner(word) != holder || self.queue.load(Ordering::Relaxed) != queue {
                return None;
            }
            match self.free(word, self.token_of(word), "lease_release_no_cas") {
                Ok(()) => return Some(()),
                Err(now) => word = now,
            }
        }
    }

    /// Frees the lease if it has expired; the cell's references pass to the caller. The word judged
    /// is the word exchanged, so a lease renewed or taken meanwhile stays.
    pub(crate) fn sweep(&self, now_ms: i64) -> Option<Holding> {
        let holding = self.look()?;
        if !is_expired(holding.1, now_ms) {
            return None;
        }
        self.free(holding.1, holding.0.token, "lease_sweep_no_cas").ok()?;
        Some(holding.0)
    }

    fn free(&self, word: u64, token: u64, planted: &'static str) -> Result<(), u64> {
        let kept = token & TIME;
        let next = turnover(word) << TURNOVER_SHIFT | kept;
        if mutated(planted) {
            // ORDERING: AcqRel — planted: the word is not compared.
            self.word.swap(next, Ordering::AcqRel);
            return Ok(());
        }
        // ORDERING: AcqRel — Release: what the holder did comes before the next holder; Acquire:
        // the queue read before belongs to this word. Acquire on failure, as it is read again.
        // Models: release_acquire, sweep_reacquire
        let order = ordering("lease_free_relaxed", Ordering::AcqRel, Ordering::Relaxed);
        self.word.compare_exchange(word, next, order, Ordering::Acquire).map(drop)
    }

    /// The lease, if somebody has it: one consistent look. Retries while it is changed.
    pub(crate) fn holding(&self) -> Option<Holding> {
        self.look().map(|(holding, _)| holding)
    }

    fn look(&self) -> Option<(Holding, u64)> {
        // ORDERING: Acquire — pairs with the Release of `take`: queue and token are seen.
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            if owner(word) == 0 {
                return None;
            }
            let token = self.token_of(word);
            // ORDERING: Acquire — ordered by the word; the word read again after it is not older.
            let queue = self.queue.load(Ordering::Acquire);
            // ORDERING: Acquire — as the first one.
            let again = self.word.load(Ordering::Acquire);
            if word == again || mutated("lease_look_once") {
                let (owner, last_ms) = (owner(again), last_ms(again));
                return Some((Holding { queue, owner, last_ms, token }, again));
            }
            word = again;
        }
    }
}

#[cfg(all(test, not(any(lk_loom, lk_shuttle))))]
mod tests {
    use super::*;

    const MOST: i64 = (1 << 42) - 1;

    #[test]
    fn words_keep_what_is_packed_into_them() {
        for ms in [0, 1, -1, 1_700_000_000_000, MOST, -MOST - 1] {
            for number in [0, 1, 31] {
                for client in [0, 1, u16::MAX] {
                    let word = pack(client, number, ms);
                    assert_eq!((owner(word), turnover(word), last_ms(word)), (client, number, ms));
                }
            }
        }
        assert!(fits(MOST) && fits(-MOST - 1));
        assert!(!fits(MOST + 1) && !fits(-MOST - 2) && !fits(i64::MAX) && !fits(i64::MIN));
    }

    #[test]
    fn tokens_count_on_over_every_wrap_of_their_low_bits() {
        let cell = LeaseCell::blank();
        let ask = |owner, now_ms| Ask { queue: 7, owner, now_ms };
        let mut last = 0;
        for round in 0..200_u16 {
            let me = ask(1 + round % 3, i64::from(round) * 60_001);
            let (Found::Free(seen) | Found::Expired(seen)) = cell.ask(&me) else {
                panic!("round {round}: to be had")
            };
            let token = cell.take(seen, &me).unwrap();
            assert_eq!(token, last + 1);
            assert_eq!(cell.ask(&me), Found::Renewed { token });
            assert_eq!(cell.holding().unwrap().token, token);
            last = token;
        }
    }

    /// A taker that sleeps while the lease is taken and given back 32 times must notice.
    #[test]
    fn a_free_word_does_not_come_back_with_its_turnover() {
        let cell = LeaseCell::blank();
        let me = Ask { queue: 7, owner: 1, now_ms: 0 };
        let take = || match cell.ask(&me) {
            Found::Free(seen) => (seen, cell.take(seen, &me)),
            other => panic!("to be had: {other:?}"),
        };
        let Found::Free(slept) = cell.ask(&me) else { panic!("free") };
        for round in 0..64 {
            let (_, token) = take();
            assert_eq!(token, Some(round + 1));
            assert_eq!(cell.release(7, 1), Some(()));
        }
        assert_eq!(cell.take(slept, &me), None);
        assert_eq!(take().1, Some(65));
    }

    #[test]
    fn tokens_not_raised_yet_are_told_right_and_a_thirty_second_taker_is_refused() {
        let cell = LeaseCell::blank();
        let ask = |round: i64| {
            let owner = 1 + (round & 1) as u16;
            Ask { queue: 7, owner, now_ms: round * 60_001 }
        };
        for round in 0..31 {
            let me = ask(round);
            let (Found::Free(seen) | Found::Expired(seen)) = cell.ask(&me) else {
                panic!("round {round}: to be had")
            };
            let token = round.cast_unsigned() + 1;
            assert_eq!(cell.take(seen, &me), Some(token));
            // As if each taker stood still before it raised the token. ORDERING: one thread.
            cell.token.store(0, Ordering::Relaxed);
            assert_eq!(cell.holding().unwrap().token, token);
            assert_eq!(cell.ask(&me), Found::Renewed { token });
            // A taker with an old word takes nothing.
            assert_eq!(cell.take(seen, &me), None);
        }
        assert_eq!(cell.ask(&ask(31)), Found::Held);
        // One of them goes on. ORDERING: one thread.
        cell.token.store(1, Ordering::Relaxed);
        let Found::Expired(seen) = cell.ask(&ask(31)) else { panic!("expired") };
        assert_eq!(cell.take(seen, &ask(31)), Some(32));
    }
}
