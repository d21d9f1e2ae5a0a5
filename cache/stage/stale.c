/* Stale bytes: a file may be made of many objects of a remote (cache/source/joined_transport.c),
 * and one of these may change or vanish after the file was listed. Then the bytes of that object
 * can never be fetched, and those beside it can.
 *
 * Invariants:
 *  1. A block with stale bytes is never written to disk, where other processes would take it for
 *     good: what came of it is an overflow block, with zeros in the place of stale bytes.
 *  2. Bytes become stale here before their block becomes an overflow block, so no reader gets the
 *     zeros: read_overflow() in cache/stage/content.c asks.
 *  3. Nothing but a reader has such a block fetched: it is never HERE by our doing, so the
 *     background would begin anew for ever. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "cache/stage/parts.h"

/* Remove the ranges that touch this one, which becomes as large as all of them together. */
static void merge_locked(struct file *file, struct range *range)
{
    uint64_t from = range->first - (range->first > 0), to = range->end + 1;
    struct range *old;

    lock_assert_held(&file->stage->lock);
    while ((old = ranges_first(&file->stale, from, to))) {
        range->first = min_u64(range->first, old->first);
        range->end = max_u64(range->end, old->end);
        ranges_remove(&file->stale, old);
        free(old);
    }
}

int file_add_stale(struct file *file, uint64_t off, uint64_t n, const struct diag *why)
{
    struct range *range = calloc(1, sizeof(*range)), *old;
    LOCK_SCOPE(&file->stage->lock);

    if (!range)
        return -ENOMEM;
    old = ranges_first(&file->stale, off, off + n);
    if (old && old->first <= off && old->end >= off + n) {
        free(range);
        return 0;
    }
    for (uint64_t b = off / file->block_bytes; b * file->block_bytes < off + n; b++)
        atomic_fetch_or(&file->state[b], BLOCK_STALE);
    range->first = off;
    range->end = off + n;
    merge_locked(file, range);
    ranges_add(&file->stale, range);
    if (!file->stale_why)
        file->stale_why = strdup(diag_text(why, -ESTALE));
    return 1;
}

bool file_is_stale(struct file *file, uint64_t off, uint64_t len)
{
    LOCK_SCOPE(&file->stage->lock);

    return ranges_first(&file->stale, off, off + len);
}

uint64_t file_stale_bytes_locked(struct file *file, uint64_t block)
{
    uint64_t first = block * file->block_bytes, end = first + file_block_len(file, block), n = 0;

    lock_assert_held(&file->stage->lock);
    for (struct range *r = ranges_first(&file->stale, first, end); r;
         r = ranges_next(&file->stale, r, first, end))
        n += min_u64(end, r->end) - max_u64(first, r->first);
    return n;
}

void file_free_stale(struct file *file)
{
    struct range *range;

    while ((range = ranges_least(&file->stale))) {
        ranges_remove(&file->stale, range);
        free(range);
    }
    free(file->stale_why);
}
