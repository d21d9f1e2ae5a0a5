/* Staged files. Invariants:
 *  1. The header is computed from the key alone. If it is damaged, or that of another key which
 *     nothing uses, the file is begun again: content and records cut to nothing, then the header,
 *     then the counter of drops, behind the content, with a number it never had. No lock is needed
 *     against readers and writers: see 3 to 5.
 *  2. A writer has claimed the block. It writes the content, then the record.
 *  3. A dropper has claimed the block as well. It clears the record, then counts the drop, then
 *     punches the content. So a reader that reads the counter, then a record, finds either all of
 *     the block, or another counter afterwards.
 *  4. A process that knows the content of a block to be good knows it with a value of the counter:
 *     read before the record, or, by the writer of the block, after the claim and before the
 *     content. When the process reads content later, it then reads the counter, which must be the
 *     same.
 *  5. The counter is the last part of the content. Cutting the content short removes the counter
 *     first, and no later write makes it that long again except (1) and (6): blocks are before the
 *     counter, and a counter that cannot be read is never raised. So a content that was cut has no
 *     counter, or later another value, whatever has become of the bytes before it.
 *  6. A content whose blocks all have records may be sealed: its counter goes to the header, and it
 *     is cut to the size of the remote's file. From then on its number is computed from that and
 *     from the time of its last change, which any write or cut moves; and it is none of the numbers
 *     that counters have. Before blocks are dropped the counter is put back behind the content,
 *     raised: so the length alone says which holds, at any moment at which a process may die.
 *  7. Readers that have the content open without asking for the number hold LOCK_SEALED, and took
 * it before they compared the blocks. Drops need it for themselves alone.
 *  8. Records are only hints: what counts is that the content was compared with them. So counter
 *     and locks belong to the content. Processes that have one content and different records open,
 *     because another process has replaced the file, exclude one another all the same; those with
 *     different contents take each other's blocks for wrong, and fetch them.
 *  9. A file with the whole header of another key is not begun again while others use it. A process
 *     compares the header when the counter has changed, before it learns blocks again. And records
 *     are computed with a seed from all of the header: those of another key do not match.
 *
 * All locks belong to open descriptions (F_OFD_SETLK): they end with the process, and threads that
 * each open the file exclude one another. Small pieces of the content are copied from
 * a mapping that outlives a cut; nothing else is mapped. */
#include "cache/disk/staged_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/file_io.h"
#include "base/scope.h"
#include "cache/disk/local_file.h"
#include "cache/disk/quota.h"
#include "cache/disk/staged_file_parts.h"

#define NEW_TAKES (2 * PAGE) /* disk space of a new file: its header, its count of drops */

/* ---- open and close ---- */

/* Open the file and hold LOCK_USE. A process that removes the file holds LOCK_USE exclusively, so
 * once we have it the path may name another file. */
static int open_used(const struct cache_group *group, const char *path, int *ret_fd, struct diag *d)
{
    for (;;) {
        AUTO_CLOSE int fd = -1;
        int r = file_open_own(group, path, &fd, d);

        if (r < 0)
            return r;
        r = file_lock(fd, F_RDLCK, LOCK_USE, 1, FILE_LOCK_MS);
        if (r < 0)
            return r;
        if (!group_names(group, path, fd))
            continue;
        *ret_fd = TAKE_FD(fd);
        return 0;
    }
}

void staged_content_path(const char *path, char ret[static PATH_MAX])
{
    snprintf(ret, PATH_MAX, "%s" STAGED_CONTENT_SUFFIX, path);
}

int staged_shared_new(struct staged_shared **ret)
{
    struct staged_shared *shared = calloc(1, sizeof(*shared));

    if (!shared)
        return -ENOMEM;
    lock_init(&shared->space);
    small_pieces_init(&shared->small);
    *ret = shared;
    return 0;
}

/* Prepare everything but the open file. */
static int init(struct staged *ret, const struct staged_key *key,
                uint8_t ret_header[static HEADER_BYTES])
{
    int r;

    assert(key->block >= STAGED_BLOCK_LEAST && key->block <= STAGED_BLOCK_MOST &&
           !(key->block & (key->block - 1)) && key->size <= STAGED_SIZE_MOST);
    *ret = (struct staged){.fd = -1, .records = -1};
    r = staged_make_digest(key, ret->digest);
    if (r == 0)
        r = staged_shared_new(&ret->shared);
    if (r < 0)
        return r;
    digest_text(ret->digest, ret->id);
    staged_make_header(ret->digest, key, ret_header);
    staged_layout(ret, ret_header);
    return 0;
}

/* Open the file at path and make sure that it has its header. */
static int open_at(struct staged *staged, const struct cache_group *group, const char *path,
                   const uint8_t header[static HEADER_BYTES], struct diag *d)
{
    char content[PATH_MAX];
    int r;

    staged_content_path(path, content);
    r = open_used(group, content, &staged->fd, d);
    if (r == 0)
        r = file_lock(staged->fd, F_WRLCK, LOCK_HEADER, 1, FILE_LOCK_MS);
    if (r == 0)
        r = file_open_own(group, path, &staged->records, d);
    if (r < 0)
        return diag_set(d, r, "staged file %s: %s", path, file_error(r));
    r = staged_prepare(staged, staged->fd, header, path, d);
    file_lock(staged->fd, F_UNLCK, LOCK_HEADER, 1, 0);
    return r;
}

/* The same for a file that does not exist yet: take quota for it first. */
static int open_new(struct staged *staged, const struct cache_folder *cache, const char *path,
                    const uint8_t header[static HEADER_BYTES], struct diag *d)
{
    struct quota *quota = cache->quota;
    int r = quota_take(quota, NEW_TAKES);

    if (r < 0)
        return diag_set(d, r, "staged file %s: expected %d bytes of the cache's limit: %s", path,
                        NEW_TAKES, strerror(-r));
    r = open_at(staged, &cache->group, path, header, d);
    if (r == 0)
        quota_settle(quota, NEW_TAKES);
    else
        quota_give_back(quota, NEW_TAKES);
    return r;
}

int staged_open(struct staged *ret, const struct cache_folder *cache, const struct staged_key *key,
                struct diag *d)
{
    char folder[PATH_MAX], path[PATH_MAX];
    uint8_t header[HEADER_BYTES];
    struct staged staged;
    struct stat st;
    int r = cache_folder_sub(cache, "staged", folder, sizeof(folder), d);

    if (r == 0)
        r = init(&staged, key, header);
    if (r < 0)
        return r;
    snprintf(path, sizeof(path), "%s/%s", folder, staged.id);
    if (cache->quota && group_stat(&cache->group, path, &st) == -ENOENT)
        r = open_new(&staged, cache, path, header, d);
    else
        r = open_at(&staged, &cache->group, path, header, d);
    if (r < 0)
        staged_close(&staged);
    else
        *ret = staged;
    return r;
}

int staged_open_in_memory(struct staged *ret, const struct staged_key *key, struct diag *d)
{
    uint8_t header[HEADER_BYTES];
    struct staged staged;
    int r = init(&staged, key, header);

    if (r < 0)
        return r;
    staged.is_in_memory = true;
    staged.records = memfd_create("epochfs-staged", MFD_CLOEXEC);
    staged.fd = staged.records < 0 ? -1 : memfd_create("epochfs-content", MFD_CLOEXEC);
    r = staged.fd < 0 ? -errno : staged_prepare(&staged, -1, header, "in memory", d);
    if (r < 0)
        staged_close(&staged);
    else
        *ret = staged;
    return r;
}

void staged_close(struct staged *staged)
{
    scope_close(&staged->records);
    scope_close(&staged->fd);
    staged->records = staged->fd = -1;
    if (!staged->shared)
        return;
    lock_release(&staged->shared->space);
    small_pieces_release(&staged->shared->small);
    free(TAKE_PTR(staged->shared));
}

/* ---- blocks ---- */

uint32_t staged_block_len(const struct staged *staged, uint64_t block)
{
    assert(block < staged->blocks);
    return (uint32_t)min_u64(staged->block, staged->size - block * staged->block);
}

void staged_records(const struct staged *staged, uint64_t first, size_t n, uint64_t *ret)
{
    struct stat st;

    staged_read_records(staged, first, n, ret);
    if (fstat(staged->fd, &st) < 0 ||
        ((uint64_t)st.st_size < staged->end + DROPS_BYTES && (uint64_t)st.st_size != staged->size))
        memset(ret, 0, n * RECORD);
}

void staged_read_records(const struct staged *staged, uint64_t first, size_t n, uint64_t *ret)
{
    ssize_t got = file_read_some(staged->records, ret, n * RECORD, HEADER_BYTES + first * RECORD);
    size_t whole = got > 0 ? (size_t)got / RECORD : 0;

    for (size_t i = 0; i < whole; i++)
        ret[i] = load_le64((const uint8_t *)&ret[i]);
    memset(ret + whole, 0, (n - whole) * RECORD);
}

uint64_t staged_checksum(const struct staged *staged, uint64_t block, const void *bytes)
{
    uint64_t place = (block + 1) * UINT64_C(0x9e3779b97f4a7c15);
    uint64_t sum =
        XXH3_64bits_withSeed(bytes, staged_block_len(staged, block), staged->seed ^ place);

    return sum ? sum : 1;
}

int staged_read(const struct staged *staged, void *buf, size_t len, uint64_t off)
{
    ssize_t got;

    if (off > staged->size || len > staged->size - off)
        return -EINVAL;
    got = file_read_some(staged->fd, buf, len, off);
    if (got < 0)
        return (int)got;
    return (size_t)got == len ? 0 : -ENODATA;
}

int staged_read_many(const struct staged *staged, const struct blob_piece *pieces, size_t n)
{
    int r = small_pieces_read(&staged->shared->small, staged->fd, staged->size, pieces, n);

    if (r != -EOPNOTSUPP)
        return r;
    r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = staged_read(staged, pieces[i].buf, pieces[i].len, pieces[i].off);
    return r;
}

int staged_write(const struct staged *staged, const void *bytes, size_t len, uint64_t off)
{
    if (off > staged->size || len > staged->size - off)
        return -EINVAL;
    LOCK_SCOPE(&staged->shared->space);

    return file_pwrite(staged->fd, bytes, len, off);
}

int staged_publish(const struct staged *staged, uint64_t first, size_t n, const uint64_t *records)
{
    uint8_t bytes[64 * RECORD];
    int r = 0;

    for (size_t at = 0; r == 0 && at < n;) {
        size_t some = (size_t)min_u64(n - at, sizeof(bytes) / RECORD);

        for (size_t i = 0; i < some; i++)
            store_le64(bytes + i * RECORD, records[at + i]);
        r = file_pwrite(staged->records, bytes, some * RECORD,
                        HEADER_BYTES + (first + at) * RECORD);
        at += some;
    }
    return r;
}

uint64_t staged_publish_takes(const struct staged *staged, uint64_t first, uint64_t n)
{
    uint64_t from = (HEADER_BYTES + first * RECORD) / PAGE,
             to = ceil_div(HEADER_BYTES + (first + n) * RECORD, PAGE), takes = 0;

    for (uint64_t page = from; page < to; page++) {
        off_t at = (off_t)(page * PAGE);

        takes += lseek(staged->records, at, SEEK_DATA) == at ? 0 : PAGE;
    }
    return takes;
}

/* ---- the mark ---- */

/* Never 0. */
static uint32_t mark_of(const uint8_t *sha256, uint64_t drops)
{
    uint8_t bytes[40];

    memcpy(bytes, sha256, 32);
    store_le64(bytes + 32, drops);
    return (uint32_t)XXH3_64bits(bytes, sizeof(bytes)) | 1;
}

void staged_mark(const struct staged *staged, const uint8_t sha256[static 32], uint64_t drops)
{
    uint8_t bytes[4];

    store_le32(bytes, mark_of(sha256, drops));
    file_pwrite(staged->records, bytes, sizeof(bytes), HEADER_AT_MARK); /* fails: computed again */
}

bool staged_is_marked(const struct staged *staged, const uint8_t sha256[static 32])
{
    uint8_t bytes[4];

    return pread(staged->records, bytes, sizeof(bytes), HEADER_AT_MARK) == sizeof(bytes) &&
           load_le32(bytes) == mark_of(sha256, staged_drops(staged));
}
