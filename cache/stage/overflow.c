#include "cache/stage/overflow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct overflow_block {
    LIST_ENTRY(overflow_block) in_bucket;
    TAILQ_ENTRY(overflow_block) in_blocks;
    const void *owner;
    uint64_t block;
    size_t len;
    uint8_t bytes[];
};

void overflow_init(struct overflow *ret, size_t most)
{
    *ret = (struct overflow){.most = most};
    TAILQ_INIT(&ret->blocks);
    lock_init(&ret->lock);
}

static struct overflow_bucket *bucket_of(struct overflow *overflow, const void *owner,
                                         uint64_t block)
{
    uint64_t h = ((uint64_t)(uintptr_t)owner ^ block * UINT64_C(0x9e3779b97f4a7c15)) *
                 UINT64_C(0xbf58476d1ce4e5b9);

    return &overflow->bucket[(h >> 40) % OVERFLOW_BUCKETS];
}

static struct overflow_block *find_locked(struct overflow *overflow, const void *owner,
                                          uint64_t block)
{
    struct overflow_block *at;

    lock_assert_held(&overflow->lock);
    LIST_FOREACH (at, bucket_of(overflow, owner, block), in_bucket)
        if (at->owner == owner && at->block == block)
            break;
    return at;
}

static void remove_locked(struct overflow *overflow, struct overflow_block *overflow_block)
{
    lock_assert_held(&overflow->lock);
    LIST_REMOVE(overflow_block, in_bucket);
    TAILQ_REMOVE(&overflow->blocks, overflow_block, in_blocks);
    overflow->bytes -= overflow_block->len;
    overflow->n--;
    free(overflow_block);
}

void overflow_release(struct overflow *overflow)
{
    lock_take(&overflow->lock);
    while (!TAILQ_EMPTY(&overflow->blocks))
        remove_locked(overflow, TAILQ_FIRST(&overflow->blocks));
    lock_drop(&overflow->lock);
    lock_release(&overflow->lock);
}

int overflow_add(struct overflow *overflow, const void *owner, uint64_t block, const void *bytes,
                 size_t len)
{
    struct overflow_block *overflow_block = malloc(sizeof(*overflow_block) + len), *old;

    if (!overflow_block)
        return -ENOMEM;
    *overflow_block = (struct overflow_block){.owner = owner, .block = block, .len = len};
    memcpy(overflow_block->bytes, bytes, len);
    LOCK_SCOPE(&overflow->lock);

    old = find_locked(overflow, owner, block);
    if (old)
        remove_locked(overflow, old);
    LIST_INSERT_HEAD(bucket_of(overflow, owner, block), overflow_block, in_bucket);
    TAILQ_INSERT_TAIL(&overflow->blocks, overflow_block, in_blocks);
    overflow->bytes += len;
    overflow->n++;
    while (overflow->bytes > overflow->most && TAILQ_FIRST(&overflow->blocks) != overflow_block)
        remove_locked(overflow, TAILQ_FIRST(&overflow->blocks));
    return 0;
}

size_t overflow_remove(struct overflow *overflow, const void *owner, uint64_t block)
{
    LOCK_SCOPE(&overflow->lock);
    struct overflow_block *overflow_block = find_locked(overflow, owner, block);
    size_t len = overflow_block ? overflow_block->len : 0;

    if (overflow_block)
        remove_locked(overflow, overflow_block);
    return len;
}

size_t overflow_left(struct overflow *overflow)
{
    LOCK_SCOPE(&overflow->lock);

    return overflow->bytes < overflow->most ? overflow->most - overflow->bytes : 0;
}

struct memory_held overflow_held(struct overflow *overflow)
{
    LOCK_SCOPE(&overflow->lock);

    return (struct memory_held){.bytes = overflow->bytes, .limit = overflow->most};
}

size_t overflow_count(struct overflow *overflow)
{
    LOCK_SCOPE(&overflow->lock);

    return overflow->n;
}

size_t overflow_list(struct overflow *overflow, struct overflow_place **ret)
{
    const struct overflow_block *at;
    size_t n = 0;
    LOCK_SCOPE(&overflow->lock);

    *ret = overflow->n ? calloc(overflow->n, sizeof(**ret)) : NULL;
    if (!*ret)
        return 0;
    TAILQ_FOREACH (at, &overflow->blocks, in_blocks)
        (*ret)[n++] = (struct overflow_place){at->owner, at->block};
    return n;
}

bool overflow_has(struct overflow *overflow, const void *owner, uint64_t block)
{
    LOCK_SCOPE(&overflow->lock);

    return overflow->bytes && find_locked(overflow, owner, block);
}

bool overflow_read(struct overflow *overflow, const void *owner, uint64_t block, void *buf,
                   size_t off, size_t len)
{
    LOCK_SCOPE(&overflow->lock);
    const struct overflow_block *overflow_block = find_locked(overflow, owner, block);

    if (!overflow_block || off > overflow_block->len || len > overflow_block->len - off)
        return false;
    memcpy(buf, overflow_block->bytes + off, len);
    return true;
}
