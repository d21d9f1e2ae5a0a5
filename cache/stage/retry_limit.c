/* How long readers wait: the retry limit (`patience=`).
 *
 * stage->quiet has all waits of the stage, in the order of their last progress as of the last look.
 * So only the first ones are looked at, and each once per retry limit.
 *
 * The progress of a wait is that of the run of its blocks that made progress longest ago; see
 * run_progress_locked(). While some of its blocks have no run yet, bytes of any run count: the
 * queue moves. Blocks that another process fetches (STEAL_S), or that are being dropped, do not
 * count.
 *
 * While the remote is silent, a brief wait lasts a quarter of the limit, because its reader has
 * waited for another file before. After a whole limit of silence brief waits fail at once, so that
 * a command ends. After one more the remote is tried again, for as long as the first time. */
#include <errno.h>
#include <string.h>

#include "cache/stage/parts.h"

#define NS_PER_S INT64_C(1000000000)

static bool may_end(const struct run *run)
{
    return run->why != RUN_BACKGROUND && !run->stopping;
}

static int64_t wait_progress_locked(struct wait *w, int64_t now)
{
    uint64_t first = w->blocks.first, end = w->blocks.end, at, n;
    struct file *file = w->need.file;
    int64_t least = now;

    lock_assert_held(&w->need.file->stage->lock);
    if (w->need.is_queued && need_next_locked(&w->need, &at, &n)) {
        least = atomic_load_explicit(&file->stage->progress, memory_order_relaxed);
        least = least > w->need.since ? least : w->need.since;
    }
    for (const struct run *run = run_first_locked(file, first, end); run;
         run = run_next_locked(run, first, end)) {
        int64_t progress = may_end(run) ? run_progress_locked(run) : now;

        least = progress < least ? progress : least;
    }
    return least;
}

static int64_t limit_ns(const struct stage *stage)
{
    return stage->options.retry_limit_s * NS_PER_S;
}

/* How long the remote has been silent, since that time; -1: it is not, or it is time to try again.
 */
static int64_t silence_locked(const struct stage *stage, int64_t since, int64_t now)
{
    int64_t silent = now - since;

    lock_assert_held(&stage->lock);
    return since && silent <= 2 * limit_ns(stage) &&
                   atomic_load_explicit(&stage->progress, memory_order_relaxed) < since
               ? silent
               : -1;
}

int wait_brief_locked(struct wait *wait, int64_t now)
{
    const struct stage *stage = wait->need.file->stage;
    const _Atomic int64_t *texts = stage->transport->gave_up;
    int64_t silent = silence_locked(stage, stage->silent_since, now),
            longer = texts ? silence_locked(stage, atomic_load(texts), now) : -1;

    lock_assert_held(&stage->lock);
    silent = longer > silent ? longer : silent;
    wait->early = silent < 0 ? 0 : limit_ns(stage) * 3 / 4;
    return silent > limit_ns(stage) ? -EREMOTEIO : 0;
}

static void note_silence_locked(struct stage *stage, int64_t now, const struct diag *why)
{
    lock_assert_held(&stage->lock);
    if (silence_locked(stage, stage->silent_since, now) < 0) {
        stage->silent_since = now;
        stage->silent_waits = 0;
        stage->silent_why = *why;
    }
    stage->silent_waits++;
}

unsigned stage_silent(struct stage *stage, struct diag *d)
{
    LOCK_SCOPE(&stage->lock);

    if (silence_locked(stage, stage->silent_since, stage_now(stage)) < 0)
        return 0;
    diag_set(d, -EREMOTEIO, "%s", stage->silent_why.text);
    return stage->silent_waits;
}

/* End the wait, and the runs that it caused if no other reader waits for them. */
static void give_up_locked(struct wait *w, int64_t now, int64_t patience, struct wait **over)
{
    uint64_t first = w->blocks.first, end = w->blocks.end;
    struct file *file = w->need.file;
    struct diag reason = DIAG_INIT;
    struct run *next;

    lock_assert_held(&w->need.file->stage->lock);
    wait_explain_locked(file, &reason);
    w->reason = strdup(reason.text);
    if (w->need.why == RUN_DEMAND) {
        file->gave_up = now;
        file->gave_up_first = first;
        file->gave_up_end = end;
        note_silence_locked(file->stage, now, &reason);
    }
    wait_end_locked(w, over);
    for (struct run *run = run_first_locked(file, first, end); run; run = next) {
        next = run_next_locked(run, first, end);
        if (may_end(run) && now - run_progress_locked(run) > patience && !is_waited_for_locked(run))
            run_give_up_locked(run, over);
    }
}

int64_t waits_give_up_locked(struct stage *stage, int64_t now, struct wait **ret_over)
{
    int64_t patience = limit_ns(stage);
    struct range *quiet;

    lock_assert_held(&stage->lock);
    while ((quiet = ranges_least(&stage->quiet))) {
        struct wait *w = (struct wait *)((char *)quiet - offsetof(struct wait, quiet));
        int64_t since = (int64_t)quiet->first, progress;

        if (now - since <= patience)
            return since + patience + 1;
        progress = wait_progress_locked(w, now);
        if (atomic_load_explicit(&stage->progress, memory_order_relaxed) < w->need.since)
            progress -= w->early;
        if (now - progress > patience) {
            give_up_locked(w, now, patience, ret_over);
        } else {
            progress = progress > 0 ? progress : 0;
            ranges_move(&stage->quiet, quiet, (uint64_t)progress, (uint64_t)progress + 1);
        }
    }
    return INT64_MAX;
}
