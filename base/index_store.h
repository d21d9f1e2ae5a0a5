/* An index store: keeps indexes, which took long to make, for the next mount.
 *
 * cache/ implements it, format/ uses it. A kept index has a kind, such as "rows", and belongs to an
 * identity: a text that differs wherever the indexed source may differ. */
#ifndef EPOCHFS_BASE_INDEX_STORE_H
#define EPOCHFS_BASE_INDEX_STORE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/diag.h"
#include "base/scope.h"

/* A kept index, in memory. It is not mapped: if a mapped file is cut short, or the disk cannot read
 * it, the process that uses it is killed; and if another process writes to it, a number may change
 * between its check and its use. */
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

/* Load a kept index. 0, and the caller releases *ret; -ENOENT: there is none; or -errno. The bytes
 * are those that were saved unless the disk has changed them: they need a checksum of their own. */
static inline int index_store_load(const struct index_store *keep, const char *kind,
                                   const char *identity, struct kept_index *ret)
{
    return keep->ops->load(keep, kind, identity, ret);
}

/* Save the pieces, one after another, and read them back. source: what the index was made from, for
 * people. 0, or -errno with the reason in d. */
static inline int index_store_save(const struct index_store *keep, const char *kind,
                                   const char *identity, const char *source,
                                   const struct iovec *pieces, unsigned n, struct kept_index *ret,
                                   struct diag *d)
{
    return keep->ops->save(keep, kind, identity, source, pieces, n, ret, d);
}

/* Remove a kept index that was found damaged. */
static inline void index_store_remove(const struct index_store *keep, const char *kind,
                                      const char *identity)
{
    keep->ops->remove(keep, kind, identity);
}

void kept_index_release(struct kept_index *kept);

#endif
