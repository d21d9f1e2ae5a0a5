/* A beacon: by it the daemon of a mount is found without touching the mount, which may hang.
 *
 * It is a socket with the number of the mount's device as its name, in the abstract name space: no
 * file is left behind however the daemon ends, and the kernel says whose it is. */
#ifndef EPOCHFS_FS_BEACON_H
#define EPOCHFS_FS_BEACON_H

#include <sys/types.h>

#include "fs/mounts.h"

/* Let this process be found as the daemon of that mount, until the descriptor is closed. -errno:
 * it is not found. */
int beacon_light(const struct mount_entry *mount);

/* Send those away who have found it, so that there is room for others. Does not block. */
void beacon_answer(int beacon);

/* The daemon of a mount: a descriptor that becomes readable when it has ended (see pidfd_open(2)),
 * and its number. -ENOENT: not found, it may run in another container; or -errno. */
int beacon_find(const struct mount_entry *mount, pid_t *ret_pid);

#endif
