/* Fetches ahead of a reader in sequence: a window that doubles while the sequence goes on. */
#include "base/checked.h"
#include "cache/stage/parts.h"

#define AHEAD_FIRST (UINT64_C(256) << 10)
#define AHEAD_LEAST (UINT64_C(1) << 20) /* bytes */
#define AHEAD_MOST  (UINT64_C(32) << 20)
#define SURE        2                   /* reads in sequence before a window opens */
#define SLACK       (UINT64_C(4) << 20) /* how far reads in sequence may be out of order */

/* Does the read go on where the previous one ended? It may be one read further. Once reads are
 * known to be in sequence, they may be more out of order. */
static bool is_in_sequence(const struct file *file, uint64_t off, uint64_t end)
{
    uint64_t gap = file->ahead_bytes ? SLACK : max_u64(end - off, file->block_bytes);

    return file->last_end && off <= file->last_end + gap && end + gap >= file->last_end;
}

void ahead_locked(struct file *file, uint64_t off, uint64_t len)
{
    uint64_t end = off + len, size = file->blob.size, from, to;

    lock_assert_held(&file->stage->lock);
    if (file->stage->options.no_ahead)
        return;
    if (!is_in_sequence(file, off, end)) {
        file->ahead_bytes = 0; /* the reader has moved */
        file->ahead_end = 0;
        file->last_end = end;
        file->in_sequence = 0;
        need_unqueue_locked(&file->ahead);
        atomic_store_explicit(&file->ahead_at, UINT64_MAX, memory_order_relaxed);
        return;
    }
    if (end <= file->last_end)
        return; /* a read asked for it before */
    file->last_end = end;
    if (++file->in_sequence < SURE)
        return; /* two neighbours may be chance */
    if (off + AHEAD_LEAST <= file->ahead_end && file->last_end <= atomic_load(&file->ahead_at))
        return;
    file->ahead_bytes = min_u64(max_u64(2 * file->ahead_bytes, AHEAD_FIRST), AHEAD_MOST);
    from = max_u64(file->last_end, file->ahead_end);
    to = min_u64(file->last_end + file->ahead_bytes, size);
    if (from < to) {
        file->ahead.end = ceil_div(to, file->block_bytes);
        file->ahead.since = stage_now(file->stage);
        need_queue_locked(&file->ahead, from / file->block_bytes);
        file->ahead_end = to;
    }
    atomic_store_explicit(&file->ahead_at,
                          to < size ? file->ahead_end - file->ahead_bytes / 2 : UINT64_MAX,
                          memory_order_relaxed);
}
