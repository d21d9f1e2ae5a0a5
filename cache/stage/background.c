/* What the background fetches: one run at a time, when a connection is free and no reader needs it.
 *
 * There are two producers of its needs. The forecast of needs comes first: it knows what readers
 * need next. When it gives nothing more, the stage goes through the files in their order, turn
 * after turn, until a whole turn finds nothing missing. Both give ranges of blocks; the same code
 * makes runs of them.
 *
 * A need stays first in the buffer until none of its blocks is missing. So what was refused for
 * want of space is tried again, and only a jump forgets a need. With keep=once, a block that its
 * readers have passed after its need was given is not missing any more (cache/stage/passed.c).
 *
 * While every block is on disk, the stage does not ask the forecast of needs: walking over what it
 * gives, for all readers again after each jump of one, would be in vain.
 *
 * Needs of the forecast are often single blocks all over a file. Needs that touch become one run,
 * if what is needed between them would come in the latency that this saves. A transfer costs its
 * latency, so a run grows over missing neighbours until the latency is at most half of its time, if
 * the cache can hold all of the source anyway. On a local network it hardly grows. */
#include <errno.h>
#include <stdlib.h>

#include "base/yield.h"
#include "cache/stage/blocks.h"
#include "cache/stage/policy.h"
#include "cache/stage/runs.h"

#define FORECAST_NEEDS 256
#define WINDOW         2048 /* blocks around a missing one to look at */
#define WORTH_MOST     (UINT64_C(4) << 20)
#define HOLD_MS        20   /* between two looks for space, if no change is reported */
#define AT_A_TIME      4096 /* needs passed over before other work has its turn */
#define TURN_MS        100 /* after a turn in which blocks were still coming: when the next begins */
#define MANY_TURN_MS   2000
#define MANY_FILES     1000

/* What became of a need: a run was started; none of its blocks is missing; or there is no place or
 * no space for it now. */
enum step { STEP_STARTED, STEP_NONE, STEP_HELD };

struct blocks {
    uint64_t first, end;
};

/* Guarded by stage->lock, or of the stage's thread alone. */
struct background {
    /* The needs that the forecast has returned. Guarded by stage->lock: */
    bool dry;           /* next() has returned nothing since the last change */
    int64_t hold_until; /* no run for a need before then: no space for it */
    /* For the stage's thread: */
    uint64_t changes_seen, jumps_seen;
    size_t at, n; /* need[at .. n) are still to do */
    struct stage_need need[FORECAST_NEEDS];
    struct yield yield;

    /* The turns through all files. Guarded by stage->lock: */
    int64_t look_until; /* nothing is missing, or others fetch it: when the next turn begins */
    bool all_staged;    /* nothing was missing in the last turn, */
    bool all_here;      /* and nothing was found missing, or forgotten, since it began, */
    uint64_t missed_at; /* when so many blocks had been */
    bool added;         /* files, since it began */
    /* For the stage's thread: */
    struct file *file; /* where it goes on; NULL: a new turn begins */
    uint64_t block;
    bool saw_missing;
};

int background_init(struct stage *stage)
{
    stage->background = calloc(1, sizeof(*stage->background));
    if (!stage->background)
        return -ENOMEM;
    yield_init(&stage->background->yield);
    return 0;
}

void background_add_locked(struct stage *stage)
{
    struct background *b = stage->background;

    lock_assert_held(&stage->lock);
    b->look_until = 0;
    b->all_staged = b->all_here = false;
    b->added = true;
}

bool background_is_done_locked(const struct stage *stage)
{
    lock_assert_held(&stage->lock);
    return stage->background->all_staged;
}

/* ---- needs of the forecast ---- */

void stage_set_needs(struct stage *stage, const struct stage_needs *needs)
{
    atomic_store(&stage->forecast, needs);
}

/* Can a need make a difference? With keep=once it can even where all blocks are cached. */
static bool is_of_use_locked(const struct stage *stage)
{
    lock_assert_held(&stage->lock);
    return !stage->background->all_here || stage->missed != stage->background->missed_at ||
           stage->options.keep == STAGE_ONCE;
}

void stage_needs_changed(struct stage *stage, bool jumped)
{
    struct background *f = stage->background;

    if (!atomic_load(&stage->forecast))
        return;
    LOCK_SCOPE(&stage->lock);

    stage->changes++;
    stage->jumps += jumped;
    f->dry = false;
    f->hold_until = 0;
    if (stage->begun && is_of_use_locked(stage))
        stage_kick_locked(stage);
}

static bool forecast_may_locked(const struct stage *stage, int64_t now)
{
    const struct background *f = stage->background;

    lock_assert_held(&stage->lock);
    if (!atomic_load(&stage->forecast) || now < f->hold_until || !is_of_use_locked(stage))
        return false;
    if (stage->options.keep == STAGE_PIN && stage->full_error && now < stage->full_until)
        return false;
    return !f->dry || (f->at < f->n && f->jumps_seen == stage->jumps);
}

static bool is_staged_here(const struct stage *stage, const struct stage_need *need)
{
    return stage_has(need->blob) && ((const struct file *)need->blob)->stage == stage;
}

/* The next need; NULL: none is known now. */
static const struct stage_need *next_need(struct stage *stage)
{
    struct background *f = stage->background;
    const struct stage_needs *needs = atomic_load(&stage->forecast);
    uint64_t jumps;

    lock_take(&stage->lock);
    f->changes_seen = stage->changes;
    jumps = stage->jumps;
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

    f->dry = stage->changes == f->changes_seen;
    return NULL;
}

/* ---- the blocks of a run ---- */

/* The blocks of a need; an empty range if none can be fetched. */
static struct blocks run_blocks_of(const struct stage_need *need)
{
    const struct file *file = (const struct file *)need->blob;
    uint64_t size = file->blob.size, off = min_u64(need->off, size),
             len = min_u64(need->len, size - off);

    return (struct blocks){off / file->block_bytes, ceil_div(off + len, file->block_bytes)};
}

/* Extend the blocks by the following needs that touch them, up to `most` blocks. What is needed
 * between them waits for them, so it may be `between` bytes at most. */
static struct blocks with_neighbours(const struct background *f, struct blocks blocks,
                                     uint64_t most, uint64_t between)
{
    for (size_t i = f->at + 1; i < f->n && blocks.end - blocks.first < most; i++) {
        const struct stage_need *need = &f->need[i];
        struct blocks other = run_blocks_of(need);

        if (need->blob != f->need[f->at].blob || other.first > blocks.end ||
            other.end < blocks.first) {
            if (need->len > between)
                break;
            between -= need->len;
            continue;
        }
        blocks.first = min_u64(blocks.first, other.first);
        blocks.end = max_u64(blocks.end, other.end);
    }
    return blocks;
}

/* The piece of the file, large enough to be worth a transfer, that contains the blocks: such pieces
 * tile the file. */
static struct blocks with_worth(const struct file *file, struct blocks blocks, uint64_t worth)
{
    uint64_t n = file_tile(file, worth);

    return (struct blocks){blocks.first / n * n,
                           min_u64(ceil_div(blocks.end, n) * n, file->blocks)};
}

/* May a run fetch this block, which is not on disk? Blocks in memory that the forecast needs stay
 * there, but with keep=pin; those may find space on disk now. */
static bool may_come(struct file *file, uint64_t block, bool planned)
{
    return file_is_free(file, block) && !(planned && file->stage->options.keep != STAGE_PIN &&
                                          overflow_has(file->stage->overflow, file, block));
}

/* The missing blocks around the missing block `at`, without a gap. */
static struct blocks missing_around(struct file *file, uint64_t at, struct blocks around,
                                    bool planned)
{
    uint64_t record[2 * WINDOW], from = max_u64(around.first, at - min_u64(at, WINDOW)),
                                 to = min_u64(around.end, at + WINDOW);
    struct blocks found = {at, at};

    staged_records(file_staged(file), from, (size_t)(to - from), record);
    LOCK_SCOPE(&file->stage->lock);

    for (uint64_t b = at; b < to && !record[b - from] && may_come(file, b, planned); b++)
        found.end = b + 1;
    if (found.end == at)
        return found;
    for (uint64_t b = at; b > from && !record[b - 1 - from] && may_come(file, b - 1, planned); b--)
        found.first = b - 1;
    return found;
}

/* At most `most` of the blocks, `at` among them. */
static struct blocks no_more_than(struct blocks blocks, uint64_t at, uint64_t most)
{
    if (blocks.end - blocks.first <= most)
        return blocks;
    if (at + most > blocks.end)
        return (struct blocks){blocks.end - most, blocks.end};
    return (struct blocks){at, at + most};
}

/* The blocks of a run for the missing block `at`, one of `blocks`. need:
 * NULL: no forecast needs it; otherwise the first of the forecast's buffer. Empty: the block is in
 * memory, passed, or coming meanwhile. *ret_no_space: look-ahead may displace nothing more now. */
static struct blocks run_blocks_around(struct stage *stage, struct file *file, uint64_t at,
                                       struct blocks blocks, const struct stage_need *need,
                                       bool *ret_no_space)
{
    bool grows = need && keep_holds_all(stage);
    uint64_t left = need ? keep_ahead_left(stage) : UINT64_MAX, bytes, latency, worth, most;

    lock_take(&stage->lock);
    bytes = min_u64(run_bytes_locked(stage, yield_is_taken(&stage->background->yield)), left);
    latency = runs_worth_locked(stage);
    worth = grows ? min_u64(min_u64(latency, WORTH_MOST), bytes) : 0;
    lock_drop(&stage->lock);
    most = max_u64(bytes / file->block_bytes, 1);
    *ret_no_space = !left;
    if (need)
        blocks = with_neighbours(stage->background, blocks, most, latency);
    if ((blocks.end - blocks.first) * file->block_bytes < worth)
        blocks = with_worth(file, blocks, worth);
    return no_more_than(missing_around(file, at, blocks, need), at, most);
}

/* ---- one run ---- */

/* No space for the next need: wait for a reported change, or for a while. */
static enum step hold(struct stage *stage, int64_t now)
{
    LOCK_SCOPE(&stage->lock);

    if (stage->changes == stage->background->changes_seen)
        stage->background->hold_until = now + HOLD_MS * NS_PER_MS;
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
    if (need && stage->options.keep != STAGE_PIN)
        keep_note_ahead(stage, bytes);
    LOCK_SCOPE(&stage->lock);

    speed_spend_locked(stage, now, bytes);
    return STEP_STARTED;
}

/* May blocks of the file be fetched now? *ret_missing: they are missing, and must wait. */
static bool can_be_fetched(struct file *file, int64_t now, bool *ret_missing)
{
    if (atomic_load(&file->done) || atomic_load(&file->failed) < 0 || !file->blocks)
        return false;
    LOCK_SCOPE(&file->stage->lock);

    if (file_may_run_locked(file, now))
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
        run = run_blocks_around(stage, file, at, *blocks, need, &no_space);
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
    file_try_disk(file);
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
        stage->background->at++;
        if (atomic_load(&stage->ending))
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
    struct background *turn = stage->background;
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
    struct background *turn = stage->background;

    if (!turn->file) {
        LOCK_SCOPE(&stage->lock);

        turn->added = false;
        turn->all_here = turn->all_here && turn->missed_at == stage->missed;
        turn->missed_at = stage->missed;
        turn->file = stage->files;
        turn->block = 0;
    }
    while (turn->file) {
        enum step step = try_file(stage, turn->file, &turn->block, now);

        if (step != STEP_NONE)
            return step;
        if (atomic_load(&stage->ending))
            return STEP_HELD;
        turn->file = atomic_load(&turn->file->next);
        turn->block = 0;
    }
    return STEP_NONE;
}

/* Compare complete files with their SHA-256, one at a time. */
static void verify_staged(struct stage *stage)
{
    for (struct file *file = stage->files; file; file = file->next) {
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
    struct background *turn = stage->background;
    bool all = !turn->saw_missing;

    if (all)
        verify_staged(stage);
    turn->saw_missing = false;
    LOCK_SCOPE(&stage->lock);

    all = all && !turn->added;
    turn->all_staged = all;
    turn->all_here = all;
    if (all)
        runs_free_buffers_locked(stage);
    turn->look_until =
        all ? INT64_MAX : now + (stage->n_files < MANY_FILES ? TURN_MS : MANY_TURN_MS) * NS_PER_MS;
    pthread_cond_broadcast(&stage->gone);
}

/* ---- when ---- */

/* Look whether other jobs use the processors, if it is time for that. */
static void look_at_processors(struct stage *stage, int64_t now)
{
    size_t under_way;

    if (!stage->options.idle_ns)
        return;
    lock_take(&stage->lock);
    under_way = runs_active_locked(stage, RUN_BACKGROUND);
    lock_drop(&stage->lock);
    if (yield_looks(&stage->background->yield, now, under_way) &&
        yield_look(&stage->background->yield, now, stage->options.idle_ns()))
        atomic_fetch_add(&stage->counters.rests, 1);
}

/* May the background start one more run? While a reader waits it has one at a time. */
static bool may_stage_locked(struct stage *stage, int64_t now)
{
    unsigned under_way = runs_active_locked(stage, RUN_BACKGROUND);

    lock_assert_held(&stage->lock);
    if (under_way && (needs_any_locked(stage, RUN_DEMAND) || runs_active_locked(stage, RUN_DEMAND)))
        return false;
    return stage->begun && stage->options.background && !stage->ending &&
           !needs_any_locked(stage, RUN_AHEAD) && !runs_sleep_locked(stage) &&
           runs_have_place_locked(stage) && now >= speed_budget_locked(stage) &&
           yield_may(&stage->background->yield, under_way);
}

/* May the background go on with its turn through the files? Blocks that the plan does not need must
 * not displace those it needs. */
static bool may_turn_locked(const struct stage *stage, int64_t now)
{
    lock_assert_held(&stage->lock);
    return (!stage->full_error || now >= stage->full_until) &&
           now >= stage->background->look_until && (!keep_is_full(stage) || keep_holds_all(stage));
}

/* Start the next run. False: there is none now. */
static bool start_next_run(struct stage *stage, int64_t now)
{
    enum step step = STEP_NONE;
    bool may, planned, turn;

    keep_look(stage, now);
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
    while (start_next_run(stage, now))
        yield_begun(&stage->background->yield);
    keep_prepare(stage);
}

int64_t background_next_look_locked(const struct stage *stage, int64_t now)
{
    const int64_t until[] = {stage->full_error ? stage->full_until : 0,
                             stage->background->look_until, speed_budget_locked(stage),
                             stage->background->hold_until};
    int64_t next = yield_next(&stage->background->yield, runs_active_locked(stage, RUN_BACKGROUND));

    lock_assert_held(&stage->lock);
    if (!stage->begun || !stage->options.background)
        return INT64_MAX;
    for (size_t i = 0; i < ARRAY_LEN(until); i++)
        if (until[i] > now && until[i] < next)
            next = until[i];
    return next;
}
