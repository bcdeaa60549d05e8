/* The second unit of two_units_a.c. */
#include "lanekeeper.h"

int other_unit(void);

int other_unit(void)
{
    return lk_abi_matches() ? 0 : 1;
}
