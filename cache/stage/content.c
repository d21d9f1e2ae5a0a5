/* Reads bytes of blocks that are here, by the invariants of cache/stage/file.c, and compares whole
 * files with their SHA-256. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/scope.h"
#include "cache/disk/sha256.h"
#include "cache/stage/parts.h"

#define TRIES 64

/* Blocks [first, end), HERE as far as we knew, could not be read. */
static void lost(struct file *file, uint64_t first, uint64_t end)
{
    LOCK_SCOPE(&file->stage->lock);

    for (uint64_t b = first; b < end; b++)
        if (file_state(file, b) == BLOCK_HERE)
            file_set_locked(file, b, BLOCK_ABSENT);
    atomic_fetch_add_explicit(&file->stage->counters.bad_blocks, 1, memory_order_relaxed);
}

/* Copy the block's part of the range. 0; -EAGAIN: it is not there; or file_stale_error(). */
static int read_overflow(struct file *file, uint64_t block, uint8_t *buf, size_t len, uint64_t off)
{
    uint64_t start = block * file->block_bytes, from = max_u64(off, start),
             to = min_u64(off + len, start + file_block_len(file, block));

    if (!overflow_read(&file->stage->overflow, file, block, buf + (from - off),
                       (size_t)(from - start), (size_t)(to - from)))
        return -EAGAIN;
    return file_stale_error(file, from, to - from);
}

/* How many blocks from first on are HERE, without a gap. */
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
        r = staged_read(&file->staged, buf + (from - off), (size_t)(to - from), from);
        if (r < 0) {
            lost(file, first, first + n);
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
    uint64_t drops = atomic_load(&file->drops), record[LOOK_AT_ONCE];
    size_t n = (size_t)(end - first);

    if (drops == UINT64_MAX || off % file->block_bytes || n > LOOK_AT_ONCE ||
        off + len != min_u64(end * file->block_bytes, file->blob.size))
        return false;
    staged_records(&file->staged, first, n, record);
    for (size_t i = 0; i < n; i++)
        if (!record[i] || (file_state(file, first + i) != BLOCK_UNKNOWN &&
                           file_state(file, first + i) != BLOCK_HERE))
            return false;
    if (staged_read(&file->staged, buf, len, off) < 0)
        return false;
    for (size_t i = 0; i < n; i++)
        if (staged_checksum(&file->staged, first + i, buf + i * file->block_bytes) != record[i])
            return false;
    for (size_t i = 0; i < n; i++)
        file_looked_at(file, first + i, true, drops);
    return true;
}

/* 0; -EAGAIN: bytes are missing; or -errno. The file has been taken. */
int file_read(struct file *file, void *buf, size_t len, uint64_t off, bool *ret_overflow)
{
    uint64_t first = off / file->block_bytes, end = ceil_div(off + len, file->block_bytes);

    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t drops = atomic_load(&file->drops), now;
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
        now = staged_drops(&file->staged);
        if (r == 0 && now == drops)
            *ret_overflow = overflow;
        if (now == drops || (r < 0 && now != UINT64_MAX))
            return r;
        file_forget(file, drops);
        if (r == 0 && drops == UINT64_MAX && atomic_load(&file->drops) == drops) {
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
    uint64_t drops = staged_drops(&file->staged);
    struct diag why = DIAG_INIT;
    int r = buf ? digest_new(&digest) : -ENOMEM;
    bool overflow_block;

    if (r == 0 && staged_is_marked(&file->staged, file->sha256)) {
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
            staged_mark(&file->staged, file->sha256, drops);
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
        atomic_fetch_add_explicit(&file->stage->counters.bad_files, 1, memory_order_relaxed);
        atomic_store(&file->failed, -EBADMSG);
        file_drop_blocks(file, 0, file->blocks);
    }
    return diag_set(d, -EBADMSG, "%s", why.text);
}
