/* epochfs status without a mountpoint: which mounts there are. */
#ifndef EPOCHFS_FS_CLI_STATUS_MOUNTS_H
#define EPOCHFS_FS_CLI_STATUS_MOUNTS_H

#include <stdbool.h>

/* Print the mounts of this user, for root those of all users: a table, or JSON. Each is asked
 * whether it answers. Returns the exit code. */
int status_mounts(bool json);

#endif
