/* Cuts: batches of any number of samples, as a schedule sees them. An interface;
 * docs/spec/order-length.md has the one that exists, batches by length (fs/plan/length_batches.h).
 *
 * The positions of an epoch are cut into batches, which are numbered over all ranks. How many there
 * are differs between epochs, and may take a pass over the epoch. Constant, as far as users see;
 * any thread may make any call. */
#ifndef EPOCHFS_FS_PLAN_BATCH_CUTS_H
#define EPOCHFS_FS_PLAN_BATCH_CUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct batch_cuts;

/* One batch. */
struct cut_batch {
    uint64_t base;  /* its samples are at the positions base + at[i] */
    uint32_t *at;   /* [count] owned */
    uint64_t count; /* samples, at least 1 */
    uint64_t begin; /* its first element, see elements() */
};

/* The ranks among which batches are dealt: number g goes to rank g mod ranks. */
struct cut_rank {
    uint64_t rank, ranks;
};

struct batch_cuts_ops {
    /* The batches of an epoch. false: they are not counted yet, and there are at most so many. */
    bool (*count)(const struct batch_cuts *cuts, uint64_t epoch, uint64_t *ret);
    /* Does the epoch have batch g? 0; -ENOENT; -EAGAIN: that takes a long pass, and is wanted from
     * now on; -ENOMEM. */
    int (*has)(const struct batch_cuts *cuts, uint64_t epoch, uint64_t g);
    /* Count that epoch in the background. true: it has to be counted. */
    bool (*ask)(const struct batch_cuts *cuts, uint64_t epoch);
    /* Find batch g. 0, and the caller frees ret->at; -ENOENT; -EIO: samples are others than when
     * they were counted; or -ENOMEM. May pass over the epoch up to there. */
    int (*find)(const struct batch_cuts *cuts, uint64_t epoch, uint64_t g, struct cut_batch *ret);
    /* The positions of count elements from first on: elements count samples in the order in which
     * all ranks together read them. UINT64_MAX where another rank reads them, or none does. */
    void (*elements)(const struct batch_cuts *cuts, uint64_t epoch, struct cut_rank rank,
                     uint64_t first, size_t count, uint64_t *ret);
    /* The first element from `from` on at which the rank may read a position: exact near `from`,
     * and never too late further on. UINT64_MAX: it has read it. */
    uint64_t (*element)(const struct batch_cuts *cuts, uint64_t epoch, struct cut_rank rank,
                        uint64_t position, uint64_t from);
};

struct batch_cuts {
    const struct batch_cuts_ops *ops;
    uint64_t window; /* a position's element is within the same multiple of this */
};

#endif
