/* The folders that SOURCE consists of, and whether a path lies in one. */
#ifndef EPOCHFS_CACHE_SOURCE_ROOTS_H
#define EPOCHFS_CACHE_SOURCE_ROOTS_H

#include <limits.h>
#include <stddef.h>

#include "base/scope.h"

struct source;

/* Absolute paths without "." and "..": of each folder its real path, and the path as the user
 * spelled it. */
struct roots {
    char **path; /* no two are the same */
    size_t n;
};

/* Find the roots of a source. 0 or -errno. */
int roots_init(struct roots *ret, const struct source *source);
void roots_release(struct roots *roots);
#define AUTO_ROOTS AUTO(roots_release)

/* Add the folder at path, or the folder of the file at path. 0 or -errno. */
int roots_add(struct roots *roots, const char *path);

/* Add an absolute, normalised path if it is new. 0 or -ENOMEM. */
int roots_add_path(struct roots *roots, const char *path);

/* The rest of an absolute, normalised path behind the root that it lies in, "" for the root itself;
 * NULL: it lies in none. */
const char *roots_inside(const struct roots *roots, const char *path);

/* Remove "", "." and ".." from an absolute path, in place, as if there were no links. */
void path_normalise(char *path);

/* Write a, '/' and b, normalised; a is absolute, of a_len bytes. 0 or -ENAMETOOLONG. */
int path_join(const char *a, size_t a_len, const char *b, char ret[static PATH_MAX]);

#endif
