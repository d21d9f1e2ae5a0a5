#include "cache/disk/small_pieces.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"

#define MAPPED_LEAST  (UINT64_C(64) << 10) /* bytes of a file that is mapped */
#define MAPPED_PIECE  (16 << 10)           /* bytes of a piece above which it is read */
#define PIECES_BEFORE 4                    /* how many pieces ahead memory is asked for */
#define LINE          64
#define SLOW_NS       5000 /* for a piece: it came from a disk; memory takes a tenth of that */

#define FILES_MOST (MAPPED_FILES_MAX / 2) /* mapped here: indexes of labels need the others */

enum mapping { NOT_MAPPED, MAPPED, NEVER_MAPPED };

static _Atomic unsigned mapped_files;

void small_pieces_init(struct small_pieces *small)
{
    lock_init(&small->lock);
    atomic_store(&small->state, NOT_MAPPED);
    small->map = (struct mapped_file){0};
    atomic_store(&small->is_slow, false);
}

void small_pieces_release(struct small_pieces *small)
{
    if (small->map.bytes)
        atomic_fetch_sub(&mapped_files, 1);
    mapped_file_close(&small->map);
    lock_release(&small->lock);
}

/* Is the file on a disk of this machine? On a network filesystem, or one in user space, each page
 * that is not in memory would be a request of its own. */
static bool is_on_disk(int fd)
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

static void map(struct small_pieces *small, int fd, uint64_t size)
{
    LOCK_SCOPE(&small->lock);
    struct stat st;

    if (atomic_load(&small->state) != NOT_MAPPED)
        return;
    if (size < MAPPED_LEAST || fstat(fd, &st) < 0 || (uint64_t)st.st_size < size ||
        !is_on_disk(fd) || atomic_load(&mapped_files) >= FILES_MOST ||
        mapped_file_open(fd, size, &small->map) < 0) {
        atomic_store(&small->state, NEVER_MAPPED);
        return;
    }
    atomic_fetch_add(&mapped_files, 1);
    /* A page that is not in memory is read alone, as a small read() would. */
    madvise((void *)(uintptr_t)small->map.bytes, small->map.size, MADV_RANDOM);
    atomic_store(&small->state, MAPPED);
}

/* Ask for the first lines of a piece, which lies anywhere in the file. The processor itself asks
 * for those behind them. */
static void ask_memory(const uint8_t *bytes, const struct blob_piece *piece)
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

/* Have the kernel read all pieces at once, so that the copy does not wait for one after another. */
static void ask_disk(const struct small_pieces *small, const struct blob_piece *pieces, size_t n)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;

    for (size_t i = 0; i < n; i++) {
        uintptr_t from = (uintptr_t)(small->map.bytes + pieces[i].off), to = from + pieces[i].len;

        madvise((void *)(from & ~page), to - (from & ~page), // NOLINT(performance-no-int-to-ptr)
                MADV_WILLNEED);
    }
}

int small_pieces_read(struct small_pieces *small, int fd, uint64_t size,
                      const struct blob_piece *pieces, size_t n)
{
    int64_t began;

    if (!are_small(pieces, n))
        return -EOPNOTSUPP;
    if (atomic_load(&small->state) == NOT_MAPPED)
        map(small, fd, size);
    if (atomic_load(&small->state) != MAPPED || mapped_file_is_lost(&small->map))
        return -EOPNOTSUPP;
    if (atomic_load(&small->is_slow))
        ask_disk(small, pieces, n);
    began = monotonic_ns();
    for (size_t i = 0; i < n; i++) {
        if (i + PIECES_BEFORE < n)
            ask_memory(small->map.bytes, &pieces[i + PIECES_BEFORE]);
        memcpy(pieces[i].buf, small->map.bytes + pieces[i].off, pieces[i].len);
    }
    atomic_store_explicit(&small->is_slow, monotonic_ns() - began > (int64_t)n * SLOW_NS,
                          memory_order_relaxed);
    /* What was cut off, or cannot be read, has been copied as zeros; a read gives the reason. */
    return mapped_file_is_lost(&small->map) ? -EOPNOTSUPP : 0;
}
