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

struct hand_job {
    void (*job)(void *ctx);
    void *ctx;
};

struct hand {
    struct fuse_session *session;
    pthread_t thread;
    struct lock lock;
    pthread_cond_t more; /* to do, for the hand */
    pthread_cond_t less; /* to do, or it has started */
    /* Guarded by lock: */
    int started; /* 1: not yet; 0, -errno */
    bool ends;
    struct hand_job queue[HAND_QUEUE];
    uint64_t put, done; /* jobs */
    uint64_t wanted;    /* done, by who waits for less */
};

/* Who started us in the background waits until nobody has his pipes any more. */
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

/* Have a table of our own. System calls as such, for a number means another file here than in the
 * other threads, which sanitizers do not know. */
static int take_table(int session)
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

static void *hand_main(void *arg)
{
    struct hand *hand = arg;
    int r = take_table(fuse_session_fd(hand->session));
    LOCK_SCOPE(&hand->lock);

    hand->started = r;
    pthread_cond_broadcast(&hand->less);
    while (r == 0) {
        struct hand_job job = hand->queue[hand->done % HAND_QUEUE];

        if (hand->done == hand->put) {
            if (hand->ends)
                break;
            lock_wait(&hand->lock, &hand->more);
            continue;
        }
        lock_drop(&hand->lock);
        job.job(job.ctx);
        lock_take(&hand->lock);
        if (++hand->done == hand->wanted)
            pthread_cond_signal(&hand->less);
    }
    return NULL;
}

static void wait_locked(struct hand *hand, uint64_t done)
{
    lock_assert_held(&hand->lock);
    hand->wanted = done;
    while (hand->done < done)
        lock_wait(&hand->lock, &hand->less);
}

static void hand_release(struct hand *hand)
{
    pthread_cond_destroy(&hand->more);
    pthread_cond_destroy(&hand->less);
    lock_release(&hand->lock);
    free(hand);
}

int hand_new(struct fuse_session *session, struct hand **ret)
{
    struct hand *hand = calloc(1, sizeof(*hand));
    int r;

    if (!hand)
        return -ENOMEM;
    hand->session = session;
    hand->started = 1;
    lock_init(&hand->lock);
    condition_init(&hand->more);
    condition_init(&hand->less);
    r = thread_start(&hand->thread, hand_main, hand);
    if (r < 0) {
        hand_release(hand);
        return r;
    }
    lock_take(&hand->lock);
    while (hand->started > 0)
        lock_wait(&hand->lock, &hand->less);
    r = hand->started;
    lock_drop(&hand->lock);
    if (r < 0)
        hand_free(hand);
    else
        *ret = hand;
    return r;
}

void hand_free(struct hand *hand)
{
    if (!hand)
        return;
    lock_take(&hand->lock);
    hand->ends = true;
    pthread_cond_signal(&hand->more);
    lock_drop(&hand->lock);
    pthread_join(hand->thread, NULL);
    hand_release(hand);
}

/* Who waits for a full queue is woken when half of it is done, so that the two threads do not take
 * turns at each job. */
void hand_put(struct hand *hand, void (*job)(void *ctx), void *ctx)
{
    LOCK_SCOPE(&hand->lock);

    if (hand->put - hand->done == HAND_QUEUE)
        wait_locked(hand, hand->put - HAND_QUEUE / 2);
    hand->queue[hand->put % HAND_QUEUE] = (struct hand_job){job, ctx};
    if (hand->put++ == hand->done)
        pthread_cond_signal(&hand->more);
}

void hand_wait(struct hand *hand)
{
    LOCK_SCOPE(&hand->lock);

    wait_locked(hand, hand->put);
}
