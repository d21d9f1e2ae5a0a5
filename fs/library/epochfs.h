/* libepochfs: the paths and the bytes of `epochfs mount`, without a mount.
 *
 *     struct epochfs_error error = {.size = sizeof(error)};
 *     struct epochfs *fs = epochfs_open("/data/mnist", "image_size=224x224", &error);
 *     int64_t n = fs ? epochfs_read(fs, "train/dataset.json", 0, text, sizeof(text), &error) : -1;
 *
 * Errors. A call that fails returns NULL or -1 and fills its struct epochfs_error, which may be
 * NULL. Nothing is printed, the process never ends here, and its signal handlers and limits stay as
 * they are. An exception: a file that another process cuts short while it is mapped raises SIGBUS.
 * So while such files are in use there is a handler, which passes on what is not its, and the one
 * before it is set again in the end.
 *
 * Threads. Any thread may make any call at any time, except epochfs_batches_close() and
 * epochfs_batch_give(), which end what other threads may not use at that time. Several sources may
 * be open at once.
 *
 * Locale. A program may set any: during a call its thread has that of C, also in functions that are
 * called back.
 *
 * Closing. Do not use a source, or its batches, after epochfs_close(). In the thread that has
 * closed it, such a call is an assertion that fails (SIGABRT) where the library was built without
 * NDEBUG, and an error, ESHUTDOWN, where it was built with it, as what is installed is. Other
 * threads may be late: they always get ESHUTDOWN.
 *
 * fork(). A child may not use what its parent opened: such calls fail with ECHILD, and leave
 * everything as it is. The child opens the source itself; both share the cache directory.
 *
 * Sizes. Structs have a member `size`, which the caller sets to their size: later versions may add
 * members at their end, and read or write only those that the caller has. */
#ifndef EPOCHFS_H
#define EPOCHFS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct epochfs;         /* a source that is open */
struct epochfs_batches; /* the batches of a plan in one epoch */
struct epochfs_batch;   /* one of them, in memory */

/* Why a call has failed. */
struct epochfs_error {
    size_t size;        /* of this struct: set by the caller */
    int code;           /* an errno: see each function */
    char message[1024]; /* for people; NUL-terminated */
};

/* The version of the library, such as "0.1.0". */
const char *epochfs_version(void);

/* ---- a source ---- */

/* Open SOURCE, a file, a directory or a URL, as `epochfs mount -o OPTIONS SOURCE` does. options:
 * separated by commas, as there; NULL or "": none. `readahead=` bounds the memory of batches that
 * are made ahead.
 *
 * EINVAL: an option is wrong, or means nothing without a mount; ENOENT and others: the source or
 * the cache directory cannot be opened. epochfs_close() ends it. */
struct epochfs *epochfs_open(const char *source, const char *options, struct epochfs_error *error);

/* Close a source. Calls that are under way in other threads end with ESHUTDOWN, and this waits for
 * them. Each struct epochfs_batch stays valid; struct epochfs_batches must still be closed. 0 or
 * -1: EINVAL: fs is NULL; ESHUTDOWN: another thread closes it; ECHILD. */
int epochfs_close(struct epochfs *fs, struct epochfs_error *error);

/* Call each for the lines of what the mount would have logged as warnings and errors since the
 * source was opened, until it returns non-zero: files that are not used, rows that are skipped, and
 * what may be a mistake in a plan. At most 64 KiB are kept. 0 or -1. */
int epochfs_notes(struct epochfs *fs, int (*each)(void *ctx, const char *line), void *ctx,
                  struct epochfs_error *error);

/* ---- files ----
 *
 * A path is that of a file of the mount, below its mountpoint:
 * "train/samples/npy/000000.image.npy", "train/batches/batch=128,seed=7/epoch=0/npz/000000.npz",
 * ".epochfs/status.json". "" is the root. ENOENT: there is no such file, and the message says why
 * if it looks like a plan; ENOTDIR, EISDIR; ESTALE: the source has changed; EREMOTEIO: the remote
 * has failed for `retry_timeout=`; EBADMSG: the data is malformed; EIO, ENOMEM. A file of a dataset
 * that must be indexed first waits for it. */

struct epochfs_stat {
    size_t size;      /* of this struct: set by the caller */
    uint64_t bytes;   /* of the file's content */
    uint64_t inode;   /* as st_ino of the mount */
    int64_t mtime_ns; /* since 1970 */
    uint32_t mode;    /* as st_mode; links are followed */
    uint32_t padding; /* 0 */
};
int epochfs_stat(struct epochfs *fs, const char *path, struct epochfs_stat *ret,
                 struct epochfs_error *error);

/* Call each for the entries of a directory, in their order, until it returns non-zero. 0 or -1. */
int epochfs_list(struct epochfs *fs, const char *path, int (*each)(void *ctx, const char *name),
                 void *ctx, struct epochfs_error *error);

/* Read bytes [offset, offset + size) of a file, fewer where it ends, into memory. Returns how many,
 * or -1. */
int64_t epochfs_read(struct epochfs *fs, const char *path, uint64_t offset, void *memory,
                     size_t size, struct epochfs_error *error);

/* The extended attribute of a sample or a batch: "user.epochfs.key", for example. Writes it,
 * without a NUL, and returns its length; or -1: ENODATA: there is none; ERANGE: it has more than
 * size bytes. */
int64_t epochfs_attribute(struct epochfs *fs, const char *path, const char *name, void *memory,
                          size_t size, struct epochfs_error *error);

/* ---- batches ---- */

struct epochfs_plan {
    size_t size;         /* of this struct: set by the caller */
    const char *dataset; /* "train" */
    const char *plan;    /* "batch=128,seed=7" */
    uint64_t epoch;      /* without a seed, all epochs are equal */
    /* Names of the arrays, separated by commas; NULL: all that the file of a batch has. Arrays that
     * say where samples begin and end (NAME_offsets, NAME_shape, NAME_len) come with NAME. */
    const char *fields;
    /* Whose arrays: "npz" (also NULL), "npy" (also derived and padded ones), "csc"
     * or "csc_value". */
    const char *encoding;
};

/* An array of a batch: C order, little-endian. Valid as long as its batch, or until
 * epochfs_batches_arrays() returns. */
struct epochfs_array {
    size_t size;           /* of this struct: set by the caller */
    const char *name;      /* "image" */
    const char *descr;     /* numpy's: "|u1", "<f4", "|S6" */
    const uint64_t *shape; /* [ndim] */
    uint32_t ndim;
    uint32_t padding;
    uint64_t bytes; /* of data */
    void *data;     /* aligned to 64 bytes; NULL in epochfs_batches_arrays() */
};

/* Open the batches of a plan in an epoch. NULL: ENOENT: the plan does not open, or the dataset has
 * no such field or encoding; EINVAL. No thread is started before the first batch is taken. */
struct epochfs_batches *epochfs_batches_open(struct epochfs *fs, const struct epochfs_plan *plan,
                                             struct epochfs_error *error);
void epochfs_batches_close(struct epochfs_batches *batches); /* takes NULL */

/* How many batches the epoch has. */
uint64_t epochfs_batches_count(const struct epochfs_batches *batches);

/* Call each for the arrays of batch k, without their data. 0 or -1; no sample is read. */
int epochfs_batches_arrays(struct epochfs_batches *batches, uint64_t k,
                           int (*each)(void *ctx, const struct epochfs_array *array), void *ctx,
                           struct epochfs_error *error);

/* Read batch k into the caller's memory: the array number i, in the order of
 * epochfs_batches_arrays(), into memory[i], which has size[i] bytes; NULL: not that one. n: of
 * both. 0 or -1: ERANGE: memory is too small, n is not the number of arrays, or there is no
 * batch k. */
int epochfs_batches_read(struct epochfs_batches *batches, uint64_t k, void *const *memory,
                         const size_t *size, size_t n, struct epochfs_error *error);

/* Take batch k. Those that come next, by the steps of the last calls, are made ahead by threads of
 * the library. Its memory is the caller's until epochfs_batch_give(), which any thread may call,
 * also after both closes. NULL: ERANGE: there is no batch k; or what epochfs_read() says. */
struct epochfs_batch *epochfs_batches_take(struct epochfs_batches *batches, uint64_t k,
                                           struct epochfs_error *error);
void epochfs_batch_give(struct epochfs_batch *batch); /* takes NULL */

/* The arrays of a batch: how many, and array i. 0 or -1: there is no array i. */
size_t epochfs_batch_count(const struct epochfs_batch *batch);
int epochfs_batch_array(const struct epochfs_batch *batch, size_t i, struct epochfs_array *ret);

#ifdef __cplusplus
}
#endif

#endif
