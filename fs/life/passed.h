/* A mount that another program has made, which passes its descriptor of /dev/fuse: the mountpoint
 * is named /dev/fd/N. libfuse serves it, and ends it by closing the descriptor. */
#ifndef EPOCHFS_FS_LIFE_PASSED_H
#define EPOCHFS_FS_LIFE_PASSED_H

#include <limits.h>
#include <stdbool.h>

#include "base/diag.h"

#define PASSED_SIZE 32 /* bytes of "/dev/fd/N" */

/* Does a mountpoint name a descriptor? */
bool passed_names(const char *mountpoint);

/* Which one it names: 3 or more; or -EINVAL with the reason in d. */
int passed_parse(const char *mountpoint, struct diag *d);

/* Check that a program has mounted with fd, and that none serves that mount; have reads of fd wait,
 * and commands not inherit it. Writes the mountpoint; "": it is not known, because Linux says it
 * only since 6.16, and only for mounts of this namespace. 0, or -EINVAL with the reason in d. */
int passed_check(int fd, char ret_mountpoint[static PATH_MAX], struct diag *d);

#endif
