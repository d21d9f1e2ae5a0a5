/* One window of length batches: its places sorted by falling length, cut into batches, and the
 * batches in the order in which an epoch shows them. fs/plan/length_batches.c is the only user. */
#ifndef EPOCHFS_FS_PLAN_LENGTH_WINDOW_H
#define EPOCHFS_FS_PLAN_LENGTH_WINDOW_H

#include "fs/plan/length_batches.h"
#include "fs/plan/schedule.h"

/* How windows are cut. Constant. */
struct length_cutter {
    const struct schedule *places; /* whose elements are the positions of the windows */
    const struct plan_lengths *lengths;
    uint64_t n, window; /* positions of an epoch, of a window */
    uint64_t budget;    /* UINT64_MAX: none */
    uint64_t most;      /* samples of a batch */
    uint64_t quad;      /* 0: none */
    uint64_t group;
    bool drops_short; /* the last batch, if it has fewer than `most` */
};

/* A window that is sorted. */
struct sorted_window {
    uint64_t *memory;     /* owned by the caller */
    uint64_t *keys;       /* [places] of length and place */
    uint64_t places, end; /* those before end are in batches */
};

/* Sort window w of the epoch of order. 0, and the caller frees ret->memory; or -ENOMEM. */
int length_sort(const struct length_cutter *c, const struct epoch_order *order, uint64_t w,
                struct sorted_window *ret);

/* How many batches it has, and how well they are filled: added to *ret. */
uint32_t length_count_cuts(const struct length_cutter *c, const struct sorted_window *s);
void length_measure(const struct length_cutter *c, const struct sorted_window *s,
                    struct length_fill *ret);

/* A window that is sorted and cut. */
struct length_window {
    uint32_t places, cuts;
    uint64_t before;   /* batches of the windows before it */
    uint32_t number[]; /* at, start, cut, shown: */
};

/* [places] places of the window, by falling length */
static inline const uint32_t *window_at(const struct length_window *w)
{
    return w->number;
}

/* [cuts + 1] of each cut, where it begins in window_at() */
static inline const uint32_t *window_start(const struct length_window *w)
{
    return w->number + w->places;
}

/* [cuts] which cut is shown at each place of the window, */
static inline const uint32_t *window_cut(const struct length_window *w)
{
    return window_start(w) + w->cuts + 1;
}

/* [cuts + 1] and how many samples are shown before it */
static inline const uint32_t *window_shown(const struct length_window *w)
{
    return window_cut(w) + w->cuts;
}

size_t length_window_size(uint64_t places, uint64_t cuts);

/* Make a struct length_window in malloc'd memory. before: batches of the windows before it. 0 or
 * -ENOMEM. */
int length_window_new(const struct length_cutter *c, const struct epoch_order *order, uint64_t w,
                      uint64_t before, void **ret, size_t *ret_size);

#endif
