#include "fs/life/watched_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define NS_PER_MS INT64_C(1000000)
#define LOOK_MS   100 /* between two checks whether it is cancelled */

/* Collect what comes from the pipe. 0, -ETIMEDOUT, -EINTR, or -errno. */
static int collect(const struct watched_child_work *work, int pipe_fd, struct text *ret)
{
    const struct clock *clock = clock_or_real(work->clock);
    int64_t until = clock_monotonic(clock) + work->ms * NS_PER_MS;
    struct pollfd p = {.fd = pipe_fd, .events = POLLIN};
    char bytes[4096];

    for (;;) {
        int ms = clock_poll_ms(clock, until);
        ssize_t n;

        if (work->cancelled && *work->cancelled)
            return -EINTR;
        if (clock_monotonic(clock) >= until)
            return -ETIMEDOUT;
        if (poll(&p, 1, ms < LOOK_MS ? ms : LOOK_MS) <= 0)
            continue;
        n = read(pipe_fd, bytes, sizeof(bytes));
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            return ret->failed ? -ENOMEM : 0;
        if (n > 0)
            text_add_bytes(ret, bytes, (size_t)n);
    }
}

/* In the child: close all but out; 0 to 2 become /dev/null. */
static void leave_files(int out)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fd != out && (null < 0 || dup2(null, fd) < 0))
            close(fd);
    if (out > STDERR_FILENO + 1)
        syscall(SYS_close_range, STDERR_FILENO + 1, out - 1, 0);
    syscall(SYS_close_range, out + 1, ~0U, 0);
}

int watched_child_do(const struct watched_child_work *work, struct text *ret)
{
    int ends[2], r, status = 0;
    pid_t child;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    child = fork();
    if (child == 0) {
        leave_files(ends[1]);
        _exit(work->work(work->ctx, ends[1]));
    }
    close(ends[1]);
    r = child < 0 ? -EAGAIN : collect(work, ends[0], ret);
    close(ends[0]);
    if (r < 0 && child > 0)
        kill(child, SIGKILL);
    if (r < 0)
        return r;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -EIO;
    return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}
