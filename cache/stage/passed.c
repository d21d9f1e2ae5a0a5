/* keep=once: blocks are dropped soon after their last need.
 *
 * When readers have moved, a walk over all blocks on disk asks the forecast when each of them
 * is needed last, and drops those whose last need is over. The forecast is asked for a block when
 * the remembered answer has come: mostly once when the block has come, and once when it is to be
 * dropped.
 *
 * A block that was dropped so has BLOCK_PASSED. Neither the background nor look-ahead fetches it
 * again, only a reader, or a need that the forecast gives later. If a reader without a plan fetches
 * it, it stays until the space is needed: none could tell when that reader has read it.
 *
 * All of it runs in the stage's thread, and is cut into pieces, because readers wait for that
 * thread. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache/stage/blocks.h"
#include "cache/stage/needs.h"
#include "cache/stage/policy.h"

#define WALK_NS 100 /* for each block, from one walk to the next: a walk takes some 2 ns */
#define ASKS    64  /* answers of the forecast in a piece */
#define RANGES  64  /* dropped together */

/* keep=once: a walk over all cached blocks, which drops those after their last need. Belongs
 * to the stage's thread. */
struct passing {
    uint64_t changes;      /* of the forecast when the last walk began */
    uint64_t now, version; /* of the forecast at that time */
    int64_t next_walk;     /* monotonic_ns(); none begins before */
    struct file *file;     /* where the walk goes on; NULL: none is under way */
    uint64_t block;
};

int passed_init(struct stage *stage)
{
    stage->passing = calloc(1, sizeof(*stage->passing));
    return stage->passing ? 0 : -ENOMEM;
}

static const struct stage_needs *needs_once(struct stage *stage)
{
    return stage->options.keep == STAGE_ONCE ? atomic_load(&stage->forecast) : NULL;
}

static uint64_t ask_last(const struct stage_needs *needs, struct file *file, uint64_t block)
{
    file->last[block] = needs->last(needs->ctx, &file->blob, block * file->block_bytes,
                                    file_block_len(file, block));
    return file->last[block];
}

static void set_passed(struct file *file, uint64_t block, bool passed)
{
    LOCK_SCOPE(&file->stage->lock);

    file_flag_locked(file, block, BLOCK_PASSED, passed);
}

static bool is_waited_for(struct file *file, uint64_t block)
{
    LOCK_SCOPE(&file->stage->lock);

    return needs_wait_locked(file, block, block + 1);
}

/* Is a block's last need over, and was it not when the block was dropped before? *asked counts the
 * questions. */
static bool is_over(struct stage *stage, const struct stage_needs *needs, struct file *file,
                    uint64_t block, unsigned *asked)
{
    if (!file_is_on_disk(file, block) || file->last[block] > stage->passing->now)
        return false;
    (*asked)++;
    if (ask_last(needs, file, block) == 0)
        return !file_has_passed(file, block) && !is_waited_for(file, block);
    if (file->last[block] != STAGE_NEVER && file_has_passed(file, block))
        set_passed(file, block, false); /* needed again */
    return false;
}

/* Go on with the walk in one file. False: the piece is done before the file is. */
static bool walk_file(struct stage *stage, const struct stage_needs *needs, struct file *file,
                      unsigned *asked)
{
    struct passing *p = stage->passing;
    struct staged_range range[RANGES];
    size_t n = 0;
    int r;

    for (; p->block < file->blocks && *asked < ASKS && n < RANGES; p->block++) {
        if (!is_over(stage, needs, file, p->block, asked))
            continue;
        set_passed(file, p->block, true);
        n = ranges_of_blocks_add(range, n, p->block);
    }
    r = n ? file_take(file, NULL) : 0;
    if (n && r == 0) {
        r = file_drop_ranges(file, range, n);
        file_put(file);
    }
    for (size_t i = 0; r < 0 && r != -EOPNOTSUPP && i < n; i++) /* the next walk tries again */
        for (uint64_t b = range[i].first; b < range[i].first + range[i].n; b++)
            set_passed(file, b, false);
    return p->block == file->blocks;
}

/* Begin a walk if readers have moved since the last one began. Otherwise returns when to look
 * again. */
static int64_t begin_walk(struct stage *stage, const struct stage_needs *needs, int64_t now)
{
    struct passing *p = stage->passing;
    uint64_t changes = stage->changes, version;

    if (changes == p->changes)
        return INT64_MAX;
    if (now < p->next_walk)
        return p->next_walk;
    p->changes = changes;
    p->next_walk = now;
    p->now = needs->now(needs->ctx, &version);
    for (struct file *file = stage->files; file && version != p->version; file = file->next)
        memset(file->last, 0, file->blocks * sizeof(*file->last));
    p->version = version;
    p->file = stage->files;
    p->block = 0;
    return now;
}

int64_t passed_drop(struct stage *stage, int64_t now)
{
    const struct stage_needs *needs = needs_once(stage);
    struct passing *p = stage->passing;
    unsigned asked = 0;

    if (!needs)
        return INT64_MAX;
    if (!p->file) {
        int64_t next = begin_walk(stage, needs, now);

        if (!p->file)
            return next;
    }
    while (p->file && !atomic_load(&stage->ending)) {
        if (!walk_file(stage, needs, p->file, &asked))
            return now;
        p->next_walk += (int64_t)p->file->blocks * WALK_NS;
        p->file = atomic_load(&p->file->next);
        p->block = 0;
    }
    return now; /* perhaps readers have moved meanwhile */
}

void passed_revive(struct file *file, uint64_t first, uint64_t end)
{
    const struct stage_needs *needs = needs_once(file->stage);

    for (uint64_t b = first; needs && b < end; b++) {
        if (!file_has_passed(file, b))
            continue;
        ask_last(needs, file, b);
        if (file->last[b] && file->last[b] != STAGE_NEVER)
            set_passed(file, b, false);
    }
}
