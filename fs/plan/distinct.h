/* How many different samples plans read, about: for the arithmetic of `epochfs plan`. */
#ifndef EPOCHFS_FS_PLAN_DISTINCT_H
#define EPOCHFS_FS_PLAN_DISTINCT_H

#include "fs/plan/schedule.h"

struct plan_distinct {
    uint64_t first, span; /* samples of the dataset among which those of the list are spread */
    double listed;        /* different samples that some epoch reads, of all ranks */
    double epoch;         /* different samples that the rank reads in an epoch */
    double part;          /* of the positions of an epoch, those that the rank reads, 0 to 1 */
    bool repeats;         /* it reads some again, to fill up the last batch */
};

/* The schedule has what its plan needs. For a long list some places are looked at. */
void plan_distinct(const struct schedule *s, struct plan_distinct *ret);

#endif
