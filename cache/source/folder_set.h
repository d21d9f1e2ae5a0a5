/* The folders of a table of files (base/members.h) by their paths, while the table is made: files
 * come in any order, and 100,000 folders must not be compared with each other. One thread. */
#ifndef EPOCHFS_CACHE_SOURCE_FOLDER_SET_H
#define EPOCHFS_CACHE_SOURCE_FOLDER_SET_H

#include <stddef.h>
#include <stdint.h>

#include "base/members.h"

struct folder_set {
    uint32_t *slot;    /* [capacity] number of a folder + 1; 0: free */
    size_t capacity;   /* a power of two; 0: none yet */
    uint64_t compared; /* slots that were looked at, so far */
};

/* Find the folder whose path is the first len bytes of path, or add it and the folders on the way
 * to it. All folders of m were added by this set. *ret: its number. 0; -ENOMEM; -E2BIG: see
 * members_add_folder(). */
int folder_set_way(struct folder_set *set, struct members *m, const char *path, size_t len,
                   uint32_t *ret);

void folder_set_release(struct folder_set *set); /* of one that starts as {0} */
#define AUTO_FOLDER_SET AUTO(folder_set_release)

#endif
