/* The keys of several files as one index. */
#ifndef EPOCHFS_FORMAT_RECORDS_KEYS_H
#define EPOCHFS_FORMAT_RECORDS_KEYS_H

#include "format/index/index.h"

/* The keys of several files in sequence, as one index, so that a lookup does not ask each file. A
 * key that repeats one of an earlier file is renamed as within a file. It is made again by each
 * mount. One thread. */
struct keys {
    struct index index; /* once it is ready */
    struct index_builder *builder;
    unsigned file; /* the next row: its file, */
    uint64_t row;  /* and its number there */
};

/* Add keys for some milliseconds. of(ctx, i): the index of file i of n. 1: ready, 0: not yet,
 * -ENOMEM, -E2BIG: too many, or -EBADMSG: a forged index has a row without a key. */
int keys_step(struct keys *k, unsigned n, const struct index *(*index_of)(void *ctx, unsigned i),
              void *ctx);
void keys_release(struct keys *k); /* of one that starts as {0} */

#endif
