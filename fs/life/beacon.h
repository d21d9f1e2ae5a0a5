/* A beacon: by it the daemon of a mount is found without touching the mount, which may hang.
 *
 * It is a socket named by the mount's device and the end of its path, in the abstract name space:
 * no file is left behind however the daemon ends, and the kernel says whose it is. The device alone
 * would not do: the kernel gives its number to another mount before the daemon has ended. */
#ifndef EPOCHFS_FS_LIFE_BEACON_H
#define EPOCHFS_FS_LIFE_BEACON_H

#include <stdbool.h>
#include <sys/types.h>

#include "fs/life/mounts.h"

/* Let this process be found as the daemon of that mount on path, until the descriptor is closed.
 * -EADDRINUSE: one that was there before has not ended yet; -errno: it is not found. */
int beacon_light(const char *path, const struct mount_entry *mount);

/* Send those away who have found it, so that there is room for others. Does not block. false: some
 * are left, for want of descriptors, say. */
bool beacon_answer(int beacon);

/* The daemon of a mount on path: a descriptor that becomes readable when it has ended (see
 * pidfd_open(2)), and its number. -ENOENT: not found, it may run in another container; or -errno.
 */
int beacon_find(const char *path, const struct mount_entry *mount, pid_t *ret_pid);

#endif
