/* Bytes of cached blocks: reads, whole files, drops, and bytes that are gone on the remote.
 *
 * A HERE block is COMING while it is dropped, so that no run is made for it. A reader that begins
 * to wait for it in that time gets a run when the drop has ended.
 *
 * Stale bytes: a file may be made of many objects of a remote (cache/source/joined_transport.c),
 * and one of these may change or vanish after the file was listed, or be refused. Then the bytes of
 * that object can never be fetched, and the others can. Invariants:
 *  1. A block with stale bytes is never written to disk, where other processes would take it for
 *     good: what came of it is an overflow block, with zeros in the place of stale bytes.
 *  2. Bytes become stale here before their block becomes an overflow block, so no reader gets the
 *     zeros: read_overflow() asks.
 *  3. Nothing but a reader has such a block fetched: it is never HERE by our doing, so the
 *     background would begin again for ever. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/ranges.h"
#include "base/scope.h"
#include "cache/disk/sha256.h"
#include "cache/stage/blocks.h"
#include "cache/stage/needs.h"

#define TRIES        64
#define DROP_AT_ONCE 64 /* ranges: readers of the file wait until a drop ends */
#define LOOK_MOST                                                                                  \
    (UINT64_C(2) << 30) /* bytes that opening a sealed file compares: half a second                \
                         */
#define DIGESTS_MOST (UINT64_C(16) << 20)

/* Blocks [first, end), HERE as far as we knew, could not be read. */
static void lose_blocks(struct file *file, uint64_t first, uint64_t end)
{
    LOCK_SCOPE(&file->stage->lock);

    for (uint64_t b = first; b < end; b++)
        if (file_state(file, b) == BLOCK_HERE)
            file_set_locked(file, b, BLOCK_ABSENT);
    atomic_fetch_add(&file->stage->counters.bad_blocks, 1);
}

/* Copy the block's part of the range. 0; -EAGAIN: it is not there; or file_stale_error(). */
static int read_overflow(struct file *file, uint64_t block, uint8_t *buf, size_t len, uint64_t off)
{
    uint64_t start = block * file->block_bytes, from = max_u64(off, start),
             to = min_u64(off + len, start + file_block_len(file, block));

    if (!overflow_read(file->stage->overflow, file, block, buf + (from - off),
                       (size_t)(from - start), (size_t)(to - from)))
        return -EAGAIN;
    return file_stale_error(file, from, to - from);
}

uint64_t file_count_here(const struct file *file, uint64_t first, uint64_t end)
{
    uint64_t n = 0;

    while (first + n < end && file_state(file, first + n) == BLOCK_HERE)
        n++;
    return n;
}

/* Read from disk and overflow blocks. 0; -EAGAIN: something is missing; -ESTALE, -EACCES.
 * *ret_overflow: some bytes came from overflow blocks. */
static int read_blocks(struct file *file, uint8_t *buf, size_t len, uint64_t off,
                       bool *ret_overflow)
{
    bool overflow = false;
    uint64_t first = off / file->block_bytes, end = ceil_div(off + len, file->block_bytes);

    while (first < end) {
        uint64_t n = file_count_here(file, first, end), from, to;
        int r;

        if (!n) {
            r = read_overflow(file, first, buf, len, off);
            if (r < 0)
                return r;
            overflow = true;
            first++;
            continue;
        }
        from = max_u64(off, first * file->block_bytes);
        to = min_u64(off + len, (first + n) * file->block_bytes);
        r = staged_read(file_staged(file), buf + (from - off), (size_t)(to - from), from);
        if (r < 0) {
            lose_blocks(file, first, first + n);
            return -EAGAIN;
        }
        first += n;
    }
    *ret_overflow = overflow;
    return 0;
}

/* Read whole blocks that are on disk but were not looked at, as in a new mount, once: into buf, and
 * compare them there. False: they must be read another way. */
static bool read_unknown(struct file *file, uint8_t *buf, size_t len, uint64_t off)
{
    uint64_t first = off / file->block_bytes, end = ceil_div(off + len, file->block_bytes);
    uint64_t drops = file_drops(file), record[LOOK_AT_ONCE];
    size_t n = (size_t)(end - first);

    if (drops == UINT64_MAX || off % file->block_bytes || n > LOOK_AT_ONCE ||
        off + len != min_u64(end * file->block_bytes, file->blob.size))
        return false;
    staged_records(file_staged(file), first, n, record);
    for (size_t i = 0; i < n; i++)
        if (!record[i] || (file_state(file, first + i) != BLOCK_UNKNOWN &&
                           file_state(file, first + i) != BLOCK_HERE))
            return false;
    if (staged_read(file_staged(file), buf, len, off) < 0)
        return false;
    for (size_t i = 0; i < n; i++)
        if (staged_checksum(file_staged(file), first + i, buf + i * file->block_bytes) != record[i])
            return false;
    for (size_t i = 0; i < n; i++)
        file_looked_at(file, first + i, true, drops);
    return true;
}

int file_read(struct file *file, void *buf, size_t len, uint64_t off, bool *ret_overflow)
{
    uint64_t first = off / file->block_bytes, end = ceil_div(off + len, file->block_bytes);

    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t drops = file_drops(file), now;
        bool is_read = false, overflow = false;
        int r = 0;

        for (uint64_t b = first; b < end; b++) {
            if (file_state(file, b) == BLOCK_UNKNOWN) {
                is_read = read_unknown(file, buf, len, off);
                if (!is_read)
                    look_at_blocks(file, b, end);
                break;
            }
        }
        if (!is_read)
            r = read_blocks(file, buf, len, off, &overflow);
        now = staged_drops(file_staged(file));
        if (r == 0 && now == drops)
            *ret_overflow = overflow;
        if (now == drops || (r < 0 && now != UINT64_MAX))
            return r;
        file_forget(file, drops);
        if (r == 0 && drops == UINT64_MAX && file_drops(file) == drops) {
            *ret_overflow = overflow; /* all of it: the staged file is not ours */
            return 0;
        }
    }
    return -EAGAIN; /* blocks come and go all the time */
}

int file_verify(struct file *file, struct diag *d)
{
    AUTO_DIGEST struct digest *digest = NULL;
    AUTO_FREE uint8_t *buf = malloc(file->block_bytes);
    uint8_t found[DIGEST_BYTES];
    char want_text[DIGEST_TEXT_SIZE], found_text[DIGEST_TEXT_SIZE];
    uint64_t drops = staged_drops(file_staged(file));
    struct diag why = DIAG_INIT;
    int r = buf ? digest_new(&digest) : -ENOMEM;
    bool overflow_block;

    if (r == 0 && staged_is_marked(file_staged(file), file->sha256)) {
        atomic_store(&file->verdict, FILE_GOOD);
        return 0;
    }
    for (uint64_t b = 0; b < file->blocks && r == 0; b++) {
        uint32_t len = file_block_len(file, b);

        r = atomic_load(&file->stage->ending)
                ? -EINTR
                : file_read(file, buf, len, b * file->block_bytes, &overflow_block);
        if (r == 0)
            r = digest_add(digest, buf, len);
    }
    if (r == 0)
        r = digest_finish(digest, found);
    if (r < 0)
        return r;
    if (!memcmp(found, file->sha256, sizeof(found))) {
        atomic_store(&file->verdict, FILE_GOOD);
        if (file_count_here(file, 0, file->blocks) == file->blocks)
            staged_mark(file_staged(file), file->sha256, drops);
        return 0;
    }
    digest_text(file->sha256, want_text);
    digest_text(found, found_text);
    diag_set(&why, -EBADMSG, "%s: SHA-256: expected %s as SHA256SUMS says, got %s", file->blob.name,
             want_text, found_text);
    lock_take(&file->stage->lock);
    file_set_trouble_locked(file, why.text);
    lock_drop(&file->stage->lock);
    if (atomic_exchange(&file->verdict, FILE_BAD) != FILE_BAD) {
        atomic_store(&file->failed, -EBADMSG); /* before the count that tells of it */
        atomic_fetch_add(&file->stage->counters.bad_files, 1);
        file_drop_all(file);
    }
    return diag_set(d, -EBADMSG, "%s", why.text);
}

/* ---- drops ---- */

/* By the forecast of needs, blocks are dropped that are on disk but were not looked at yet,
 * but never one that a reader waits for. */
static bool may_drop_locked(struct file *file, uint64_t block)
{
    uint8_t state = file_flags(file, block);
    bool by_needs = file->stage->options.keep != STAGE_PIN;

    lock_assert_held(&file->stage->lock);
    if ((state & BLOCK_STATE) == BLOCK_UNKNOWN && atomic_load(&file->done))
        return true;
    if ((state & BLOCK_STATE) != BLOCK_HERE &&
        !((state & BLOCK_STATE) == BLOCK_UNKNOWN && by_needs && state & BLOCK_COUNTED))
        return false;
    return !by_needs || !needs_wait_locked(file, block, block + 1);
}

/* Begin to drop the droppable blocks of *range: they are COMING, so that no run is made for them.
 * Blocks of a file that is no longer needed are dropped where they may be present. Returns how many
 * ranges *ret has. *range becomes the rest, which is empty when all is done. */
static size_t begin_drop_locked(struct file *file, struct staged_range *range,
                                struct staged_range *ret, size_t capacity)
{
    size_t n = 0;

    lock_assert_held(&file->stage->lock);
    while (range->n && n < capacity) {
        uint64_t here = 0;

        while (here < range->n && may_drop_locked(file, range->first + here))
            file_set_locked(file, range->first + here++, BLOCK_COMING);
        if (here)
            ret[n++] = (struct staged_range){range->first, here};
        range->first += here ? here : 1;
        range->n -= here ? here : 1;
    }
    return n;
}

/* Blocks that another process has claimed have not been dropped. */
static uint64_t end_drop_range(struct file *file, const struct staged_range *range)
{
    uint64_t record[LOOK_AT_ONCE], dropped = 0;

    for (uint64_t at = 0; at < range->n; at += LOOK_AT_ONCE) {
        size_t some = (size_t)min_u64(LOOK_AT_ONCE, range->n - at);

        staged_records(file_staged(file), range->first + at, some, record);
        LOCK_SCOPE(&file->stage->lock);

        for (size_t i = 0; i < some; i++) {
            dropped += !record[i];
            file_set_locked(file, range->first + at + i, record[i] ? BLOCK_UNKNOWN : BLOCK_ABSENT);
        }
    }
    return dropped;
}

/* what: NULL: the drop has failed. By the forecast of needs the space is for what is needed next,
 * and not for the rest of the files. */
static void end_drop(struct file *file, const struct staged_range *ranges, size_t n,
                     const struct staged_dropped *what)
{
    struct stage *stage = file->stage;
    uint64_t dropped = 0;

    for (size_t i = 0; i < n; i++)
        dropped += end_drop_range(file, &ranges[i]);
    lock_take(&stage->lock);
    if (!atomic_load(&file->done))
        atomic_fetch_add(&stage->counters.evictions, dropped);
    file_drops_locked(file, -1, what);
    if (dropped && stage->options.keep == STAGE_PIN)
        stage->full_error = 0;
    for (size_t i = 0; i < n; i++)
        needs_again_locked(file, ranges[i].first, ranges[i].first + ranges[i].n);
    stage_kick_locked(stage);
    lock_drop(&stage->lock);
}

int file_drop_ranges(struct file *file, const struct staged_range *ranges, size_t n)
{
    struct stage *stage = file->stage;
    struct staged_range some[DROP_AT_ONCE], left = {0, 0};
    int result = 0;

    for (size_t i = 0; i < n || left.n;) {
        size_t begun = 0;

        lock_take(&stage->lock);
        while (begun < DROP_AT_ONCE && (left.n || i < n)) {
            if (!left.n)
                left = ranges[i++];
            begun += begin_drop_locked(file, &left, some + begun, DROP_AT_ONCE - begun);
        }
        if (begun)
            file_drops_locked(file, 1, NULL);
        lock_drop(&stage->lock);
        if (begun) {
            uint64_t mark = quota_mark(stage->quota);
            struct staged_dropped dropped;
            int r = staged_drop_ranges(file_staged(file), some, begun, &dropped);

            if (r == 0)
                quota_freed(stage->quota, dropped.freed, mark);
            else if (r == -EBUSY)
                atomic_fetch_add(&stage->counters.held, 1);
            end_drop(file, some, begun, r == 0 ? &dropped : NULL);
            result = r < 0 ? r : result;
        }
    }
    return result;
}

void file_drop_all(struct file *file)
{
    const struct staged_range range = {0, file->blocks};

    file_drop_ranges(file, &range, 1);
}

size_t ranges_of_blocks_add(struct staged_range *ranges, size_t n, uint64_t block)
{
    if (n && ranges[n - 1].first + ranges[n - 1].n == block) {
        ranges[n - 1].n++;
        return n;
    }
    ranges[n] = (struct staged_range){block, 1};
    return n + 1;
}

/* ---- readers without the stage: passthrough ----
 *
 * The stage does not see what they read, so all of it is compared first, in this process, after
 * drops were locked out. The lock belongs to the descriptor, and stays as long as anybody, the
 * kernel included, has a copy of it open: cache/disk/staged_file.h. */

/* Are all blocks good, with one number of the staged file before and after? 0, or -EAGAIN. */
static int compare_all(struct file *file)
{
    uint64_t drops = staged_drops(file_staged(file)), known = file_drops(file), left;

    if (drops == UINT64_MAX)
        return -EAGAIN;
    if (known != drops)
        file_forget(file, known);
    left = file->blocks - file_count_here(file, 0, file->blocks);
    if (left > LOOK_MOST / file->block_bytes)
        return -EAGAIN;
    if (left)
        look_at_blocks(file, 0, file->blocks);
    return file_count_here(file, 0, file->blocks) == file->blocks && file_drops(file) == drops &&
                   staged_drops(file_staged(file)) == drops
               ? 0
               : -EAGAIN;
}

/* Has the file the SHA-256 that it must have? 0; -EAGAIN: that is not known yet. */
static int check_digest(struct file *file)
{
    if (!file->has_sha256 || atomic_load(&file->verdict) == FILE_GOOD)
        return 0;
    if (file->blob.size > DIGESTS_MOST && !staged_is_marked(file_staged(file), file->sha256))
        return -EAGAIN;
    return file_verify(file, NULL) == 0 && atomic_load(&file->verdict) == FILE_GOOD ? 0 : -EAGAIN;
}

static int open_taken(struct file *file, int *ret_fd)
{
    AUTO_CLOSE int fd = -1;
    int r = staged_seal(file_staged(file), file->has_sha256 ? file->sha256 : NULL);

    if (r == 0)
        r = check_digest(file); /* before drops are locked out: a wrong file is dropped */
    if (r == 0)
        r = staged_open_sealed(file_staged(file), &fd);
    if (r == 0)
        r = compare_all(file);
    if (r < 0) /* what else is wrong with the folder is reported by those who write to it */
        return r == -EMFILE || r == -ENFILE ? r : -EAGAIN;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int file_open_sealed(struct file *file, int *ret_fd)
{
    int r = file_take(file, NULL);

    if (r < 0)
        return -EAGAIN; /* a read reports why */
    r = file_staged(file)->is_in_memory || atomic_load(&file->done) ||
                atomic_load(&file->failed) < 0
            ? -EAGAIN
            : open_taken(file, ret_fd);
    file_put(file);
    return r;
}

/* ---- stale bytes ---- */

struct stale_range {
    struct range range; /* first */
    int error;          /* for its readers */
};

struct stale_bytes {
    struct ranges ranges;
    char *why; /* of the first one found; NULL: no memory */
};

static struct stale_range *stale_of(struct range *range)
{
    return (struct stale_range *)range;
}

static struct range *first_stale_locked(const struct file *file, uint64_t first, uint64_t end)
{
    lock_assert_held(&file->stage->lock);
    return file->stale ? ranges_first(&file->stale->ranges, first, end) : NULL;
}

/* Remove the ranges that overlap this one, or touch it and have its error; it becomes as large as
 * all of them together. */
static void merge_stale(struct ranges *ranges, struct stale_range *stale)
{
    uint64_t from = stale->range.first - (stale->range.first > 0), to = stale->range.end + 1;
    struct range *old, *next;

    for (old = ranges_first(ranges, from, to); old; old = next) {
        next = ranges_next(ranges, old, from, to);
        if (stale_of(old)->error != stale->error &&
            (old->end <= stale->range.first || old->first >= stale->range.end))
            continue;
        stale->range.first = min_u64(stale->range.first, old->first);
        stale->range.end = max_u64(stale->range.end, old->end);
        ranges_remove(ranges, old);
        free(stale_of(old));
    }
}

int file_add_stale(struct file *file, uint64_t off, uint64_t n, int error, const struct diag *why)
{
    AUTO_FREE struct stale_range *stale = calloc(1, sizeof(*stale));
    struct range *old;
    LOCK_SCOPE(&file->stage->lock);

    if (stale && !file->stale)
        file->stale = calloc(1, sizeof(*file->stale));
    if (!stale || !file->stale)
        return -ENOMEM;
    old = first_stale_locked(file, off, off + n);
    if (old && old->first <= off && old->end >= off + n)
        return 0;
    for (uint64_t b = off / file->block_bytes; b * file->block_bytes < off + n; b++)
        file_flag_locked(file, b, BLOCK_STALE, true);
    *stale = (struct stale_range){.range = {.first = off, .end = off + n}, .error = error};
    merge_stale(&file->stale->ranges, stale);
    ranges_add(&file->stale->ranges, &stale->range);
    if (!file->stale->why)
        file->stale->why = strdup(diag_text(why, error));
    stale = NULL; /* it is in the ranges */
    return 1;
}

int file_stale_error(struct file *file, uint64_t off, uint64_t len)
{
    LOCK_SCOPE(&file->stage->lock);
    struct range *range = first_stale_locked(file, off, off + len);

    return range ? stale_of(range)->error : 0;
}

uint64_t file_stale_bytes_locked(struct file *file, uint64_t block)
{
    uint64_t first = block * file->block_bytes, end = first + file_block_len(file, block), n = 0;

    lock_assert_held(&file->stage->lock);
    for (struct range *r = first_stale_locked(file, first, end); r;
         r = ranges_next(&file->stale->ranges, r, first, end))
        n += min_u64(end, r->end) - max_u64(first, r->first);
    return n;
}

const char *file_stale_why_locked(const struct file *file)
{
    lock_assert_held(&file->stage->lock);
    return !file->stale ? NULL : file->stale->why ? file->stale->why : strerror(ESTALE);
}

void file_free_stale(struct file *file)
{
    struct range *range;

    if (!file->stale)
        return;
    while ((range = ranges_least(&file->stale->ranges))) {
        ranges_remove(&file->stale->ranges, range);
        free(stale_of(range));
    }
    free(file->stale->why);
    free(file->stale);
}
