/* Stops long runs that keep a reader waiting too long.
 *
 * The background fetches long runs, because each request costs. When a reader needs a block of such
 * a run, the run is hurried, and the reader waits for all bytes before that block. By the measured
 * speed that wait is short, but speeds change: a remote may send the first second of each transfer
 * at once and then limit its rate.
 *
 * So this file watches each hurried run. It stops the run if passing over the bytes that no reader
 * waits for would take much longer than new transfers for the rest. What the run has brought
 * stays, to the byte; it goes on with the block that it was in. New runs fetch the blocks that
 * readers wait for, and the background fetches the others later.
 *
 * A run made for readers has no unwanted bytes, so none is stopped twice for this, and staging
 * without readers never is. */
#include "base/checked.h"
#include "cache/stage/parts.h"

#define NS_PER_MS INT64_C(1000000)
#define WATCH_MS  50  /* measured at least: as often as the thread looks, */
#define WATCH_FAR 2   /* or this many times the wait for a first byte */
#define LATE_MS   200 /* how much longer than new transfers: as long as runs are meant to be */

/* What is left of a run up to the last block that a reader waits for. */
struct way {
    uint64_t unwanted; /* bytes that no reader waits for */
    uint64_t pieces;   /* transfers that would fetch the rest instead */
};

static struct way way_locked(const struct run *run, uint64_t bytes)
{
    struct file *file = run->file;
    uint64_t at = (run->transfer.off + bytes) / file->block_bytes, end = run->first + run->n;
    struct way way = {0};

    lock_assert_held(&run->file->stage->lock);
    for (const struct wait *w = wait_first_locked(file, at, end); w;
         w = wait_next_locked(w, at, end)) {
        if (w->need.why != RUN_DEMAND)
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

/* Judges by what has come since the last look. */
static bool is_late_locked(struct run *run, int64_t now)
{
    struct stage *stage = run->file->stage;
    uint64_t bytes = atomic_load_explicit(&run->bytes, memory_order_relaxed);
    double came = (double)(bytes - run->watched_bytes), ns = (double)(now - run->watched_at), again;
    struct way way;

    lock_assert_held(&run->file->stage->lock);
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
    struct run *run;

    lock_assert_held(&stage->lock);
    TAILQ_FOREACH (run, &stage->active, link) {
        if (!run->watched_at || run->file->version.whole_only || run->steals || run->stopping ||
            run->why != RUN_DEMAND)
            continue;
        if (run->state != RUN_RUNNING || !atomic_load_explicit(&run->bytes, memory_order_relaxed))
            run_watch_from_locked(run, now); /* new transfers would wait for the same */
        else if (is_late_locked(run, now)) {
            run->is_late = true;
            run_give_up_locked(run, NULL); /* the run is active, so this only stops it */
        }
    }
}
