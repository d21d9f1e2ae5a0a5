/* An index store: keeps indexes, which took long to make, for the next mount.
 *
 * cache/ implements it, format/ uses it. A kept index has a type, such as "rows", and belongs to an
 * identity: a text that differs wherever the indexed source may differ. */
#ifndef EPOCHFS_BASE_INDEX_STORE_H
#define EPOCHFS_BASE_INDEX_STORE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/diag.h"
#include "base/scope.h"

/* A kept index, in memory. It is not mapped: if another process writes to a mapped file, a number
 * may change between its check and its use. What is too large for memory is a kept file. */
struct kept_index {
    uint8_t *bytes;
    size_t size;
    bool by_content; /* the source may have changed since it was made, in a way that is not seen:
                        what it says of a record is to be checked when the record is first used */
};

/* A kept file: an index that is too large for memory. The process that makes it writes it, and
 * reads it back, in any order; once it is committed, it never changes. Users map it
 * (base/mapped_file.h). */
struct kept_file {
    int fd; /* closed by kept_file_release() */
    uint64_t size;
    struct kept_making *making; /* while this process makes it: the store's; otherwise NULL */
};

struct kept_making_ops {
    int (*raise)(struct kept_making *making, uint64_t bytes, struct diag *d);
    void (*written)(struct kept_making *making, uint64_t bytes);
    int (*commit)(struct kept_making *making, struct diag *d);
    void (*free)(struct kept_making *making);
};

struct kept_making {
    const struct kept_making_ops *ops;
};

struct blob;
struct index_store;

struct index_store_ops {
    int (*load)(const struct index_store *keep, const char *type, const char *identity,
                struct kept_index *ret);
    int (*save)(const struct index_store *keep, const char *type, const char *identity,
                const char *source, const struct iovec *pieces, unsigned n, struct kept_index *ret,
                struct diag *d);
    void (*remove)(const struct index_store *keep, const char *type, const char *identity);
    /* See index_store_names(). NULL: ignored. */
    int (*names)(const struct index_store *keep, const struct blob *blob, const char *identity);
    /* For kept files. NULL: those of the inner store; without it there are no kept files. */
    int (*open)(const struct index_store *keep, const char *type, const char *identity,
                struct kept_file *ret);
    int (*begin)(const struct index_store *keep, const char *type, const char *identity,
                 const char *source, struct kept_file *ret, struct diag *d);
};

struct index_store {
    const struct index_store_ops *ops;
    const struct index_store *inner; /* has the kept files, if ops has no functions for them */
};

/* Load a kept index. 0, and the caller releases *ret; -ENOENT: there is none; or -errno. The bytes
 * are those that were saved unless the disk has changed them: they need a checksum of their own. */
static inline int index_store_load(const struct index_store *keep, const char *type,
                                   const char *identity, struct kept_index *ret)
{
    return keep->ops->load(keep, type, identity, ret);
}

/* Save the pieces, one after another, and read them back (ret NULL: not wanted). source: what the
 * index was made from, for people. 0, or -errno with the reason in d. */
static inline int index_store_save(const struct index_store *keep, const char *type,
                                   const char *identity, const char *source,
                                   const struct iovec *pieces, unsigned n, struct kept_index *ret,
                                   struct diag *d)
{
    return keep->ops->save(keep, type, identity, source, pieces, n, ret, d);
}

/* Identities that follow have that of a blob in them, which lives until the last of them is loaded
 * or saved. 0 or -ENOMEM. */
static inline int index_store_names(const struct index_store *keep, const struct blob *blob,
                                    const char *identity)
{
    return keep && keep->ops->names ? keep->ops->names(keep, blob, identity) : 0;
}

/* Remove a kept index that was found damaged, or wrong. */
static inline void index_store_remove(const struct index_store *keep, const char *type,
                                      const char *identity)
{
    keep->ops->remove(keep, type, identity);
}

void kept_index_release(struct kept_index *kept);

/* Open a kept file that is whole. 0, and the caller releases *ret; -ENOENT: there is none; or
 * -errno. Its bytes need checksums of their own. */
static inline int index_store_open(const struct index_store *keep, const char *type,
                                   const char *identity, struct kept_file *ret)
{
    return keep->ops->open ? keep->ops->open(keep, type, identity, ret)
           : keep->inner   ? keep->inner->ops->open(keep->inner, type, identity, ret)
                           : -ENOENT;
}

/* Begin to make one: *ret is empty, and the caller commits or releases it. Or another process was
 * first: ret->making is NULL, and the file is whole. 0; -EAGAIN: another process is making it; or
 * -errno with the reason in d: it cannot be kept. */
static inline int index_store_begin(const struct index_store *keep, const char *type,
                                    const char *identity, const char *source, struct kept_file *ret,
                                    struct diag *d)
{
    return keep->ops->begin ? keep->ops->begin(keep, type, identity, source, ret, d)
           : keep->inner    ? keep->inner->ops->begin(keep->inner, type, identity, source, ret, d)
                            : -EOPNOTSUPP;
}

/* Before the content takes so many bytes of disk space: 0; -ENOSPC: the quota refuses, with the
 * reason in d; or -errno. */
static inline int kept_file_raise(struct kept_file *file, uint64_t bytes, struct diag *d)
{
    return file->making ? file->making->ops->raise(file->making, bytes, d) : 0;
}

/* So many bytes have been written. */
static inline void kept_file_written(struct kept_file *file, uint64_t bytes)
{
    if (file->making)
        file->making->ops->written(file->making, bytes);
}

/* The content is whole: publish it. It can be read through file->fd from now on. 0, or -errno with
 * nothing published. */
int kept_file_commit(struct kept_file *file, struct diag *d);

/* Takes one whose fd is -1. What was not committed is removed. */
void kept_file_release(struct kept_file *file);

#endif
