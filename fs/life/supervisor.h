/* The supervisor: a small process that ends what requests are left when the daemon is killed.
 *
 * A thread of the daemon that waits in the kernel for a page of this mount (see hand.h) keeps the
 * connection open with its clone. What the daemon had read ends when its own descriptor is closed;
 * but a request that it had not read yet, for just that page, would wait for ever, and the thread
 * with it. The supervisor answers those, with an error, until the daemon has ended altogether.
 * Until then it sleeps. */
#ifndef EPOCHFS_FS_LIFE_SUPERVISOR_H
#define EPOCHFS_FS_LIFE_SUPERVISOR_H

#include <sys/types.h>

struct supervisor {
    pid_t pid; /* 0: none */
    int fd;    /* its end wakes the supervisor: it must be in no hand's table */
};

/* Start it for a session's descriptor. 0 or -errno. */
int supervisor_start(int session, struct supervisor *ret);

/* End it. Zeroed: there is none. */
void supervisor_stop(struct supervisor *supervisor);

#endif
