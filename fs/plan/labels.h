/* What plans that draw, that have classes, or batches by length, ask of one field: interfaces.
 *
 * The list is what only=, take=, split= and part= leave, with places 0 .. places - 1. fs/tree/
 * answers from an index of the field that is made before the plan opens, so each question is
 * memory only, or a page of a mapped file. Constant; any thread. */
#ifndef EPOCHFS_FS_PLAN_LABELS_H
#define EPOCHFS_FS_PLAN_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The classes of an integer field: its distinct values, sorted, those that occur in the list. */
struct plan_classes;

struct plan_classes_ops {
    /* How many places have class c, at least 1. c < n. */
    uint64_t (*count)(const struct plan_classes *classes, uint64_t c);
    /* The place of member i of class c: they rise with i. i < count(c). */
    uint64_t (*place)(const struct plan_classes *classes, uint64_t c, uint64_t i);
    /* The way back: the class of a place, and which member it is. place < places. */
    void (*find)(const struct plan_classes *classes, uint64_t place, uint64_t *ret_c,
                 uint64_t *ret_i);
};

struct plan_classes {
    const struct plan_classes_ops *ops;
    uint64_t places;
    uint64_t n;           /* classes */
    uint64_t least, most; /* count() of the smallest and of the largest class */
};

/* The weights of a field that is not negative, as integers, and their sums. */
struct plan_weights;

struct plan_weights_ops {
    /* The sum of the weights before a place. place <= places; of places it is total. */
    uint64_t (*before)(const struct plan_weights *weights, uint64_t place);
    /* The place that has the value: before(place) <= value < before(place + 1). value < total. */
    uint64_t (*place)(const struct plan_weights *weights, uint64_t value);
};

struct plan_weights {
    const struct plan_weights_ops *ops;
    uint64_t places;
    uint64_t total; /* at least 1, below 2^63 */
};

/* The lengths of the samples of a dataset, for batches by length. */
struct plan_lengths;

struct plan_lengths_ops {
    /* The lengths of count samples. */
    void (*get)(const struct plan_lengths *lengths, size_t count, const uint64_t *sample,
                uint32_t *ret);
};

struct plan_lengths {
    const struct plan_lengths_ops *ops;
    const char *word; /* what they are, such as "tokens" */
    bool is_micro;    /* in millionths of what users write: seconds */
};

#endif
