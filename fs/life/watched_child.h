/* Work that may hang in the kernel, such as a look at a mount whose daemon hangs: a child does it,
 * and is left alone if it takes too long. */
#ifndef EPOCHFS_FS_LIFE_WATCHED_CHILD_H
#define EPOCHFS_FS_LIFE_WATCHED_CHILD_H

#include <signal.h>

#include "base/text.h"

struct watched_child_work {
    /* In the child: 0 or an errno. What it writes to out, the caller gets. It has no other
     * descriptors, but /dev/null as 0 to 2: who waits for our output shall not wait for it. */
    int (*work)(const void *ctx, int out);
    const void *ctx;
    int ms; /* that it may take */
    const volatile sig_atomic_t
        *cancelled; /* ends the wait, set by a handler; NULL: nothing does */
};

/* Returns 0 or -errno as the work does; -ETIMEDOUT; -EINTR: cancelled; -EAGAIN, -EMFILE: it was not
 * begun; -EIO: it was killed. By a process of one thread. */
int watched_child_do(const struct watched_child_work *work, struct text *ret);

#endif
