/* Which blocks a run of the background brings.
 *
 * Needs of the forecast are often single blocks all over a file. Needs that touch become one run,
 * if what is needed between them would come in the latency that this saves. A transfer costs its
 * latency, so a run grows over missing neighbours until the latency is at most half of its time, if
 * the cache can hold all of the source anyway. On a local network it hardly grows. */
#include "base/checked.h"
#include "cache/stage/parts.h"

#define WINDOW     2048 /* blocks around a missing one to look at */
#define WORTH_MOST (UINT64_C(4) << 20)

struct blocks run_blocks_of(const struct stage_need *need)
{
    const struct file *file = (const struct file *)need->blob;
    uint64_t size = file->blob.size, off = min_u64(need->off, size),
             len = min_u64(need->len, size - off);

    return (struct blocks){off / file->block_bytes, ceil_div(off + len, file->block_bytes)};
}

/* Extend the blocks by the following needs that touch them, up to `most` blocks. What is needed
 * between them waits for them, so it may be `between` bytes at most. */
static struct blocks with_neighbours(const struct forecast *f, struct blocks blocks, uint64_t most,
                                     uint64_t between)
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
    uint64_t n = 1;

    while (2 * n * file->block_bytes <= worth)
        n *= 2;
    return (struct blocks){blocks.first / n * n,
                           min_u64(ceil_div(blocks.end, n) * n, file->blocks)};
}

/* May a run fetch this block, which is not on disk? Blocks in memory that the forecast needs stay
 * there, but with keep=pin; those may find space on disk now. */
static bool may_come(struct file *file, uint64_t block, bool planned)
{
    return file_may_fetch(file, block) && !file_is_for_readers(file, block) &&
           !(planned && file->stage->options.keep != STAGE_PIN &&
             overflow_has(&file->stage->overflow, file, block));
}

/* The missing blocks around the missing block `at`, without a gap. */
static struct blocks missing_around(struct file *file, uint64_t at, struct blocks around,
                                    bool planned)
{
    uint64_t record[2 * WINDOW], from = max_u64(around.first, at - min_u64(at, WINDOW)),
                                 to = min_u64(around.end, at + WINDOW);
    struct blocks found = {at, at};

    staged_records(&file->staged, from, (size_t)(to - from), record);
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

struct blocks run_blocks_around(struct stage *stage, struct file *file, uint64_t at,
                                struct blocks blocks, const struct stage_need *need, int64_t now,
                                bool *ret_no_space)
{
    bool grows = need && keep_holds_all(stage, now);
    uint64_t left = need ? keep_ahead_left(stage) : UINT64_MAX, bytes, latency, worth, most;

    lock_take(&stage->lock);
    bytes = min_u64(run_bytes_locked(stage), left);
    latency = runs_worth_locked(stage);
    worth = grows ? min_u64(min_u64(latency, WORTH_MOST), bytes) : 0;
    lock_drop(&stage->lock);
    most = max_u64(bytes / file->block_bytes, 1);
    *ret_no_space = !left;
    if (need)
        blocks = with_neighbours(&stage->forecast, blocks, most, latency);
    if ((blocks.end - blocks.first) * file->block_bytes < worth)
        blocks = with_worth(file, blocks, worth);
    return no_more_than(missing_around(file, at, blocks, need), at, most);
}
