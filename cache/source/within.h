/* Whether what was opened lies in SOURCE. A name says nothing of that: any part of it may be a
 * symbolic link, and become one between a look and an open. So a file is opened first, and then
 * the kernel is asked where it lies. */
#ifndef EPOCHFS_CACHE_SOURCE_WITHIN_H
#define EPOCHFS_CACHE_SOURCE_WITHIN_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/diag.h"
#include "cache/source/roots.h"

struct within {
    const struct roots *roots;
    bool allow_outside; /* -o allow_outside: nothing is refused */
    bool for_others;    /* allow_other */
};

/* Where the open file or folder lies: absolute, without links. path, as it was opened, is asked
 * where there is no /proc. 0 or -errno. */
int within_real_path(int fd, const char *path, char ret[static PATH_MAX]);

/* Does fd, opened as path and called name, lie in a root? 0; -EXDEV: it does not, or another
 * -errno; with the reason in d, which says what to do. */
int within_check(const struct within *within, int fd, const char *path, const char *name,
                 struct diag *d);

/* The same of an absolute path without links. */
int within_check_real(const struct within *within, const char *real, const char *name,
                      struct diag *d);

/* With allow_other, what is left of mode, of a file opened as path: only who can get there may read
 * it (cache/source/access.h). real: where it lies; NULL: fd is asked. */
unsigned within_mode(const struct within *within, int fd, const char *path, const char *real,
                     const struct stat *st);

/* file_open() of an absolute path without links: -ELOOP if there are some by now. */
int within_open_real(const char *real, int *ret_fd, struct stat *ret_st);

#endif
