// A C++ exception that leaves the release callback ends the process, cleanly: it neither passes
// through the library nor comes back as a status. Ends by SIGABRT; exits with 1 otherwise.
#include <cstdio>
#include <stdexcept>

#include "lanekeeper.h"

static void throwing(void *, uint64_t)
{
    throw std::runtime_error("out of the callback");
}

int main()
{
    lk_process_queue_config config = LK_PROCESS_QUEUE_CONFIG_INIT;
    lk_process_queue *queue = nullptr;
    lk_message message = {0, 7, 1, 0};
    lk_put_result put;
    lk_close_result closed;
    if (lk_process_queue_new(&config, &queue, nullptr, throwing, nullptr, nullptr) != LK_OK ||
        lk_process_queue_put(queue, &message, 1, 0, LK_BROKER_MAX_UNKNOWN, &put) != LK_OK) {
        return 1;
    }
    try {
        lk_status status = lk_process_queue_close(queue, 0, &closed);
        std::printf("throw: answered %s\n", lk_status_name(status));
    } catch (const std::exception &) {
        std::printf("throw: the exception passed through the library\n");
    }
    return 1;
}
