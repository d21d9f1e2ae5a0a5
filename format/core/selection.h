/* A selection: the samples of one file of the mount, in order. fs/ makes it from a plan, the
 * encoders read it. */
#ifndef EPOCHFS_FORMAT_CORE_SELECTION_H
#define EPOCHFS_FORMAT_CORE_SELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/diag.h"

struct field;
struct picture_plan;
struct read_context;

struct selection {
    uint64_t count;
    bool single;   /* a file of one sample: its arrays have no batch axis */
    bool in_order; /* the sample at place p is first + p */
    uint64_t first;

    /* Identifies the selection within its dataset: no two have the same id. */
    uint64_t id[3];

    const char *file;    /* the file that shows it: absolute, without the suffix; NULL: unknown */
    struct diag *reason; /* why its form is unknown; may be NULL */

    /* Says when a long walk over the samples must end, and how it reads. NULL: never, and as
     * READ_WAITS. */
    struct read_context *rc;

    /* How a plan makes pictures (picture=, augment=), and for which epoch. positions() writes the
     * positions in the epoch of the samples at those places. NULL: it makes none. */
    const struct picture_plan *pictures;
    uint64_t epoch;
    void (*positions)(const struct selection *sel, uint64_t first, size_t n, uint64_t *ret);

    /* A plan of unit=: how many samples its units have up to and with each, and the field of them.
     * NULL: it has none. */
    const uint64_t *unit_end; /* [units] */
    uint64_t units;
    const struct field *unit_field;

    const uint64_t *list; /* [count] the samples; NULL: ask samples() */

    /* Write the sample numbers at places first .. first + n - 1, below count. Any thread after the
     * first call, which may set list. NULL: the samples are in order, or in the list. Call
     * selection_samples(). */
    void (*samples)(const struct selection *sel, uint64_t first, size_t n, uint64_t *ret);
};

/* The sample numbers at places first .. first + n - 1, below count. */
static inline void selection_samples(const struct selection *sel, uint64_t first, size_t n,
                                     uint64_t *ret)
{
    if (!n)
        return;
    if (sel->list)
        memcpy(ret, sel->list + first, n * sizeof(*ret));
    else if (!sel->in_order)
        sel->samples(sel, first, n, ret);
    else
        for (size_t i = 0; i < n; i++)
            ret[i] = sel->first + first + i;
}

/* The selection of one sample. */
struct one_sample {
    struct selection sel;
};

static inline void one_sample_init(struct one_sample *ret, uint64_t sample)
{
    ret->sel = (struct selection){
        .count = 1,
        .single = true,
        .in_order = true,
        .first = sample,
        .id = {0, sample, 1},
    };
}

#endif
