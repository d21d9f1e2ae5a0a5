/* The blob of a file: answers its readers.
 *
 * A read of bytes that are all here needs no lock. A reader that collects missing ranges gets the
 * missing bytes noted there. Any other reader sleeps in blob_wait() until they are present. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/disk/sha256.h"
#include "cache/stage/blocks.h"
#include "cache/stage/needs.h"
#include "cache/stage/runs.h"

#define VERIFY_FIRST (UINT64_C(16) << 20) /* smaller files: see is_unverified() */

static struct file *file_of(const struct blob *blob)
{
    return (struct file *)(uintptr_t)blob; /* the blob is constant, locks guard the rest */
}

/* ---- reading ---- */

/* Must the file be compared with its SHA-256 before a reader gets bytes of it? Small files must. */
static bool is_unverified(const struct file *file)
{
    return file->has_sha256 && !file->trusted && file->blob.size <= VERIFY_FIRST &&
           atomic_load(&file->verdict) == FILE_NOT_VERIFIED;
}

/* A read is a hit if all its bytes were on disk, not in memory. */
static void count_read(struct file *file, bool hit)
{
    struct stage_counters *c = &file->stage->counters;

    atomic_fetch_add(hit ? &c->hits : &c->misses, 1);
}

/* 0 or -errno. */
static int file_wait(struct read_context *rc, struct file *file, uint64_t off, uint64_t len,
                     struct diag *d)
{
    const struct clock *clock = file->stage->options.clock;
    int64_t began = clock_monotonic(clock);
    struct diag reason = DIAG_INIT;
    int r = blob_wait(rc, &file->blob, off, len, &reason);

    stage_waited(file->stage, clock_monotonic(clock) - began);
    return r < 0 && r != -ESTALE && reason.set ? diag_set(d, r, "%s", reason.text) : r;
}

/* Bytes of the file are missing: note them, or wait for them. 0: read again. */
static int get_missing(struct read_context *rc, struct file *file, size_t len, uint64_t off,
                       struct diag *d)
{
    int failed = atomic_load(&file->failed), stale;

    if (failed < 0)
        return failed;
    stale = file_stale_error(file, off, len);
    if (stale < 0)
        return stale;
    if (is_unverified(file)) {
        off = 0;
        len = (size_t)file->blob.size;
    }
    return rc && rc->collects ? missing_add(rc, &file->blob, off, len)
                              : file_wait(rc, file, off, len, d);
}

/* May a reader get bytes of the file? 0; -EAGAIN: not all of it is present. */
static int check_first(struct file *file, struct diag *d)
{
    if (atomic_load(&file->verdict) == FILE_BAD)
        return -EBADMSG; /* explain_failed() */
    return is_unverified(file) ? file_verify(file, d) : 0;
}

/* The file has failed for good, with r: say why. */
static void explain_failed(struct file *file, int r, struct diag *d)
{
    LOCK_SCOPE(&file->stage->lock);

    if (r < 0 && r == atomic_load(&file->failed) && file->trouble)
        diag_set(d, r, "%s", file->trouble);
}

/* The file could not be taken: try again, to get the reason. */
static int take_again(struct file *file, struct diag *d)
{
    struct diag reason = DIAG_INIT;
    int r = file_take(file, &reason);

    if (r < 0 && r != -ESTALE && reason.set)
        diag_set(d, r, "%s: %s", file->blob.name, reason.text);
    return r;
}

static int stage_pread(struct read_context *rc, const struct blob *blob, void *buf, size_t len,
                       uint64_t off, struct diag *d)
{
    struct file *file = file_of(blob);
    bool hit = true, again = rc && rc->again, overflow_block = false;
    int r = file_take(file, NULL);

    if (r < 0)
        r = take_again(file, d);
    if (r < 0)
        return r == -ENOENT ? -EIO : r;
    for (;;) {
        r = check_first(file, d);
        if (r == 0)
            r = file_read(file, buf, len, off, &overflow_block);
        if (r == 0 && off + len > atomic_load(&file->ahead_at)) {
            lock_take(&file->stage->lock);
            needs_ahead_locked(file, off, len);
            lock_drop(&file->stage->lock);
            runs_start(file->stage);
        }
        if (r != -EAGAIN)
            break;
        if (hit && !again)
            count_read(file, false);
        hit = false;
        r = get_missing(rc, file, len, off, d);
        if (r < 0)
            break;
    }
    if (r == 0) {
        if (hit && !again)
            count_read(file, !overflow_block);
        atomic_fetch_add(&file->stage->counters.served_bytes, len);
    }
    explain_failed(file, r, d);
    file_put(file);
    return r;
}

/* Are all blocks HERE, with nothing to fetch ahead? */
static bool is_simple(const struct file *file, const struct blob_piece *piece)
{
    uint64_t first = piece->off / file->block_bytes,
             end = ceil_div(piece->off + piece->len, file->block_bytes);

    return file_count_here(file, first, end) == end - first &&
           piece->off + piece->len <= atomic_load(&file->ahead_at);
}

/* Read HERE blocks; valid if the count of drops still is `drops` afterwards. It is read once, after
 * all. */
static int read_cached_pieces(struct read_context *rc, struct file *file,
                              const struct blob_piece *pieces, size_t n)
{
    uint64_t drops = file_drops(file), total = 0;
    struct stage_counters *c = &file->stage->counters;
    int r = check_first(file, NULL);

    for (size_t i = 0; i < n && r == 0; i++) {
        r = is_simple(file, &pieces[i]) ? 0 : -EAGAIN;
        total += pieces[i].len;
    }
    if (r == 0)
        r = staged_read_many(file_staged(file), pieces, n);
    if (r < 0 || staged_drops(file_staged(file)) != drops)
        return -EOPNOTSUPP;
    if (!rc || !rc->again)
        atomic_fetch_add(&c->hits, n);
    atomic_fetch_add(&c->served_bytes, total);
    return r;
}

/* Read what may be missing, and if nothing is, the others: a pass that lacks bytes is made again as
 * a whole, and what it reads is in vain. Blocks come and go meanwhile, so what was read is noted.
 */
static int collect_pieces(struct read_context *rc, struct file *file,
                          const struct blob_piece *pieces, size_t n)
{
    AUTO_FREE bool *is_read = calloc(n, sizeof(*is_read));
    int all = 0;

    if (!is_read)
        return -EOPNOTSUPP;
    for (unsigned present = 0; present < 2 && all == 0; present++)
        for (size_t i = 0; i < n; i++) {
            if (is_read[i] || (!present && is_simple(file, &pieces[i])))
                continue;
            is_read[i] = true;
            if (!missing_go_on(
                    rc,
                    stage_pread(rc, &file->blob, pieces[i].buf, pieces[i].len, pieces[i].off, NULL),
                    &all))
                return all;
        }
    return all;
}

/* Errors show again when the pieces are read one by one. */
static int stage_pread_many(struct read_context *rc, const struct blob *blob,
                            const struct blob_piece *pieces, size_t n)
{
    struct file *file = file_of(blob);
    int r = file_take(file, NULL);

    if (r < 0)
        return -EOPNOTSUPP;
    r = read_cached_pieces(rc, file, pieces, n);
    if (r < 0 && rc && rc->collects)
        r = collect_pieces(rc, file, pieces, n);
    file_put(file);
    return r;
}

/* ---- asking ---- */

static void stage_fetch(const struct blob *blob, uint64_t off, uint64_t len, struct waiter *waiter)
{
    struct file *file = file_of(blob);
    struct stage *stage = file->stage;
    struct diag reason = DIAG_INIT;
    int taken = len ? file_take(file, &reason) : -EINVAL, r = taken;

    if (r == 0) {
        look_at_blocks(file, off / file->block_bytes, ceil_div(off + len, file->block_bytes));
        lock_take(&stage->lock);
        r = needs_ask_locked(file, off, len, waiter);
        if (r == -EREMOTEIO)
            wait_explain_locked(file, &reason);
        else if (r < 0 && file->trouble)
            diag_set(&reason, r, "%s", file->trouble);
        lock_drop(&stage->lock);
    }
    if (r < 0 && waiter && len) {
        waiter_add(waiter);
        waiter_done(waiter, r, reason.set ? &reason : NULL);
    }
    if (taken < 0)
        return;
    runs_start(stage);
    file_put(file);
}

/* ---- the rest of a blob ---- */

/* The file is no longer needed, as after unpacking: stop staging it, and drop its blocks to make
 * space. */
static void stage_done(const struct blob *blob)
{
    struct file *file = file_of(blob);

    if (atomic_exchange(&file->done, true))
        return;
    atomic_fetch_sub(&file->stage->counters.total_bytes, blob->size);
    if (!file->blocks || file_take(file, NULL) < 0)
        return;
    file_drop_all(file);
    file_put(file);
}

static int stage_open_file(const struct blob *blob, uint64_t off, uint64_t len, int *ret_fd,
                           struct diag *d)
{
    struct file *file = file_of(blob);

    (void)d;
    return off || len != blob->size ? -EOPNOTSUPP : file_open_sealed(file, ret_fd);
}

static int stage_identity(const struct blob *blob, char **ret)
{
    const struct file *file = file_of(blob);
    const struct iovec field[] = {{file->blob.source, strlen(file->blob.source)},
                                  {file->version_text, strlen(file->version_text)}};
    char hex[DIGEST_TEXT_SIZE], *text;
    uint8_t digest[DIGEST_BYTES];
    int r = digest_fields(field, ARRAY_LEN(field), digest);

    if (r < 0)
        return r;
    digest_text(digest, hex); /* a server may send any text as ETag */
    if (asprintf(&text, "remote %s", hex) < 0)
        return -ENOMEM;
    *ret = text;
    return 0;
}

static uint64_t stage_gap(const struct blob *blob)
{
    const struct file *file = file_of(blob);

    return file_wants_parts(file) ? 0 : MISSING_GAP;
}

/* No check(): every block here is of the one version. No free(): the stage owns its files, and runs
 * may still use them. */
const struct blob_ops stage_blob_ops = {
    .pread = stage_pread,
    .identity = stage_identity,
    .fetch = stage_fetch,
    .done = stage_done,
    .open_file = stage_open_file,
    .pread_many = stage_pread_many,
    .gap = stage_gap,
};
