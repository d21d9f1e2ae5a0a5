#include "fs/push/ahead_rule.h"

#include <stdlib.h>

#include "base/blob.h"
#include "base/checked.h"

#define WINDOW_LEAST  (UINT64_C(256) << 10)
#define WINDOW_MOST   (UINT64_C(64) << 20)
#define WINDOW_SHARE  4 /* one part in so many of the free memory */
#define SOURCES_SHARE 2 /* the same, for whole sources */
#define MUCH_SOONER   2 /* times as soon: what readers wait for gets half of the disk meanwhile */

uint64_t ahead_window(uint64_t memory)
{
    return min_u64(WINDOW_MOST, max_u64(memory / WINDOW_SHARE, WINDOW_LEAST));
}

static int compare_ahead_places(const void *a, const void *b)
{
    const struct ahead_range *x = a, *y = b;

    if (x->blob != y->blob)
        return (uintptr_t)x->blob < (uintptr_t)y->blob ? -1 : 1;
    return x->off < y->off ? -1 : x->off > y->off;
}

/* The pages of a need; none of what is not in the blob. */
static struct ahead_range pages_of(const struct stage_need *need)
{
    uint64_t size = need->blob->size, off = min_u64(need->off, size);
    uint64_t end = off + min_u64(need->len, size - off), start = off / AHEAD_PAGE * AHEAD_PAGE;

    if (end < size)
        end = min_u64(ceil_div(end, AHEAD_PAGE) * AHEAD_PAGE, size);
    return (struct ahead_range){need->blob, start, off < size ? end - start : 0};
}

size_t ahead_ranges(const struct stage_need *need, size_t n, struct ahead_range *ret)
{
    size_t found = 0, kept = 0;

    for (size_t i = 0; i < n; i++) {
        ret[found] = pages_of(&need[i]);
        found += ret[found].len > 0;
    }
    qsort(ret, found, sizeof(*ret), compare_ahead_places);
    for (size_t i = 0; i < found; i++) {
        struct ahead_range *last = kept ? &ret[kept - 1] : NULL;

        if (last && last->blob == ret[i].blob && ret[i].off <= last->off + last->len + AHEAD_GAP)
            last->len = max_u64(last->len, ret[i].off + ret[i].len - last->off);
        else
            ret[kept++] = ret[i];
    }
    return kept;
}

bool ahead_in_sequence(const struct ahead_facts *facts)
{
    if (!facts->missing || facts->bytes > facts->memory / SOURCES_SHARE || facts->scattered <= 0)
        return false;
    if (facts->sequential <= 0)
        return true;
    return (double)facts->missing / facts->sequential * MUCH_SOONER <
           (double)facts->left / facts->scattered;
}

bool ahead_exceeds(uint64_t bytes, uint64_t memory)
{
    return bytes > memory;
}
