#include "fs/life/passed.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fs/life/mounts.h"

#define FUSE_MAJOR 10 /* of /dev/fuse: Documentation/admin-guide/devices.txt of Linux */
#define FUSE_MINOR 229

static const char prefix[] = "/dev/fd/";

bool passed_names(const char *mountpoint)
{
    return !strncmp(mountpoint, prefix, strlen(prefix));
}

int passed_parse(const char *mountpoint, struct diag *d)
{
    const char *digits = mountpoint + strlen(prefix);
    size_t len = strspn(digits, "0123456789");
    long fd = len && len < 10 ? strtol(digits, NULL, 10) : -1;

    if (fd <= STDERR_FILENO || digits[len])
        return diag_set(d, -EINVAL,
                        "mountpoint %s: expected /dev/fd/N, where N is a descriptor of 3 or more",
                        mountpoint);
    return (int)fd;
}

/* The device of the mount: its minor number; 0: Linux does not say it. */
static unsigned passed_connection(int fd)
{
    char path[64], line[128];
    unsigned minor = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f) && sscanf(line, "fuse_connection: %u", &minor) != 1)
        continue;
    if (f)
        fclose(f);
    return minor;
}

struct passed_search {
    unsigned minor;
    char *ret;
};

/* The first mount of the device; others are copies, in other places. */
static void passed_find(void *ctx, const struct mount_entry *entry, const char *path,
                        const char *type, const char *source)
{
    const struct passed_search *search = ctx;

    (void)source;
    if (!*search->ret && entry->device_major == 0 && entry->device_minor == search->minor &&
        mounts_is_fuse(type))
        snprintf(search->ret, PATH_MAX, "%s", path);
}

int passed_check(int fd, char ret_mountpoint[static PATH_MAX], struct diag *d)
{
    struct passed_search search = {.ret = ret_mountpoint};
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct stat st;

    if (fstat(fd, &st) < 0)
        return diag_set(d, -EINVAL,
                        "mountpoint %s%d: expected a descriptor of /dev/fuse, got a number that "
                        "is not open; pass it on to epochfs (without FD_CLOEXEC)",
                        prefix, fd);
    if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(FUSE_MAJOR, FUSE_MINOR))
        return diag_set(d, -EINVAL,
                        "mountpoint %s%d: expected a descriptor of /dev/fuse, got another file; "
                        "name a directory by its path",
                        prefix, fd);
    if (poll(&p, 1, 0) < 0 || p.revents & (POLLERR | POLLHUP | POLLNVAL))
        return diag_set(d, -EINVAL,
                        "mountpoint %s%d: expected a descriptor that is mounted, got one that is "
                        "not; first call mount(2) with the option fd=%d",
                        prefix, fd, fd);
    if (!p.revents) /* the first request is there when mount(2) returns */
        return diag_set(d, -EINVAL,
                        "mountpoint %s%d: expected a mount that waits for its server, got one "
                        "that a program serves already; mount again",
                        prefix, fd);
    *ret_mountpoint = '\0';
    search.minor = passed_connection(fd);
    if (search.minor)
        mounts_each(passed_find, &search);
    return fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ||
                   fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) < 0
               ? diag_set(d, -errno, "mountpoint %s%d: %s", prefix, fd, strerror(errno))
               : 0;
}
