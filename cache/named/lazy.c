/* Invariants:
 *  1. A blob with users > 0 has an open descriptor and is in no list.
 *  2. A blob without users and with fd >= 0 is in the pool's list: it may be closed.
 *  3. n_open is the number of blobs with fd >= 0, at most limit.
 *
 * closed -> used install() the first reader opens the file
 * idle -> used take_locked()
 * used -> idle lazy_put() the last reader wakes a thread that waits for a descriptor
 * idle -> closed evict_locked(), lazy_free() */
#include "cache/named/lazy.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "base/checked.h"
#include "cache/disk/local_file.h"

#define OPEN_MOST 256

struct lazy_blob {
    struct blob blob;
    struct lazy_pool *pool;
    struct file_version version; /* of the whole file; blob.size may be less */
    bool is_ours;
    /* Guarded by pool->lock: */
    int fd; /* -1: closed */
    unsigned users;
    struct lazy_blob *newer, *older;
    char text[]; /* the path; then the name, unless it is the end of the path */
};

void lazy_pool_init(struct lazy_pool *ret)
{
    struct rlimit files = {.rlim_cur = 2};

    getrlimit(RLIMIT_NOFILE, &files);
    *ret = (struct lazy_pool){
        .limit = (unsigned)max_u64(min_u64(OPEN_MOST, (uint64_t)files.rlim_cur / 2), 1)};
    lock_init(&ret->lock);
    condition_init(&ret->idle);
}

void lazy_pool_release(struct lazy_pool *pool)
{
    assert(!pool->n_open);
    pthread_cond_destroy(&pool->idle);
    lock_release(&pool->lock);
}

static void list_add_locked(struct lazy_blob *lazy)
{
    struct lazy_pool *pool = lazy->pool;

    lock_assert_held(&pool->lock);
    lazy->newer = NULL;
    lazy->older = pool->newest;
    *(pool->newest ? &pool->newest->newer : &pool->oldest) = lazy;
    pool->newest = lazy;
}

static void list_remove_locked(struct lazy_blob *lazy)
{
    struct lazy_pool *pool = lazy->pool;

    lock_assert_held(&pool->lock);
    *(lazy->newer ? &lazy->newer->older : &pool->newest) = lazy->older;
    *(lazy->older ? &lazy->older->newer : &pool->oldest) = lazy->newer;
}

/* Use the descriptor if there is one. */
static bool lazy_take_locked(struct lazy_blob *lazy)
{
    lock_assert_held(&lazy->pool->lock);
    if (lazy->fd < 0)
        return false;
    if (!lazy->users++)
        list_remove_locked(lazy);
    return true;
}

/* Take the least recently used idle descriptor from its blob; the caller closes it. */
static int evict_locked(struct lazy_pool *pool)
{
    struct lazy_blob *victim = pool->oldest;

    lock_assert_held(&pool->lock);
    list_remove_locked(victim);
    pool->n_open--;
    return TAKE_FD(victim->fd);
}

/* Make fd, of the right version, the blob's descriptor, unless another thread was faster. */
static void install(struct lazy_blob *lazy, int fd)
{
    struct lazy_pool *pool = lazy->pool;
    AUTO_CLOSE int unwanted = -1; /* closed at the end, after the lock is dropped */
    LOCK_SCOPE(&pool->lock);

    while (lazy->fd < 0 && pool->n_open == pool->limit && !pool->oldest)
        lock_wait(&pool->lock, &pool->idle);
    if (lazy_take_locked(lazy)) {
        unwanted = fd;
        return;
    }
    if (pool->n_open == pool->limit)
        unwanted = evict_locked(pool);
    pool->n_open++;
    lazy->fd = fd;
    lazy->users = 1;
}

/* Open the file again. 0, -ESTALE: it is of another version, or -errno. */
static int lazy_open_again(const struct lazy_blob *lazy, int *ret_fd)
{
    AUTO_CLOSE int fd = -1;
    struct stat st;
    int r = file_open(lazy->text, &fd, &st);

    if (r == -ENOENT || r == -ENOTDIR || r == -EINVAL || r == -ELOOP)
        return -ESTALE;
    if (r < 0)
        return r;
    if (!file_version_is(&lazy->version, &st))
        return -ESTALE;
    if (lazy->is_ours)
        file_mark_used(fd);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* The descriptor stays open until lazy_put(). */
static int lazy_take(struct lazy_blob *lazy)
{
    bool taken;
    int fd = -1, r;

    lock_take(&lazy->pool->lock);
    taken = lazy_take_locked(lazy);
    lock_drop(&lazy->pool->lock);
    if (taken)
        return 0;
    r = lazy_open_again(lazy, &fd);
    if (r == 0)
        install(lazy, fd);
    return r;
}

static void lazy_put(struct lazy_blob *lazy)
{
    LOCK_SCOPE(&lazy->pool->lock);

    if (--lazy->users)
        return;
    list_add_locked(lazy);
    pthread_cond_signal(&lazy->pool->idle);
}

/* What a blob reads is constant; whether it is open is not. */
static struct lazy_blob *lazy_of(const struct blob *blob)
{
    return (struct lazy_blob *)(uintptr_t)blob;
}

static int lazy_pread(struct read_context *rc, const struct blob *blob, void *buf, size_t len,
                      uint64_t off, struct diag *d)
{
    struct lazy_blob *lazy = lazy_of(blob);
    int r = lazy_take(lazy);

    (void)rc;
    (void)d;
    if (r < 0)
        return r;
    r = file_pread(lazy->fd, buf, len, off);
    lazy_put(lazy);
    return r;
}

static int lazy_check(const struct blob *blob)
{
    struct lazy_blob *lazy = lazy_of(blob);
    struct stat st;
    int r = lazy_take(lazy);

    if (r < 0)
        return r;
    if (fstat(lazy->fd, &st) < 0)
        r = -errno;
    else if ((!st.st_nlink && !lazy->is_ours) || !file_version_is(&lazy->version, &st))
        r = -ESTALE;
    lazy_put(lazy);
    return r;
}

static int lazy_identity(const struct blob *blob, char **ret)
{
    return file_version_text(&lazy_of(blob)->version, ret);
}

static void lazy_free(struct blob *blob)
{
    struct lazy_blob *lazy = lazy_of(blob);

    lock_take(&lazy->pool->lock);
    if (lazy->fd >= 0) {
        list_remove_locked(lazy);
        lazy->pool->n_open--;
        pthread_cond_signal(&lazy->pool->idle);
    }
    lock_drop(&lazy->pool->lock);
    scope_close(&lazy->fd);
    free(lazy);
}

static const struct blob_ops lazy_blob_ops = {
    .pread = lazy_pread, .check = lazy_check, .identity = lazy_identity, .free = lazy_free};

/* A closed blob. The name is mostly the end of the path, and then takes no memory of its own. */
static struct lazy_blob *lazy_alloc(const char *path, const char *name)
{
    size_t path_len = strlen(path), name_len = strlen(name);
    bool is_end = name_len <= path_len && !strcmp(path + path_len - name_len, name);
    struct lazy_blob *lazy = malloc(sizeof(*lazy) + path_len + 1 + (is_end ? 0 : name_len + 1));

    if (!lazy)
        return NULL;
    *lazy = (struct lazy_blob){.blob.ops = &lazy_blob_ops, .fd = -1};
    memcpy(lazy->text, path, path_len + 1);
    lazy->blob.name = lazy->text + (is_end ? path_len - name_len : path_len + 1);
    memcpy(lazy->blob.name, name, name_len + 1);
    return lazy;
}

int lazy_blob_new(struct lazy_pool *pool, int fd, const char *path, const char *name, uint64_t size,
                  bool is_ours, struct blob **ret)
{
    AUTO_CLOSE int taken_over = fd;
    struct lazy_blob *lazy;
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    lazy = lazy_alloc(path, name);
    if (!lazy)
        return -ENOMEM;
    lazy->pool = pool;
    lazy->is_ours = is_ours;
    lazy->version = is_ours ? file_version_of_own(&st) : file_version_of(&st);
    file_describe(&st, size, &lazy->blob);
    install(lazy, TAKE_FD(taken_over));
    lazy_put(lazy);
    *ret = &lazy->blob;
    return 0;
}
