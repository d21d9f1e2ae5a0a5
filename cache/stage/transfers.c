/* Decides which runs are transferred when, and what happens to a run when its transfer has ended:
 * it is done, it sleeps and is tried again, or it leaves. One connection is always left for readers
 * that wait.
 *
 * `jobs` transfers fill the bandwidth. Small transfers have connections besides those: they cost a
 * round trip, and many can be under way together (cache/stage/limiter.h).
 *
 * Bytes received are kept when a transfer breaks: the run's next transfer goes on at the very
 * byte. Changes to the lists need stage->lock. So while a thread holds the lock, no transfer of a
 * run in the active list has ended. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "cache/stage/blocks.h"
#include "cache/stage/policy.h"
#include "cache/stage/run.h"

#define GROUP_BYTES RUN_BUFFER            /* written to disk at a time, in whole blocks */
#define SMALL_MANY  4096                  /* small runs of a file */
#define NEAR_MOST   (UINT64_C(512) << 10) /* bytes of the run of a reader of a near remote */
#define GIVE_UP     6                     /* failures of a run that no reader waits for */
#define REST_S      30

/* ---- claims: no two processes fetch a block at the same time ---- */

/* Claim the blocks of a run that is about to start, up to the first that another process has
 * claimed: that process fetches the others. False: no block is left. */
static bool run_claim(struct run *run)
{
    struct file *file = run->file;
    uint64_t first = run->blocks.first, end = run->blocks.end, claimed;

    if (run->claimed || run->steals)
        return true;
    claimed = first + staged_claim(file_staged(file), first, end - first);
    LOCK_SCOPE(&file->stage->lock);

    run->claimed = claimed;
    if (claimed < end) {
        file_leave_to_others_locked(file, claimed, end);
        ranges_move(&file->runs->runs, &run->blocks, first, claimed);
    }
    return claimed > first;
}

/* Has another process fetched this block before the claim? One that does not match its record is
 * fetched again. */
static bool has_come(const struct run *run, uint64_t block, uint64_t record, uint8_t *buf)
{
    const uint64_t none = 0;

    if (!record || file_state(run->file, block) != BLOCK_COMING)
        return false;
    if (buf && file_block_is_good(run->file, block, record, buf))
        return true;
    staged_publish(file_staged(run->file), block, 1, &none);
    return false;
}

/* After the claim: has another process fetched blocks of the run before? */
static bool run_finds_some_came(const struct run *run)
{
    uint64_t record[LOOK_AT_ONCE], first = run->blocks.first, end = run->blocks.end;
    AUTO_FREE uint8_t *buf = NULL;
    const struct file *file = run->file;
    bool any = false;

    if (run->steals || run->begun > 1 || file_drops(file) == UINT64_MAX)
        return false;
    buf = malloc(file->block_bytes);
    for (uint64_t b = first; b < end; b++) {
        if ((b - first) % LOOK_AT_ONCE == 0)
            staged_records(file_staged(file), b, (size_t)min_u64(LOOK_AT_ONCE, end - b), record);
        any = has_come(run, b, record[(b - first) % LOOK_AT_ONCE], buf) || any;
    }
    return any;
}

/* Has another process made something from the whole file that replaces it, and does no reader wait
 * for the run? Asked with the claims held: the other process publishes what it has made before it
 * drops a block, so a block that is missing now was not dropped for that reason. */
static bool run_is_done_elsewhere(const struct run *run)
{
    const struct stage *stage = run->file->stage;

    return stage->options.is_done && stage->options.is_done(&run->file->blob, stage->cache) &&
           !run_is_wanted(run);
}

/* ---- the end of a transfer ---- */

/* Processes that have failed together come back apart, and so do their runs. */
static uint64_t random_of(const struct run *run)
{
    return (((uint64_t)run->began >> 12) + run->blocks.first) ^ run->file->stage->nonce >> 1;
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
    if (run->failures >= GIVE_UP && !run_is_waited_for_locked(run)) {
        run->file->runs->rest_until = now + REST_S * NS_PER_S;
        return true;
    }
    retry_ms = limiter_pause_ms(run->failures, random_of(run), retry_ms);
    run_sleep_locked(run, now + (int64_t)retry_ms * NS_PER_MS);
    atomic_fetch_add(&stage->counters.retries, 1);
    return false;
}

/* A late run was stopped within a block. What came of the block is kept: the run goes on with the
 * rest of it, so that no byte comes twice, and leaves the other blocks to others. */
static void go_on_within_block_locked(struct run *run)
{
    lock_assert_held(&run->file->stage->lock);
    run->is_late = run->stopping = false;
    run_shorten_locked(run, run->at + 1);
    run_sleep_locked(run, stage_now(run->file->stage));
}

static int error_of(enum transfer_end how)
{
    return how == TRANSFER_CHANGED ? -ESTALE : how == TRANSFER_STOPPED ? -EINTR : -EREMOTEIO;
}

/* The transfer has ended with `how`: the run sleeps, or leaves. Returns the error for readers that
 * wait; 0: another run serves them. */
static int run_settle_locked(struct run *run, enum transfer_end how, uint64_t retry_ms,
                             struct wait **over)
{
    struct file *file = run->file;
    int error = 0;

    lock_assert_held(&run->file->stage->lock);
    if (run->at == run->blocks.end)
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
        if (run->is_late && run->fill && !file->stage->ending && !file->stage->resting) {
            go_on_within_block_locked(run);
            return 0;
        }
        break;
    case TRANSFER_CHANGED:
        atomic_store(&file->failed, -ESTALE);
        error = -ESTALE;
        break;
    default:
        file->runs->rest_until = stage_now(file->stage) + REST_S * NS_PER_S;
        error = run->stopping ? 0 : error_of(how);
        break;
    }
    run_leave_locked(run, error, over);
    return error;
}

/* The transfer of the run has ended with `how`: the run sleeps, or has left. No lock held. */
static void run_settle(struct run *run, enum transfer_end how, uint64_t retry_ms,
                       const struct diag *d)
{
    struct stage *stage = run->file->stage;
    struct wait *over = NULL;
    struct diag reason = DIAG_INIT;
    bool fails = how != TRANSFER_DONE && how != TRANSFER_STOPPED && how != TRANSFER_WHOLE, answers;
    int error;

    run_publish_ready(run); /* what has come is valid, whatever happened */

    if (d && d->set)
        reason = *d;
    lock_take(&run->buffer_lock); /* runs_flush() may still look at the run */
    lock_take(&stage->lock);
    answers = how == TRANSFER_DONE && stage->trouble_error;
    if (how == TRANSFER_DONE) {
        speed_measure_locked(stage, run, stage_now(stage));
        stage->trouble_error = 0;
        if (!atomic_load(&run->file->failed))
            file_set_trouble_locked(run->file, NULL);
    } else if (fails) {
        file_set_trouble_locked(run->file, diag_text(&reason, error_of(how)));
        stage->trouble = reason;
        stage->trouble_error = error_of(how);
    }
    error = run_settle_locked(run, how, retry_ms, &over);
    stage_kick_locked(stage);
    lock_drop(&stage->lock);
    lock_drop(&run->buffer_lock);
    if (fails || answers)
        stage_tell(stage, fails ? error_of(how) : 0, &reason);
    waits_tell(stage, over, error, &reason);
}

/* ---- one run ---- */

static int get_buffer(struct run *run)
{
    struct stage *stage = run->file->stage;

    if (run->buffer)
        return 0;
    run->buffer_capacity = (size_t)min_u64(GROUP_BYTES, max_u64(run_bytes_left(run), 1));
    run->buffer = runs_take_buffer(stage);
    return run->buffer ? 0 : -ENOMEM;
}

/* End a run that cannot be started. again: what is missing of its blocks is needed all the same. */
static void drop_run(struct run *run, bool again, int error, const struct diag *reason)
{
    struct stage *stage = run->file->stage;
    struct wait *over = NULL;

    lock_take(&stage->lock);
    if (!again ||
        run->why == RUN_AHEAD) /* else look-ahead would ask for the same blocks for ever */
        needs_ahead_ended_locked(run->file, run->blocks.first, run->blocks.end, again);
    run_leave_locked(run, run->stopping ? 0 : error, &over);
    stage_kick_locked(stage);
    lock_drop(&stage->lock);
    waits_tell(stage, over, error, reason);
}

static void run_end(struct transfer *transfer, enum transfer_end how, uint64_t retry_ms,
                    const struct diag *d)
{
    struct run *run = (struct run *)transfer;

    run_settle(run, how, retry_ms, d);
    runs_start(run->file->stage);
    run_let_go(run); /* last: the stage may be freed then */
}

/* Get ready for a transfer. 0, or -errno. */
static int prepare_transfer(struct run *run)
{
    struct file *file = run->file;
    struct stage *stage = file->stage;
    int r = get_buffer(run);
    LOCK_SCOPE(&stage->lock);

    if (r == 0 && run->at == run->blocks.first && run->fill < run->skip) {
        memset(run->buffer, 0, run->skip);
        run->fill = run->skip;
    }
    run->transfer.url = file->url;
    run->transfer.data = run_data_came;
    run->transfer.end = run_end;
    run->transfer.passed = run_passed;
    run->transfer.stale = run_stale_came;
    run->version = file->version;
    run->transfer.version = &run->version;
    run->transfer.off = run->at * file->block_bytes + run->fill;
    run->transfer.len = run_bytes_left(run) - run->fill - run->cut;
    run->bytes = run->watched_bytes = 0;
    run->share = transfer_share(stage->options.retry_limit_s, stage->runs->n_active);
    run->was_paused = false;
    run->began = run->published = stage_now(stage);
    run->waited = transport_waited(stage->transport, run->began);
    run->references++; /* until run_end() */
    return run->stopping || stage->ending ? -EINTR : r;
}

/* The transport has the transfer, which may have ended by now. */
static void note_started(struct run *run, unsigned begun)
{
    struct stage *stage = run->file->stage;
    LOCK_SCOPE(&stage->lock);

    if (run->begun != begun || run->state != RUN_STARTING)
        return;
    run->state = RUN_RUNNING;
    if (run->stopping)
        transport_stop(stage->transport, &run->transfer);
}

/* Start the transfer of a run that has become STARTING for the time number `begun`. */
static void run_begin(struct run *run, unsigned begun)
{
    struct stage *stage = run->file->stage;
    struct diag reason = DIAG_INIT;
    int r;

    if (!run_claim(run)) {
        drop_run(run, true, 0, NULL);
        return;
    }
    if (run_finds_some_came(run)) { /* other runs bring the rest */
        drop_run(run, true, 0, NULL);
        look_at_blocks(run->file, run->blocks.first, run->blocks.end);
        return;
    }
    if (run_is_done_elsewhere(run)) {
        drop_run(run, false, 0, NULL);
        blob_done(&run->file->blob);
        return;
    }
    if (!run_take_quota(run)) {
        drop_run(run, false, 0, NULL);
        return;
    }
    r = prepare_transfer(run);
    if (r == 0) {
        if (!stage->transport->counts_requests)
            atomic_fetch_add(&stage->counters.requests, 1);
        r = transport_start(stage->transport, &run->transfer);
    }
    if (r == 0) {
        note_started(run, begun);
        return;
    }
    diag_set(&reason, r, "%s: %s", run->file->blob.name, strerror(-r));
    drop_run(run, false, r == -EINTR ? r : -EREMOTEIO, &reason);
    run_let_go(run); /* run_end() is not called */
}

/* ---- places ---- */

/* Is a place free for a run of one kind? One place is for demands only. */
static bool has_place_locked(const struct stage *stage, enum run_why why, bool small)
{
    unsigned all = limiter_most(stage->limiter), jobs = stage->options.jobs, most = all;
    size_t taken = stage->runs->n_active;
    const struct run *run;

    lock_assert_held(&stage->lock);
    if (taken >= all)
        return false;
    if (!small && all != jobs) {
        most = jobs;
        taken = 0;
        TAILQ_FOREACH (run, &stage->runs->active, link)
            taken += !run->small && !run->paused;
    } else if (why == RUN_BACKGROUND && all / 2 > jobs) {
        most = all / 2;
    }
    return taken + (why != RUN_DEMAND) < most;
}

bool runs_have_place_locked(struct stage *stage)
{
    lock_assert_held(&stage->lock);
    return has_place_locked(stage, RUN_BACKGROUND, false) &&
           has_place_locked(stage, RUN_BACKGROUND, true);
}

/* ---- the next ones ---- */

/* A run has become STARTING: its first transfer, or the next one. */
static struct run *started_locked(struct run *run, bool small)
{
    const struct stage *stage = run->file->stage;

    lock_assert_held(&run->file->stage->lock);
    run->small = small && !run->file->version.whole_only;
    run->file->runs->n_small += run->small;
    run->crowded = stage->runs->n_active > stage->options.jobs;
    run->references++; /* until run_begin() has returned */
    return run;
}

/* A near remote has no round trip that many requests could share: each costs the processors here
 * and there as much as many of its bytes. The run of a reader then also brings the missing blocks
 * around, if they are to be fetched anyway and it has few of its own. So does that of a far one
 * after many small ones: on a machine that is busy, a near one looks far. False: it is no run to a
 * near remote, or they are not. */
static bool grow_locked(struct file *file, uint64_t *first, uint64_t *n)
{
    const struct stage *stage = file->stage;
    uint64_t near_bytes = min_u64(speed_near_worth_locked(stage, false), NEAR_MOST),
             worth = near_bytes || file->runs->n_small < SMALL_MANY
                         ? near_bytes
                         : min_u64(speed_near_worth_locked(stage, true), NEAR_MOST / 2),
             tile, from, to;

    lock_assert_held(&stage->lock);
    if (!worth || !stage->begun || !stage->options.background || stage->options.rate ||
        !keep_holds_all(stage))
        return false;
    if (*n * file->block_bytes >= worth)
        return near_bytes > 0;
    tile = file_tile(file, worth);
    from = *first / tile * tile;
    to = min_u64(from + tile, file->blocks);
    for (; *first > from && file_is_free(file, *first - 1); (*first)--)
        ++*n;
    while (*first + *n < to && file_is_free(file, *first + *n))
        ++*n;
    return near_bytes > 0;
}

/* The next run of one kind, if there is a place for it: first those that have slept, because they
 * have waited already. */
static struct run *next_of_locked(struct stage *stage, enum run_why why, int64_t now)
{
    struct run *run = run_due_locked(stage, why, now);
    struct wanted wanted;
    bool small;

    lock_assert_held(&stage->lock);
    if (run) {
        small = speed_is_small_locked(stage, why, run_bytes_left(run));
        if (!has_place_locked(stage, why, small))
            return NULL;
        run_wake_locked(run);
        return started_locked(run, small);
    }
    if (!needs_next_locked(stage, why, &wanted))
        return NULL;
    small = !grow_locked(wanted.file, &wanted.first, &wanted.n) &&
            speed_is_small_locked(stage, why, wanted.n * wanted.file->block_bytes);
    if (has_place_locked(stage, why, small))
        run = run_make_locked(wanted.file, wanted.first, wanted.n, why, wanted.since);
    return run ? started_locked(run, small) : NULL;
}

static struct run *next_locked(struct stage *stage)
{
    int64_t now = stage_now(stage);
    struct run *run = NULL;

    lock_assert_held(&stage->lock);
    for (unsigned why = 0; why < RUN_WHYS && !run && !stage->ending && !stage->resting; why++)
        run = next_of_locked(stage, (enum run_why)why, now);
    return run;
}

/* While a reader waits, the background has one connection; its other runs pause. Returns whether a
 * run begins to pause: then a place may be free. */
static bool share_locked(struct stage *stage)
{
    bool demand = needs_any_locked(stage, RUN_DEMAND) ||
                  run_due_locked(stage, RUN_DEMAND, stage_now(stage)) ||
                  runs_active_locked(stage, RUN_DEMAND),
         first = true, any = false;
    struct run *run;

    lock_assert_held(&stage->lock);
    TAILQ_FOREACH (run, &stage->runs->active, link) {
        bool pause = demand && run->why == RUN_BACKGROUND && !first;

        first = first && run->why != RUN_BACKGROUND;
        if (pause != run->paused && !run->stopping && run->state == RUN_RUNNING) {
            run->paused = pause;
            run->was_paused = true;
            any = any || pause;
            transport_pause(stage->transport, &run->transfer, pause);
        }
    }
    return any;
}

static void run_begin_and_let_go(struct run *run, unsigned begun)
{
    run_begin(run, begun);
    run_let_go(run);
}

void runs_start(struct stage *stage)
{
    struct run *run;

    for (;;) {
        unsigned begun = 0;

        lock_take(&stage->lock);
        run = next_locked(stage);
        if (!run && share_locked(stage))
            run = next_locked(stage);
        if (run)
            begun = run->begun;
        lock_drop(&stage->lock);
        if (!run)
            return;
        run_begin_and_let_go(run, begun);
    }
}

/* How many of the n blocks a run can have, from the first on. */
static uint64_t count_free_locked(struct file *file, uint64_t first, uint64_t n)
{
    uint64_t free = 0;

    lock_assert_held(&file->stage->lock);
    if (run_must_wait_locked(file))
        return 0;
    while (free < n && file_may_fetch(file, first + free))
        free++;
    return free;
}

int runs_start_background(struct file *file, uint64_t first, uint64_t n, uint64_t when,
                          uint64_t taken)
{
    struct stage *stage = file->stage;
    struct run *run = NULL;
    bool small;

    lock_take(&stage->lock);
    n = count_free_locked(file, first, n);
    small = speed_is_small_locked(stage, RUN_BACKGROUND, n * file->block_bytes);
    if (n && !stage->ending && !stage->resting && has_place_locked(stage, RUN_BACKGROUND, small))
        run = run_make_locked(file, first, n, RUN_BACKGROUND, stage_now(stage));
    if (run) {
        run->when = when;
        run->taken = taken;
        started_locked(run, small);
    }
    lock_drop(&stage->lock);
    if (run)
        run_begin_and_let_go(run, 1);
    return run ? 1 : n ? -EAGAIN : 0;
}
