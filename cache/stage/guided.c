/* Fetches what the forecast of needs gives, in its order: the background of a mount that knows what
 * its readers need next.
 *
 * Needs are often single blocks all over a file. Needs that touch become one run. A transfer costs
 * its latency, so a run grows over missing neighbours until the latency is at most half of its
 * time, if the cache can hold all of the source anyway. On a local network it hardly grows.
 *
 * A need stays first in the buffer until none of its blocks is missing. So what was refused for
 * want of space is tried again, and only a jump forgets a need. With keep=once, a block that a
 * reader uses up after its need was given is not missing any more; a block that was used up before
 * is.
 *
 * While every block is on disk, the stage does not ask the forecast of needs: walking over what it
 * gives, for all readers again after each jump of one, would be in vain. */
#include <errno.h>

#include "base/checked.h"
#include "cache/stage/parts.h"

#define HOLD_MS    20   /* between two looks for space, if no change is reported */
#define AT_A_TIME  4096 /* needs passed over before other work has its turn */
#define WINDOW     1024 /* blocks around a need to look at */
#define WORTH_MOST (UINT64_C(4) << 20)
#define NS_PER_MS  INT64_C(1000000)

struct blocks {
    uint64_t first, end;
};

void stage_set_needs(struct stage *stage, const struct stage_needs *needs)
{
    atomic_store(&stage->guided.needs, needs);
}

/* Can a need make a difference? With keep=once it can even where all blocks are here. */
static bool is_of_use_locked(const struct stage *stage)
{
    return !stage->guided.all_here || stage->options.keep == STAGE_ONCE;
}

void stage_needs_changed(struct stage *stage, bool jumped)
{
    struct guided *g = &stage->guided;
    bool is_of_use;

    if (!atomic_load(&g->needs))
        return;
    lock_take(&stage->lock);
    is_of_use = is_of_use_locked(stage);
    g->changes++;
    g->jumps += jumped;
    g->dry = false;
    g->hold_until = 0;
    if (stage->begun && is_of_use)
        stage_kick_locked(stage);
    lock_drop(&stage->lock);
    if (jumped && is_of_use)
        runs_take_back(stage);
}

bool guided_may_locked(const struct stage *stage, int64_t now)
{
    const struct guided *g = &stage->guided;

    if (!atomic_load(&g->needs) || now < g->hold_until || !is_of_use_locked(stage))
        return false;
    if (stage->options.keep != STAGE_PLAN && stage->full_error && now < stage->full_until)
        return false;
    return !g->dry || (g->at < g->n && g->jumps_seen == g->jumps);
}

/* The blocks of a need; an empty range if none can be fetched. */
static struct blocks blocks_of(const struct stage_need *need)
{
    const struct file *file = (const struct file *)need->blob;
    uint64_t size = file->blob.size, off = min_u64(need->off, size),
             len = min_u64(need->len, size - off);

    return (struct blocks){off / file->block_bytes, ceil_div(off + len, file->block_bytes)};
}

static bool is_staged_here(const struct stage *stage, const struct stage_need *need)
{
    return need->blob->ops == &stage_blob_ops && ((const struct file *)need->blob)->stage == stage;
}

/* keep=once: blocks used up before this need are needed once more, except those that its reader
 * uses now. */
static void note_again(struct stage *stage, const struct stage_need *need)
{
    struct file *file = (struct file *)(uintptr_t)need->blob;
    struct blocks blocks;

    if (stage->options.keep != STAGE_ONCE || need->has_begun || !is_staged_here(stage, need))
        return;
    blocks = blocks_of(need);
    LOCK_SCOPE(&stage->lock);

    for (uint64_t b = blocks.first; b < blocks.end; b++)
        if (file_was_used_up(file, b))
            atomic_fetch_or(&file->state[b], BLOCK_AGAIN);
}

/* The next need; NULL: none is known now. */
static const struct stage_need *next_need(struct stage *stage)
{
    struct guided *g = &stage->guided;
    const struct stage_needs *needs = atomic_load(&g->needs);
    uint64_t jumps;

    lock_take(&stage->lock);
    g->changes_seen = g->changes;
    jumps = g->jumps;
    lock_drop(&stage->lock);
    if (g->jumps_seen != jumps)
        g->at = g->n = 0;
    g->jumps_seen = jumps;
    if (g->at < g->n)
        return &g->need[g->at];
    g->at = 0;
    g->n = needs->next(needs->ctx, g->need, GUIDED_NEEDS);
    for (size_t i = 0; i < g->n; i++)
        note_again(stage, &g->need[i]);
    if (g->n)
        return &g->need[0];
    LOCK_SCOPE(&stage->lock);

    g->dry = g->changes == g->changes_seen;
    return NULL;
}

/* ---- one need ---- */

static struct file *file_to_fetch(struct stage *stage, const struct stage_need *need, int64_t now)
{
    struct file *file = (struct file *)(uintptr_t)need->blob;

    if (!is_staged_here(stage, need))
        return NULL;
    if (atomic_load(&file->done) || atomic_load(&file->failed) < 0)
        return NULL;
    LOCK_SCOPE(&stage->lock);

    return file->rest_until <= now ? file : NULL;
}

static bool may_be_missing(const struct file *file, struct blocks blocks)
{
    for (uint64_t b = blocks.first; b < blocks.end; b++) {
        enum block_state state = file_state(file, b);

        if (state == BLOCK_UNKNOWN || state == BLOCK_ABSENT)
            return true;
    }
    return false;
}

/* Extend the blocks by the following needs that touch them, up to `most` blocks. */
static struct blocks with_neighbours(const struct guided *g, struct blocks blocks, uint64_t most)
{
    for (size_t i = g->at + 1; i < g->n && blocks.end - blocks.first < most; i++) {
        struct blocks other = blocks_of(&g->need[i]);

        if (g->need[i].blob != g->need[g->at].blob || other.first > blocks.end ||
            other.end < blocks.first)
            continue;
        blocks.first = min_u64(blocks.first, other.first);
        blocks.end = max_u64(blocks.end, other.end);
    }
    return blocks;
}

/* The piece of the file, large enough to be worth a transfer, that contains the blocks: such pieces
 * tile the file. */
static struct blocks with_worth(const struct file *file, struct blocks blocks, uint64_t worth)
{
    uint64_t n = 1;

    while (2 * n * file->block_bytes <= worth)
        n *= 2;
    return (struct blocks){blocks.first / n * n,
                           min_u64(ceil_div(blocks.end, n) * n, file->blocks)};
}

/* With keep=plan, blocks in memory stay there; otherwise they may find space on disk now. */
static bool is_in_memory(struct file *file, uint64_t block)
{
    return file->stage->options.keep == STAGE_PLAN &&
           overflow_has(&file->stage->overflow, file, block);
}

/* May a run fetch this block, which is not on disk? */
static bool may_come(struct file *file, uint64_t block)
{
    enum block_state state = file_state(file, block);

    return (state == BLOCK_UNKNOWN || state == BLOCK_ABSENT) && !file_has_passed(file, block) &&
           !is_in_memory(file, block);
}

/* The missing blocks around the missing block `at`, without a gap. */
static struct blocks missing_around(struct file *file, uint64_t at, struct blocks around)
{
    uint64_t record[2 * WINDOW], from = max_u64(around.first, at - min_u64(at, WINDOW)),
                                 to = min_u64(around.end, at + WINDOW);
    struct blocks found = {at, at};

    staged_records(&file->staged, from, (size_t)(to - from), record);
    LOCK_SCOPE(&file->stage->lock);

    for (uint64_t b = at; b < to && !record[b - from] && may_come(file, b); b++)
        found.end = b + 1;
    if (found.end == at)
        return found;
    for (uint64_t b = at; b > from && !record[b - 1 - from] && may_come(file, b - 1); b--)
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

/* How many bytes one run may bring, and how many are worth a transfer. */
static void sizes_of_run(struct stage *stage, int64_t now, uint64_t *ret_most, uint64_t *ret_worth)
{
    bool all = keep_holds_all(stage, now);
    uint64_t left = keep_ahead_left(stage);
    LOCK_SCOPE(&stage->lock);

    *ret_most = min_u64(run_bytes_locked(stage), left);
    *ret_worth = all ? min_u64(min_u64(runs_worth_locked(stage), WORTH_MOST), *ret_most) : 0;
}

/* No space for the next need: wait for a reported change, or for a while. */
static enum guided_step hold(struct stage *stage, int64_t now)
{
    LOCK_SCOPE(&stage->lock);

    if (stage->guided.changes == stage->guided.changes_seen)
        stage->guided.hold_until = now + HOLD_MS * NS_PER_MS;
    return GUIDED_HELD;
}

/* Space for a run that displaces others is found here: the search takes a while, and the
 * transport's threads have no time for it. Other runs take theirs when they begin. */
static enum guided_step queue_run(struct stage *stage, struct file *file, struct blocks run,
                                  const struct stage_need *need, int64_t now)
{
    uint64_t off = run.first * file->block_bytes,
             bytes = min_u64(run.end * file->block_bytes, file->blob.size) - off,
             capacity = stage->options.keep == STAGE_PLAN ? bytes + RUN_OVERHEAD : 0;
    bool made;
    int r = capacity ? keep_take_ahead(stage, need, capacity) : 0;

    if (r < 0)
        return hold(stage, now);
    if (r == KEEP_IN_MEMORY)
        capacity = 0;
    lock_take(&stage->lock);
    made = stage->guided.jumps == stage->guided.jumps_seen &&
           runs_make_planned_locked(file, run.first, run.end, need->when, capacity);
    if (made)
        spend_locked(stage, now, bytes);
    lock_drop(&stage->lock);
    if (!made && capacity)
        quota_give_back(stage->quota, capacity);
    return made ? GUIDED_MADE : GUIDED_NONE;
}

/* Queue a run for the missing blocks of the first need in the buffer. GUIDED_NONE: nothing is
 * missing. */
static enum guided_step try_need(struct stage *stage, const struct stage_need *need, int64_t now)
{
    struct file *file = file_to_fetch(stage, need, now);
    enum guided_step step = GUIDED_NONE;
    uint64_t at, end, most, worth;
    struct blocks blocks, run;
    bool others = false;

    if (!file || !file->blocks)
        return GUIDED_NONE;
    blocks = blocks_of(need);
    if (!may_be_missing(file, blocks) || file_take(file, NULL) < 0)
        return GUIDED_NONE;
    while ((at = find_missing(file, blocks.first, blocks.end, UINT64_MAX, true, &end, &others)) <
           blocks.end) {
        sizes_of_run(stage, now, &most, &worth);
        run = with_neighbours(&stage->guided, blocks, max_u64(most / file->block_bytes, 1));
        if ((run.end - run.first) * file->block_bytes < worth)
            run = with_worth(file, run, worth);
        run = missing_around(file, at, run);
        run = no_more_than(run, at, max_u64(most / file->block_bytes, 1));
        if (run.first < run.end) {
            step = most ? queue_run(stage, file, run, need, now) : hold(stage, now);
            break;
        }
        blocks.first = at + 1; /* coming from elsewhere, in memory, or used up meanwhile */
    }
    file_put(file);
    return step;
}

enum guided_step guided_more(struct stage *stage, int64_t now)
{
    const struct stage_need *need;

    for (unsigned passed = 0; (need = next_need(stage)); passed++) {
        enum guided_step step = try_need(stage, need, now);

        if (step != GUIDED_NONE)
            return step;
        stage->guided.at++;
        if (atomic_load_explicit(&stage->ending, memory_order_relaxed))
            return GUIDED_HELD;
        if (passed >= AT_A_TIME) {
            LOCK_SCOPE(&stage->lock);

            stage->kicked = true; /* it goes on here */
            return GUIDED_HELD;
        }
    }
    return GUIDED_NONE;
}
