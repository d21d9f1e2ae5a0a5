/* Staged files. Invariants:
 *  1. The header is computed from the key alone. If it is not what the key says, the file is begun
 *     anew: cut to nothing, then the header, then the counter of drops, at the end, with a number
 *     it never had. No lock is needed against readers and writers: see 3 to 5.
 *  2. A writer has claimed the block. It writes the content, then the record.
 *  3. A dropper has claimed the block, too. It clears the record, then counts the drop, then
 *     punches the content. So a reader that reads the counter, then a record, finds either all of
 *     the block, or another counter afterwards.
 *  4. A process that knows the content of a block to be good knows it with a value of the counter:
 *     read before the record, or, by the writer of the block, after the claim and before the
 *     content. When the process reads content later, it then reads the counter, which must be the
 *     same.
 *  5. The counter is the last part of the file. Cutting the file short removes the counter first,
 *     and no later write makes the file that long again except (1): content and records are before
 *     the counter, and a counter that cannot be read is never raised. So a file that was cut has no
 *     counter, or later another value, whatever has become of the bytes before it.
 *
 * All locks belong to open descriptions (F_OFD_SETLK): they end with the process, and threads that
 * each open the file exclude one another. Nothing is mapped: if a mapped file is cut short, the
 * process is killed. */
#include "cache/disk/staged_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/scope.h"
#include "cache/disk/local_file.h"
#include "cache/disk/staged_file_parts.h"

#define PAGE          4096
#define RECORD        8   /* bytes */
#define RECORDS_CHUNK 512 /* records, in two pages at most */
#define DROPS_BYTES   8

/* ---- files and locks ---- */

int staged_same_file(int fd, const char *path)
{
    struct stat ours, there;

    if (fstat(fd, &ours) < 0 || lstat(path, &there) < 0)
        return errno == ENOENT ? -ESTALE : -errno;
    return S_ISREG(ours.st_mode) && ours.st_ino == there.st_ino && ours.st_dev == there.st_dev
               ? 0
               : -ESTALE;
}

/* Read up to len bytes, fewer at the end of the file. */
static ssize_t read_at(int fd, void *buf, size_t len, uint64_t off)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = pread(fd, (uint8_t *)buf + done, len - done, (off_t)(off + done));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

static int write_at(int fd, const void *bytes, size_t len, uint64_t off)
{
    const uint8_t *at = bytes;

    while (len) {
        ssize_t n = pwrite(fd, at, len, (off_t)off);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        at += n;
        off += (uint64_t)n;
        len -= (size_t)n;
    }
    return 0;
}

/* ---- the header ---- */

void staged_layout(struct staged *ret, uint64_t size, uint32_t block)
{
    ret->size = size;
    ret->block = block;
    ret->blocks = ceil_div(size, block);
    ret->data = ceil_div(HEADER_BYTES + RECORD * ret->blocks, block) * block;
    ret->end = ceil_div(ret->data + size, DROPS_BYTES) * DROPS_BYTES; /* in one page */
}

void staged_seed(struct staged *staged)
{
    staged->seed = XXH3_64bits(staged->id, HEADER_ID_LEN);
}

static void make_id(const struct staged_key *key, char ret[static 33])
{
    uint64_t url = XXH3_64bits(key->url, strlen(key->url));
    uint8_t all[8 * 5];

    store_le64(all, url);
    store_le64(all + 8, XXH3_64bits(key->version, strlen(key->version)));
    store_le64(all + 16, key->size);
    store_le64(all + 24, key->block);
    store_le64(all + 32, HEADER_VERSION); /* so that files of older versions have other names */
    snprintf(ret, 33, "%016" PRIx64 "%016" PRIx64, url, (uint64_t)XXH3_64bits(all, sizeof(all)));
}

static void put_text(uint8_t *header, size_t at, size_t capacity, size_t at_len, const char *text)
{
    size_t len = strlen(text);

    store_le32(header + at_len, (uint32_t)min_u64(len, UINT32_MAX));
    memcpy(header + at, text, len < capacity ? len : capacity);
}

static void make_header(const char *id, const struct staged_key *key,
                        uint8_t ret[static HEADER_BYTES])
{
    memset(ret, 0, HEADER_BYTES);
    memcpy(ret, HEADER_MAGIC, 8);
    store_le32(ret + HEADER_AT_VERSION, HEADER_VERSION);
    store_le32(ret + HEADER_AT_BLOCK, key->block);
    store_le64(ret + HEADER_AT_SIZE, key->size);
    memcpy(ret + HEADER_AT_ID, id, HEADER_ID_LEN);
    put_text(ret, HEADER_AT_URL, HEADER_URL_SIZE, HEADER_AT_URL_LEN, key->url);
    put_text(ret, HEADER_AT_NAMED, HEADER_NAMED_SIZE, HEADER_AT_NAMED_LEN, key->version);
    store_le32(ret + HEADER_AT_CRC, (uint32_t)crc32_z(0, ret, HEADER_AT_CRC));
}

int staged_header_read(int fd, const char *id, uint8_t ret[static HEADER_BYTES],
                       uint32_t *ret_version)
{
    ssize_t n = read_at(fd, ret, HEADER_BYTES, 0);

    if (n < 0 && n != -EIO)
        return (int)n;
    if (n != HEADER_BYTES || memcmp(ret, HEADER_MAGIC, 8) != 0 ||
        load_le32(ret + HEADER_AT_CRC) != (uint32_t)crc32_z(0, ret, HEADER_AT_CRC))
        return -EBADMSG;
    *ret_version = load_le32(ret + HEADER_AT_VERSION);
    if (*ret_version > HEADER_VERSION)
        return -EPROTO;
    if (*ret_version < HEADER_VERSION) /* no longer used: this version would give it another id */
        return -EBADMSG;
    return memcmp(ret + HEADER_AT_ID, id, HEADER_ID_LEN) == 0 ? 0 : -EBADMSG;
}

/* A counter that was never used before, and is not 0. */
static uint64_t new_drops(void)
{
    uint64_t random;

    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        random = (uint64_t)now_ns() ^ (uint64_t)monotonic_ns() << 20 ^ (uint64_t)getpid() << 40;
    return random >> 1 | 1;
}

static int set_drops(const struct staged *staged, uint64_t drops)
{
    uint8_t bytes[DROPS_BYTES];

    store_le64(bytes, drops);
    return write_at(staged->fd, bytes, sizeof(bytes), staged->end);
}

/* Cut the file to nothing. LOCK_DROP keeps out drops, whose count would overwrite the new number.
 */
static int begin_anew(const struct staged *staged, const uint8_t header[static HEADER_BYTES])
{
    int r = file_lock(staged->fd, F_WRLCK, LOCK_DROP, 1, true);

    if (r == 0)
        r = ftruncate(staged->fd, 0) < 0 ? -errno : write_at(staged->fd, header, HEADER_BYTES, 0);
    if (r == 0)
        r = set_drops(staged, new_drops());
    file_lock(staged->fd, F_UNLCK, LOCK_DROP, 1, false);
    return r;
}

/* Ensure that the file has that header, and a count of drops; LOCK_HEADER is held. */
static int prepare(const struct staged *staged, const uint8_t want[static HEADER_BYTES],
                   const char *path, struct diag *d)
{
    uint8_t found[HEADER_BYTES];
    uint32_t version = 0;
    int r = staged_header_read(staged->fd, staged->id, found, &version);

    if (r == -EPROTO)
        return diag_set(d, r,
                        "staged file %s: want version %d, found %u; remove it, or choose another "
                        "folder with -o cache=DIR",
                        path, HEADER_VERSION, version);
    if (r == 0 && memcmp(found, want, HEADER_AT_MARK) == 0 && staged_drops(staged) != UINT64_MAX)
        return 0;
    if (r < 0 && r != -EBADMSG)
        return diag_set(d, r, "staged file %s: %s", path, strerror(-r));
    r = begin_anew(staged, want);
    return r < 0 ? diag_set(d, r, "staged file %s: %s", path, strerror(-r)) : 0;
}

/* ---- open and close ---- */

/* Open the file and hold LOCK_USE. A process that removes the file holds LOCK_USE exclusively, so
 * once we have it the path may name another file. */
static int open_used(const char *path, int *ret_fd)
{
    for (;;) {
        AUTO_CLOSE int fd =
            open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        struct stat st;
        int r;

        if (fd < 0 || fstat(fd, &st) < 0)
            return -errno;
        if (!S_ISREG(st.st_mode))
            return -EEXIST; /* not ours to write to */
        r = file_lock(fd, F_RDLCK, LOCK_USE, 1, true);
        if (r == 0)
            r = staged_same_file(fd, path);
        if (r == 0)
            *ret_fd = TAKE_FD(fd);
        if (r != -ESTALE)
            return r;
    }
}

static int check_key(const struct staged_key *key, struct diag *d)
{
    if (key->block < STAGED_BLOCK_LEAST || key->block > STAGED_BLOCK_MOST ||
        (key->block & (key->block - 1)))
        return diag_set(d, -EINVAL, "block: want a power of two from %u to %u, found %u",
                        STAGED_BLOCK_LEAST, STAGED_BLOCK_MOST, key->block);
    if (key->size > STAGED_SIZE_MOST)
        return diag_set(d, -EFBIG, "%s: want at most 2^60 bytes, found %" PRIu64, key->url,
                        key->size);
    return 0;
}

int staged_open(struct staged *ret, const struct cache_folder *cache, const struct staged_key *key,
                struct diag *d)
{
    struct staged staged = {.fd = -1};
    char folder[PATH_MAX], path[PATH_MAX];
    uint8_t header[HEADER_BYTES];
    int r = check_key(key, d);

    if (r == 0)
        r = cache_folder_sub(cache, "staged", folder, sizeof(folder), d);
    if (r < 0)
        return r;
    make_id(key, staged.id);
    staged_layout(&staged, key->size, key->block);
    staged_seed(&staged);
    make_header(staged.id, key, header);
    if (snprintf(path, sizeof(path), "%s/%s", folder, staged.id) >= (int)sizeof(path))
        return diag_set(d, -ENAMETOOLONG, "cache folder %s: path too long", cache->path);
    r = open_used(path, &staged.fd);
    if (r == 0)
        r = file_lock(staged.fd, F_WRLCK, LOCK_HEADER, 1, true);
    if (r < 0) {
        staged_close(&staged);
        return diag_set(d, r, "staged file %s: %s", path, strerror(-r));
    }
    r = prepare(&staged, header, path, d);
    file_lock(staged.fd, F_UNLCK, LOCK_HEADER, 1, false);
    if (r == 0) {
        staged.space = malloc(sizeof(*staged.space));
        r = staged.space ? 0 : -ENOMEM;
    }
    if (r == 0)
        lock_init(staged.space);
    if (r < 0)
        staged_close(&staged);
    else
        *ret = staged;
    return r;
}

void staged_close(struct staged *staged)
{
    if (staged->fd >= 0)
        close(staged->fd);
    staged->fd = -1;
    if (staged->space)
        lock_release(staged->space);
    free(staged->space);
    staged->space = NULL;
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
    if (fstat(staged->fd, &st) < 0 || (uint64_t)st.st_size < staged->end + DROPS_BYTES)
        memset(ret, 0, n * RECORD);
}

void staged_read_records(const struct staged *staged, uint64_t first, size_t n, uint64_t *ret)
{
    ssize_t got = read_at(staged->fd, ret, n * RECORD, HEADER_BYTES + first * RECORD);
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
    got = read_at(staged->fd, buf, len, staged->data + off);
    if (got < 0)
        return (int)got;
    return (size_t)got == len ? 0 : -ENODATA;
}

uint64_t staged_drops(const struct staged *staged)
{
    uint8_t bytes[DROPS_BYTES];
    uint64_t drops;

    if (read_at(staged->fd, bytes, sizeof(bytes), staged->end) != sizeof(bytes))
        return UINT64_MAX;
    drops = load_le64(bytes);
    return drops ? drops : UINT64_MAX; /* 0: the file was cut and made long again */
}

int staged_write(const struct staged *staged, const void *bytes, size_t len, uint64_t off)
{
    if (off > staged->size || len > staged->size - off)
        return -EINVAL;
    LOCK_SCOPE(staged->space);

    return write_at(staged->fd, bytes, len, staged->data + off);
}

int staged_publish(const struct staged *staged, uint64_t first, size_t n, const uint64_t *records)
{
    uint8_t bytes[64 * RECORD];
    int r = 0;

    for (size_t at = 0; r == 0 && at < n;) {
        size_t some = (size_t)min_u64(n - at, sizeof(bytes) / RECORD);

        for (size_t i = 0; i < some; i++)
            store_le64(bytes + i * RECORD, records[at + i]);
        r = write_at(staged->fd, bytes, some * RECORD, HEADER_BYTES + (first + at) * RECORD);
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

        takes += lseek(staged->fd, at, SEEK_DATA) == at ? 0 : PAGE;
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
    write_at(staged->fd, bytes, sizeof(bytes), HEADER_AT_MARK); /* fails: computed again */
}

bool staged_is_marked(const struct staged *staged, const uint8_t sha256[static 32])
{
    uint8_t bytes[4];

    return pread(staged->fd, bytes, sizeof(bytes), HEADER_AT_MARK) == sizeof(bytes) &&
           load_le32(bytes) == mark_of(sha256, staged_drops(staged));
}

/* ---- claims ---- */

uint64_t staged_claim(const struct staged *staged, uint64_t first, uint64_t n)
{
    while (n) {
        struct flock other = {.l_type = F_WRLCK,
                              .l_whence = SEEK_SET,
                              .l_start = (off_t)(LOCK_CLAIMS + first),
                              .l_len = (off_t)n};
        int r = file_lock(staged->fd, F_WRLCK, LOCK_CLAIMS + first, n, false);

        if (r == 0)
            return n;
        /* Which claim is in the way? Perhaps not the first one. */
        if (r != -EAGAIN || fcntl(staged->fd, F_OFD_GETLK, &other) < 0)
            return 0;
        if (other.l_type == F_UNLCK)
            continue; /* that claim has ended */
        if ((uint64_t)other.l_start <= LOCK_CLAIMS + first)
            return 0;
        n = min_u64(n, (uint64_t)other.l_start - LOCK_CLAIMS - first);
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

    return drops == UINT64_MAX ? 0 : set_drops(staged, drops + 1 == UINT64_MAX ? 1 : drops + 1);
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
    int r = 0;

    *ret_times = 0;
    while (r == 0 && n) {
        uint64_t some = staged_claim(staged, first, n);

        if (some) {
            r = staged_drop_claimed(staged, first, some);
            staged_unclaim(staged, first, some);
            ++*ret_times;
        }
        first += some ? some : 1;
        n -= some ? some : 1;
    }
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
    int r = fstat(own->fd, &before) < 0 ? -errno : 0;

    *ret_times = 0;
    if (r == 0)
        r = drop_free(own, range->first, range->n, ret_times);
    if (r == 0 && fstat(own->fd, &after) < 0)
        r = -errno;
    if (r == 0 && before.st_blocks > after.st_blocks)
        *freed += (uint64_t)(before.st_blocks - after.st_blocks) * 512;
    return r;
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
        uint64_t some;

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
    make_header(own.id, key, header);
    r = file_lock(fd, F_WRLCK, LOCK_HEADER, 1, true);
    return r < 0 ? r : prepare(&own, header, key->url, NULL);
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
