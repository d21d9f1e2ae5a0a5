/* The batches by length of the plans of a mount: one struct length_batches for each dataset and
 * each plan, whatever rank or tail it has, so that all ranks count once. Their sums are kept in the
 * index store, by dataset, plan and epoch. */
#ifndef EPOCHFS_FS_TREE_LENGTH_PLANS_H
#define EPOCHFS_FS_TREE_LENGTH_PLANS_H

#include "base/lock.h"
#include "base/memory.h"
#include "fs/plan/schedule.h"

struct dataset;
struct format_setup;
struct length_list;
struct length_plan;
struct list_label;

#define LENGTH_PLANS_MAX 4096 /* and as many lists of length= */

struct length_plans {
    const struct format_setup *setup; /* constant */
    struct lock lock;
    /* Guarded by lock: */
    struct length_plan *first; /* each constant; the latest first */
    unsigned n;
    struct length_list *lists; /* the same */
    unsigned n_lists;
    struct memory_held list_bytes; /* the limit is constant */
};

/* setup must outlive it. */
void length_plans_init(struct length_plans *ret, const struct format_setup *setup);
void length_plans_release(struct length_plans *all); /* no plan that uses it may be left */

/* Where lengths come from, and which samples have them: those of a dataset, or of the sources of a
 * mix. */
struct length_source {
    const struct list_label *const *label; /* [n] */
    const struct plan_list *const *only;   /* [n] of only= and length=; NULL: none */
    unsigned n;
    const char *text; /* of the mix; "" */
};

/* Set data->cuts of a plan by length; data has all else that it needs. source: of data->lengths. 0;
 * -EINVAL with the reason in d; -ENFILE, -ENOMEM. */
int length_plans_get(struct length_plans *all, const struct dataset *ds, const struct plan *plan,
                     struct plan_data *data, const struct length_source *source, struct diag *d);

/* Replace data->only of a plan with length= by the samples that only=, take= and length= leave, of
 * data->lengths. As length_plans_get(). */
int length_plans_list(struct length_plans *all, const struct dataset *ds, const struct plan *plan,
                      struct plan_data *data, struct diag *d);

/* Count an epoch that is wanted a step further. 0, with its dataset; -ENOENT: none is; -ENOMEM. One
 * thread at a time. */
int length_plans_step(struct length_plans *all, const struct dataset **ret_ds);

/* Is an epoch of a plan of that dataset (NULL: of any) wanted? */
bool length_plans_wanted(struct length_plans *all, const struct dataset *ds);

/* The memory that they take. owner: a struct length_plans. */
struct memory_held length_plans_held(void *owner);

#endif
