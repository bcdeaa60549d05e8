/* One program, two units that include the header and use its inline helper and macros: no symbol
 * is defined twice. The layout assertions are checked here as well. */
#include "lanekeeper.h"
#include "layout.h"
#include "lanekeeper.h"

int other_unit(void);

int main(void)
{
    lk_process_queue_config config = LK_PROCESS_QUEUE_CONFIG_INIT;
    return lk_abi_matches() && config.struct_size == sizeof(config) && other_unit() == 0 ? 0 : 1;
}
