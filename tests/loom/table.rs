//! The models, how far each is explored, and the bugs that each must notice when they are planted.

use crate::models_concurrent as concurrent;
use crate::models_orderly as orderly;
use crate::scene::Rest;

/// One model.
pub struct Model {
    pub name: &'static str,
    pub run: fn() -> Rest,
    /// Threads that run at the same time, the main one included.
    pub threads: u8,
    /// Most preemptions explored; `None` is all of them.
    pub bound: Option<usize>,
    /// Mutation points (`sync::mutated`) that make this model fail.
    pub mutations: &'static [&'static str],
}

const fn model(
    name: &'static str,
    run: fn() -> Rest,
    threads: u8,
    bound: Option<usize>,
    mutations: &'static [&'static str],
) -> Model {
    Model { name, run, threads, bound, mutations }
}

/// All of them.
pub const MODELS: &[Model] = &[
    model("put_take", orderly::put_take, 2, None, &[]),
    model("put_put", orderly::put_put, 2, None, &["role_enter_relaxed"]),
    model("put_commit", orderly::put_commit, 2, None, &[]),
    model("put_close", orderly::put_close, 2, None, &[]),
    model("take_close", orderly::take_close, 2, None, &[]),
    model("take_nothing_put", orderly::take_nothing_put, 2, None, &[]),
    model("end_put", orderly::end_put, 2, None, &[]),
    model("commit_close", orderly::commit_close, 2, None, &[]),
    model("commit_snapshot", orderly::commit_snapshot, 2, None, &[]),
    model("put_snapshot", orderly::put_snapshot, 2, None, &[]),
    model("rollback_observer", orderly::rollback_observer, 2, None, &[]),
    model("requeue_snapshot", orderly::requeue_snapshot, 2, None, &[]),
    model("advance_commit", orderly::advance_commit, 2, None, &[]),
    model("advance_close", orderly::advance_close, 2, None, &[]),
    model("close_close", orderly::close_close, 2, None, &[]),
    model("end_close", orderly::end_close, 2, None, &[]),
    model("begin_close", orderly::begin_close, 2, None, &[]),
    model("begin_begin_end", orderly::begin_begin_end, 3, Some(3), &[]),
    model("reads_bounds", orderly::reads_bounds, 3, Some(2), &[]),
    model("late_reader", orderly::late_reader, 2, Some(3), &[]),
    model("put_gap_commit", orderly::put_gap_commit, 2, None, &[]),
    model("requeue_close", orderly::requeue_close, 2, None, &[]),
    model("complete_lane_close", orderly::complete_lane_close, 2, None, &[]),
    model("rollback_close", orderly::rollback_close, 2, None, &[]),
    model("complete_lane_snapshot", orderly::complete_lane_snapshot, 2, None, &[]),
    model("token_round", orderly::token_round, 2, None, &[]),
    model("late_snapshot", orderly::late_snapshot, 2, Some(2), &[]),
    model("requeue_twice_reader", orderly::requeue_twice_reader, 2, Some(2), &[]),
    model("complete_safe_reads", concurrent::complete_safe_reads, 2, Some(2), &[]),
    model("put_complete", concurrent::put_complete, 2, None, &[]),
    model("put_take_concurrent", concurrent::put_take_concurrent, 2, None, &[]),
    model("take_take", concurrent::take_take, 2, None, &[]),
    model("take_complete_ready", concurrent::take_complete_ready, 2, None, &[]),
    model("take_close_concurrent", concurrent::take_close_concurrent, 2, None, &[]),
    model("complete_complete_one", concurrent::complete_complete_one, 2, None, &[]),
    model("complete_complete_two", concurrent::complete_complete_two, 2, None, &[]),
    model("complete_complete_segments", concurrent::complete_complete_segments, 2, None, &[]),
    model("complete_claim", concurrent::complete_claim, 2, None, &[]),
    model("claim_expired", concurrent::claim_expired, 2, None, &[]),
    model("claim_claim", concurrent::claim_claim, 2, None, &[]),
    model("complete_give_back", concurrent::complete_give_back, 2, None, &[]),
    model("close_give_back", concurrent::close_give_back, 2, None, &[]),
    model("complete_close", concurrent::complete_close, 2, None, &[]),
    model("settle_close", concurrent::settle_close, 2, None, &[]),
    model("advance_complete", concurrent::advance_complete, 2, None, &[]),
    model("requeue_take_stale", concurrent::requeue_take_stale, 2, None, &[]),
    model("recycle", concurrent::recycle, 2, Some(3), &[]),
    model("payload_once", concurrent::payload_once, 3, Some(3), &[]),
];
