/* The shortest whole round: pull, consume in order, store the offset.
 *   cc first.c $(pkg-config --cflags --libs lanekeeper) -o first && ./first */
#include <inttypes.h>
#include <stdio.h>

#include "lanekeeper.h"

/* Gives a message back: called once for each, when it is finished. */
static void release(void *user_data, uint64_t payload)
{
    const char *const *bodies = (const char *const *)user_data;
    printf("released %s\n", bodies[payload]);
}

int main(void)
{
    static const char *bodies[] = {"created", "paid", "shipped"};
    lk_process_queue_config config = LK_PROCESS_QUEUE_CONFIG_INIT;
    lk_process_queue *queue = NULL;
    lk_message batch[3];
    lk_put_result put;
    lk_turn turn;
    lk_delivery taken[2];
    size_t len = 0;
    int32_t end = LK_TURN_END_NOTHING;
    uint32_t i;

    config.start_offset = 100;
    if (lk_process_queue_new(&config, &queue, NULL, release, NULL, (void *)bodies) != LK_OK) {
        return 1;
    }
    /* A pull returned three messages; a payload may be any number, a pointer for instance. */
    for (i = 0; i < 3; i++) {
        batch[i].offset = 100 + (int64_t)i;
        batch[i].payload = i;
        batch[i].size = 7;
        batch[i].attempts = 0;
    }
    if (lk_process_queue_put(queue, batch, 3, 0, LK_BROKER_MAX_UNKNOWN, &put) != LK_OK) {
        return 1;
    }
    /* put.schedule says so: run turns, one at a time, until none is asked for. */
    do {
        if (lk_process_queue_begin_turn(queue, 0, &turn) != LK_OK) {
            return 1;
        }
        while (lk_turn_take(queue, turn, 0, taken, 2, &len) == LK_OK) {
            lk_commit_result committed;
            for (i = 0; i < len; i++) {
                printf("offset %" PRId64 ": %s\n", taken[i].offset, bodies[taken[i].payload]);
            }
            if (lk_turn_commit(queue, turn, 0, &committed) == LK_OK) {
                printf("store offset %" PRId64 "\n", committed.safe_offset);
            }
        }
        if (lk_turn_end(queue, turn, 0, &end) != LK_OK) {
            return 1;
        }
    } while (end == LK_TURN_END_RUN_AGAIN);
    lk_process_queue_free(queue);
    return 0;
}
