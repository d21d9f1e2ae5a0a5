/* Does an opened file lie in SOURCE? Its name does not tell: any part of it may be a symbolic link,
 * or become one between a look and an open. So the file is opened first, and then the kernel is
 * asked where it lies. */
#ifndef EPOCHFS_CACHE_SOURCE_WITHIN_H
#define EPOCHFS_CACHE_SOURCE_WITHIN_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/access.h"
#include "base/diag.h"
#include "base/text.h"

/* ---- roots ---- */

/* The folders that SOURCE consists of, and whether a path lies in one: absolute paths without "."
 * and "..", of each folder its real path, and the path as the user spelled it. No two are the same.
 */

/* Add the folder at path, or the folder of the file at path. 0 or -errno. */
int roots_add(struct texts *roots, const char *path);

/* Add an absolute, normalised path if it is new. 0 or -ENOMEM. */
int roots_add_path(struct texts *roots, const char *path);

/* The rest of an absolute, normalised path behind the root that it lies in, "" for the root itself;
 * NULL: it lies in none. */
const char *roots_inside(const struct texts *roots, const char *path);

/* Write a, '/' and b, without "", "." and "..", as if there were no links; a is absolute, of a_len
 * bytes. 0 or -ENAMETOOLONG. */
int path_join(const char *a, size_t a_len, const char *b, char ret[static PATH_MAX]);

/* Call visit() with the path that `path` means in a folder below root, then in each folder above
 * that up to '/', until its result is another one than 0. Returns that; 0: none is, or paths are
 * too long. */
int path_upwards(const char *root, const char *folder, const char *path,
                 int (*visit)(void *user, const char *path), void *user);

/* Write a, '/' and b; just one of them if the other is "". The same errors. */
int path_below(const char *a, const char *b, char ret[static PATH_MAX]);

/* ---- within ---- */

struct within {
    const struct texts *roots;
    bool allow_outside; /* -o allow_outside: no file is refused */
    bool for_others;    /* allow_other */
};

/* Does fd, opened as path and called name, lie in a root? 0; -EXDEV: it does not, or another
 * -errno; with the reason in d, which says what to do. */
int within_check(const struct within *within, int fd, const char *path, const char *name,
                 struct diag *d);

/* The same for an absolute path without links. */
int within_check_real(const struct within *within, const char *real, const char *name,
                      struct diag *d);

/* With allow_other, limit the mode of a file opened as path: only users that can get there may read
 * it. real: where it lies; NULL: ask the kernel by fd. */
unsigned within_mode(const struct within *within, int fd, const char *path, const char *real,
                     const struct stat *st);

/* Open a file for reading below an open folder (AT_FDCWD: a whole path), as openat2() does with
 * these RESOLVE_... flags. Its descriptor; -ENOSYS or -EPERM: the kernel (before 5.6), or the
 * filter of a container, has no such call; or -errno. */
int within_openat2(int folder, const char *path, unsigned resolve);

/* file_open() of an absolute path without links: -ELOOP if it has links by then. */
int within_open_real(const char *real, int *ret_fd, struct stat *ret_st);

/* ---- access ---- */

/* How the permissions of folders below SOURCE limit those of a file: a user that cannot get to a
 * file cannot read it, though the file alone would allow it. SOURCE itself counts. Folders above it
 * do not: the user that mounts SOURCE for others has decided that. */

/* Which of owner, group and others of a file at path, absolute, can pass all folders on the way,
 * from the root that it lies in, or from '/' if it lies in none. `real` is where path leads: its
 * folders also count. No user, if that cannot be found out. */
unsigned access_on_way(const struct texts *roots, const char *path, const char *real, unsigned uid,
                       unsigned gid);

/* Who may list the folder at path (0444) and pass it (0111), or read the file. If path does not
 * exist, only root may. */
void access_of(const struct texts *roots, const char *path, struct access *ret);

#endif
