/* Classes and weights as plans ask for them (fs/plan/labels.h), from an index of labels: those of a
 * run of its samples. A place of the list is a sample less the first of the run. */
#ifndef EPOCHFS_FS_TREE_RUN_LABELS_H
#define EPOCHFS_FS_TREE_RUN_LABELS_H

#include "format/labels/label_file.h"
#include "fs/plan/labels.h"

struct run_classes {
    struct plan_classes classes; /* first */
    const struct label_arrays *arrays;
    uint64_t first; /* of the run */
    const uint64_t *at,
        *end;        /* [n] where in arrays->member each class has its samples of the run */
    uint64_t *owned; /* at and end, unless they are those of the index */
};

/* arrays must outlive ret. *ret_held: bytes of memory that it takes. 0 or -ENOMEM. */
int run_classes_init(struct run_classes *ret, const struct label_arrays *arrays, uint64_t first,
                     uint64_t length, uint64_t *ret_held);
void run_classes_release(struct run_classes *r); /* takes a zeroed one */

struct run_weights {
    struct plan_weights weights; /* first */
    const uint64_t *sum;         /* [places + 1] of the index, from the first of the run on */
    uint64_t *top;               /* [tops] sum[i * RUN_TOP], which are looked at first */
    uint64_t tops;
};

#define RUN_TOP 512 /* a page of sums */

/* The same. 0; -ENOMEM; or -EDOM: all weights of the run are 0. */
int run_weights_init(struct run_weights *ret, const struct label_arrays *arrays, uint64_t first,
                     uint64_t length, uint64_t *ret_held);
void run_weights_release(struct run_weights *r);

#endif
