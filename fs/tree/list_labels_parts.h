/* What list_labels.c and list_labels_units.c share. No other file includes this. */
#ifndef EPOCHFS_FS_TREE_LIST_LABELS_PARTS_H
#define EPOCHFS_FS_TREE_LIST_LABELS_PARTS_H

#include "format/labels/field_input.h"
#include "fs/tree/list_labels.h"
#include "fs/tree/run_labels.h"

/* An index of the whole dataset. */
struct dataset_label {
    struct dataset_label *next;
    char asked[FIELD_NAME_SIZE]; /* the field, or the word of lengths */
    struct field_input input;
    struct labels labels;
    char *identity; /* owned */
};

/* The lengths of an index. */
struct mapped_lengths {
    struct plan_lengths lengths; /* first */
    const struct label_arrays *arrays;
};

enum state { IDLE, WANTED, READY, REFUSED };

/* The classes or weights of a list. */
struct list_label {
    struct list_label *next;
    struct list_labels *all;
    /* Constant: */
    const struct dataset *ds;
    enum label_purpose type;
    char field[FIELD_NAME_SIZE];
    struct plan plan;         /* that made the list, */
    struct schedule schedule; /* without an order */

    enum state state; /* guarded by all->lock; and before READY or REFUSED: */
    struct diag reason;

    /* The stepping thread's, then constant: */
    struct dataset_label *whole;
    struct label_input input; /* of a list that is no run */
    struct labels labels;
    char *identity, *name; /* of it; owned */
    struct run_classes classes;
    struct run_weights weights;
    struct mapped_lengths lengths;
    struct plan_units units;
    uint32_t *starts; /* of units; owned */
    uint64_t held;
};

/* The value of a sample in an index of classes or weights. */
int64_t list_labels_value_of(const struct label_arrays *a, uint64_t sample);

/* They read struct mapped_lengths. */
extern const struct plan_lengths_ops list_labels_lengths_ops;

/* Find the units of a list whose classes are known. 1 or -ENOMEM. */
int list_labels_make_units(struct list_label *l, const struct label_arrays *a);

#endif
