/* Waits: which readers wait for which blocks, and for how long.
 *
 * The waits of a file are found by their blocks, so an event costs what it concerns, however many
 * others wait. All waits of the stage stand in stage->quiet in the order of their last progress as
 * far as that was looked at; so patience looks at the first ones only, and at each of them once in
 * `patience=`.
 *
 * Progress of a run is, in this order:
 *   it was made;
 *   while it is queued, and its remote has not failed it: bytes of any run, for the queue moves;
 *   else: its own bytes.
 * A wait has made as much progress as that run of its blocks which has made the least. Blocks that
 * no run of ours brings have none to make: another process fetches them (STEAL_S), or they are
 * being dropped. */
#include <stdlib.h>

#include "base/checked.h"
#include "base/clock.h"
#include "cache/stage/parts.h"

#define NS_PER_S INT64_C(1000000000)

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
    wait->quiet.first = (uint64_t)monotonic_ns();
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

/* ---- patience ---- */

int64_t run_progress_locked(const struct run *run)
{
    bool is_queued = run->state != RUN_ACTIVE && !run->failures;
    int64_t progress = atomic_load_explicit(
        is_queued ? &run->file->stage->progress : &run->progress, memory_order_relaxed);

    lock_assert_held(&run->file->stage->lock);
    run->file->stage->looks++;
    return progress > run->made ? progress : run->made;
}

static bool may_end(const struct run *run)
{
    return run->why != RUN_BACKGROUND && !run->stopping;
}

static int64_t wait_progress_locked(struct wait *w, int64_t now)
{
    uint64_t first = w->blocks.first, end = w->blocks.end;
    int64_t least = now;

    for (const struct run *run = run_first_locked(w->file, first, end); run;
         run = run_next_locked(run, first, end)) {
        int64_t progress = may_end(run) ? run_progress_locked(run) : now;

        least = progress < least ? progress : least;
    }
    return least;
}

/* The wait is over, and with it the runs that are to blame, if nobody else waits for them. */
static void give_up_locked(struct wait *w, int64_t now, int64_t patience, struct wait **over,
                           struct run **gone)
{
    uint64_t first = w->blocks.first, end = w->blocks.end;
    struct file *file = w->file;
    struct run *next;

    if (!w->waiter->ahead) {
        file->gave_up = now;
        file->gave_up_first = first;
        file->gave_up_end = end;
    }
    wait_end_locked(w, over);
    for (struct run *run = run_first_locked(file, first, end); run; run = next) {
        next = run_next_locked(run, first, end);
        if (may_end(run) && now - run_progress_locked(run) > patience && !is_waited_for_locked(run))
            run_give_up_locked(run, over, gone);
    }
}

int64_t waits_give_up_locked(struct stage *stage, int64_t now, struct wait **ret_over,
                             struct run **ret_gone)
{
    int64_t patience = stage->options.retry_limit_s * NS_PER_S;
    struct range *quiet;

    while ((quiet = ranges_least(&stage->quiet))) {
        struct wait *w = (struct wait *)((char *)quiet - offsetof(struct wait, quiet));
        int64_t since = (int64_t)quiet->first, progress;

        if (now - since <= patience)
            return since + patience + 1;
        progress = wait_progress_locked(w, now);
        if (now - progress > patience) {
            give_up_locked(w, now, patience, ret_over, ret_gone);
        } else {
            ranges_move(&stage->quiet, quiet, (uint64_t)progress, (uint64_t)progress + 1);
        }
    }
    return INT64_MAX;
}
