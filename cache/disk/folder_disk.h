/* Is the disk of a default cache folder a poor choice? */
#ifndef EPOCHFS_CACHE_DISK_FOLDER_DISK_H
#define EPOCHFS_CACHE_DISK_FOLDER_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/disk/folder.h"

/* What is asked of the system, of an existing folder. Each returns 0 or -errno: not known. */
struct disk_probe {
    int (*type)(const char *path, uint64_t *ret_type);   /* as statfs() gives it */
    int (*quota)(const char *path, uint64_t *ret_bytes); /* of this user, there; 0: none */
};

extern const struct disk_probe disk_probe_system;

/* Room for any path. */
#define FOLDER_DISK_SIZE 4600

/* The folder was not named by the user, exists, and is on a file system of the network, or its user
 * has a quota there: then ret is one line for him that names cache=. What is not known does not
 * count. */
bool folder_disk_warning(const struct cache_folder *folder, const struct disk_probe *probe,
                         char *ret, size_t capacity);

#endif
