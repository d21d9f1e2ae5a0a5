/* Decides what happens to a run when its transfer has ended: it is done, it sleeps and is tried
 * again, or it leaves. Bytes received stay valid when a transfer breaks: the run's next transfer
 * goes on at the very byte.
 *
 * Changes to the lists need stage->lock. So while a thread holds the lock, no transfer of a run in
 * the active list has ended. */
#include <errno.h>

#include "base/checked.h"
#include "cache/stage/parts.h"

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S  INT64_C(1000000000)
#define GIVE_UP   6 /* failures of a run that no reader waits for */
#define REST_S    30

static uint64_t random_of(const struct run *run)
{
    return ((uint64_t)run->began ^ (uint64_t)(uintptr_t)run) >> 12;
}

/* A transfer has failed and may work later. True: the run leaves. */
static bool fail_once_locked(struct run *run, uint64_t retry_ms)
{
    struct stage *stage = run->file->stage;
    int64_t now = stage_now(stage);

    lock_assert_held(&run->file->stage->lock);
    if (run->crowded) {
        limiter_refused(stage->limiter, run->began); /* that is no failure of the remote */
        retry_ms = min_u64(retry_ms, LIMITER_CROWDED_MS);
    } else {
        run->failures++;
    }
    if (run->failures >= GIVE_UP && !is_waited_for_locked(run)) {
        run->file->rest_until = now + REST_S * NS_PER_S;
        return true;
    }
    retry_ms = limiter_pause_ms(run->failures, random_of(run), retry_ms);
    run_sleep_locked(run, now + (int64_t)retry_ms * NS_PER_MS);
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

    lock_assert_held(&run->file->stage->lock);
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
        if (!atomic_load(&run->file->failed))
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
