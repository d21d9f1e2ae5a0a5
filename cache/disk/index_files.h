/* The index store of a cache folder: each kept index is one entry, in the folder of its kind. */
#ifndef EPOCHFS_CACHE_DISK_INDEX_FILES_H
#define EPOCHFS_CACHE_DISK_INDEX_FILES_H

#include "base/index_store.h"
#include "cache/disk/folder.h"

struct index_files {
    struct index_store keep;
    const struct cache_folder *folder;
};

/* folder must outlive it. */
void index_files_init(struct index_files *ret, const struct cache_folder *folder);

#endif
