/* An opener: opens what a file of the source names, other files and the outputs of commands, and
 * what is packed inside of it. cache/ implements it, format/ uses it. */
#ifndef EPOCHFS_BASE_OPENER_H
#define EPOCHFS_BASE_OPENER_H

#include <stdbool.h>

#include "base/blob.h"
#include "base/diag.h"

struct opener;
struct opener_run;

/* Bytes [off, off + len) of a blob, which are a deflate stream (RFC 1951), as members of ZIP
 * archives are. */
struct packed_part {
    const char *name; /* of the content, for messages */
    uint64_t off, len;
    uint64_t size; /* bytes of the content */
    uint32_t crc;  /* of the content, CRC-32 */
};

struct opener_ops {
    int (*file)(const struct opener *opener, const char *folder, const char *path,
                struct blob **ret, struct diag *d);
    int (*kept)(const struct opener *opener, const char *command, struct blob **ret);
    int (*start)(const struct opener *opener, const char *command, struct opener_run **ret,
                 struct diag *d);
    int (*poll)(struct opener_run *run, int wait_ms, struct blob **ret, struct diag *d);
    void (*stop)(struct opener_run *run);
    int (*unpack)(const struct opener *opener, const struct blob *blob,
                  const struct packed_part *part, struct blob **ret, struct diag *d);
    int (*unpack_file)(const struct opener *opener, struct blob **blob, struct diag *d);
};

struct opener {
    const struct opener_ops *ops;
    bool runs_commands; /* the user allows them */
    bool reads_outside; /* the user also allows files outside of SOURCE */
};

/* The file that a file in folder (relative to SOURCE, "" for SOURCE itself) calls path. The caller
 * frees *ret. As many blobs may exist as memory allows, because descriptors are opened when needed.
 * 0, -ENOENT, -EACCES: it is outside SOURCE and that was not allowed, or -errno; the reason is in d
 * and says how to allow it. Any thread. */
static inline int opener_file(const struct opener *opener, const char *folder, const char *path,
                              struct blob **ret, struct diag *d)
{
    return opener->ops->file(opener, folder, path, ret, d);
}

/* The kept output of a command, which is never run for this; the caller frees it. 0, -ENOENT: there
 * is none, or another -errno. */
static inline int opener_kept(const struct opener *opener, const char *command, struct blob **ret)
{
    return opener->ops->kept(opener, command, ret);
}

/* Start a shell command, or find its kept output. 0 and a run that the caller stops; -EACCES:
 * commands were not allowed; -EAGAIN: too many are running, try again when one has ended; or
 * -errno. */
static inline int opener_start(const struct opener *opener, const char *command,
                               struct opener_run **ret, struct diag *d)
{
    return opener->ops->start(opener, command, ret, d);
}

/* 1 and all of the run's output, which the caller frees; 0: not yet, after at most wait_ms; -errno
 * with the reason in d: it failed, or took too long. Called by one thread at a time. */
static inline int opener_poll(const struct opener *opener, struct opener_run *run, int wait_ms,
                              struct blob **ret, struct diag *d)
{
    return opener->ops->poll(run, wait_ms, ret, d);
}

/* End the run if it is still running, and free it; run may be NULL. */
static inline void opener_stop(const struct opener *opener, struct opener_run *run)
{
    if (run)
        opener->ops->stop(run);
}

/* The content of a packed part, which is unpacked once, into the cache folder; the caller frees
 * *ret. Blocks while it unpacks. 0, -EBADMSG: it is not what the part says, or another -errno, with
 * the reason in d. */
static inline int opener_unpack(const struct opener *opener, const struct blob *blob,
                                const struct packed_part *part, struct blob **ret, struct diag *d)
{
    return opener->ops->unpack(opener, blob, part, ret, d);
}

/* The same of a whole file: if *blob is packed, replace it by its content. */
static inline int opener_unpack_file(const struct opener *opener, struct blob **blob,
                                     struct diag *d)
{
    return opener->ops->unpack_file(opener, blob, d);
}

#endif
