/* How the permissions of folders below SOURCE limit those of a file: a user that cannot get to a
 * file cannot read it, though the file alone would allow it. SOURCE itself counts. Folders above it
 * do not: the user that mounts SOURCE for others has decided that. */
#ifndef EPOCHFS_CACHE_SOURCE_ACCESS_H
#define EPOCHFS_CACHE_SOURCE_ACCESS_H

#include "base/access.h"
#include "cache/source/roots.h"

struct stat;

/* Which of owner, group and others of a file at path, absolute, can pass all folders on the way,
 * from the root that it lies in, or from '/' if it lies in none. `real` is where path leads: its
 * folders count, too. Nobody, if that cannot be found out. */
unsigned access_on_way(const struct roots *roots, const char *path, const char *real, unsigned uid,
                       unsigned gid);

/* The permission bits of a file or folder. If it has an ACL, only those of its owner: with an ACL
 * the other bits mean something else. */
unsigned access_bits(const char *path, const struct stat *st);

/* Who may list the folder at path (0444) and pass it (0111), or read the file. If path does not
 * exist, only root may. */
void access_of(const struct roots *roots, const char *path, struct access *ret);

#endif
