/* What the three files of the client share: orders_client.c (who owns which queue, rebalances, the
 * run), orders_pull.c (tasks, the pull loop), orders_worker.c (turns). */
#ifndef ORDERS_CLIENT_H
#define ORDERS_CLIENT_H

#include "orders.h"

#include <time.h>

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

/* ---- orders_client.c ---- */

/* For answers that only a bug, here or in the library, can give: ends the program. */
void expect(lk_status status, const char *call);
/* Time as the queues are told it. */
int64_t now_ms(const client *c);
/* Waits until woken, or until `at_ms` of now_ms(). */
void wait_until(const client *c, pthread_cond_t *wake, pthread_mutex_t *lock, int64_t at_ms);
/* SplitMix64. */
uint64_t next_random(uint64_t *state);
bool chance(uint64_t *state, double probability);
/* A state that depends on nothing but the seed and these parts. */
uint64_t random_of(uint64_t seed, const uint64_t *parts, size_t count);
/* The current generation of a queue, with a reference for let_go(). */
assignment *current_assignment(client *c, uint32_t queue_id);
void let_go(assignment *work);
/* The end of a generation, told to exactly one thread: stores how far it came, opens the next. */
void hand_over(client *c, assignment *work);
/* Stores a safe offset; counts what was finished, and rebalances when it is time. */
void progressed(client *c, assignment *work, int64_t safe_offset, uint32_t finished);

/* ---- orders_pull.c ---- */

/* Gives a task to the workers, not before `due_ms`. */
void submit(client *c, assignment *work, int64_t due_ms);
/* Waits for a task that is due; NULL when the run is over. With a reference for let_go(). */
assignment *next_task(client *c);
void request_pull(client *c, uint32_t queue_id);
/* Lets a paused pull loop go on, once per pause, when enough is consumed. */
void resume_if_drained(client *c, assignment *work);
/* Body of the pull thread. */
void *pull_loop(void *argument);

/* ---- orders_worker.c ---- */

/* Body of a worker thread. */
void *work_loop(void *argument);

#endif
