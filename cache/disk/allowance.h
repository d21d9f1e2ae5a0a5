/* The quota of one growing file of the cache folder, whose final size nobody knows in advance. It
 * is taken before the file grows, so the limit of the folder holds at every moment. */
#ifndef EPOCHFS_CACHE_DISK_ALLOWANCE_H
#define EPOCHFS_CACHE_DISK_ALLOWANCE_H

#include <stdint.h>

#include "base/diag.h"

struct quota;

/* Used by one thread at a time. */
struct allowance {
    struct quota *quota; /* NULL: no limit */
    uint64_t taken;      /* bytes that the file may take */
    uint64_t settled;    /* of them, bytes reported as written */
    uint64_t wanted;     /* size of the file that the quota refused; 0: it never refused */
};

/* Take quota so that the file can grow to size bytes, and, if the quota allows, up to `ahead` bytes
 * more. 0; -ENOSPC: the quota refuses; or -errno. */
int allowance_raise(struct allowance *a, uint64_t size, uint64_t ahead);

/* Report that the file now has size bytes, of those it may take. */
void allowance_written(struct allowance *a, uint64_t size);

/* The file is whole and has size bytes: return the rest to the quota. */
void allowance_end(struct allowance *a, uint64_t size);

/* The file will not be finished: cut it to no bytes and return all its quota. fd -1: the caller has
 * cut the file already; what was written then returns to the quota with the next count of the
 * files. */
void allowance_drop(struct allowance *a, int fd);

/* Write to d why the quota refused; folder: one inside the cache folder. Returns -ENOSPC. */
int allowance_refused(const struct allowance *a, const char *folder, struct diag *d);

#endif
