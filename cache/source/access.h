/* What the permissions of folders below SOURCE leave of those of a file: who cannot get to it
 * cannot read it, though the file alone would let them. SOURCE counts, and what is above it does
 * not: who mounts it for others has decided that. */
#ifndef EPOCHFS_CACHE_SOURCE_ACCESS_H
#define EPOCHFS_CACHE_SOURCE_ACCESS_H

#include "base/access.h"
#include "cache/source/roots.h"

struct stat;

/* Of owner, group and others of a file at path, absolute: who can go through all folders on the
 * way, from the root that it lies in; from '/', if it lies in none. `real` is where path leads to:
 * its folders count, too. Nobody, where that cannot be found out. */
unsigned access_on_way(const struct roots *roots, const char *path, const char *real, unsigned uid,
                       unsigned gid);

/* The permission bits of a file or folder. Where it has an ACL, those of its owner only: the others
 * do not say what they seem to. */
unsigned access_bits(const char *path, const struct stat *st);

/* Who may list the folder at path (0444) and go through it (0111), or read the file. What is not
 * there is nobody's: only root may. */
void access_of(const struct roots *roots, const char *path, struct access *ret);

#endif
