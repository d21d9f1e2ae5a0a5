/* What /proc/self/mountinfo says of epochfs mounts, without touching them; and whether they answer.
 */
#ifndef EPOCHFS_FS_LIFE_MOUNTS_H
#define EPOCHFS_FS_LIFE_MOUNTS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/diag.h"

struct mount_entry {
    unsigned device_major, device_minor;
    uid_t owner;     /* the user that mounted it */
    gid_t group;     /* and that user's group */
    bool is_for_all; /* allow_other */
};

#define MOUNTS_TYPE "fuse.epochfs"

/* May a mount of that type be an epochfs? "fuse" is that of a mount that another program has made
 * for epochfs (fs/life/passed.h), among others. */
bool mounts_is_fuse(const char *type);

/* Call each for every mount of the table, of any type, the earliest first; later ones on the same
 * path cover earlier ones. */
void mounts_each(void (*each)(void *ctx, const struct mount_entry *entry, const char *path,
                              const char *type, const char *source),
                 void *ctx);

/* Is the topmost mount on path, an absolute real path, an epochfs? Does not touch the mount, so it
 * works if the daemon is dead; but if another program has mounted it, the daemon must be alive. ret
 * may be NULL. */
bool mounts_find(const char *path, struct mount_entry *ret);

/* The same for the daemon itself: whatever serves it. */
bool mounts_find_mine(const char *path, struct mount_entry *ret);

/* The epochfs mount that path, an absolute real path, is in: its mountpoint. False: in none, or
 * path is a mountpoint itself. Does not touch the mount. */
bool mounts_find_above(const char *path, char ret[static PATH_MAX]);

/* Is mount, which existed, no longer the topmost one on path? An unmount may succeed after our
 * time limit. */
bool mounts_is_gone(const char *path, const struct mount_entry *mount);

/* Is that file system mounted anywhere? Also true if it is not known. */
bool mounts_has_device(dev_t device);

/* A descriptor for which poll(2) reports POLLPRI when something was mounted or unmounted; or
 * -errno. */
int mounts_watch(void);

/* The real path of a mountpoint; if its daemon is dead, found through the folder above it. 0 or
 * -errno; -ETIMEDOUT: a file system along the path does not answer. */
int mounts_real_path(const char *path, char ret[static PATH_MAX]);

/* Ask the file system mounted on path, for at most ms. 0: it answers; -ENOTCONN: its daemon is
 * dead; -ETIMEDOUT: it does not answer; or -errno. For a mount of another user that does not admit
 * others, 0 means nothing; but root asks with the rights of the user that mounted it. */
int mounts_ask(const char *path, const struct mount_entry *mount, int ms);

/* Does the mount answer that path is, or lies in? 0; -ETIMEDOUT: not for some seconds, with the
 * reason in d. *ret_is_mountpoint: path is the mountpoint of an epochfs. */
int mounts_check(const char *path, bool *ret_is_mountpoint, struct diag *d);

#endif
