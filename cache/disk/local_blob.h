/* The bytes of a local file, as long as the file does not change.
 *
 * A blob remembers the version of the file that it was made from. Its descriptor stays open; or it
 * belongs to a pool, which closes the least recently used one when another is needed. The next read
 * then opens the file again by its path; the file must still be of that version. */
#ifndef EPOCHFS_CACHE_DISK_LOCAL_BLOB_H
#define EPOCHFS_CACHE_DISK_LOCAL_BLOB_H

#include <stdbool.h>
#include <sys/queue.h>

#include "base/blob.h"
#include "base/lock.h"

/* A blob of the first size bytes of an open file. Takes over the descriptor, also on error.
 * is_ours: a file of the cache folder; as long as it is open, a lost name does not make its content
 * stale. 0 or -errno. */
int local_blob_new(int fd, const char *name, uint64_t size, bool is_ours, struct blob **ret);

struct local_blob;

/* Descriptors of blobs that are open only while they are read. */
struct lazy_pool {
    unsigned limit; /* descriptors, at least 1; set before the first blob, then constant */
    struct lock lock;
    pthread_cond_t idle; /* signalled when a descriptor becomes idle */
    /* Guarded by lock: */
    unsigned n_open;
    TAILQ_HEAD(lazy_list, local_blob)
    unused; /* open blobs that no thread reads from, the latest first */
};

/* limit: 256 descriptors, but at most half of those the process may have. */
void lazy_pool_init(struct lazy_pool *ret);

/* All blobs must be gone. */
void lazy_pool_release(struct lazy_pool *pool);

/* As local_blob_new(), but the descriptor belongs to the pool. path: absolute, to open the file
 * again.
 *
 * Waits while threads read from all descriptors of the pool. While it opens a file, a thread has
 * one descriptor beyond the limit. */
int lazy_blob_new(struct lazy_pool *pool, int fd, const char *path, const char *name, uint64_t size,
                  bool is_ours, struct blob **ret);

#endif
