/* The parts of the orders example: input, ledger, client. See orders.c for what it does. */
#ifndef ORDERS_H
#define ORDERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lanekeeper.h"

/* ---- orders_input.c: reads the events ---- */

typedef struct orders_text {
    char *data;
    size_t len;
} orders_text;

typedef struct orders_event {
    size_t key;    /* index into the keys */
    int64_t seq;   /* value of the sequence column, 0 without one */
    uint64_t line; /* of the file, from 1 */
} orders_event;

/* A whole file of events, in the order of the file. */
typedef struct orders_input {
    orders_text *keys; /* distinct, in order of first appearance */
    size_t key_count;
    orders_event *events;
    size_t event_count;
    bool has_seq;
} orders_input;

/* Reads CSV, plain or gzipped, whatever the name. Answers false after it has said on stderr which
 * line and column are wrong; `seq` may be NULL. */
bool orders_input_read(orders_input *input, const char *path, const char *key, const char *seq);
void orders_input_free(orders_input *input);

/* Index of the queue for a key, as Java's clients choose it: the hash of its UTF-16 units, the
 * remainder first, the absolute value second. */
uint32_t orders_select_queue(orders_text key, uint32_t queue_count);

/* malloc, realloc and calloc that end the program when there is no memory. */
void *orders_grow(void *block, size_t count, size_t size);
void *orders_zeroed(size_t count, size_t size);

/* ---- orders_ledger.c: judges the deliveries ---- */

/* One message of the log of a queue: what the payload of the process queue points at. */
typedef struct orders_message {
    size_t position; /* of its event in the input */
} orders_message;

typedef struct orders_findings {
    uint64_t delivered;   /* distinct events */
    uint64_t redelivered; /* deliveries beyond the first of each event */
    uint64_t out_of_order;
    uint64_t lost;
    uint64_t stored_early;
    uint64_t first_disorder_line; /* 0 for none */
} orders_findings;

typedef struct orders_ledger orders_ledger;

orders_ledger *orders_ledger_new(const orders_input *input, uint32_t queue_count);
void orders_ledger_free(orders_ledger *ledger);
/* A listener was handed this event. */
void orders_ledger_delivered(orders_ledger *ledger, size_t position);
/* A thread begins, has stopped, to consume from a queue. */
void orders_ledger_entered(orders_ledger *ledger, uint32_t queue_id);
void orders_ledger_left(orders_ledger *ledger, uint32_t queue_id);
/* The listener answered success for the message at that offset. */
void orders_ledger_succeeded(orders_ledger *ledger, uint32_t queue_id, int64_t offset);
/* An offset is about to be stored at the broker. */
void orders_ledger_stored(orders_ledger *ledger, uint32_t queue_id, int64_t offset);
/* Deliveries so far, first and later ones. */
uint64_t orders_ledger_progress(orders_ledger *ledger);
/* The verdict, when nobody consumes any more. */
orders_findings orders_ledger_findings(orders_ledger *ledger);

/* ---- orders_client.c, orders_pull.c, orders_worker.c: send, pull, consume ---- */

typedef enum orders_fault { ORDERS_SOUND, ORDERS_DROP, ORDERS_SWAP } orders_fault;

typedef struct orders_settings {
    uint32_t queue_count;
    uint32_t worker_count;
    uint32_t consume_batch;
    double fail_rate;
    uint64_t suspend_ms;
    uint64_t rebalances;
    uint64_t seed;
    orders_fault fault; /* planted for tests of the ledger */
} orders_settings;

typedef struct orders_queue_line {
    int64_t end_offset;
    int64_t committed_offset;
    uint64_t generations;
} orders_queue_line;

typedef struct orders_result {
    double seconds;
    uint64_t batches;
    uint64_t failed_batches;
    uint64_t rebalances;
    uint64_t foreign;          /* payloads handed out that were never put */
    uint64_t put, released;    /* payloads given to the process queues, and given back */
    bool stalled;              /* ended because nothing moved any more */
    orders_queue_line *queues; /* queue_count of them, for the caller to free */
} orders_result;

/* Sends every event by key, consumes all of them, and joins every thread it started. */
orders_result orders_run(const orders_input *input, orders_ledger *ledger,
                         const orders_settings *settings);

#endif
