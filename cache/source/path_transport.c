/* A transfer waits in a queue for a thread, which reads all of it. A thread is started when more
 * transfers wait than threads are idle. All threads end in rest().
 *
 * A transfer:  QUEUED -> TAKEN  path_transport_thread_main()
 *              TAKEN  -> ended  end(), by that thread
 * transport_stop() sets the transfer's impl to STOP. The first thread that finishes a piece ends
 * stopped transfers that wait. */
#include "cache/source/path_transport.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#include "base/checked.h"
#include "base/file_io.h"
#include "base/lock.h"
#include "base/thread.h"
#include "cache/disk/local_file.h"
#include "cache/source/within.h"

#define PIECE (256u << 10) /* bytes per read */
#define STOP  ((void *)1)

struct path_transport {
    struct transport transport; /* first */
    unsigned jobs;              /* constant */
    struct lock lock;
    pthread_cond_t wake;
    /* Guarded by lock: */
    struct transfer *first, **end; /* transfers that wait */
    unsigned queued, idle;         /* waiting transfers, waiting threads */
    unsigned threads;
    bool resting;
    pthread_t thread[]; /* [threads] of [jobs] */
};

static void unlink_locked(struct path_transport *t, struct transfer **at)
{
    struct transfer *transfer = *at;

    lock_assert_held(&t->lock);
    *at = transfer->next;
    if (t->end == &transfer->next)
        t->end = at;
    t->queued--;
}

/* ---- a transfer ---- */

static enum transfer_end path_transport_end_of(int r)
{
    switch (r) {
    case -ENOENT:
    case -ENOTDIR:
    case -ELOOP:
    case -EINVAL: /* not a regular file */
    case -ESTALE: /* the file ends early, or the server no longer knows it */
        return TRANSFER_CHANGED;
    case -EACCES:
    case -EPERM:
        return TRANSFER_REFUSED;
    default:
        return TRANSFER_AGAIN;
    }
}

static enum transfer_end fail(const struct transfer *transfer, int r, struct diag *d)
{
    diag_set(d, r, "%s: %s", transfer->url, strerror(-r));
    return path_transport_end_of(r);
}

static bool is_version(const struct remote_version *version, const struct stat *st)
{
    struct file_version found = file_version_of(st);
    char text[FILE_VERSION_SIZE];

    file_version_print(&found, text);
    return !strcmp(version->etag, text);
}

static bool is_stopped(struct path_transport *t, const struct transfer *transfer)
{
    LOCK_SCOPE(&t->lock);

    return transfer->impl == STOP;
}

/* The next transfer that was stopped while it waited, or NULL. */
static struct transfer *take_stopped(struct path_transport *t)
{
    LOCK_SCOPE(&t->lock);

    for (struct transfer **at = &t->first; *at; at = &(*at)->next) {
        struct transfer *transfer = *at;

        if (transfer->impl != STOP)
            continue;
        unlink_locked(t, at);
        return transfer;
    }
    return NULL;
}

static void end_stopped(struct path_transport *t)
{
    struct diag d = DIAG_INIT;
    struct transfer *transfer;

    while ((transfer = take_stopped(t)))
        transfer->end(transfer, TRANSFER_STOPPED, 0, &d);
}

/* Read all pieces, each from the right version. */
static enum transfer_end read_pieces(struct path_transport *t, struct transfer *transfer, int fd,
                                     struct diag *d)
{
    uint64_t off = transfer->off, left = transfer->len;
    AUTO_FREE uint8_t *bytes = malloc(PIECE);
    struct stat st;

    if (!bytes)
        return fail(transfer, -ENOMEM, d);
    for (size_t n; left; off += n, left -= n) {
        int r;

        n = (size_t)min_u64(left, PIECE);
        end_stopped(t);
        if (is_stopped(t, transfer))
            return TRANSFER_STOPPED;
        r = file_pread(fd, bytes, n, off);
        if (r == 0 && fstat(fd, &st) < 0)
            r = -errno;
        if (r == -ESTALE || (r == 0 && !is_version(transfer->version, &st))) {
            diag_set(d, -ESTALE, "%s: the file has changed since it was listed", transfer->url);
            return TRANSFER_CHANGED;
        }
        if (r < 0)
            return fail(transfer, r, d);
        if (!transfer->data(transfer, bytes, n))
            return TRANSFER_STOPPED;
    }
    return TRANSFER_DONE;
}

static enum transfer_end run(struct path_transport *t, struct transfer *transfer, struct diag *d)
{
    AUTO_CLOSE int fd = -1;
    enum transfer_end how;
    struct stat st;
    int r;

    if (is_stopped(t, transfer))
        return TRANSFER_STOPPED;
    r = within_open_real(transfer->url, &fd, &st);
    if (r < 0)
        return fail(transfer, r, d);
    how = read_pieces(t, transfer, fd, d);
    /* It is staged now: free its page cache, so that it does not take memory twice. */
    posix_fadvise(fd, (off_t)transfer->off, (off_t)transfer->len, POSIX_FADV_DONTNEED);
    return how;
}

/* ---- threads ---- */

static void *path_transport_thread_main(void *arg)
{
    struct path_transport *t = arg;

    lock_take(&t->lock);
    for (;;) {
        struct diag d = DIAG_INIT;
        struct transfer *transfer;
        enum transfer_end how;

        while (!t->first && !t->resting) {
            t->idle++;
            lock_wait(&t->lock, &t->wake);
            t->idle--;
        }
        if (!t->first)
            break;
        transfer = t->first;
        unlink_locked(t, &t->first);
        lock_drop(&t->lock);
        how = run(t, transfer, &d);
        transfer->end(transfer, how, 0, &d);
        lock_take(&t->lock);
    }
    lock_drop(&t->lock);
    return NULL;
}

/* Add a thread if it pays. */
static int add_thread_locked(struct path_transport *t)
{
    lock_assert_held(&t->lock);
    if (t->queued <= t->idle || t->threads == t->jobs)
        return 0;
    t->threads += thread_start(&t->thread[t->threads], path_transport_thread_main, t) == 0;
    return t->threads ? 0 : -EAGAIN;
}

/* ---- the ops ---- */

static int path_start(struct transport *transport, struct transfer *transfer)
{
    struct path_transport *t = (struct path_transport *)transport;
    struct transfer **at;
    int r;
    LOCK_SCOPE(&t->lock);

    transfer->impl = NULL;
    transfer->next = NULL;
    at = t->end;
    *at = transfer;
    t->end = &transfer->next;
    t->queued++;
    r = add_thread_locked(t);
    if (r < 0)
        unlink_locked(t, at);
    else
        pthread_cond_signal(&t->wake);
    return r;
}

static void path_stop(struct transport *transport, struct transfer *transfer)
{
    struct path_transport *t = (struct path_transport *)transport;
    LOCK_SCOPE(&t->lock);

    transfer->impl = STOP;
}

static void path_rest(struct transport *transport)
{
    struct path_transport *t = (struct path_transport *)transport;
    unsigned n;

    lock_take(&t->lock);
    t->resting = true;
    n = t->threads;
    pthread_cond_broadcast(&t->wake);
    lock_drop(&t->lock);
    for (unsigned i = 0; i < n; i++)
        pthread_join(t->thread[i], NULL);
    lock_take(&t->lock);
    t->resting = false;
    t->threads = 0;
    lock_drop(&t->lock);
}

static void path_free(struct transport *transport)
{
    struct path_transport *t = (struct path_transport *)transport;

    path_rest(transport);
    pthread_cond_destroy(&t->wake);
    lock_release(&t->lock);
    free(t);
}

int path_transport_new(unsigned jobs, struct transport **ret)
{
    static const struct transport_ops ops = {
        .start = path_start, .stop = path_stop, .stop_threads = path_rest, .free = path_free};
    struct path_transport *t = calloc(1, sizeof(*t) + jobs * sizeof(pthread_t));

    if (!t)
        return -ENOMEM;
    t->transport.ops = &ops;
    t->jobs = jobs;
    t->end = &t->first;
    lock_init(&t->lock);
    pthread_cond_init(&t->wake, NULL);
    *ret = &t->transport;
    return 0;
}
