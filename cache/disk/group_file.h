/* Files of a cache folder that a group shares.
 *
 * Members may be hostile, and all of them may write to the folder. So nothing in it is reached
 * through a link, or through a folder that another process has put in the place of one of ours; and
 * a file counts only if it has the group's rights (regular, of that group, readable and writable by
 * it). A hard link to a file that its owner keeps to himself does not have them. Whatever the umask
 * is, new files and folders get them.
 *
 * For a private folder, {0} or NULL, these are the plain system calls. */
#ifndef EPOCHFS_CACHE_DISK_GROUP_FILE_H
#define EPOCHFS_CACHE_DISK_GROUP_FILE_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/diag.h"

struct cache_group {
    bool is_shared; /* false: the folder is private */
    gid_t gid;
};

/* Is it a folder that a group shares: mode 2770, not sticky? */
bool group_shares(const struct stat *st, struct cache_group *ret);

/* Is this process in the group? */
bool group_has_me(gid_t gid);

/* open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) of a file in a folder of the cache
 * folder, by file_openat(). The descriptor, which may be of something else than a regular file; or
 * -errno; -EPERM: the file, or its folder, has not the rights of the group, with what it has in d;
 * -ELOOP: it is a link, or something else that is no file. */
int group_open(const struct cache_group *group, const char *path, int flags, struct diag *d);

/* The same to look at a file, for tools: our reads are no use of it, as far as its owner asks. */
int group_open_to_look(const struct cache_group *group, const char *path, int flags);

/* Open a file for reading and writing. If there is none, create a regular file with the rights that
 * the group has. Returns what group_open() returns. */
int group_open_or_make(const struct cache_group *group, const char *path, struct diag *d);

/* lstat(), unlink() and rename() of files in folders of the cache folder. 0 or -errno. */
int group_stat(const struct cache_group *group, const char *path, struct stat *ret);
int group_unlink(const struct cache_group *group, const char *path);
int group_rename(const struct cache_group *group, const char *from, const char *to);

/* Does the path name the open file? */
bool group_names(const struct cache_group *group, const char *path, int fd);

/* The folder of a path, for openat() and flock(). Its descriptor, or as group_open(). */
int group_folder(const struct cache_group *group, const char *path, const char **ret_name,
                 struct diag *d);

/* Make a folder at path, with the rights of the group, if nothing exists; then check that it has
 * them. 0, or -errno with the reason in d. */
int group_make_folder(const struct cache_group *group, const char *path, struct diag *d);

#endif
