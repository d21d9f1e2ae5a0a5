/* A blob: the bytes of one source file, wherever they are. What blob_check() accepts was the
 * content of one version of that file.
 *
 * cache/ makes blobs; format/ reads them and knows nothing else of where bytes come from. */
#ifndef EPOCHFS_BASE_BLOB_H
#define EPOCHFS_BASE_BLOB_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/checked.h"
#include "base/diag.h"
#include "base/scope.h"

struct blob;
struct read_context;
struct waiter;

/* A range of a blob, and where its bytes go. */
struct blob_piece {
    void *buf;
    size_t len;
    uint64_t off;
};

/* What may be asked of the page cache of this machine: see blob_memory(). */
enum blob_ask {
    BLOB_BRING, /* begin to read the range into it */
    BLOB_PEEK,  /* is the first byte of the range in it? */
    BLOB_LEAVE, /* drop the range from it */
};

/* What a kind of blob provides. */
struct blob_ops {
    /* See blob_pread(). d: for the reason, if it knows more than the number says; but none for
     * -EAGAIN. May be NULL. */
    int (*pread)(struct read_context *rc, const struct blob *blob, void *buf, size_t len,
                 uint64_t off, struct diag *d);
    int (*check)(const struct blob *blob); /* NULL: reads are checked already */
    int (*identity)(const struct blob *blob, char **ret);
    void (*free)(struct blob *blob); /* NULL: it is owned elsewhere */
    /* See blob_fetch(). NULL: all bytes are on this machine. */
    void (*fetch)(const struct blob *blob, uint64_t off, uint64_t len, struct waiter *waiter);
    /* See blob_done(). NULL: ignored. */
    void (*done)(const struct blob *blob);
    /* See blob_in_files(). NULL: 0. */
    uint64_t (*in_files)(const struct blob *blob, uint64_t least);
    /* See blob_open_file(). NULL: -EOPNOTSUPP. */
    int (*open_file)(const struct blob *blob, uint64_t off, uint64_t len, int *ret_fd,
                     struct diag *d);
    /* Read all pieces, which lie within the blob. 0; -EAGAIN: some are missing, and a context that
     * collects has noted all that are; -EOPNOTSUPP: not possible at once, and the caller reads them
     * one by one; or -errno. NULL: always one by one. */
    int (*pread_many)(struct read_context *rc, const struct blob *blob,
                      const struct blob_piece *pieces, size_t n);
    /* Bytes between two ranges that are fetched with them, up to MISSING_GAP. NULL: that many. */
    uint64_t (*gap)(const struct blob *blob);
    /* See blob_memory(). NULL: -EOPNOTSUPP. */
    int (*memory)(const struct blob *blob, enum blob_ask ask, uint64_t off, uint64_t len);
};

/* The head of every blob. Set by its maker, then constant. */
struct blob {
    const struct blob_ops *ops;
    char *name;    /* path relative to SOURCE, for messages; owned */
    char *source;  /* its path or URL, without a query; owned. NULL: the name */
    char *etag;    /* of the source file, as its server spells it; owned. NULL: none is known */
    uint64_t size; /* bytes */
    struct timespec mtime; /* of the source file */
    unsigned mode;         /* permission bits of the source file */
    unsigned uid, gid;     /* its owner */
};

/* For code that just waits in its reads, and has no read context. */
#define READ_WAITS ((struct read_context *)NULL)

/* Read exactly len bytes at byte offset off into buf.
 * 0; or -EINVAL: range outside the blob, -ESTALE: the source was cut short, -EIO and other -errno
 * of read (buf undefined). Any number of threads. No lock may be held. buf is the caller's.
 * If bytes are not on this machine yet, it waits for them, and returns -EREMOTEIO if they cannot be
 * fetched; or, if the read context collects, it notes there what is missing and returns -EAGAIN
 * (base/read_context.h).
 * The bytes are good only after blob_check(). */
int blob_pread(struct read_context *rc, const struct blob *blob, void *buf, size_t len,
               uint64_t off);

/* Does r, the result of a read, say nothing of the bytes? They are not here, or cannot be fetched
 * now, or no reader waits for them any more, or there is no memory. Do not take such a result for a
 * fault of the file: the code that gets it is called again, or its caller gives up. */
static inline bool blob_says_nothing(int r)
{
    return r == -EAGAIN || r == -EINTR || r == -EREMOTEIO || r == -ENOMEM;
}

/* May a file that failed with r be good later, or on another machine? Not if its content or name is
 * wrong, or if it does not exist. */
bool blob_may_pass(int r);

/* 0 if all that was read so far came from the version that the blob was made from, otherwise
 * -ESTALE. Call it after the reads of a request and before their bytes are returned. */
static inline int blob_check(const struct blob *blob)
{
    return blob->ops->check ? blob->ops->check(blob) : 0;
}

/* blob_pread() and blob_check() with the reason in d: for reads whose failure is reported to the
 * user. */
int blob_read(struct read_context *rc, const struct blob *blob, void *buf, size_t len, uint64_t off,
              struct diag *d);
int blob_verify(const struct blob *blob, struct diag *d);

/* Bytes of the blob were read, and are good only if blob_verify() says so. A context that checks
 * late notes the blob instead, and who set checks_late calls blob_verify_used() before the bytes
 * leave: once for a file, however many records of it were read. So must who remembers what was made
 * of such bytes, unless each use of that calls blob_used() again. */
int blob_used(struct read_context *rc, const struct blob *blob, struct diag *d);

/* Verify all blobs that were noted; they stay noted. rc may be READ_WAITS. */
int blob_verify_used(struct read_context *rc, struct diag *d);

/* The same for n pieces, perhaps faster than one by one. -EAGAIN: by the rule of missing_go_on().
 */
int blob_read_many(struct read_context *rc, const struct blob *blob,
                   const struct blob_piece *pieces, size_t n, struct diag *d);

/* Fetch these bytes before all others, and report to waiter (NULL: none) when they are present.
 * Does not wait. */
static inline void blob_fetch(const struct blob *blob, uint64_t off, uint64_t len,
                              struct waiter *waiter)
{
    if (blob->ops->fetch && off < blob->size)
        blob->ops->fetch(blob, off, min_u64(len, blob->size - off), waiter);
}

/* Open the file of this machine that has bytes [off, off + len) of the blob, and no others, so that
 * readers can have the file itself. *ret_fd: for reading; the caller closes it. It was of the
 * blob's version when it was opened; a change after that is not seen. 0; -EOPNOTSUPP: there is no
 * such file; -EAGAIN: not now, as not all of it is present; -ESTALE: it has changed; -EMFILE and
 * others, with the reason in d. Any thread. May read all of the file. */
int blob_open_file(const struct blob *blob, uint64_t off, uint64_t len, int *ret_fd,
                   struct diag *d);

/* Bytes of the blob that are in files of this machine, each of at least so many bytes, of a blob
 * that has many files. Any thread. */
static inline uint64_t blob_in_files(const struct blob *blob, uint64_t least)
{
    return blob->ops->in_files ? blob->ops->in_files(blob, least) : 0;
}

/* Ask the page cache about bytes [off, off + len) of the blob, which end in it. Waits for no disk,
 * unless its queue is full. A hint: no byte of the blob depends on it. BLOB_PEEK: 1 or 0. Others:
 * 0. -EOPNOTSUPP: the blob is no file of this machine, or its filesystem cannot say at once what
 * is in memory, as those of networks cannot; or another -errno. Any thread. */
static inline int blob_memory(const struct blob *blob, enum blob_ask ask, uint64_t off,
                              uint64_t len)
{
    return blob->ops->memory ? blob->ops->memory(blob, ask, off, len) : -EOPNOTSUPP;
}

/* Report that the blob was converted as a whole: none of its bytes need be kept. */
void blob_done(const struct blob *blob);

/* A text that no two versions of a source file share; the caller frees it. 0 or -ENOMEM. */
static inline int blob_identity(const struct blob *blob, char **ret)
{
    return blob->ops->identity(blob, ret);
}

static inline const char *blob_name(const struct blob *blob)
{
    return blob->name;
}

/* The bytes of the blob are not what they should be: diag_set() with its name and ": " in front.
 * Returns -EBADMSG. */
int blob_bad(const struct blob *blob, struct diag *d, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Where the bytes come from, for people. */
static inline const char *blob_source(const struct blob *blob)
{
    return blob->source ? blob->source : blob->name;
}

/* Takes NULL. No read may be under way. */
static inline void blob_free(struct blob *blob)
{
    if (blob && blob->ops->free)
        blob->ops->free(blob);
}

static inline void blob_scope_end(struct blob **blob)
{
    blob_free(*blob);
}

#define AUTO_BLOB AUTO(blob_scope_end)

#endif
