/* Room for one file of the cache folder that grows, whose size nobody knows before. It is taken
 * before the file grows, so that the limit of the folder holds at every moment. */
#ifndef EPOCHFS_CACHE_DISK_ALLOWANCE_H
#define EPOCHFS_CACHE_DISK_ALLOWANCE_H

#include <stdint.h>

#include "base/diag.h"

struct quota;

/* By one thread at a time. */
struct allowance {
    struct quota *quota; /* NULL: there is no limit */
    uint64_t taken;      /* bytes that the file may have */
    uint64_t settled;    /* of them, those that are told to be written */
    uint64_t wanted;     /* bytes for which there was no room; 0: it was never refused */
};

/* The file shall have size bytes; ahead: more that may be taken with them. 0; -ENOSPC: there is no
 * room; or -errno. */
int allowance_raise(struct allowance *a, uint64_t size, uint64_t ahead);

/* The file has size bytes now, of those that it may have. */
void allowance_written(struct allowance *a, uint64_t size);

/* The file is whole and has size bytes: the rest is given back. */
void allowance_end(struct allowance *a, uint64_t size);

/* The file comes to nothing: it is cut to no bytes, and all is given back. fd -1: it was cut
 * already; then what was written comes back when the files are counted. */
void allowance_drop(struct allowance *a, int fd);

/* Write why it was refused; path: of a file in a folder of the cache folder. Returns -ENOSPC. */
int allowance_refused(const struct allowance *a, const char *folder, struct diag *d);

#endif
