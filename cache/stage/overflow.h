/* Blocks that were fetched and found no room on disk: kept in memory. The latest ones stay, unless
 * the caller removes those that are needed last before it adds one (cache/stage/retention.c). */
#ifndef EPOCHFS_CACHE_STAGE_OVERFLOW_H
#define EPOCHFS_CACHE_STAGE_OVERFLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"

#define OVERFLOW_BUCKETS 1024

struct overflow_block;

struct overflow {
    size_t most; /* bytes */
    struct lock lock;
    /* Guarded by lock: */
    size_t bytes, n; /* of all blocks; how many there are */
    struct overflow_block *bucket[OVERFLOW_BUCKETS];
    struct overflow_block *newest, *oldest; /* in the order in which they came */
};

void overflow_init(struct overflow *ret, size_t most);
void overflow_release(struct overflow *overflow);

/* Keep a copy of a block of what owner stands for; the oldest ones go. 0 or -ENOMEM. */
int overflow_add(struct overflow *overflow, const void *owner, uint64_t block, const void *bytes,
                 size_t len);

/* Remove a block. Its bytes; 0: it is not there. */
size_t overflow_remove(struct overflow *overflow, const void *owner, uint64_t block);

/* Bytes that can be added before the oldest ones go. */
size_t overflow_left(struct overflow *overflow);

size_t overflow_count(struct overflow *overflow); /* blocks */

/* Which blocks there are: *ret is the caller's to free. How many; 0 also without memory. */
struct overflow_place {
    const void *owner;
    uint64_t block;
};
size_t overflow_list(struct overflow *overflow, struct overflow_place **ret);

bool overflow_has(struct overflow *overflow, const void *owner, uint64_t block);

/* Copy len bytes at byte off of the block. false: it is not there, or shorter. */
bool overflow_read(struct overflow *overflow, const void *owner, uint64_t block, void *buf,
                   size_t off, size_t len);

#endif
