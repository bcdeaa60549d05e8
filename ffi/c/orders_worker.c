/* What a worker thread does: turns. Take a batch, hand it to the listener, settle the result. */
#include "orders_client.h"

enum {
    TURN_BATCHES_MAX = 64,
    CONSUME_BATCH_MAX = 1024,
    DELIVERIES_FAILING_MAX = 8 /* then a message stops failing */
};

typedef enum verdict { SUCCESS, SUSPEND_ALL, ROLLBACK, SUSPEND_REST } verdict;
typedef enum next_step { NEXT_BATCH, NEXT_SUSPEND, NEXT_LEAVE } next_step;

static verdict decide(const client *c, const assignment *work, const lk_delivery *first,
                      size_t size, size_t *failed_at)
{
    uint64_t parts[4] = { work->queue_id, work->generation, (uint64_t)first->offset,
                          first->delivery };
    uint64_t state = random_of(c->settings->seed, parts, 4);
    verdict how;
    *failed_at = size - 1;
    if (first->delivery > DELIVERIES_FAILING_MAX || !chance(&state, c->settings->fail_rate))
        return SUCCESS;
    how = (verdict)(SUSPEND_ALL + next_random(&state) % 3);
    *failed_at = (size_t)(next_random(&state) % size);
    return how;
}

/* The listener: hands the batch to the ledger, up to the message it fails at. */
static void listen(client *c, const assignment *work, const lk_delivery *taken, size_t count)
{
    const orders_message *log = c->queues[work->queue_id].log;
    for (size_t i = 0; i < count; i++) {
        const orders_message *message = (const orders_message *)(uintptr_t)taken[i].payload;
        if (message < log || message >= log + c->queues[work->queue_id].log_room)
            atomic_fetch_add(&c->foreign, 1);
        else
            orders_ledger_delivered(c->ledger, message->position);
    }
}

static next_step settle(client *c, assignment *work, lk_turn turn, const lk_target *targets,
                        size_t len, verdict how, size_t failed_at)
{
    size_t done = how == SUCCESS ? len : how == SUSPEND_REST ? failed_at : 0;
    lk_status status = LK_OK;
    for (size_t i = 0; i < done; i++)
        orders_ledger_succeeded(c->ledger, work->queue_id, targets[i].offset);
    if (how == SUCCESS) {
        lk_commit_result committed;
        status = lk_turn_commit(work->queue, turn, now_ms(c), &committed);
        if (status == LK_OK)
            progressed(c, work, committed.safe_offset, committed.finished);
    } else {
        lk_complete_result completed;
        lk_requeue_result requeued;
        uint32_t rolled_back;
        atomic_fetch_add(&c->failed_batches, 1);
        if (done > 0)
            status = lk_turn_complete(work->queue, turn, targets, done, now_ms(c), NULL,
                                      &completed);
        if (done > 0 && status == LK_OK)
            progressed(c, work, completed.safe_offset, completed.finished);
        if (status == LK_OK)
            status = how == ROLLBACK
                         ? lk_turn_rollback(work->queue, turn, now_ms(c), &rolled_back)
                         : lk_turn_requeue(work->queue, turn, targets + done, len - done, 1,
                                           now_ms(c), NULL, &requeued);
    }
    if (status == LK_CLOSED) /* given away in the middle: the end of the turn will tell */
        return NEXT_LEAVE;
    expect(status, "settling a batch");
    return how == SUCCESS ? NEXT_BATCH : NEXT_SUSPEND;
}

static next_step consume_batch(client *c, assignment *work, lk_turn turn)
{
    lk_delivery taken[CONSUME_BATCH_MAX];
    lk_target targets[CONSUME_BATCH_MAX];
    size_t len, failed_at;
    lk_status status = lk_turn_take(work->queue, turn, now_ms(c), taken,
                                    c->settings->consume_batch, &len);
    if (status == LK_EMPTY || status == LK_CLOSED)
        return NEXT_LEAVE;
    expect(status, "lk_turn_take");
    verdict how = decide(c, work, &taken[0], len, &failed_at);
    listen(c, work, taken, failed_at + 1);
    for (size_t i = 0; i < len; i++) {
        lk_target target = { .offset = taken[i].offset, .delivery = taken[i].delivery };
        targets[i] = target;
    }
    atomic_fetch_add(&c->batches, 1);
    return settle(c, work, turn, targets, len, how, failed_at);
}

static void run_turn(client *c, assignment *work)
{
    next_step next = NEXT_BATCH;
    lk_turn turn;
    int32_t end;
    lk_status status = lk_process_queue_begin_turn(work->queue, now_ms(c), &turn);
    /* Busy left a note: the turn that is running will be told to run again. */
    if (status == LK_BUSY || status == LK_CLOSED)
        return;
    expect(status, "lk_process_queue_begin_turn");
    orders_ledger_entered(c->ledger, work->queue_id);
    for (int i = 0; i < TURN_BATCHES_MAX && next == NEXT_BATCH; i++)
        next = consume_batch(c, work, turn);
    orders_ledger_left(c->ledger, work->queue_id);
    expect(lk_turn_end(work->queue, turn, now_ms(c), &end), "lk_turn_end");
    if (end == LK_TURN_END_HAND_OVER)
        hand_over(c, work);
    else if (end == LK_TURN_END_RUN_AGAIN)
        submit(c, work,
               next == NEXT_SUSPEND ? now_ms(c) + (int64_t)c->settings->suspend_ms : 0);
}

void *work_loop(void *argument)
{
    client *c = argument;
    assignment *work;
    while ((work = next_task(c)) != NULL) {
        run_turn(c, work);
        let_go(work);
    }
    return NULL;
}
