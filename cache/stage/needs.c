/* Needs: which blocks must be fetched for readers, and which readers wait for them.
 *
 * A need is a range of blocks in one of two queues: demands, and what is fetched ahead. Every wait
 * of a reader is a need, and each file has one for what a reader in sequence will want. Producers
 * only queue needs. need_next_locked() gives the blocks that the next run of a need brings, when a
 * connection is free for one: so blocks that wait for a connection have no run, and there is
 * nothing to take back when they are not needed any more.
 *
 * The background has no needs here: it looks for one at a time (cache/stage/background.c).
 *
 * A need leaves its queue when all its blocks are here or have runs. If some of these blocks do not
 * come, needs_again_locked() queues the waits for them anew.
 *
 * The waits of a file are found by their blocks, so the cost of an event depends only on the waits
 * it concerns. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "cache/stage/parts.h"

#define RUN_BYTES (UINT64_C(4) << 20) /* of a run for readers */

/* ---- the queues ---- */

static struct need_queue *queue_of(const struct need *need)
{
    return &need->file->stage->needs[need->why];
}

void need_queue_locked(struct need *need, uint64_t from)
{
    struct need_queue *queue = queue_of(need);

    lock_assert_held(&need->file->stage->lock);
    need->at = need->is_queued ? min_u64(need->at, from) : from;
    if (need->is_queued)
        return;
    need->is_queued = true;
    TAILQ_INSERT_TAIL(queue, need, link);
}

void need_unqueue_locked(struct need *need)
{
    struct need_queue *queue = queue_of(need);

    lock_assert_held(&need->file->stage->lock);
    if (!need->is_queued)
        return;
    need->is_queued = false;
    TAILQ_REMOVE(queue, need, link);
}

void need_skip_locked(struct need *need, uint64_t first, uint64_t end)
{
    lock_assert_held(&need->file->stage->lock);
    if (need->is_queued && need->at >= first && need->at < end)
        need->at = min_u64(end, need->end);
}

void needs_again_locked(struct file *file, uint64_t first, uint64_t end)
{
    lock_assert_held(&file->stage->lock);
    for (struct wait *w = wait_first_locked(file, first, end); w;
         w = wait_next_locked(w, first, end))
        need_queue_locked(&w->need, max_u64(first, w->blocks.first));
}

bool file_is_in_memory(const struct need *need, uint64_t block)
{
    struct file *file = need->file;
    uint64_t start = block * file->block_bytes, end = start + file_block_len(file, block),
             from = max_u64(start, need->from), to = min_u64(end, need->to);

    return from >= to || overflow_covers(&file->stage->overflow, file, block,
                                         (size_t)(from - start), (size_t)(to - from));
}

/* Blocks that memory still has need not come. What a reader in sequence will want does not include
 * what readers have passed. */
static bool is_to_fetch(const struct need *need, uint64_t block)
{
    struct file *file = need->file;

    return file_may_fetch(file, block) && !file_is_in_memory(need, block) &&
           !(need == &file->ahead && file_is_for_readers(file, block));
}

bool need_next_locked(struct need *need, uint64_t *ret_first, uint64_t *ret_n)
{
    struct file *file = need->file;
    uint64_t most = max_u64(RUN_BYTES / file->block_bytes, 1), n = 1;

    lock_assert_held(&file->stage->lock);
    while (need->at < need->end && !is_to_fetch(need, need->at))
        need->at++;
    if (need->at == need->end || run_must_wait_locked(file)) {
        need_unqueue_locked(need);
        return false;
    }
    while (n < most && need->at + n < need->end && is_to_fetch(need, need->at + n))
        n++;
    *ret_first = need->at;
    *ret_n = n;
    return true;
}

/* ---- waits ---- */

struct wait *wait_first_locked(struct file *file, uint64_t first, uint64_t end)
{
    lock_assert_held(&file->stage->lock);
    return wait_of(ranges_first(&file->waits, first, end));
}

struct wait *wait_next_locked(const struct wait *wait, uint64_t first, uint64_t end)
{
    lock_assert_held(&wait->need.file->stage->lock);
    return wait_of(ranges_next(&wait->need.file->waits, &wait->blocks, first, end));
}

void wait_begin_locked(struct wait *wait)
{
    struct stage *stage = wait->need.file->stage;
    int64_t now = stage_now(stage);

    lock_assert_held(&stage->lock);
    if (wait->waiter)
        waiter_add(wait->waiter);
    wait->need.end = wait->blocks.end;
    wait->need.since = now;
    wait->quiet.first = now > wait->early ? (uint64_t)(now - wait->early) : 0;
    wait->quiet.end = wait->quiet.first + 1;
    ranges_add(&wait->need.file->waits, &wait->blocks);
    ranges_add(&stage->quiet, &wait->quiet);
    need_queue_locked(&wait->need, wait->blocks.first);
}

void wait_end_locked(struct wait *wait, struct wait **ret_over)
{
    lock_assert_held(&wait->need.file->stage->lock);
    need_unqueue_locked(&wait->need);
    ranges_remove(&wait->need.file->waits, &wait->blocks);
    ranges_remove(&wait->need.file->stage->quiet, &wait->quiet);
    wait->next = *ret_over;
    *ret_over = wait;
}

void waits_over_locked(struct file *file, uint64_t first, uint64_t end, int error,
                       struct wait **ret_over)
{
    struct wait *next;

    lock_assert_held(&file->stage->lock);
    for (struct wait *w = wait_first_locked(file, first, end); w; w = next) {
        uint64_t from = max_u64(first, w->blocks.first), to = min_u64(end, w->blocks.end);

        next = wait_next_locked(w, first, end);
        w->left -= min_u64(w->left, to - from);
        if (error < 0 || !w->left)
            wait_end_locked(w, ret_over);
    }
}

void wait_explain_locked(const struct file *file, struct diag *ret)
{
    const struct stage *stage = file->stage;
    unsigned s = stage->options.retry_limit_s;

    lock_assert_held(&file->stage->lock);
    if (file->trouble)
        diag_set(ret, -EREMOTEIO, "%.300s; waited %u s", file->trouble, s);
    else if (stage->trouble_error)
        diag_set(ret, -EREMOTEIO,
                 "%s: the remote sends nothing; another request failed: %.300s; waited %u s",
                 file->blob.name, stage->trouble.text, s);
    else
        diag_set(ret, -EREMOTEIO, "%s: the remote sends nothing; waited %u s", file->blob.name, s);
}

void waits_tell(struct stage *stage, struct wait *over, int error, const struct diag *reason)
{
    while (over) {
        struct diag own = DIAG_INIT;
        struct wait *w = over;

        over = w->next;
        if (w->reason)
            diag_set(&own, error, "%s", w->reason);
        if (error < 0 && error != -EINTR && w->waiter && !w->waiter->ahead)
            atomic_fetch_add_explicit(&stage->counters.errors, 1, memory_order_relaxed);
        if (w->waiter)
            waiter_done(w->waiter, error, own.set ? &own : reason);
        free(w->reason);
        free(w);
    }
}
