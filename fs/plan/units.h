/* Units of unit=FIELD: the runs of samples of a dataset that have the same value of a field. The
 * words of such a plan count units, so a schedule has units where others have samples, and its
 * batches show all samples of theirs. An interface of fs/tree/; constant. */
#ifndef EPOCHFS_FS_PLAN_UNITS_H
#define EPOCHFS_FS_PLAN_UNITS_H

#include "base/search.h"
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
    return SEARCH_LAST(units->n, i, units->start[i] <= sample);
}

#endif
