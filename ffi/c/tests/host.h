/* What a host of a queue needs in the tests: payloads that are counted, and short ways to make a
 * queue and messages. */
#ifndef LK_TESTS_HOST_H
#define LK_TESTS_HOST_H

#include "check.h"

enum { HOST_PAYLOADS = 4096 };

/* Payload n is released[n]: how often it was released. */
typedef struct host {
    uint32_t released[HOST_PAYLOADS];
    uint32_t total;
    uint32_t data_freed;
} host;

static inline void host_release(void *user_data, uint64_t payload)
{
    host *h = (host *)user_data;
    h->total++;
    if (payload < HOST_PAYLOADS) {
        h->released[payload]++;
    }
}

static inline void host_data_free(void *user_data)
{
    ((host *)user_data)->data_freed++;
}

static inline lk_process_queue *host_queue_at(host *h, int32_t mode, int64_t start_offset)
{
    lk_process_queue_config config = LK_PROCESS_QUEUE_CONFIG_INIT;
    lk_process_queue *queue = NULL;
    config.mode = mode;
    config.start_offset = start_offset;
    memset(h, 0, sizeof(*h));
    CHECK_STATUS(lk_process_queue_new(&config, &queue, NULL, host_release, host_data_free, h),
                 LK_OK);
    CHECK(queue != NULL);
    return queue;
}

static inline lk_process_queue *host_queue(host *h, int32_t mode)
{
    return host_queue_at(h, mode, 0);
}

/* Message with the offset as its payload. */
static inline lk_message host_message(int64_t offset, uint32_t size)
{
    lk_message message;
    message.offset = offset;
    message.payload = (uint64_t)offset;
    message.size = size;
    message.attempts = 0;
    return message;
}

/* Puts count messages from first on, 10 bytes each; answers the result. */
static inline lk_put_result host_put(lk_process_queue *queue, int64_t first, int64_t count)
{
    lk_put_result result;
    lk_message batch[512];
    int64_t i;
    memset(&result, 0, sizeof(result));
    for (i = 0; i < count; i++) {
        batch[i] = host_message(first + i, 10);
    }
    CHECK_STATUS(lk_process_queue_put(queue, batch, (size_t)count, 0, LK_BROKER_MAX_UNKNOWN,
                                      &result),
                 LK_OK);
    return result;
}

static inline lk_target host_target(int64_t offset, uint32_t delivery)
{
    lk_target target;
    target.offset = offset;
    target.delivery = delivery;
    target.reserved = 0;
    return target;
}

static inline int64_t host_count(const lk_process_queue *queue)
{
    uint64_t count = UINT64_MAX;
    CHECK_STATUS(lk_process_queue_count(queue, &count), LK_OK);
    return (int64_t)count;
}

static inline int64_t host_safe_offset(const lk_process_queue *queue)
{
    int64_t offset = -1;
    CHECK_STATUS(lk_process_queue_safe_offset(queue, &offset), LK_OK);
    return offset;
}

static inline int64_t host_live(const lk_process_queue *queue)
{
    uint64_t live = UINT64_MAX;
    CHECK_STATUS(lk_process_queue_payloads_live(queue, &live), LK_OK);
    return (int64_t)live;
}

/* Frees the queue and checks that the payloads 0 to count - 1 were released once each, and no
 * other, and the user data once. */
static inline void host_end(host *h, lk_process_queue *queue, uint32_t count)
{
    uint32_t i;
    uint32_t wrong = 0;
    lk_process_queue_free(queue);
    for (i = 0; i < HOST_PAYLOADS; i++) {
        wrong += h->released[i] != (i < count ? 1u : 0u);
    }
    CHECK_EQ(wrong, 0);
    CHECK_EQ(h->total, count);
    CHECK_EQ(h->data_freed, 1);
}

#endif /* LK_TESTS_HOST_H */
