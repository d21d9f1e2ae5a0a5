/* Which file a path in a file of SOURCE means. */
#ifndef EPOCHFS_CACHE_NAMED_RESOLVE_H
#define EPOCHFS_CACHE_NAMED_RESOLVE_H

#include <limits.h>
#include <stdbool.h>

#include "base/diag.h"
#include "cache/source/within.h"

struct resolver {
    const struct roots *roots; /* of SOURCE */
    const char *cwd;           /* where relative paths are searched first; NULL: nowhere */
    bool allow_outside;
};

struct resolved {
    char path[PATH_MAX];      /* what to open: absolute, normalised */
    char in_source[PATH_MAX]; /* relative to the root; "": outside of SOURCE */
};

/* Find what a file in folder (relative to SOURCE) calls path. An absolute path is taken as it is. A
 * relative one is searched in cwd, as Kaldi does, then in folder and each folder above it up to
 * '/', so that a corpus can be moved. The nearest match counts; without allow_outside, the nearest
 * one in SOURCE.
 *
 * A file lies in SOURCE if its real path is below a root: links that leave SOURCE are not followed.
 * The caller must check this again when it opens the file (cache/source/within.h).
 *
 * 0; -ENOENT; -EACCES: found outside of SOURCE only; or -errno, with the reason in d. The result
 * need not be a regular file. */
int resolve(const struct resolver *resolver, const char *folder, const char *path,
            struct resolved *ret, struct diag *d);

#endif
