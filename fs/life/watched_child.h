/* A watched child: a process for work that may hang in the kernel, such as touching a mount whose
 * daemon hangs. If the work takes too long, the caller goes on without it. */
#ifndef EPOCHFS_FS_LIFE_WATCHED_CHILD_H
#define EPOCHFS_FS_LIFE_WATCHED_CHILD_H

#include <signal.h>

#include "base/text.h"

struct clock;

struct watched_child_work {
    /* Runs in the child; returns 0 or an errno. The caller gets what it writes to out. All other
     * descriptors are closed, and 0 to 2 are /dev/null: a process that waits for the end of our
     * output must not wait for the child. */
    int (*work)(const void *ctx, int out);
    const void *ctx;
    int ms; /* time limit */
    const volatile sig_atomic_t
        *cancelled;            /* ends the wait, set by a handler; NULL: nothing does */
    const struct clock *clock; /* of ms; NULL: the real one */
};

/* 0 or -errno, as the work returns it; -ETIMEDOUT; -EINTR: cancelled; -EAGAIN, -EMFILE: it was not
 * begun; -EIO: it was killed. Only in a process of one thread. */
int watched_child_do(const struct watched_child_work *work, struct text *ret);

#endif
