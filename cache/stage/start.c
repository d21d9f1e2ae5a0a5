/* Decides which runs are transferred when. One connection is always left for readers that wait.
 *
 * `jobs` transfers fill the bandwidth. Small transfers have connections besides those: they cost a
 * round trip, and many can be under way together (cache/stage/limiter.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/scope.h"
#include "cache/stage/parts.h"

#define GROUP_BYTES RUN_BUFFER            /* written to disk at a time, in whole blocks */
#define FIRST_BYTES (UINT64_C(128) << 10) /* see take_quota() */
#define SMALL_MOST  (UINT64_C(256) << 10) /* bytes of a small transfer, */
#define NEAR_MOST   (UINT64_C(1) << 20)   /* bytes of the run of a reader of a near remote */
#define SMALL_SHARE 8 /* in the background: this part of the bytes worth a transfer */

/* ---- one run ---- */

/* Could blocks without a claim be written now? If not, there is no use in fetching them. */
static int try_to_exclude_drops(const struct run *run)
{
    AUTO_CLOSE int excludes = run->steals ? staged_exclude_drops(&run->file->staged) : -1;

    return run->steals && excludes < 0 ? excludes : 0;
}

static bool is_full(struct stage *stage)
{
    LOCK_SCOPE(&stage->lock);

    return stage->keeping.is_full;
}

bool file_wants_parts(const struct file *file)
{
    return atomic_load_explicit(&file->stage->overflow.is_wasteful, memory_order_relaxed) &&
           atomic_load_explicit(&file->ahead_at, memory_order_relaxed) == UINT64_MAX;
}

/* Of the first block and of the last one, only what readers want of them need come. */
static void trim(struct run *run)
{
    struct file *file = run->file;
    uint64_t start = run->first * file->block_bytes, end = start + run_bytes_left(run), from = end,
             to = start;
    LOCK_SCOPE(&file->stage->lock);

    if (run->done || run->fill || file->version.whole_only || !file_wants_parts(file))
        return;
    for (const struct wait *w = wait_first_locked(file, run->first, run->first + run->n); w;
         w = wait_next_locked(w, run->first, run->first + run->n)) {
        from = min_u64(from, max_u64(start, w->need.from));
        to = max_u64(to, min_u64(end, w->need.to));
    }
    if (from >= to)
        return;
    run->skip = from - start < file->block_bytes ? (uint32_t)(from - start) : 0;
    run->cut = end - to < file_block_len(file, run->first + run->n - 1) ? (uint32_t)(end - to) : 0;
}

/* Take disk space from the quota for what is to come; of a file that comes whole, which may be
 * larger than the cache, for the first write: write_blocks() takes the rest. False: there is none,
 * and no reader waits. */
static bool take_quota(struct run *run)
{
    struct stage *stage = run->file->stage;
    uint64_t most = run->file->version.whole_only ? FIRST_BYTES : UINT64_MAX,
             want = min_u64(run_bytes_left(run), most) + RUN_OVERHEAD;
    int r;

    if (run->taken || run->refused)
        return true;
    if (is_full(stage)) { /* no block is worth the place of another one */
        trim(run);
        run->refused = run->skip || run->cut;
        if (run->refused)
            return true;
    }
    r = run->file->staged.is_in_memory ? -ENOSPC : try_to_exclude_drops(run);
    if (r == 0)
        r = keep_take_quota(stage, want, run_needed_when(run));
    if (r >= 0) {
        LOCK_SCOPE(&stage->lock);

        run->taken = r == 0 ? want : 0;
        if (run->why != RUN_DEMAND) /* this run may need less than others do */
            stage->full_error = 0;
        return true;
    }
    run->refused = true;
    stage_note_full(stage, r);
    trim(run);
    return run_is_wanted(run);
}

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
    struct need *ahead = &run->file->ahead;
    struct stage *stage = run->file->stage;
    struct wait *over = NULL;

    lock_take(&stage->lock);
    if (!again) /* else look-ahead would ask for the same blocks at once, for ever */
        need_skip_locked(ahead, run->first, run->first + run->n);
    else if (run->why == RUN_AHEAD && run->first < ahead->end)
        need_queue_locked(ahead, run->first);
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

    if (r == 0 && !run->done && run->fill < run->skip) {
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
    run->transfer.off = (run->first + run->done) * file->block_bytes + run->fill;
    run->transfer.len = run_bytes_left(run) - run->fill - run->cut;
    run->bytes = 0;
    run->share = transfer_share(stage->options.retry_limit_s, stage->n_active);
    run->was_paused = false;
    run->began = run->published = stage_now(stage);
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
        look_at_blocks(run->file, run->first, run->first + run->n);
        return;
    }
    if (run_is_done_elsewhere(run)) {
        drop_run(run, false, 0, NULL);
        blob_done(&run->file->blob);
        return;
    }
    if (!take_quota(run)) {
        drop_run(run, false, 0, NULL);
        return;
    }
    r = prepare_transfer(run);
    if (r == 0) {
        if (!stage->transport->counts_requests)
            atomic_fetch_add_explicit(&stage->counters.requests, 1, memory_order_relaxed);
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

/* Does a transfer take longer to begin than to come? Other background runs are made so long that
 * they do not. */
static bool is_small_locked(struct stage *stage, enum run_why why, uint64_t bytes)
{
    uint64_t worth = runs_worth_locked(stage) / (why == RUN_BACKGROUND ? SMALL_SHARE : 1);

    lock_assert_held(&stage->lock);
    return stage->wait_ns >= stage->options.far_ms * 1e6 && bytes <= min_u64(worth, SMALL_MOST);
}

/* For a run of one kind: the places that it may have, and how many are taken. */
struct places {
    size_t taken, most;
};

static struct places places_locked(const struct stage *stage, enum run_why why, bool small)
{
    unsigned all = limiter_most(stage->limiter), jobs = stage->options.jobs;
    struct places ret = {.taken = stage->n_active, .most = all};
    const struct run *run;

    lock_assert_held(&stage->lock);
    if (why == RUN_BACKGROUND && small && all / 2 > jobs)
        ret.most = all / 2;
    if (small || all == jobs)
        return ret;
    ret = (struct places){.most = jobs};
    TAILQ_FOREACH (run, &stage->active, link)
        ret.taken += !run->small && !run->paused;
    if (stage->n_active >= all)
        ret.taken = ret.most;
    return ret;
}

/* Is a place free? One place is for demands only. */
static bool has_place_locked(const struct stage *stage, enum run_why why, bool small)
{
    struct places places = places_locked(stage, why, small);

    lock_assert_held(&stage->lock);
    return places.taken + (why != RUN_DEMAND) < places.most;
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
    run->crowded = stage->n_active > stage->options.jobs;
    run->references++; /* until run_begin() has returned */
    return run;
}

static bool is_free(struct file *file, uint64_t block)
{
    return file_may_fetch(file, block) && !file_is_for_readers(file, block);
}

/* A near remote has no round trip that many requests could share: each costs the processors here
 * and there as much as some of its bytes. The run of a reader then also brings the missing blocks
 * around, as many as double its cost at most, if they are to be fetched anyway. */
static void grow_locked(struct file *file, uint64_t *first, uint64_t *n)
{
    const struct stage *stage = file->stage;
    uint64_t worth = min_u64(speed_near_worth_locked(stage), NEAR_MOST), tile = 1, from, to;

    lock_assert_held(&stage->lock);
    if (!stage->begun || !stage->options.background || stage->options.rate ||
        !stage->keeping.holds_all)
        return;
    while (2 * tile * file->block_bytes <= worth)
        tile *= 2;
    from = *first / tile * tile;
    to = min_u64(ceil_div(*first + *n, tile) * tile, file->blocks);
    for (; *first > from && is_free(file, *first - 1); (*first)--)
        ++*n;
    while (*first + *n < to && is_free(file, *first + *n))
        ++*n;
}

/* The next run of one kind, if there is a place for it: first those that have slept, because they
 * have waited already. */
static struct run *next_of_locked(struct stage *stage, enum run_why why, int64_t now)
{
    struct run *run = run_due_locked(stage, why, now);
    struct need *need = NULL;
    uint64_t first, n;
    bool small;

    lock_assert_held(&stage->lock);
    if (run) {
        small = is_small_locked(stage, why, run_bytes_left(run));
        if (!has_place_locked(stage, why, small))
            return NULL;
        run_wake_locked(run);
        return started_locked(run, small);
    }
    if (why == RUN_BACKGROUND)
        return NULL;
    while ((need = TAILQ_FIRST(&stage->needs[why])) && !need_next_locked(need, &first, &n))
        continue;
    if (!need)
        return NULL;
    grow_locked(need->file, &first, &n);
    small = is_small_locked(stage, why, n * need->file->block_bytes);
    if (has_place_locked(stage, why, small))
        run = run_make_locked(need->file, first, n, why, need->since);
    return run ? started_locked(run, small) : NULL;
}

static struct run *next_locked(struct stage *stage)
{
    int64_t now = stage_now(stage);
    struct run *run = NULL;

    lock_assert_held(&stage->lock);
    for (unsigned why = 0; why < RUN_WHYS && !run && !stage->ending; why++)
        run = next_of_locked(stage, (enum run_why)why, now);
    return run;
}

/* While a reader waits, the background has one connection; its other runs pause. Returns whether a
 * run begins to pause: then a place may be free. */
static bool share_locked(struct stage *stage)
{
    bool demand = !TAILQ_EMPTY(&stage->needs[RUN_DEMAND]) ||
                  run_due_locked(stage, RUN_DEMAND, stage_now(stage)),
         first = true, any = false;
    struct run *run;

    lock_assert_held(&stage->lock);
    TAILQ_FOREACH (run, &stage->active, link)
        demand = demand || run->why == RUN_DEMAND;
    TAILQ_FOREACH (run, &stage->active, link) {
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

static void begin(struct run *run, unsigned begun)
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
        begin(run, begun);
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
    small = is_small_locked(stage, RUN_BACKGROUND, n * file->block_bytes);
    if (n && !stage->ending && !stage->resting && has_place_locked(stage, RUN_BACKGROUND, small))
        run = run_make_locked(file, first, n, RUN_BACKGROUND, stage_now(stage));
    if (run) {
        run->when = when;
        run->taken = taken;
        started_locked(run, small);
    }
    lock_drop(&stage->lock);
    if (run)
        begin(run, 1);
    return run ? 1 : n ? -EAGAIN : 0;
}
