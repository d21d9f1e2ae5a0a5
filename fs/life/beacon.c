#include "fs/life/beacon.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "base/scope.h"

#define WAITING   64 /* connections that may wait for beacon_answer() */
#define PATH_MOST 72 /* bytes of a path in a name: its end */

static socklen_t beacon_name_of(const char *path, const struct mount_entry *mount,
                                struct sockaddr_un *ret)
{
    size_t path_len = strlen(path);
    int len;

    *ret = (struct sockaddr_un){.sun_family = AF_UNIX}; /* sun_path[0] is NUL: abstract */
    len = snprintf(ret->sun_path + 1, sizeof(ret->sun_path) - 1, "epochfs/%u:%u%s",
                   mount->device_major, mount->device_minor,
                   path + (path_len > PATH_MOST ? path_len - PATH_MOST : 0));
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

static int new_socket(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    return fd < 0 ? -errno : fd;
}

int beacon_light(const char *path, const struct mount_entry *mount)
{
    AUTO_CLOSE int fd = new_socket();
    struct sockaddr_un name;
    socklen_t len = beacon_name_of(path, mount, &name);

    if (fd < 0)
        return fd;
    if (bind(fd, (const struct sockaddr *)&name, len) < 0 || listen(fd, WAITING) < 0)
        return -errno;
    return TAKE_FD(fd);
}

bool beacon_answer(int beacon)
{
    int fd;

    while ((fd = accept4(beacon, NULL, NULL, SOCK_CLOEXEC)) >= 0)
        close(fd);
    return errno == EAGAIN;
}

int beacon_find(const char *path, const struct mount_entry *mount, pid_t *ret_pid)
{
    AUTO_CLOSE int fd = new_socket();
    struct ucred daemon;
    struct sockaddr_un name;
    socklen_t len = beacon_name_of(path, mount, &name), size = sizeof(daemon);
    int found;

    if (fd < 0)
        return fd;
    if (connect(fd, (const struct sockaddr *)&name, len) < 0)
        return errno == ECONNREFUSED ? -ENOENT : -errno;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &daemon, &size) < 0)
        return -errno;
    if (daemon.pid <= 0 || daemon.uid != mount->owner) /* not of this container, or an impostor */
        return -ENOENT;
    found = (int)syscall(SYS_pidfd_open, daemon.pid, 0);
    if (found < 0)
        return -errno;
    *ret_pid = daemon.pid;
    return found;
}
