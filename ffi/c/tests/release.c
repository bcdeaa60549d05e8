/* The release callback: exactly once for each payload, after the call took effect, free to call
 * anything, its own queue and free included (C4, C5, W12). */
#include "host.h"

/* A callback that acts on the queue its payload came from. */
typedef struct actor {
    lk_process_queue *queue;
    lk_turn turn;
    int64_t next;     /* puts this many more messages, one per release */
    int64_t last;
    int free_on;      /* frees the queue on this release, if > 0 */
    int in_callback;
    int released;
    int freed_data;
    int commit_again; /* commits in the same turn from the callback */
    lk_status nested;
} actor;

static void act(void *user_data, uint64_t payload)
{
    actor *a = (actor *)user_data;
    int64_t safe = -1;
    (void)payload;
    a->released++;
    a->in_callback++;
    if (a->queue != NULL) {
        /* The operation has taken effect. */
        CHECK_STATUS(lk_process_queue_safe_offset(a->queue, &safe), LK_OK);
        if (a->next < a->last) {
            /* The role is free: the callback may put, and take, in the very turn. */
            lk_message message = host_message(a->next++, 1);
            lk_put_result put;
            CHECK_STATUS(lk_process_queue_put(a->queue, &message, 1, 0, -1, &put), LK_OK);
            CHECK_EQ(put.accepted, 1);
        }
        if (a->commit_again) {
            lk_delivery taken[1];
            lk_commit_result result;
            size_t len = 0;
            a->commit_again = 0;
            CHECK_STATUS(lk_turn_take(a->queue, a->turn, 0, taken, 1, &len), LK_OK);
            a->nested = lk_turn_commit(a->queue, a->turn, 0, &result);
        }
        if (a->released == a->free_on) {
            lk_process_queue *queue = a->queue;
            a->queue = NULL;
            lk_process_queue_free(queue);
        }
    }
    a->in_callback--;
}

static void end_act(void *user_data)
{
    actor *a = (actor *)user_data;
    CHECK_EQ(a->in_callback, 0); /* no callback runs any more with this data */
    a->freed_data++;
}

static lk_process_queue *acting_queue(actor *a, int32_t mode)
{
    lk_process_queue_config config = LK_PROCESS_QUEUE_CONFIG_INIT;
    lk_process_queue *queue = NULL;
    config.mode = mode;
    memset(a, 0, sizeof(*a));
    CHECK_STATUS(lk_process_queue_new(&config, &queue, NULL, act, end_act, a), LK_OK);
    a->queue = queue;
    return queue;
}

static void callback_uses_its_queue(void)
{
    actor a;
    lk_process_queue *queue = acting_queue(&a, LK_MODE_ORDERLY);
    lk_delivery taken[8];
    lk_commit_result result;
    size_t len = 0;
    int32_t end = -1;

    host_put(queue, 0, 4);
    a.next = 4;
    a.last = 7;
    a.commit_again = 1;
    CHECK_STATUS(lk_process_queue_begin_turn(queue, 0, &a.turn), LK_OK);
    CHECK_STATUS(lk_turn_take(queue, a.turn, 0, taken, 3, &len), LK_OK);
    CHECK_STATUS(lk_turn_commit(queue, a.turn, 0, &result), LK_OK);
    CHECK_EQ(result.safe_offset, 3); /* as it was when the commit took effect */
    CHECK_STATUS(a.nested, LK_OK);
    CHECK_EQ(a.released, 4);
    CHECK_EQ(host_safe_offset(queue), 4);
    CHECK_EQ(host_count(queue), 3);
    CHECK_STATUS(lk_turn_end(queue, a.turn, 0, &end), LK_OK);
    a.queue = NULL;
    lk_process_queue_free(queue);
    CHECK_EQ(a.released, 7);
    CHECK_EQ(a.freed_data, 1);
}

/* The callback frees the last reference while the call that runs it is in progress: the call
 * holds its own, so the other payloads come too, and then the user data ends. */
static void callback_frees_its_queue(int how)
{
    actor a;
    lk_process_queue *queue = acting_queue(&a, how == 4 ? LK_MODE_CONCURRENT : LK_MODE_ORDERLY);
    lk_delivery taken[8];
    size_t len = 0;
    int released_before = 0;

    host_put(queue, 0, 6);
    if (how == 4) {
        lk_consumer consumer;
        lk_complete_result result;
        lk_target targets[2];
        targets[0] = host_target(0, 0);
        targets[1] = host_target(1, 0);
        CHECK_STATUS(lk_process_queue_begin_consumer(queue, &consumer), LK_OK);
        CHECK_STATUS(lk_consumer_take(queue, consumer, 0, taken, 3, &len), LK_OK);
        a.free_on = 1;
        CHECK_STATUS(lk_consumer_complete(queue, consumer, targets, 2, 0, NULL, &result), LK_OK);
        CHECK_EQ(result.finished, 2);
    } else if (how == 3) {
        lk_message batch[3];
        lk_put_result put;
        batch[0] = host_message(0, 1);
        batch[1] = host_message(1, 1);
        batch[2] = host_message(6, 1);
        a.free_on = 1;
        CHECK_STATUS(lk_process_queue_put(queue, batch, 3, 0, -1, &put), LK_OK);
        CHECK_EQ(put.duplicate, 2);
        released_before = 3; /* two refused, and one message more */
    } else {
        CHECK_STATUS(lk_process_queue_begin_turn(queue, 0, &a.turn), LK_OK);
        CHECK_STATUS(lk_turn_take(queue, a.turn, 0, taken, 3, &len), LK_OK);
        if (how == 0) {
            lk_commit_result result;
            a.free_on = 2;
            CHECK_STATUS(lk_turn_commit(queue, a.turn, 0, &result), LK_OK);
            CHECK_EQ(result.finished, 3);
        } else if (how == 1) {
            lk_close_result result;
            a.free_on = 1;
            CHECK_STATUS(lk_process_queue_close(queue, 0, &result), LK_OK);
        } else {
            lk_close_result result;
            int32_t end = -1;
            CHECK_STATUS(lk_process_queue_close(queue, 0, &result), LK_OK);
            CHECK_EQ(a.released, 3);
            a.free_on = 4;
            CHECK_STATUS(lk_turn_end(queue, a.turn, 0, &end), LK_OK);
            CHECK_EQ(end, LK_TURN_END_HAND_OVER);
        }
    }
    CHECK(a.queue == NULL);
    CHECK_EQ(a.released, 6 + released_before);
    CHECK_EQ(a.freed_data, 1);
}

static void clones_share_the_queue(void)
{
    host h;
    lk_process_queue *queue = host_queue(&h, LK_MODE_ORDERLY);
    lk_process_queue *clone = NULL;
    CHECK_STATUS(lk_process_queue_clone(queue, &clone), LK_OK);
    host_put(queue, 0, 2);
    lk_process_queue_free(queue);
    CHECK_EQ(h.total, 0);
    CHECK_EQ(host_count(clone), 2);
    host_end(&h, clone, 2);
}

/* More than the queue keeps on the stack, through each way out. */
static void large_batches(void)
{
    host h;
    lk_process_queue *queue = host_queue(&h, LK_MODE_ORDERLY);
    lk_turn turn;
    static lk_delivery taken[600];
    lk_commit_result result;
    lk_close_result closed;
    size_t len = 0;
    int32_t end = -1;

    host_put(queue, 0, 512);
    host_put(queue, 512, 512);
    host_put(queue, 1024, 512);
    CHECK_STATUS(lk_process_queue_begin_turn(queue, 0, &turn), LK_OK);
    CHECK_STATUS(lk_turn_take(queue, turn, 0, taken, 600, &len), LK_OK);
    CHECK_EQ(len, 600);
    CHECK_STATUS(lk_turn_commit(queue, turn, 0, &result), LK_OK);
    CHECK_EQ(h.total, 600);
    CHECK_STATUS(lk_turn_take(queue, turn, 0, taken, 300, &len), LK_OK);
    CHECK_STATUS(lk_process_queue_close(queue, 0, &closed), LK_OK);
    CHECK_EQ(h.total, 1236);
    CHECK_STATUS(lk_turn_end(queue, turn, 0, &end), LK_OK);
    CHECK_EQ(h.total, 1536);
    CHECK_EQ(host_live(queue), 0);
    host_end(&h, queue, 1536);
    queue = host_queue(&h, LK_MODE_ORDERLY);
    host_put(queue, 0, 512);
    host_end(&h, queue, 512);
}

static void no_callbacks_at_all(void)
{
    lk_process_queue_config config = LK_PROCESS_QUEUE_CONFIG_INIT;
    lk_process_queue *queue = NULL;
    CHECK_STATUS(lk_process_queue_new(&config, &queue, NULL, NULL, NULL, NULL), LK_OK);
    host_put(queue, 0, 9);
    CHECK_EQ(host_put(queue, 0, 9).duplicate, 9);
    CHECK_EQ(host_live(queue), 9);
    lk_process_queue_free(queue);
    lk_process_queue_free(NULL);
}

int main(void)
{
    int how;
    callback_uses_its_queue();
    for (how = 0; how < 5; how++) {
        callback_frees_its_queue(how);
    }
    clones_share_the_queue();
    large_batches();
    no_callbacks_at_all();
    return check_end("release");
}
