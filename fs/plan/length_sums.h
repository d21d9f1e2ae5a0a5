/* The sums of length batches: how many batches the windows before each window of an epoch have.
 * The threads that need them count window after window, and so does a pass in the background; they
 * are kept for the next mount.
 *
 * Two threads may count the same windows: both find the same numbers, and the first publishes them.
 * fs/plan/length_batches.c is the only user. */
#ifndef EPOCHFS_FS_PLAN_LENGTH_SUMS_H
#define EPOCHFS_FS_PLAN_LENGTH_SUMS_H

#include <stdatomic.h>

#include "base/checked.h"
#include "base/lock.h"
#include "fs/plan/length_batches.h"
#include "fs/plan/schedule.h"

#define LENGTH_SUMS_EPOCHS 64                   /* whose sums are in memory, */
#define LENGTH_SUMS_BYTES  (UINT64_C(64) << 20) /* in so many bytes, or two */

struct epoch_sums {
    /* Constant: */
    uint64_t epoch;
    struct epoch_order order;
    uint32_t *start; /* [windows + 1] those up to `known` are constant; NULL: arithmetic */
    _Atomic uint64_t known;
    /* Guarded by the lock of struct length_sums: */
    struct epoch_sums *next; /* used before this one */
    unsigned users;
    bool is_wanted, was_loaded;
};

struct length_sums {
    /* Set by the owner, then constant: */
    uint64_t windows, window; /* of an epoch; places of one */
    bool is_arithmetic;
    struct length_keeper keeper;
    const struct schedule *places;

    _Atomic unsigned wanted;
    struct lock lock;
    /* Guarded by lock: */
    struct epoch_sums *latest;
    unsigned n;
};

void length_sums_init(struct length_sums *s);
void length_sums_release(struct length_sums *s);

/* The sums of an epoch, until they are let go of. 0 or -ENOMEM. */
int length_sums_hold(struct length_sums *s, uint64_t epoch, struct epoch_sums **ret);
void length_sums_let_go(struct length_sums *s, struct epoch_sums *e);

/* Read them where they are kept, once, if none is known. */
void length_sums_load(struct length_sums *s, struct epoch_sums *e);

/* n windows from number `from` on have these numbers of batches. */
void length_sums_add(struct length_sums *s, struct epoch_sums *e, uint64_t from, size_t n,
                     const uint32_t *batches);

/* Keep all of them, if they are wanted; then they are not, any more. */
void length_sums_finish(struct length_sums *s, struct epoch_sums *e);

/* Want them; true: they have to be counted. */
bool length_sums_want(struct length_sums *s, struct epoch_sums *e);

/* Hold those that are wanted. False: none are. */
bool length_sums_hold_wanted(struct length_sums *s, struct epoch_sums **ret);

/* The memory of one epoch, and how many epochs are kept. */
static inline uint64_t length_sums_size(const struct length_sums *s)
{
    return sizeof(struct epoch_sums) + (s->is_arithmetic ? 0 : 4 * (s->windows + 1));
}

static inline uint64_t length_sums_most(const struct length_sums *s)
{
    return max_u64(2, min_u64(LENGTH_SUMS_EPOCHS, LENGTH_SUMS_BYTES / length_sums_size(s)));
}

static inline uint64_t length_sums_known(const struct epoch_sums *e)
{
    return atomic_load_explicit(&e->known, memory_order_acquire);
}

#endif
