/* Does an opened file lie in SOURCE? Its name does not tell: any part of it may be a symbolic link,
 * or become one between a look and an open. So the file is opened first, and then the kernel is
 * asked where it lies. */
#ifndef EPOCHFS_CACHE_SOURCE_WITHIN_H
#define EPOCHFS_CACHE_SOURCE_WITHIN_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/diag.h"
#include "cache/source/roots.h"

struct within {
    const struct roots *roots;
    bool allow_outside; /* -o allow_outside: no file is refused */
    bool for_others;    /* allow_other */
};

/* Find where the open file or folder lies: absolute, without links. Without /proc, path as it was
 * opened is resolved instead. 0 or -errno. */
int within_real_path(int fd, const char *path, char ret[static PATH_MAX]);

/* Does fd, opened as path and called name, lie in a root? 0; -EXDEV: it does not, or another
 * -errno; with the reason in d, which says what to do. */
int within_check(const struct within *within, int fd, const char *path, const char *name,
                 struct diag *d);

/* The same for an absolute path without links. */
int within_check_real(const struct within *within, const char *real, const char *name,
                      struct diag *d);

/* With allow_other, limit the mode of a file opened as path: only users that can get there may read
 * it (cache/source/access.h). real: where it lies; NULL: ask the kernel by fd. */
unsigned within_mode(const struct within *within, int fd, const char *path, const char *real,
                     const struct stat *st);

/* file_open() of an absolute path without links: -ELOOP if it has links by then. */
int within_open_real(const char *real, int *ret_fd, struct stat *ret_st);

#endif
