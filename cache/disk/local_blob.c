/* A blob is bound to the state of the file at its opening: its version, and that it has a name.
 * Once any of these differs, the blob serves nothing more (local_blob_check).
 *
 * Invariants of a blob with a pool:
 *  1. A blob with users > 0 has an open descriptor and is in no list.
 *  2. A blob without users and with fd >= 0 is in the pool's list: it may be closed.
 *  3. n_open is the number of blobs with fd >= 0, at most limit.
 *
 * closed -> used install() the first reader opens the file
 * idle -> used lazy_take_locked()
 * used -> idle lazy_put() the last reader wakes a thread that waits for a descriptor
 * idle -> closed evict_locked(), local_blob_free() */
#include "cache/disk/local_blob.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "base/scope.h"
#include "base/text.h"
#include "cache/disk/local_file.h"
#include "cache/disk/small_pieces.h"

#define OPEN_MOST 256

struct local_blob {
    struct blob blob;
    struct file_version version; /* of the whole file; blob.size may be less */
    bool is_ours;
    struct small_pieces *small; /* without a pool */
    struct lazy_pool *pool;     /* NULL: fd is constant */
    /* Guarded by pool->lock: */
    int fd; /* -1: closed */
    unsigned users;
    TAILQ_ENTRY(local_blob) link;
    char text[]; /* the path; then the name, unless it is the end of the path */
};

/* What a blob reads is constant; whether it is open is not. */
static struct local_blob *local_blob_of(const struct blob *blob)
{
    return (struct local_blob *)(uintptr_t)blob;
}

/* ---- the pool ---- */

void lazy_pool_init(struct lazy_pool *ret)
{
    struct rlimit files = {.rlim_cur = 2};

    getrlimit(RLIMIT_NOFILE, &files);
    *ret = (struct lazy_pool){
        .limit = (unsigned)max_u64(min_u64(OPEN_MOST, (uint64_t)files.rlim_cur / 2), 1)};
    TAILQ_INIT(&ret->unused);
    lock_init(&ret->lock);
    condition_init(&ret->idle);
}

void lazy_pool_release(struct lazy_pool *pool)
{
    assert(!pool->n_open);
    pthread_cond_destroy(&pool->idle);
    lock_release(&pool->lock);
}

/* Use the descriptor if there is one. */
static bool lazy_take_locked(struct local_blob *local)
{
    lock_assert_held(&local->pool->lock);
    if (local->fd < 0)
        return false;
    if (!local->users++)
        TAILQ_REMOVE(&local->pool->unused, local, link);
    return true;
}

/* Take the least recently used idle descriptor from its blob; the caller closes it. */
static int evict_locked(struct lazy_pool *pool)
{
    struct local_blob *victim = TAILQ_LAST(&pool->unused, lazy_list);

    lock_assert_held(&pool->lock);
    TAILQ_REMOVE(&pool->unused, victim, link);
    pool->n_open--;
    return TAKE_FD(victim->fd);
}

/* Make fd, of the right version, the blob's descriptor, unless another thread was faster. */
static void install(struct local_blob *local, int fd)
{
    struct lazy_pool *pool = local->pool;
    AUTO_CLOSE int unwanted = -1; /* closed at the end, after the lock is dropped */
    LOCK_SCOPE(&pool->lock);

    while (local->fd < 0 && pool->n_open == pool->limit && TAILQ_EMPTY(&pool->unused))
        lock_wait(&pool->lock, &pool->idle);
    if (lazy_take_locked(local)) {
        unwanted = fd;
        return;
    }
    if (pool->n_open == pool->limit)
        unwanted = evict_locked(pool);
    pool->n_open++;
    local->fd = fd;
    local->users = 1;
}

/* Open the file again. 0, -ESTALE: it is of another version, or -errno. */
static int lazy_open_again(const struct local_blob *local, int *ret_fd)
{
    AUTO_CLOSE int fd = -1;
    struct stat st;
    int r = file_open(local->text, &fd, &st);

    if (r == -ENOENT || r == -ENOTDIR || r == -EINVAL || r == -ELOOP)
        return -ESTALE;
    if (r < 0)
        return r;
    if (!file_version_is(&local->version, &st))
        return -ESTALE;
    if (local->is_ours)
        file_mark_used(fd);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* The descriptor stays open until lazy_put(). */
static int lazy_take(struct local_blob *local)
{
    bool taken;
    int fd = -1, r;

    if (!local->pool)
        return 0;
    lock_take(&local->pool->lock);
    taken = lazy_take_locked(local);
    lock_drop(&local->pool->lock);
    if (taken)
        return 0;
    r = lazy_open_again(local, &fd);
    if (r == 0)
        install(local, fd);
    return r;
}

static void lazy_put(struct local_blob *local)
{
    if (!local->pool)
        return;
    LOCK_SCOPE(&local->pool->lock);

    if (--local->users)
        return;
    TAILQ_INSERT_HEAD(&local->pool->unused, local, link);
    pthread_cond_signal(&local->pool->idle);
}

/* ---- the blob ---- */

static int local_blob_pread(struct read_context *rc, const struct blob *blob, void *buf, size_t len,
                            uint64_t off, struct diag *d)
{
    struct local_blob *local = local_blob_of(blob);
    int r = lazy_take(local);

    (void)rc;
    (void)d;
    if (r < 0)
        return r;
    r = file_pread(local->fd, buf, len, off);
    lazy_put(local);
    return r;
}

static int local_blob_check(const struct blob *blob)
{
    struct local_blob *local = local_blob_of(blob);
    struct stat st;
    int r = lazy_take(local);

    if (r < 0)
        return r;
    if (fstat(local->fd, &st) < 0)
        r = -errno;
    else if ((!st.st_nlink && !local->is_ours) || !file_version_is(&local->version, &st))
        r = -ESTALE;
    lazy_put(local);
    return r;
}

static int local_blob_identity(const struct blob *blob, char **ret)
{
    /* A file that is named by the hash of its bytes, so that a copy with its time is the same; the
     * time, for another program may have written to it. What is made of a file, ours, has only the
     * ETag of that file, and a server may give one to several. */
    if (blob->etag && !local_blob_of(blob)->is_ours)
        return text_print(ret, "content %s %llu %lld", blob->etag, (unsigned long long)blob->size,
                          (long long)timespec_ns(&local_blob_of(blob)->version.mtime));
    return file_version_text(&local_blob_of(blob)->version, ret);
}

static void local_blob_free(struct blob *blob)
{
    struct local_blob *local = local_blob_of(blob);
    struct lazy_pool *pool = local->pool;

    if (pool)
        lock_take(&pool->lock);
    if (pool && local->fd >= 0) {
        TAILQ_REMOVE(&pool->unused, local, link);
        pool->n_open--;
        pthread_cond_signal(&pool->idle);
    }
    if (pool)
        lock_drop(&pool->lock);
    scope_close(&local->fd);
    if (local->small)
        small_pieces_release(local->small);
    free(local->small);
    free(blob->source);
    free(blob->etag);
    free(local);
}

static int local_blob_pread_many(struct read_context *rc, const struct blob *blob,
                                 const struct blob_piece *pieces, size_t n)
{
    struct local_blob *local = local_blob_of(blob);

    (void)rc;
    return small_pieces_read(local->small, local->fd, blob->size, pieces, n);
}

static int local_blob_open_file(const struct blob *blob, uint64_t off, uint64_t len, int *ret_fd,
                                struct diag *d)
{
    const struct local_blob *local = local_blob_of(blob);
    int r = local_blob_check(blob);

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
    return file_memory(local_blob_of(blob)->fd, ask, off, len);
}

static const struct blob_ops lazy_blob_ops = {.pread = local_blob_pread,
                                              .check = local_blob_check,
                                              .identity = local_blob_identity,
                                              .free = local_blob_free};

static const struct blob_ops local_blob_ops = {.pread = local_blob_pread,
                                               .check = local_blob_check,
                                               .identity = local_blob_identity,
                                               .free = local_blob_free,
                                               .open_file = local_blob_open_file,
                                               .memory = local_memory,
                                               .pread_many = local_blob_pread_many};

/* A blob that is closed yet. The name is mostly the end of the path, and then takes no memory of
 * its own. */
static int local_blob_make(int fd, const char *path, const char *name, uint64_t size, bool is_ours,
                           struct local_blob **ret)
{
    size_t path_len = strlen(path), name_len = strlen(name);
    bool is_end = name_len <= path_len && !strcmp(path + path_len - name_len, name);
    struct local_blob *local;
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    local = malloc(sizeof(*local) + path_len + 1 + (is_end ? 0 : name_len + 1));
    if (!local)
        return -ENOMEM;
    *local = (struct local_blob){.is_ours = is_ours, .fd = -1};
    memcpy(local->text, path, path_len + 1);
    local->blob.name = local->text + (is_end ? path_len - name_len : path_len + 1);
    memcpy(local->blob.name, name, name_len + 1);
    local->version = is_ours ? file_version_of_own(&st) : file_version_of(&st);
    file_describe(&st, size, &local->blob);
    *ret = local;
    return 0;
}

int local_blob_new(int fd, const char *name, uint64_t size, bool is_ours, struct blob **ret)
{
    AUTO_CLOSE int taken_over = fd;
    AUTO_FREE struct small_pieces *small = malloc(sizeof(*small));
    struct local_blob *local;
    int r = small ? local_blob_make(fd, "", name, size, is_ours, &local) : -ENOMEM;

    if (r < 0)
        return r;
    small_pieces_init(small);
    local->blob.ops = &local_blob_ops;
    local->small = TAKE_PTR(small);
    local->fd = TAKE_FD(taken_over);
    *ret = &local->blob;
    return 0;
}

int lazy_blob_new(struct lazy_pool *pool, int fd, const char *path, const char *name, uint64_t size,
                  bool is_ours, struct blob **ret)
{
    AUTO_CLOSE int taken_over = fd;
    struct local_blob *local;
    int r = local_blob_make(fd, path, name, size, is_ours, &local);

    if (r < 0)
        return r;
    local->blob.ops = &lazy_blob_ops;
    local->pool = pool;
    install(local, TAKE_FD(taken_over));
    lazy_put(local);
    *ret = &local->blob;
    return 0;
}
