/* Puller, consumer and observer threads on one queue, made for ThreadSanitizer (report 10): first
 * an orderly queue with one turn thread, then a concurrent one with two consumers. Every payload
 * is a pointer to memory that the puller writes and the consumer reads, so that a missing
 * happens-before is a report, and the release callback frees it, so that a double release is one
 * too. Usage: stress [messages] */
#include <pthread.h>
#include <sched.h>

#include "check.h"

enum { BATCH = 32, CACHED_MAX = 1000 };

typedef struct body {
    int64_t offset;
    int64_t check;
} body;

typedef struct shared {
    lk_process_queue *queue;
    int64_t messages;
    int concurrent;
    pthread_mutex_t mutex;
    int64_t finished;   /* under mutex */
    int64_t wrong;      /* under mutex */
    int64_t observed;   /* under mutex */
    int64_t closed_at;  /* under mutex */
} shared;

static pthread_mutex_t release_mutex = PTHREAD_MUTEX_INITIALIZER;
static int64_t released;

static void release(void *user_data, uint64_t payload)
{
    (void)user_data;
    pthread_mutex_lock(&release_mutex);
    released++;
    pthread_mutex_unlock(&release_mutex);
    free((void *)(uintptr_t)payload);
}

static void add(shared *s, int64_t finished, int64_t wrong)
{
    pthread_mutex_lock(&s->mutex);
    s->finished += finished;
    s->wrong += wrong;
    pthread_mutex_unlock(&s->mutex);
}

static int64_t finished_now(shared *s)
{
    int64_t finished;
    pthread_mutex_lock(&s->mutex);
    finished = s->finished;
    pthread_mutex_unlock(&s->mutex);
    return finished;
}

static void *puller(void *argument)
{
    shared *s = (shared *)argument;
    int64_t next = 0;
    int64_t wrong = 0;
    while (next < s->messages) {
        lk_message batch[BATCH];
        lk_put_result put;
        uint64_t count = 0;
        int i;
        int n = s->messages - next < BATCH ? (int)(s->messages - next) : BATCH;
        wrong += lk_process_queue_count(s->queue, &count) != LK_OK;
        if (count > CACHED_MAX) {
            sched_yield();
            continue;
        }
        for (i = 0; i < n; i++) {
            body *b = (body *)malloc(sizeof(body));
            b->offset = next + i;
            b->check = ~b->offset;
            batch[i].offset = b->offset;
            batch[i].payload = (uint64_t)(uintptr_t)b;
            batch[i].size = (uint32_t)sizeof(body);
            batch[i].attempts = 0;
        }
        wrong += lk_process_queue_put(s->queue, batch, (size_t)n, next, s->messages, &put) != LK_OK;
        wrong += put.accepted != (uint32_t)n;
        next += n;
    }
    add(s, 0, wrong);
    return NULL;
}

static int64_t wrong_bodies(const lk_delivery *taken, size_t len)
{
    int64_t wrong = 0;
    size_t i;
    for (i = 0; i < len; i++) {
        const body *b = (const body *)(uintptr_t)taken[i].payload;
        wrong += b->offset != taken[i].offset || b->check != ~b->offset;
    }
    return wrong;
}

static void *orderly_consumer(void *argument)
{
    shared *s = (shared *)argument;
    int64_t expected = 0;
    int64_t done = 0;
    unsigned round = 0;
    while (done < s->messages) {
        lk_turn turn;
        int32_t end = -1;
        int64_t wrong = 0;
        int turns = 0;
        wrong += lk_process_queue_begin_turn(s->queue, 0, &turn) != LK_OK;
        while (turns++ < 50) {
            lk_delivery taken[BATCH];
            lk_commit_result committed;
            size_t len = 0;
            size_t i;
            lk_status status = lk_turn_take(s->queue, turn, 0, taken, 1 + round % BATCH, &len);
            if (status == LK_EMPTY) {
                sched_yield();
                break;
            }
            wrong += status != LK_OK;
            for (i = 0; i < len; i++) {
                wrong += taken[i].offset != expected + (int64_t)i;
            }
            wrong += wrong_bodies(taken, len);
            if (++round % 7 == 0) {
                uint32_t back = 0;
                wrong += lk_turn_rollback(s->queue, turn, 0, &back) != LK_OK || back != len;
                continue;
            }
            wrong += lk_turn_commit(s->queue, turn, 0, &committed) != LK_OK;
            wrong += committed.finished != len;
            expected += (int64_t)len;
            done += (int64_t)len;
            add(s, (int64_t)len, 0);
        }
        wrong += lk_turn_end(s->queue, turn, 0, &end) != LK_OK;
        add(s, 0, wrong);
    }
    return NULL;
}

/* Finishes all targets; answers how many that were, or -1 if the answers were wrong. */
static int64_t complete(shared *s, lk_consumer consumer, const lk_target *targets, size_t len)
{
    lk_complete_result result;
    lk_status status = lk_consumer_complete(s->queue, consumer, targets, len, 0, NULL, &result);
    return status == LK_OK && result.finished == len ? (int64_t)len : -1;
}

/* Puts the first target back; answers 0, or -1 if the answers were wrong. */
static int64_t requeue(shared *s, lk_consumer consumer, const lk_target *target)
{
    lk_requeue_result result;
    lk_status status =
        lk_consumer_requeue(s->queue, consumer, target, 1, 1, 0, NULL, &result);
    return status == LK_OK && result.requeued == 1 ? 0 : -1;
}

/* Finishes the target by a claim; answers 1, or -1 if the answers were wrong. */
static int64_t send_back(shared *s, lk_consumer consumer, const lk_target *target)
{
    lk_claim claim;
    lk_complete_result result;
    int32_t outcome = -1;
    size_t won = 0;
    lk_status status =
        lk_consumer_claim(s->queue, consumer, target, 1, 0, &claim, &outcome, &won);
    if (status != LK_OK || won != 1 || outcome != LK_OUTCOME_WON) {
        return -1;
    }
    status = lk_claim_settle(s->queue, claim, LK_SETTLE_SENT, 0, 0, &result);
    return status == LK_OK && result.finished == 1 ? 1 : -1;
}

static void *concurrent_consumer(void *argument)
{
    shared *s = (shared *)argument;
    lk_consumer consumer;
    int64_t wrong = 0;
    unsigned round = 0;
    wrong += lk_process_queue_begin_consumer(s->queue, &consumer) != LK_OK;
    while (finished_now(s) < s->messages) {
        lk_delivery taken[BATCH];
        lk_target targets[BATCH];
        int64_t first;
        int64_t rest;
        size_t len = 0;
        size_t i;
        size_t room = 1 + round++ % BATCH;
        lk_status status = lk_consumer_take(s->queue, consumer, 0, taken, room, &len);
        if (status == LK_EMPTY) {
            sched_yield();
            continue;
        }
        wrong += status != LK_OK;
        wrong += wrong_bodies(taken, len);
        for (i = 0; i < len; i++) {
            /* In another order than taken. */
            targets[len - 1 - i].offset = taken[i].offset;
            targets[len - 1 - i].delivery = taken[i].delivery;
            targets[len - 1 - i].reserved = 0;
        }
        if (round % 5 == 0) {
            first = requeue(s, consumer, targets);
        } else if (round % 5 == 1) {
            first = send_back(s, consumer, targets);
        } else {
            first = complete(s, consumer, targets, 1);
        }
        rest = complete(s, consumer, targets + 1, len - 1);
        wrong += first < 0 || rest < 0;
        add(s, first + rest, 0);
    }
    wrong += lk_consumer_end(s->queue, consumer) != LK_OK;
    add(s, 0, wrong);
    return NULL;
}

static void *observer(void *argument)
{
    shared *s = (shared *)argument;
    lk_process_queue *queue = NULL;
    int64_t safe_before = 0;
    int64_t pull_before = 0;
    int64_t rounds = 0;
    int64_t wrong = 0;
    wrong += lk_process_queue_clone(s->queue, &queue) != LK_OK;
    while (finished_now(s) < s->messages) {
        lk_snapshot cut;
        lk_expired late[4];
        int64_t safe = -1;
        int64_t pull = -1;
        int64_t span = -1;
        uint64_t bytes = 0;
        size_t len = 0;
        bool flag = true;
        wrong += lk_process_queue_safe_offset(queue, &safe) != LK_OK;
        wrong += lk_process_queue_pull_offset(queue, &pull) != LK_OK;
        wrong += lk_process_queue_span(queue, &span) != LK_OK || span < 0;
        wrong += lk_process_queue_bytes(queue, &bytes) != LK_OK;
        wrong += lk_process_queue_is_closed(queue, &flag) != LK_OK || flag;
        wrong += lk_process_queue_snapshot(queue, 0, &cut) != LK_OK;
        wrong += cut.count != cut.cached_count + cut.in_flight_count + cut.claimed_count;
        wrong += cut.bytes != cut.count * sizeof(body);
        wrong += lk_process_queue_expired(queue, 1, INT64_MAX, late, 4, &len) != LK_OK;
        wrong += safe > pull || safe < safe_before || pull < pull_before;
        safe_before = safe;
        pull_before = pull;
        rounds++;
    }
    lk_process_queue_free(queue);
    pthread_mutex_lock(&s->mutex);
    s->observed += rounds;
    s->wrong += wrong;
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

static void run(int64_t messages, int concurrent)
{
    shared s;
    pthread_t threads[5];
    int count = 0;
    int i;
    lk_process_queue_config config = LK_PROCESS_QUEUE_CONFIG_INIT;
    lk_close_result closed;
    memset(&s, 0, sizeof(s));
    s.messages = messages;
    s.concurrent = concurrent;
    pthread_mutex_init(&s.mutex, NULL);
    released = 0;
    config.mode = concurrent ? LK_MODE_CONCURRENT : LK_MODE_ORDERLY;
    CHECK_STATUS(lk_process_queue_new(&config, &s.queue, NULL, release, NULL, NULL), LK_OK);
    pthread_create(&threads[count++], NULL, puller, &s);
    pthread_create(&threads[count++], NULL, observer, &s);
    if (concurrent) {
        pthread_create(&threads[count++], NULL, concurrent_consumer, &s);
        pthread_create(&threads[count++], NULL, concurrent_consumer, &s);
    } else {
        pthread_create(&threads[count++], NULL, orderly_consumer, &s);
    }
    for (i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_EQ(s.wrong, 0);
    CHECK_EQ(s.finished, messages);
    CHECK_EQ(released, messages);
    CHECK_STATUS(lk_process_queue_close(s.queue, 0, &closed), LK_OK);
    CHECK_EQ(closed.safe_offset, messages);
    CHECK(s.observed > 0);
    lk_process_queue_free(s.queue);
    CHECK_EQ(released, messages);
    printf("%s: %" PRId64 " messages, %" PRId64 " looks by the observer\n",
           concurrent ? "concurrent" : "orderly", messages, s.observed);
    pthread_mutex_destroy(&s.mutex);
}

int main(int argc, char **argv)
{
    int64_t messages = argc > 1 ? (int64_t)atoll(argv[1]) : 50000;
    run(messages, 0);
    run(messages, 1);
    return check_end("stress");
}
