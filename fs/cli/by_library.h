/* What commands share that read SOURCE by the library, as any program may. */
#ifndef EPOCHFS_FS_CLI_BY_LIBRARY_H
#define EPOCHFS_FS_CLI_BY_LIBRARY_H

#include "fs/library/epochfs.h"

struct text;

/* Open SOURCE with the words of -o. NULL: the reason has been printed, and *ret_code is the exit
 * code. */
struct epochfs *by_library_open(const char *source, const struct text *options, int *ret_code);

/* Print why a call has failed. Returns the exit code. */
int by_library_fail(const struct epochfs_error *error);

/* Copy a file to fd. 0, -1 with the reason in error, or -errno of the write, which leaves error's
 * code 0. */
int by_library_copy(struct epochfs *fs, const char *path, int fd, struct epochfs_error *error);

#endif
