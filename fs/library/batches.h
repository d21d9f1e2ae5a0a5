/* The batches of an epoch, and the threads that make them ahead. */
#ifndef EPOCHFS_FS_LIBRARY_BATCHES_H
#define EPOCHFS_FS_LIBRARY_BATCHES_H

#include "fs/library/buffers.h"
#include "fs/library/parts.h"
#include "fs/tree/arrays.h"

#define AHEAD_MOST  32 /* batches that are made, or being made, ahead */
#define MAKERS_MOST 8  /* threads that make them */
#define STRIDE_MOST 256

/* A batch that is made ahead.
 *
 *     FREE -> MAKING   ahead_next_locked()        by a maker
 *     MAKING -> READY  ahead_main()               or failed, with the reason
 *     READY -> FREE    ahead_take_slot_locked()   to its reader
 *     any -> FREE      the reader has gone elsewhere; one that is MAKING is dropped when made */
struct batch_slot {
    enum { SLOT_FREE, SLOT_MAKING, SLOT_READY } state;
    bool is_stale;
    uint64_t k;
    struct epochfs_batch *batch; /* of a READY one; NULL: it has failed: */
    int error;
    struct diag reason;
};

struct epochfs_batches {
    /* Set by epochfs_batches_open(), then constant: */
    struct epochfs *fs;
    struct node node; /* of batch 0 */
    uint64_t count;
    unsigned in;  /* IN_...: whose arrays */
    char *fields; /* names, each NUL-terminated, the last one empty; NULL: all */
    struct buffers *buffers;
    struct epochfs_batches *next; /* guarded by the lock of fs, as is: */
    bool is_over;                 /* epochfs_close() has ended its makers */
    _Atomic bool is_stopping;     /* reads that are under way give up */

    struct lock lock;
    pthread_cond_t wake; /* a slot is READY, or makers have something to do */
    /* Guarded by lock: */
    bool ending;
    struct batch_slot slot[AHEAD_MOST];
    pthread_t maker[MAKERS_MOST];
    unsigned n_makers;
    uint64_t last,
        stride; /* the batch that was taken last, and the one after it is last + stride */
    bool has_last, goes_on; /* one was taken; and it was the one that was expected */
    uint64_t bytes;         /* of the largest batch yet */
};

/* Make batch k in the calling thread. 0, or -errno with the reason in d. */
int batches_make(struct epochfs_batches *b, uint64_t k, struct epochfs_batch **ret, struct diag *d);

/* Find the arrays of batch k; release them in any case. 0, or -errno with the reason in d. */
int batches_find_arrays(struct epochfs_batches *b, uint64_t k, struct batch_arrays *ret,
                        struct diag *d);

/* Read them. */
int batches_read_arrays(struct epochfs_batches *b, struct batch_arrays *arrays, uint8_t *const *dst,
                        struct diag *d);

/* ---- fs/library/ahead.c ---- */

/* Take batch k, made ahead or now. 0, or -errno with the reason in d. */
int batches_take(struct epochfs_batches *b, uint64_t k, struct epochfs_batch **ret, struct diag *d);

/* End the makers; what they have made is given back. Once. */
void batches_stop(struct epochfs_batches *b);

#endif
