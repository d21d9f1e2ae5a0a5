/* The cache folder: where epochfs keeps what it staged and unpacked, on the node's own disk.
 *
 * Only files that epochfs made are ever changed or removed. docs/cache-format.md says what is in
 * it. */
#ifndef EPOCHFS_CACHE_DISK_FOLDER_H
#define EPOCHFS_CACHE_DISK_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"
#include "base/scope.h"

struct quota;

struct cache_folder {
    char *path;
    bool is_default;     /* not named by the user: then it must be ours alone */
    struct quota *quota; /* what all its files may take; not owned; NULL: no limit */
};

/* path: what the user named, NULL for the default: $EPOCHFS_CACHE, else a folder of our own in
 * $SLURM_TMPDIR or $TMPDIR if they exist, else $XDG_CACHE_HOME/epochfs, ~/.cache/epochfs,
 * /var/cache/epochfs. Makes nothing yet. 0 or -ENOMEM. */
int cache_folder_init(struct cache_folder *ret, const char *path);
void cache_folder_release(struct cache_folder *folder);

/* Make the folder and sub inside it (0700) where they are missing, and write the path of sub; sub
 * "": of the folder itself. A folder that is new or empty gets a marker, see docs/cache-format.md.
 * Any number of processes at once. 0, or -errno with the reason in d: -EPERM where a default
 * folder, or any that root uses, belongs to someone else; -EPROTO where the folder is of another
 * version, or has no marker though it has something else in it: it is not touched. */
int cache_folder_sub(const struct cache_folder *folder, const char *sub, char *ret, size_t capacity,
                     struct diag *d);

#endif
