#include "cache/disk/local_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/file_io.h"

#define PAUSE_LEAST_NS 20000 /* a lock is mostly held for a moment */
#define PAUSE_STEPS    8     /* up to 5 ms */

struct file_version file_version_of(const struct stat *st)
{
    return (struct file_version){st->st_dev, st->st_ino, (uint64_t)st->st_size, st->st_mtim,
                                 st->st_ctim};
}

struct file_version file_version_of_own(const struct stat *st)
{
    struct file_version version = file_version_of(st);

    version.ctime = (struct timespec){.tv_nsec = -1};
    return version;
}

static bool is_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool file_version_is(const struct file_version *version, const struct stat *st)
{
    return version->dev == st->st_dev && version->ino == st->st_ino &&
           version->size == (uint64_t)st->st_size && is_time(&version->mtime, &st->st_mtim) &&
           (version->ctime.tv_nsec < 0 || is_time(&version->ctime, &st->st_ctim));
}

void file_version_print(const struct file_version *version, char ret[static FILE_VERSION_SIZE])
{
    snprintf(ret, FILE_VERSION_SIZE, "local %llu %llu %llu %lld.%09ld %lld.%09ld",
             (unsigned long long)version->dev, (unsigned long long)version->ino,
             (unsigned long long)version->size, (long long)version->mtime.tv_sec,
             version->mtime.tv_nsec, (long long)version->ctime.tv_sec, version->ctime.tv_nsec);
}

int file_version_text(const struct file_version *version, char **ret)
{
    char text[FILE_VERSION_SIZE];

    file_version_print(version, text);
    return text_print(ret, "%s", text);
}

/* After one wait in vain, others in this process are short for a while: another user of a group's
 * folder may hold a lock on each file. */
#define WAIT_AGAIN_NS INT64_C(30000000000)
#define SHORT_MS      20u

static _Atomic int64_t short_until;

static int64_t wait_until(unsigned wait_ms)
{
    int64_t now = monotonic_ns();
    bool is_short = now < atomic_load(&short_until);

    return now + (is_short && wait_ms > SHORT_MS ? SHORT_MS : wait_ms) * INT64_C(1000000);
}

static void waited_in_vain(unsigned wait_ms)
{
    if (wait_ms >= FILE_LOCK_MS && monotonic_ns() >= atomic_load(&short_until))
        atomic_store(&short_until, monotonic_ns() + WAIT_AGAIN_NS);
}

/* Pause between two looks at something for which there is no event; each pause of a series is
 * longer. *step: 0 at first. */
static void file_pause(unsigned *step)
{
    const struct timespec pause = {.tv_nsec = PAUSE_LEAST_NS << *step};

    *step += *step < PAUSE_STEPS;
    nanosleep(&pause, NULL);
}

int file_openat(int folder, const char *path, int flags)
{
    int64_t until = wait_until(FILE_LOCK_MS);
    unsigned step = 0;
    int fd;

    while ((fd = openat(folder, path, flags | O_NONBLOCK)) < 0 && errno == EWOULDBLOCK) {
        if (monotonic_ns() >= until) {
            waited_in_vain(FILE_LOCK_MS);
            return -EBUSY;
        }
        file_pause(&step);
    }
    return fd < 0 ? -errno : fd;
}

int file_open(const char *path, int *ret_fd, struct stat *ret_st)
{
    AUTO_CLOSE int fd = file_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0)
        return fd;
    if (fstat(fd, ret_st) < 0)
        return -errno;
    if (!S_ISREG(ret_st->st_mode))
        return -EINVAL;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int file_read_whole(const char *path, size_t most, struct text *ret, struct stat *ret_st)
{
    AUTO_CLOSE int fd = -1;
    int r = file_open(path, &fd, ret_st);

    if (r < 0 || (uint64_t)ret_st->st_size > most)
        return r < 0 ? r : -EFBIG;
    ret->data = malloc((size_t)ret_st->st_size + 1);
    if (!ret->data)
        return -ENOMEM;
    ret->len = (size_t)ret_st->st_size;
    ret->capacity = ret->len + 1;
    ret->data[ret->len] = '\0';
    return file_pread(fd, ret->data, ret->len, 0);
}

/* RWF_NOWAIT: EAGAIN unless the page is in memory; newer kernels then also begin to read it. */
static int file_peek(int fd, uint64_t off)
{
    uint8_t byte;
    const struct iovec one = {&byte, sizeof(byte)};
    ssize_t n = preadv2(fd, &one, 1, (off_t)off, RWF_NOWAIT);

    return n >= 0 ? n > 0 : errno == EAGAIN ? 0 : -errno;
}

int file_memory(int fd, enum blob_ask ask, uint64_t off, uint64_t len)
{
    switch (ask) {
    case BLOB_PEEK:
        return file_peek(fd, off);
    case BLOB_LEAVE:
        return -posix_fadvise(fd, (off_t)off, (off_t)len, POSIX_FADV_DONTNEED);
    default:
        return readahead(fd, (off_t)off, (size_t)len) < 0 ? -errno : 0;
    }
}

/* lock NULL: flock(). */
static int lock_in_time(int fd, struct flock *lock, unsigned wait_ms)
{
    int64_t until = wait_until(wait_ms);
    unsigned step = 0;

    while ((lock ? fcntl(fd, F_OFD_SETLK, lock) : flock(fd, LOCK_EX | LOCK_NB)) < 0) {
        if (errno == EINTR)
            continue;
        if (errno != EACCES && errno != EAGAIN)
            return -errno;
        if (!wait_ms)
            return -EAGAIN;
        if (monotonic_ns() >= until) {
            waited_in_vain(wait_ms);
            return -ETIMEDOUT;
        }
        file_pause(&step);
    }
    return 0;
}

int file_lock(int fd, short type, uint64_t start, uint64_t len, unsigned wait_ms)
{
    struct flock lock = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)start, .l_len = (off_t)len};

    return lock_in_time(fd, &lock, wait_ms);
}

int file_flock(int fd, unsigned wait_ms)
{
    return lock_in_time(fd, NULL, wait_ms);
}

bool file_has_lock(int fd, uint64_t start, uint64_t len)
{
    struct flock other = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)start, .l_len = (off_t)len};

    return fcntl(fd, F_OFD_GETLK, &other) < 0 || other.l_type != F_UNLCK;
}

void file_mark_used(int fd)
{
    file_lock(fd, F_RDLCK, FILE_LOCK_USE, 1, 0); /* without it, the file may be removed early */
}

const char *file_error(int r)
{
    return r == -ETIMEDOUT ? "another process, perhaps a stopped one, keeps it locked"
                           : strerror(-r);
}

/* The lock of the folder is held while a thing is removed. So what is no regular file stays that
 * until we remove it, and no process removes what another has just made in its place. */
int file_clear_place(const struct cache_group *group, const char *path, struct diag *d)
{
    const char *name;
    AUTO_CLOSE int folder = -1;
    struct stat st;
    int r;

    folder = group_folder(group, path, &name, d);
    r = folder < 0 ? folder : file_flock(folder, FILE_LOCK_MS);
    if (r == 0 && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        r = -errno;
    else if (r == 0 && !S_ISREG(st.st_mode))
        r = unlinkat(folder, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0 ? -errno : 0;
    if (r == -ENOTEMPTY || r == -EEXIST)
        return diag_set(d, -EISDIR,
                        "%s: expected a file, got a folder that is not empty; remove it", path);
    return r < 0 && r != -ENOENT
               ? diag_set(d, r,
                          "%s: expected a file, got something else, which cannot be removed: %s",
                          path, file_error(r))
               : 0;
}

int file_open_own(const struct cache_group *group, const char *path, int *ret_fd, struct diag *d)
{
    for (;;) {
        AUTO_CLOSE int fd = -1;
        struct stat st;
        int r;

        fd = group_open_or_make(group, path, d);
        if (fd < 0 && fd != -EISDIR && fd != -ELOOP && fd != -ENXIO)
            return fd;
        if (fd >= 0 && fstat(fd, &st) < 0)
            return -errno;
        if (fd >= 0 && S_ISREG(st.st_mode)) {
            *ret_fd = TAKE_FD(fd);
            return 0;
        }
        r = file_clear_place(group, path, d);
        if (r < 0)
            return r;
    }
}

void file_describe(const struct stat *st, uint64_t size, struct blob *ret)
{
    ret->size = min_u64(size, (uint64_t)st->st_size);
    ret->mtime = st->st_mtim;
    ret->mode = st->st_mode & 0777;
    ret->uid = st->st_uid;
    ret->gid = st->st_gid;
}
