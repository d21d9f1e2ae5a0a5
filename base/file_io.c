#include "base/file_io.h"

#include <errno.h>
#include <unistd.h>

ssize_t file_read_some(int fd, void *buf, size_t len, uint64_t off)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = pread(fd, (uint8_t *)buf + done, len - done, (off_t)(off + done));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

int file_pread(int fd, void *buf, size_t len, uint64_t off)
{
    ssize_t n = file_read_some(fd, buf, len, off);

    return n < 0 ? (int)n : (size_t)n < len ? -ESTALE : 0; /* the file has become shorter */
}

int file_pwrite(int fd, const void *bytes, size_t len, uint64_t off)
{
    const uint8_t *at = bytes;

    while (len) {
        ssize_t n = pwrite(fd, at, len, (off_t)off);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        at += n;
        off += (uint64_t)n;
        len -= (size_t)n;
    }
    return 0;
}
