/* The judge: every delivery is told to it, and it says what was out of order and what was lost.
 *
 * In order: the first deliveries of a key's events ascend, by the sequence column if there is one,
 * else by position in the file; and a redelivery repeats a suffix: it begins at an event delivered
 * before, leaves out none from there on, and reaches the last one before anything new. Two threads
 * inside one queue at a time count as out of order too. Lost: never delivered. Stored early: an
 * offset stored past an event whose consumption had not succeeded. */
#include "orders.h"

#include <stdlib.h>

/* The deliveries of one key. */
typedef struct key_log {
    pthread_mutex_t lock;
    size_t *firsts; /* positions of its events, in the order of their first deliveries */
    size_t count, room;
    size_t latest; /* index into firsts of the latest delivery */
    uint64_t out_of_order;
    uint64_t first_disorder_line;
} key_log;

typedef struct queue_log {
    pthread_mutex_t lock;
    atomic_bool entered;
    bool *done; /* by offset: consumption succeeded */
    size_t room;
    size_t done_below; /* everything below is done */
} queue_log;

struct orders_ledger {
    const orders_input *input;
    bool *seen; /* by position, under the lock of the key */
    key_log *keys;
    queue_log *queues;
    uint32_t queue_count;
    atomic_uint_fast64_t delivered, redelivered, overlaps, stored_early;
};

orders_ledger *orders_ledger_new(const orders_input *input, uint32_t queue_count)
{
    orders_ledger *ledger = orders_zeroed(1, sizeof(*ledger));
    ledger->input = input;
    ledger->seen = orders_zeroed(input->event_count, sizeof(bool));
    ledger->keys = orders_zeroed(input->key_count, sizeof(key_log));
    ledger->queues = orders_zeroed(queue_count, sizeof(queue_log));
    ledger->queue_count = queue_count;
    for (size_t i = 0; i < input->key_count; i++)
        pthread_mutex_init(&ledger->keys[i].lock, NULL);
    for (uint32_t i = 0; i < queue_count; i++)
        pthread_mutex_init(&ledger->queues[i].lock, NULL);
    return ledger;
}

void orders_ledger_free(orders_ledger *ledger)
{
    for (size_t i = 0; i < ledger->input->key_count; i++) {
        pthread_mutex_destroy(&ledger->keys[i].lock);
        free(ledger->keys[i].firsts);
    }
    for (uint32_t i = 0; i < ledger->queue_count; i++) {
        pthread_mutex_destroy(&ledger->queues[i].lock);
        free(ledger->queues[i].done);
    }
    free(ledger->seen);
    free(ledger->keys);
    free(ledger->queues);
    free(ledger);
}

/* A redelivery began and has not come to the last event delivered before it. */
static bool is_replaying(const key_log *log)
{
    return log->latest + 1 < log->count;
}

static bool first_delivery(key_log *log, const orders_input *input, size_t position)
{
    bool in_order = !is_replaying(log);
    if (log->count > 0) {
        size_t last = log->firsts[log->count - 1];
        in_order &= input->has_seq ? input->events[last].seq < input->events[position].seq
                                   : last < position;
    }
    if (log->count == log->room) {
        log->room = log->room * 2 + 8;
        log->firsts = orders_grow(log->firsts, log->room, sizeof(size_t));
    }
    log->latest = log->count;
    log->firsts[log->count++] = position;
    return in_order;
}

static bool later_delivery(key_log *log, size_t position)
{
    size_t index = log->count - 1;
    bool in_order;
    while (log->firsts[index] != position)
        index--; /* an event seen before is among the first deliveries */
    in_order = index <= log->latest + 1;
    log->latest = index;
    return in_order;
}

void orders_ledger_delivered(orders_ledger *ledger, size_t position)
{
    const orders_event *event = &ledger->input->events[position];
    key_log *log = &ledger->keys[event->key];
    bool in_order;
    pthread_mutex_lock(&log->lock);
    if (ledger->seen[position]) {
        atomic_fetch_add(&ledger->redelivered, 1);
        in_order = later_delivery(log, position);
    } else {
        ledger->seen[position] = true;
        atomic_fetch_add(&ledger->delivered, 1);
        in_order = first_delivery(log, ledger->input, position);
    }
    if (!in_order) {
        log->out_of_order++;
        if (log->first_disorder_line == 0)
            log->first_disorder_line = event->line;
    }
    pthread_mutex_unlock(&log->lock);
}

void orders_ledger_entered(orders_ledger *ledger, uint32_t queue_id)
{
    if (atomic_exchange(&ledger->queues[queue_id].entered, true))
        atomic_fetch_add(&ledger->overlaps, 1);
}

void orders_ledger_left(orders_ledger *ledger, uint32_t queue_id)
{
    atomic_store(&ledger->queues[queue_id].entered, false);
}

void orders_ledger_succeeded(orders_ledger *ledger, uint32_t queue_id, int64_t offset)
{
    queue_log *log = &ledger->queues[queue_id];
    size_t index = (size_t)offset;
    pthread_mutex_lock(&log->lock);
    if (index >= log->room) {
        size_t room = index * 2 + 64;
        log->done = orders_grow(log->done, room, sizeof(bool));
        for (size_t i = log->room; i < room; i++)
            log->done[i] = false;
        log->room = room;
    }
    log->done[index] = true;
    while (log->done_below < log->room && log->done[log->done_below])
        log->done_below++;
    pthread_mutex_unlock(&log->lock);
}

void orders_ledger_stored(orders_ledger *ledger, uint32_t queue_id, int64_t offset)
{
    queue_log *log = &ledger->queues[queue_id];
    pthread_mutex_lock(&log->lock);
    for (size_t i = log->done_below; i < (size_t)offset; i++) {
        if (i >= log->room || !log->done[i])
            atomic_fetch_add(&ledger->stored_early, 1);
    }
    pthread_mutex_unlock(&log->lock);
}

uint64_t orders_ledger_progress(orders_ledger *ledger)
{
    return atomic_load(&ledger->delivered) + atomic_load(&ledger->redelivered);
}

orders_findings orders_ledger_findings(orders_ledger *ledger)
{
    orders_findings found = { .delivered = atomic_load(&ledger->delivered),
                              .redelivered = atomic_load(&ledger->redelivered),
                              .out_of_order = atomic_load(&ledger->overlaps),
                              .stored_early = atomic_load(&ledger->stored_early) };
    for (size_t i = 0; i < ledger->input->key_count; i++) {
        const key_log *log = &ledger->keys[i];
        uint64_t line = log->first_disorder_line;
        found.out_of_order += log->out_of_order + is_replaying(log);
        if (line != 0 && (found.first_disorder_line == 0 || line < found.first_disorder_line))
            found.first_disorder_line = line;
    }
    for (size_t i = 0; i < ledger->input->event_count; i++)
        found.lost += !ledger->seen[i];
    return found;
}
