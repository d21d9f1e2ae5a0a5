/* The bytes of an open local file, as long as the file does not change. */
#ifndef EPOCHFS_CACHE_DISK_LOCAL_BLOB_H
#define EPOCHFS_CACHE_DISK_LOCAL_BLOB_H

#include "base/blob.h"

/* A blob of the first size bytes of an open file. Takes over the descriptor, also on error.
 * may_be_removed: the file is ours, and a lost name does not make its content stale. */
int local_blob_new(int fd, const char *name, uint64_t size, bool may_be_removed, struct blob **ret);

#endif
