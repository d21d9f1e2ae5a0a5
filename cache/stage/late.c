/* Long runs that a reader comes to wait for.
 *
 * The background fetches long runs, for each request costs. A reader that needs a block of one has
 * it hurried, and then waits for all that comes before the block. By the speed that was measured
 * that is short; but speeds change, and a remote may give the first second of each transfer at once
 * and no more than its limit from then on. So a run that was hurried is watched: if it would take
 * much longer to get over what nobody waits for than new transfers take for the rest, it is
 * stopped. What it has brought stays, the blocks that readers wait for are fetched by runs of their
 * own, and the background comes back for the others. Runs made for readers have nothing to get
 * over, so none is stopped for this twice, and a plain staging never is. */
#include "base/checked.h"
#include "base/clock.h"
#include "cache/stage/parts.h"

#define NS_PER_MS INT64_C(1000000)
#define WATCH_MS  50  /* that are measured at least: as often as the thread looks, */
#define WATCH_FAR 2   /* or so many times what a first byte takes */
#define LATE_MS   200 /* longer than new transfers take: as long as runs are meant to be */

/* What is left of a run up to the last block that a reader waits for. */
struct way {
    uint64_t unwanted; /* bytes that nobody waits for */
    uint64_t pieces;   /* that it would be fetched in instead */
};

static struct way way_locked(const struct run *run, uint64_t bytes)
{
    struct file *file = run->file;
    uint64_t at = (run->transfer.off + bytes) / file->block_bytes, end = run->first + run->n;
    struct way way = {0};

    for (const struct wait *w = wait_first_locked(file, at, end); w;
         w = wait_next_locked(w, at, end)) {
        if (w->waiter->ahead)
            continue;
        if (w->blocks.first > at) {
            way.unwanted += (w->blocks.first - at) * file->block_bytes;
            way.pieces++;
        }
        at = max_u64(at, min_u64(w->blocks.end, end));
        if (at == end)
            break;
    }
    return way;
}

/* By what has come since it was last looked at. */
static bool is_late_locked(struct run *run, int64_t now)
{
    struct stage *stage = run->file->stage;
    uint64_t bytes = atomic_load_explicit(&run->bytes, memory_order_relaxed);
    double came = (double)(bytes - run->watched_bytes), ns = (double)(now - run->watched_at), again;
    struct way way;

    if (ns < (double)(WATCH_MS * NS_PER_MS) || ns < WATCH_FAR * stage->wait_ns)
        return false;
    run_watch_from_locked(run, now);
    way = way_locked(run, bytes);
    if (!way.pieces)
        return false;
    again = stage->wait_ns * (1 + (double)way.pieces / stage->options.jobs);
    return (double)way.unwanted * ns > came * ((double)(LATE_MS * NS_PER_MS) + again);
}

void runs_stop_late_locked(struct stage *stage, int64_t now)
{
    lock_assert_held(&stage->lock);
    for (struct run *run = stage->active.first; run; run = run->next) {
        if (!run->watched_at || run->whole || run->steals || run->stopping ||
            run->why != RUN_DEMAND)
            continue;
        if (run->phase != RUN_RUNNING || !atomic_load_explicit(&run->bytes, memory_order_relaxed))
            run_watch_from_locked(run, now); /* what it waits for new ones would wait for, too */
        else if (is_late_locked(run, now))
            run_give_up_locked(run, NULL, NULL); /* it is active: it only stops */
    }
}
