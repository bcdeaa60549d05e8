/* Tokens are checked (W0, T3): stale, foreign, zero, of the wrong mode, used by two threads. */
#include <pthread.h>

#include "host.h"

static void stale_and_foreign_turns(void)
{
    host h1;
    host h2;
    lk_process_queue *first = host_queue(&h1, LK_MODE_ORDERLY);
    lk_process_queue *second = host_queue(&h2, LK_MODE_ORDERLY);
    lk_turn turn;
    lk_turn other;
    lk_turn zero;
    lk_delivery taken[2];
    lk_commit_result committed;
    size_t len = 0;
    uint32_t rolled_back = 0;
    int32_t end = -1;
    uint64_t bit;

    memset(&zero, 0, sizeof(zero));
    host_put(first, 0, 2);
    host_put(second, 0, 2);
    CHECK_STATUS(lk_process_queue_begin_turn(first, 0, &turn), LK_OK);
    CHECK_STATUS(lk_process_queue_begin_turn(second, 0, &other), LK_OK);
    CHECK_STATUS(lk_turn_take(first, turn, 0, taken, 2, &len), LK_OK);

    CHECK_STATUS(lk_turn_commit(first, other, 0, &committed), LK_STALE);
    CHECK_STATUS(lk_turn_take(second, turn, 0, taken, 2, &len), LK_STALE);
    CHECK_STATUS(lk_turn_commit(first, zero, 0, &committed), LK_STALE);
    CHECK_STATUS(lk_turn_end(first, other, 0, &end), LK_STALE);
    /* No single wrong bit makes a token of another one. */
    for (bit = 0; bit < 64; bit++) {
        lk_turn forged = turn;
        forged.token ^= (uint64_t)1 << bit;
        CHECK_STATUS(lk_turn_rollback(first, forged, 0, &rolled_back), LK_STALE);
    }
    CHECK_STATUS(lk_turn_commit(first, turn, 0, &committed), LK_OK);
    CHECK_STATUS(lk_turn_end(first, turn, 0, &end), LK_OK);
    CHECK_EQ(end, LK_TURN_END_NOTHING);

    /* The next turn of the same queue is another one. */
    other = turn;
    CHECK_STATUS(lk_process_queue_begin_turn(first, 0, &turn), LK_OK);
    CHECK_STATUS(lk_turn_end(first, other, 0, &end), LK_STALE);
    CHECK_STATUS(lk_turn_commit(first, other, 0, &committed), LK_STALE);
    CHECK_STATUS(lk_turn_end(first, turn, 0, &end), LK_OK);
    lk_process_queue_free(first);
    lk_process_queue_free(second);
    CHECK_EQ(h1.total, 2);
    CHECK_EQ(h2.total, 2);
}

static void busy_turn_leaves_a_note(void)
{
    host h;
    lk_process_queue *queue = host_queue(&h, LK_MODE_ORDERLY);
    lk_turn turn;
    lk_turn second;
    int32_t end = -1;

    CHECK_STATUS(lk_process_queue_begin_turn(queue, 0, &turn), LK_OK);
    CHECK_STATUS(lk_process_queue_begin_turn(queue, 0, &second), LK_BUSY);
    CHECK_STATUS(lk_turn_end(queue, turn, 0, &end), LK_OK);
    CHECK_EQ(end, LK_TURN_END_RUN_AGAIN); /* T1 */
    CHECK_STATUS(lk_process_queue_begin_turn(queue, 0, &turn), LK_OK);
    CHECK_STATUS(lk_turn_end(queue, turn, 0, &end), LK_OK);
    CHECK_EQ(end, LK_TURN_END_NOTHING);
    host_end(&h, queue, 0);
}

static void wrong_mode(void)
{
    host h;
    lk_process_queue *orderly = host_queue(&h, LK_MODE_ORDERLY);
    lk_turn turn;
    lk_consumer consumer;
    lk_expired late[1];
    size_t len = 9;

    CHECK_STATUS(lk_process_queue_begin_consumer(orderly, &consumer), LK_ERR_WRONG_MODE);
    CHECK_STATUS(lk_process_queue_expired(orderly, 0, 0, late, 1, &len), LK_OK);
    CHECK_EQ(len, 0);
    host_end(&h, orderly, 0);
    {
        lk_process_queue *concurrent = host_queue(&h, LK_MODE_CONCURRENT);
        CHECK_STATUS(lk_process_queue_begin_turn(concurrent, 0, &turn), LK_ERR_WRONG_MODE);
        host_end(&h, concurrent, 0);
    }
}

static void stale_and_foreign_consumers(void)
{
    host h1;
    host h2;
    lk_process_queue *first = host_queue(&h1, LK_MODE_CONCURRENT);
    lk_process_queue *second = host_queue(&h2, LK_MODE_CONCURRENT);
    lk_consumer mine;
    lk_consumer other;
    lk_delivery taken[2];
    lk_complete_result result;
    lk_target target = host_target(0, 0);
    lk_claim claim;
    int32_t outcome = -1;
    size_t len = 0;
    size_t won = 0;
    uint64_t bit;

    host_put(first, 0, 2);
    host_put(second, 0, 2);
    CHECK_STATUS(lk_process_queue_begin_consumer(first, &mine), LK_OK);
    CHECK_STATUS(lk_process_queue_begin_consumer(second, &other), LK_OK);
    CHECK_STATUS(lk_consumer_take(second, mine, 0, taken, 2, &len), LK_STALE);
    CHECK_STATUS(lk_consumer_take(first, other, 0, taken, 2, &len), LK_STALE);
    for (bit = 0; bit < 64; bit++) {
        lk_consumer forged = mine;
        forged.token ^= (uint64_t)1 << bit;
        CHECK_STATUS(lk_consumer_take(first, forged, 0, taken, 2, &len), LK_STALE);
        CHECK_STATUS(lk_consumer_complete(first, forged, NULL, 0, 0, NULL, &result), LK_STALE);
    }
    CHECK_STATUS(lk_consumer_take(first, mine, 0, taken, 1, &len), LK_OK);
    CHECK_STATUS(lk_consumer_take(second, other, 0, taken, 1, &len), LK_OK);
    CHECK_STATUS(lk_consumer_claim(first, mine, &target, 1, 0, &claim, &outcome, &won), LK_OK);
    CHECK_STATUS(lk_claim_settle(second, claim, LK_SETTLE_SENT, 0, 0, &result), LK_STALE);
    CHECK_STATUS(lk_claim_settle(first, claim, LK_SETTLE_SENT, 0, 0, &result), LK_OK);
    CHECK_STATUS(lk_consumer_end(first, mine), LK_OK);
    CHECK_STATUS(lk_consumer_end(second, other), LK_OK);
    host_end(&h1, first, 2);
    host_end(&h2, second, 2);
}

/* One handle used by many threads at once: every answer is OK, EMPTY, NOTHING or BUSY, nothing is
 * lost and nothing comes twice. */
enum { RACERS = 4, ROUNDS = 4000 };

typedef struct race {
    lk_process_queue *queue;
    lk_turn turn;
    lk_consumer consumer;
    int concurrent;
    uint64_t busy;
    uint64_t wrong;
    uint64_t finished;
    int64_t next;
} race;

static pthread_mutex_t sums = PTHREAD_MUTEX_INITIALIZER;

static void *racer(void *argument)
{
    race *r = (race *)argument;
    uint64_t busy = 0;
    uint64_t wrong = 0;
    uint64_t finished = 0;
    int i;
    for (i = 0; i < ROUNDS; i++) {
        lk_delivery taken[4];
        size_t len = 0;
        lk_status status;
        if (r->concurrent) {
            lk_complete_result result;
            lk_target targets[4];
            size_t k;
            status = lk_consumer_take(r->queue, r->consumer, 0, taken, 4, &len);
            wrong += status != LK_OK && status != LK_BUSY && status != LK_EMPTY;
            busy += status == LK_BUSY;
            if (status != LK_OK) {
                continue;
            }
            for (k = 0; k < len; k++) {
                targets[k] = host_target(taken[k].offset, taken[k].delivery);
            }
            do {
                status = lk_consumer_complete(r->queue, r->consumer, targets, len, 0, NULL,
                                              &result);
                busy += status == LK_BUSY;
            } while (status == LK_BUSY);
            wrong += status != LK_OK || result.finished != len;
            finished += result.finished;
        } else {
            lk_commit_result result;
            status = lk_turn_take(r->queue, r->turn, 0, taken, 4, &len);
            wrong += status != LK_OK && status != LK_BUSY && status != LK_EMPTY;
            busy += status == LK_BUSY;
            status = lk_turn_commit(r->queue, r->turn, 0, &result);
            wrong += status != LK_OK && status != LK_BUSY && status != LK_NOTHING;
            busy += status == LK_BUSY;
            if (status == LK_OK) {
                finished += result.finished;
            }
        }
    }
    pthread_mutex_lock(&sums);
    r->busy += busy;
    r->wrong += wrong;
    r->finished += finished;
    pthread_mutex_unlock(&sums);
    return NULL;
}

/* Puts from its own thread, so that put against put is raced as well: two of these run. */
static void *putter(void *argument)
{
    race *r = (race *)argument;
    int i;
    for (i = 0; i < ROUNDS; i++) {
        lk_message message;
        lk_put_result put = {0, 0, 0, 0};
        lk_status status;
        pthread_mutex_lock(&sums);
        message = host_message(r->next++, 1);
        pthread_mutex_unlock(&sums);
        do {
            status = lk_process_queue_put(r->queue, &message, 1, 0, LK_BROKER_MAX_UNKNOWN, &put);
        } while (status == LK_BUSY);
        pthread_mutex_lock(&sums);
        r->wrong += status != LK_OK;
        /* The two threads overtake each other: a message may have become stale. */
        r->finished += put.stale;
        pthread_mutex_unlock(&sums);
    }
    return NULL;
}

static void two_threads_in_one_role(int concurrent)
{
    race r;
    pthread_t threads[RACERS + 2];
    int32_t end = -1;
    int i;
    uint64_t live = 1;

    memset(&r, 0, sizeof(r));
    r.concurrent = concurrent;
    {
        lk_process_queue_config config = LK_PROCESS_QUEUE_CONFIG_INIT;
        config.mode = concurrent ? LK_MODE_CONCURRENT : LK_MODE_ORDERLY;
        CHECK_STATUS(lk_process_queue_new(&config, &r.queue, NULL, NULL, NULL, NULL), LK_OK);
    }
    if (concurrent) {
        CHECK_STATUS(lk_process_queue_begin_consumer(r.queue, &r.consumer), LK_OK);
    } else {
        CHECK_STATUS(lk_process_queue_begin_turn(r.queue, 0, &r.turn), LK_OK);
    }
    for (i = 0; i < RACERS + 2; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, i < 2 ? putter : racer, &r), 0);
    }
    for (i = 0; i < RACERS + 2; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    CHECK_EQ(r.wrong, 0);
    if (concurrent) {
        lk_delivery taken[4];
        size_t len = 0;
        while (lk_consumer_take(r.queue, r.consumer, 0, taken, 4, &len) == LK_OK) {
            lk_complete_result result;
            lk_target targets[4];
            size_t k;
            for (k = 0; k < len; k++) {
                targets[k] = host_target(taken[k].offset, 0);
            }
            CHECK_STATUS(
                lk_consumer_complete(r.queue, r.consumer, targets, len, 0, NULL, &result), LK_OK);
            r.finished += result.finished;
        }
        CHECK_STATUS(lk_consumer_end(r.queue, r.consumer), LK_OK);
    } else {
        lk_delivery taken[4];
        size_t len = 0;
        lk_commit_result result;
        while (lk_turn_take(r.queue, r.turn, 0, taken, 4, &len) == LK_OK) {
        }
        if (lk_turn_commit(r.queue, r.turn, 0, &result) == LK_OK) {
            r.finished += result.finished;
        }
        CHECK_STATUS(lk_turn_end(r.queue, r.turn, 0, &end), LK_OK);
    }
    CHECK_EQ(r.finished, 2 * ROUNDS);
    CHECK_EQ(host_count(r.queue), 0);
    CHECK_STATUS(lk_process_queue_payloads_live(r.queue, &live), LK_OK);
    CHECK_EQ(live, 0);
    printf("two threads in one role, %s: answered BUSY %" PRIu64 " times\n",
           concurrent ? "concurrent" : "orderly", r.busy);
    lk_process_queue_free(r.queue);
}

int main(void)
{
    stale_and_foreign_turns();
    busy_turn_leaves_a_note();
    wrong_mode();
    stale_and_foreign_consumers();
    two_threads_in_one_role(0);
    two_threads_in_one_role(1);
    return check_end("tokens");
}
