#include "cache/source/within.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scope.h"
#include "cache/disk/local_file.h"
#include "cache/source/access.h"

int within_real_path(int fd, const char *path, char ret[static PATH_MAX])
{
    char link[40];
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, ret, PATH_MAX);
    if (n >= PATH_MAX)
        return -ENAMETOOLONG;
    if (n < 0)
        return realpath(path, ret) ? 0 : -errno;
    ret[n] = '\0';
    return 0;
}

int within_check_real(const struct within *within, const char *real, const char *name,
                      struct diag *d)
{
    if (within->allow_outside || roots_inside(within->roots, real))
        return 0;
    return diag_set(d, -EXDEV,
                    "%.500s: a link to %.500s, which lies outside of SOURCE; mount with -o "
                    "allow_outside to follow links that leave SOURCE",
                    name, real);
}

int within_check(const struct within *within, int fd, const char *path, const char *name,
                 struct diag *d)
{
    char real[PATH_MAX];
    int r;

    if (within->allow_outside)
        return 0;
    r = within_real_path(fd, path, real);
    return r < 0 ? diag_set(d, r, "%.500s: %s", name, strerror(-r))
                 : within_check_real(within, real, name, d);
}

unsigned within_mode(const struct within *within, int fd, const char *path, const char *real,
                     const struct stat *st)
{
    unsigned mode = st->st_mode & 0777, left;
    char found[PATH_MAX];

    if (!within->for_others)
        return mode;
    if (!real && within_real_path(fd, path, found) < 0)
        return 0;
    real = real ? real : found;
    mode = access_bits(real, st);
    left = access_on_way(within->roots, path, real, st->st_uid, st->st_gid);
    return mode & (left | left >> 1 | left >> 2);
}

int within_open_real(const char *real, int *ret_fd, struct stat *ret_st)
{
    const struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
                                 .resolve = RESOLVE_NO_SYMLINKS};
    AUTO_CLOSE int fd = (int)syscall(SYS_openat2, AT_FDCWD, real, &how, sizeof(how));
    char found[PATH_MAX];
    int r;

    if (fd < 0 && errno != ENOSYS && errno != EPERM)
        return -errno;
    if (fd < 0) { /* a kernel before 5.6, or a container's filter */
        r = file_open(real, &fd, ret_st);
        if (r == 0)
            r = within_real_path(fd, real, found);
        if (r < 0)
            return r;
        if (strcmp(real, found) != 0)
            return -ELOOP;
    }
    if (fstat(fd, ret_st) < 0)
        return -errno;
    if (!S_ISREG(ret_st->st_mode))
        return -EINVAL;
    *ret_fd = TAKE_FD(fd);
    return 0;
}
