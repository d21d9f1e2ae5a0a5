#include "fs/life/daemon.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Kernels before 5.9 have no close_range(2). */
static void close_one_by_one(unsigned from, unsigned to)
{
    DIR *dir = opendir("/proc/self/fd");
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        long fd = strtol(entry->d_name, NULL, 10);

        if (fd >= from && fd <= to && fd != dirfd(dir))
            close((int)fd);
    }
    if (dir)
        closedir(dir);
}

static void close_from_to(unsigned from, unsigned to)
{
    if (syscall(SYS_close_range, from, to, 0) < 0)
        close_one_by_one(from, to);
}

void daemon_close_inherited(int keep)
{
    int fd = open("/dev/null", O_RDWR);

    while (fd >= 0 && fd <= STDERR_FILENO) /* the lowest free one: it was closed */
        fd = dup(fd);
    if (keep > STDERR_FILENO + 1)
        close_from_to(STDERR_FILENO + 1, (unsigned)keep - 1);
    close_from_to((unsigned)(keep < 0 ? STDERR_FILENO : keep) + 1, ~0U);
}

int daemon_leave_session(void)
{
    setsid();
    return chdir("/") < 0 ? -errno : 0;
}

void daemon_leave_files(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0)
        return;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
    if (null > STDERR_FILENO)
        close(null);
}
