/* Overflow blocks: fetched blocks that have no place on disk stay in memory. The oldest are dropped
 * first, unless the caller removes those needed last before it adds one
 * (cache/stage/keep.c).
 *
 * If most bytes of the blocks that are dropped were never read, whole blocks are a waste: then the
 * stage fetches only the bytes that readers want. Such parts of blocks take half of the memory. */
#ifndef EPOCHFS_CACHE_STAGE_OVERFLOW_H
#define EPOCHFS_CACHE_STAGE_OVERFLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

struct overflow;

struct overflow *overflow_new(size_t most);    /* bytes; NULL: no memory */
void overflow_free(struct overflow *overflow); /* takes NULL */
size_t overflow_most(const struct overflow *overflow);

/* Were most bytes of the dropped blocks not read? */
bool overflow_is_wasteful(const struct overflow *overflow);

/* Keep a copy of a block of the file that owner identifies, or, is_part, of len bytes at byte from
 * of it; drops the oldest blocks if there are too many bytes. Without memory it is not kept. */
void overflow_add(struct overflow *overflow, const void *owner, uint64_t block, const void *bytes,
                  size_t from, size_t len, bool is_part);

/* Remove a block, if it exists. */
void overflow_remove(struct overflow *overflow, const void *owner, uint64_t block);

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
