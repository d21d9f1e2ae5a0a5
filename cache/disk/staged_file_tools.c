/* Staged files for the tools that maintain a cache folder. A path comes from a listing of the
 * folder, so it may name anything: only regular files with names of our form are touched. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/scope.h"
#include "cache/disk/local_file.h"
#include "cache/disk/staged_file_parts.h"

/* Open a file that has the name of a staged file. 0, -EINVAL: it is not one, or -errno. */
static int open_ours(const char *path, int flags, struct staged *ret)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    AUTO_CLOSE int fd = -1;
    struct stat st;

    if (strlen(name) != HEADER_ID_LEN || strspn(name, "0123456789abcdef") != HEADER_ID_LEN)
        return -EINVAL;
    fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) /* a link; a folder; a socket */
        return errno == ELOOP || errno == EISDIR || errno == ENXIO ? -EINVAL : -errno;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    memcpy(ret->id, name, HEADER_ID_LEN + 1);
    staged_seed(ret);
    ret->fd = TAKE_FD(fd);
    return 0;
}

/* Read the header and set the rest. 0, -EBADMSG, -EPROTO or -errno. */
static int read_layout(struct staged *staged, uint8_t header[static HEADER_BYTES])
{
    uint32_t version, block;
    uint64_t size;
    int r = staged_header_read(staged->fd, staged->id, header, &version);

    if (r < 0)
        return r;
    block = load_le32(header + HEADER_AT_BLOCK);
    size = load_le64(header + HEADER_AT_SIZE);
    if (block < STAGED_BLOCK_LEAST || block > STAGED_BLOCK_MOST || (block & (block - 1)) ||
        size > STAGED_SIZE_MOST)
        return -EBADMSG;
    staged_layout(staged, size, block);
    return 0;
}

/* Records that the file is long enough to hold: the header may claim any number. */
static uint64_t records_in_file(const struct staged *staged)
{
    struct stat st;

    if (fstat(staged->fd, &st) < 0 || st.st_size <= HEADER_BYTES)
        return 0;
    return min_u64(staged->blocks, ((uint64_t)st.st_size - HEADER_BYTES) / 8);
}

static uint64_t count_present(const struct staged *staged)
{
    uint64_t record[512], bytes = 0, end = records_in_file(staged);

    for (uint64_t at = 0; at < end; at += ARRAY_LEN(record)) {
        size_t n = (size_t)min_u64(end - at, ARRAY_LEN(record));

        staged_records(staged, at, n, record);
        for (size_t i = 0; i < n; i++)
            bytes += record[i] ? staged_block_len(staged, at + i) : 0;
    }
    return bytes;
}

static void get_text(const uint8_t *header, size_t at, size_t at_len, char *ret, size_t capacity)
{
    size_t len = (size_t)min_u64(load_le32(header + at_len), capacity - 1);

    memcpy(ret, header + at, len);
    ret[len] = '\0';
}

static bool is_in_use(int fd)
{
    struct flock other = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)LOCK_USE, .l_len = 1};

    return fcntl(fd, F_OFD_GETLK, &other) < 0 || other.l_type != F_UNLCK;
}

int staged_inspect(const char *path, struct staged_info *ret)
{
    struct staged staged = {.fd = -1};
    struct staged_info info = {.damaged = true};
    uint8_t header[HEADER_BYTES];
    struct stat st;
    int r = open_ours(path, O_RDONLY, &staged);

    if (r < 0)
        return r;
    if (fstat(staged.fd, &st) == 0)
        info.disk = (uint64_t)st.st_blocks * 512;
    info.in_use = is_in_use(staged.fd);
    r = read_layout(&staged, header);
    if (r == 0) {
        info.damaged = staged_drops(&staged) == UINT64_MAX;
        info.size = staged.size;
        info.block = staged.block;
        info.present = count_present(&staged);
        get_text(header, HEADER_AT_URL, HEADER_AT_URL_LEN, info.url, sizeof(info.url));
        get_text(header, HEADER_AT_NAMED, HEADER_AT_NAMED_LEN, info.version, sizeof(info.version));
    }
    staged_close(&staged);
    if (r < 0 && r != -EBADMSG)
        return r;
    *ret = info;
    return 0;
}

/* Check a block. 1: good; 0: not there; -EBADMSG: wrong; or -errno. */
static int look_at(const struct staged *staged, uint64_t block, uint8_t *buf)
{
    uint64_t record;
    int r;

    staged_read_records(staged, block, 1, &record);
    if (!record)
        return 0;
    r = staged_read(staged, buf, staged_block_len(staged, block), block * staged->block);
    if (r < 0)
        return r == -ENODATA || r == -EIO ? -EBADMSG : r;
    return staged_checksum(staged, block, buf) == record ? 1 : -EBADMSG;
}

/* The same for a file that this process may only read. A block that looks wrong may be one that is
 * being dropped or fetched: it counts as wrong if it is twice, and nobody claimed it in between. */
static int check_block(const struct staged *staged, uint64_t block, uint8_t *buf)
{
    struct flock claim = {.l_type = F_RDLCK,
                          .l_whence = SEEK_SET,
                          .l_start = (off_t)(LOCK_CLAIMS + block),
                          .l_len = 1};
    int r = look_at(staged, block, buf);

    if (r == -EBADMSG && fcntl(staged->fd, F_OFD_GETLK, &claim) == 0 && claim.l_type != F_UNLCK)
        return 0;
    return r == -EBADMSG ? look_at(staged, block, buf) : r;
}

/* The same; drop a block that is wrong, unless another process has claimed it. A block that looks
 * wrong may be one that is being dropped or fetched, so only what is found under a claim counts. */
static int verify_block(const struct staged *staged, uint64_t block, uint8_t *buf)
{
    int r = look_at(staged, block, buf), dropped;

    if (r != -EBADMSG)
        return r;
    if (!staged_claim(staged, block, 1))
        return 0;
    r = look_at(staged, block, buf);
    if (r == -EBADMSG) {
        dropped = file_lock(staged->fd, F_WRLCK, LOCK_DROP, 1, true);
        if (dropped == 0)
            dropped = staged_drop_claimed(staged, block, 1);
        file_lock(staged->fd, F_UNLCK, LOCK_DROP, 1, false);
        if (dropped < 0 && dropped != -EOPNOTSUPP) /* its record is cleared all the same */
            r = dropped;
    }
    staged_unclaim(staged, block, 1);
    return r;
}

static int verify_all(const struct staged *staged, bool writes, uint64_t *ret_good,
                      uint64_t *ret_bad)
{
    AUTO_FREE uint8_t *buf = malloc(staged->block);
    uint64_t good = 0, bad = 0, end = records_in_file(staged);

    if (!buf)
        return -ENOMEM;
    for (uint64_t block = 0; block < end; block++) {
        int r = writes ? verify_block(staged, block, buf) : check_block(staged, block, buf);

        if (r < 0 && r != -EBADMSG)
            return r;
        good += r == 1;
        bad += r == -EBADMSG;
    }
    *ret_good = good;
    *ret_bad = bad;
    return 0;
}

int staged_verify(const char *path, uint64_t *good, uint64_t *bad)
{
    struct staged staged = {.fd = -1};
    uint8_t header[HEADER_BYTES];
    int r = open_ours(path, O_RDWR, &staged), writes = r;

    if (r == -EROFS || r == -EACCES || r == -EPERM)
        r = open_ours(path, O_RDONLY, &staged);
    if (r < 0)
        return r;
    r = file_lock(staged.fd, F_RDLCK, LOCK_USE, 1, true);
    if (r == 0)
        r = staged_same_file(staged.fd, path);
    if (r == 0)
        r = read_layout(&staged, header);
    if (r == 0 && staged_drops(&staged) == UINT64_MAX)
        r = -EBADMSG;
    if (r == 0)
        r = verify_all(&staged, writes == 0, good, bad);
    if (r == 0 && *bad)
        r = writes;
    staged_close(&staged);
    return r == -ESTALE ? -ENOENT : r;
}

int staged_remove(const char *path)
{
    struct staged staged = {.fd = -1};
    uint8_t header[HEADER_BYTES];
    uint32_t version;
    int r = open_ours(path, O_RDWR, &staged);

    if (r < 0)
        return r;
    r = file_lock(staged.fd, F_WRLCK, LOCK_USE, 1, false);
    if (r == 0)
        r = staged_same_file(staged.fd, path);
    if (r == 0 && staged_header_read(staged.fd, staged.id, header, &version) == -EPROTO)
        r = -EPROTO;
    if (r == 0 && unlink(path) < 0)
        r = -errno;
    staged_close(&staged);
    return r == -EAGAIN ? -EBUSY : r == -ESTALE ? -ENOENT : r;
}
