//! `lk_claim`: the exclusive right to decide about one message, by a checked token.

use crate::guard::{queue_call, write_out};
use crate::handle::lk_process_queue;
use crate::outcome::lk_complete_result;
use crate::release::releasing;
use crate::status::{LK_ERR_INVALID_ARG, Not, lk_status};

/// The send-back failed: the message becomes ready again with one attempt more.
pub const LK_SETTLE_NOT_SENT: i32 = 0;
/// The message was sent back: it is finished.
pub const LK_SETTLE_SENT: i32 = 1;

/// A claim on one message, from `lk_consumer_claim` until `lk_claim_settle`. A plain value; once
/// settled, and on any other queue, it is answered `LK_STALE`. A claimed message is outstanding
/// and holds the safe offset down until it is settled or the queue is closed.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct lk_claim {
    /// Offset of the message.
    pub offset: i64,
    /// The delivery that was claimed.
    pub delivery: u32,
    /// Opaque.
    pub queue: u32,
}

/// Settles a claim. `sent` is `LK_SETTLE_SENT` or `LK_SETTLE_NOT_SENT`; not sent, the message
/// becomes ready again with one attempt more, not before `not_before_ms`. `ready` of the result
/// tells whether a message became ready: submit a task for it.
///
/// Ownership: ends the loan that the claim carries on, also when the answer is `LK_CLOSED`; the
/// payload of a finished message is released. What is never settled goes with the last reference.
///
/// Threads: any; one at a time with the same claim.
/// Progress: lock-free.
/// Allocates: amortised: messages that wait for their time are kept in a list.
/// Calls back: the release callback.
/// Errors: LK_STALE (settled before, or no claim of this queue), LK_CLOSED (the queue was closed
///   meanwhile, which ended the claim), LK_BUSY, LK_ERR_WRONG_MODE, LK_ERR_NULL_ARG,
///   LK_ERR_INVALID_ARG (`sent`), LK_ERR_POISONED, LK_ERR_PANIC.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn lk_claim_settle(
    queue: *mut lk_process_queue,
    claim: lk_claim,
    sent: i32,
    not_before_ms: i64,
    now_ms: i64,
    result_out: *mut lk_complete_result,
) -> lk_status {
    queue_call!(queue, [result_out], {
        let sent = match sent {
            LK_SETTLE_NOT_SENT => false,
            LK_SETTLE_SENT => true,
            _ => return Err(Not(LK_ERR_INVALID_ARG)),
        };
        let target = queue.claim_target(claim)?;
        let settled = releasing!(queue, |sink| {
            let claim = queue.resume_claim(target)?;
            claim.settle_with(sent, not_before_ms, now_ms, sink)
        })?;
        // SAFETY: not NULL, and the caller vouches for it.
        unsafe { write_out(result_out, lk_complete_result::from(settled)) };
        Ok(())
    })
}
