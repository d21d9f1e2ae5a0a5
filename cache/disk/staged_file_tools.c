/* Staged files for the tools that maintain a cache folder. A path comes from a listing of the
 * folder, so it may name anything: only regular files with names of our form are touched. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/scope.h"
#include "cache/disk/inventory.h"
#include "cache/disk/local_file.h"
#include "cache/disk/staged_file_parts.h"

/* 0, -EINVAL: it is no regular file, or -errno. */
static int open_regular(const struct cache_group *group, const char *path, int flags, int *ret)
{
    AUTO_CLOSE int fd = group_open_to_look(group, path, flags);
    struct stat st;

    if (fd < 0) /* a link; a folder; a socket */
        return fd == -ELOOP || fd == -EISDIR || fd == -ENXIO ? -EINVAL : fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    *ret = TAKE_FD(fd);
    return 0;
}

/* Open a file that has the name of a staged file, and its content, if there is any. 0, -EINVAL: it
 * is not one, or -errno. */
static int open_ours(const struct cache_group *group, const char *path, int flags,
                     struct staged *ret)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char content[PATH_MAX];
    int r;

    /* Versions before 4 have names of half as many digits: their digest stays 0, which none has. */
    if (strspn(name, "0123456789abcdef") != strlen(name) ||
        (strlen(name) != DIGEST_TEXT_SIZE - 1 && strlen(name) != STAGED_OLD_DIGITS))
        return -EINVAL;
    if (strlen(name) == DIGEST_TEXT_SIZE - 1)
        hex_parse(name, DIGEST_BYTES, ret->digest);
    r = open_regular(group, path, flags, &ret->records);
    if (r == 0)
        r = staged_shared_new(&ret->shared);
    if (r < 0)
        return r;
    staged_content_path(path, content);
    r = open_regular(group, content, flags, &ret->fd);
    return r == -EINVAL || r == -ENOENT ? 0 : r;
}

/* 0; or -EBADMSG: it has no content. */
static int check_content(const struct staged *staged)
{
    return staged->fd < 0 || staged_drops(staged) == UINT64_MAX ? -EBADMSG : 0;
}

/* Read the header and set the rest. 0, -EBADMSG, -EPROTO or -errno. */
static int read_layout(struct staged *staged, uint8_t header[static HEADER_BYTES], bool *ret_older)
{
    uint32_t version = HEADER_VERSION, block;
    uint64_t size;
    int r = staged_header_read(staged->records, header, &version);

    *ret_older = version < HEADER_VERSION;
    if (r < 0)
        return r;
    block = load_le32(header + HEADER_AT_BLOCK);
    size = load_le64(header + HEADER_AT_SIZE);
    if (block < STAGED_BLOCK_LEAST || block > STAGED_BLOCK_MOST || (block & (block - 1)) ||
        size > STAGED_SIZE_MOST || memcmp(header + HEADER_AT_ID, staged->digest, DIGEST_BYTES) != 0)
        return -EBADMSG;
    staged_layout(staged, header);
    return 0;
}

/* Records that the file is long enough to hold: the header may claim any number. */
static uint64_t records_in_file(const struct staged *staged)
{
    struct stat st;

    if (fstat(staged->records, &st) < 0 || st.st_size <= HEADER_BYTES)
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

/* The kernel may have the content open for a reader when the process that opened it has died. */
static bool is_in_use(const struct staged *staged)
{
    return staged->fd >= 0 &&
           (file_has_lock(staged->fd, LOCK_USE, 1) || file_has_lock(staged->fd, LOCK_SEALED, 1));
}

static uint64_t disk_space(int fd)
{
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

int staged_inspect(const struct cache_group *group, const char *path, struct inventory_file *ret)
{
    struct staged staged = {.fd = -1, .records = -1};
    char url[HEADER_URL_SIZE];
    uint8_t header[HEADER_BYTES];
    bool older = false;
    int r = open_ours(group, path, O_RDONLY, &staged);

    if (r == 0)
        r = read_layout(&staged, header, &older);
    if (staged.records < 0 || (r < 0 && r != -EBADMSG)) {
        staged_close(&staged);
        return r;
    }
    ret->disk = disk_space(staged.records) + disk_space(staged.fd);
    ret->in_use = is_in_use(&staged);
    ret->is_foreign = ret->is_foreign || older;
    ret->is_damaged = !older && (r < 0 || check_content(&staged) < 0);
    ret->size = r == 0 ? staged.size : 0;
    ret->present = r == 0 ? count_present(&staged) : 0;
    if (!ret->is_damaged) {
        get_text(header, HEADER_AT_URL, HEADER_AT_URL_LEN, url, sizeof(url));
        ret->source = strdup(url);
    }
    r = !ret->is_damaged && !ret->source ? -ENOMEM : 0;
    staged_close(&staged);
    return r;
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

/* The same; drop a block that is wrong, if this process may write. A block that looks wrong may be
 * one that another process drops or fetches: it counts as wrong if it is twice, and none has
 * claimed it in between. */
static int verify_block(const struct staged *staged, uint64_t block, uint8_t *buf, bool writes)
{
    int r = look_at(staged, block, buf), dropped = 0;

    if (r != -EBADMSG)
        return r;
    if (!(writes ? staged_claim(staged, block, 1) : staged_unclaimed(staged, block, 1)))
        return 0;
    r = look_at(staged, block, buf);
    if (r == -EBADMSG && writes) {
        dropped = file_lock(staged->fd, F_WRLCK, LOCK_DROP, 1, FILE_LOCK_MS);
        if (dropped == 0) {
            dropped = staged_drop_wrong(staged, block);
            file_lock(staged->fd, F_UNLCK, LOCK_DROP, 1, 0);
        }
    }
    if (writes)
        staged_unclaim(staged, block, 1);
    return dropped < 0 && dropped != -EOPNOTSUPP ? dropped : r; /* its record is cleared anyway */
}

static int verify_all(const struct staged *staged, bool writes, uint64_t *ret_good,
                      uint64_t *ret_bad)
{
    AUTO_FREE uint8_t *buf = malloc(staged->block);
    uint64_t good = 0, bad = 0, end = records_in_file(staged);

    if (!buf)
        return -ENOMEM;
    for (uint64_t block = 0; block < end; block++) {
        int r = verify_block(staged, block, buf, writes);

        if (r < 0 && r != -EBADMSG)
            return r;
        good += r == 1;
        bad += r == -EBADMSG;
    }
    *ret_good = good;
    *ret_bad = bad;
    return 0;
}

/* The path of the content still names what is open. 0 or -ESTALE. */
static int check_name(const struct cache_group *group, const struct staged *staged,
                      const char *path)
{
    char content[PATH_MAX];

    staged_content_path(path, content);
    return group_names(group, content, staged->fd) ? 0 : -ESTALE;
}

int staged_verify(const struct cache_group *group, const char *path, uint64_t *good, uint64_t *bad)
{
    struct staged staged = {.fd = -1, .records = -1};
    uint8_t header[HEADER_BYTES];
    bool older;
    int r = open_ours(group, path, O_RDWR, &staged), writes = r;

    if (r == -EROFS || r == -EACCES || r == -EPERM) {
        staged_close(&staged);
        r = open_ours(group, path, O_RDONLY, &staged);
    }
    if (r == 0 && staged.fd >= 0)
        r = file_lock(staged.fd, F_RDLCK, LOCK_USE, 1, FILE_LOCK_MS);
    if (r == 0 && staged.fd >= 0)
        r = check_name(group, &staged, path);
    if (r == 0)
        r = read_layout(&staged, header, &older);
    if (r == 0)
        r = check_content(&staged);
    if (r == 0)
        r = verify_all(&staged, writes == 0, good, bad);
    if (r == 0 && *bad)
        r = writes;
    staged_close(&staged);
    return r == -ESTALE ? -ENOENT : r;
}

/* Remove both. The content has the locks, so it goes last; alone it is begun again, or removed by
 * the next call. */
static int remove_both(const struct cache_group *group, struct staged *staged, const char *path)
{
    char content[PATH_MAX];
    uint8_t header[HEADER_BYTES];
    uint32_t version;
    int r = 0;

    staged_content_path(path, content);
    if (staged->fd < 0)
        r = file_open_own(group, content, &staged->fd, NULL);
    if (r == 0)
        r = file_lock(staged->fd, F_WRLCK, LOCK_USE, 1, 0);
    if (r == 0 && staged->records >= 0) /* versions before 3 had the locks there */
        r = file_lock(staged->records, F_WRLCK, LOCK_USE, 1, 0);
    if (r == 0)
        r = check_name(group, staged, path);
    if (r == 0 && file_has_lock(staged->fd, LOCK_SEALED, 1))
        r = -EBUSY;
    if (r == 0 && staged->records >= 0 &&
        staged_header_read(staged->records, header, &version) == -EPROTO)
        r = -EPROTO;
    if (r == 0 && staged->records >= 0)
        r = group_unlink(group, path);
    if (r == 0)
        r = group_unlink(group, content);
    return r == -EAGAIN ? -EBUSY : r == -ESTALE ? -ENOENT : r;
}

int staged_remove(const struct cache_group *group, const char *path)
{
    struct staged staged = {.fd = -1, .records = -1};
    char content[PATH_MAX];
    struct stat st;
    int r = open_ours(group, path, O_RDWR, &staged);

    staged_content_path(path, content);
    if (r == -ENOENT && group_stat(group, content, &st) == 0)
        r = 0; /* a content alone */
    if (r == 0)
        r = remove_both(group, &staged, path);
    staged_close(&staged);
    return r;
}
