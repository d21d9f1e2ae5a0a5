/* Local files: which version of a file is open, and its bytes. */
#ifndef EPOCHFS_CACHE_DISK_LOCAL_FILE_H
#define EPOCHFS_CACHE_DISK_LOCAL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/blob.h"
#include "base/diag.h"
#include "base/text.h"
#include "cache/disk/group_file.h"

/* The identity of a local file: what tells two versions of it apart. mtime can be set back, as by
 * `touch -r` and `cp -p`; ctime cannot, but other changes of the inode move it as well:
 * docs/spec/local.md.
 */
struct file_version {
    dev_t dev;
    ino_t ino;
    uint64_t size;
    struct timespec mtime, ctime; /* ctime.tv_nsec -1: any */
};

struct file_version file_version_of(const struct stat *st);

/* The same of a file that epochfs made in the cache folder: links to it come and go. */
struct file_version file_version_of_own(const struct stat *st);

bool file_version_is(const struct file_version *version, const struct stat *st);

/* The version as text. */
#define FILE_VERSION_SIZE 160
void file_version_print(const struct file_version *version, char ret[static FILE_VERSION_SIZE]);

/* The same, as blob_identity() gives it; the caller frees it. 0 or -ENOMEM. */
int file_version_text(const struct file_version *version, char **ret);

/* Open a regular file for reading; the caller closes *ret_fd. 0; -EINVAL: it is something else; or
 * -errno. Never waits for a pipe or a device. */
int file_open(const char *path, int *ret_fd, struct stat *ret_st);

/* Read all of a regular file of at most `most` bytes; ret: empty, and the caller releases it, also
 * on error. 0; -EFBIG: it has more; or as file_open(), file_pread(). */
int file_read_whole(const char *path, size_t most, struct text *ret, struct stat *ret_st);

/* openat(folder, path, flags | O_NONBLOCK), which tries again for FILE_LOCK_MS while another
 * program, a file server for example, has a lease on the file. The descriptor; -EBUSY: that program
 * did not give it up; or -errno. */
int file_openat(int folder, const char *path, int flags);

/* As blob_memory(), for a file. */
int file_memory(int fd, enum blob_ask ask, uint64_t off, uint64_t len);

/* How long to wait for locks that others hold for a moment. Their process may have been stopped in
 * that moment, and other users of a group's folder may hold locks for ever: for 30 s after such a
 * wait in vain, others of this process last 20 ms. */
#define FILE_LOCK_MS 5000u

/* Lock bytes of a file for its open description (F_OFD_SETLK): type F_RDLCK, F_WRLCK or F_UNLCK. 0,
 * -EAGAIN: another description holds them, and wait_ms is 0; -ETIMEDOUT: it held them so long; or
 * -errno. */
int file_lock(int fd, short type, uint64_t start, uint64_t len, unsigned wait_ms);

/* The same with flock(), exclusively. */
int file_flock(int fd, unsigned wait_ms);

/* Does another open description of the file hold bytes of it? Asking disturbs no one. Also true if
 * it cannot be known. */
bool file_has_lock(int fd, uint64_t start, uint64_t len);

/* A file of the cache folder is in use while an open description has a shared lock on this byte.
 * file_mark_used(): take it, until the last copy of fd is closed. */
#define FILE_LOCK_USE (UINT64_C(1) << 62)
void file_mark_used(int fd);

/* What -errno of files of the cache folder means, in words. */
const char *file_error(int r);

/* Open a file of the cache folder for reading and writing; make it if it is not there. A link,
 * pipe, socket or empty folder in its place is removed; no link is followed. group: of the cache
 * folder; NULL: it is private. 0; -EISDIR: a folder that is not empty, with the reason in d; or as
 * group_open(). */
int file_open_own(const struct cache_group *group, const char *path, int *ret_fd, struct diag *d);

/* Remove what is at path in the cache folder if it is not a regular file. 0: nothing of that kind
 * is there any more; otherwise as file_open_own(). */
int file_clear_place(const struct cache_group *group, const char *path, struct diag *d);

/* Fill the head, all but ops and name, of a blob of the first size bytes of a file. */
void file_describe(const struct stat *st, uint64_t size, struct blob *ret);

#endif
