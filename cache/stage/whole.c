/* All files of a stage at once: are they staged, and right? How much is cached? */
#include <errno.h>
#include <string.h>

#include "cache/stage/blocks.h"
#include "cache/stage/policy.h"
#include "cache/stage/runs.h"

void stage_count(struct stage *stage)
{
    for (struct file *file = stage->files; file; file = file->next)
        file_count(file);
}

uint64_t stage_staged(const struct blob *blob)
{
    return stage_has(blob) ? file_counted((const struct file *)blob) : blob->size;
}

/* Why the file cannot be staged. */
static int file_trouble(const struct file *file, struct diag *d)
{
    int failed = atomic_load(&file->failed);

    return failed == -ESTALE
               ? diag_set(d, failed, "%s: it was changed or removed%s%.600s", file->blob.name,
                          file->trouble ? ": " : "", file->trouble ? file->trouble : "")
               : diag_set(d, failed, "%s: its SHA-256 is not what SHA256SUMS says",
                          file->blob.name);
}

/* Why what has come cannot be kept. 0: the reason may end soon. */
static int full_trouble_locked(const struct stage *stage, bool is_blocked, struct diag *d)
{
    int r = stage->full_error;

    lock_assert_held(&stage->lock);
    if (r == -EAGAIN)
        return is_blocked ? 0
                          : diag_set(d, -EBUSY,
                                     "the cache folder %s: another process drops blocks from a "
                                     "staged file, and does not finish",
                                     stage->cache->path);
    if (r != -ENOSPC && r != -EDQUOT)
        return diag_set(d, r, "the cache folder %s: a staged file cannot be written: %s",
                        stage->cache->path, strerror(-r));
    if (stage->untold_error) /* a lock, in most cases */
        return diag_set(d, -EBUSY, "%s", stage->untold.text);
    if (quota_is_kept(stage->quota))
        return diag_set(d, -EBUSY,
                        "the cache folder %s: another process keeps its file room locked",
                        stage->cache->path);
    return diag_set(
        d, -ENOSPC, "the cache folder %s is full: %llu of %llu bytes of the source are staged",
        stage->cache->path, (unsigned long long)atomic_load(&stage->counters.staged_bytes),
        (unsigned long long)atomic_load(&stage->counters.total_bytes));
}

/* Descriptors or memory may be free later. */
static bool is_momentary(int r)
{
    return r == -EMFILE || r == -ENFILE || r == -ENOMEM || r == -EAGAIN || r == -EINTR;
}

/* Nothing more can be staged. 1: that is all; -ESTALE: the rest is stale. */
static int stale_trouble_locked(const struct stage *stage, struct diag *d)
{
    lock_assert_held(&stage->lock);
    for (const struct file *file = stage->files; file; file = file->next)
        if (file_stale_why_locked(file))
            return diag_set(d, -ESTALE, "%s: %.300s; the rest is staged", file->blob.name,
                            file_stale_why_locked(file));
    return 1;
}

static int progress_locked(struct stage *stage, struct diag *d)
{
    int64_t idle = stage_now(stage) - atomic_load(&stage->progress);
    bool is_blocked = idle <= stage->options.retry_limit_s * NS_PER_S;
    const struct file *silent;
    int r;

    lock_assert_held(&stage->lock);
    for (struct file *file = stage->files; file; file = file->next) {
        if (atomic_load(&file->failed) < 0)
            return file_trouble(file, d);
        r = file_open_error_locked(file);
        if (r < 0 && !is_momentary(r))
            return diag_set(d, r, "%s: %s", file->blob.name,
                            file->trouble ? file->trouble : strerror(-r));
    }
    if (background_is_done_locked(stage))
        return stale_trouble_locked(stage, d);
    r = stage->full_error ? full_trouble_locked(stage, is_blocked, d) : 0;
    if (r < 0)
        return r;
    if (stage->trouble_error && !is_blocked)
        return diag_set(d, stage->trouble_error, "%s; waited %u s", stage->trouble.text,
                        stage->options.retry_limit_s);
    if (is_blocked || !(silent = runs_under_way_locked(stage)))
        return 0;
    return diag_set(d, -EREMOTEIO, "%s: the remote sends nothing; waited %u s", silent->blob.name,
                    stage->options.retry_limit_s);
}

int stage_wait(struct stage *stage, int ms, struct diag *d)
{
    int64_t until = stage_now(stage) + ms * NS_PER_MS;
    int r;

    lock_take(&stage->lock);
    while ((r = progress_locked(stage, d)) == 0 && stage_now(stage) < until)
        clock_wait(stage->options.clock, &stage->lock, &stage->gone, until);
    lock_drop(&stage->lock);
    return r;
}

static int verify_blocks(struct stage *stage, struct file *file,
                         void (*progress)(void *ctx, uint64_t bytes), void *ctx, uint64_t *done,
                         struct diag *d)
{
    for (uint64_t b = 0; b < file->blocks; b++) {
        if (atomic_load(&stage->ending))
            return -EINTR;
        look_at_blocks(file, b, b + 1);
        if (file_state(file, b) != BLOCK_HERE && stage->untold_error)
            return diag_set(d, -EBUSY, "%s", stage->untold.text);
        if (file_state(file, b) != BLOCK_HERE)
            return diag_set(
                d, -ENODATA, "%s: bytes %llu to %llu are not in the cache, or damaged",
                file->blob.name, (unsigned long long)(b * file->block_bytes),
                (unsigned long long)(b * file->block_bytes + file_block_len(file, b) - 1));
        *done += file_block_len(file, b);
        if (progress && b % 64 == 0)
            progress(ctx, *done);
    }
    return file->has_sha256 ? file_verify(file, d) : 0;
}

int stage_verify(struct stage *stage, void (*progress)(void *ctx, uint64_t bytes), void *ctx,
                 struct diag *d)
{
    uint64_t done = 0;
    int result = 0;

    for (struct file *file = stage->files; file; file = file->next) {
        bool is_needed = file->blocks && !atomic_load(&file->done);
        int r = is_needed ? file_take(file, d) : 0;

        if (r == 0 && is_needed) {
            r = verify_blocks(stage, file, progress, ctx, &done, d);
            file_put(file);
        }
        if (r < 0 && (!result || r == -EBADMSG))
            result = r;
    }
    if (progress)
        progress(ctx, done);
    return result;
}
