/* The cache folder: where epochfs keeps what it staged and unpacked, on the node's own disk.
 *
 * epochfs changes or removes only files that it made. docs/spec/cache-format.md says what is in the
 * folder. */
#ifndef EPOCHFS_CACHE_DISK_FOLDER_H
#define EPOCHFS_CACHE_DISK_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"
#include "base/scope.h"
#include "cache/disk/group_file.h"

struct quota;

/* Bytes that a path in the cache folder has beyond that of the folder, at most. */
#define CACHE_NAME_MAX 96

struct cache_folder {
    char *path;
    bool is_default;          /* not named by the user; it must then belong to this user alone */
    struct cache_group group; /* that shares it; it then has a path without links */
    struct quota *quota;      /* of all its files; not owned; NULL: no limit */
};

/* path: what the user named, NULL for the default: $EPOCHFS_CACHE, otherwise a folder of our own in
 * $SLURM_TMPDIR or $TMPDIR if they exist, otherwise $XDG_CACHE_HOME/epochfs, ~/.cache/epochfs,
 * /var/cache/epochfs. A folder of mode 2770 that the user named serves its group. Makes nothing
 * yet. 0 or -ENOMEM. */
int cache_folder_init(struct cache_folder *ret, const char *path);
void cache_folder_release(struct cache_folder *folder);

/* Another one of the same folder, with the same quota. 0 or -ENOMEM. */
int cache_folder_copy(const struct cache_folder *folder, struct cache_folder *ret);

/* Make the folder and sub inside it (0700, or 2770 of the group) where they are missing, and write
 * the path of sub; sub
 * "": of the folder itself. A folder that is new or empty gets a marker, see
 * docs/spec/cache-format.md. Any number of processes may call it at once. 0, or -errno with the
 * reason in d: -EPERM: a default folder, or any folder that root uses, belongs to another user; the
 * folder serves a group that this process is not in, or this is root; -EINVAL: its path begins with
 * "~/"; -ENAMETOOLONG: not each path in it would fit into capacity; -EPROTO: the folder is of
 * another version, or is not empty and has no marker: it is left untouched. */
int cache_folder_sub(const struct cache_folder *folder, const char *sub, char *ret, size_t capacity,
                     struct diag *d);

/* Write the path of a file in the user's home folder: name is "/.netrc" or the like, "" for the
 * folder itself. The folder is $HOME, otherwise, where that is unset or empty, as in a service of
 * systemd, the one that the user database has; libcurl and the tools of AWS look in the same place.
 * It need not exist. false: the user has none, or the path does not fit; ret is then unchanged or
 * cut off. May block: the database may be on the network. */
bool home_path(const char *name, char *ret, size_t capacity);

/* The value of an environment variable; NULL: it is unset or empty. */
const char *environment(const char *name);

#endif
