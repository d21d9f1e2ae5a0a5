/* Which file a path in a file of SOURCE means. */
#ifndef EPOCHFS_CACHE_NAMED_RESOLVE_H
#define EPOCHFS_CACHE_NAMED_RESOLVE_H

#include <limits.h>
#include <stdbool.h>

#include "base/diag.h"
#include "cache/source/roots.h"

struct resolver {
    struct roots roots; /* of SOURCE */
    const char *cwd;    /* where relative paths are looked for first; NULL: nowhere */
    bool allow_outside;
};

struct resolved {
    char path[PATH_MAX];      /* what to open: absolute, normalised */
    char in_source[PATH_MAX]; /* relative to the root; "" where it lies outside of SOURCE */
};

/* Find what a file in folder (relative to SOURCE) calls path. An absolute path is taken as it is.
 * A relative one is looked for in cwd, as Kaldi does, then in folder and each one above it up to
 * '/', so that a corpus may be moved; the nearest one counts, and only one that lies in SOURCE if
 * allow_outside is not set.
 *
 * It lies in SOURCE if its real path is below a root: links that leave SOURCE are not followed. Who
 * opens it has to ask again (cache/source/within.h).
 *
 * 0; -ENOENT, -EACCES: found outside of SOURCE only, or -errno, with the reason in d. It may be no
 * regular file. */
int resolve(const struct resolver *resolver, const char *folder, const char *path,
            struct resolved *ret, struct diag *d);

#endif
