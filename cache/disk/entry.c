/* Invariants of a folder of entries:
 *  1. A file named <id> is whole: content, source, then a trailer that repeats its id and their
 *     sizes.
 *  2. <id>.part is written by the holder of its flock only; a process that dies frees it, and the
 *     next one starts it again. A command that writes to it holds the flock as well: it has
 * inherited it with the descriptor. A process that waits takes the name from a file that grows too
 * slowly; its holder, which may only have been stopped, then keeps what it makes to itself. */
#include "cache/disk/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "cache/disk/entry_sink.h"
#include "cache/disk/local_file.h"
#include "cache/disk/quota.h"

#define TRAILER_BYTES   64
#define TRAILER_VERSION 5
#define SUM_AT          56
#define SUM_BYTES       (UINT64_C(1) << 20) /* read at a time */
#define LOOK_MS         20                  /* between looks at a file that another process makes */
#define WAIT_S          5                   /* in all, and a second more for every */
#define WAIT_BYTES      (UINT64_C(64) << 10) /* that it grows; after that it is begun again */
#define WAITS           2 /* for as many makers; then we make it without a name */

static int make_id(const char *sub, const char *identity, char ret[static ENTRY_ID_SIZE])
{
    const struct iovec field[] = {{(char *)(uintptr_t)sub, strlen(sub)},
                                  {(char *)(uintptr_t)identity, strlen(identity)}};
    uint8_t digest[DIGEST_BYTES];
    int r = digest_fields(field, ARRAY_LEN(field), digest);

    if (r == 0)
        digest_text(digest, ret);
    return r;
}

/* Never cuts within a character. */
static void copy_source(const char *source, char ret[static ENTRY_SOURCE_MAX + 1])
{
    size_t len = strlen(source), cut = ENTRY_SOURCE_MAX - 3;

    if (len <= ENTRY_SOURCE_MAX) {
        memcpy(ret, source, len + 1);
        return;
    }
    while (cut > ENTRY_SOURCE_MAX - 6 && ((unsigned char)source[cut] & 0xc0) == 0x80)
        cut--;
    memcpy(ret, source, cut);
    memcpy(ret + cut, "...", 4);
}

int entry_init(struct entry *ret, const struct cache_folder *cache, const char *sub,
               const char *identity, const char *source, struct diag *d)
{
    int r = make_id(sub, identity, ret->id);

    if (r < 0)
        return r;
    copy_source(source, ret->source);
    ret->quota = cache->quota;
    ret->group = cache->group;
    return cache_folder_sub(cache, sub, ret->folder, sizeof(ret->folder), d);
}

uint64_t entry_tail(const struct entry *entry)
{
    return strlen(entry->source) + TRAILER_BYTES;
}

/* named: bytes of the source; sum: the CRC-32 of the content and the source. */
static void make_trailer(const char *id, uint64_t size, uint32_t named, uint32_t sum,
                         uint8_t ret[static TRAILER_BYTES])
{
    memset(ret, 0, TRAILER_BYTES);
    memcpy(ret, "epochfs", 8);
    store_le32(ret + 8, TRAILER_VERSION);
    store_le32(ret + 12, named);
    store_le64(ret + 16, size);
    hex_parse(id, DIGEST_BYTES,
              ret + 24); /* the tools' id of an older version is no digest: its place is 0 */
    store_le32(ret + SUM_AT, sum);
    store_le32(ret + 60, (uint32_t)crc32_z(0, ret, 60));
}

/* The CRC-32 of the first size bytes. */
static int sum_bytes(int fd, uint64_t size, uint32_t *ret)
{
    AUTO_FREE uint8_t *buf = malloc(SUM_BYTES);
    uint32_t sum = 0;

    if (!buf)
        return -ENOMEM;
    for (uint64_t at = 0; at < size;) {
        size_t n = (size_t)min_u64(SUM_BYTES, size - at);
        int r = file_pread(fd, buf, n, at);

        if (r < 0)
            return r;
        sum = libdeflate_crc32(sum, buf, n);
        at += n;
    }
    *ret = sum;
    return 0;
}

/* The length of the source of an entry that was whole when it was opened: its bytes, or -EBADMSG.
 */
static int source_len(int fd, uint64_t size)
{
    struct stat st;

    if (fstat(fd, &st) < 0 || (uint64_t)st.st_size < size + TRAILER_BYTES ||
        (uint64_t)st.st_size - size - TRAILER_BYTES > ENTRY_SOURCE_MAX)
        return -EBADMSG;
    return (int)((uint64_t)st.st_size - size - TRAILER_BYTES);
}

int entry_source(int fd, uint64_t size, char ret[static ENTRY_SOURCE_MAX + 1])
{
    int len = source_len(fd, size), r = len < 0 ? len : file_pread(fd, ret, (size_t)len, size);

    if (r < 0)
        return r;
    ret[len] = '\0';
    return strlen(ret) == (size_t)len ? 0 : -EBADMSG;
}

int entry_check(int fd, uint64_t size)
{
    int len = source_len(fd, size);
    uint64_t end = size + (uint64_t)len;
    uint8_t stored[4];
    uint32_t sum = 0;
    int r = len < 0 ? len : sum_bytes(fd, end, &sum);

    if (r == 0)
        r = file_pread(fd, stored, sizeof(stored), end + SUM_AT);
    return r == 0 && sum != load_le32(stored) ? -EBADMSG : r;
}

/* The error for a trailer that is not the expected one. */
static int what_is_wrong(const uint8_t found[static TRAILER_BYTES])
{
    bool is_trailer =
        !memcmp(found, "epochfs", 8) && load_le32(found + 60) == (uint32_t)crc32_z(0, found, 60);

    return is_trailer && load_le32(found + 8) != TRAILER_VERSION ? -EPROTO : -EBADMSG;
}

/* What is open as opened (or -errno): 0, -ENOENT, -EBADMSG, -EPROTO or -errno, as entry_inspect().
 */
static int check_done(int opened, const char *path, int *ret_fd, uint64_t *ret_size)
{
    const char *id = strrchr(path, '/') + 1;
    uint8_t found[TRAILER_BYTES], trailer[TRAILER_BYTES];
    uint64_t before; /* bytes of content and source */
    uint32_t named;
    AUTO_CLOSE int fd = opened;
    struct stat st;

    if (fd < 0)
        return fd == -ELOOP ? -ENOENT : fd; /* a link is not ours */
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < TRAILER_BYTES ||
        pread(fd, found, sizeof(found), st.st_size - TRAILER_BYTES) != TRAILER_BYTES)
        return -EBADMSG;
    before = (uint64_t)st.st_size - TRAILER_BYTES;
    named = load_le32(found + 12);
    if (named > ENTRY_SOURCE_MAX || named > before)
        return what_is_wrong(found);
    make_trailer(id, before - named, named, load_le32(found + SUM_AT), trailer);
    if (memcmp(found, trailer, sizeof(trailer)) != 0)
        return what_is_wrong(found);
    *ret_size = before - named;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

void entry_path(const struct entry *entry, const char *suffix, char ret[static PATH_MAX])
{
    snprintf(ret, PATH_MAX, "%s/%s%s", entry->folder, entry->id, suffix);
}

int entry_inspect(const struct cache_group *group, const char *path, int *ret_fd,
                  uint64_t *ret_size)
{
    return check_done(group_open_to_look(group, path, O_RDONLY), path, ret_fd, ret_size);
}

int entry_open(const struct entry *entry, int *ret_fd, uint64_t *ret_size)
{
    char done[PATH_MAX];
    int r;

    entry_path(entry, "", done);
    r = check_done(group_open(&entry->group, done, O_RDONLY, NULL), done, ret_fd, ret_size);
    if (r == 0)
        file_mark_used(*ret_fd);
    return r == -EBADMSG || r == -EPROTO ? -ENOENT : r;
}

int entry_open_checked(const struct entry *entry, int *ret_fd, uint64_t *ret_size)
{
    AUTO_CLOSE int fd = -1;
    int r = entry_open(entry, &fd, ret_size);

    if (r == 0 && *ret_size <= ENTRY_CHECKED)
        r = entry_check(fd, *ret_size);
    if (r == 0)
        *ret_fd = TAKE_FD(fd);
    if (r != -EBADMSG)
        return r;
    entry_remove(entry);
    return -ENOENT;
}

void entry_remove(const struct entry *entry)
{
    char done[PATH_MAX];

    entry_path(entry, "", done);
    group_unlink(&entry->group, done);
}

/* Wait for the lock of the process that makes the file. A file that grows too slowly loses its
 * name: its maker may have been stopped. A file of a group gets no time for growing, because any
 * member may be its maker. 0: it has ended; 1: it took too long; or -errno. */
static int wait_for_maker(const struct cache_group *group, const char *path, int fd)
{
    int64_t since = monotonic_ns();
    uint64_t first = UINT64_MAX, most = 0; /* sizes that were seen */

    for (;;) {
        int r = file_flock(fd, LOOK_MS);
        uint64_t grown;
        struct stat st;

        if (r != -ETIMEDOUT)
            return r;
        if (fstat(fd, &st) < 0)
            return -errno;
        first = min_u64(first, (uint64_t)st.st_size);
        most = max_u64(most, (uint64_t)st.st_size);
        grown = group->is_shared ? 0 : (most - first) / WAIT_BYTES;
        if ((uint64_t)(monotonic_ns() - since) > (WAIT_S + grown) * UINT64_C(1000000000)) {
            r = group_names(group, path, fd) ? group_unlink(group, path) : 0;
            return r < 0 && r != -ENOENT ? r : 1;
        }
    }
}

/* A file that no path names: what is written to it serves this process only. */
static int open_unnamed(const struct entry *entry, int *ret_fd, struct diag *d)
{
    *ret_fd = open(entry->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return *ret_fd >= 0 ? 0
                        : diag_set(d, -EBUSY,
                                   "%s/%s.part: other processes keep it locked. End them, or use "
                                   "another folder with -o cache_dir=DIR",
                                   entry->folder, entry->id);
}

/* Lock path for writing. If the file is renamed or replaced while we wait, try again. */
static int lock_part(const struct entry *entry, const char *path, bool wait, int *ret_fd,
                     struct diag *d)
{
    const struct cache_group *group = &entry->group;

    for (unsigned waits = 0;;) {
        AUTO_CLOSE int fd = -1;
        int r = file_open_own(group, path, &fd, d);

        if (r == 0)
            r = file_flock(fd, 0);
        if (r == -EAGAIN && wait && waits == WAITS)
            return open_unnamed(entry, ret_fd, d);
        if (r == -EAGAIN && wait)
            r = wait_for_maker(group, path, fd);
        if (r < 0)
            return r;
        waits += r > 0;
        if (group_names(group, path, fd)) {
            *ret_fd = TAKE_FD(fd);
            return 0;
        }
    }
}

int entry_begin(const struct entry *entry, bool wait, int *ret_fd, uint64_t *ret_size,
                struct diag *d)
{
    char part[PATH_MAX];
    AUTO_CLOSE int fd = -1;
    int r;

    entry_path(entry, ".part", part);
    r = lock_part(entry, part, wait, &fd, d);
    if (r < 0)
        return r;
    r = entry_open(entry, ret_fd, ret_size);
    if (r == 0 && group_names(&entry->group, part, fd))
        group_unlink(&entry->group, part); /* another process was first; ours is empty */
    if (r != -ENOENT)
        return r < 0 ? r : 1;
    if (ftruncate(fd, 0) < 0)
        return -errno;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* rename(), even if an empty folder is in the way. */
static int rename_over(const struct cache_group *group, const char *part, const char *done)
{
    int r = group_rename(group, part, done);

    if (r != -EISDIR)
        return r;
    r = file_clear_place(group, done, NULL);
    return r < 0 ? r : group_rename(group, part, done);
}

/* Write source and trailer after the content, which has size bytes with the CRC-32 sum. Give the
 * file its final name. */
static int entry_publish(const struct entry *entry, int fd, bool sync, uint64_t size, uint32_t sum)
{
    char part[PATH_MAX], done[PATH_MAX];
    uint8_t tail[ENTRY_SOURCE_MAX + TRAILER_BYTES];
    uint32_t named = (uint32_t)strlen(entry->source);
    int r;

    entry_path(entry, ".part", part);
    entry_path(entry, "", done);
    memcpy(tail, entry->source, named);
    sum = (uint32_t)crc32_z(sum, tail, named);
    make_trailer(entry->id, size, named, sum, tail + named);
    r = file_pwrite(fd, tail, named + TRAILER_BYTES, size);
    if (r == 0 && sync && fdatasync(fd) < 0)
        r = -errno;
    file_mark_used(fd); /* before it can be found */
    /* If another process has begun again meanwhile, ours has no name, and ends with us. */
    if (r == 0 && group_names(&entry->group, part, fd))
        r = rename_over(&entry->group, part, done);
    return r;
}

/* Publish the entry; r < 0: its content could not be made. 0, or -errno and nothing of it remains.
 */
static int entry_end(const struct entry *entry, int fd, bool sync, struct allowance *a, int r,
                     uint64_t size, uint32_t sum)
{
    if (r == 0)
        r = entry_publish(entry, fd, sync, size, sum);
    if (r < 0) {
        entry_abandon(entry, fd, a);
        return r;
    }
    allowance_end(a, size + entry_tail(entry));
    flock(fd, LOCK_UN);
    return 0;
}

int entry_commit(const struct entry *entry, int fd, bool sync, struct allowance *a,
                 uint64_t *ret_size)
{
    off_t size = lseek(fd, 0, SEEK_END);
    uint32_t sum = 0;
    int r = size < 0 ? -errno : sum_bytes(fd, (uint64_t)size, &sum);

    r = entry_end(entry, fd, sync, a, r, (uint64_t)size, sum);
    if (r == 0)
        *ret_size = (uint64_t)size;
    return r;
}

void entry_abandon(const struct entry *entry, int fd, struct allowance *a)
{
    char part[PATH_MAX];

    allowance_drop(a, fd); /* frees the space; the name is removed as well */
    entry_path(entry, ".part", part);
    if (group_names(&entry->group, part, fd))
        group_unlink(&entry->group, part);
}

/* Call it while the written bytes still take their space. */
static void say_disk_is_full(const struct entry_sink *sink, const char *folder, struct diag *d)
{
    struct statvfs fs;

    if (fstatvfs(sink->fd, &fs) == 0)
        diag_set(d, -ENOSPC,
                 "No space left on the disk of %s: expected at least %llu bytes, got %llu free",
                 folder, (unsigned long long)sink->wanted,
                 (unsigned long long)(sink->size + (uint64_t)fs.f_bavail * fs.f_frsize));
}

int entry_make(const struct entry *entry, bool sync, entry_make_fn *make, void *ctx, int *ret_fd,
               uint64_t *ret_size, struct diag *d)
{
    AUTO_CLOSE int fd = -1;
    struct entry_sink sink;
    int r = entry_begin(entry, true, &fd, ret_size, d);

    if (r == 0) {
        r = entry_sink_begin(&sink, entry, fd);
        r = entry_sink_end(&sink, r < 0 ? r : make(ctx, &sink, d));
        if (r == -ENOSPC && sink.allowance.wanted)
            allowance_refused(&sink.allowance, entry->folder, d);
        else if (r == -ENOSPC && sink.wanted)
            say_disk_is_full(&sink, entry->folder, d);
        r = entry_end(entry, fd, sync, &sink.allowance, r, sink.size, sink.sum);
        if (r == 0)
            *ret_size = sink.size;
    }
    if (r == -EISDIR)
        diag_set(d, r, "%s/%s: expected a file, got a folder that is not empty; remove it",
                 entry->folder, entry->id);
    if (r < 0)
        return r;
    *ret_fd = TAKE_FD(fd);
    return 0;
}
