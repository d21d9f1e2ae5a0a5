#include "cache/disk/local_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/checked.h"

struct file_version file_version_of(const struct stat *st)
{
    return (struct file_version){st->st_dev, st->st_ino, (uint64_t)st->st_size, st->st_mtim};
}

bool file_version_is(const struct file_version *version, const struct stat *st)
{
    return version->dev == st->st_dev && version->ino == st->st_ino &&
           version->size == (uint64_t)st->st_size && version->mtime.tv_sec == st->st_mtim.tv_sec &&
           version->mtime.tv_nsec == st->st_mtim.tv_nsec;
}

int file_version_text(const struct file_version *version, char **ret)
{
    return asprintf(ret, "local %llu %llu %llu %lld.%09ld", (unsigned long long)version->dev,
                    (unsigned long long)version->ino, (unsigned long long)version->size,
                    (long long)version->mtime.tv_sec, version->mtime.tv_nsec) < 0
               ? -ENOMEM
               : 0;
}

int file_open(const char *path, int *ret_fd, struct stat *ret_st)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd < 0 || fstat(fd, ret_st) < 0)
        return -errno;
    if (!S_ISREG(ret_st->st_mode))
        return -EINVAL;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int file_pread(int fd, void *buf, size_t len, uint64_t off)
{
    uint8_t *at = buf;

    while (len) {
        ssize_t n = pread(fd, at, len, (off_t)off);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            return -ESTALE; /* the file ends earlier than it did */
        at += n;
        off += (uint64_t)n;
        len -= (size_t)n;
    }
    return 0;
}

int file_lock(int fd, short type, uint64_t start, uint64_t len, bool wait)
{
    struct flock lock = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)start, .l_len = (off_t)len};

    while (fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &lock) < 0)
        if (errno != EINTR)
            return errno == EACCES ? -EAGAIN : -errno;
    return 0;
}

void file_describe(const struct stat *st, uint64_t size, struct blob *ret)
{
    ret->size = min_u64(size, (uint64_t)st->st_size);
    ret->mtime = st->st_mtim;
    ret->mode = st->st_mode & 0777;
    ret->uid = st->st_uid;
    ret->gid = st->st_gid;
}
