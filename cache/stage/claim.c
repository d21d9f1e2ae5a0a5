/* The claims of a run that is about to start: no two processes fetch a block at the same time. A
 * block that another process has claimed is left to that process; one that it has fetched since is
 * not fetched again. */
#include <stdlib.h>

#include "base/checked.h"
#include "cache/stage/parts.h"

/* Remove the blocks behind the first n from a run that is being started: this process need not
 * fetch them. */
static void trim_locked(struct run *run, uint64_t n, enum block_state state)
{
    struct file *file = run->file;

    lock_assert_held(&file->stage->lock);
    for (uint64_t b = run->first + n; b < run->first + run->n; b++)
        if (file_state(file, b) == BLOCK_COMING)
            file_set_locked(file, b, state);
    run_set_blocks_locked(run, run->first, n);
}

/* Claim the blocks of the run, up to the first that another process has claimed. False: no block is
 * left. */
bool run_claim(struct run *run)
{
    struct file *file = run->file;
    uint64_t n;

    if (run->claimed || run->steals)
        return true;
    n = staged_claim(&file->staged, run->first, run->n);
    lock_take(&file->stage->lock);
    run->claimed = n;
    if (n < run->n) {
        if (!file->elsewhere) { /* else the others are watched already */
            file->elsewhere_since = stage_now(file->stage);
            file->steals = false;
        }
        trim_locked(run, n, BLOCK_ELSEWHERE);
        if (!file->in_elsewhere) {
            file->in_elsewhere = true;
            TAILQ_INSERT_HEAD(&file->stage->elsewhere, file, elsewhere_link);
        }
        stage_kick_locked(file->stage); /* the thread watches for these blocks */
    }
    lock_drop(&file->stage->lock);
    return n > 0;
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
    staged_publish(&run->file->staged, block, 1, &none);
    return false;
}

bool run_finds_some_came(const struct run *run)
{
    uint64_t record[LOOK_AT_ONCE], first = run->first, end = first + run->n;
    AUTO_FREE uint8_t *buf = NULL;
    const struct file *file = run->file;
    bool any = false;

    if (run->steals || run->begun > 1 || atomic_load(&file->drops) == UINT64_MAX)
        return false;
    buf = malloc(file->block_bytes);
    for (uint64_t b = first; b < end; b++) {
        if ((b - first) % LOOK_AT_ONCE == 0)
            staged_records(&file->staged, b, (size_t)min_u64(LOOK_AT_ONCE, end - b), record);
        any = has_come(run, b, record[(b - first) % LOOK_AT_ONCE], buf) || any;
    }
    return any;
}

/* Asked with the claims held: the other process publishes what it has made before it drops a block,
 * so a block that is missing now was not dropped for that reason. */
bool run_is_done_elsewhere(const struct run *run)
{
    const struct stage *stage = run->file->stage;

    return stage->options.is_done && stage->options.is_done(&run->file->blob, stage->cache) &&
           !run_is_wanted(run);
}
