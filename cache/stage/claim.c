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

    if (!record)
        return false;
    if (buf && file_block_is_good(run->file, block, record, buf))
        return true;
    staged_publish(&run->file->staged, block, 1, &none);
    return false;
}

/* Count the first claimed blocks that have come, and those behind them that have not. */
static void count_come(const struct run *run, uint8_t *buf, uint64_t *ret_come, uint64_t *ret_keep)
{
    uint64_t record[64], come = 0, keep = 0;

    for (uint64_t b = 0; b < run->n; b++) {
        if (b % ARRAY_LEN(record) == 0)
            staged_records(&run->file->staged, run->first + b,
                           (size_t)min_u64(ARRAY_LEN(record), run->n - b), record);
        if (!has_come(run, run->first + b, record[b % ARRAY_LEN(record)], buf))
            keep++;
        else if (keep)
            break;
        else
            come++;
    }
    *ret_come = come;
    *ret_keep = keep;
}

bool run_pass_what_came(struct run *run)
{
    struct file *file = run->file;
    AUTO_FREE uint8_t *buf = NULL;
    uint64_t first = run->first, n = run->n, come, keep;

    if (run->steals || run->begun > 1 || atomic_load(&file->drops) == UINT64_MAX)
        return true;
    buf = malloc(file->block_bytes);
    count_come(run, buf, &come, &keep);
    if (keep == n)
        return true;
    lock_take(&file->stage->lock);
    for (uint64_t b = first; b < first + n; b++)
        if (b < first + come || b >= first + come + keep)
            file_set_locked(file, b, BLOCK_UNKNOWN);
    staged_unclaim(&file->staged, first, come);
    staged_unclaim(&file->staged, first + come + keep, n - come - keep);
    run_set_blocks_locked(run, first + come, keep);
    run->claimed = keep;
    lock_drop(&file->stage->lock);
    look_at_blocks(file, first, first + n); /* this wakes readers that wait for them */
    lock_take(&file->stage->lock);
    needs_again_locked(file, first, first + n);
    lock_drop(&file->stage->lock);
    return keep > 0;
}

/* Asked with the claims held: the other process publishes what it has made before it drops a block,
 * so a block that is missing now was not dropped for that reason. */
bool run_is_done_elsewhere(const struct run *run)
{
    const struct stage *stage = run->file->stage;

    return stage->options.is_done && stage->options.is_done(&run->file->blob, stage->cache) &&
           !run_is_wanted(run);
}
