/* No memory: `put` and `new` say so and have done nothing (C2). The allocator is made to refuse by
 * a limit on the address space. */
#include <sys/resource.h>

#include "host.h"

enum { BATCH = 512 };

/* Lets the process grow by so many bytes from what it has now. */
static void limit_growth(uint64_t bytes)
{
    unsigned long pages = 0;
    struct rlimit limit;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%lu", &pages) == 1);
    if (file != NULL) {
        fclose(file);
    }
    CHECK_EQ(getrlimit(RLIMIT_AS, &limit), 0);
    limit.rlim_cur = (rlim_t)pages * 4096 + (rlim_t)bytes;
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

static void lift_the_limit(void)
{
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_AS, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

int main(void)
{
    static lk_message batch[BATCH];
    lk_process_queue_config config = LK_PROCESS_QUEUE_CONFIG_INIT;
    lk_process_queue *queue = NULL;
    lk_process_queue *other = NULL;
    lk_put_result put = {0, 0, 0, 0};
    lk_status status = LK_OK;
    uint32_t released = 0;
    int64_t next = 0;
    int64_t pull = -1;
    host h;

    memset(&h, 0, sizeof(h));
    config.outstanding_max = 1u << 30;
    CHECK_STATUS(lk_process_queue_new(&config, &queue, NULL, host_release, host_data_free, &h),
                 LK_OK);
    limit_growth(UINT64_C(32) << 20);
    while (status == LK_OK && next < (INT64_C(1) << 26)) {
        int64_t i;
        for (i = 0; i < BATCH; i++) {
            batch[i] = host_message(next + i, 1);
        }
        status = lk_process_queue_put(queue, batch, BATCH, 0, LK_BROKER_MAX_UNKNOWN, &put);
        next += status == LK_OK ? BATCH : 0;
    }
    CHECK_STATUS(status, LK_ERR_NO_MEMORY);
    CHECK(next > 0);
    CHECK_EQ(host_count(queue), next);
    CHECK_EQ(host_live(queue), next);
    CHECK_EQ(h.total, 0); /* on another status than OK the queue owns none of the batch */
    CHECK_STATUS(lk_process_queue_pull_offset(queue, &pull), LK_OK);
    CHECK_EQ(pull, next);

    /* Room for consumers is what `new` needs most of. */
    config.mode = LK_MODE_CONCURRENT;
    config.consumers_max = 1024;
    status = LK_OK;
    while (status == LK_OK && released < 4096) {
        other = NULL;
        status = lk_process_queue_new(&config, &other, NULL, NULL, NULL, NULL);
        CHECK((status == LK_OK) == (other != NULL));
        released++; /* leaked on purpose: the memory is to run out */
    }
    CHECK_STATUS(status, LK_ERR_NO_MEMORY);

    lift_the_limit();
    CHECK_STATUS(lk_process_queue_put(queue, batch, BATCH, 0, LK_BROKER_MAX_UNKNOWN, &put), LK_OK);
    CHECK_EQ(put.accepted, BATCH);
    CHECK_EQ(host_count(queue), next + BATCH);
    lk_process_queue_free(queue);
    CHECK_EQ(h.total, next + BATCH);
    return check_end("memory");
}
