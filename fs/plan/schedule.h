/* A schedule: a plan applied to a dataset. Which samples are in which batch, and which element of
 * the epoch reads a sample. Arithmetic only. */
#ifndef EPOCHFS_FS_PLAN_SCHEDULE_H
#define EPOCHFS_FS_PLAN_SCHEDULE_H

#include "fs/plan/plan.h"

/* The list is the plan's part of the dataset, in stored order or in
 * the order of an epoch; the rank's elements are cut into batches. */
struct schedule {
    const struct plan *plan;
    uint64_t start;    /* first sample of the part */
    uint64_t length;   /* samples of the part = positions of the list */
    uint64_t elements; /* of the rank, over all batches */
    uint64_t batch;    /* samples of a batch but a short last one */
    uint64_t batches;
    uint64_t wraps; /* how often the list begins again before the epoch ends */
};

/* start, length: the part's share of the dataset, as its format cuts it; plan must outlive ret. */
void schedule_init(struct schedule *ret, const struct plan *plan, uint64_t start, uint64_t length);

/* Share number part of n samples in equal parts; the first n mod parts shares have one more. */
void plan_share(uint64_t part, uint64_t parts, uint64_t n, uint64_t *ret_start,
                uint64_t *ret_length);

/* How many samples batch number has; number < batches. */
uint64_t schedule_count(const struct schedule *s, uint64_t number);

/* Are the samples of batch number, which has some, consecutive in the stored order? *ret_first: the
 * first. */
bool schedule_in_order(const struct schedule *s, uint64_t number, uint64_t *ret_first);

/* Set up the order of an epoch, which a plan with a seed has. Without a seed it does nothing. */
void schedule_order(const struct schedule *s, uint64_t epoch, struct order *ret);

/* The samples at places first .. first + count - 1 of batch number. order: schedule_order() of the
 * epoch; not used without a seed. */
void schedule_samples(const struct schedule *s, const struct order *order, uint64_t number,
                      uint64_t first, size_t count, uint64_t *ret);

/* The way back: the first element from `from` on that reads one of samples first .. last of the
 * dataset. SCHEDULE_NONE: none does in this epoch. With a seed, not all of very many samples are
 * looked at. */
#define SCHEDULE_NONE UINT64_MAX
uint64_t schedule_find(const struct schedule *s, const struct order *order, uint64_t first,
                       uint64_t last, uint64_t from);

/* The last element that reads one of samples first .. last of the dataset; never too small.
 * SCHEDULE_NONE: none does. It may be larger than that if the list begins again within the epoch,
 * or for very many samples. */
uint64_t schedule_last(const struct schedule *s, const struct order *order, uint64_t first,
                       uint64_t last);

#endif
