/* A schedule: a plan applied to a dataset. Which samples are in which batch, and which element of
 * the epoch reads a sample. Arithmetic only.
 *
 *   element -> position -> place of the list -> sample
 *           rank, tail  seed             split, take, part
 *
 * The list is what take=, split= and part= leave of the dataset. An epoch shows the first positions
 * of its order, as many as limit= says; the rank's elements are cut into batches. */
#ifndef EPOCHFS_FS_PLAN_SCHEDULE_H
#define EPOCHFS_FS_PLAN_SCHEDULE_H

#include "fs/plan/plan.h"

/* Consecutive samples of a dataset. */
struct plan_range {
    uint64_t start, length;
};

struct schedule {
    const struct plan *plan;
    struct plan_range
        taken;          /* samples of the dataset that the list is of: without a split, it is */
    uint64_t offset;    /* with a split: place of its permutation where the list begins; or 0 */
    uint64_t length;    /* places of the list */
    uint64_t positions; /* of them, those that an epoch shows */
    uint64_t elements;  /* of the rank, over all batches */
    uint64_t batch;     /* samples of a batch but a short last one */
    uint64_t batches;
    uint64_t wraps; /* how often the positions begin again before the epoch ends */
};

/* What is computed once for the order of an epoch. */
struct epoch_order {
    struct order shuffle;     /* with a seed */
    struct permutation split; /* with a split; the same in all epochs */
};

/* samples: of the dataset. part: the plan's part of it as the dataset's format cuts it; NULL: in
 * equal shares; not used where take= or split= come before it. plan must outlive ret. */
void schedule_init(struct schedule *ret, const struct plan *plan, uint64_t samples,
                   const struct plan_range *part);

/* Do the plan's words hold for a dataset of so many samples? 0; or -EINVAL with the reason in d: a
 * share that has no samples, a limit beyond the list. */
int schedule_check(const struct schedule *s, struct diag *d);

/* Share number part of n samples in equal parts; the first n mod parts shares have one more. */
void plan_share(uint64_t part, uint64_t parts, uint64_t n, uint64_t *ret_start,
                uint64_t *ret_length);

/* Is the order another than the stored one? In each epoch another with a seed, else always the same
 * one. */
static inline bool schedule_has_order(const struct schedule *s)
{
    return s->plan->seeded || s->plan->splits;
}

/* How many samples batch number has; number < batches. */
uint64_t schedule_count(const struct schedule *s, uint64_t number);

/* Are the samples of batch number, which has some, consecutive in the stored order? *ret_first: the
 * first. */
bool schedule_in_order(const struct schedule *s, uint64_t number, uint64_t *ret_first);

/* Set up the order of an epoch. Without one it does nothing. */
void schedule_order(const struct schedule *s, uint64_t epoch, struct epoch_order *ret);

/* The samples at places first .. first + count - 1 of batch number. order: schedule_order() of the
 * epoch; not used if the schedule has none. */
void schedule_samples(const struct schedule *s, const struct epoch_order *order, uint64_t number,
                      uint64_t first, size_t count, uint64_t *ret);

/* The way back: the first element from `from` on that reads one of samples first .. last of the
 * dataset. SCHEDULE_NONE: none does in this epoch. With an order, not all of very many samples are
 * looked at. */
#define SCHEDULE_NONE UINT64_MAX
uint64_t schedule_find(const struct schedule *s, const struct epoch_order *order, uint64_t first,
                       uint64_t last, uint64_t from);

/* The last element that reads one of samples first .. last of the dataset; never too small.
 * SCHEDULE_NONE: none does. It may be larger than that if the positions begin again within the
 * epoch, or for very many samples. */
uint64_t schedule_last(const struct schedule *s, const struct epoch_order *order, uint64_t first,
                       uint64_t last);

#endif
