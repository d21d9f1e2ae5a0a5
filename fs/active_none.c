/* Stands in for fs/active.c until that is there, and goes with its coming. */
#include "fs/active.h"

size_t actives_list(struct actives *actives, struct active_info ret[static ACTIVES_MOST])
{
    (void)actives;
    (void)ret;
    return 0;
}

struct actives_counters *actives_counters(struct actives *actives)
{
    static struct actives_counters none;

    (void)actives;
    return &none;
}
