/* Every verb of orderly mode through the C surface: W1 to W13, T1, T2. */
#include "host.h"

static void put_take_commit(void)
{
    host h;
    lk_process_queue *queue = host_queue_at(&h, LK_MODE_ORDERLY, 0);
    lk_turn turn;
    lk_delivery taken[8];
    lk_commit_result committed;
    size_t len = 99;
    int32_t end = -1;

    CHECK_EQ(host_put(queue, 0, 3).schedule, 1); /* W11: idle to scheduled, told once */
    CHECK_EQ(host_put(queue, 3, 1).schedule, 0);
    CHECK_EQ(host_count(queue), 4);
    CHECK_STATUS(lk_process_queue_begin_turn(queue, 1, &turn), LK_OK);
    CHECK_STATUS(lk_turn_commit(queue, turn, 1, &committed), LK_NOTHING);

    CHECK_STATUS(lk_turn_take(queue, turn, 1, NULL, 0, &len), LK_OK);
    CHECK_EQ(len, 0);
    CHECK_STATUS(lk_turn_take(queue, turn, 1, taken, 2, &len), LK_OK);
    CHECK_EQ(len, 2);
    CHECK_EQ(taken[0].offset, 0);
    CHECK_EQ(taken[1].offset, 1);
    CHECK_EQ(taken[1].payload, 1);
    CHECK_EQ(taken[1].size, 10);
    CHECK_EQ(taken[1].attempts, 0);
    CHECK(taken[1].delivery != 0);
    CHECK_EQ(taken[1].reserved, 0);

    memset(taken, 0, sizeof(taken));
    CHECK_STATUS(lk_turn_in_flight(queue, turn, taken, 1, &len), LK_LIMIT);
    CHECK_EQ(len, 2);
    CHECK_EQ(taken[0].delivery, 0);
    CHECK_STATUS(lk_turn_in_flight(queue, turn, taken, 8, &len), LK_OK);
    CHECK_EQ(len, 2);
    CHECK_EQ(taken[1].offset, 1);

    CHECK_STATUS(lk_turn_commit(queue, turn, 2, &committed), LK_OK);
    CHECK_EQ(committed.safe_offset, 2);
    CHECK_EQ(committed.finished, 2);
    CHECK_EQ(h.total, 2);
    CHECK_EQ(host_safe_offset(queue), 2);

    CHECK_STATUS(lk_turn_end(queue, turn, 3, &end), LK_OK);
    CHECK_EQ(end, LK_TURN_END_RUN_AGAIN); /* something is ready */
    CHECK_STATUS(lk_process_queue_begin_turn(queue, 3, &turn), LK_OK);
    CHECK_STATUS(lk_turn_take(queue, turn, 3, taken, 8, &len), LK_OK);
    CHECK_EQ(len, 2);
    CHECK_STATUS(lk_turn_commit(queue, turn, 3, &committed), LK_OK);
    CHECK_EQ(committed.safe_offset, 4);
    CHECK_STATUS(lk_turn_take(queue, turn, 3, taken, 8, &len), LK_EMPTY);
    CHECK_STATUS(lk_turn_end(queue, turn, 4, &end), LK_OK);
    CHECK_EQ(end, LK_TURN_END_NOTHING);
    CHECK_EQ(host_live(queue), 0);
    host_end(&h, queue, 4);
}

static void rollback_requeue_complete(void)
{
    host h;
    lk_process_queue *queue = host_queue(&h, LK_MODE_ORDERLY);
    lk_turn turn;
    lk_delivery taken[8];
    lk_requeue_result requeued;
    lk_complete_result completed;
    lk_target targets[3];
    int32_t outcomes[3] = {-1, -1, -1};
    size_t len = 0;
    uint32_t rolled_back = 0;
    int32_t end = -1;

    host_put(queue, 0, 4);
    CHECK_STATUS(lk_process_queue_begin_turn(queue, 0, &turn), LK_OK);
    CHECK_STATUS(lk_turn_take(queue, turn, 0, taken, 3, &len), LK_OK);
    CHECK_STATUS(lk_turn_rollback(queue, turn, 0, &rolled_back), LK_OK);
    CHECK_EQ(rolled_back, 3);
    CHECK_EQ(h.total, 0);
    CHECK_STATUS(lk_turn_take(queue, turn, 0, taken, 3, &len), LK_OK);
    CHECK_EQ(taken[0].offset, 0); /* W5: from the lowest */

    targets[0] = host_target(1, 0);
    targets[1] = host_target(77, 0);
    targets[2] = host_target(2, taken[2].delivery + 1000);
    CHECK_STATUS(lk_turn_requeue(queue, turn, targets, 3, 2, 0, outcomes, &requeued), LK_OK);
    CHECK_EQ(requeued.requeued, 1);
    CHECK_EQ(requeued.unknown, 1);
    CHECK_EQ(requeued.stale, 1);
    CHECK_EQ(outcomes[0], LK_OUTCOME_WON);
    CHECK_EQ(outcomes[1], LK_OUTCOME_UNKNOWN);
    CHECK_EQ(outcomes[2], LK_OUTCOME_STALE);

    targets[0] = host_target(2, taken[2].delivery);
    targets[1] = host_target(1, 0);
    CHECK_STATUS(lk_turn_complete(queue, turn, targets, 2, 0, outcomes, &completed), LK_OK);
    CHECK_EQ(completed.finished, 1);
    CHECK_EQ(completed.unknown, 1); /* W7: in orderly mode of those in flight only */
    CHECK_EQ(completed.safe_offset, 0);
    CHECK_EQ(outcomes[0], LK_OUTCOME_WON);
    CHECK_EQ(outcomes[1], LK_OUTCOME_UNKNOWN);
    CHECK_EQ(h.released[2], 1);

    CHECK_STATUS(lk_turn_take(queue, turn, 0, taken, 1, &len), LK_OK);
    CHECK_EQ(taken[0].offset, 1);
    CHECK_EQ(taken[0].attempts, 2);
    CHECK_STATUS(lk_turn_complete(queue, turn, NULL, 0, 0, NULL, &completed), LK_OK);
    CHECK_EQ(completed.finished, 0);
    CHECK_STATUS(lk_turn_end(queue, turn, 0, &end), LK_OK);
    CHECK_EQ(end, LK_TURN_END_RUN_AGAIN);
    CHECK_EQ(host_count(queue), 3);
    host_end(&h, queue, 4);
}

static void put_refuses(void)
{
    host h;
    lk_process_queue *queue = host_queue_at(&h, LK_MODE_ORDERLY, 10);
    lk_message batch[4];
    lk_put_result result;
    lk_put_result untouched;

    batch[0] = host_message(12, 1);
    batch[1] = host_message(10, 1);
    batch[2] = host_message(12, 1); /* second copy */
    batch[3] = host_message(3, 1);  /* below the pull offset */
    CHECK_STATUS(lk_process_queue_put(queue, batch, 4, 0, 20, &result), LK_OK);
    CHECK_EQ(result.accepted, 2);
    CHECK_EQ(result.duplicate, 1);
    CHECK_EQ(result.stale, 1);
    CHECK_EQ(h.total, 2); /* C5: refused ones are released at once */
    CHECK_EQ(h.released[12], 1);
    CHECK_EQ(h.released[3], 1);
    CHECK_STATUS(lk_process_queue_put(queue, NULL, 0, 0, LK_BROKER_MAX_UNKNOWN, &result), LK_OK);

    memset(&untouched, 7, sizeof(untouched));
    result = untouched;
    batch[0] = host_message(20, 1);
    batch[1] = host_message(-1, 1);
    CHECK_STATUS(lk_process_queue_put(queue, batch, 2, 0, LK_BROKER_MAX_UNKNOWN, &result),
                 LK_ERR_INVALID_ARG);
    batch[1] = host_message(INT64_MAX, 1);
    CHECK_STATUS(lk_process_queue_put(queue, batch, 2, 0, LK_BROKER_MAX_UNKNOWN, &result),
                 LK_ERR_INVALID_ARG);
    CHECK(memcmp(&result, &untouched, sizeof(result)) == 0);
    CHECK_EQ(host_count(queue), 2);
    CHECK_EQ(h.total, 2); /* C5: on another status the queue owns none */
    lk_process_queue_free(queue);
    CHECK_EQ(h.total, 4);
    CHECK_EQ(h.data_freed, 1);
}

static void limit_and_advance(void)
{
    lk_process_queue_config config = LK_PROCESS_QUEUE_CONFIG_INIT;
    lk_process_queue *queue = NULL;
    lk_message batch[3];
    lk_put_result put;
    lk_advance_result advanced;
    int64_t pull = -1;

    config.outstanding_max = 2;
    CHECK_STATUS(lk_process_queue_new(&config, &queue, NULL, NULL, NULL, NULL), LK_OK);
    CHECK_STATUS(lk_process_queue_advance(queue, 5, 0, &advanced), LK_OK);
    CHECK_EQ(advanced.moved, 1);
    CHECK_EQ(advanced.safe_offset, 5);
    CHECK_STATUS(lk_process_queue_advance(queue, 5, 0, &advanced), LK_OK);
    CHECK_EQ(advanced.moved, 0);
    CHECK_STATUS(lk_process_queue_advance(queue, 4, 0, &advanced), LK_STALE);
    CHECK_STATUS(lk_process_queue_advance(queue, -4, 0, &advanced), LK_ERR_INVALID_ARG);
    batch[0] = host_message(5, 1);
    batch[1] = host_message(6, 1);
    batch[2] = host_message(7, 1);
    CHECK_STATUS(lk_process_queue_put(queue, batch, 3, 0, LK_BROKER_MAX_UNKNOWN, &put), LK_LIMIT);
    CHECK_EQ(host_count(queue), 0);
    CHECK_STATUS(lk_process_queue_put(queue, batch, 2, 0, LK_BROKER_MAX_UNKNOWN, &put), LK_OK);
    CHECK_STATUS(lk_process_queue_advance(queue, 9, 0, &advanced), LK_OK);
    CHECK_EQ(advanced.moved, 0); /* report 14: something is outstanding */
    CHECK_STATUS(lk_process_queue_pull_offset(queue, &pull), LK_OK);
    CHECK_EQ(pull, 9);
    CHECK_EQ(host_safe_offset(queue), 5);
    lk_process_queue_free(queue);
}

static void stop_and_close_during_a_turn(void)
{
    host h;
    lk_process_queue *queue = host_queue(&h, LK_MODE_ORDERLY);
    lk_turn turn;
    lk_delivery taken[4];
    lk_commit_result committed;
    lk_close_result closed;
    lk_put_result put;
    lk_advance_result advanced;
    size_t len = 0;
    bool answer = false;
    int32_t end = -1;

    host_put(queue, 0, 6);
    CHECK_STATUS(lk_process_queue_begin_turn(queue, 0, &turn), LK_OK);
    CHECK_STATUS(lk_turn_take(queue, turn, 0, taken, 2, &len), LK_OK);
    CHECK_STATUS(lk_process_queue_stop(queue), LK_OK);
    CHECK_STATUS(lk_process_queue_stop(queue), LK_OK);
    CHECK_STATUS(lk_process_queue_is_stopped(queue, &answer), LK_OK);
    CHECK(answer);
    CHECK_STATUS(lk_turn_take(queue, turn, 0, taken, 2, &len), LK_STOPPED);
    CHECK_STATUS(lk_process_queue_put(queue, NULL, 0, 0, -1, &put), LK_STOPPED);
    CHECK_STATUS(lk_process_queue_advance(queue, 90, 0, &advanced), LK_STOPPED);
    CHECK_STATUS(lk_turn_commit(queue, turn, 0, &committed), LK_OK); /* W16 */
    CHECK_EQ(committed.safe_offset, 2);

    CHECK_STATUS(lk_process_queue_close(queue, 100, &closed), LK_OK);
    CHECK_EQ(closed.safe_offset, 2);
    CHECK_EQ(closed.hand_over, 0); /* T2: the turn tells */
    CHECK_EQ(h.total, 6);          /* W12: nothing was on loan */
    CHECK_STATUS(lk_process_queue_close(queue, 100, &closed), LK_CLOSED);
    CHECK_STATUS(lk_process_queue_stop(queue), LK_CLOSED);
    CHECK_STATUS(lk_turn_take(queue, turn, 0, taken, 2, &len), LK_CLOSED);
    CHECK_STATUS(lk_turn_commit(queue, turn, 0, &committed), LK_CLOSED);
    CHECK_STATUS(lk_process_queue_put(queue, NULL, 0, 0, -1, &put), LK_CLOSED);
    CHECK_STATUS(lk_process_queue_advance(queue, 90, 0, &advanced), LK_CLOSED);
    CHECK_STATUS(lk_process_queue_is_closed(queue, &answer), LK_OK);
    CHECK(answer);
    CHECK_EQ(host_count(queue), 0);
    CHECK_EQ(host_safe_offset(queue), 2);
    CHECK_STATUS(lk_process_queue_hand_over_overdue(queue, 20100, &answer), LK_OK);
    CHECK(answer);
    CHECK_STATUS(lk_turn_end(queue, turn, 0, &end), LK_OK);
    CHECK_EQ(end, LK_TURN_END_HAND_OVER);
    CHECK_STATUS(lk_process_queue_hand_over_overdue(queue, 20100, &answer), LK_OK);
    CHECK(!answer);
    CHECK_STATUS(lk_process_queue_begin_turn(queue, 0, &turn), LK_CLOSED);
    host_end(&h, queue, 6);
}

static void loans_outlive_a_close(void)
{
    host h;
    lk_process_queue *queue = host_queue(&h, LK_MODE_ORDERLY);
    lk_turn turn;
    lk_delivery taken[4];
    lk_close_result closed;
    uint64_t payloads[4];
    lk_commit_result committed;
    size_t len = 0;
    int32_t end = -1;

    host_put(queue, 0, 5);
    CHECK_STATUS(lk_process_queue_begin_turn(queue, 0, &turn), LK_OK);
    CHECK_STATUS(lk_turn_take(queue, turn, 0, taken, 3, &len), LK_OK);
    CHECK_STATUS(lk_process_queue_close(queue, 0, &closed), LK_OK);
    CHECK_EQ(closed.safe_offset, 0);
    CHECK_EQ(h.total, 2); /* the ready ones */
    CHECK_EQ(host_live(queue), 3);
    /* The loans end with the commit, whatever it is answered; here they go to the array. */
    len = 99;
    CHECK_STATUS(lk_turn_commit_into(queue, turn, 0, payloads, 4, &len, &committed), LK_CLOSED);
    CHECK_EQ(len, 3);
    CHECK_EQ(payloads[0] + payloads[1] + payloads[2], 0 + 1 + 2);
    CHECK_EQ(h.total, 2);
    CHECK_EQ(host_live(queue), 0);
    CHECK_STATUS(lk_turn_end(queue, turn, 0, &end), LK_OK);
    lk_process_queue_free(queue);
    CHECK_EQ(h.total, 2);
    CHECK_EQ(h.data_freed, 1);
}

static void payloads_come_back_in_an_array(void)
{
    host h;
    lk_process_queue *queue = host_queue(&h, LK_MODE_ORDERLY);
    lk_turn turn;
    lk_delivery taken[4];
    lk_commit_result committed;
    lk_complete_result completed;
    lk_target targets[2];
    uint64_t payloads[4];
    size_t len = 0;
    int32_t end = -1;

    host_put(queue, 0, 6);
    CHECK_STATUS(lk_process_queue_begin_turn(queue, 0, &turn), LK_OK);
    CHECK_STATUS(lk_turn_commit_into(queue, turn, 0, NULL, 0, &len, &committed), LK_NOTHING);
    CHECK_STATUS(lk_turn_take(queue, turn, 0, taken, 4, &len), LK_OK);
    len = 0;
    CHECK_STATUS(lk_turn_commit_into(queue, turn, 0, payloads, 3, &len, &committed), LK_LIMIT);
    CHECK_EQ(len, 4);
    CHECK_EQ(host_count(queue), 6); /* nothing done */
    targets[0] = host_target(3, 0);
    targets[1] = host_target(2, 0);
    CHECK_STATUS(lk_turn_complete_into(queue, turn, targets, 2, 0, NULL, payloads, 1, &len,
                                       &completed),
                 LK_LIMIT);
    CHECK_EQ(len, 2);
    CHECK_STATUS(lk_turn_complete_into(queue, turn, targets, 2, 0, NULL, payloads, 4, &len,
                                       &completed),
                 LK_OK);
    CHECK_EQ(len, 2);
    CHECK_EQ(payloads[0], 3);
    CHECK_EQ(payloads[1], 2);
    CHECK_STATUS(lk_turn_commit_into(queue, turn, 0, payloads, 4, &len, &committed), LK_OK);
    CHECK_EQ(len, 2);
    CHECK_EQ(payloads[0], 0);
    CHECK_EQ(payloads[1], 1);
    CHECK_EQ(committed.safe_offset, 4);
    CHECK_EQ(h.total, 0); /* the callback saw none of them */
    CHECK_EQ(host_live(queue), 2);
    CHECK_STATUS(lk_turn_end(queue, turn, 0, &end), LK_OK);
    lk_process_queue_free(queue);
    CHECK_EQ(h.total, 2);
}

static void reads(void)
{
    host h;
    lk_process_queue *queue = host_queue_at(&h, LK_MODE_ORDERLY, 0);
    lk_turn turn;
    lk_delivery taken[4];
    lk_snapshot cut;
    lk_message message = host_message(9, 100);
    lk_put_result put;
    size_t len = 0;
    uint64_t bytes = 0;
    int64_t span = -1;
    bool answer = true;

    CHECK_STATUS(lk_process_queue_has_ready(queue, &answer), LK_OK);
    CHECK(!answer);
    CHECK_STATUS(lk_process_queue_snapshot(queue, 0, &cut), LK_OK);
    CHECK_EQ(cut.has_oldest, 0);
    CHECK_EQ(cut.highest_put, -1);
    host_put(queue, 0, 3);
    CHECK_STATUS(lk_process_queue_put(queue, &message, 1, 50, 30, &put), LK_OK);
    CHECK_STATUS(lk_process_queue_begin_turn(queue, 0, &turn), LK_OK);
    CHECK_STATUS(lk_turn_take(queue, turn, 60, taken, 1, &len), LK_OK);
    CHECK_STATUS(lk_process_queue_bytes(queue, &bytes), LK_OK);
    CHECK_EQ(bytes, 130);
    CHECK_STATUS(lk_process_queue_span(queue, &span), LK_OK);
    CHECK_EQ(span, 9);
    CHECK_STATUS(lk_process_queue_contains(queue, 0, &answer), LK_OK);
    CHECK(!answer); /* in flight, not ready */
    CHECK_STATUS(lk_process_queue_contains(queue, 9, &answer), LK_OK);
    CHECK(answer);
    CHECK_STATUS(lk_process_queue_snapshot(queue, 70, &cut), LK_OK);
    CHECK_EQ(cut.cached_count, 3);
    CHECK_EQ(cut.cached_min, 1);
    CHECK_EQ(cut.cached_max, 9);
    CHECK_EQ(cut.in_flight_count, 1);
    CHECK_EQ(cut.in_flight_min, 0);
    CHECK_EQ(cut.in_flight_max, 0);
    CHECK_EQ(cut.claimed_count, 0);
    CHECK_EQ(cut.count, 4);
    CHECK_EQ(cut.bytes, 130);
    CHECK_EQ(cut.safe_offset, 0);
    CHECK_EQ(cut.pull_offset, 10);
    CHECK_EQ(cut.highest_put, 9);
    CHECK_EQ(cut.has_oldest, 1);
    CHECK_EQ(cut.oldest_offset, 0);
    CHECK_EQ(cut.oldest_age_ms, 70);
    CHECK_EQ(cut.lag, 21);
    CHECK_EQ(cut.last_pull_ms, 50);
    CHECK_EQ(cut.last_consume_ms, 60);
    CHECK_EQ(cut.scheduled, 1);
    CHECK_EQ(cut.stopped, 0);
    CHECK_EQ(cut.closed, 0);
    lk_process_queue_free(queue);
    CHECK_EQ(h.total, 4);
}

int main(void)
{
    put_take_commit();
    rollback_requeue_complete();
    put_refuses();
    limit_and_advance();
    stop_and_close_during_a_turn();
    loans_outlive_a_close();
    payloads_come_back_in_an_array();
    reads();
    return check_end("orderly");
}
