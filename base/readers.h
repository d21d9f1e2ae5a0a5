/* Who may read what is made of several blobs. */
#ifndef EPOCHFS_BASE_READERS_H
#define EPOCHFS_BASE_READERS_H

#include "base/access.h"
#include "base/blob.h"

/* Of owner, group and others of `shown`, as 0444: who surely may read blob. */
static inline unsigned blob_readers(const struct blob *shown, const struct blob *blob)
{
    return access_classes(shown->uid, shown->gid, blob->uid, blob->gid, blob->mode, 4);
}

#endif
