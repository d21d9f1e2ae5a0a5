#include "fs/life/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/life/privileges.h"

#define REQUEST_MAX ((1 << 20) + 4096)

static uint8_t request[REQUEST_MAX]; /* only the supervisor touches it */

/* Answer a request as the kernel does when there is no daemon. Requests that expect no answer are
 * only read. */
static void supervisor_refuse(int fuse)
{
    const struct fuse_in_header *in = (const void *)request;
    struct fuse_out_header out = {.len = sizeof(out), .error = -ENOTCONN};
    ssize_t n = read(fuse, request, sizeof(request));

    if (n < (ssize_t)sizeof(*in))
        return;
    out.unique = in->unique;
    while (write(fuse, &out, sizeof(out)) < 0 && errno == EINTR) {
    }
}

/* The process. Makes system calls only: it was forked from a process that may have had threads. */
static _Noreturn void supervisor(int fuse, int daemon, int pipe_end)
{
    struct pollfd waits[] = {{.fd = daemon, .events = POLLIN}, {.fd = fuse, .events = POLLIN}};
    uint8_t byte;

    while (read(pipe_end, &byte, 1) < 0 && errno == EINTR) {
    }
    while (poll(waits, 2, -1) > 0 && !waits[0].revents) {
        if (waits[1].revents & (POLLERR | POLLHUP | POLLNVAL)) /* unmounted, or aborted */
            waits[1].fd = -1;
        else
            supervisor_refuse(fuse);
    }
    _exit(0);
}

static int clone_of(int session)
{
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return -errno;
    if (ioctl(fd, FUSE_DEV_IOC_CLONE, &session) < 0) {
        close(fd);
        return -errno;
    }
    return fd;
}

/* Close all descriptors of the daemon but three, which become 3 to 5. */
static _Noreturn void supervisor_begin(int fuse, int daemon, int pipe_end)
{
    int from[] = {fuse, daemon, pipe_end}, null = open("/dev/null", O_RDWR);
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setsid();
    for (int i = 0; i < 3; i++) /* move them out of the way first */
        from[i] = fcntl(from[i], F_DUPFD, 16);
    for (int i = 0; i < 3; i++)
        if (null < 0 || from[i] < 0 || dup2(null, i) < 0 || dup2(from[i], 3 + i) < 0)
            _exit(1);
    close_range(6, ~0U, 0);
    privileges_give_up();
    supervisor(3, 4, 5);
}

int supervisor_start(int session, struct supervisor *ret)
{
    int ends[2], fuse = clone_of(session), daemon;
    pid_t pid;

    if (fuse < 0)
        return fuse;
    daemon = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (daemon < 0 || pipe2(ends, O_CLOEXEC) < 0) {
        close(fuse);
        return -errno;
    }
    pid = fork();
    if (pid == 0)
        supervisor_begin(fuse, daemon, ends[0]);
    close(fuse);
    close(daemon);
    close(ends[0]);
    if (pid < 0) {
        close(ends[1]);
        return -EAGAIN;
    }
    *ret = (struct supervisor){pid, ends[1]};
    return 0;
}

void supervisor_stop(struct supervisor *supervisor)
{
    if (!supervisor->pid)
        return;
    kill(supervisor->pid, SIGKILL);
    while (waitpid(supervisor->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    close(supervisor->fd);
    *supervisor = (struct supervisor){0};
}
