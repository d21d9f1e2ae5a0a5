/* Bytes of a run arrive: this file takes disk space for them, gathers them to blocks, writes these
 * to disk, and publishes them to the readers that wait.
 *
 * run->buffer_lock is held while bytes are handled, stage->lock only to publish. Blocks that cannot
 * be written become overflow blocks. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/scope.h"
#include "cache/stage/blocks.h"
#include "cache/stage/policy.h"
#include "cache/stage/run.h"

#define FIRST_BYTES  (UINT64_C(128) << 10) /* see run_take_quota() */
#define DEMAND_GROUP (UINT64_C(128) << 10) /* bytes that are worth a write while a reader waits */
#define PUBLISH_MS   5  /* complete blocks wait at most this long to be written with others */
#define EXTENT_BYTES 16 /* bytes of metadata that the file system may need for a new extent */

/* ---- disk space ---- */

/* When the blocks of the run are needed: only blocks needed later make space for them. 0: a reader
 * waits. */
static uint64_t run_needed_when(const struct run *run)
{
    const struct file *file = run->file;
    const struct stage_needs *needs = atomic_load(&file->stage->forecast);
    uint64_t off = run->blocks.first * file->block_bytes;

    if (file->stage->options.keep == STAGE_PIN || !needs)
        return STAGE_NEVER;
    if (run_is_wanted(run))
        return 0;
    return run->why == RUN_BACKGROUND
               ? run->when
               : stage_when(needs, &file->blob, off,
                            min_u64(run->blocks.end * file->block_bytes, file->blob.size) - off);
}

/* Take from the quota what the next write needs beyond run->taken: a run of a file that comes
 * whole, or one that has to write blocks again, has not taken enough. 0, KEEP_IN_MEMORY or -errno.
 */
static int take_more_quota(struct run *run, uint64_t bytes)
{
    uint64_t more = bytes > run->taken ? bytes + RUN_OVERHEAD - run->taken : 0;
    int r = more ? keep_take_quota(run->file->stage, more, run_needed_when(run)) : 0;

    run->taken += r == 0 ? more : 0;
    return r;
}

bool file_wants_parts(const struct file *file)
{
    return overflow_is_wasteful(file->stage->overflow) &&
           atomic_load(&file->ahead_at) == UINT64_MAX;
}

/* A run may begin and end inside a block: only the parts that its readers need are fetched. */
static void trim_run(struct run *run)
{
    struct file *file = run->file;
    uint64_t start = run->at * file->block_bytes, end = start + run_bytes_left(run), from, to;
    LOCK_SCOPE(&file->stage->lock);

    if (run->at > run->blocks.first || run->fill || file->version.whole_only ||
        !file_wants_parts(file))
        return;
    needs_bytes_locked(file, run->blocks.first, run->blocks.end, &from, &to);
    if (from >= to)
        return;
    run->skip = from - start < file->block_bytes ? (uint32_t)(from - start) : 0;
    run->cut = end - to < file_block_len(file, run->blocks.end - 1) ? (uint32_t)(end - to) : 0;
}

/* Could blocks without a claim be written now? If not, there is no use in fetching them. */
static int try_to_exclude_drops(const struct run *run)
{
    AUTO_CLOSE int excludes = run->steals ? staged_exclude_drops(file_staged(run->file)) : -1;

    return run->steals && excludes < 0 ? excludes : 0;
}

/* Take disk space from the quota for what is to come; of a file that comes whole, which may be
 * larger than the cache, for the first write: write_blocks() takes the rest. False: there is none,
 * and no reader waits. */
bool run_take_quota(struct run *run)
{
    struct stage *stage = run->file->stage;
    uint64_t most = run->file->version.whole_only ? FIRST_BYTES : UINT64_MAX,
             space = min_u64(run_bytes_left(run), most) + RUN_OVERHEAD;
    int r;

    if (run->taken || run->refused)
        return true;
    if (keep_is_full(stage)) { /* no block is worth the place of another one */
        trim_run(run);
        run->refused = run->skip || run->cut;
        if (run->refused)
            return true;
    }
    r = file_staged(run->file)->is_in_memory ? -ENOSPC : try_to_exclude_drops(run);
    if (r == 0)
        r = keep_take_quota(stage, space, run_needed_when(run));
    if (r >= 0) {
        LOCK_SCOPE(&stage->lock);

        run->taken = r == 0 ? space : 0;
        if (run->why != RUN_DEMAND) /* this run may need less than others do */
            stage->full_error = 0;
        return true;
    }
    run->refused = true;
    stage_note_full(stage, r);
    trim_run(run);
    return run_is_wanted(run);
}

/* ---- blocks ---- */

/* Disk space that n blocks take besides their bytes: for records where there were none, and for a
 * new extent. A block that was fetched before is in an extent already, or soon is again. */
static uint64_t disk_beside(const struct run *run, uint64_t first, uint64_t n)
{
    bool is_new = !(file_flags(run->file, first) & BLOCK_FETCHED);

    return staged_publish_takes(file_staged(run->file), first, n) + (is_new ? EXTENT_BYTES : 0);
}

/* Write the first n blocks of the buffer to disk. 0; KEEP_IN_MEMORY: not written; -ENOSPC, -EDQUOT:
 * no space; -EAGAIN: another process drops blocks, and some of ours are not claimed; or -errno. */
static int write_blocks(struct run *run, uint64_t n, uint64_t bytes)
{
    struct file *file = run->file;
    uint64_t first = run->at, records[256], beside;
    AUTO_CLOSE int excludes = -1;
    const uint8_t *at = run->buffer;
    int r;

    if (file_staged(file)->is_in_memory)
        return -ENOSPC;
    assert(n <= ARRAY_LEN(records));
    beside = disk_beside(run, first, n);
    r = take_more_quota(run, bytes + beside);
    if (r == KEEP_IN_MEMORY)
        return r;
    if (r == 0 && first + n > run->claimed)
        r = excludes = staged_exclude_drops(file_staged(file));
    if (r < 0)
        return r;
    for (uint64_t i = 0; i < n; i++) {
        records[i] = staged_checksum(file_staged(file), first + i, at);
        at += file_block_len(file, first + i);
    }
    r = staged_write(file_staged(file), run->buffer, (size_t)bytes, first * file->block_bytes);
    if (r == 0)
        r = staged_publish(file_staged(file), first, (size_t)n, records);
    beside = min_u64(beside, run->taken - bytes);
    quota_settle(file->stage->quota, bytes + beside); /* a write that fails may have taken some */
    run->taken -= bytes + beside;
    return r;
}

static void keep_overflow(struct run *run, uint64_t n)
{
    struct file *file = run->file;
    const uint8_t *at = run->buffer;

    for (uint64_t i = 0; i < n; i++) {
        uint64_t block = run->at + i;
        uint32_t len = file_block_len(file, block),
                 skip = block == run->blocks.first ? run->skip : 0,
                 cut = block + 1 == run->blocks.end ? run->cut : 0;

        overflow_add(file->stage->overflow, file, block, at + skip, skip, len - skip - cut,
                     run->skip || run->cut);
        at += len;
    }
}

static void note_fetched_locked(struct file *file, uint64_t block)
{
    lock_assert_held(&file->stage->lock);
    if (file_flags(file, block) & BLOCK_FETCHED)
        return;
    file_flag_locked(file, block, BLOCK_FETCHED, true);
    atomic_fetch_add(&file->stage->counters.distinct_bytes,
                     file_block_len(file, block) - file_stale_bytes_locked(file, block));
}

/* Complete blocks at the front of the buffer, all of one kind: the run brings them; they pass by,
 * as some blocks of a file that comes whole; or they have stale bytes, and may not be kept. */
struct ready {
    uint64_t n, bytes;
    bool pass, stale;
};

/* Enough has come to count as progress for the retry limit. */
static void run_note_progress(struct run *run)
{
    run->unheard = 0;
    atomic_store_explicit(&run->progress, run->came_at, memory_order_relaxed);
    atomic_store_explicit(&run->file->stage->progress, run->came_at, memory_order_relaxed);
}

/* Publish the blocks, or let them pass. */
static void publish_blocks(struct run *run, const struct ready *ready)
{
    struct file *file = run->file;
    uint64_t n = ready->n, bytes = ready->bytes;
    uint64_t first = run->at, drops = file_drops_to_write(file);
    struct wait *over = NULL;
    int r = 0;

    if (ready->stale && !ready->pass)
        r = KEEP_IN_MEMORY;
    else if (!ready->pass)
        r = run->refused ? -ENOSPC : drops == UINT64_MAX ? -EIO : write_blocks(run, n, bytes);
    if (r < 0) {
        if (!run->refused) {
            quota_give_back(file->stage->quota, run->taken);
            run->taken = 0;
            stage_note_full(file->stage, r);
        }
        run->refused = true;
        atomic_fetch_add(&file->stage->counters.refused, n);
    }
    if (r != 0)
        keep_overflow(run, n);
    if (run->claimed > first) /* before this process may claim them again */
        staged_unclaim(file_staged(file), first, min_u64(n, run->claimed - first));
    run_note_progress(run); /* before the waits end */
    lock_take(&file->stage->lock);
    for (uint64_t b = first; b < first + n && !ready->pass; b++) {
        note_fetched_locked(file, b);
        file_set_locked(file, b, r == 0 ? file_here(file, drops) : BLOCK_ABSENT);
    }
    if (!ready->pass)
        waits_over_locked(file, first, first + n, 0, &over);
    run->failures = 0;
    lock_drop(&file->stage->lock);
    waits_tell(file->stage, over, 0, NULL);
    run->at += n;
    run->published = run->came_at;
    run->fill -= bytes;
    memmove(run->buffer, run->buffer + bytes, run->fill);
}

static struct ready complete_blocks(const struct run *run)
{
    struct ready ready = {0};

    while (run->at + ready.n < run->blocks.end) {
        uint64_t block = run->at + ready.n;
        uint32_t len = file_block_len(run->file, block);
        uint8_t state = file_flags(run->file, block);
        bool pass = (state & BLOCK_STATE) != BLOCK_COMING, stale = state & BLOCK_STALE;

        if (ready.bytes + len > run->fill ||
            (ready.n && (pass != ready.pass || stale != ready.stale)))
            break;
        ready = (struct ready){ready.n + 1, ready.bytes + len, pass, stale};
    }
    return ready;
}

/* Do the n blocks at the front of the buffer end a wait? */
static bool ends_a_wait(const struct run *run, uint64_t n)
{
    LOCK_SCOPE(&run->file->stage->lock);

    return needs_end_a_wait_locked(run->file, run->at, run->at + n);
}

/* Should complete blocks be published at once? Writing blocks one by one costs time. */
static bool is_urgent(const struct run *run, const struct ready *ready)
{
    int64_t since = run->came_at - run->published;

    if (run->fill == run->buffer_capacity || since > PUBLISH_MS * NS_PER_MS || ready->pass)
        return true;
    return atomic_load(&run->why) == RUN_DEMAND &&
           (ready->bytes >= DEMAND_GROUP || ends_a_wait(run, ready->n));
}

void run_publish_ready(struct run *run)
{
    LOCK_SCOPE(&run->buffer_lock);
    struct ready ready;

    while ((ready = complete_blocks(run)).n)
        publish_blocks(run, &ready);
    atomic_store(&run->ready_at, 0);
}

void runs_flush(struct stage *stage)
{
    int64_t since = stage_now(stage) - PUBLISH_MS * NS_PER_MS, ready_at;

    for (;;) {
        struct run *run;

        lock_take(&stage->lock);
        TAILQ_FOREACH (run, &stage->runs->active, link) {
            ready_at = atomic_load(&run->ready_at);
            if (ready_at && ready_at < since && run->state == RUN_RUNNING)
                break;
        }
        if (run)
            run->references++;
        lock_drop(&stage->lock);
        if (!run)
            return;
        run_publish_ready(run);
        run_let_go(run);
    }
}

/* ---- a transfer's bytes ---- */

static void count_bytes(struct run *run, size_t n)
{
    struct stage_counters *c = &run->file->stage->counters;
    int64_t now = stage_now(run->file->stage);

    run->came_at = now;
    run->unheard += n;
    if (run->unheard >= run->share)
        run_note_progress(run);
    if (!run->bytes) {
        run->first_at = now;
        run->waited = transport_waited(run->file->stage->transport, now) - run->waited;
        run->first_bytes = n;
    }
    run->bytes += n;
    atomic_fetch_add(run->why == RUN_DEMAND ? &c->demand_bytes : &c->background_bytes, n);
}

/* The next n bytes of the run. bytes: NULL: they are stale, or do not come. */
static void gather(struct run *run, const uint8_t *bytes, uint64_t n)
{
    while (n && run->at < run->blocks.end) {
        size_t some = (size_t)min_u64(n, run->buffer_capacity - run->fill);
        struct ready ready;

        if (bytes)
            memcpy(run->buffer + run->fill, bytes, some);
        else
            memset(run->buffer + run->fill, 0, some);
        run->fill += some;
        bytes = bytes ? bytes + some : NULL;
        n -= some;
        ready = complete_blocks(run);
        if (ready.n && (run->at + ready.n == run->blocks.end || is_urgent(run, &ready)))
            publish_blocks(run, &ready);
    }
    if (run->cut && run->at < run->blocks.end && run_bytes_left(run) - run->fill == run->cut)
        gather(run, NULL, run->cut);
    atomic_store(&run->ready_at, complete_blocks(run).n ? run->came_at : 0);
}

bool run_data_came(struct transfer *transfer, const void *bytes, size_t n)
{
    struct run *run = (struct run *)transfer;
    bool refused;

    lock_take(&run->buffer_lock);
    count_bytes(run, n);
    gather(run, bytes, n);
    refused = run->refused;
    lock_drop(&run->buffer_lock);
    if (refused && !run_is_wanted(run))
        return false;
    return !atomic_load(&run->file->stage->ending);
}

bool run_stale_came(struct transfer *transfer, uint64_t n, int error, const struct diag *d)
{
    struct run *run = (struct run *)transfer;
    struct stage *stage = run->file->stage;
    uint64_t off;
    int r;

    lock_take(&run->buffer_lock);
    off = run->at * run->file->block_bytes + run->fill;
    r = file_add_stale(run->file, off, n, error, d);
    if (r >= 0) {
        run->came_at = stage_now(stage);
        run_note_progress(run); /* the remote has answered */
        gather(run, NULL, n);
    }
    lock_drop(&run->buffer_lock);
    if (r > 0)
        stage_tell(stage, error, d);
    return r >= 0 && !atomic_load(&stage->ending);
}

/* Bytes of cached blocks come again. They show that the remote is alive. */
void run_passed(struct transfer *transfer, size_t n)
{
    struct run *run = (struct run *)transfer;
    LOCK_SCOPE(&run->buffer_lock);

    count_bytes(run, n);
}
