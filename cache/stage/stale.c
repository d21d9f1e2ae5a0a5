/* Stale bytes: a file may be made of many objects of a remote (cache/source/joined_transport.c),
 * and one of these may change or vanish after the file was listed, or be refused. Then the bytes of
 * that object can never be fetched, and those beside it can.
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

struct stale {
    struct range range; /* first */
    int error;          /* for its readers */
};

static struct stale *stale_of(struct range *range)
{
    return (struct stale *)range;
}

/* Remove the ranges that overlap this one, or touch it and have its error; it becomes as large as
 * all of them together. */
static void merge_locked(struct file *file, struct stale *stale)
{
    uint64_t from = stale->range.first - (stale->range.first > 0), to = stale->range.end + 1;
    struct range *old, *next;

    lock_assert_held(&file->stage->lock);
    for (old = ranges_first(&file->stale, from, to); old; old = next) {
        next = ranges_next(&file->stale, old, from, to);
        if (stale_of(old)->error != stale->error &&
            (old->end <= stale->range.first || old->first >= stale->range.end))
            continue;
        stale->range.first = min_u64(stale->range.first, old->first);
        stale->range.end = max_u64(stale->range.end, old->end);
        ranges_remove(&file->stale, old);
        free(stale_of(old));
    }
}

int file_add_stale(struct file *file, uint64_t off, uint64_t n, int error, const struct diag *why)
{
    struct stale *stale = calloc(1, sizeof(*stale));
    struct range *old;
    LOCK_SCOPE(&file->stage->lock);

    if (!stale)
        return -ENOMEM;
    old = ranges_first(&file->stale, off, off + n);
    if (old && old->first <= off && old->end >= off + n) {
        free(stale);
        return 0;
    }
    for (uint64_t b = off / file->block_bytes; b * file->block_bytes < off + n; b++)
        atomic_fetch_or(&file->state[b], BLOCK_STALE);
    *stale = (struct stale){.range = {.first = off, .end = off + n}, .error = error};
    merge_locked(file, stale);
    ranges_add(&file->stale, &stale->range);
    if (!file->stale_why)
        file->stale_why = strdup(diag_text(why, error));
    return 1;
}

int file_stale_error(struct file *file, uint64_t off, uint64_t len)
{
    struct range *range;
    LOCK_SCOPE(&file->stage->lock);

    range = ranges_first(&file->stale, off, off + len);
    return range ? stale_of(range)->error : 0;
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
        free(stale_of(range));
    }
    free(file->stale_why);
}
