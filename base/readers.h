/* Which users may read what is made from several blobs. */
#ifndef EPOCHFS_BASE_READERS_H
#define EPOCHFS_BASE_READERS_H

#include "base/access.h"
#include "base/blob.h"

/* Which of owner, group and others of `shown` surely may read blob, as bits of 0444. */
static inline unsigned blob_readers(const struct blob *shown, const struct blob *blob)
{
    return access_classes(shown->uid, shown->gid, blob->uid, blob->gid, blob->mode, 4);
}

#endif
