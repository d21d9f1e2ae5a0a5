/* A blob is bound to the state of the file at its opening: its version, and that it has a name.
 * Once any of these differs, the blob serves nothing more (local_check).
 *
 * Many small pieces are copied from a mapping of the file, which the first such read makes: a
 * system call costs more than the copy. Larger ones, and all of a file whose mapping is lost or
 * that must not be mapped, are read. */
#include "cache/disk/local_blob.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include "base/lock.h"
#include "base/mapped_file.h"
#include "base/scope.h"
#include "cache/disk/local_file.h"

#define MAPPED_LEAST  (UINT64_C(64) << 10) /* bytes of a file that is mapped */
#define MAPPED_PIECE  (16 << 10)           /* bytes of a piece above which it is read */
#define PIECES_BEFORE 4                    /* how many pieces ahead memory is asked for */
#define LINE          64

enum mapping { NOT_MAPPED, MAPPED, NEVER_MAPPED };

struct local_blob {
    struct blob blob;
    int fd;
    bool may_be_removed;
    struct file_version version; /* of the whole file; blob.size may be less */
    struct lock lock;            /* of making the mapping */
    _Atomic int mapping;         /* enum mapping; once it is MAPPED, map is constant */
    struct mapped_file map;
};

static int local_pread(struct read_context *rc, const struct blob *blob, void *buf, size_t len,
                       uint64_t off, struct diag *d)
{
    (void)rc;
    (void)d;
    return file_pread(((const struct local_blob *)blob)->fd, buf, len, off);
}

/* Is the file on a disk of this machine? On a network filesystem, or one in user space, each page
 * that is not in memory would be a request of its own. */
static bool local_is_on_disk(int fd)
{
    static const long disks[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,       BTRFS_SUPER_MAGIC,
                                 TMPFS_MAGIC,      OVERLAYFS_SUPER_MAGIC, F2FS_SUPER_MAGIC,
                                 RAMFS_MAGIC,      SQUASHFS_MAGIC,        EROFS_SUPER_MAGIC_V1};
    struct statfs fs;

    if (fstatfs(fd, &fs) < 0)
        return false;
    for (size_t i = 0; i < sizeof(disks) / sizeof(disks[0]); i++)
        if (fs.f_type == disks[i])
            return true;
    return false;
}

static void local_map(struct local_blob *local)
{
    LOCK_SCOPE(&local->lock);
    struct stat st;

    if (atomic_load(&local->mapping) != NOT_MAPPED)
        return;
    if (local->blob.size < MAPPED_LEAST || fstat(local->fd, &st) < 0 ||
        (uint64_t)st.st_size < local->blob.size || !local_is_on_disk(local->fd) ||
        mapped_file_open(local->fd, local->blob.size, &local->map) < 0) {
        atomic_store(&local->mapping, NEVER_MAPPED);
        return;
    }
    /* A page that is not in memory is read alone, as a small read() would. */
    madvise((void *)(uintptr_t)local->map.bytes, local->map.size, MADV_RANDOM);
    atomic_store(&local->mapping, MAPPED);
}

/* Ask for the first lines of a piece, which lies anywhere in the file. The processor itself asks
 * for those behind them. */
static void local_ask(const uint8_t *bytes, const struct blob_piece *piece)
{
    __builtin_prefetch(bytes + piece->off);
    if (piece->len > LINE)
        __builtin_prefetch(bytes + piece->off + LINE);
    if (piece->len > 2 * LINE)
        __builtin_prefetch(bytes + piece->off + 2 * LINE);
}

static bool are_small(const struct blob_piece *pieces, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (pieces[i].len > MAPPED_PIECE)
            return false;
    return true;
}

static int local_pread_many(struct read_context *rc, const struct blob *blob,
                            const struct blob_piece *pieces, size_t n)
{
    struct local_blob *local = (struct local_blob *)(uintptr_t)blob;

    (void)rc;
    if (!are_small(pieces, n))
        return -EAGAIN;
    if (atomic_load(&local->mapping) == NOT_MAPPED)
        local_map(local);
    if (atomic_load(&local->mapping) != MAPPED || mapped_file_is_lost(&local->map))
        return -EAGAIN;
    for (size_t i = 0; i < n; i++) {
        if (i + PIECES_BEFORE < n)
            local_ask(local->map.bytes, &pieces[i + PIECES_BEFORE]);
        memcpy(pieces[i].buf, local->map.bytes + pieces[i].off, pieces[i].len);
    }
    /* What was cut off, or cannot be read, has been copied as zeros; a read gives the reason. */
    return mapped_file_is_lost(&local->map) ? -EAGAIN : 0;
}

static int local_check(const struct blob *blob)
{
    const struct local_blob *local = (const struct local_blob *)blob;
    struct stat st;

    if (fstat(local->fd, &st) < 0)
        return -errno;
    return (st.st_nlink || local->may_be_removed) && file_version_is(&local->version, &st)
               ? 0
               : -ESTALE;
}

static int local_identity(const struct blob *blob, char **ret)
{
    return file_version_text(&((const struct local_blob *)blob)->version, ret);
}

static int local_open_file(const struct blob *blob, uint64_t off, uint64_t len, int *ret_fd,
                           struct diag *d)
{
    const struct local_blob *local = (const struct local_blob *)blob;
    int r = local_check(blob);

    (void)d;
    if (r < 0)
        return r;
    if (off || len != local->version.size)
        return -EOPNOTSUPP;
    *ret_fd = fcntl(local->fd, F_DUPFD_CLOEXEC, 0);
    return *ret_fd < 0 ? -errno : 0;
}

static int local_memory(const struct blob *blob, enum blob_ask ask, uint64_t off, uint64_t len)
{
    return file_memory(((const struct local_blob *)blob)->fd, ask, off, len);
}

static void local_free(struct blob *blob)
{
    struct local_blob *local = (struct local_blob *)blob;

    mapped_file_close(&local->map);
    lock_release(&local->lock);
    scope_close(&local->fd);
    free(blob->name);
    free(blob->source);
    free(blob->etag);
    free(local);
}

static const struct blob_ops local_blob_ops = {.pread = local_pread,
                                               .check = local_check,
                                               .identity = local_identity,
                                               .free = local_free,
                                               .open_file = local_open_file,
                                               .memory = local_memory,
                                               .pread_many = local_pread_many};

int local_blob_new(int fd, const char *name, uint64_t size, bool may_be_removed, struct blob **ret)
{
    struct local_blob *local = calloc(1, sizeof(*local));
    struct stat st;

    if (!local) {
        close(fd);
        return -ENOMEM;
    }
    lock_init(&local->lock);
    local->fd = fd;
    local->may_be_removed = may_be_removed;
    local->blob.ops = &local_blob_ops;
    local->blob.name = strdup(name);
    if (!local->blob.name || fstat(fd, &st) < 0) {
        int r = local->blob.name ? -errno : -ENOMEM;

        local_free(&local->blob);
        return r;
    }
    local->version = may_be_removed ? file_version_of_own(&st) : file_version_of(&st);
    file_describe(&st, size, &local->blob);
    *ret = &local->blob;
    return 0;
}
