#include "fs/hand.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/lock.h"
#include "fs/serve_parts.h"

enum hand_state { HAND_STARTS, HAND_IDLE, HAND_BUSY, HAND_ENDS };

struct hand {
    struct server *server;
    pthread_t thread;
    struct lock lock;
    pthread_cond_t change;
    /* Guarded by lock: */
    enum hand_state state;
    int (*job)(void *ctx);
    void *ctx;
    int result; /* of the start, then of the job */
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

static void set_locked(struct hand *hand, enum hand_state state, int result)
{
    lock_assert_held(&hand->lock);
    hand->result = result;
    hand->state = state;
    pthread_cond_broadcast(&hand->change);
}

static void *hand_main(void *arg)
{
    struct hand *hand = arg;
    int r = take_table(fuse_session_fd(hand->server->session));
    LOCK_SCOPE(&hand->lock);

    set_locked(hand, HAND_IDLE, r);
    while (r == 0 && hand->state != HAND_ENDS) {
        if (hand->state != HAND_BUSY) {
            lock_wait(&hand->lock, &hand->change);
            continue;
        }
        lock_drop(&hand->lock);
        r = hand->job(hand->ctx);
        lock_take(&hand->lock);
        set_locked(hand, HAND_IDLE, r);
        r = 0;
    }
    return NULL;
}

int hand_new(struct server *server, struct hand **ret)
{
    struct hand *hand = calloc(1, sizeof(*hand));
    int r;

    if (!hand)
        return -ENOMEM;
    hand->server = server;
    lock_init(&hand->lock);
    condition_init(&hand->change);
    r = server_thread(&hand->thread, hand_main, hand);
    if (r < 0) {
        pthread_cond_destroy(&hand->change);
        lock_release(&hand->lock);
        free(hand);
        return r;
    }
    lock_take(&hand->lock);
    while (hand->state == HAND_STARTS)
        lock_wait(&hand->lock, &hand->change);
    r = hand->result;
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
    set_locked(hand, HAND_ENDS, 0);
    lock_drop(&hand->lock);
    pthread_join(hand->thread, NULL);
    pthread_cond_destroy(&hand->change);
    lock_release(&hand->lock);
    free(hand);
}

int hand_do(struct hand *hand, int (*job)(void *ctx), void *ctx)
{
    LOCK_SCOPE(&hand->lock);

    hand->job = job;
    hand->ctx = ctx;
    set_locked(hand, HAND_BUSY, 0);
    while (hand->state == HAND_BUSY)
        lock_wait(&hand->lock, &hand->change);
    return hand->result;
}
