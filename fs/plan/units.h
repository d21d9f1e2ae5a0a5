/* Units of unit=FIELD: the runs of samples of a dataset that have the same value of a field. The
 * words of such a plan count units, so a schedule has units where others have samples, and its
 * batches show all samples of theirs. An interface of fs/tree/; constant. */
#ifndef EPOCHFS_FS_PLAN_UNITS_H
#define EPOCHFS_FS_PLAN_UNITS_H

#include "fs/plan/labels.h"

struct plan_units {
    struct plan_lengths lengths; /* first: of each sample those of its unit, in samples */
    uint64_t n;
    const uint32_t *start; /* [n + 1] the first sample of each, and the number of samples */
    uint64_t repeated;     /* units with the value of an earlier one */
};

/* The unit of a sample, which is below start[n]. */
static inline uint64_t plan_units_of(const struct plan_units *units, uint64_t sample)
{
    uint64_t low = 0, n = units->n;

    while (n > 1) {
        uint64_t half = n / 2;

        low = units->start[low + half] <= sample ? low + half : low;
        n -= half;
    }
    return low;
}

#endif
