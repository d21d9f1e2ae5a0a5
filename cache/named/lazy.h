/* Blobs of local files that are open only while they are read.
 *
 * A blob remembers which version of its file it was made of. Its descriptor belongs to a pool,
 * which closes the least recently used one when another is needed; then the file is opened again
 * by its path, and must be of that version still. */
#ifndef EPOCHFS_CACHE_NAMED_LAZY_H
#define EPOCHFS_CACHE_NAMED_LAZY_H

#include <stdbool.h>

#include "base/blob.h"
#include "base/lock.h"

struct lazy_blob;

struct lazy_pool {
    unsigned limit; /* descriptors, at least 1; set before the first blob, then constant */
    struct lock lock;
    pthread_cond_t idle; /* there is one that nobody reads from */
    /* Guarded by lock: */
    unsigned n_open;
    struct lazy_blob *newest, *oldest; /* those open that nobody reads from, by last use */
};

/* limit: 256 descriptors, but not more than half of those the process may have. */
void lazy_pool_init(struct lazy_pool *ret);

/* All blobs must be gone. */
void lazy_pool_release(struct lazy_pool *pool);

/* A blob of an open file, of which it takes the descriptor over (also on error); path, absolute,
 * opens it again. Its first size bytes count. is_ours: a file of the cache folder; that it has lost
 * its name says nothing of its content, as long as it is open. 0 or -errno.
 *
 * Waits while all descriptors of the pool are being read from. A thread that opens a file has one
 * descriptor more for that moment. */
int lazy_blob_new(struct lazy_pool *pool, int fd, const char *path, const char *name, uint64_t size,
                  bool is_ours, struct blob **ret);

#endif
