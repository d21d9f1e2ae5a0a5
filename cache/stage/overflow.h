/* Blocks that were fetched and found no room on disk: kept in memory. The latest ones stay, unless
 * the caller removes those that are needed last before it adds one (cache/stage/retention.c). */
#ifndef EPOCHFS_CACHE_STAGE_OVERFLOW_H
#define EPOCHFS_CACHE_STAGE_OVERFLOW_H

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
    size_t bytes, n; /* of all blocks; how many there are */
    struct spare_block *bucket[SPARE_BUCKETS];
    struct spare_block *newest, *oldest; /* in the order in which they came */
};

void spares_init(struct spares *ret, size_t most);
void spares_release(struct spares *spares);

/* Keep a copy of a block of what owner stands for; the oldest ones go. 0 or -ENOMEM. */
int spares_add(struct spares *spares, const void *owner, uint64_t block, const void *bytes,
               size_t len);

/* Remove a block. Its bytes; 0: it is not there. */
size_t spares_remove(struct spares *spares, const void *owner, uint64_t block);

/* Bytes that can be added before the oldest ones go. */
size_t spares_left(struct spares *spares);

size_t spares_count(struct spares *spares); /* blocks */

/* Which blocks there are: *ret is the caller's to free. How many; 0 also without memory. */
struct spare_place {
    const void *owner;
    uint64_t block;
};
size_t spares_list(struct spares *spares, struct spare_place **ret);

bool spares_has(struct spares *spares, const void *owner, uint64_t block);

/* Copy len bytes at byte off of the block. false: it is not there, or shorter. */
bool spares_read(struct spares *spares, const void *owner, uint64_t block, void *buf, size_t off,
                 size_t len);

#endif
