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
    model("put_take", orderly::put_take, 2, None, &["publish_relaxed", "published_relaxed"]),
    model("put_put", orderly::put_put, 2, None, &["role_enter_relaxed"]),
    model(
        "put_commit",
        orderly::put_commit,
        2,
        None,
        &["pull_before_publish", "published_before_pull", "pull_relaxed"],
    ),
    model(
        "put_gap_commit",
        orderly::put_gap_commit,
        2,
        Some(3),
        &["gap_no_fence", "commit_no_fence", "commit_no_look_again"],
    ),
    model("put_close", orderly::put_close, 2, Some(3), &["freeze_no_consume"]),
    model("put_snapshot", orderly::put_snapshot, 2, Some(3), &["publish_relaxed"]),
    model("take_nothing_put", orderly::take_nothing_put, 2, None, &["idle_no_recheck"]),
    model("end_put", orderly::end_put, 2, None, &["idle_no_recheck"]),
    model("take_close", orderly::take_close, 2, Some(2), &["take_no_cas", "freeze_no_consume"]),
    model("commit_close", orderly::commit_close, 2, Some(2), &["commit_no_cas"]),
    model("commit_snapshot", orderly::commit_snapshot, 2, Some(2), &["snapshot_no_recheck"]),
    model("rollback_observer", orderly::rollback_observer, 2, None, &["rollback_in_steps"]),
    model("rollback_close", orderly::rollback_close, 2, Some(3), &["freeze_no_consume"]),
    model("requeue_snapshot", orderly::requeue_snapshot, 2, None, &["consume_relaxed"]),
    model("requeue_twice_reader", orderly::requeue_twice_reader, 2, Some(0), &["record_no_fence"]),
    model(
        "requeue_close",
        orderly::requeue_close,
        2,
        Some(2),
        &["freeze_no_consume", "offer_relaxed"],
    ),
    model(
        "complete_lane_close",
        orderly::complete_lane_close,
        2,
        Some(2),
        &["commit_no_cas", "freeze_no_consume"],
    ),
    model(
        "complete_lane_snapshot",
        orderly::complete_lane_snapshot,
        2,
        Some(2),
        &["progress_relaxed"],
    ),
    model(
        "advance_commit",
        orderly::advance_commit,
        2,
        Some(3),
        &["advance_no_fence", "commit_no_fence", "commit_no_look_again"],
    ),
    model("advance_close", orderly::advance_close, 2, Some(3), &["freeze_no_consume"]),
    model("close_close", orderly::close_close, 2, Some(2), &["freeze_no_consume"]),
    model("end_close", orderly::end_close, 2, Some(2), &["freeze_no_consume"]),
    model("begin_close", orderly::begin_close, 2, Some(2), &["freeze_no_consume"]),
    model(
        "begin_begin_end",
        orderly::begin_begin_end,
        3,
        Some(2),
        &["turn_no_note", "turn_release_relaxed", "turn_take_relaxed"],
    ),
    model("token_round", orderly::token_round, 2, None, &["resume_no_cas"]),
    model("token_park", orderly::token_park, 2, Some(2), &["park_relaxed", "resume_relaxed"]),
    model("put_take_commit", orderly::put_take_commit, 2, Some(2), &["pulled_word_only"]),
    model("put_gap_span", orderly::put_gap_span, 2, None, &["span_with_gap"]),
    model(
        "put_thrice_snapshot",
        orderly::put_thrice_snapshot,
        2,
        Some(1),
        &["put_record_no_fence"],
    ),
    model("stop_take_put", orderly::stop_take_put, 2, Some(2), &["stopped_no_help"]),
    model("close_look", orderly::close_look, 2, Some(2), &["look_no_freeze"]),
    model(
        "reads_bounds",
        orderly::reads_bounds,
        3,
        Some(2),
        &["published_relaxed", "pull_relaxed"],
    ),
    model(
        "late_reader",
        orderly::late_reader,
        2,
        Some(1),
        &["late_reader_no_check", "assign_no_fence"],
    ),
    model(
        "late_snapshot",
        orderly::late_snapshot,
        2,
        Some(1),
        &["late_reader_no_check", "assign_no_fence"],
    ),
    model(
        "put_complete",
        concurrent::put_complete,
        2,
        Some(3),
        &["pull_before_publish", "gap_no_fence", "settle_no_look_again"],
    ),
    model("put_complete_ready", concurrent::put_complete_ready, 2, Some(2), &["pulled_word_only"]),
    model("put_take_concurrent", concurrent::put_take_concurrent, 2, None, &["publish_relaxed"]),
    model("take_take", concurrent::take_take, 2, Some(2), &["take_no_cas_at_all"]),
    model(
        "take_complete_ready",
        concurrent::take_complete_ready,
        2,
        Some(2),
        &["end_loan_relaxed"],
    ),
    model(
        "take_close_concurrent",
        concurrent::take_close_concurrent,
        2,
        Some(2),
        &["end_loan_relaxed", "freeze_no_consume"],
    ),
    model(
        "complete_complete_one",
        concurrent::complete_complete_one,
        2,
        Some(3),
        &["meta_move_no_cas"],
    ),
    model(
        "complete_complete_two",
        concurrent::complete_complete_two,
        2,
        Some(2),
        &["done_read_before"],
    ),
    model(
        "complete_complete_segments",
        concurrent::complete_complete_segments,
        2,
        Some(2),
        &["settle_no_fence"],
    ),
    model("complete_safe_reads", concurrent::complete_safe_reads, 3, Some(2), &["settle_relaxed"]),
    model("complete_claim", concurrent::complete_claim, 2, Some(2), &["meta_move_relaxed"]),
    model("claim_expired", concurrent::claim_expired, 2, Some(2), &["expired_names_claimed"]),
    model("late_expired", concurrent::late_expired, 2, Some(1), &["expired_no_second_look"]),
    model("claim_claim", concurrent::claim_claim, 2, Some(2), &["meta_move_relaxed"]),
    model("complete_give_back", concurrent::complete_give_back, 2, Some(2), &["end_loan_relaxed"]),
    model("close_give_back", concurrent::close_give_back, 2, Some(3), &["end_loan_relaxed"]),
    model("complete_close", concurrent::complete_close, 2, Some(2), &["freeze_no_consume"]),
    model("settle_close", concurrent::settle_close, 2, Some(2), &["freeze_no_consume"]),
    model(
        "advance_complete",
        concurrent::advance_complete,
        2,
        Some(3),
        &["advance_no_fence", "settle_no_look_again"],
    ),
    model(
        "requeue_take_stale",
        concurrent::requeue_take_stale,
        2,
        None,
        &["delivery_not_compared"],
    ),
    model("recycle", concurrent::recycle, 2, Some(1), &["pool_push_relaxed"]),
    model("payload_once", concurrent::payload_once, 3, Some(1), &["end_loan_old_word"]),
];
