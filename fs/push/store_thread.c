#include "fs/push/store_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <linux/fuse.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/thread.h"

struct store_job {
    void (*job)(void *ctx);
    void *ctx;
};

struct store_thread {
    struct fuse_session *session;
    pthread_t thread;
    struct lock lock;
    pthread_cond_t more; /* jobs to do, for the store thread */
    pthread_cond_t less; /* jobs to do, or the thread has started */
    /* Guarded by lock: */
    int started; /* 1: not yet; 0, -errno */
    bool ends;
    struct store_job queue[STORE_QUEUE];
    uint64_t put, done; /* jobs */
    uint64_t wanted;    /* value of done that the waiting thread needs */
};

/* The process that started us in the background waits until its pipes are closed everywhere. */
static int leave_standard_files(void)
{
    long null = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0)
        return -errno;
    for (int fd = 0; fd < 3; fd++)
        if (null > fd && syscall(SYS_dup3, (int)null, fd, 0) < 0)
            return -errno;
    return 0;
}

/* Get a descriptor table of our own. Direct system calls, because a number here means another file
 * than in the other threads, which sanitizers do not know. */
static int store_thread_take_table(int session)
{
    int r = unshare(CLONE_FILES) < 0 ? -errno : leave_standard_files();
    long fd;

    if (r < 0)
        return r;
    fd = syscall(SYS_openat, AT_FDCWD, "/dev/fuse", O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (syscall(SYS_ioctl, (int)fd, FUSE_DEV_IOC_CLONE, &session) < 0 ||
        syscall(SYS_dup3, (int)fd, session, O_CLOEXEC) < 0 ||
        (session > 3 && syscall(SYS_close_range, 3, session - 1, 0) < 0) ||
        syscall(SYS_close_range, session + 1, ~0U, 0) < 0)
        return -errno;
    return 0;
}

static void *store_thread_main(void *arg)
{
    struct store_thread *store_thread = arg;
    int r = store_thread_take_table(fuse_session_fd(store_thread->session));
    LOCK_SCOPE(&store_thread->lock);

    store_thread->started = r;
    pthread_cond_broadcast(&store_thread->less);
    while (r == 0) {
        struct store_job job = store_thread->queue[store_thread->done % STORE_QUEUE];

        if (store_thread->done == store_thread->put) {
            if (store_thread->ends)
                break;
            lock_wait(&store_thread->lock, &store_thread->more);
            continue;
        }
        lock_drop(&store_thread->lock);
        job.job(job.ctx);
        lock_take(&store_thread->lock);
        if (++store_thread->done == store_thread->wanted)
            pthread_cond_signal(&store_thread->less);
    }
    return NULL;
}

static void store_thread_wait_locked(struct store_thread *store_thread, uint64_t done)
{
    lock_assert_held(&store_thread->lock);
    store_thread->wanted = done;
    while (store_thread->done < done)
        lock_wait(&store_thread->lock, &store_thread->less);
}

static void store_thread_release(struct store_thread *store_thread)
{
    pthread_cond_destroy(&store_thread->more);
    pthread_cond_destroy(&store_thread->less);
    lock_release(&store_thread->lock);
    free(store_thread);
}

int store_thread_new(struct fuse_session *session, struct store_thread **ret)
{
    struct store_thread *store_thread = calloc(1, sizeof(*store_thread));
    int r;

    if (!store_thread)
        return -ENOMEM;
    store_thread->session = session;
    store_thread->started = 1;
    lock_init(&store_thread->lock);
    condition_init(&store_thread->more);
    condition_init(&store_thread->less);
    r = thread_start(&store_thread->thread, store_thread_main, store_thread);
    if (r < 0) {
        store_thread_release(store_thread);
        return r;
    }
    lock_take(&store_thread->lock);
    while (store_thread->started > 0)
        lock_wait(&store_thread->lock, &store_thread->less);
    r = store_thread->started;
    lock_drop(&store_thread->lock);
    if (r < 0)
        store_thread_free(store_thread);
    else
        *ret = store_thread;
    return r;
}

void store_thread_free(struct store_thread *store_thread)
{
    if (!store_thread)
        return;
    lock_take(&store_thread->lock);
    store_thread->ends = true;
    pthread_cond_signal(&store_thread->more);
    lock_drop(&store_thread->lock);
    pthread_join(store_thread->thread, NULL);
    store_thread_release(store_thread);
}

/* A thread that waits because the queue is full is woken when half of it is done, so that the two
 * threads do not alternate at each job. */
void store_thread_put(struct store_thread *store_thread, void (*job)(void *ctx), void *ctx)
{
    LOCK_SCOPE(&store_thread->lock);

    if (store_thread->put - store_thread->done == STORE_QUEUE)
        store_thread_wait_locked(store_thread, store_thread->put - STORE_QUEUE / 2);
    store_thread->queue[store_thread->put % STORE_QUEUE] = (struct store_job){job, ctx};
    if (store_thread->put++ == store_thread->done)
        pthread_cond_signal(&store_thread->more);
}

void store_thread_wait(struct store_thread *store_thread)
{
    LOCK_SCOPE(&store_thread->lock);

    store_thread_wait_locked(store_thread, store_thread->put);
}
