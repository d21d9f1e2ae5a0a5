/* What /proc/self/mountinfo says of epochfs mounts. */
#ifndef EPOCHFS_FS_MOUNTS_H
#define EPOCHFS_FS_MOUNTS_H

#include <limits.h>
#include <stdbool.h>

struct mount_entry {
    unsigned device_major, device_minor;
};

/* Is the topmost mount on path, an absolute real path, an epochfs? Does not touch the mount, so
 * that it works where the daemon is dead. ret may be NULL. */
bool mounts_find(const char *path, struct mount_entry *ret);

/* The real path of a mountpoint; of one whose daemon is dead by the folder above it. 0 or -errno.
 */
int mounts_real_path(const char *path, char ret[static PATH_MAX]);

#endif
