/* Drops blocks of a file, to make space for others.
 *
 * A HERE block is COMING while it is dropped, so that no run is made for it. A reader that begins
 * to wait for it in that time gets a run when the drop has ended. */
#include "base/checked.h"
#include "cache/stage/parts.h"

#define DROP_AT_ONCE 64 /* ranges: readers of the file wait until a drop ends */

/* By the forecast of needs, blocks are dropped that are on disk but were not looked at yet, too,
 * but never one that a reader waits for. */
static bool may_drop_locked(struct file *file, uint64_t block)
{
    uint8_t state = atomic_load_explicit(&file->state[block], memory_order_relaxed);
    bool by_needs = file->stage->options.keep != STAGE_PIN;

    lock_assert_held(&file->stage->lock);
    if ((state & BLOCK_STATE) == BLOCK_UNKNOWN && atomic_load(&file->done))
        return true;
    if ((state & BLOCK_STATE) != BLOCK_HERE &&
        !((state & BLOCK_STATE) == BLOCK_UNKNOWN && by_needs && state & BLOCK_COUNTED))
        return false;
    return !by_needs || !wait_first_locked(file, block, block + 1);
}

/* Begin to drop the droppable blocks of *range: they are COMING, so that no run is made for them.
 * Of a file that is no longer needed, blocks that may be here are dropped, too. Returns how many
 * ranges *ret has. *range becomes the rest, which is empty when all is done. */
static size_t begin_drop_locked(struct file *file, struct staged_range *range,
                                struct staged_range *ret, size_t capacity)
{
    size_t n = 0;

    lock_assert_held(&file->stage->lock);
    while (range->n && n < capacity) {
        uint64_t here = 0;

        while (here < range->n && may_drop_locked(file, range->first + here))
            file_set_locked(file, range->first + here++, BLOCK_COMING);
        if (here)
            ret[n++] = (struct staged_range){range->first, here};
        range->first += here ? here : 1;
        range->n -= here ? here : 1;
    }
    return n;
}

/* Blocks that another process has claimed have not been dropped. */
static uint64_t end_drop_range(struct file *file, const struct staged_range *range)
{
    uint64_t record[LOOK_AT_ONCE], dropped = 0;

    for (uint64_t at = 0; at < range->n; at += LOOK_AT_ONCE) {
        size_t some = (size_t)min_u64(LOOK_AT_ONCE, range->n - at);

        staged_records(&file->staged, range->first + at, some, record);
        LOCK_SCOPE(&file->stage->lock);

        for (size_t i = 0; i < some; i++) {
            dropped += !record[i];
            file_set_locked(file, range->first + at + i, record[i] ? BLOCK_UNKNOWN : BLOCK_ABSENT);
        }
    }
    return dropped;
}

/* what: NULL: the drop has failed. By the forecast of needs the space is for what is needed next,
 * and not for the rest of the files. */
static void end_drop(struct file *file, const struct staged_range *ranges, size_t n,
                     const struct staged_dropped *what)
{
    struct stage *stage = file->stage;
    uint64_t dropped = 0;

    for (size_t i = 0; i < n; i++)
        dropped += end_drop_range(file, &ranges[i]);
    lock_take(&stage->lock);
    if (!atomic_load(&file->done))
        atomic_fetch_add_explicit(&stage->counters.evictions, dropped, memory_order_relaxed);
    if (what)
        file_dropped_locked(file, what);
    file->dropping--;
    pthread_cond_broadcast(&stage->gone);
    if (dropped && stage->options.keep == STAGE_PIN)
        stage->full_error = 0;
    for (size_t i = 0; i < n; i++)
        needs_again_locked(file, ranges[i].first, ranges[i].first + ranges[i].n);
    stage_kick_locked(stage);
    lock_drop(&stage->lock);
}

int file_drop_ranges(struct file *file, const struct staged_range *ranges, size_t n)
{
    struct stage *stage = file->stage;
    struct staged_range some[DROP_AT_ONCE], left = {0, 0};
    int result = 0;

    for (size_t i = 0; i < n || left.n;) {
        size_t begun = 0;

        lock_take(&stage->lock);
        while (begun < DROP_AT_ONCE && (left.n || i < n)) {
            if (!left.n)
                left = ranges[i++];
            begun += begin_drop_locked(file, &left, some + begun, DROP_AT_ONCE - begun);
        }
        file->dropping += begun > 0;
        lock_drop(&stage->lock);
        if (begun) {
            uint64_t mark = quota_mark(stage->quota);
            struct staged_dropped dropped;
            int r = staged_drop_ranges(&file->staged, some, begun, &dropped);

            if (r == 0)
                quota_freed(stage->quota, dropped.freed, mark);
            else if (r == -EBUSY)
                atomic_fetch_add_explicit(&stage->counters.held, 1, memory_order_relaxed);
            end_drop(file, some, begun, r == 0 ? &dropped : NULL);
            result = r < 0 ? r : result;
        }
    }
    return result;
}

void file_drop_blocks(struct file *file, uint64_t first, uint64_t n)
{
    const struct staged_range range = {first, n};

    file_drop_ranges(file, &range, 1);
}
