/* The tasks of the workers, and the thread that pulls for all queues. */
#define _POSIX_C_SOURCE 200809L
#include "orders_client.h"

#include <stdlib.h>
#include <string.h>

enum {
    PULL_BATCH = 32,
    COUNT_MAX = 1000, /* pulling a queue pauses with so many messages outstanding ... */
    COUNT_LOW = 200   /* ... and goes on when no more than this are left */
};

/* ---- tasks of the workers ---- */

void submit(client *c, assignment *work, int64_t due_ms)
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

assignment *next_task(client *c)
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

void request_pull(client *c, uint32_t queue_id)
{
    pthread_mutex_lock(&c->puller_lock);
    c->queues[queue_id].wants_pull = true;
    pthread_cond_signal(&c->puller_wake);
    pthread_mutex_unlock(&c->puller_lock);
}

void resume_if_drained(client *c, assignment *work)
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

void *pull_loop(void *argument)
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
