/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The workloads of benches/compare, called from C: the same harness, message for message, as
 * benches/compare/harness.rs. It does one run and prints {"elapsed_ns", "units"}; the Rust
 * program builds it, calls it among its own runs, and puts the results into the same table:
 *
 *   bench_compare WORKLOAD BATCHES CORE PULLER_CORE
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lanekeeper.h"

enum {
    PULL_BATCH = 32,      /* messages in one pull */
    RING_MESSAGES = 8192, /* messages in the ring, unless more have to be cached at once */
    COUNT_LIMIT = 1000,   /* flow control: the puller waits while more are outstanding */
    HELD = 64,            /* messages that the out-of-order consumer holds */
    WARM_BATCHES = 256    /* before the clock of a workload with one thread starts */
};

/* One message of the host: what a payload points to. */
typedef struct ring_message {
    _Atomic int64_t offset;
    uint32_t size;
} ring_message;

typedef enum workload_kind { ONE_THREAD, TWO_THREADS, ANY_ORDER, ROLLBACK } workload_kind;

typedef struct workload {
    const char *name;
    workload_kind kind;
    size_t take;
    int64_t stride;
    size_t cached;
} workload;

/* What the caller asked for. */
typedef struct order {
    const workload *work;
    uint64_t batches;
    size_t core;
    size_t puller_core;
} order;

static const workload WORKLOADS[] = {
    {"B1", ONE_THREAD, 1, 1, 0},       {"B1b", ONE_THREAD, 32, 1, 0},
    {"B2", TWO_THREADS, 1, 1, 0},      {"B2b", TWO_THREADS, 32, 1, 0},
    {"B3", ANY_ORDER, 1, 1, 0},        {"B4", ROLLBACK, 32, 1, 1000},
    {"B5", ONE_THREAD, 32, 97, 0},     {"B8-0", ONE_THREAD, 32, 1, 0},
    {"B8-1k", ONE_THREAD, 32, 1, 1000}, {"B8-100k", ONE_THREAD, 32, 1, 100000},
    {"B8-1M", ONE_THREAD, 32, 1, 1000000},
};

static inline void spin(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

__attribute__((cold, noreturn)) static void wrong(const char *what, int64_t expected,
                                                  int64_t found)
{
    fprintf(stderr, "%s: expected %lld, found %lld\n", what, (long long)expected,
            (long long)found);
    exit(1);
}

static void must(lk_status status, const char *what)
{
    if (status != LK_OK) {
        fprintf(stderr, "%s: %s\n", what, lk_status_name(status));
        exit(1);
    }
}

static uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The time the host tells. It goes on now and then, at about the pace of a real clock. */
static inline int64_t now_ms(uint64_t batches)
{
    return (int64_t)(batches >> 11);
}

/* Pins the calling thread. The cores are told, since the mask that is inherited from a pinned
 * parent would say that there is one. */
static void pin(size_t core)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    if (pthread_setaffinity_np(pthread_self(), sizeof one, &one) != 0) {
        fputs("warning: a thread could not be pinned to its core\n", stderr);
    }
}

/* The puller: asks flow control, pulls and puts. */
typedef struct feed {
    lk_process_queue *queue;
    ring_message *ring;
    size_t ring_mask;
    size_t next_index;
    int64_t next_offset;
    int64_t stride;
    uint64_t batches;
    uint64_t limit;
    lk_message batch[PULL_BATCH];
} feed;

static void feed_init(feed *feed, lk_process_queue *queue, const workload *work)
{
    size_t messages = RING_MESSAGES;
    while (messages < work->cached + 2048) {
        messages *= 2;
    }
    memset(feed, 0, sizeof *feed);
    feed->queue = queue;
    feed->ring = aligned_alloc(64, messages * sizeof *feed->ring);
    if (feed->ring == NULL) {
        fputs("no memory for the messages\n", stderr);
        exit(1);
    }
    for (size_t i = 0; i < messages; i++) {
        atomic_init(&feed->ring[i].offset, -1);
        feed->ring[i].size = (uint32_t)(100 + i * 37 % 900);
    }
    feed->ring_mask = messages - 1;
    feed->stride = work->stride;
    feed->limit = work->cached + COUNT_LIMIT;
}

static inline void feed_pull(feed *feed)
{
    for (;;) {
        uint64_t count;
        must(lk_process_queue_count(feed->queue, &count), "count");
        if (count <= feed->limit) {
            break;
        }
        for (int i = 0; i < 4; i++) {
            spin();
        }
    }
    ring_message *messages = &feed->ring[feed->next_index];
    for (size_t i = 0; i < PULL_BATCH; i++) {
        atomic_store_explicit(&messages[i].offset, feed->next_offset, memory_order_relaxed);
        feed->batch[i].offset = feed->next_offset;
        feed->batch[i].payload = (uint64_t)(uintptr_t)&messages[i];
        feed->batch[i].size = messages[i].size;
        feed->batch[i].attempts = 0;
        feed->next_offset += feed->stride;
    }
    feed->next_index = (feed->next_index + PULL_BATCH) & feed->ring_mask;
    lk_put_result put;
    must(lk_process_queue_put(feed->queue, feed->batch, PULL_BATCH, now_ms(feed->batches),
                              LK_BROKER_MAX_UNKNOWN, &put),
         "put");
    if (put.accepted != PULL_BATCH) {
        wrong("messages accepted", PULL_BATCH, put.accepted);
    }
    feed->batches++;
}

static void feed_fill(feed *feed, size_t cached)
{
    for (size_t i = 0; i < (cached + PULL_BATCH - 1) / PULL_BATCH; i++) {
        feed_pull(feed);
    }
}

/* The consumer's checks: every offset, and every answer. */
typedef struct check {
    int64_t next;
    int64_t stride;
    int64_t answer;
} check;

static inline void check_messages(check *check, const lk_delivery *deliveries, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const ring_message *message = (const ring_message *)(uintptr_t)deliveries[i].payload;
        int64_t offset = atomic_load_explicit(&message->offset, memory_order_relaxed);
        if (offset != check->next) {
            wrong("offset taken", check->next, offset);
        }
        check->next += check->stride;
    }
}

/* The answer never goes back, and never beyond the next message. With nobody else at work it
 * lies above everything finished, too: exact. */
static inline void check_answer(check *check, int64_t answer, bool exact)
{
    int64_t lowest = exact ? check->next - check->stride + 1 : check->answer;
    if (answer < lowest || answer > check->next) {
        wrong("offset to store", check->next, answer);
    }
    check->answer = answer;
}

static inline size_t consume(lk_process_queue *queue, lk_turn turn, size_t n, int64_t now,
                             check *check, bool exact)
{
    lk_delivery deliveries[PULL_BATCH];
    size_t len;
    lk_status status = lk_turn_take(queue, turn, now, deliveries, n, &len);
    if (status == LK_EMPTY) {
        return 0;
    }
    must(status, "take");
    check_messages(check, deliveries, len);
    lk_commit_result committed;
    must(lk_turn_commit(queue, turn, now, &committed), "commit");
    check_answer(check, committed.safe_offset, exact);
    return len;
}

static lk_process_queue *new_queue(int32_t mode)
{
    lk_process_queue_config config = LK_PROCESS_QUEUE_CONFIG_INIT;
    config.mode = mode;
    lk_process_queue *queue = NULL;
    must(lk_process_queue_new(&config, &queue, NULL, NULL, NULL, NULL), "new");
    return queue;
}

static inline void one_thread_step(feed *feed, lk_turn turn, size_t take, check *check)
{
    feed_pull(feed);
    int64_t now = now_ms(feed->batches);
    for (size_t i = 0; i < PULL_BATCH / take; i++) {
        size_t taken = consume(feed->queue, turn, take, now, check, true);
        if (taken != take) {
            wrong("messages taken", (int64_t)take, (int64_t)taken);
        }
    }
}

static uint64_t one_thread(lk_process_queue *queue, const order *order)
{
    const workload *work = order->work;
    uint64_t batches = order->batches;
    feed feed;
    feed_init(&feed, queue, work);
    check check = {0, work->stride, 0};
    lk_turn turn;
    must(lk_process_queue_begin_turn(queue, 0, &turn), "begin_turn");
    feed_fill(&feed, work->cached);
    for (uint64_t i = 0; i < WARM_BATCHES; i++) {
        one_thread_step(&feed, turn, work->take, &check);
    }
    uint64_t start = clock_ns();
    for (uint64_t i = 0; i < batches; i++) {
        one_thread_step(&feed, turn, work->take, &check);
    }
    return clock_ns() - start;
}

/* A puller thread, and what starts it together with the consumer. */
typedef struct puller {
    lk_process_queue *queue;
    const order *order;
    _Atomic int waiting;
    pthread_t thread;
} puller;

static uint64_t start_together(puller *puller)
{
    atomic_fetch_add_explicit(&puller->waiting, 1, memory_order_acq_rel);
    while (atomic_load_explicit(&puller->waiting, memory_order_acquire) < 2) {
        spin();
    }
    return clock_ns();
}

static void *puller_main(void *argument)
{
    puller *puller = argument;
    pin(puller->order->puller_core);
    feed feed;
    feed_init(&feed, puller->queue, puller->order->work);
    (void)start_together(puller);
    for (uint64_t i = 0; i < puller->order->batches; i++) {
        feed_pull(&feed);
    }
    return NULL;
}

static void puller_start(puller *puller)
{
    atomic_init(&puller->waiting, 0);
    if (pthread_create(&puller->thread, NULL, puller_main, puller) != 0) {
        fputs("no puller thread\n", stderr);
        exit(1);
    }
}

static void puller_end(puller *puller)
{
    pthread_join(puller->thread, NULL);
    uint64_t count;
    must(lk_process_queue_count(puller->queue, &count), "count");
    if (count != 0) {
        wrong("messages outstanding", 0, (int64_t)count);
    }
}

static uint64_t two_threads(lk_process_queue *queue, const order *order)
{
    const workload *work = order->work;
    uint64_t batches = order->batches;
    puller puller = {.queue = queue, .order = order};
    puller_start(&puller);
    check check = {0, work->stride, 0};
    lk_turn turn;
    must(lk_process_queue_begin_turn(queue, 0, &turn), "begin_turn");
    uint64_t total = batches * PULL_BATCH;
    uint64_t done = 0;
    uint64_t start = start_together(&puller);
    while (done < total) {
        size_t taken = consume(queue, turn, work->take, now_ms(done / PULL_BATCH), &check, false);
        if (taken == 0) {
            spin();
        }
        done += taken;
    }
    uint64_t elapsed = clock_ns() - start;
    puller_end(&puller);
    return elapsed;
}

/* A small generator of random numbers (xorshift64). */
static inline size_t random_below(uint64_t *state, size_t bound)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (size_t)(((*state >> 32) * bound) >> 32);
}

static uint64_t any_order(lk_process_queue *queue, const order *order)
{
    const workload *work = order->work;
    uint64_t batches = order->batches;
    puller puller = {.queue = queue, .order = order};
    puller_start(&puller);
    check check = {0, work->stride, 0};
    lk_consumer consumer;
    must(lk_process_queue_begin_consumer(queue, &consumer), "begin_consumer");
    uint64_t random = 0x9E3779B97F4A7C15u;
    int64_t held[HELD];
    size_t held_len = 0;
    uint64_t total = batches * PULL_BATCH;
    uint64_t taken = 0;
    uint64_t start = start_together(&puller);
    while (taken < total || held_len != 0) {
        int64_t now = now_ms(taken / PULL_BATCH);
        while (held_len < HELD && taken < total) {
            lk_delivery deliveries[HELD];
            size_t len = 0;
            lk_status status =
                lk_consumer_take(queue, consumer, now, deliveries, HELD - held_len, &len);
            if (status == LK_EMPTY) {
                spin();
                continue;
            }
            must(status, "take");
            check_messages(&check, deliveries, len);
            for (size_t i = 0; i < len; i++) {
                held[held_len++] = deliveries[i].offset;
            }
            taken += len;
        }
        size_t chosen = random_below(&random, held_len);
        lk_target target = {.offset = held[chosen]};
        held[chosen] = held[--held_len];
        lk_complete_result completed;
        must(lk_consumer_complete(queue, consumer, &target, 1, now, NULL, &completed),
             "complete");
        if (completed.finished != 1) {
            wrong("messages finished", 1, completed.finished);
        }
        check_answer(&check, completed.safe_offset, false);
    }
    uint64_t elapsed = clock_ns() - start;
    puller_end(&puller);
    return elapsed;
}

static inline void rollback_step(lk_process_queue *queue, lk_turn turn, const workload *work,
                                 uint64_t cycle)
{
    lk_delivery deliveries[PULL_BATCH];
    size_t len;
    check check = {0, work->stride, 0};
    int64_t now = now_ms(cycle);
    must(lk_turn_take(queue, turn, now, deliveries, work->take, &len), "take");
    check_messages(&check, deliveries, len);
    uint32_t back;
    must(lk_turn_rollback(queue, turn, now, &back), "rollback");
    if (len != work->take || back != len) {
        wrong("messages put back", (int64_t)work->take, back);
    }
}

static uint64_t take_and_rollback(lk_process_queue *queue, const order *order)
{
    const workload *work = order->work;
    uint64_t batches = order->batches;
    feed feed;
    feed_init(&feed, queue, work);
    feed_fill(&feed, work->cached);
    lk_turn turn;
    must(lk_process_queue_begin_turn(queue, 0, &turn), "begin_turn");
    for (uint64_t i = 0; i < WARM_BATCHES; i++) {
        rollback_step(queue, turn, work, i);
    }
    uint64_t start = clock_ns();
    for (uint64_t i = 0; i < batches; i++) {
        rollback_step(queue, turn, work, i);
    }
    return clock_ns() - start;
}

static int usage(void)
{
    fputs("usage: bench_compare WORKLOAD BATCHES CORE PULLER_CORE, with WORKLOAD one of:", stderr);
    for (size_t i = 0; i < sizeof WORKLOADS / sizeof *WORKLOADS; i++) {
        fprintf(stderr, " %s", WORKLOADS[i].name);
    }
    fputc('\n', stderr);
    return 2;
}

int main(int argc, char **argv)
{
    order order = {0};
    for (size_t i = 0; argc == 5 && i < sizeof WORKLOADS / sizeof *WORKLOADS; i++) {
        if (strcmp(WORKLOADS[i].name, argv[1]) == 0) {
            order.work = &WORKLOADS[i];
        }
    }
    if (order.work == NULL) {
        return usage();
    }
    order.batches = strtoull(argv[2], NULL, 10);
    order.core = strtoull(argv[3], NULL, 10);
    order.puller_core = strtoull(argv[4], NULL, 10);
    if (order.batches == 0 || order.core >= CPU_SETSIZE || order.puller_core >= CPU_SETSIZE) {
        return usage();
    }
    if (!lk_abi_matches()) {
        fputs("the library is not the one of the header\n", stderr);
        return 1;
    }
    pin(order.core);
    const workload *work = order.work;
    lk_process_queue *queue =
        new_queue(work->kind == ANY_ORDER ? LK_MODE_CONCURRENT : LK_MODE_ORDERLY);
    uint64_t units = work->kind == ROLLBACK ? order.batches : order.batches * PULL_BATCH;
    uint64_t elapsed = 0;
    switch (work->kind) {
    case ONE_THREAD:
        elapsed = one_thread(queue, &order);
        break;
    case TWO_THREADS:
        elapsed = two_threads(queue, &order);
        break;
    case ANY_ORDER:
        elapsed = any_order(queue, &order);
        break;
    case ROLLBACK:
        elapsed = take_and_rollback(queue, &order);
        break;
    }
    lk_process_queue_free(queue);
    printf("{\"elapsed_ns\": %llu, \"units\": %llu}\n", (unsigned long long)elapsed,
           (unsigned long long)units);
    return 0;
}
