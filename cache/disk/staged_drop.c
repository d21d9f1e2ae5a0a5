/* Claims of blocks of a staged file, drops, and the seal of its content: invariants 2, 3, 6 and 7
 * of cache/disk/staged_file.c. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
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
        int r = file_lock(staged->fd, F_WRLCK, LOCK_CLAIMS + first, n, 0);

        if (r == 0)
            return n;
        n = r == -EAGAIN ? staged_unclaimed(staged, first, n) : 0;
    }
    return 0;
}

void staged_unclaim(const struct staged *staged, uint64_t first, uint64_t n)
{
    if (n)
        file_lock(staged->fd, F_UNLCK, LOCK_CLAIMS + first, n, 0);
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
    if (fallocate(staged->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)off, (off_t)len) ==
        0)
        return 0;
    return errno == ENOSYS ? -EOPNOTSUPP : -errno;
}

/* Put the counter back behind a sealed content, with a number it never had. LOCK_DROP and
 * LOCK_SEALED are held. The header's number stays if the process dies in between, and means nothing
 * unless another process cuts the content to its size: so no block may be dropped before it is 0. 0
 * or -errno. */
static int unseal(const struct staged *staged)
{
    int r;

    if (!staged_sealed_number(staged))
        return 0;
    r = staged_has_size(staged) ? staged_set_drops(staged, staged_new_drops()) : 0;
    return r < 0 ? r : staged_set_sealed_number(staged, 0);
}

/* LOCK_DROP and LOCK_SEALED are held. */
static int drop_claimed(const struct staged *staged, uint64_t first, uint64_t n)
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
            r = drop_claimed(staged, first, some);
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

/* Open a file again, to have locks of its own; they end when it is closed. */
static int staged_open_again(int fd, int flags)
{
    char path[64];
    int again;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    again = open(path, flags | O_CLOEXEC);
    return again < 0 ? -errno : again;
}

/* Drop one range. A write to the same file meanwhile would hide what is freed, and the cache would
 * seem fuller than it is: so no thread of this process writes. The file system does one of both at
 * a time anyway. Other processes may write, so the freed space is measured for each range, not once
 * for all. */
static int drop_range(const struct staged *again, const struct staged_range *range,
                      uint64_t *ret_times, uint64_t *freed)
{
    LOCK_SCOPE(&again->shared->space);
    struct stat before, after;
    uint64_t times = 0;
    int r = fstat(again->fd, &before) < 0 ? -errno : 0;

    if (r == 0)
        r = drop_free(again, range->first, range->n, &times);
    if (r == 0 && fstat(again->fd, &after) < 0)
        r = -errno;
    if (r < 0)
        return r;
    *ret_times = times;
    if (before.st_blocks > after.st_blocks)
        *freed += (uint64_t)(before.st_blocks - after.st_blocks) * 512;
    return 0;
}

/* A description with locks of its own, which has LOCK_DROP; -EBUSY: another process keeps it;
 * -EAGAIN: the same, and wait_ms is 0; or -errno. */
static int open_to_drop(const struct staged *staged, unsigned wait_ms)
{
    AUTO_CLOSE int fd = staged_open_again(staged->fd, O_RDWR);
    int r = fd < 0 ? fd : file_lock(fd, F_WRLCK, LOCK_DROP, 1, wait_ms);

    return r == -ETIMEDOUT ? -EBUSY : r < 0 ? r : TAKE_FD(fd);
}

int staged_drop_wrong(const struct staged *staged, uint64_t block)
{
    int r = file_lock(staged->fd, F_WRLCK, LOCK_SEALED, 1, 0);
    bool is_sealed;

    if (r == 0) {
        r = unseal(staged);
        if (r == 0)
            r = drop_claimed(staged, block, 1);
        file_lock(staged->fd, F_UNLCK, LOCK_SEALED, 1, 0);
        return r;
    }
    if (r != -EAGAIN)
        return r;
    r = clear_records(staged, block, 1);
    is_sealed = staged_has_size(staged);
    if (r == 0 && is_sealed)
        r = staged_set_sealed_number(staged, staged_new_drops());
    return r < 0 ? r : is_sealed ? staged_touch(staged) : count_drop(staged);
}

int staged_drop_bad(const struct staged *staged, uint64_t block, struct staged_dropped *ret)
{
    struct staged again = *staged;
    AUTO_CLOSE int fd = -1;
    int r = staged_drop_ranges(staged, &(struct staged_range){block, 1}, 1, ret);

    if (r != -EBUSY)
        return r;
    fd = again.fd = open_to_drop(staged, FILE_LOCK_MS);
    if (fd < 0)
        return fd;
    if (!staged_claim(&again, block, 1))
        return -EBUSY;
    r = staged_drop_wrong(&again, block);
    if (r == 0)
        *ret = (struct staged_dropped){.before = UINT64_MAX, .after = UINT64_MAX};
    return r;
}

int staged_drop_ranges(const struct staged *staged, const struct staged_range *ranges, size_t n,
                       struct staged_dropped *ret)
{
    struct staged again = *staged;
    AUTO_CLOSE int fd = -1;
    uint64_t times = 0, freed = 0, drops;
    int r;

    fd = again.fd = open_to_drop(staged, FILE_LOCK_MS);
    if (fd < 0)
        return fd;
    r = file_lock(fd, F_WRLCK, LOCK_SEALED, 1, 0);
    if (r < 0)
        return r == -EAGAIN ? -EBUSY : r;
    /* Try a range behind the content, where nothing can be lost: can the file system punch holes?
     */
    r = punch(&again, (staged->blocks + 1) * staged->block, PAGE);
    if (r == 0)
        r = unseal(&again);
    drops = staged_drops(&again);
    for (size_t i = 0; r == 0 && i < n; i++) {
        uint64_t some = 0;

        r = drop_range(&again, &ranges[i], &some, &freed);
        times += some;
    }
    if (r < 0)
        return r;
    *ret = (struct staged_dropped){.freed = freed, .before = UINT64_MAX, .after = UINT64_MAX};
    if (drops != UINT64_MAX && staged_drops(&again) == drops + times) {
        ret->before = drops;
        ret->after = drops + times;
    }
    return 0;
}

/* The number of drops with which the header was that one. UINT64_MAX: it is another. Who begins a
 * file again cuts the content first, and writes the number last. */
static uint64_t drops_with(const struct staged *staged, const uint8_t header[static HEADER_BYTES])
{
    uint64_t drops = staged_drops(staged);
    uint8_t found[HEADER_BYTES];
    uint32_t version;

    return staged_header_read(staged->records, found, &version) == 0 &&
                   !memcmp(found, header, HEADER_AT_MARK) && staged_drops(staged) == drops
               ? drops
               : UINT64_MAX;
}

uint64_t staged_mend(const struct staged *staged, const struct staged_key *key)
{
    struct staged again = *staged;
    uint8_t header[HEADER_BYTES];
    AUTO_CLOSE int fd = -1;
    uint64_t drops;

    staged_make_header(again.digest, key, header);
    drops = drops_with(staged, header);
    if (drops != UINT64_MAX)
        return drops;
    fd = again.fd = staged_open_again(staged->fd, O_RDWR);
    if (fd < 0 || file_lock(fd, F_WRLCK, LOCK_HEADER, 1, FILE_LOCK_MS) < 0 ||
        staged_prepare(&again, staged->fd, header, key->url, NULL) < 0)
        return UINT64_MAX;
    return staged_drops(&again);
}

int staged_exclude_drops(const struct staged *staged)
{
    return open_to_drop(staged, 0);
}

/* ---- the seal ---- */

static bool has_all_records(const struct staged *staged)
{
    uint64_t record[RECORDS_CHUNK];

    for (uint64_t at = 0; at < staged->blocks; at += RECORDS_CHUNK) {
        size_t some = (size_t)min_u64(staged->blocks - at, RECORDS_CHUNK);

        staged_records(staged, at, some, record);
        for (size_t i = 0; i < some; i++)
            if (!record[i])
                return false;
    }
    return true;
}

int staged_seal(const struct staged *staged, const uint8_t *sha256)
{
    struct staged again = *staged;
    AUTO_CLOSE int fd = -1;
    uint64_t drops;
    bool is_marked;
    int r;

    if (!has_all_records(staged))
        return -ENODATA;
    fd = again.fd = staged_exclude_drops(staged);
    if (fd < 0)
        return fd;
    drops = staged_drops(&again);
    if (drops == UINT64_MAX)
        return -EAGAIN;
    if (staged_has_size(&again))
        return 0;
    if (!has_all_records(&again)) /* a drop was under way before */
        return -ENODATA;
    is_marked = sha256 && staged_is_marked(&again, sha256);
    r = staged_set_sealed_number(&again, drops);
    if (r == 0 && ftruncate(again.fd, (off_t)again.size) < 0)
        r = -errno;
    if (r == 0 && is_marked)
        staged_mark(&again, sha256, staged_drops(&again));
    return r;
}

int staged_open_sealed(const struct staged *staged, int *ret_fd)
{
    AUTO_CLOSE int fd = staged_open_again(staged->fd, O_RDONLY);
    int r = fd < 0 ? fd : file_lock(fd, F_RDLCK, LOCK_SEALED, 1, 0);

    if (r < 0)
        return r;
    if (!staged_has_size(staged) || !staged_sealed_number(staged))
        return -EAGAIN;
    *ret_fd = TAKE_FD(fd);
    return 0;
}
