/* What is fetched next: the scheduler, run by the stage's thread, on top of all other files of the
 * stage.
 *
 * Readers that wait queue their blocks themselves. This file does the rest: what the background
 * brings, what other processes fetch, and what must be tried again. The background first takes what
 * the forecast of needs gives. Then it goes through the files in their order, turn after turn,
 * until a whole turn finds nothing missing. */
#include <errno.h>

#include "base/checked.h"
#include "cache/stage/parts.h"

#define NS_PER_MS    INT64_C(1000000)
#define NS_PER_S     INT64_C(1000000000)
#define LOOK_MS      50
#define TURN_MS      100 /* after a turn in which blocks were still coming: when to look again */
#define MANY_TURN_MS 2000
#define MANY_FILES   1000

/* Runs of this kind under way. */
static unsigned count_active(const struct stage *stage, enum run_why why)
{
    unsigned n = 0;

    for (const struct run *run = stage->active.first; run; run = run->next)
        n += run->why == (int)why;
    return n;
}

/* Background runs that are under way or queued. */
static size_t count_background_locked(const struct stage *stage)
{
    return count_active(stage, RUN_BACKGROUND) + stage->queued[RUN_BACKGROUND].n;
}

/* Look whether other jobs use the processors, if it is time for that. */
static void look_at_processors(struct stage *stage, int64_t now)
{
    size_t under_way;

    if (!stage->options.idle_ns)
        return;
    lock_take(&stage->lock);
    under_way = count_background_locked(stage);
    lock_drop(&stage->lock);
    if (yield_looks(&stage->yield, now, under_way) &&
        yield_look(&stage->yield, now, stage->options.idle_ns()))
        atomic_fetch_add_explicit(&stage->counters.rests, 1, memory_order_relaxed);
}

/* May the background start one more run? While a reader waits it has one at a time. */
static bool may_stage_locked(struct stage *stage, int64_t now)
{
    size_t others = stage->queued[RUN_AHEAD].n + stage->queued[RUN_BACKGROUND].n;

    if ((stage->queued[RUN_DEMAND].n || count_active(stage, RUN_DEMAND)) &&
        count_active(stage, RUN_BACKGROUND))
        return false;
    return stage->begun && stage->options.background && !stage->ending && !others &&
           !stage->asleep.n && runs_have_place_locked(stage) && now >= stage->budget_ns &&
           yield_may(&stage->yield, count_background_locked(stage));
}

/* May the background go on with its turn through the files? Blocks that the plan does not need must
 * not displace those it needs. */
static bool may_turn_locked(const struct stage *stage, int64_t now)
{
    return (!stage->full_error || now >= stage->full_until) && now >= stage->look_until &&
           (!stage->keeping.is_full || stage->keeping.holds_all);
}

static int64_t next_look_locked(const struct stage *stage, int64_t now)
{
    int64_t next = yield_next(&stage->yield, count_background_locked(stage));

    if (!stage->begun || !stage->options.background)
        return INT64_MAX;
    if (stage->full_error && stage->full_until > now)
        next = stage->full_until;
    if (stage->look_until > now && stage->look_until < next)
        next = stage->look_until;
    if (stage->budget_ns > now && stage->budget_ns < next)
        next = stage->budget_ns;
    if (stage->guided.hold_until > now && stage->guided.hold_until < next)
        next = stage->guided.hold_until;
    return next;
}

static bool can_be_staged(struct file *file, int64_t now)
{
    LOCK_SCOPE(&file->stage->lock);

    return file->rest_until <= now;
}

/* Queue the next background run. False: nothing is missing in the rest of this turn. */
static bool stage_more(struct stage *stage, int64_t now)
{
    uint64_t most, from;
    struct file *file;

    lock_take(&stage->lock);
    stage->added = stage->added && stage->at;
    stage->missed_at = stage->at ? stage->missed_at : stage->missed;
    file = stage->at ? stage->at : stage->files;
    from = stage->at ? stage->at_block : 0;
    most = run_bytes_locked(stage);
    lock_drop(&stage->lock);
    for (; file; file = atomic_load(&file->next), from = 0) {
        uint64_t first = file->blocks, end = file->blocks;
        bool others = false;

        if (atomic_load(&file->done) || atomic_load(&file->failed) < 0)
            continue;
        if (!can_be_staged(file, now)) {
            stage->saw_missing = true;
            continue;
        }
        if (!file->blocks)
            continue;
        file_try_disk(file);
        if (file_take(file, NULL) < 0) { /* perhaps it works later; see progress_locked() */
            stage->saw_missing = true;
            continue;
        }
        first = find_missing(file, from, file->blocks, max_u64(most / file->block_bytes, 1), false,
                             &end, &others);
        if (first < file->blocks && stage->options.is_done &&
            stage->options.is_done(&file->blob, stage->cache)) {
            blob_done(&file->blob);
            file_put(file);
            continue;
        }
        stage->saw_missing = stage->saw_missing || others || first < file->blocks;
        if (first < file->blocks) {
            LOCK_SCOPE(&stage->lock);

            runs_make_locked(file, first, end, UINT64_MAX, RUN_BACKGROUND, false);
            spend_locked(stage, now, (end - first) * file->block_bytes);
            stage->at = file;
            stage->at_block = end;
            file_put(file);
            return true;
        }
        file_put(file);
        if (atomic_load_explicit(&stage->ending, memory_order_relaxed))
            return true;
    }
    return false;
}

/* Compare complete files with their SHA-256, one at a time. */
static void verify_staged(struct stage *stage)
{
    struct file *file;

    lock_take(&stage->lock);
    file = stage->files;
    lock_drop(&stage->lock);
    for (; file; file = atomic_load(&file->next)) {
        struct diag reason = DIAG_INIT;

        if (!file->has_sha256 || atomic_load(&file->done) ||
            atomic_load(&file->verdict) != FILE_NOT_VERIFIED || file_take(file, NULL) < 0)
            continue;
        if (file_verify(file, &reason) == -EBADMSG) {
            lock_take(&stage->lock);
            stage->trouble = reason;
            stage->trouble_error = -EBADMSG;
            lock_drop(&stage->lock);
            stage_tell(stage, -EBADMSG, &reason);
        }
        file_put(file);
    }
}

static void end_turn(struct stage *stage, int64_t now)
{
    bool all = !stage->saw_missing;

    if (all)
        verify_staged(stage);
    LOCK_SCOPE(&stage->lock);

    all = all && !stage->added;
    stage->at = NULL;
    stage->all_staged = all;
    stage->guided.all_here = all && stage->missed == stage->missed_at;
    if (all)
        runs_free_buffers_locked(stage);
    stage->look_until =
        all ? INT64_MAX : now + (stage->n_files < MANY_FILES ? TURN_MS : MANY_TURN_MS) * NS_PER_MS;
    stage->saw_missing = false;
    pthread_cond_broadcast(&stage->gone);
}

/* Queue the next run: the forecast of needs comes first. False: there is none now. */
static bool next_run(struct stage *stage, int64_t now)
{
    enum guided_step step = GUIDED_NONE;
    bool may, planned, turn;

    keep_holds_all(stage, now);
    lock_take(&stage->lock);
    may = may_stage_locked(stage, now);
    planned = may && guided_may_locked(stage, now);
    lock_drop(&stage->lock);
    if (!may)
        return false;
    if (planned)
        step = guided_more(stage, now);
    if (step != GUIDED_NONE)
        return step == GUIDED_MADE;
    lock_take(&stage->lock);
    turn = may_turn_locked(stage, now);
    lock_drop(&stage->lock);
    if (!turn)
        return false;
    if (stage_more(stage, now))
        return true;
    end_turn(stage, now);
    return false;
}

static void stage_in_background(struct stage *stage, int64_t now)
{
    look_at_processors(stage, now);
    while (next_run(stage, now)) {
        yield_begun(&stage->yield);
        runs_start(stage);
    }
    keep_prepare(stage);
}

/* ---- the thread ---- */

int64_t runs_wake_locked(struct stage *stage, int64_t now, struct wait **ret_over)
{
    struct run *gone = NULL;
    int64_t give_up = waits_give_up_locked(stage, now, ret_over, &gone),
            wake = runs_wake_asleep_locked(stage, now), next = give_up < wake ? give_up : wake;
    bool waited = stage->quiet.n > 0;

    runs_stop_late_locked(stage, now);
    for (const struct run *run = stage->active.first; run && !waited; run = run->next)
        waited = run->why != RUN_BACKGROUND;
    if (waited && now + LOOK_MS * NS_PER_MS < next) /* runs_flush() */
        next = now + LOOK_MS * NS_PER_MS;
    if (gone) {
        lock_drop(&stage->lock);
        runs_let_go(gone);
        lock_take(&stage->lock);
    }
    return next;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void *stage_main(void *arg)
{
    struct stage *stage = arg;

    lock_take(&stage->lock);
    while (!stage->ending && !stage->resting) {
        struct diag reason = DIAG_INIT;
        struct wait *over = NULL;
        int64_t now = stage_now(stage), next;

        stage->kicked = false;
        next = runs_wake_locked(stage, now, &over);
        if (over)
            diag_set(&reason, -EREMOTEIO, "%.300s; waited %u s",
                     stage->trouble_error ? stage->trouble.text : "the remote sends nothing",
                     stage->options.retry_limit_s);
        lock_drop(&stage->lock);
        waits_tell(stage, over, -EREMOTEIO, &reason);
        runs_flush(stage);
        next = earlier(next, look_at_others(stage, now));
        stage_in_background(stage, now);
        runs_start(stage);
        lock_take(&stage->lock);
        next = earlier(next, next_look_locked(stage, now));
        if (!stage->kicked && !stage->ending && !stage->resting)
            clock_wait(stage->options.clock, &stage->lock, &stage->wake, next);
    }
    lock_drop(&stage->lock);
    return NULL;
}
