#include "fs/push.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/lock.h"
#include "base/scope.h"
#include "cache/stage.h"
#include "fs/log.h"
#include "fs/memory.h"
#include "fs/serve_parts.h"

#define THREADS      2
#define PIECE        READ_MAX /* bytes that are made and stored at a time */
#define PAGE         UINT64_C(4096)
#define ROUNDS       8   /* that a piece is tried again when bytes come and go */
#define LOOKED_UP    256 /* files that the kernel is made to know at a time */
#define LIST_BYTES   32768
#define MEMORY_NS    INT64_C(100000000) /* between two looks at what is free */
#define MEMORY_SHARE 4                  /* of what is free, that may be pushed: 1 of so many */

struct push {
    struct server *server;
    pthread_t thread[THREADS];
    unsigned n_threads;
    struct lock lock;
    pthread_cond_t wake;
    _Atomic bool ending;
    /* Guarded by lock: */
    uint64_t kicks;
    uint64_t room; /* bytes that may be pushed, for memory's sake */
    int64_t room_until;
};

/* ---- bytes ---- */

/* Bytes of the remote that are waited for. */
struct coming {
    struct waiter waiter; /* its head */
    struct lock lock;
    pthread_cond_t over_now;
    bool over; /* guarded by lock */
};

static void coming_done(struct waiter *waiter)
{
    struct coming *coming = (struct coming *)waiter;
    LOCK_SCOPE(&coming->lock);

    coming->over = true;
    pthread_cond_signal(&coming->over_now);
}

/* Have what is wanted brought here, behind what readers wait for. 0 or -errno. */
static int bring(struct wants *wants)
{
    struct coming coming = {.waiter = {.done = coming_done, .ahead = true, .reason = DIAG_INIT}};

    lock_init(&coming.lock);
    condition_init(&coming.over_now);
    wants_fetch(wants, &coming.waiter);
    lock_take(&coming.lock);
    while (!coming.over)
        lock_wait(&coming.lock, &coming.over_now);
    lock_drop(&coming.lock);
    pthread_cond_destroy(&coming.over_now);
    lock_release(&coming.lock);
    return atomic_load(&coming.waiter.error);
}

static bool push_ends(void *ctx)
{
    return atomic_load_explicit(&((struct push *)ctx)->ending, memory_order_relaxed);
}

/* Make bytes [off, off + len) of a file. 0 or -errno. */
static int make_piece(struct push *push, const struct node *node, uint64_t off, size_t len,
                      uint8_t *buffer)
{
    struct server *s = push->server;
    const struct view_patience patience = {.ends = push_ends, .ctx = push};
    int r = -EAGAIN;

    for (unsigned round = 0; round < ROUNDS && r == -EAGAIN && !push->ending; round++) {
        struct wants wants, *before;
        size_t n = 0;

        wants_init(&wants, s->setup.stage != NULL);
        wants.uses = s->setup.options->source.stage.keep == STAGE_ONCE;
        wants.again = round > 0;
        before = wants_set(&wants);
        r = view_read(s->view, node, off, len, buffer, &n, &patience, NULL);
        wants_set(before);
        wants_use(&wants, r == 0);
        if (r == -EAGAIN && wants.n) {
            int came = bring(&wants);

            r = came < 0 ? came : r;
        }
        wants_release(&wants);
        if (r == 0 && n != len)
            r = -EIO;
    }
    return r;
}

static int store_piece(struct push *push, const struct node *node, uint64_t off, size_t len,
                       uint8_t *buffer)
{
    struct fuse_bufvec bytes = FUSE_BUFVEC_INIT(len);

    bytes.buf[0].mem = buffer;
    return fuse_lowlevel_notify_store(push->server->session, node->ino, (off_t)off, &bytes,
                                      (enum fuse_buf_copy_flags)0);
}

/* ---- files that the kernel does not know ---- */

/* Open the folder of a file as any process would; only if it is ours. */
static int open_folder(const struct server *s, const struct node *node)
{
    char below[NODE_PATH_ROOM], path[PATH_MAX];
    AUTO_CLOSE int fd = -1;
    struct stat st;

    node_folder_path(node, below, sizeof(below));
    if (snprintf(path, sizeof(path), "%s/%s", s->setup.mountpoint, below) >= (int)sizeof(path))
        return -ENAMETOOLONG;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0 || st.st_dev != s->device)
        return -ENODEV;
    return TAKE_FD(fd);
}

/* Have the kernel list the folder from the file on: with the names it gets to know the files. A
 * listing that it has kept tells it nothing new, so the file itself is looked up, too. */
static int make_known(struct push *push, const struct node *node)
{
    char name[TREE_NAME_ROOM], stem[KEY_NAME_ROOM], *entries;
    AUTO_CLOSE int fd = open_folder(push->server, node);
    struct stat st;
    ssize_t n = 1;

    if (fd < 0)
        return fd;
    entries = malloc(LIST_BYTES);
    if (!entries)
        return -ENOMEM;
    if (lseek(fd, (off_t)node_list_place(node), SEEK_SET) >= 0)
        for (unsigned got = 0; got < LOOKED_UP && n > 0 && !push->ending;) {
            n = getdents64(fd, entries, LIST_BYTES);
            for (ssize_t at = 0; at < n; got++)
                at += ((struct dirent64 *)(void *)(entries + at))->d_reclen;
        }
    free(entries);
    node_name(node, stem);
    snprintf(name, sizeof(name), "%s%s", stem, node->file->suffix);
    return fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/* ---- a file ---- */

/* How much of it is stored: of a marked one the last page is not. */
static int stored_size(struct push *push, const struct push_file *file, uint64_t *ret)
{
    const struct view_patience patience = {.ends = push_ends, .ctx = push};
    int r = view_size(push->server->view, &file->node, &patience, ret, NULL);

    if (r == 0 && file->is_marked)
        *ret = *ret ? (*ret - 1) / PAGE * PAGE : 0;
    return r;
}

/* Returns the bytes that were stored, or -errno. */
static int64_t store_file(struct push *push, const struct push_file *file, uint8_t *buffer)
{
    uint64_t size = 0;
    bool tried = false;
    int r = stored_size(push, file, &size);

    for (uint64_t off = 0; off < size && r == 0 && !push->ending;) {
        size_t len = (size_t)min_u64(PIECE, size - off);

        r = make_piece(push, &file->node, off, len, buffer);
        if (r == 0)
            r = store_piece(push, &file->node, off, len, buffer);
        if (r == -ENOENT && !tried) {
            tried = true;
            r = make_known(push, &file->node);
            if (r == 0)
                r = store_piece(push, &file->node, off, len, buffer);
        }
        off += len;
    }
    return r < 0 ? r : push->ending ? -EINTR : (int64_t)size;
}

static uint64_t room_for_more(struct push *push)
{
    int64_t now = monotonic_ns();
    LOCK_SCOPE(&push->lock);

    if (now >= push->room_until) {
        push->room = memory_free() / MEMORY_SHARE;
        push->room_until = now + MEMORY_NS;
    }
    return push->room;
}

/* ---- threads ---- */

static void wait_for_kick(struct push *push, uint64_t kicks)
{
    int64_t next = actives_next_look(push->server->actives), left = INT64_MAX;
    LOCK_SCOPE(&push->lock);

    if (next != INT64_MAX)
        left = next - monotonic_ns();
    if (push->kicks == kicks && !push->ending && left > 0)
        lock_wait_for(&push->lock, &push->wake, left);
}

static uint64_t kicks_of(struct push *push)
{
    LOCK_SCOPE(&push->lock);

    return push->kicks;
}

static void *push_main(void *arg)
{
    struct push *push = arg;
    struct actives *actives = push->server->actives;
    uint8_t *buffer = malloc(PIECE);

    while (buffer && !push->ending) {
        uint64_t kicks = kicks_of(push);
        struct push_file file;
        int64_t r;

        switch (actives_next_push(actives, &file)) {
        case PUSH_STORE:
            r = store_file(push, &file, buffer);
            if (r < 0 && r != -ENOENT && r != -EINTR)
                log_debug("push: %s", strerror((int)-r));
            actives_pushed(actives, &file, r, room_for_more(push));
            if (push->server->setup.stage)
                stage_guide_changed(push->server->setup.stage, false);
            break;
        case PUSH_DROP:
            fuse_lowlevel_notify_inval_inode(push->server->session, file.node.ino, 0, 0);
            break;
        default:
            wait_for_kick(push, kicks);
            break;
        }
    }
    free(buffer);
    return NULL;
}

void push_kick(struct push *push)
{
    if (!push)
        return;
    LOCK_SCOPE(&push->lock);

    push->kicks++;
    pthread_cond_broadcast(&push->wake);
}

int push_start(struct server *server, struct push **ret)
{
    struct push *push = calloc(1, sizeof(*push));

    *ret = push;
    if (!push)
        return -ENOMEM;
    push->server = server;
    lock_init(&push->lock);
    condition_init(&push->wake);
    for (unsigned i = 0; i < THREADS; i++) {
        if (server_thread(&push->thread[i], push_main, push) < 0)
            return -EAGAIN;
        push->n_threads++;
    }
    return 0;
}

void push_stop(struct push *push)
{
    if (!push)
        return;
    atomic_store(&push->ending, true);
    push_kick(push);
    for (unsigned i = 0; i < push->n_threads; i++)
        pthread_join(push->thread[i], NULL);
    push->n_threads = 0;
}

void push_free(struct push *push)
{
    if (!push)
        return;
    pthread_cond_destroy(&push->wake);
    lock_release(&push->lock);
    free(push);
}
