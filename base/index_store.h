/* A keep: where things that took long to find are kept for the next mount.
 *
 * cache/ makes it, format/ uses it. What is kept has a kind, such as "rows", and belongs to an
 * identity: a text that differs where what it was found in may differ. */
#ifndef EPOCHFS_BASE_INDEX_STORE_H
#define EPOCHFS_BASE_INDEX_STORE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/diag.h"
#include "base/scope.h"

/* Kept bytes, in memory. They are not mapped: a mapping of a file that somebody cuts, or that the
 * disk cannot read, kills whoever uses it, and one that somebody writes to changes between the
 * check of a number and its use. */
struct kept_index {
    uint8_t *bytes;
    size_t size;
};

struct index_store;

struct index_store_ops {
    int (*load)(const struct index_store *keep, const char *kind, const char *identity,
                struct kept_index *ret);
    int (*save)(const struct index_store *keep, const char *kind, const char *identity,
                const char *source, const struct iovec *pieces, unsigned n, struct kept_index *ret,
                struct diag *d);
    void (*remove)(const struct index_store *keep, const char *kind, const char *identity);
};

struct index_store {
    const struct index_store_ops *ops;
};

/* 0 and what is kept, which the caller releases; -ENOENT where there is nothing, or -errno. The
 * bytes are those that were saved unless the disk has changed them: they need a checksum of their
 * own. */
static inline int index_store_load(const struct index_store *keep, const char *kind,
                                   const char *identity, struct kept_index *ret)
{
    return keep->ops->load(keep, kind, identity, ret);
}

/* Save the pieces, one behind another, and read them back. source: what they were found in, for
 * people. 0, or -errno with the reason in d. */
static inline int index_store_save(const struct index_store *keep, const char *kind,
                                   const char *identity, const char *source,
                                   const struct iovec *pieces, unsigned n, struct kept_index *ret,
                                   struct diag *d)
{
    return keep->ops->save(keep, kind, identity, source, pieces, n, ret, d);
}

/* What was loaded is damaged: forget it. */
static inline void index_store_remove(const struct index_store *keep, const char *kind,
                                      const char *identity)
{
    keep->ops->remove(keep, kind, identity);
}

void kept_index_release(struct kept_index *kept);

#endif
