/* Unmounting, by umount2(2) where we may, otherwise by fusermount3; each step in a child with a
 * time limit. */
#ifndef EPOCHFS_FS_LIFE_DETACH_H
#define EPOCHFS_FS_LIFE_DETACH_H

#include "base/diag.h"
#include "fs/life/mounts.h"

enum detach_how {
    DETACH_UNUSED, /* -EBUSY if a process uses the mount */
    DETACH_LAZILY, /* the path is free now, the mount ends once no process uses it */
};

/* Unmount what is mounted on path, an absolute real path. 0; -EBUSY; -ETIMEDOUT: unmounting hangs;
 * or -errno with the reason in d. */
int detach(const char *path, enum detach_how how, struct diag *d);

/* Abort the connection of a mount that does not answer: its readers get errors. 0, or -errno: not
 * permitted, or /sys/fs/fuse/connections is not mounted. */
int detach_abort(const struct mount_entry *mount);

#endif
