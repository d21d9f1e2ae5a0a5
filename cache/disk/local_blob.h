/* The bytes of an open file of this machine, as long as it stays what it was. */
#ifndef EPOCHFS_CACHE_DISK_LOCAL_BLOB_H
#define EPOCHFS_CACHE_DISK_LOCAL_BLOB_H

#include "base/blob.h"

/* A blob of an open file, of which it takes the descriptor over (also on error). Its first size
 * bytes count; the rest of the file is not shown. may_be_removed: the file is ours, that it has
 * lost its name says nothing of its content. */
int local_blob_new(int fd, const char *name, uint64_t size, bool may_be_removed, struct blob **ret);

#endif
