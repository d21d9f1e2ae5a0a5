/* Waits: which readers wait for which blocks.
 *
 * The waits of a file are found by their blocks, so the cost of an event depends only on the waits
 * it concerns. */
#include <stdlib.h>

#include "base/checked.h"
#include "cache/stage/parts.h"

struct wait *wait_first_locked(struct file *file, uint64_t first, uint64_t end)
{
    lock_assert_held(&file->stage->lock);
    return wait_of(ranges_first(&file->waits, first, end));
}

struct wait *wait_next_locked(const struct wait *wait, uint64_t first, uint64_t end)
{
    lock_assert_held(&wait->file->stage->lock);
    return wait_of(ranges_next(&wait->file->waits, &wait->blocks, first, end));
}

void wait_begin_locked(struct wait *wait, struct file *file, struct waiter *waiter)
{
    struct stage *stage = file->stage;

    lock_assert_held(&stage->lock);
    waiter_add(waiter);
    wait->file = file;
    wait->waiter = waiter;
    wait->quiet.first = (uint64_t)stage_now(stage);
    wait->quiet.end = wait->quiet.first + 1;
    ranges_add(&file->waits, &wait->blocks);
    ranges_add(&stage->quiet, &wait->quiet);
}

void wait_end_locked(struct wait *wait, struct wait **ret_over)
{
    ranges_remove(&wait->file->waits, &wait->blocks);
    ranges_remove(&wait->file->stage->quiet, &wait->quiet);
    wait->next = *ret_over;
    *ret_over = wait;
}

void waits_over_locked(struct file *file, uint64_t first, uint64_t end, int error,
                       struct wait **ret_over)
{
    struct wait *next;

    for (struct wait *w = wait_first_locked(file, first, end); w; w = next) {
        uint64_t from = max_u64(first, w->blocks.first), to = min_u64(end, w->blocks.end);

        next = wait_next_locked(w, first, end);
        w->left -= min_u64(w->left, to - from);
        if (error < 0 || !w->left)
            wait_end_locked(w, ret_over);
    }
}

bool is_demanded_locked(struct file *file, uint64_t first, uint64_t end)
{
    for (const struct wait *w = wait_first_locked(file, first, end); w;
         w = wait_next_locked(w, first, end))
        if (!w->waiter->ahead)
            return true;
    return false;
}

void waits_tell(struct stage *stage, struct wait *over, int error, const struct diag *reason)
{
    while (over) {
        struct wait *w = over;

        over = w->next;
        if (error < 0 && error != -EINTR && !w->waiter->ahead)
            atomic_fetch_add_explicit(&stage->counters.errors, 1, memory_order_relaxed);
        waiter_done(w->waiter, error, reason);
        free(w);
    }
}
