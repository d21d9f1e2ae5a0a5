/* The keep of a cache folder: one entry a thing, in the folder of its kind. */
#ifndef EPOCHFS_CACHE_DISK_INDEX_FILES_H
#define EPOCHFS_CACHE_DISK_INDEX_FILES_H

#include "base/index_store.h"
#include "cache/disk/folder.h"

struct cache_keep {
    struct keep keep;
    const struct cache_folder *folder;
};

/* folder must outlive it. */
void cache_keep_init(struct cache_keep *ret, const struct cache_folder *folder);

#endif
