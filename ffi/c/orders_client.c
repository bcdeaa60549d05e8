/* The client: a producer, one thread that pulls for all queues, workers that run turns.
 *
 * A queue is owned through one assignment at a time, a generation of it. A rebalance closes
 * assignments, at any moment and from any thread; whoever is told that the hand-over is due stores
 * the final safe offset and opens the next generation from there, so that what was in flight is
 * delivered again. */
#define _POSIX_C_SOURCE 200809L
#include "orders_client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { STALL_MS = 30000 };

/* ---- small things ---- */

void expect(lk_status status, const char *call)
{
    if (status == LK_OK)
        return;
    fprintf(stderr, "orders: %s answered %s\n", call, lk_status_name(status));
    exit(1);
}

int64_t now_ms(const client *c)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)(now.tv_sec - c->start.tv_sec) * 1000 +
           (now.tv_nsec - c->start.tv_nsec) / 1000000;
}

void wait_until(const client *c, pthread_cond_t *wake, pthread_mutex_t *lock, int64_t at_ms)
{
    struct timespec at = c->start;
    at.tv_sec += (time_t)(at_ms / 1000);
    at.tv_nsec += (long)(at_ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_nsec -= 1000000000;
        at.tv_sec++;
    }
    pthread_cond_timedwait(wake, lock, &at);
}

uint64_t next_random(uint64_t *state)
{
    uint64_t mixed = *state += 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
}

uint64_t random_of(uint64_t seed, const uint64_t *parts, size_t count)
{
    uint64_t state = seed;
    for (size_t i = 0; i < count; i++)
        state = next_random(&state) ^ parts[i];
    return state;
}

bool chance(uint64_t *state, double probability)
{
    return (double)(next_random(state) >> 11) < probability * 9007199254740992.0;
}

static void count_released(void *user_data, uint64_t payload)
{
    (void)payload;
    atomic_fetch_add(&((client *)user_data)->released, 1);
}

/* ---- assignments ---- */

static assignment *open_assignment(client *c, uint32_t queue_id, uint64_t generation)
{
    lk_process_queue_config config = LK_PROCESS_QUEUE_CONFIG_INIT;
    assignment *made = orders_zeroed(1, sizeof(*made));
    pthread_mutex_lock(&c->queues[queue_id].lock);
    config.start_offset = c->queues[queue_id].committed;
    pthread_mutex_unlock(&c->queues[queue_id].lock);
    config.generation = generation;
    made->queue_id = queue_id;
    made->generation = generation;
    atomic_store(&made->references, 1);
    expect(lk_process_queue_new(&config, &made->queue, NULL, count_released, NULL, c),
           "lk_process_queue_new");
    return made;
}

assignment *current_assignment(client *c, uint32_t queue_id)
{
    broker_queue *queue = &c->queues[queue_id];
    assignment *current;
    pthread_mutex_lock(&queue->lock);
    current = queue->current;
    atomic_fetch_add(&current->references, 1);
    pthread_mutex_unlock(&queue->lock);
    return current;
}

void let_go(assignment *work)
{
    if (atomic_fetch_sub(&work->references, 1) == 1) {
        lk_process_queue_free(work->queue);
        free(work);
    }
}

/* ---- storing offsets, hand-over, rebalance ---- */

static void check_complete(client *c)
{
    bool complete = atomic_load(&c->all_sent);
    for (uint32_t i = 0; complete && i < c->settings->queue_count; i++) {
        pthread_mutex_lock(&c->queues[i].lock);
        complete = c->queues[i].committed == c->queues[i].end;
        pthread_mutex_unlock(&c->queues[i].lock);
    }
    if (complete) {
        pthread_mutex_lock(&c->end_lock);
        c->complete = true;
        pthread_cond_signal(&c->end_wake);
        pthread_mutex_unlock(&c->end_lock);
    }
}

static void store(client *c, uint32_t queue_id, int64_t safe_offset)
{
    broker_queue *queue = &c->queues[queue_id];
    orders_ledger_stored(c->ledger, queue_id, safe_offset);
    pthread_mutex_lock(&queue->lock);
    queue->committed = safe_offset;
    pthread_mutex_unlock(&queue->lock);
    if (atomic_load(&c->all_sent))
        check_complete(c);
}

void hand_over(client *c, assignment *work)
{
    broker_queue *queue = &c->queues[work->queue_id];
    assignment *next;
    int64_t safe_offset;
    expect(lk_process_queue_safe_offset(work->queue, &safe_offset),
           "lk_process_queue_safe_offset");
    store(c, work->queue_id, safe_offset);
    next = open_assignment(c, work->queue_id, work->generation + 1);
    pthread_mutex_lock(&queue->lock);
    queue->current = next;
    pthread_mutex_unlock(&queue->lock);
    let_go(work); /* the reference of the table; the caller has its own */
    request_pull(c, work->queue_id);
}

/* Gives away about half of the queues, whatever is going on in them, and gets them back. */
static void rebalance(client *c, uint64_t number)
{
    uint64_t state = random_of(c->settings->seed, &number, 1);
    uint64_t always = next_random(&state) % c->settings->queue_count;
    for (uint32_t i = 0; i < c->settings->queue_count; i++) {
        lk_close_result closed;
        if (i != always && chance(&state, 0.5))
            continue;
        assignment *work = current_assignment(c, i);
        lk_status status = lk_process_queue_close(work->queue, now_ms(c), &closed);
        if (status != LK_CLOSED) { /* else another rebalance was first */
            expect(status, "lk_process_queue_close");
            if (closed.hand_over)
                hand_over(c, work); /* else the end of the running turn will tell */
        }
        let_go(work);
    }
    atomic_fetch_add(&c->rebalances, 1);
}

static uint64_t rebalances_due(const client *c, uint64_t finished)
{
    double share = (double)finished / (double)c->input->event_count;
    uint64_t due = (uint64_t)(share * (double)(c->settings->rebalances + 1));
    return due < c->settings->rebalances ? due : c->settings->rebalances;
}

void progressed(client *c, assignment *work, int64_t safe_offset, uint32_t finished)
{
    uint64_t before;
    store(c, work->queue_id, safe_offset);
    resume_if_drained(c, work);
    before = atomic_fetch_add(&c->finished, finished);
    for (uint64_t i = rebalances_due(c, before); i < rebalances_due(c, before + finished); i++)
        rebalance(c, i);
}

/* ---- the run ---- */

/* The producer: every event by its key, in the order of the file. */
static void *send_all(void *argument)
{
    client *c = argument;
    for (size_t i = 0; i < c->input->event_count; i++) {
        orders_text key = c->input->keys[c->input->events[i].key];
        uint32_t queue_id = orders_select_queue(key, c->settings->queue_count);
        broker_queue *queue = &c->queues[queue_id];
        bool held;
        pthread_mutex_lock(&queue->lock);
        queue->log[queue->end++].position = i;
        held = queue->held;
        queue->held = false;
        pthread_mutex_unlock(&queue->lock);
        if (held)
            request_pull(c, queue_id);
    }
    atomic_store(&c->all_sent, true);
    check_complete(c);
    return NULL;
}

static void open_client(client *c)
{
    size_t *lengths = orders_zeroed(c->settings->queue_count, sizeof(size_t));
    pthread_condattr_t monotonic;
    clock_gettime(CLOCK_MONOTONIC, &c->start);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&c->puller_lock, NULL);
    pthread_mutex_init(&c->tasks_lock, NULL);
    pthread_mutex_init(&c->end_lock, NULL);
    pthread_cond_init(&c->puller_wake, &monotonic);
    pthread_cond_init(&c->tasks_wake, &monotonic);
    pthread_cond_init(&c->end_wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    for (size_t i = 0; i < c->input->event_count; i++) {
        orders_text key = c->input->keys[c->input->events[i].key];
        lengths[orders_select_queue(key, c->settings->queue_count)]++;
    }
    c->queues = orders_zeroed(c->settings->queue_count, sizeof(broker_queue));
    for (uint32_t i = 0; i < c->settings->queue_count; i++) {
        pthread_mutex_init(&c->queues[i].lock, NULL);
        c->queues[i].log = orders_zeroed(lengths[i], sizeof(orders_message));
        c->queues[i].log_room = lengths[i];
        c->queues[i].wants_pull = true;
        c->queues[i].current = open_assignment(c, i, 1);
    }
    free(lengths);
}

static void close_client(client *c, orders_result *result)
{
    while (c->tasks != NULL) {
        task *first = c->tasks;
        c->tasks = first->next;
        let_go(first->work);
        free(first);
    }
    for (uint32_t i = 0; i < c->settings->queue_count; i++) {
        broker_queue *queue = &c->queues[i];
        result->queues[i].end_offset = queue->end;
        result->queues[i].committed_offset = queue->committed;
        result->queues[i].generations = queue->current->generation;
        let_go(queue->current);
        pthread_mutex_destroy(&queue->lock);
        free(queue->log);
    }
    free(c->queues);
}

/* Waits for the end, with a line of progress on a terminal; true if nothing moves any more. */
static bool wait_for_end(client *c)
{
    uint64_t last = 0, now;
    int64_t moved_ms = 0;
    bool stalled = false;
    pthread_mutex_lock(&c->end_lock);
    while (!c->complete && !stalled) {
        wait_until(c, &c->end_wake, &c->end_lock, now_ms(c) + 100);
        now = orders_ledger_progress(c->ledger);
        if (now != last) {
            last = now;
            moved_ms = now_ms(c);
        }
        stalled = now_ms(c) - moved_ms > STALL_MS;
        if (isatty(STDERR_FILENO))
            fprintf(stderr, "\r%" PRIu64 " deliveries of %zu events ", now,
                    c->input->event_count);
    }
    if (isatty(STDERR_FILENO))
        fputs("\n", stderr);
    pthread_mutex_unlock(&c->end_lock);
    return stalled;
}

orders_result orders_run(const orders_input *input, orders_ledger *ledger,
                         const orders_settings *settings)
{
    client c = { .input = input, .ledger = ledger, .settings = settings };
    orders_result result = { 0 };
    size_t thread_count = settings->worker_count + 2;
    pthread_t *threads = orders_zeroed(thread_count, sizeof(pthread_t));
    struct timespec end;

    open_client(&c);
    for (size_t i = 0; i < thread_count; i++) {
        if (pthread_create(&threads[i], NULL, i == 0 ? send_all : i == 1 ? pull_loop : work_loop,
                           &c) != 0) {
            fputs("orders: no thread can be started; try fewer --workers\n", stderr);
            exit(1);
        }
    }
    result.stalled = wait_for_end(&c);
    clock_gettime(CLOCK_MONOTONIC, &end);
    result.seconds = (double)(end.tv_sec - c.start.tv_sec) +
                     (double)(end.tv_nsec - c.start.tv_nsec) / 1e9;
    atomic_store(&c.stopping, true);
    pthread_mutex_lock(&c.puller_lock);
    pthread_cond_broadcast(&c.puller_wake);
    pthread_mutex_unlock(&c.puller_lock);
    pthread_mutex_lock(&c.tasks_lock);
    pthread_cond_broadcast(&c.tasks_wake);
    pthread_mutex_unlock(&c.tasks_lock);
    for (size_t i = 0; i < thread_count; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    result.queues = orders_zeroed(settings->queue_count, sizeof(orders_queue_line));
    close_client(&c, &result);
    result.batches = atomic_load(&c.batches);
    result.failed_batches = atomic_load(&c.failed_batches);
    result.rebalances = atomic_load(&c.rebalances);
    result.foreign = atomic_load(&c.foreign);
    result.put = atomic_load(&c.put);
    result.released = atomic_load(&c.released);
    return result;
}
