/* An order, as plans see it: an epoch has positions 0 .. length-1, and each shows a place of a list
 * of places 0 .. places-1. A place may have one position, several or none. Both ways are
 * arithmetic on (seed, epoch), so nothing is stored but what struct epoch_order holds.
 *
 * A kind of order is a table of functions. docs/spec/order.md defines each kind, by its name and
 * its version, for ever. An order that belongs to a dataset, as that of a mix, is given to
 * schedule_init_data() and takes the place of the permutation; its places are the dataset's
 * samples. */
#ifndef EPOCHFS_FS_PLAN_EPOCH_ORDER_H
#define EPOCHFS_FS_PLAN_EPOCH_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/plan/labels.h"
#include "fs/plan/order.h"

struct epoch_order;
struct order_spec;

/* A way through the positions of places place .. last, which its kind moves on. */
struct order_walk {
    uint64_t place, last; /* place > last: it has come to the end */
    uint64_t done;        /* of the kind; 0 to begin with */
};

struct order_ops {
    const char *name; /* as docs/spec/order.md has it */
    unsigned version;
    /* Set up ret->of_kind for an epoch; NULL: there is nothing to set up. */
    void (*begin)(const struct order_spec *spec, uint64_t epoch, struct epoch_order *ret);
    /* Replace count positions, all < length, by their places. Neighbours should be neighbours in x:
     * it is several times as fast as one by one. */
    void (*at)(const struct order_spec *spec, const struct epoch_order *e, size_t count,
               uint64_t *x);
    /* Write positions of the places of n walks, at most capacity of them (> 0), walk after walk,
     * those of a walk in any order but each once, and move the walks on. whose[i]: the number of
     * the walk of position i. Returns their number, which may be 0 before the end. Many walks at
     * once are several times as fast as one by one. */
    size_t (*positions)(const struct order_spec *spec, const struct epoch_order *e, size_t n,
                        struct order_walk *walk, size_t capacity, uint64_t *ret, uint32_t *whose);
    /* How many positions places first .. last have in an epoch, about. */
    uint64_t (*count)(const struct order_spec *spec, uint64_t first, uint64_t last);
};

/* An order of all epochs: its functions and what they need. */
struct order_spec {
    const struct order_ops *ops;
    uint64_t places;                    /* of the list */
    uint64_t length;                    /* positions of an epoch, at most ORDER_MAX */
    bool seeded;                        /* else all epochs are the same, and: */
    uint64_t seed;                      /* 0 */
    uint64_t window;                    /* of shuffle=; 0: full */
    const struct plan_weights *weights; /* of draw=N:FIELD */
    const struct plan_classes *classes; /* of draw=N:balanced and classes= */
    uint64_t batch_classes, of_class;   /* classes=PxK */
    const void *impl;                   /* of an order that belongs to a dataset */
};

/* What is computed once for an epoch. It may be copied. */
struct epoch_order {
    struct permutation split; /* of schedule.c; the same in all epochs */
    uint64_t epoch;           /* set before begin() */
    union {
        struct order shuffle; /* permutation; draw */
        struct permutation_family family;
    } of_kind;
    uint64_t offset; /* of a draw */
};

/* The kinds of orders of lists. Without a seed the permutation is the stored order. */
extern const struct order_ops order_permutation, order_draw, order_classes;

/* order_kind.count() where each class has as many positions as the others. */
uint64_t order_count_by_class(const struct order_spec *spec, uint64_t first, uint64_t last);

/* The positions of an epoch of classes=PxK; UINT64_MAX: too many. */
uint64_t order_classes_length(const struct order_spec *spec);

#endif
