/* The classes and weights that plans need: of each list of samples that a plan leaves, and of each
 * field, one index (format/labels/labels.h), made when it is first needed.
 *
 *     IDLE   -> WANTED   list_labels_get() needs it
 *     WANTED -> READY    list_labels_step() has made it, or found it kept
 *     WANTED -> IDLE     bytes cannot be fetched now: the next one that needs it begins again
 *     WANTED -> REFUSED  for good: the field has no classes or weights
 *
 * A list that is a run of the stored order needs that of the dataset alone, whatever run it is.
 * Another list, as split= and only= make them, has one of its own, which is made from it. */
#ifndef EPOCHFS_FS_TREE_LIST_LABELS_H
#define EPOCHFS_FS_TREE_LIST_LABELS_H

#include "base/lock.h"
#include "base/memory.h"
#include "format/core/format.h"
#include "format/labels/labels.h"
#include "fs/plan/schedule.h"

#define LIST_LABELS_MAX 1024 /* of all datasets, fields and lists */

struct list_label;
struct dataset_label;

struct list_labels {
    /* Constant: */
    const struct format_setup *setup;
    struct labels_memory memory;
    _Atomic unsigned wanted;

    struct lock lock;
    /* Guarded by lock: states of these, and where the list ends; the rest is the stepping thread's
     * until they are ready, and constant from then on. */
    struct list_label *first, *last;
    unsigned n;
    /* The stepping thread's: */
    struct dataset_label *datasets;
    struct list_label *latest; /* that it has worked on */
};

/* setup must outlive it. */
void list_labels_init(struct list_labels *ret, const struct format_setup *setup);
void list_labels_release(struct list_labels *all); /* no plan that uses it may be left */

/* Set the classes or weights in data that a plan needs of a dataset that is ready; what else it
 * needs exists. 0; -EAGAIN: they are not ready, and wanted from now on; -EINVAL with the reason
 * in d: the dataset cannot have them; -ENFILE, -ENOMEM. Any thread. *ret_label (may be NULL): for
 * list_label_is_lost(); NULL: the plan needs none. */
int list_labels_get(struct list_labels *all, const struct dataset *ds, const struct plan *plan,
                    struct plan_data *data, const struct list_label **ret_label, struct diag *d);

/* The lengths of the samples of a whole dataset, as length_input_init() knows word: data->lengths.
 * The rest as list_labels_get(). */
int list_labels_lengths(struct list_labels *all, const struct dataset *ds, const char *word,
                        struct plan_data *data, const struct list_label **ret_label,
                        struct diag *d);

/* Add a text that differs wherever the lists of plans, and what plans need of them, may: of lengths
 * that are ready, and of the list of only=, which may be NULL. 0 or -errno. */
int list_label_identity(const struct list_label *label, const struct plan_list *only,
                        struct text *t);

/* Set data->units for the field of unit=. As list_labels_get(). */
int list_labels_units(struct list_labels *all, const struct dataset *ds, const char *field,
                      struct plan_data *data, const struct list_label **ret_label, struct diag *d);

/* Was the file of one cut short, so that what was computed with it does not count? Any thread. */
bool list_label_is_lost(const struct list_label *label);

/* Make what is wanted a step further. 1: one of *ret_ds is ready, or refused; 0: not yet; -EAGAIN:
 * only other processes can go on, so call it again in a while; -ENOENT: nothing is wanted; or
 * another -errno with the reason in d: one of *ret_ds could not be made just now, and is not wanted
 * any more. One thread at a time. rc: says when it must end. */
int list_labels_step(struct list_labels *all, struct read_context *rc,
                     const struct dataset **ret_ds, struct diag *d);

/* Is something of the dataset, or of any, wanted and not ready? Any thread. */
bool list_labels_wanted(struct list_labels *all, const struct dataset *ds);
bool list_labels_any_wanted(const struct list_labels *all); /* takes no lock */

/* list_labels_step() for commands, which wait. 0: list_labels_get() can be called again; or -errno
 * with the reason in d. */
int list_labels_go_on(struct list_labels *all, struct diag *d);

/* The memory that they take, except what is mapped. owner: a struct list_labels. */
struct memory_held list_labels_held(void *owner);

#endif
