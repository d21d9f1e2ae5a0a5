/* A running shell command. Its output goes to a descriptor; the end of its messages is kept. */
#ifndef EPOCHFS_CACHE_NAMED_CHILD_H
#define EPOCHFS_CACHE_NAMED_CHILD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct clock;

#define CHILD_MESSAGES 300 /* bytes of stderr that are kept */

/* Used by one thread at a time. */
struct child {
    pid_t pid;  /* also of its process group; 0: none, or it was reaped */
    int pid_fd; /* readable when it has ended; -1: this kernel has no pidfd_open(2) */
    int messages_fd;
    size_t messages_len;
    char messages[CHILD_MESSAGES + 1];
};

#define CHILD_NONE                                                                                 \
    (struct child)                                                                                 \
    {                                                                                              \
        .pid_fd = -1, .messages_fd = -1                                                            \
    }

/* Run /bin/sh -c command in the folder cwd: in a process group of its own, with signals as in a
 * login shell, stdin in_fd (-1: empty), stdout out_fd, and no other descriptor of ours. 0 and the
 * caller releases *ret, or -errno and nothing to release. */
int child_start(struct child *ret, const char *command, const char *cwd, int in_fd, int out_fd);

/* Wait for the child to end, at most until clock_monotonic() reaches `until`. 1: it has ended, with
 * its status as from waitpid(2), and no process of its group is left; 0: it is running; or -errno.
 */
int child_wait(struct child *child, const struct clock *clock, int64_t until, int *ret_status);

/* What the child wrote to stderr last, on one line. Valid as long as child. */
const char *child_messages(struct child *child);

/* Kill the group if the child is still running, and reap the child. */
void child_release(struct child *child);

#endif
