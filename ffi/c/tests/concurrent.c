/* Every verb of concurrent mode through the C surface: W7, W12, W14, W15. */
#include "host.h"

static lk_consumer begin(lk_process_queue *queue)
{
    lk_consumer consumer;
    memset(&consumer, 0, sizeof(consumer));
    CHECK_STATUS(lk_process_queue_begin_consumer(queue, &consumer), LK_OK);
    return consumer;
}

static void take_complete_requeue(void)
{
    host h;
    lk_process_queue *queue = host_queue(&h, LK_MODE_CONCURRENT);
    lk_consumer a = begin(queue);
    lk_consumer b = begin(queue);
    lk_delivery taken[4];
    lk_target targets[3];
    lk_complete_result completed;
    lk_requeue_result requeued;
    int32_t outcomes[3];
    uint64_t payloads[3];
    size_t len = 0;

    CHECK_STATUS(lk_consumer_take(queue, a, 0, taken, 4, &len), LK_EMPTY);
    CHECK_EQ(host_put(queue, 0, 6).accepted, 6);
    CHECK_STATUS(lk_consumer_take(queue, a, 0, taken, 2, &len), LK_OK);
    CHECK_EQ(taken[1].offset, 1);
    CHECK_STATUS(lk_consumer_take(queue, b, 0, taken, 2, &len), LK_OK);
    CHECK_EQ(taken[0].offset, 2);

    targets[0] = host_target(3, taken[1].delivery);
    targets[1] = host_target(3, 0); /* each exactly once */
    targets[2] = host_target(2, taken[0].delivery + 5);
    CHECK_STATUS(lk_consumer_complete(queue, b, targets, 3, 0, outcomes, &completed), LK_OK);
    CHECK_EQ(completed.finished, 1);
    CHECK_EQ(completed.unknown, 1);
    CHECK_EQ(completed.stale, 1);
    CHECK_EQ(completed.safe_offset, 0);
    CHECK_EQ(outcomes[0], LK_OUTCOME_WON);
    CHECK_EQ(outcomes[1], LK_OUTCOME_UNKNOWN);
    CHECK_EQ(outcomes[2], LK_OUTCOME_STALE);
    CHECK_EQ(h.released[3], 1);

    targets[0] = host_target(2, 0);
    CHECK_STATUS(lk_consumer_requeue(queue, b, targets, 1, 1, 0, NULL, &requeued), LK_OK);
    CHECK_EQ(requeued.requeued, 1);
    CHECK_STATUS(lk_consumer_take(queue, a, 0, taken, 1, &len), LK_OK);
    CHECK_EQ(taken[0].offset, 2);
    CHECK_EQ(taken[0].attempts, 1);

    targets[0] = host_target(0, 0);
    targets[1] = host_target(1, 0);
    targets[2] = host_target(2, 0);
    CHECK_STATUS(lk_consumer_complete_into(queue, a, targets, 3, 0, NULL, payloads, 2, &len,
                                           &completed),
                 LK_LIMIT);
    CHECK_EQ(len, 3);
    CHECK_STATUS(lk_consumer_complete_into(queue, a, targets, 3, 0, NULL, payloads, 3, &len,
                                           &completed),
                 LK_OK);
    CHECK_EQ(len, 3);
    CHECK_EQ(payloads[0] + payloads[1] + payloads[2], 3);
    CHECK_EQ(completed.safe_offset, 4);
    CHECK_EQ(h.total, 1);
    CHECK_STATUS(lk_consumer_end(queue, a), LK_OK);
    CHECK_STATUS(lk_consumer_end(queue, b), LK_OK);
    lk_process_queue_free(queue);
    CHECK_EQ(h.total, 3);
    CHECK_EQ(h.data_freed, 1);
}

static void expired_claim_settle(void)
{
    host h;
    lk_process_queue *queue = host_queue(&h, LK_MODE_CONCURRENT);
    lk_consumer consumer = begin(queue);
    lk_delivery taken[4];
    lk_expired late[4];
    lk_target targets[3];
    lk_claim claims[3];
    lk_claim forged;
    lk_complete_result result;
    int32_t outcomes[3];
    size_t len = 0;
    size_t won = 0;

    host_put(queue, 0, 3);
    CHECK_STATUS(lk_consumer_take(queue, consumer, 1000, taken, 3, &len), LK_OK);
    CHECK_STATUS(lk_process_queue_expired(queue, 1500, 500, late, 4, &len), LK_OK);
    CHECK_EQ(len, 0); /* more than the limit ago */
    CHECK_STATUS(lk_process_queue_expired(queue, 1501, 500, late, 2, &len), LK_OK);
    CHECK_EQ(len, 2);
    CHECK_EQ(late[0].offset, 0);
    CHECK_EQ(late[0].age_ms, 501);
    CHECK_EQ(late[0].delivery, taken[0].delivery);
    CHECK_STATUS(lk_process_queue_expired(queue, 1501, 500, NULL, 0, &len), LK_OK);
    CHECK_EQ(len, 0);

    targets[0] = host_target(late[0].offset, late[0].delivery);
    targets[1] = host_target(1, taken[1].delivery);
    targets[2] = host_target(50, 0);
    CHECK_STATUS(lk_consumer_claim(queue, consumer, targets, 3, 1501, claims, outcomes, &won),
                 LK_OK);
    CHECK_EQ(won, 2);
    CHECK_EQ(outcomes[0], LK_OUTCOME_WON);
    CHECK_EQ(outcomes[1], LK_OUTCOME_WON);
    CHECK_EQ(outcomes[2], LK_OUTCOME_UNKNOWN);
    CHECK_STATUS(lk_consumer_complete(queue, consumer, targets, 1, 1501, outcomes, &result),
                 LK_OK);
    CHECK_EQ(result.finished, 0); /* report 5: the late result lost */
    CHECK_EQ(host_count(queue), 3);
    CHECK_EQ(host_safe_offset(queue), 0);

    CHECK_STATUS(lk_claim_settle(queue, claims[0], 2, 0, 1502, &result), LK_ERR_INVALID_ARG);
    CHECK_STATUS(lk_claim_settle(queue, claims[0], -1, 0, 1502, &result), LK_ERR_INVALID_ARG);
    forged = claims[0];
    forged.queue++;
    CHECK_STATUS(lk_claim_settle(queue, forged, LK_SETTLE_SENT, 0, 1502, &result), LK_STALE);
    forged = claims[0];
    forged.delivery++;
    CHECK_STATUS(lk_claim_settle(queue, forged, LK_SETTLE_SENT, 0, 1502, &result), LK_STALE);
    CHECK_STATUS(lk_claim_settle(queue, claims[2], LK_SETTLE_SENT, 0, 1502, &result), LK_STALE);
    CHECK_STATUS(lk_claim_settle(queue, claims[0], LK_SETTLE_SENT, 0, 1502, &result), LK_OK);
    CHECK_EQ(result.finished, 1);
    CHECK_EQ(result.safe_offset, 1);
    CHECK_STATUS(lk_claim_settle(queue, claims[0], LK_SETTLE_SENT, 0, 1502, &result), LK_STALE);
    CHECK_STATUS(lk_claim_settle(queue, claims[1], LK_SETTLE_NOT_SENT, 2000, 1502, &result),
                 LK_OK);
    CHECK_EQ(result.finished, 0);
    CHECK_EQ(result.ready, 1);
    CHECK_EQ(result.safe_offset, 1);
    CHECK_STATUS(lk_consumer_take(queue, consumer, 1999, taken, 4, &len), LK_EMPTY);
    CHECK_STATUS(lk_consumer_take(queue, consumer, 2000, taken, 4, &len), LK_OK);
    CHECK_EQ(len, 1);
    CHECK_EQ(taken[0].offset, 1);
    CHECK_EQ(taken[0].attempts, 1);
    CHECK_STATUS(lk_consumer_end(queue, consumer), LK_OK);
    host_end(&h, queue, 3);
}

static void close_ends_claims_and_loans(void)
{
    host h;
    lk_process_queue *queue = host_queue(&h, LK_MODE_CONCURRENT);
    lk_consumer consumer = begin(queue);
    lk_delivery taken[6];
    lk_target target = host_target(0, 0);
    lk_claim claim;
    lk_close_result closed;
    lk_complete_result result;
    lk_consumer other;
    int32_t outcome = -1;
    uint32_t given_back = 0;
    size_t len = 0;
    size_t won = 0;

    host_put(queue, 0, 6);
    CHECK_STATUS(lk_consumer_take(queue, consumer, 0, taken, 4, &len), LK_OK);
    CHECK_STATUS(lk_consumer_claim(queue, consumer, &target, 1, 0, &claim, &outcome, &won), LK_OK);
    CHECK_EQ(won, 1);
    CHECK_STATUS(lk_process_queue_close(queue, 0, &closed), LK_OK);
    CHECK_EQ(closed.safe_offset, 0);
    CHECK_EQ(closed.hand_over, 1);
    CHECK_EQ(h.released[4], 1); /* ready ones at once */
    CHECK_EQ(h.released[5], 1);
    CHECK_EQ(h.released[1], 0); /* lent */
    CHECK_STATUS(lk_claim_settle(queue, claim, LK_SETTLE_SENT, 0, 0, &result), LK_CLOSED);
    target = host_target(1, 0);
    CHECK_STATUS(lk_consumer_complete(queue, consumer, &target, 1, 0, NULL, &result), LK_CLOSED);
    CHECK_EQ(h.released[1], 1); /* its loan ended, whatever it was answered */
    target = host_target(2, 0);
    CHECK_STATUS(lk_consumer_claim(queue, consumer, &target, 1, 0, &claim, &outcome, &won),
                 LK_CLOSED);
    CHECK_STATUS(lk_consumer_take(queue, consumer, 0, taken, 4, &len), LK_CLOSED);
    CHECK_STATUS(lk_consumer_give_back(queue, consumer, &target, 1, &given_back), LK_OK);
    CHECK_EQ(h.released[2], 1);
    CHECK_STATUS(lk_process_queue_begin_consumer(queue, &other), LK_CLOSED);
    CHECK_STATUS(lk_consumer_end(queue, consumer), LK_OK);
    CHECK_EQ(h.released[3], 1);
    CHECK_EQ(host_live(queue), 0); /* zero live at the end, before the free */
    host_end(&h, queue, 6);
}

static void give_back_and_consumers_max(void)
{
    lk_process_queue_config config = LK_PROCESS_QUEUE_CONFIG_INIT;
    lk_process_queue *queue = NULL;
    lk_consumer a;
    lk_consumer b;
    lk_delivery taken[2];
    lk_target targets[2];
    uint32_t ended = 99;
    size_t len = 0;

    config.mode = LK_MODE_CONCURRENT;
    config.consumers_max = 1;
    CHECK_STATUS(lk_process_queue_new(&config, &queue, NULL, NULL, NULL, NULL), LK_OK);
    a = begin(queue);
    CHECK_STATUS(lk_process_queue_begin_consumer(queue, &b), LK_LIMIT);
    host_put(queue, 0, 2);
    CHECK_STATUS(lk_consumer_take(queue, a, 0, taken, 2, &len), LK_OK);
    targets[0] = host_target(0, taken[0].delivery);
    targets[1] = host_target(7, 0);
    CHECK_STATUS(lk_consumer_give_back(queue, a, targets, 2, &ended), LK_OK);
    CHECK_EQ(ended, 1);
    CHECK_EQ(host_count(queue), 2); /* still in flight */
    CHECK_STATUS(lk_consumer_give_back(queue, a, NULL, 0, &ended), LK_OK);
    CHECK_EQ(ended, 0);
    CHECK_STATUS(lk_consumer_end(queue, a), LK_OK);
    CHECK_STATUS(lk_consumer_end(queue, a), LK_STALE);
    b = begin(queue);
    CHECK_STATUS(lk_consumer_take(queue, a, 0, taken, 2, &len), LK_STALE);
    CHECK_STATUS(lk_consumer_end(queue, b), LK_OK);
    lk_process_queue_free(queue);
}

int main(void)
{
    take_complete_requeue();
    expired_claim_settle();
    close_ends_claims_and_loans();
    give_back_and_consumers_max();
    return check_end("concurrent");
}
