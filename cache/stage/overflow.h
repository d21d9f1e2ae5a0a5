/* Overflow blocks: fetched blocks that have no place on disk stay in memory. The oldest are dropped
 * first, unless the caller removes those needed last before it adds one
 * (cache/stage/keep.c).
 *
 * If most bytes of the blocks that are dropped were never read, whole blocks are a waste: then the
 * stage fetches only the bytes that readers want. Such parts of blocks take half of the memory. */
#ifndef EPOCHFS_CACHE_STAGE_OVERFLOW_H
#define EPOCHFS_CACHE_STAGE_OVERFLOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/lock.h"
#include "base/memory.h"

#define OVERFLOW_BUCKETS 1024

struct overflow_block;
LIST_HEAD(overflow_bucket, overflow_block);

struct overflow {
    size_t most;              /* bytes */
    _Atomic bool is_wasteful; /* most bytes of dropped blocks were not read */
    struct lock lock;
    /* Guarded by lock: */
    size_t bytes, n;   /* of all blocks; how many there are */
    size_t part_bytes; /* of all parts */
    unsigned dropped;  /* blocks, up to a number that is enough to judge */
    double read;       /* share of the bytes of dropped blocks that were read, the last ones */
    struct overflow_bucket bucket[OVERFLOW_BUCKETS];
    TAILQ_HEAD(overflow_queue, overflow_block) blocks, parts; /* the oldest first */
};

void overflow_init(struct overflow *ret, size_t most);
void overflow_release(struct overflow *overflow);

/* Keep a copy of a block of the file that owner identifies, or, is_part, of len bytes at byte from
 * of it; drops the oldest blocks if there are too many bytes. 0 or -ENOMEM. */
int overflow_add(struct overflow *overflow, const void *owner, uint64_t block, const void *bytes,
                 size_t from, size_t len, bool is_part);

/* Remove a block. Returns its bytes; 0: it is not there. */
size_t overflow_remove(struct overflow *overflow, const void *owner, uint64_t block);

struct memory_held overflow_held(struct overflow *overflow);

/* Bytes that can be added before the oldest blocks are dropped. */
size_t overflow_left(struct overflow *overflow);

size_t overflow_count(struct overflow *overflow); /* blocks */

/* List the blocks; the caller frees *ret. Returns how many; 0 also without memory. */
struct overflow_place {
    const void *owner;
    uint64_t block;
};
size_t overflow_list(struct overflow *overflow, struct overflow_place **ret);

/* Is all of a block there? */
bool overflow_has(struct overflow *overflow, const void *owner, uint64_t block);

/* Are len bytes at byte off of a block there? */
bool overflow_covers(struct overflow *overflow, const void *owner, uint64_t block, size_t off,
                     size_t len);

/* Copy len bytes at byte off of the block. false: they are not there. */
bool overflow_read(struct overflow *overflow, const void *owner, uint64_t block, void *buf,
                   size_t off, size_t len);

#endif
