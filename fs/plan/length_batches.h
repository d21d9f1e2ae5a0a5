/* Batches by length: the list of an epoch is cut into windows of W places, each window is sorted by
 * falling length and cut into batches, and the batches of a window are shuffled. docs/spec/order.md
 * defines it, as length batches 1.
 *
 * Window w has the places wW .. wW + W - 1 of the epoch, so a batch is found by sorting one window,
 * once it is known how many batches the windows before it have: its sums. They take a pass over the
 * epoch, which goes on in the background. With a fixed number of samples in a batch they are
 * arithmetic.
 *
 * Batches are numbered over all ranks here. Any thread may make any call. */
#ifndef EPOCHFS_FS_PLAN_LENGTH_BATCHES_H
#define EPOCHFS_FS_PLAN_LENGTH_BATCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/memory.h"
#include "fs/plan/batch_cuts.h"
#include "fs/plan/labels.h"

struct plan;
struct plan_data;
struct pool;
struct length_batches;

#define LENGTH_BATCHES_VERSION     1
#define LENGTH_BATCHES_BUCKET      8192                /* the default of bucket= with a budget */
#define LENGTH_BATCHES_BUCKET_MOST (UINT64_C(1) << 20) /* places of a window */
#define LENGTH_BATCHES_WINDOWS     (UINT64_C(1) << 24) /* of an epoch, fewer than this */
#define LENGTH_BATCHES_POSITIONS   (UINT64_C(1) << 32) /* of an epoch, fewer than this */

/* What the sums of an epoch are kept in. An interface of fs/tree/: NULL functions keep nothing. */
struct length_keeper {
    /* Read n numbers. 0 or -errno: they are not kept. */
    int (*load)(void *ctx, uint64_t epoch, size_t n, uint32_t *ret);
    void (*save)(void *ctx, uint64_t epoch, size_t n, const uint32_t *sums);
    void (*remove)(void *ctx, uint64_t epoch); /* they are wrong */
    void *ctx;
};

/* plan has a budget or a bucket; data as of schedule_init_data(), with lengths, all of which
 * outlives ret. pool may be NULL. 0; -EINVAL with the reason in d: the words do not hold for these
 * lengths; or -ENOMEM. */
int length_batches_new(const struct plan *plan, const struct plan_data *data, struct pool *pool,
                       struct length_batches **ret, struct diag *d);
void length_batches_free(struct length_batches *b); /* takes NULL */

/* Keep sums with that keeper; before any other call. */
void length_batches_keep(struct length_batches *b, const struct length_keeper *keeper);

/* As schedules see them, valid as long as b; and back. */
struct length_batches *length_batches_of(const struct batch_cuts *cuts);
const struct batch_cuts *length_batches_cuts(const struct length_batches *b);

/* Count an epoch, and keep its sums, unless they are known. Called again until it is done. 1: done;
 * 0: not yet; -ENOENT: no epoch is wanted; or -ENOMEM. */
int length_batches_step(struct length_batches *b);

bool length_batches_wants(const struct length_batches *b); /* takes no lock */

/* ---- how well batches are filled ---- */

struct length_fill {
    uint64_t batches, samples;
    uint64_t alone; /* samples longer than the budget, each a batch of its own */
    double budget;  /* of a batch, as lengths are counted */
    double used;    /* sum of all lengths */
    double area;    /* sum over batches of the number of samples times the longest */
};

/* How well a whole epoch is filled; takes a pass. 0 or -ENOMEM. */
int length_batches_fill(struct length_batches *b, uint64_t epoch, struct length_fill *ret);

/* What the sums and windows take in memory. */
struct memory_held length_batches_held(struct length_batches *b);

#endif
