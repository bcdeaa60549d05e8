/* A fork between calls is sound (C7): the child uses its copy, also for a new queue, and frees
 * it; the parent goes on with its own. */
#include <pthread.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

static void *use_the_library(void *argument)
{
    lk_process_queue *queue = (lk_process_queue *)argument;
    lk_snapshot cut;
    CHECK_STATUS(lk_process_queue_snapshot(queue, 0, &cut), LK_OK);
    return NULL;
}

static void consume_all(host *h, lk_process_queue *queue, lk_turn turn, uint32_t count)
{
    lk_delivery taken[64];
    lk_commit_result committed;
    size_t len = 0;
    int32_t end = -1;
    host_put(queue, 40, 20);
    CHECK_STATUS(lk_turn_take(queue, turn, 0, taken, 64, &len), LK_OK);
    CHECK_STATUS(lk_turn_commit(queue, turn, 0, &committed), LK_OK);
    CHECK_EQ(committed.safe_offset, 60);
    CHECK_STATUS(lk_turn_end(queue, turn, 0, &end), LK_OK);
    host_end(h, queue, count);
}

int main(void)
{
    host h;
    host own;
    lk_process_queue *queue = host_queue(&h, LK_MODE_ORDERLY);
    lk_turn turn;
    lk_delivery taken[4];
    size_t len = 0;
    pthread_t thread;
    pid_t child;
    int status = -1;

    host_put(queue, 0, 40);
    CHECK_STATUS(lk_process_queue_begin_turn(queue, 0, &turn), LK_OK);
    CHECK_STATUS(lk_turn_take(queue, turn, 0, taken, 4, &len), LK_OK);
    /* Another thread has used the queue, and is gone. */
    CHECK_EQ(pthread_create(&thread, NULL, use_the_library, queue), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    fflush(stdout);
    child = fork();
    if (child == 0) {
        lk_process_queue *fresh = host_queue(&own, LK_MODE_ORDERLY);
        host_put(fresh, 0, 3);
        host_end(&own, fresh, 3);
        consume_all(&h, queue, turn, 60);
        fflush(stdout);
        _exit(checks_failed == 0 ? 0 : 1);
    }
    CHECK(child > 0);
    consume_all(&h, queue, turn, 60);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return check_end("fork");
}
