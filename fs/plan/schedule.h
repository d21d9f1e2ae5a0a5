/* A schedule: a plan applied to a dataset. Which samples are in which batch, and which element of
 * the epoch reads a sample. Arithmetic only.
 *
 *   element -> position -> place of the list -> sample
 *           rank, tail  order            part, split, take, only
 *
 * The list is what only=, take=, split= and part= leave of the dataset. An epoch shows the first
 * positions of its order, as many as limit= says; the rank's elements are cut into batches. */
#ifndef EPOCHFS_FS_PLAN_SCHEDULE_H
#define EPOCHFS_FS_PLAN_SCHEDULE_H

#include "fs/plan/batch_cuts.h"
#include "fs/plan/epoch_order.h"
#include "fs/plan/list.h"
#include "fs/plan/plan.h"
#include "fs/plan/units.h"

/* Consecutive samples of a dataset. */
struct plan_range {
    uint64_t start, length;
};

/* What a plan is applied to. NULL where there is none, or where the plan has no use for it. All of
 * it outlives the schedule. */
struct plan_data {
    uint64_t samples;               /* of the dataset */
    const struct plan_range *part;  /* the plan's part of it as the dataset's format cuts it;
                                       NULL: in equal shares. Not used where only=, take= or
                                       split= come before it */
    const struct plan_list *only;   /* only=NAME; with length=, what only=, take= and it leave */
    const struct plan_units *units; /* of unit=; part is not used with it */
    const struct plan_classes *classes;     /* of the plan's list, see plan_field() */
    const struct plan_weights *weights;     /* the same */
    const struct plan_lengths *lengths;     /* of batches by length, in which: */
    const struct batch_cuts *cuts;          /* the list is cut */
    const struct order_spec *dataset_order; /* an order that belongs to the dataset: ops, length
                                     and impl. Its places are the samples */
};

struct text;

struct schedule {
    const struct plan *plan;
    const struct plan_list *only;   /* NULL: all samples */
    const struct plan_units *units; /* NULL: there are none; then samples are units, below */
    uint64_t samples;               /* of those, before any other word */
    struct plan_range taken;        /* samples of the dataset, or places of `only`, that the list is
                                       of: without a split, it is */
    uint64_t offset;         /* with a split: place of its permutation where the list begins */
    uint64_t length;         /* places of the list */
    struct order_spec order; /* of those places */
    uint64_t positions;      /* of the order, those that an epoch shows */
    uint64_t unit;           /* elements that go to a rank together */
    uint64_t elements;       /* of the rank, over all batches */
    uint64_t batch;          /* samples of a batch but a short last one */
    uint64_t batches;
    uint64_t wraps; /* how often the positions begin again before the epoch ends */
    /* Batches by length. Then elements are those of all ranks, and batches are at most so many. */
    const struct batch_cuts *cuts;
};

/* plan must outlive ret. The list is right without classes and weights; the rest needs those that
 * plan_field() asks for, so their maker calls this once before and once after. */
void schedule_init_data(struct schedule *ret, const struct plan *plan,
                        const struct plan_data *data);

/* The same for a plan that needs nothing else of its dataset. */
void schedule_init(struct schedule *ret, const struct plan *plan, uint64_t samples,
                   const struct plan_range *part);

/* Do the parameters that leave a list hold, and is there one to draw from? 0; or -EINVAL with the
 * reason in d. */
int schedule_check_list(const struct schedule *s, struct diag *d);

/* Do the plan's parameters hold for its dataset? 0; or -EINVAL with the reason in d: a share that
 * has no samples, a limit beyond the list, more classes than there are. */
int schedule_check(const struct schedule *s, struct diag *d);

/* Say, in sentences, what may be a mistake although the parameters hold: a place beyond the end, an
 * epoch without samples. Adds nothing where there is none. */
void schedule_note(const struct schedule *s, struct text *t);

/* The samples at count places of the list, from first on. */
void schedule_list(const struct schedule *s, uint64_t first, size_t count, uint64_t *ret);

/* Share number part of n samples in equal parts; the first n mod parts shares have one more. */
void plan_share(uint64_t part, uint64_t parts, uint64_t n, uint64_t *ret_start,
                uint64_t *ret_length);

/* Is the order another than the stored one? In each epoch another with a seed, otherwise always the
 * same one. */
static inline bool schedule_has_order(const struct schedule *s)
{
    return s->order.seeded || s->order.ops != &order_permutation || s->plan->splits || s->only ||
           s->cuts || s->units;
}

/* ---- batches ----
 *
 * Most plans cut the elements of a rank into batches of the same size, so arithmetic says how many
 * batches there are, and which elements are in each. Plans may also have batches of any number of
 * samples each, in each epoch others. So nothing else may compute these numbers:
 *
 *   schedule_batches()    how many there are, as far as that is known without a pass over the epoch
 *   schedule_has()        is there a batch of that number? It may need a pass, and says so
 *   schedule_batch_init() one batch: how many samples it has, and what it takes to find them
 *   schedule_samples()    the samples of it; schedule_positions() the same before the order
 *
 * The forecast sees one line of elements instead, see schedule_elements(). A plan whose places are
 * not samples but runs of them, or whose batches are cut by another rule, sets count and the
 * positions in schedule_batch_init(). */
struct schedule_batch {
    uint64_t number, count;
    uint64_t base; /* of batches by length: their positions are base + at[] */
    uint32_t *at;  /* [count] owned */
    /* With unit=, its units, and how many samples they have up to and with each; owned. */
    uint64_t units, *unit, *end; /* [units] */
};

/* *ret: the batches of an epoch. false: it is not known yet, and there are at most so many. */
bool schedule_batches(const struct schedule *s, uint64_t epoch, uint64_t *ret);

/* 0; -ENOENT: the epoch has no such batch; -EAGAIN: that takes a pass over the epoch. */
int schedule_has(const struct schedule *s, uint64_t epoch, uint64_t number);

/* Find a batch that the epoch has. 0, and the caller releases *ret; or -ENOMEM. */
int schedule_batch_init(const struct schedule *s, uint64_t epoch, uint64_t number,
                        struct schedule_batch *ret);
void schedule_batch_release(struct schedule_batch *batch); /* takes one that is {0} */

/* Are the samples of a batch, which has some, consecutive in the stored order? *ret_first: the
 * first. */
bool schedule_in_order(const struct schedule *s, const struct schedule_batch *batch,
                       uint64_t *ret_first);

/* Set up the order of an epoch. Without one it does nothing. */
void schedule_order(const struct schedule *s, uint64_t epoch, struct epoch_order *ret);

/* The samples at places first .. first + count - 1 of a batch. order: schedule_order() of the
 * epoch; not used if the schedule has none. */
void schedule_samples(const struct schedule *s, const struct epoch_order *order,
                      const struct schedule_batch *batch, uint64_t first, size_t count,
                      uint64_t *ret);

/* The positions in the epoch of the same places. */
void schedule_positions(const struct schedule *s, const struct schedule_batch *batch,
                        uint64_t first, size_t count, uint64_t *ret);

/* ---- elements ---- */

#define SCHEDULE_NONE UINT64_MAX

/* The element that batch number begins with. */
uint64_t schedule_begin(const struct schedule *s, uint64_t epoch, uint64_t number);

/* The samples of count elements from first on; SCHEDULE_NONE where another rank reads them. With
 * unit= elements are units, and this is the first sample of each. */
void schedule_elements(const struct schedule *s, const struct epoch_order *order, uint64_t first,
                       size_t count, uint64_t *ret);

/* The way back: the first element from `from` on that reads one of samples first .. last of the
 * dataset. SCHEDULE_NONE: none does in this epoch. With an order, not all of very many samples, or
 * of very many positions of theirs, are looked at. */
uint64_t schedule_find(const struct schedule *s, const struct epoch_order *order, uint64_t first,
                       uint64_t last, uint64_t from);

/* The same for count ranges of samples, each with first <= last: *ret has an element of each.
 * Several times as fast as one by one. */
void schedule_find_each(const struct schedule *s, const struct epoch_order *order, size_t count,
                        const struct plan_samples *wanted, uint64_t from, uint64_t *ret);

/* The last element that reads one of samples first .. last of the dataset; never too small.
 * SCHEDULE_NONE: none does. It may be larger than that if the positions begin again within the
 * epoch, or for very many samples. */
uint64_t schedule_last(const struct schedule *s, const struct epoch_order *order, uint64_t first,
                       uint64_t last);

#endif
