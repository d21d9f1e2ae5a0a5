/* A beacon: a way to find the daemon of a mount without touching the mount, which may hang.
 *
 * It is a socket named by the mount's device and the end of its path, in the abstract name space:
 * however the daemon ends, it leaves no file behind, and the kernel reports which process owns the
 * socket. The device alone is not enough: the kernel gives its number to another mount before the
 * daemon has ended. */
#ifndef EPOCHFS_FS_LIFE_BEACON_H
#define EPOCHFS_FS_LIFE_BEACON_H

#include <stdbool.h>
#include <sys/types.h>

#include "fs/life/mounts.h"

/* Let others find this process as the daemon of that mount on path, until the returned descriptor
 * is closed. -EADDRINUSE: an earlier daemon has not ended yet; other -errno: this process cannot be
 * found. */
int beacon_light(const char *path, const struct mount_entry *mount);

/* Close the connections of processes that have found it, so that others can connect. Does not
 * block. false: some are left, for example because no descriptor is free. */
bool beacon_answer(int beacon);

/* The daemon of a mount on path: a descriptor that becomes readable when it has ended (see
 * pidfd_open(2)), and its process id. -ENOENT: not found, it may run in another container; or
 * -errno. */
int beacon_find(const char *path, const struct mount_entry *mount, pid_t *ret_pid);

#endif
