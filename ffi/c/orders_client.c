/* The client: a producer, one thread that pulls for all queues, workers that run turns.
 *
 * A queue is owned through one assignment at a time, a generation of it. A rebalance closes
 * assignments, at any moment and from any thread; whoever is told that the hand-over is due stores
 * the final safe offset and opens the next generation from there, so that what was in flight is
 * delivered again. */
#define _POSIX_C_SOURCE 200809L
#include "orders.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    PULL_BATCH = 32,
    COUNT_MAX = 1000, /* pulling a queue pauses with so many messages outstanding ... */
    COUNT_LOW = 200,  /* ... and goes on when no more than this are left */
    TURN_BATCHES_MAX = 64,
    CONSUME_BATCH_MAX = 1024,
    DELIVERIES_FAILING_MAX = 8, /* then a message stops failing */
    STALL_MS = 30000
};

/* One generation of one queue. Counted: the table of the client has a reference, each task one. */
typedef struct assignment {
    lk_process_queue *queue;
    uint32_t queue_id;
    uint64_t generation;
    atomic_uint references;
    atomic_bool paused; /* flow control: the pull loop rests until somebody takes this back */
} assignment;

/* A queue of the broker: its log, and the offset stored by the consumer group. */
typedef struct broker_queue {
    pthread_mutex_t lock;
    orders_message *log; /* room for every message, so that payloads may point into it */
    size_t log_room;
    int64_t end, committed;
    bool held; /* a pull found nothing new and waits for the next message */
    assignment *current;
    bool wants_pull; /* under the lock of the puller */
} broker_queue;

typedef struct task {
    struct task *next;
    assignment *work;
    int64_t due_ms;
} task;

typedef struct client {
    const orders_input *input;
    orders_ledger *ledger;
    const orders_settings *settings;
    broker_queue *queues;
    struct timespec start;

    pthread_mutex_t puller_lock;
    pthread_cond_t puller_wake;
    pthread_mutex_t tasks_lock;
    pthread_cond_t tasks_wake;
    task *tasks; /* by due time */
    pthread_mutex_t end_lock;
    pthread_cond_t end_wake;
    bool complete;

    atomic_bool stopping, all_sent, fault_done;
    atomic_uint_fast64_t finished, batches, failed_batches, rebalances, foreign, put, released;
} client;

/* ---- small things ---- */

/* For answers that only a bug, here or in the library, can give. */
static void expect(lk_status status, const char *call)
{
    if (status == LK_OK)
        return;
    fprintf(stderr, "orders: %s answered %s\n", call, lk_status_name(status));
    exit(1);
}

static int64_t now_ms(const client *c)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)(now.tv_sec - c->start.tv_sec) * 1000 +
           (now.tv_nsec - c->start.tv_nsec) / 1000000;
}

/* Waits until woken, or until `at_ms` of now_ms(). */
static void wait_until(const client *c, pthread_cond_t *wake, pthread_mutex_t *lock, int64_t at_ms)
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

/* SplitMix64. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t mixed = *state += 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
}

/* Numbers that depend on nothing but the seed and these parts. */
static uint64_t random_of(uint64_t seed, const uint64_t *parts, size_t count)
{
    uint64_t state = seed;
    for (size_t i = 0; i < count; i++)
        state = next_random(&state) ^ parts[i];
    return state;
}

static bool chance(uint64_t *state, double probability)
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

static assignment *current_assignment(client *c, uint32_t queue_id)
{
    broker_queue *queue = &c->queues[queue_id];
    assignment *current;
    pthread_mutex_lock(&queue->lock);
    current = queue->current;
    atomic_fetch_add(&current->references, 1);
    pthread_mutex_unlock(&queue->lock);
    return current;
}

static void let_go(assignment *work)
{
    if (atomic_fetch_sub(&work->references, 1) == 1) {
        lk_process_queue_free(work->queue);
        free(work);
    }
}

/* ---- tasks of the workers ---- */

static void submit(client *c, assignment *work, int64_t due_ms)
{
    task *made = orders_zeroed(1, sizeof(*made)), **at;
    made->work = work;
    made->due_ms = due_ms;
    atomic_fetch_add(&work->references, 1);
    pthread_mutex_lock(&c->tasks_lock);
    for (at = &c->tasks; *at != NULL && (*at)->due_ms <= due_ms; at = &(*at)->next)
        ;
    made->next = *at;
    *at = made;
    pthread_cond_signal(&c->tasks_wake);
    pthread_mutex_unlock(&c->tasks_lock);
}

/* Waits for a task that is due; NULL when the run is over. */
static assignment *next_task(client *c)
{
    assignment *work = NULL;
    pthread_mutex_lock(&c->tasks_lock);
    while (work == NULL && !atomic_load(&c->stopping)) {
        task *first = c->tasks;
        if (first == NULL) {
            pthread_cond_wait(&c->tasks_wake, &c->tasks_lock);
        } else if (first->due_ms > now_ms(c)) {
            wait_until(c, &c->tasks_wake, &c->tasks_lock, first->due_ms);
        } else {
            work = first->work;
            c->tasks = first->next;
            free(first);
            if (c->tasks != NULL) /* the wake-up for it may have been this thread's own */
                pthread_cond_signal(&c->tasks_wake);
        }
    }
    pthread_mutex_unlock(&c->tasks_lock);
    return work;
}

/* ---- the pull loop ---- */

static void request_pull(client *c, uint32_t queue_id)
{
    pthread_mutex_lock(&c->puller_lock);
    c->queues[queue_id].wants_pull = true;
    pthread_cond_signal(&c->puller_wake);
    pthread_mutex_unlock(&c->puller_lock);
}

/* Lets a paused pull loop go on, once per pause, when enough is consumed. */
static void resume_if_drained(client *c, assignment *work)
{
    uint64_t count;
    expect(lk_process_queue_count(work->queue, &count), "lk_process_queue_count");
    if (count <= COUNT_LOW && atomic_exchange(&work->paused, false))
        request_pull(c, work->queue_id);
}

static void spoil(client *c, lk_message *batch, size_t *len)
{
    orders_fault fault = c->settings->fault;
    if (fault == ORDERS_SOUND || *len < 2 || atomic_load(&c->fault_done))
        return;
    if (fault == ORDERS_DROP) {
        memmove(batch, batch + 1, --*len * sizeof(*batch));
        atomic_store(&c->fault_done, true);
    }
    for (size_t i = 1; fault == ORDERS_SWAP && i < *len && !atomic_load(&c->fault_done); i++) {
        const orders_message *one = (const orders_message *)(uintptr_t)batch[0].payload;
        const orders_message *other = (const orders_message *)(uintptr_t)batch[i].payload;
        if (c->input->events[one->position].key == c->input->events[other->position].key) {
            batch[0].payload = (uint64_t)(uintptr_t)other;
            batch[i].payload = (uint64_t)(uintptr_t)one;
            atomic_store(&c->fault_done, true);
        }
    }
}

/* One pull: flow control, broker, put, schedule; then asks for the next one. */
static void pull_once(client *c, assignment *work)
{
    broker_queue *queue = &c->queues[work->queue_id];
    lk_message batch[PULL_BATCH];
    lk_put_result result;
    lk_status status;
    uint64_t count;
    int64_t offset;
    size_t len = 0;

    expect(lk_process_queue_count(work->queue, &count), "lk_process_queue_count");
    if (count >= COUNT_MAX) {
        atomic_store(&work->paused, true);
        resume_if_drained(c, work); /* the drain may have happened before the flag was up */
        return;
    }
    expect(lk_process_queue_pull_offset(work->queue, &offset), "lk_process_queue_pull_offset");
    pthread_mutex_lock(&queue->lock);
    for (; len < PULL_BATCH && offset + (int64_t)len < queue->end; len++) {
        lk_message message = { .offset = offset + (int64_t)len, .size = sizeof(orders_message) };
        message.payload = (uint64_t)(uintptr_t)&queue->log[message.offset];
        batch[len] = message;
    }
    queue->held = len == 0;
    pthread_mutex_unlock(&queue->lock);
    if (len == 0)
        return;
    spoil(c, batch, &len);
    status = lk_process_queue_put(work->queue, batch, len, now_ms(c), LK_BROKER_MAX_UNKNOWN,
                                  &result);
    if (status == LK_CLOSED) /* the next generation has a pull loop of its own */
        return;
    expect(status, "lk_process_queue_put");
    atomic_fetch_add(&c->put, len);
    if (result.schedule)
        submit(c, work, 0);
    request_pull(c, work->queue_id);
}

static void *pull_loop(void *argument)
{
    client *c = argument;
    uint32_t queue_id = 0, count = c->settings->queue_count;
    pthread_mutex_lock(&c->puller_lock);
    while (!atomic_load(&c->stopping)) {
        uint32_t looked = 0;
        while (looked < count && !c->queues[queue_id].wants_pull) {
            queue_id = (queue_id + 1) % count;
            looked++;
        }
        if (looked == count) {
            pthread_cond_wait(&c->puller_wake, &c->puller_lock);
            continue;
        }
        c->queues[queue_id].wants_pull = false;
        pthread_mutex_unlock(&c->puller_lock);
        assignment *work = current_assignment(c, queue_id);
        pull_once(c, work);
        let_go(work);
        queue_id = (queue_id + 1) % count;
        pthread_mutex_lock(&c->puller_lock);
    }
    pthread_mutex_unlock(&c->puller_lock);
    return NULL;
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

/* The end of a generation, told to exactly one thread. */
static void hand_over(client *c, assignment *work)
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

static void progressed(client *c, assignment *work, int64_t safe_offset, uint32_t finished)
{
    uint64_t before;
    store(c, work->queue_id, safe_offset);
    resume_if_drained(c, work);
    before = atomic_fetch_add(&c->finished, finished);
    for (uint64_t i = rebalances_due(c, before); i < rebalances_due(c, before + finished); i++)
        rebalance(c, i);
}

/* ---- turns ---- */

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

static void *work_loop(void *argument)
{
    client *c = argument;
    assignment *work;
    while ((work = next_task(c)) != NULL) {
        run_turn(c, work);
        let_go(work);
    }
    return NULL;
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
