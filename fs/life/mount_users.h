/* Which processes use a mount, from /proc, without touching the mount. */
#ifndef EPOCHFS_FS_LIFE_MOUNT_USERS_H
#define EPOCHFS_FS_LIFE_MOUNT_USERS_H

#include "base/text.h"
#include "fs/life/mounts.h"

/* Add "1234 (bash), 1235 (python3) and 2 more": processes that have their current folder in the
 * mount, or files of it open or mapped, as far as the caller may see them; without the caller.
 * Nothing if there are none. Takes at most ms. */
void mount_users(const char *path, const struct mount_entry *mount, int ms, struct text *ret);

#endif
