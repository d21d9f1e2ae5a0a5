/* DIR/room has a head with the total, and a slot for each process with what it has in flight:
 * taken, and neither written nor returned. docs/spec/cache-format.md has the tables. Invariants:
 *  1. total >= what the files take + what living processes have in flight. So the limit holds. The
 *     total is raised before the slot, because the slot's owner may be killed in between.
 *  2. A write moves bytes from the slot to the files; the total remains. So what a killed process
 * had taken stays in the total, written or not, until the files are counted.
 *  3. A count is what was in flight before it, plus the files, plus all that was taken since it
 *     began. Bytes written during the count may be counted twice, but are never missed.
 *  4. A slot has an owner while its byte is locked. Only the owner writes it, and keeps a copy of
 *     its value in memory.
 *
 * The locks of the file belong to the open description (F_OFD_SETLK), which a forked child shares
 * with its parent; threads also need struct lock. */
#include "cache/disk/quota.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "base/folder.h"
#include "base/scope.h"
#include "cache/disk/inventory.h"
#include "cache/disk/local_file.h"

#define HEAD_BYTES      64
#define HEAD_MAGIC      "epochrom"
#define HEAD_VERSION    1
#define SLOT_BYTES      16
#define SLOTS           1024
#define SLOTS_READ      8 /* times, while a slot is being written: quota_settle() has no LOCK_TOTAL */
#define LOCK_SLOTS      (UINT64_C(1) << 61) /* + slot: it has an owner */
#define LOCK_TOTAL      (UINT64_C(1) << 62) /* held to change the head */
#define UNKNOWN         (UINT64_MAX >> 1)   /* a total that refuses all until a count */
#define RECOUNT_AGAIN_S 3
#define WAIT_AGAIN_S    30 /* after a lock that did not come in time */
#define NS_PER_S        INT64_C(1000000000)
#define DEPTH_MOST      32
#define FREE_AGAIN_S    30 /* after all that was unused had gone */
#define FREE_SHARE      64 /* part of the limit that is freed at a time, at least */

struct quota {
    /* Set by quota_open(), then constant. */
    int fd;
    struct cache_folder folder; /* path and group */
    uint64_t limit;
    unsigned slot;
    const struct clock *clock;
    time_t began;                              /* of this process */
    bool (*keeps)(void *ctx, const char *url); /* staged files that are kept; NULL: none */
    void *keeps_ctx;
    struct lock lock; /* around LOCK_TOTAL */
    /* Guarded by lock: */
    uint64_t in_flight;   /* of this process */
    int64_t next_recount; /* clock_monotonic() from which a refusal may count, */
    int64_t next_wait;    /* from which a call may wait for LOCK_TOTAL, */
    int64_t next_free;    /* and from which there may be unused files again */
    bool is_freeing;      /* a thread removes files */
};

/* ---- the file ---- */

struct head {
    uint64_t total;
    uint64_t taken;    /* by all processes, ever; grows only */
    uint64_t recounts; /* grows only */
};

/* 0; -EBADMSG: the head is damaged; -EPROTO: it is of another version; or -errno. */
static int head_read(int fd, struct head *ret)
{
    uint8_t bytes[HEAD_BYTES];
    ssize_t n = pread(fd, bytes, sizeof(bytes), 0);

    if (n < 0)
        return -errno;
    if (n != HEAD_BYTES || memcmp(bytes, HEAD_MAGIC, 8) != 0 ||
        load_le32(bytes + 60) != (uint32_t)crc32_z(0, bytes, 60))
        return -EBADMSG;
    if (load_le32(bytes + 8) != HEAD_VERSION)
        return -EPROTO;
    ret->total = load_le64(bytes + 16);
    ret->taken = load_le64(bytes + 24);
    ret->recounts = load_le64(bytes + 32);
    return 0;
}

static int head_write(int fd, const struct head *head)
{
    uint8_t bytes[HEAD_BYTES] = HEAD_MAGIC;

    store_le32(bytes + 8, HEAD_VERSION);
    store_le32(bytes + 12, SLOTS);
    store_le64(bytes + 16, head->total);
    store_le64(bytes + 24, head->taken);
    store_le64(bytes + 32, head->recounts);
    store_le32(bytes + 60, (uint32_t)crc32_z(0, bytes, 60));
    return file_pwrite(fd, bytes, sizeof(bytes), 0);
}

/* A head that refuses everything until the files have been counted. */
static int head_begin_anew(int fd, struct head *ret)
{
    *ret = (struct head){.total = UNKNOWN, .recounts = (uint64_t)now_ns()};
    return head_write(fd, ret);
}

static int slot_write(int fd, unsigned slot, uint64_t in_flight)
{
    uint8_t bytes[SLOT_BYTES] = {0};

    store_le64(bytes, in_flight);
    store_le32(bytes + 8, slot);
    store_le32(bytes + 12, (uint32_t)crc32_z(0, bytes, 12));
    return file_pwrite(fd, bytes, sizeof(bytes), HEAD_BYTES + (uint64_t)slot * SLOT_BYTES);
}

/* What other living processes have in flight; UNKNOWN if a slot is damaged. LOCK_TOTAL is held, so
 * who owns a slot has written it: of those after the end of the file one question is enough. */
static uint64_t others_in_flight(const struct quota *quota)
{
    uint8_t all[SLOTS * SLOT_BYTES] = {0};
    ssize_t n = pread(quota->fd, all, sizeof(all), HEAD_BYTES);
    unsigned written = n < 0 ? 0 : (unsigned)((size_t)n / SLOT_BYTES);
    uint64_t sum = 0;

    if (n < 0 ||
        (written < SLOTS && file_has_lock(quota->fd, LOCK_SLOTS + written, SLOTS - written)))
        return UNKNOWN;
    for (unsigned i = 0; i < written; i++) {
        const uint8_t *at = all + (size_t)i * SLOT_BYTES;
        bool good = load_le32(at + 12) == (uint32_t)crc32_z(0, at, 12) && load_le32(at + 8) == i;

        if ((good && !load_le64(at)) || i == quota->slot ||
            !file_has_lock(quota->fd, LOCK_SLOTS + i, 1))
            continue;
        if (!good || !checked_add(sum, load_le64(at), &sum) || sum > UNKNOWN)
            return UNKNOWN;
    }
    return sum;
}

/* Take both locks, to change the head. 0; -EAGAIN, -ETIMEDOUT: another process keeps it locked;
 * or -errno. Not each call waits for a process that was stopped. */
static int quota_lock(struct quota *quota)
{
    int64_t now = clock_monotonic(quota->clock);
    int r;

    lock_take(&quota->lock);
    r = file_lock(quota->fd, F_WRLCK, LOCK_TOTAL, 1, now < quota->next_wait ? 0 : FILE_LOCK_MS);
    if (r == -ETIMEDOUT)
        quota->next_wait = now + WAIT_AGAIN_S * NS_PER_S;
    if (r < 0)
        lock_drop(&quota->lock);
    return r;
}

bool quota_is_kept(struct quota *quota)
{
    LOCK_SCOPE(&quota->lock);

    return clock_monotonic(quota->clock) < quota->next_wait;
}

static void quota_unlock(struct quota *quota)
{
    file_lock(quota->fd, F_UNLCK, LOCK_TOTAL, 1, 0);
    lock_drop(&quota->lock);
}

/* ---- counting ---- */

/* Add what one thing in a folder takes, with all below it; nothing if it has disappeared meanwhile.
 */
static int count_thing(int folder, const char *name, dev_t device, unsigned depth, uint64_t *sum)
{
    AUTO_DIR DIR *dir = NULL;
    const char *below;
    struct stat st;
    int r = 0;

    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (st.st_dev != device)
        return 0; /* it takes no space on this disk */
    *sum += S_ISDIR(st.st_mode) ? 0 : (uint64_t)st.st_blocks * 512;
    if (!S_ISDIR(st.st_mode) || depth == 0)
        return S_ISDIR(st.st_mode) ? -ELOOP : 0;
    dir = folder_open(folder, name);
    if (!dir)
        return errno == ENOENT ? 0 : -errno;
    for (errno = 0; r == 0 && (below = folder_next(dir)); errno = 0)
        r = count_thing(dirfd(dir), below, device, depth - 1, sum);
    return r == 0 && errno ? -errno : r;
}

static int count_files(const char *path, uint64_t *ret)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    uint64_t sum = 0;
    struct stat st;
    int r = fd < 0 || fstat(fd, &st) < 0 ? -errno
                                         : count_thing(fd, ".", st.st_dev, DEPTH_MOST + 1, &sum);

    if (r == 0)
        *ret = sum;
    return r;
}

/* Before the files are counted: note what is in flight, and how much has been taken. A damaged head
 * is begun again, and refuses everything until a count ends. */
static int recount_begin_locked(struct quota *quota, struct head *head, uint64_t *ret_in_flight)
{
    int r;

    lock_assert_held(&quota->lock);
    r = head_read(quota->fd, head);
    if (r == -EBADMSG)
        r = head_begin_anew(quota->fd, head);
    if (r < 0)
        return r;
    for (unsigned i = 0; i < SLOTS_READ && (!i || *ret_in_flight == UNKNOWN); i++)
        *ret_in_flight = others_in_flight(quota);
    if (!checked_add(*ret_in_flight, quota->in_flight, ret_in_flight))
        *ret_in_flight = UNKNOWN;
    return slot_write(quota->fd, quota->slot, quota->in_flight); /* it may have been damaged */
}

static int recount_end_locked(struct quota *quota, const struct head *before, uint64_t files,
                              uint64_t in_flight)
{
    struct head head;
    int r;

    lock_assert_held(&quota->lock);
    r = head_read(quota->fd, &head);
    if (r < 0)
        return r == -EBADMSG ? -EAGAIN : r; /* the next recount begins it again */
    if (head.taken < before->taken || !checked_add(files, in_flight, &head.total) ||
        !checked_add(head.total, head.taken - before->taken, &head.total) || head.total > UNKNOWN)
        head.total = UNKNOWN;
    head.recounts++;
    return head_write(quota->fd, &head);
}

int quota_recount(struct quota *quota)
{
    uint64_t in_flight, files;
    struct head before;
    int r = quota_lock(quota);

    if (r < 0)
        return r;
    r = recount_begin_locked(quota, &before, &in_flight);
    quota_unlock(quota);
    if (r == 0)
        r = count_files(quota->folder.path, &files);
    if (r == 0)
        r = quota_lock(quota);
    if (r < 0)
        return r;
    r = recount_end_locked(quota, &before, files, in_flight);
    quota_unlock(quota);
    return r;
}

/* ---- open and close ---- */

/* Find a slot that has no owner. */
static int own_slot(struct quota *quota)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        int r = file_lock(quota->fd, F_WRLCK, LOCK_SLOTS + i, 1, 0);

        if (r == 0)
            quota->slot = i;
        if (r != -EAGAIN)
            return r < 0 ? r : slot_write(quota->fd, i, 0);
    }
    return -EUSERS;
}

static int open_room(const struct cache_group *group, const char *path, int *ret, struct diag *d)
{
    AUTO_CLOSE int fd = group_open_or_make(group, path, d);
    struct stat st;

    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EEXIST;
    *ret = TAKE_FD(fd);
    return 0;
}

/* Become one of the processes that share the count. *ret_count: the files must be counted, because
 * there is no other process and the head may date from before a power cut, or because it is
 * damaged. */
static int join_room(struct quota *quota, bool *ret_count)
{
    struct head head;
    bool counts;
    int r = quota_lock(quota);

    if (r < 0)
        return r;
    r = head_read(quota->fd, &head);
    counts = r == -EBADMSG || !file_has_lock(quota->fd, LOCK_SLOTS, SLOTS);
    if (counts && (r == 0 || r == -EBADMSG))
        r = head_begin_anew(quota->fd, &head);
    if (r == 0)
        r = own_slot(quota);
    if (r == 0)
        *ret_count = counts;
    quota_unlock(quota);
    return r;
}

static int quota_start(struct quota *quota, uint64_t limit, unsigned percent, struct diag *d)
{
    char path[PATH_MAX];
    struct statvfs fs;
    bool count = false;
    int r;

    snprintf(path, sizeof(path), "%s/room", quota->folder.path);
    r = open_room(&quota->folder.group, path, &quota->fd, d);
    if (r == 0 && percent && statvfs(quota->folder.path, &fs) < 0)
        r = -errno;
    if (r < 0)
        return r;
    quota->limit =
        percent ? (uint64_t)((double)fs.f_blocks * (double)fs.f_frsize / 100 * percent) : limit;
    r = join_room(quota, &count);
    if (r == -EPROTO)
        return diag_set(d, r,
                        "%s: expected version %d; choose another folder with -o cache_dir=DIR",
                        path, HEAD_VERSION);
    return r == 0 && count ? quota_recount(quota) : r;
}

int quota_open(const struct cache_folder *cache, uint64_t limit, unsigned percent,
               const struct clock *clock, struct quota **ret, struct diag *d)
{
    struct quota *quota = calloc(1, sizeof(*quota));
    char path[PATH_MAX];
    int r;

    if (!quota)
        return -ENOMEM;
    quota->fd = -1;
    quota->clock = clock_or_real(clock);
    quota->began = (time_t)(now_ns() / NS_PER_S);
    lock_init(&quota->lock);
    r = cache_folder_sub(cache, "", path, sizeof(path), d);
    if (r == 0) {
        quota->folder = (struct cache_folder){.path = strdup(path), .group = cache->group};
        r = quota->folder.path ? quota_start(quota, limit, percent, d) : -ENOMEM;
    }
    if (r == 0) {
        *ret = quota;
        return 0;
    }
    quota_close(quota);
    /* A fault of DIR/room is a fault of the cache folder: most such errors become -EPROTO. */
    return diag_set(d, r == -ENOMEM || r == -ENOSPC || r == -EROFS ? r : -EPROTO,
                    "cache folder %s: file room: %s; choose another folder with -o cache_dir=DIR",
                    cache->path,
                    r == -EEXIST || r == -EISDIR || r == -ELOOP || r == -ENXIO
                        ? "expected a file of epochfs, got something else"
                        : file_error(r));
}

void quota_close(struct quota *quota)
{
    if (!quota)
        return;
    if (quota->fd >= 0) {
        if (quota->in_flight)
            quota_give_back(quota, quota->in_flight);
        close(quota->fd);
    }
    lock_release(&quota->lock);
    free(quota->folder.path);
    free(quota);
}

/* ---- what no process uses makes place ---- */

static bool may_go(const void *ctx, const struct inventory_file *file)
{
    const struct quota *quota = ctx;

    if (file->used >= quota->began)
        return false;
    if (file->is_staged)
        return !file->source || !quota->keeps || !quota->keeps(quota->keeps_ctx, file->source);
    return file->is_part || !strcmp(file->folder, "unpacked");
}

void quota_set_keeps(struct quota *quota, bool (*keeps)(void *ctx, const char *url), void *ctx)
{
    quota->keeps_ctx = ctx;
    quota->keeps = keeps;
}

uint64_t quota_could_free(struct quota *quota)
{
    AUTO_INVENTORY struct inventory inventory = {0};
    uint64_t bytes = 0;

    if (inventory_take(&quota->folder, &inventory, NULL) < 0)
        return 0;
    for (size_t i = 0; i < inventory.n; i++)
        if (!inventory.file[i].in_use && may_go(quota, &inventory.file[i]))
            bytes += inventory.file[i].disk;
    return bytes;
}

/* Remove files that no process uses until so many bytes fit, and what another call soon needs. Are
 * some removed? */
static bool make_space(struct quota *quota, uint64_t bytes)
{
    AUTO_INVENTORY struct inventory inventory = {0};
    uint64_t used = quota_used(quota), freed = 0;
    bool may;

    lock_take(&quota->lock);
    may = !quota->is_freeing && clock_monotonic(quota->clock) >= quota->next_free;
    quota->is_freeing = quota->is_freeing || may;
    lock_drop(&quota->lock);
    if (!may) /* one thread at a time; 30 s pass after all that was unused had gone */
        return false;
    bytes += used > quota->limit ? used - quota->limit : 0;
    bytes += quota->limit / FREE_SHARE;
    if (inventory_take(&quota->folder, &inventory, NULL) == 0)
        freed = quota_remove_unused(quota, &inventory, may_go, quota, bytes);
    LOCK_SCOPE(&quota->lock);

    quota->is_freeing = false;
    if (freed < bytes)
        quota->next_free = clock_monotonic(quota->clock) + FREE_AGAIN_S * NS_PER_S;
    return freed;
}

/* ---- taking and giving ---- */

static int quota_take_locked(struct quota *quota, uint64_t bytes)
{
    struct head head;
    uint64_t total;
    int r;

    lock_assert_held(&quota->lock);
    r = head_read(quota->fd, &head);
    if (r < 0)
        return r;
    if (!checked_add(head.total, bytes, &total) || total > quota->limit)
        return -ENOSPC;
    head.total = total;
    head.taken += bytes;
    r = head_write(quota->fd, &head);
    if (r < 0)
        return r;
    quota->in_flight += bytes;
    return slot_write(quota->fd, quota->slot, quota->in_flight);
}

static int quota_try(struct quota *quota, uint64_t bytes, bool *ret_recount)
{
    int64_t now = clock_monotonic(quota->clock);
    int r = quota_lock(quota);

    if (r < 0)
        return r;
    r = quota_take_locked(quota, bytes);
    if (r == -ENOSPC && bytes <= quota->limit && now >= quota->next_recount) {
        quota->next_recount = now + RECOUNT_AGAIN_S * NS_PER_S;
        *ret_recount = true;
    }
    if (r == -EBADMSG)
        *ret_recount = true;
    quota_unlock(quota);
    return r;
}

int quota_take(struct quota *quota, uint64_t bytes)
{
    bool recount = false;
    int r = quota_try(quota, bytes, &recount);

    if (recount) {
        r = quota_recount(quota);
        if (r == 0)
            r = quota_try(quota, bytes, &recount);
    }
    if (r == -ENOSPC && bytes <= quota->limit && make_space(quota, bytes))
        r = quota_try(quota, bytes, &recount);
    return r == -EBADMSG || r == -EAGAIN || r == -ETIMEDOUT ? -ENOSPC : r;
}

void quota_settle(struct quota *quota, uint64_t bytes)
{
    LOCK_SCOPE(&quota->lock);
    quota->in_flight -= min_u64(bytes, quota->in_flight);
    slot_write(quota->fd, quota->slot, quota->in_flight); /* fails: counts too much */
}

/* Lower the total, unless the files have been counted since mark (NULL: in any case). */
static void lessen_locked(struct quota *quota, uint64_t bytes, const uint64_t *mark)
{
    struct head head;

    lock_assert_held(&quota->lock);
    if (head_read(quota->fd, &head) < 0 || (mark && *mark != head.recounts) ||
        head.total == UNKNOWN)
        return;
    head.total -= min_u64(bytes, head.total);
    head_write(quota->fd, &head);
}

void quota_give_back(struct quota *quota, uint64_t bytes)
{
    if (quota_lock(quota) < 0) {
        quota_settle(quota, bytes); /* the total is too high until the next count */
        return;
    }
    bytes = min_u64(bytes, quota->in_flight);
    quota->in_flight -= bytes;
    slot_write(quota->fd, quota->slot, quota->in_flight);
    lessen_locked(quota, bytes, NULL);
    quota_unlock(quota);
}

uint64_t quota_mark(struct quota *quota)
{
    struct head head;

    if (quota_lock(quota) < 0)
        return UINT64_MAX; /* no such number */
    if (head_read(quota->fd, &head) < 0)
        head.recounts = UINT64_MAX;
    quota_unlock(quota);
    return head.recounts;
}

void quota_freed(struct quota *quota, uint64_t bytes, uint64_t mark)
{
    if (quota_lock(quota) < 0)
        return;
    lessen_locked(quota, bytes, &mark);
    quota_unlock(quota);
}

uint64_t quota_used(struct quota *quota)
{
    struct head head = {0};
    uint64_t files;
    int r = quota_lock(quota);

    /* Without the lock the head may be just being written, and its checksum wrong. */
    if (head_read(quota->fd, &head) < 0 || head.total == UNKNOWN)
        head.total = 0;
    if (r == 0)
        quota_unlock(quota);
    /* Bytes written during a count may have been counted twice; never too few. */
    if (head.total > quota->limit && count_files(quota->folder.path, &files) == 0)
        return min_u64(head.total, max_u64(files, quota->limit));
    return head.total;
}

uint64_t quota_limit(const struct quota *quota)
{
    return quota->limit;
}
