/* Blocks that were fetched and found no room on disk: kept in memory until their readers have had
 * them, the latest ones only. */
#ifndef EPOCHFS_CACHE_SPARE_H
#define EPOCHFS_CACHE_SPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"

#define SPARE_BUCKETS 1024

struct spare_block;

struct spares {
    size_t most; /* bytes */
    struct lock lock;
    /* Guarded by lock: */
    size_t bytes;
    struct spare_block *bucket[SPARE_BUCKETS];
    struct spare_block *newest, *oldest; /* in the order in which they came */
};

void spares_init(struct spares *ret, size_t most);
void spares_release(struct spares *spares);

/* Keep a copy of a block of what owner stands for; the oldest ones go. 0 or -ENOMEM. */
int spares_add(struct spares *spares, const void *owner, uint64_t block, const void *bytes,
               size_t len);

bool spares_has(struct spares *spares, const void *owner, uint64_t block);

/* Copy len bytes at byte off of the block. false: it is not there, or shorter. */
bool spares_read(struct spares *spares, const void *owner, uint64_t block, void *buf, size_t off,
                 size_t len);

#endif
