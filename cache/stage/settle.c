/* Decides what happens to a run when its transfer has ended: it is done, it sleeps and is tried
 * again, or it leaves. Bytes received stay valid when a transfer breaks: the run's next transfer
 * goes on at the very byte.
 *
 * Changes to the lists need stage->lock. So while a thread holds the lock, no transfer of a run in
 * the active list has ended. */
#include <errno.h>

#include "base/checked.h"
#include "cache/stage/parts.h"

#define NS_PER_MS       INT64_C(1000000)
#define NS_PER_S        INT64_C(1000000000)
#define BACKOFF_MOST_MS 15000
#define GIVE_UP         6 /* failures of a run that no reader waits for */
#define REST_S          30
#define FORGET_S        600  /* after this long a refusal is forgotten */
#define CROWDED_MS      1000 /* how long a transfer that was refused as one too many waits */

static int64_t backoff_ns(const struct run *run, uint64_t retry_ms)
{
    uint64_t ms = BACKOFF_MS, jitter = (uint64_t)run->began ^ (uint64_t)(uintptr_t)run;

    for (unsigned i = 1; i < run->failures && ms < BACKOFF_MOST_MS; i++)
        ms *= 2;
    ms = min_u64(ms, BACKOFF_MOST_MS);
    ms += (jitter >> 12) % (ms / 2 + 1); /* so that not all come back at the same time */
    return (int64_t)max_u64(ms, retry_ms) * NS_PER_MS;
}

/* The remote may have refused one transfer too many. That is no failure of the remote. */
static void note_refusal_locked(struct run *run, int64_t now)
{
    struct stage *stage = run->file->stage;

    lock_assert_held(&stage->lock);
    if (run->began <= stage->refused_at) /* together with those refused before */
        return;
    if (now - stage->refused_at > FORGET_S * NS_PER_S)
        stage->refusals = 0;
    stage->refusals += stage->refusals < 16;
    stage->refused_at = now;
}

/* A transfer has failed and may work later. True: the run leaves. */
static bool fail_once_locked(struct run *run, uint64_t retry_ms)
{
    struct stage *stage = run->file->stage;
    int64_t now = stage_now(stage);

    if (run->crowded) {
        note_refusal_locked(run, now);
        retry_ms = min_u64(retry_ms, CROWDED_MS);
    } else {
        run->failures++;
    }
    if (run->failures >= GIVE_UP && !is_waited_for_locked(run)) {
        run->file->rest_until = now + REST_S * NS_PER_S;
        return true;
    }
    run_sleep_locked(run, now + backoff_ns(run, retry_ms));
    atomic_fetch_add_explicit(&stage->counters.retries, 1, memory_order_relaxed);
    return false;
}

/* A late run was stopped within a block. What came of the block stays: the run goes on with the
 * rest of it, so that no byte comes twice, and leaves the other blocks to others. */
static void go_on_within_block_locked(struct run *run)
{
    lock_assert_held(&run->file->stage->lock);
    run->is_late = run->stopping = false;
    run_shorten_locked(run, run->done + 1);
    run_sleep_locked(run, stage_now(run->file->stage));
}

static int error_of(enum transfer_end how)
{
    return how == TRANSFER_CHANGED ? -ESTALE : how == TRANSFER_STOPPED ? -EINTR : -EREMOTEIO;
}

/* The transfer has ended with `how`: the run sleeps, or leaves. Returns the error for readers that
 * wait; 0: another run serves them. */
static int settle_locked(struct run *run, enum transfer_end how, uint64_t retry_ms,
                         struct wait **over)
{
    struct file *file = run->file;
    int error = 0;

    if (run->done == run->n)
        how = TRANSFER_DONE;
    else if (how == TRANSFER_DONE || (how == TRANSFER_WHOLE && run->version.whole_only))
        how = TRANSFER_AGAIN; /* the transport sent fewer bytes than it claims, or nonsense */
    switch (how) {
    case TRANSFER_DONE:
        break;
    case TRANSFER_AGAIN:
        if (!run->stopping && !fail_once_locked(run, retry_ms))
            return 0;
        break;
    case TRANSFER_WHOLE: /* readers that wait get the file as a whole now */
        file->version.whole_only = true;
        break;
    case TRANSFER_STOPPED: /* by this process, or no space for blocks that no reader waits for */
        if (run->is_late && run->fill && !file->stage->ending) {
            go_on_within_block_locked(run);
            return 0;
        }
        break;
    case TRANSFER_CHANGED:
        atomic_store(&file->failed, -ESTALE);
        error = -ESTALE;
        break;
    default:
        file->rest_until = stage_now(file->stage) + REST_S * NS_PER_S;
        error = run->stopping ? 0 : error_of(how);
        break;
    }
    run_leave_locked(run, error, over);
    return error;
}

void run_settle(struct run *run, enum transfer_end how, uint64_t retry_ms, const struct diag *d)
{
    struct stage *stage = run->file->stage;
    struct wait *over = NULL;
    struct diag reason = DIAG_INIT;
    bool fails = how != TRANSFER_DONE && how != TRANSFER_STOPPED && how != TRANSFER_WHOLE, answers;
    int error;

    run_publish_ready(run); /* whatever happened, what has come stays */

    if (d && d->set)
        reason = *d;
    lock_take(&run->buffer_lock); /* runs_flush() may still look at the run */
    lock_take(&stage->lock);
    answers = how == TRANSFER_DONE && stage->trouble_error;
    if (how == TRANSFER_DONE) {
        speed_adapt_locked(stage, run, stage_now(stage));
        speed_measure_locked(stage, run, stage_now(stage));
        stage->trouble_error = 0;
        file_set_trouble_locked(run->file, NULL);
    } else if (fails) {
        file_set_trouble_locked(run->file, diag_text(&reason, error_of(how)));
        stage->trouble = reason;
        stage->trouble_error = error_of(how);
    }
    error = settle_locked(run, how, retry_ms, &over);
    stage_kick_locked(stage);
    lock_drop(&stage->lock);
    lock_drop(&run->buffer_lock);
    if (fails || answers)
        stage_tell(stage, fails ? error_of(how) : 0, &reason);
    waits_tell(stage, over, error, &reason);
}
