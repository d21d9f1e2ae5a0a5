#include "fs/push/push.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/read_context.h"
#include "base/scope.h"
#include "base/thread.h"
#include "cache/stage/stage.h"
#include "fs/log/log.h"
#include "fs/push/store_thread.h"

#define THREADS      2
#define PIECE        (UINT64_C(1) << 20) /* bytes made and stored at a time */
#define PAGE         UINT64_C(4096)
#define SMALL        (UINT64_C(64) << 10)
#define STORES       (STORE_QUEUE + 1)
#define ROUNDS       8   /* tries for a piece whose bytes come and go */
#define LOOKED_UP    256 /* files looked up in the kernel at a time */
#define LIST_BYTES   32768
#define MEMORY_NS    INT64_C(100000000) /* between two checks of the free memory */
#define MEMORY_SHARE 4                  /* one part in so many of the free memory may be pushed */

struct push;

/* What a store thread must store, or drop. */
struct store {
    struct push *push;
    struct push_file file;
    uint64_t off;
    size_t len;
    uint8_t *bytes;
    bool is_whole; /* its result is reported to active_plans_stored(), */
    int result;    /* else it is present */
};

/* A thread that makes files, with a store thread that stores them: small files while the next ones
 * are made, large ones piece by piece in turn. */
struct pusher {
    struct push *push;
    struct store_thread *store_thread;
    pthread_t thread;
    uint8_t *buffer; /* PIECE */
    uint8_t *small;  /* SMALL for each of: */
    struct store store[STORES];
    uint64_t n_stores; /* stores that were queued; the next takes the place of one that is done */
};

struct push {
    struct push_setup setup; /* constant */
    struct pusher pusher[THREADS];
    unsigned n_threads;
    struct read_ahead *read_ahead; /* NULL: none; set before the threads start */
    struct lock lock;
    pthread_cond_t wake;
    _Atomic bool ending;
    /* Guarded by lock: */
    uint64_t kicks;
    uint64_t capacity; /* bytes that may be pushed, limited by free memory */
    int64_t capacity_until;
};

/* ---- bytes ---- */

static bool push_ends(void *ctx)
{
    return atomic_load_explicit(&((struct push *)ctx)->ending, memory_order_relaxed);
}

/* Make bytes [off, off + len) of a file. 0; -EAGAIN: some were missing, and have come; with rate=
 * they come later, in the background; or -errno. */
static int try_piece(struct push *push, const struct push_file *file, uint64_t off, size_t len,
                     uint8_t *buffer, bool again)
{
    const struct push_setup *s = &push->setup;
    const struct stage_options *stage = s->options;
    struct read_context rc;
    size_t n = 0;
    int r;

    read_context_init(&rc, s->stage != NULL);
    rc.again = again;
    rc.cancelled = push_ends;
    rc.ctx = push;
    r = view_read(&rc, s->open_files, &file->node, off, len, buffer, &n, NULL);
    /* Nothing that its reader has read meanwhile is fetched again for a push. */
    if (r == -EAGAIN && rc.n && !stage->rate && active_plans_is_due(s->active_plans, file)) {
        int came = missing_wait(&rc, true, NULL);

        r = came < 0 ? came : r;
    }
    read_context_release(&rc);
    return r == 0 && n != len ? -EIO : r;
}

static int make_piece(struct push *push, const struct push_file *file, uint64_t off, size_t len,
                      uint8_t *buffer)
{
    unsigned rounds = push->setup.options->rate ? 1 : ROUNDS;
    int r = -EAGAIN;

    for (unsigned round = 0; round < rounds && r == -EAGAIN && !push->ending &&
                             active_plans_is_due(push->setup.active_plans, file);
         round++)
        r = try_piece(push, file, off, len, buffer, round > 0);
    return r;
}

/* ---- files that the kernel does not know ---- */

/* Open the folder of a file as any process would; fails if it is not in our mount. */
static int push_open_folder(const struct push_setup *s, const struct node *node)
{
    char below[NODE_PATH_SIZE], path[PATH_MAX];
    struct stat st;
    long fd;

    node_folder_path(node, below, sizeof(below));
    if (snprintf(path, sizeof(path), "%s/%s", s->mountpoint, below) >= (int)sizeof(path))
        return -ENAMETOOLONG;
    fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -errno;
    if (fstat((int)fd, &st) < 0 || st.st_dev != s->device) {
        syscall(SYS_close, (int)fd);
        return -ENODEV;
    }
    return (int)fd;
}

/* List the folder from the file on. */
static void list_from(struct push *push, int fd, const struct node *node)
{
    char *entries = malloc(LIST_BYTES);
    ssize_t n = 1;

    if (entries && lseek(fd, (off_t)node_list_place(node), SEEK_SET) >= 0)
        for (unsigned got = 0; got < LOOKED_UP && n > 0 && !push->ending;) {
            n = getdents64(fd, entries, LIST_BYTES);
            for (ssize_t at = 0; at < n; got++)
                at += ((struct dirent64 *)(void *)(entries + at))->d_reclen;
        }
    free(entries);
}

/* Have the kernel list the folder from the file on, so that it knows the inodes of the files. From
 * a listing in its cache it learns nothing new, so the file itself is looked up as well. */
static int make_known(struct push *push, const struct node *node)
{
    char name[TREE_NAME_SIZE], stem[KEY_NAME_SIZE];
    int fd = push_open_folder(&push->setup, node), r = fd;
    struct stat st;

    if (fd < 0)
        return r;
    list_from(push, fd, node);
    node_name(node, stem);
    snprintf(name, sizeof(name), "%s%s", stem, node->file->suffix);
    r = fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
    syscall(SYS_close, fd);
    return r;
}

/* ---- a file ---- */

/* How much of the file to store: of a marked file, all but the last page. */
static int stored_size(struct push *push, const struct push_file *file, uint64_t *ret)
{
    struct read_context rc;
    int r;

    read_context_init(&rc, false);
    rc.cancelled = push_ends;
    rc.ctx = push;
    r = view_size(&rc, push->setup.open_files, &file->node, ret, NULL);
    read_context_release(&rc);
    if (r == 0 && file->is_marked)
        *ret = *ret ? (*ret - 1) / PAGE * PAGE : 0;
    return r;
}

static int store_bytes(const struct store *store)
{
    struct fuse_bufvec bytes = FUSE_BUFVEC_INIT(store->len);

    bytes.buf[0].mem = store->bytes;
    return fuse_lowlevel_notify_store(store->push->setup.session, store->file.node.ino,
                                      (off_t)store->off, &bytes, (enum fuse_buf_copy_flags)0);
}

static void store_in_thread(void *ctx)
{
    struct store *store = ctx;
    struct push *push = store->push;
    int r = push->ending ? -EINTR : store->len ? store_bytes(store) : 0;

    if (r == -ENOENT && !push->ending) {
        r = make_known(push, &store->file.node);
        if (r == 0)
            r = store_bytes(store);
    }
    if (store->is_whole)
        active_plans_stored(push->setup.active_plans, &store->file,
                            r < 0 ? r : (int64_t)store->len);
    store->result = r;
}

static void drop_in_thread(void *ctx)
{
    const struct store *store = ctx;

    if (!store->push->ending)
        fuse_lowlevel_notify_inval_inode(store->push->setup.session, store->file.node.ino, 0, 0);
}

/* The next store; few bytes get a place of their own. If the caller does not queue it, the next
 * call returns the same place: the store thread still uses the places before it. */
static struct store *next_store(struct pusher *self, const struct push_file *file, uint64_t off,
                                size_t len)
{
    size_t i = self->n_stores % STORES;

    self->store[i] = (struct store){
        .push = self->push,
        .file = *file,
        .off = off,
        .len = len,
        .bytes = len <= SMALL ? self->small + i * SMALL : self->buffer,
    };
    return &self->store[i];
}

static void put(struct pusher *self, void (*job)(void *ctx), struct store *store)
{
    self->n_stores++;
    store_thread_put(self->store_thread, job, store);
}

/* 0: the store thread has the bytes, and active_plans_made() was called; or an -errno that the
 * caller passes to it. */
static int64_t store_small(struct pusher *self, const struct push_file *file, uint64_t size)
{
    struct store *store = next_store(self, file, 0, (size_t)size);
    int r = size ? make_piece(self->push, file, 0, store->len, store->bytes) : 0;

    if (r < 0)
        return r;
    store->is_whole = true;
    active_plans_made(self->push->setup.active_plans, file, (int64_t)size);
    put(self, store_in_thread, store);
    return 0;
}

static int64_t store_large(struct pusher *self, const struct push_file *file, uint64_t size)
{
    struct push *push = self->push;
    int r = 0;

    for (uint64_t off = 0; off < size && r == 0 && !push->ending;) {
        struct store *store = next_store(self, file, off, (size_t)min_u64(PIECE, size - off));

        r = make_piece(push, file, off, store->len, store->bytes);
        if (r < 0)
            return r;
        put(self, store_in_thread, store);
        store_thread_wait(self->store_thread);
        r = store->result;
        off += store->len;
    }
    active_plans_made(push->setup.active_plans, file, (int64_t)size);
    active_plans_stored(push->setup.active_plans, file,
                        r < 0          ? r
                        : push->ending ? -EINTR
                                       : (int64_t)size);
    return 0;
}

/* Have the kernel read a file of this machine that it will read itself. 0, and active_plans knows;
 * or -errno: it is another file. */
static int64_t push_read_ahead(const struct push *push, const struct push_file *file, uint64_t size)
{
    AUTO_CLOSE int fd = -1;
    int r = view_open_file(&file->node, &fd, NULL);

    if (r == 0)
        r = -posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED);
    if (r < 0)
        return r;
    active_plans_made(push->setup.active_plans, file, (int64_t)size);
    active_plans_stored(push->setup.active_plans, file, (int64_t)size);
    return 0;
}

static void store_file(struct pusher *self, const struct push_file *file)
{
    bool passes = atomic_load(self->push->setup.passes);
    struct active_plans *active_plans = self->push->setup.active_plans;
    uint64_t size = 0;
    int64_t r = stored_size(self->push, file, &size);

    if (r == 0 && !active_plans_may_store(active_plans, file, size))
        r = -EFBIG;
    if (r == 0 && passes && push_read_ahead(self->push, file, size) == 0)
        return;
    if (r == 0)
        r = size <= SMALL ? store_small(self, file, size) : store_large(self, file, size);
    if (r == 0)
        return;
    if (r != -EFBIG && r != -EINTR)
        log_debug("push: %s", strerror((int)-r));
    active_plans_made(active_plans, file, r);
}

/* Make a file whose reader is faster than a push. Bytes that are missing are left to the reader. */
static void make_ready(struct push *push, const struct push_file *file)
{
    struct read_context rc;

    read_context_init(&rc, push->setup.stage != NULL);
    rc.cancelled = push_ends;
    rc.ctx = push;
    open_files_make(&rc, push->setup.open_files, &file->node);
    read_context_release(&rc);
    active_plans_readied(push->setup.active_plans, file);
}

static uint64_t bytes_to_push(struct push *push)
{
    int64_t now = clock_monotonic(push->setup.clock);
    LOCK_SCOPE(&push->lock);

    if (now >= push->capacity_until) {
        push->capacity = memory_free() / MEMORY_SHARE;
        push->capacity_until = now + MEMORY_NS;
    }
    return push->capacity;
}

/* ---- threads ---- */

static void wait_for_kick(struct push *push, uint64_t kicks)
{
    int64_t next = active_plans_next_look(push->setup.active_plans);
    LOCK_SCOPE(&push->lock);

    if (push->kicks == kicks && !push->ending)
        clock_wait(push->setup.clock, &push->lock, &push->wake, next);
}

static uint64_t kicks_of(struct push *push)
{
    LOCK_SCOPE(&push->lock);

    return push->kicks;
}

static void *push_main(void *arg)
{
    struct pusher *self = arg;
    struct push *push = self->push;
    struct active_plans *active_plans = push->setup.active_plans;

    while (!push->ending) {
        uint64_t kicks = kicks_of(push);
        struct push_file file;

        active_plans_exceed(active_plans, read_ahead_exceeds(push->read_ahead));
        switch (active_plans_next_push(active_plans, bytes_to_push(push), &file)) {
        case PUSH_STORE:
            store_file(self, &file);
            read_ahead_kick(push->read_ahead);
            if (push->setup.stage)
                stage_needs_changed(push->setup.stage, false);
            break;
        case PUSH_READY:
            make_ready(push, &file);
            break;
        case PUSH_DROP:
            put(self, drop_in_thread, next_store(self, &file, 0, 0));
            break;
        default:
            wait_for_kick(push, kicks);
            break;
        }
    }
    return NULL;
}

void push_kick(struct push *push)
{
    if (!push)
        return;
    read_ahead_kick(push->read_ahead);
    LOCK_SCOPE(&push->lock);

    push->kicks++;
    pthread_cond_broadcast(&push->wake); /* each waits until the next look that it knows of */
}

/* All but its own thread. 0 or -errno. */
static int pusher_init(struct pusher *pusher, struct push *push)
{
    pusher->push = push;
    pusher->buffer = malloc(PIECE);
    pusher->small = malloc(STORES * SMALL);
    if (!pusher->buffer || !pusher->small)
        return -ENOMEM;
    return store_thread_new(push->setup.session, &pusher->store_thread);
}

/* One thread is enough. 0, or -errno and none runs. */
static int start_pushers(struct push *push)
{
    int r = 0;

    for (unsigned i = 0; i < THREADS && r == 0; i++) {
        r = pusher_init(&push->pusher[i], push);
        if (r == 0)
            r = thread_start(&push->pusher[i].thread, push_main, &push->pusher[i]);
        push->n_threads += r == 0;
    }
    return push->n_threads ? 0 : r;
}

int push_start(const struct push_setup *setup, struct push **ret)
{
    struct push *push = calloc(1, sizeof(*push));
    int r = 0;

    if (!push)
        return -ENOMEM;
    push->setup = *setup;
    lock_init(&push->lock);
    condition_init(&push->wake);
    if (setup->needs)
        r = read_ahead_start(setup->needs, setup->ahead, setup->clock,
                             active_plans_counters(setup->active_plans), &push->read_ahead);
    if (r < 0)
        log_debug("nothing is asked of the disk ahead: %s", strerror(-r));
    r = start_pushers(push);
    if (r < 0) {
        push_stop(push);
        push_free(push);
        return r;
    }
    *ret = push;
    return 0;
}

void push_quit(struct push *push)
{
    if (!push)
        return;
    atomic_store(&push->ending, true);
    read_ahead_quit(push->read_ahead);
    push_kick(push);
}

void push_stop(struct push *push)
{
    if (!push)
        return;
    push_quit(push);
    for (unsigned i = 0; i < push->n_threads; i++)
        pthread_join(push->pusher[i].thread, NULL);
    push->n_threads = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        store_thread_free(push->pusher[i].store_thread);
        push->pusher[i].store_thread = NULL;
    }
    read_ahead_stop(push->read_ahead);
}

void push_free(struct push *push)
{
    if (!push)
        return;
    for (unsigned i = 0; i < THREADS; i++) {
        free(push->pusher[i].buffer);
        free(push->pusher[i].small);
    }
    read_ahead_free(push->read_ahead);
    pthread_cond_destroy(&push->wake);
    lock_release(&push->lock);
    free(push);
}
