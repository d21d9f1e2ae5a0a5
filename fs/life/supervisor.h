/* The supervisor: a small process that ends the requests that are left when the daemon is killed.
 *
 * A thread of the daemon that waits in the kernel for a page of this mount (see
 * fs/push/store_thread.h) keeps the connection open with its clone. Requests that the daemon has
 * read end when its own descriptor is closed. But a request for that same page that the daemon has
 * not read yet would wait for ever, and the thread with it. The supervisor sleeps until the daemon
 * is killed; then it answers such requests with an error until the daemon has ended altogether. */
#ifndef EPOCHFS_FS_LIFE_SUPERVISOR_H
#define EPOCHFS_FS_LIFE_SUPERVISOR_H

#include <sys/types.h>

struct supervisor {
    pid_t pid; /* 0: none */
    int fd;    /* closing it wakes the supervisor: no store thread may have it open */
};

/* Start the supervisor for a session's descriptor. 0 or -errno. */
int supervisor_start(int session, struct supervisor *ret);

/* End it. Takes a zeroed one. */
void supervisor_stop(struct supervisor *supervisor);

#endif
