/* Claims of blocks of a staged file, and drops: invariants 2 and 3 of cache/disk/staged_file.c. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/scope.h"
#include "cache/disk/local_file.h"
#include "cache/disk/staged_file_parts.h"

#define RECORDS_CHUNK 512 /* records, in two pages at most */

/* ---- claims ---- */

uint64_t staged_unclaimed(const struct staged *staged, uint64_t first, uint64_t n)
{
    while (n) {
        struct flock other = {.l_type = F_WRLCK,
                              .l_whence = SEEK_SET,
                              .l_start = (off_t)(LOCK_CLAIMS + first),
                              .l_len = (off_t)n};

        if (fcntl(staged->fd, F_OFD_GETLK, &other) < 0)
            return 0;
        if (other.l_type == F_UNLCK)
            return n;
        /* That claim is in the way; perhaps it is not the first one. */
        if ((uint64_t)other.l_start <= LOCK_CLAIMS + first)
            return 0;
        n = min_u64(n, (uint64_t)other.l_start - LOCK_CLAIMS - first);
    }
    return 0;
}

uint64_t staged_claim(const struct staged *staged, uint64_t first, uint64_t n)
{
    while (n) {
        int r = file_lock(staged->fd, F_WRLCK, LOCK_CLAIMS + first, n, false);

        if (r == 0)
            return n;
        n = r == -EAGAIN ? staged_unclaimed(staged, first, n) : 0;
    }
    return 0;
}

void staged_unclaim(const struct staged *staged, uint64_t first, uint64_t n)
{
    if (n)
        file_lock(staged->fd, F_UNLCK, LOCK_CLAIMS + first, n, false);
}

/* ---- drops ---- */

/* Clear records. Pages without any record are not written: they may be holes, and a disk on which
 * blocks are dropped may have no space for new pages. */
static int clear_records(const struct staged *staged, uint64_t first, uint64_t n)
{
    static const uint64_t zeros[RECORDS_CHUNK];
    uint64_t record[RECORDS_CHUNK];

    for (uint64_t at = 0; at < n; at += RECORDS_CHUNK) {
        size_t some = (size_t)min_u64(n - at, RECORDS_CHUNK), from = 0, to = some;
        int r;

        staged_read_records(staged, first + at, some, record);
        while (from < to && !record[from])
            from++;
        while (to > from && !record[to - 1])
            to--;
        if (from == to)
            continue;
        r = staged_publish(staged, first + at + from, to - from, zeros);
        if (r < 0)
            return r;
    }
    return 0;
}

/* A count that cannot be read stays that way: it invalidates more than any number would. */
static int count_drop(const struct staged *staged)
{
    uint64_t drops = staged_drops(staged);

    return drops == UINT64_MAX ? 0
                               : staged_set_drops(staged, drops + 1 == UINT64_MAX ? 1 : drops + 1);
}

static int punch(const struct staged *staged, uint64_t off, uint64_t len)
{
    if (fallocate(staged->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  (off_t)(staged->data + off), (off_t)len) == 0)
        return 0;
    return errno == ENOSYS ? -EOPNOTSUPP : -errno;
}

int staged_drop_claimed(const struct staged *staged, uint64_t first, uint64_t n)
{
    int r = clear_records(staged, first, n);

    if (r == 0)
        r = count_drop(staged);
    if (r < 0)
        return r;
    return punch(staged, first * staged->block,
                 min_u64(n * staged->block, staged->size - first * staged->block));
}

/* Drop those of n blocks that no process has claimed. *ret_times: how often drops were counted. */
static int drop_free(const struct staged *staged, uint64_t first, uint64_t n, uint64_t *ret_times)
{
    uint64_t times = 0;
    int r = 0;

    while (r == 0 && n) {
        uint64_t some = staged_claim(staged, first, n);

        if (some) {
            r = staged_drop_claimed(staged, first, some);
            staged_unclaim(staged, first, some);
            times++;
        }
        first += some ? some : 1;
        n -= some ? some : 1;
    }
    if (r == 0)
        *ret_times = times;
    return r;
}

/* Open the file once more, to have locks of its own; they end when it is closed. */
static int open_again(const struct staged *staged)
{
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", staged->fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Drop one range. A write to the same file meanwhile would hide what is freed, and the cache would
 * seem fuller than it is: so no thread of this process writes. The file system does one of both at
 * a time anyway. Other processes may write, so the freed space is measured for each range, not once
 * for all. */
static int drop_range(const struct staged *own, const struct staged_range *range,
                      uint64_t *ret_times, uint64_t *freed)
{
    LOCK_SCOPE(own->space);
    struct stat before, after;
    uint64_t times = 0;
    int r = fstat(own->fd, &before) < 0 ? -errno : 0;

    if (r == 0)
        r = drop_free(own, range->first, range->n, &times);
    if (r == 0 && fstat(own->fd, &after) < 0)
        r = -errno;
    if (r < 0)
        return r;
    *ret_times = times;
    if (before.st_blocks > after.st_blocks)
        *freed += (uint64_t)(before.st_blocks - after.st_blocks) * 512;
    return 0;
}

int staged_drop_ranges(const struct staged *staged, const struct staged_range *ranges, size_t n,
                       struct staged_dropped *ret)
{
    struct staged own = *staged;
    AUTO_CLOSE int fd = -1;
    uint64_t times = 0, freed = 0, drops;
    int r;

    fd = own.fd = open_again(staged);
    if (fd < 0)
        return fd;
    r = file_lock(fd, F_WRLCK, LOCK_DROP, 1, true);
    if (r < 0)
        return r;
    drops = staged_drops(&own);
    /* Try a range behind the content, where nothing can be lost: can the file system punch holes?
     */
    r = punch(&own, (staged->blocks + 1) * staged->block, PAGE);
    for (size_t i = 0; r == 0 && i < n; i++) {
        uint64_t some = 0;

        r = drop_range(&own, &ranges[i], &some, &freed);
        times += some;
    }
    if (r < 0)
        return r;
    *ret = (struct staged_dropped){.freed = freed, .before = UINT64_MAX, .after = UINT64_MAX};
    if (drops != UINT64_MAX && staged_drops(&own) == drops + times) {
        ret->before = drops;
        ret->after = drops + times;
    }
    return 0;
}

int staged_mend(const struct staged *staged, const struct staged_key *key)
{
    struct staged own = *staged;
    uint8_t header[HEADER_BYTES];
    AUTO_CLOSE int fd = -1;
    int r;

    fd = own.fd = open_again(staged);
    if (fd < 0)
        return fd;
    staged_make_header(own.id, key, header);
    r = file_lock(fd, F_WRLCK, LOCK_HEADER, 1, true);
    return r < 0 ? r : staged_prepare(&own, header, key->url, NULL);
}

int staged_drop(const struct staged *staged, uint64_t first, uint64_t n, struct staged_dropped *ret)
{
    const struct staged_range range = {first, n};

    return staged_drop_ranges(staged, &range, 1, ret);
}

int staged_exclude_drops(const struct staged *staged)
{
    AUTO_CLOSE int fd = open_again(staged);
    int r = fd < 0 ? fd : file_lock(fd, F_WRLCK, LOCK_DROP, 1, false);

    return r < 0 ? r : TAKE_FD(fd);
}
