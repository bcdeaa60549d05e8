/* The shared library survives dlclose with live threads (C6): a thread that has used it goes on
 * calling it after the dlclose, and ends, with its thread-local destructors, after that.
 * Usage: dlclose PATH_OF_THE_LIBRARY. Links no lanekeeper. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "lanekeeper.h"

typedef lk_status (*new_fn)(const lk_process_queue_config *, lk_process_queue **, lk_error **,
                            lk_payload_release_fn, lk_user_data_free_fn, void *);
typedef lk_status (*put_fn)(lk_process_queue *, const lk_message *, size_t, int64_t, int64_t,
                            lk_put_result *);
typedef lk_status (*snapshot_fn)(const lk_process_queue *, int64_t, lk_snapshot *);
typedef void (*free_fn)(lk_process_queue *);

static new_fn queue_new;
static put_fn queue_put;
static snapshot_fn queue_snapshot;
static free_fn queue_free;
static pthread_barrier_t barrier;
static int wrong;

static void work(int64_t first)
{
    lk_process_queue_config config;
    lk_process_queue *queue = NULL;
    lk_message message;
    lk_put_result put;
    lk_snapshot cut;
    int64_t i;
    memset(&config, 0, sizeof(config));
    memset(&message, 0, sizeof(message));
    wrong += queue_new(&config, &queue, NULL, NULL, NULL, NULL) != LK_OK;
    for (i = 0; i < 500; i++) {
        message.offset = first + i;
        wrong += queue_put(queue, &message, 1, 0, -1, &put) != LK_OK;
    }
    wrong += queue_snapshot(queue, 0, &cut) != LK_OK || cut.count != 500;
    queue_free(queue);
}

static void *live_thread(void *argument)
{
    (void)argument;
    work(0);
    pthread_barrier_wait(&barrier); /* now main closes the library */
    pthread_barrier_wait(&barrier);
    work(1000);
    return NULL;
}

/* A function pointer out of dlsym, without the cast that ISO C does not know. */
static void resolve(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    if (symbol == NULL) {
        printf("dlclose: no %s\n", name);
        wrong++;
    }
    memcpy(function, &symbol, sizeof(symbol));
}

int main(int argc, char **argv)
{
    pthread_t thread;
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL) {
        printf("dlclose: cannot open %s\n", argc > 1 ? argv[1] : "(no path)");
        return 1;
    }
    resolve(library, "lk_process_queue_new", &queue_new);
    resolve(library, "lk_process_queue_put", &queue_put);
    resolve(library, "lk_process_queue_snapshot", &queue_snapshot);
    resolve(library, "lk_process_queue_free", &queue_free);
    if (wrong != 0) {
        return 1;
    }
    pthread_barrier_init(&barrier, NULL, 2);
    wrong += pthread_create(&thread, NULL, live_thread, NULL) != 0;
    pthread_barrier_wait(&barrier);
    wrong += dlclose(library) != 0;
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    printf("dlclose: %s\n", wrong == 0 ? "ok" : "failed");
    return wrong == 0 ? 0 : 1;
}
