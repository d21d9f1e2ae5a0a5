/* A blob: the bytes of one source file, wherever they are. What is read through it was the
 * content of one version of that file; see blob_check().
 *
 * cache/ makes blobs, format/ reads them and knows nothing else of where bytes come from. */
#ifndef EPOCHFS_BASE_BLOB_H
#define EPOCHFS_BASE_BLOB_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/diag.h"
#include "base/scope.h"

struct blob;

struct waiter;

/* A range of a blob, and where its bytes go. */
struct blob_piece {
    void *buf;
    size_t len;
    uint64_t off;
};

/* What a kind of blob provides. */
struct blob_ops {
    int (*pread)(const struct blob *blob, void *buf, size_t len, uint64_t off);
    int (*check)(const struct blob *blob);
    int (*identity)(const struct blob *blob, char **ret);
    void (*free)(struct blob *blob);
    /* See blob_fetch(). NULL: all bytes are on this machine. */
    void (*fetch)(const struct blob *blob, uint64_t off, uint64_t len, struct waiter *waiter);
    /* See blob_used() and blob_done(). NULL: nothing is done about it. */
    void (*used)(const struct blob *blob, uint64_t off, uint64_t len, bool again);
    void (*done)(const struct blob *blob);
    /* Read all pieces, which lie within the blob. 0; or -EAGAIN: it is not as simple as that, then
     * they are read one by one. NULL: they always are. */
    int (*pread_many)(const struct blob *blob, const struct blob_piece *pieces, size_t n);
};

/* The head of every blob. Set by its maker, then constant. */
struct blob {
    const struct blob_ops *ops;
    char *name;            /* path relative to SOURCE, for messages; owned */
    char *source;          /* its path or URL, without a query; owned. NULL: as the name */
    uint64_t size;         /* bytes */
    struct timespec mtime; /* of the source file */
    unsigned mode;         /* permission bits of the source file */
    unsigned uid, gid;     /* its owner */
};

/* Read exactly len bytes at byte offset off into buf.
 * 0, or -EINVAL range outside the blob, -ESTALE the source was cut short, -EIO and other -errno
 * of read (buf undefined). Any number of threads. No lock may be held. buf is the caller's.
 * Where bytes are not on this machine yet it waits for them, -EREMOTEIO if they cannot be had; or
 * it notes what is missing and returns -EAGAIN, if the missing ranges of this thread collect
 * (base/missing_ranges.h).
 * The bytes count as good only after blob_check(). */
int blob_pread(const struct blob *blob, void *buf, size_t len, uint64_t off);

/* Does r, the result of a read, say nothing of the bytes? They are not here, or cannot be had now,
 * or nobody waits for them any more, or there is no memory: whoever gets such a result must not
 * take it for a fault of the file, and is called again, or its caller gives up. */
static inline bool blob_says_nothing(int r)
{
    return r == -EAGAIN || r == -EINTR || r == -EREMOTEIO || r == -ENOMEM;
}

/* 0 if all that was read so far came from the version that the blob was made of, else -ESTALE.
 * Call it after the reads of a request and before their bytes are given away. */
static inline int blob_check(const struct blob *blob)
{
    return blob->ops->check(blob);
}

/* For kinds of blobs: why the pread() of this thread fails, for people. It counts until the next
 * blob_read(). */
void blob_explain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same with the reason in d: for reads of which the user hears. */
int blob_read(const struct blob *blob, void *buf, size_t len, uint64_t off, struct diag *d);
int blob_verify(const struct blob *blob, struct diag *d);

/* The same for n pieces, in which it may be faster. -EAGAIN: as by missing_go_on(). */
int blob_read_many(const struct blob *blob, const struct blob_piece *pieces, size_t n,
                   struct diag *d);

/* Have these bytes brought here before all others, and tell waiter (NULL: nobody) when they are.
 * Does not wait. */
void blob_fetch(const struct blob *blob, uint64_t off, uint64_t len, struct waiter *waiter);

/* An epoch has used these bytes: if it was the last time they need not be kept. again: it had used
 * them before, and they were fetched once more for this. */
void blob_used(const struct blob *blob, uint64_t off, uint64_t len, bool again);

/* All that was to be had of the blob has been made something else of: nothing need be kept. */
void blob_done(const struct blob *blob);

/* A text that two versions of a source file do not share; the caller frees it. 0 or -ENOMEM. */
static inline int blob_identity(const struct blob *blob, char **ret)
{
    return blob->ops->identity(blob, ret);
}

static inline const char *blob_name(const struct blob *blob)
{
    return blob->name;
}

/* Where the bytes come from, for people. */
static inline const char *blob_source(const struct blob *blob)
{
    return blob->source ? blob->source : blob->name;
}

/* Takes NULL. No read may be under way. */
static inline void blob_free(struct blob *blob)
{
    if (blob)
        blob->ops->free(blob);
}

static inline void blob_scope_end(struct blob **blob)
{
    blob_free(*blob);
}

#define AUTO_BLOB AUTO(blob_scope_end)

#endif
