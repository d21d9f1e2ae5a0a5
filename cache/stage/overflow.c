#include "cache/stage/overflow.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/lock.h"

#define ENOUGH 32   /* dropped blocks are enough to judge, ... */
#define SHARE  0.75 /* by whether so much of them was read */
#define LATEST 64   /* how many of them count */

#define OVERFLOW_BUCKETS 1024

struct overflow_block {
    LIST_ENTRY(overflow_block) in_bucket;
    TAILQ_ENTRY(overflow_block) in_queue;
    const void *owner;
    uint64_t block;
    size_t from, len; /* bytes of the block; of a whole one from is 0 */
    uint64_t read;    /* bit i: the i-th 64th of it, or some of it, was read */
    bool is_part;
    uint8_t bytes[];
};

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

struct overflow *overflow_new(size_t most)
{
    struct overflow *ret = calloc(1, sizeof(*ret));

    if (!ret)
        return NULL;
    ret->most = most;
    ret->read = 1;
    TAILQ_INIT(&ret->blocks);
    TAILQ_INIT(&ret->parts);
    lock_init(&ret->lock);
    return ret;
}

size_t overflow_most(const struct overflow *overflow)
{
    return overflow->most;
}

bool overflow_is_wasteful(const struct overflow *overflow)
{
    return atomic_load_explicit(&overflow->is_wasteful, memory_order_relaxed);
}

static struct overflow_bucket *bucket_of(struct overflow *overflow, const void *owner,
                                         uint64_t block)
{
    uint64_t h = ((uint64_t)(uintptr_t)owner ^ block * UINT64_C(0x9e3779b97f4a7c15)) *
                 UINT64_C(0xbf58476d1ce4e5b9);

    return &overflow->bucket[(h >> 40) % OVERFLOW_BUCKETS];
}

/* A whole block, or what has len bytes at byte off of it. */
static struct overflow_block *overflow_find_locked(struct overflow *overflow, const void *owner,
                                                   uint64_t block, bool whole, size_t off,
                                                   size_t len)
{
    struct overflow_block *at;

    lock_assert_held(&overflow->lock);
    LIST_FOREACH (at, bucket_of(overflow, owner, block), in_bucket)
        if (at->owner == owner && at->block == block &&
            (whole ? !at->is_part : off >= at->from && off + len <= at->from + at->len))
            break;
    return at;
}

static void remove_locked(struct overflow *overflow, struct overflow_block *overflow_block)
{
    struct overflow_queue *queue = overflow_block->is_part ? &overflow->parts : &overflow->blocks;

    lock_assert_held(&overflow->lock);
    LIST_REMOVE(overflow_block, in_bucket);
    TAILQ_REMOVE(queue, overflow_block, in_queue);
    if (overflow_block->is_part) {
        overflow->part_bytes -= overflow_block->len;
    } else {
        overflow->bytes -= overflow_block->len;
        overflow->n--;
    }
    free(overflow_block);
}

/* Remove a block that others displace, and note how much of it was read. */
static void displace_locked(struct overflow *overflow, struct overflow_block *overflow_block)
{
    lock_assert_held(&overflow->lock);
    if (!overflow_block->is_part) {
        overflow->dropped += overflow->dropped < LATEST;
        overflow->read +=
            ((double)__builtin_popcountll(overflow_block->read) / 64 - overflow->read) /
            overflow->dropped;
        atomic_store(&overflow->is_wasteful, overflow->dropped >= ENOUGH && overflow->read < SHARE);
    }
    remove_locked(overflow, overflow_block);
}

void overflow_free(struct overflow *overflow)
{
    if (!overflow)
        return;
    lock_take(&overflow->lock);
    while (!TAILQ_EMPTY(&overflow->blocks))
        remove_locked(overflow, TAILQ_FIRST(&overflow->blocks));
    while (!TAILQ_EMPTY(&overflow->parts))
        remove_locked(overflow, TAILQ_FIRST(&overflow->parts));
    lock_drop(&overflow->lock);
    lock_release(&overflow->lock);
    free(overflow);
}

/* Half of the memory is for parts, and for none of the two until it is known what is needed. */
static size_t most_of_blocks_locked(const struct overflow *overflow)
{
    bool is_known = overflow->dropped >= ENOUGH;

    lock_assert_held(&overflow->lock);
    return is_known && !overflow->is_wasteful ? overflow->most - overflow->part_bytes
                                              : overflow->most / 2;
}

/* Drop the oldest until all have a place. The last one is `added`, and remains. */
static void drop_oldest_locked(struct overflow *overflow, const struct overflow_block *added)
{
    struct overflow_block *oldest;

    lock_assert_held(&overflow->lock);
    while (overflow->part_bytes > overflow->most / 2 &&
           (oldest = TAILQ_FIRST(&overflow->parts)) != added)
        displace_locked(overflow, oldest);
    while (overflow->bytes > most_of_blocks_locked(overflow) &&
           (oldest = TAILQ_FIRST(&overflow->blocks)) != added)
        displace_locked(overflow, oldest);
}

void overflow_add(struct overflow *overflow, const void *owner, uint64_t block, const void *bytes,
                  size_t from, size_t len, bool is_part)
{
    struct overflow_block *added = malloc(sizeof(*added) + len), *old;

    if (!added)
        return;
    *added = (struct overflow_block){
        .owner = owner, .block = block, .from = from, .len = len, .is_part = is_part};
    memcpy(added->bytes, bytes, len);
    LOCK_SCOPE(&overflow->lock);

    old = is_part ? NULL : overflow_find_locked(overflow, owner, block, true, 0, 0);
    if (old)
        remove_locked(overflow, old);
    LIST_INSERT_HEAD(bucket_of(overflow, owner, block), added, in_bucket);
    if (is_part) {
        TAILQ_INSERT_TAIL(&overflow->parts, added, in_queue);
        overflow->part_bytes += len;
    } else {
        TAILQ_INSERT_TAIL(&overflow->blocks, added, in_queue);
        overflow->bytes += len;
        overflow->n++;
    }
    drop_oldest_locked(overflow, added);
}

void overflow_remove(struct overflow *overflow, const void *owner, uint64_t block)
{
    LOCK_SCOPE(&overflow->lock);
    struct overflow_block *overflow_block =
        overflow_find_locked(overflow, owner, block, true, 0, 0);

    if (overflow_block)
        displace_locked(overflow, overflow_block);
}

size_t overflow_left(struct overflow *overflow)
{
    LOCK_SCOPE(&overflow->lock);

    size_t most = most_of_blocks_locked(overflow);

    return overflow->bytes < most ? most - overflow->bytes : 0;
}

struct memory_held overflow_held(struct overflow *overflow)
{
    LOCK_SCOPE(&overflow->lock);

    return (struct memory_held){.bytes = overflow->bytes + overflow->part_bytes,
                                .limit = overflow->most};
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
    TAILQ_FOREACH (at, &overflow->blocks, in_queue)
        (*ret)[n++] = (struct overflow_place){at->owner, at->block};
    return n;
}

bool overflow_has(struct overflow *overflow, const void *owner, uint64_t block)
{
    LOCK_SCOPE(&overflow->lock);

    return overflow->bytes && overflow_find_locked(overflow, owner, block, true, 0, 0);
}

bool overflow_covers(struct overflow *overflow, const void *owner, uint64_t block, size_t off,
                     size_t len)
{
    LOCK_SCOPE(&overflow->lock);

    return overflow->bytes + overflow->part_bytes &&
           overflow_find_locked(overflow, owner, block, false, off, len);
}

static void note_read_locked(struct overflow *overflow, struct overflow_block *overflow_block,
                             size_t off, size_t len)
{
    size_t first = off * 64 / overflow_block->len,
           last = (off + (len ? len - 1 : 0)) * 64 / overflow_block->len;

    lock_assert_held(&overflow->lock);
    overflow_block->read |= (UINT64_MAX << first) & (UINT64_MAX >> (63 - last));
}

bool overflow_read(struct overflow *overflow, const void *owner, uint64_t block, void *buf,
                   size_t off, size_t len)
{
    LOCK_SCOPE(&overflow->lock);
    struct overflow_block *overflow_block =
        overflow_find_locked(overflow, owner, block, false, off, len);

    if (!overflow_block)
        return false;
    memcpy(buf, overflow_block->bytes + (off - overflow_block->from), len);
    note_read_locked(overflow, overflow_block, off - overflow_block->from, len);
    return true;
}
