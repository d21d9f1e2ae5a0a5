/* What the background fetches: one run at a time, when a connection is free and no reader needs it.
 *
 * There are two producers of its needs. The forecast of needs comes first: it knows what readers
 * need next. When it gives nothing more, the stage goes through the files in their order, turn
 * after turn, until a whole turn finds nothing missing. Both give ranges of blocks; the same code
 * makes runs of them (cache/stage/run_blocks.c).
 *
 * A need stays first in the buffer until none of its blocks is missing. So what was refused for
 * want of space is tried again, and only a jump forgets a need. With keep=once, a block that its
 * readers have passed after its need was given is not missing any more (cache/stage/passed.c).
 *
 * While every block is on disk, the stage does not ask the forecast of needs: walking over what it
 * gives, for all readers again after each jump of one, would be in vain. */
#include <errno.h>

#include "base/checked.h"
#include "cache/stage/parts.h"

#define HOLD_MS      20   /* between two looks for space, if no change is reported */
#define AT_A_TIME    4096 /* needs passed over before other work has its turn */
#define TURN_MS      100  /* after a turn in which blocks were still coming: when the next begins */
#define MANY_TURN_MS 2000
#define MANY_FILES   1000
#define NS_PER_MS    INT64_C(1000000)

/* What became of a need: a run was started; none of its blocks is missing; or there is no place or
 * no space for it now. */
enum step { STEP_STARTED, STEP_NONE, STEP_HELD };

/* ---- needs of the forecast ---- */

void stage_set_needs(struct stage *stage, const struct stage_needs *needs)
{
    atomic_store(&stage->forecast.needs, needs);
}

/* Can a need make a difference? With keep=once it can even where all blocks are here. */
static bool is_of_use_locked(const struct stage *stage)
{
    lock_assert_held(&stage->lock);
    return !stage->turn.all_here || stage->options.keep == STAGE_ONCE;
}

void stage_needs_changed(struct stage *stage, bool jumped)
{
    struct forecast *f = &stage->forecast;

    if (!atomic_load(&f->needs))
        return;
    LOCK_SCOPE(&stage->lock);

    f->changes++;
    f->jumps += jumped;
    f->dry = false;
    f->hold_until = 0;
    if (stage->begun && is_of_use_locked(stage))
        stage_kick_locked(stage);
}

bool forecast_may_locked(const struct stage *stage, int64_t now)
{
    const struct forecast *f = &stage->forecast;

    lock_assert_held(&stage->lock);
    if (!atomic_load(&f->needs) || now < f->hold_until || !is_of_use_locked(stage))
        return false;
    if (stage->options.keep == STAGE_PIN && stage->full_error && now < stage->full_until)
        return false;
    return !f->dry || (f->at < f->n && f->jumps_seen == f->jumps);
}

static bool is_staged_here(const struct stage *stage, const struct stage_need *need)
{
    return need->blob->ops == &stage_blob_ops && ((const struct file *)need->blob)->stage == stage;
}

/* The next need; NULL: none is known now. */
static const struct stage_need *next_need(struct stage *stage)
{
    struct forecast *f = &stage->forecast;
    const struct stage_needs *needs = atomic_load(&f->needs);
    uint64_t jumps;

    lock_take(&stage->lock);
    f->changes_seen = f->changes;
    jumps = f->jumps;
    lock_drop(&stage->lock);
    if (f->jumps_seen != jumps)
        f->at = f->n = 0;
    f->jumps_seen = jumps;
    if (f->at < f->n)
        return &f->need[f->at];
    f->at = 0;
    f->n = needs->next(needs->ctx, f->need, FORECAST_NEEDS);
    if (f->n)
        return &f->need[0];
    LOCK_SCOPE(&stage->lock);

    f->dry = f->changes == f->changes_seen;
    return NULL;
}

/* ---- one run ---- */

/* No space for the next need: wait for a reported change, or for a while. */
static enum step hold(struct stage *stage, int64_t now)
{
    LOCK_SCOPE(&stage->lock);

    if (stage->forecast.changes == stage->forecast.changes_seen)
        stage->forecast.hold_until = now + HOLD_MS * NS_PER_MS;
    return STEP_HELD;
}

/* Space for a run that displaces others is found here: the search takes a while, and the
 * transport's threads have no time for it. Other runs take theirs when they begin. */
static enum step start_run(struct stage *stage, struct file *file, struct blocks run,
                           const struct stage_need *need, int64_t now)
{
    uint64_t off = run.first * file->block_bytes,
             bytes = min_u64(run.end * file->block_bytes, file->blob.size) - off, taken = 0;
    int r;

    if (need && stage->options.keep != STAGE_PIN) {
        if (file_wants_parts(file))
            return hold(stage, now);
        taken = bytes + RUN_OVERHEAD;
        r = keep_take_ahead(stage, need, taken);
        if (r < 0)
            return hold(stage, now);
        if (r == KEEP_IN_MEMORY)
            taken = 0;
    }
    r = runs_start_background(file, run.first, run.end - run.first, need ? need->when : STAGE_NEVER,
                              taken);
    if (r != 1 && taken)
        quota_give_back(stage->quota, taken);
    if (r != 1)
        return r == 0 ? STEP_NONE : STEP_HELD;
    LOCK_SCOPE(&stage->lock);

    spend_locked(stage, now, bytes);
    return STEP_STARTED;
}

/* May blocks of the file be fetched now? *ret_missing: they are missing, and must wait. */
static bool can_be_fetched(struct file *file, int64_t now, bool *ret_missing)
{
    if (atomic_load(&file->done) || atomic_load(&file->failed) < 0 || !file->blocks)
        return false;
    LOCK_SCOPE(&file->stage->lock);

    if (file->rest_until <= now && !run_must_wait_locked(file))
        return true;
    *ret_missing = true;
    return false;
}

static bool may_be_missing(const struct file *file, struct blocks blocks)
{
    while (blocks.first < blocks.end && !file_may_fetch(file, blocks.first))
        blocks.first++;
    return blocks.first < blocks.end;
}

/* Start a run for the first missing ones of the blocks; *blocks becomes the rest. The file has been
 * taken. *ret_missing: some are missing, or coming. */
static enum step fetch_some(struct stage *stage, struct file *file, struct blocks *blocks,
                            const struct stage_need *need, int64_t now, bool *ret_missing)
{
    uint64_t at;

    while ((at = find_missing(file, blocks->first, blocks->end, ret_missing)) < blocks->end) {
        enum step step = STEP_NONE;
        bool no_space;
        struct blocks run;

        *ret_missing = true;
        run = run_blocks_around(stage, file, at, *blocks, need, now, &no_space);
        if (run.first < run.end)
            step = no_space ? hold(stage, now) : start_run(stage, file, run, need, now);
        if (step == STEP_STARTED)
            blocks->first = max_u64(run.end, at + 1);
        if (step != STEP_NONE)
            return step;
        blocks->first = at + 1;
    }
    return STEP_NONE;
}

/* ---- the two producers ---- */

static enum step try_need(struct stage *stage, const struct stage_need *need, int64_t now)
{
    struct file *file = (struct file *)(uintptr_t)need->blob;
    enum step step;
    struct blocks blocks;
    bool missing = false;

    if (!is_staged_here(stage, need) || !can_be_fetched(file, now, &missing))
        return STEP_NONE;
    blocks = run_blocks_of(need);
    if (!may_be_missing(file, blocks) || file_take(file, NULL) < 0)
        return STEP_NONE;
    passed_revive(file, blocks.first, blocks.end);
    step = fetch_some(stage, file, &blocks, need, now, &missing);
    file_put(file);
    return step;
}

static enum step next_of_forecast(struct stage *stage, int64_t now)
{
    const struct stage_need *need;

    for (unsigned passed = 0; (need = next_need(stage)); passed++) {
        enum step step = try_need(stage, need, now);

        if (step != STEP_NONE)
            return step;
        stage->forecast.at++;
        if (atomic_load_explicit(&stage->ending, memory_order_relaxed))
            return STEP_HELD;
        if (passed >= AT_A_TIME) {
            LOCK_SCOPE(&stage->lock);

            stage->kicked = true; /* it goes on here */
            return STEP_HELD;
        }
    }
    return STEP_NONE;
}

static enum step try_file(struct stage *stage, struct file *file, uint64_t *from, int64_t now)
{
    struct turn *turn = &stage->turn;
    struct blocks blocks = {*from, file->blocks};
    enum step step;

    if (!can_be_fetched(file, now, &turn->saw_missing))
        return STEP_NONE;
    file_try_disk(file);
    if (file_take(file, NULL) < 0) { /* perhaps it works later; see progress_locked() */
        turn->saw_missing = true;
        return STEP_NONE;
    }
    step = fetch_some(stage, file, &blocks, NULL, now, &turn->saw_missing);
    *from = blocks.first;
    file_put(file);
    return step;
}

/* STEP_NONE: nothing is missing in the rest of this turn. */
static enum step next_of_turn(struct stage *stage, int64_t now)
{
    struct turn *turn = &stage->turn;

    if (!turn->file) {
        LOCK_SCOPE(&stage->lock);

        turn->added = false;
        turn->missed_at = turn->missed;
        turn->file = stage->files;
        turn->block = 0;
    }
    while (turn->file) {
        enum step step = try_file(stage, turn->file, &turn->block, now);

        if (step != STEP_NONE)
            return step;
        if (atomic_load_explicit(&stage->ending, memory_order_relaxed))
            return STEP_HELD;
        turn->file = atomic_load(&turn->file->next);
        turn->block = 0;
    }
    return STEP_NONE;
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
    struct turn *turn = &stage->turn;
    bool all = !turn->saw_missing;

    if (all)
        verify_staged(stage);
    turn->saw_missing = false;
    LOCK_SCOPE(&stage->lock);

    all = all && !turn->added;
    turn->all_staged = all;
    turn->all_here = all && turn->missed == turn->missed_at;
    if (all)
        runs_free_buffers_locked(stage);
    turn->look_until =
        all ? INT64_MAX : now + (stage->n_files < MANY_FILES ? TURN_MS : MANY_TURN_MS) * NS_PER_MS;
    pthread_cond_broadcast(&stage->gone);
}

/* ---- when ---- */

static unsigned count_active_locked(const struct stage *stage, enum run_why why)
{
    const struct run *run;
    unsigned n = 0;

    lock_assert_held(&stage->lock);
    TAILQ_FOREACH (run, &stage->active, link)
        n += run->why == (int)why;
    return n;
}

/* Look whether other jobs use the processors, if it is time for that. */
static void look_at_processors(struct stage *stage, int64_t now)
{
    size_t under_way;

    if (!stage->options.idle_ns)
        return;
    lock_take(&stage->lock);
    under_way = count_active_locked(stage, RUN_BACKGROUND);
    lock_drop(&stage->lock);
    if (yield_looks(&stage->yield, now, under_way) &&
        yield_look(&stage->yield, now, stage->options.idle_ns()))
        atomic_fetch_add_explicit(&stage->counters.rests, 1, memory_order_relaxed);
}

/* May the background start one more run? While a reader waits it has one at a time. */
static bool may_stage_locked(struct stage *stage, int64_t now)
{
    unsigned under_way = count_active_locked(stage, RUN_BACKGROUND);

    lock_assert_held(&stage->lock);
    if (under_way &&
        (!TAILQ_EMPTY(&stage->needs[RUN_DEMAND]) || count_active_locked(stage, RUN_DEMAND)))
        return false;
    return stage->begun && stage->options.background && !stage->ending &&
           TAILQ_EMPTY(&stage->needs[RUN_AHEAD]) && !runs_sleep_locked(stage) &&
           runs_have_place_locked(stage) && now >= stage->budget_ns &&
           yield_may(&stage->yield, under_way);
}

/* May the background go on with its turn through the files? Blocks that the plan does not need must
 * not displace those it needs. */
static bool may_turn_locked(const struct stage *stage, int64_t now)
{
    lock_assert_held(&stage->lock);
    return (!stage->full_error || now >= stage->full_until) && now >= stage->turn.look_until &&
           (!stage->keeping.is_full || stage->keeping.holds_all);
}

/* Start the next run. False: there is none now. */
static bool start_next(struct stage *stage, int64_t now)
{
    enum step step = STEP_NONE;
    bool may, planned, turn;

    keep_holds_all(stage, now);
    lock_take(&stage->lock);
    may = may_stage_locked(stage, now);
    planned = may && forecast_may_locked(stage, now);
    turn = may && may_turn_locked(stage, now);
    lock_drop(&stage->lock);
    if (planned)
        step = next_of_forecast(stage, now);
    if (step == STEP_NONE && turn) {
        step = next_of_turn(stage, now);
        if (step == STEP_NONE)
            end_turn(stage, now);
    }
    return step == STEP_STARTED;
}

void stage_in_background(struct stage *stage, int64_t now)
{
    look_at_processors(stage, now);
    while (start_next(stage, now))
        yield_begun(&stage->yield);
    keep_prepare(stage);
}

int64_t background_next_look_locked(const struct stage *stage, int64_t now)
{
    const int64_t until[] = {stage->full_error ? stage->full_until : 0, stage->turn.look_until,
                             stage->budget_ns, stage->forecast.hold_until};
    int64_t next = yield_next(&stage->yield, count_active_locked(stage, RUN_BACKGROUND));

    lock_assert_held(&stage->lock);
    if (!stage->begun || !stage->options.background)
        return INT64_MAX;
    for (size_t i = 0; i < ARRAY_LEN(until); i++)
        if (until[i] > now && until[i] < next)
            next = until[i];
    return next;
}
