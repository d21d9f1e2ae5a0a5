/* What is known of epochfs mounts without asking them: from /proc/self/mountinfo; and how they do.
 */
#ifndef EPOCHFS_FS_LIFE_MOUNTS_H
#define EPOCHFS_FS_LIFE_MOUNTS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct mount_entry {
    unsigned device_major, device_minor;
    uid_t owner;     /* who mounted it */
    gid_t group;     /* and theirs */
    bool is_for_all; /* allow_other */
};

/* Is the topmost mount on path, an absolute real path, an epochfs? Does not touch the mount, so
 * that it works where the daemon is dead. ret may be NULL. */
bool mounts_find(const char *path, struct mount_entry *ret);

/* Is mount, which was there, no longer the topmost one on path? Unmounting may take longer than it
 * was waited for, and have worked. */
bool mounts_is_gone(const char *path, const struct mount_entry *mount);

/* Is that file system mounted anywhere? Also true if that cannot be told. */
bool mounts_has_device(dev_t device);

/* A descriptor of which poll(2) says POLLPRI when something was mounted or unmounted; or -errno. */
int mounts_watch(void);

/* The real path of a mountpoint; of one whose daemon is dead by the folder above it. 0 or -errno;
 * -ETIMEDOUT: a file system on the way there does not answer. */
int mounts_real_path(const char *path, char ret[static PATH_MAX]);

/* Ask the file system that is mounted there, for so long at most. 0: it answers; -ENOTCONN: its
 * daemon is dead; -ETIMEDOUT: it does not answer; or -errno. Of a mount of another user that does
 * not let others in, 0 says nothing; but root asks with the rights of who mounted it. */
int mounts_ask(const char *path, const struct mount_entry *mount, int ms);

#endif
