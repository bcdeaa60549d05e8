/* Our static library and another Rust one in one program (report 76). */
#include "host.h"

#ifdef __cplusplus
extern "C"
#endif
uint64_t other_sum(uint64_t count);

int main(void)
{
    host h;
    lk_process_queue *queue = host_queue(&h, LK_MODE_ORDERLY);
    host_put(queue, 0, 100);
    CHECK_EQ(other_sum(10), 45);
    host_end(&h, queue, 100);
    return check_end("two_archives");
}
