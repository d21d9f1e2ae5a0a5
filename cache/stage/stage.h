/* The stage: brings blocks of remote files to this node's disk, and gives blobs that read them.
 *
 * A block that somebody waits for goes before all others. In the background the files are staged
 * whole, in their order, for as long as there is room. Each block is fetched once, by one of all
 * the processes that share the cache folder. docs/internals/staging.md. */
#ifndef EPOCHFS_CACHE_STAGE_STAGE_H
#define EPOCHFS_CACHE_STAGE_STAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/blob.h"
#include "base/diag.h"
#include "cache/disk/folder.h"
#include "cache/stage/transport.h"

struct stage;

enum stage_keep {
    STAGE_PIN,  /* what is in stays in */
    STAGE_ONCE, /* a block is dropped when all of it has been used */
    STAGE_PLAN, /* without room, that one is dropped which is needed last: see stage_needs */
};

struct stage_options {
    enum stage_keep keep;
    uint64_t limit;         /* bytes that the cache folder may take; 0: limit_percent counts */
    unsigned limit_percent; /* of the file system that it is on */
    uint64_t memory; /* bytes of blocks that have no place on disk, with every keep; 0: 64 MiB */
    uint32_t block;  /* bytes, see staged.h; 0: as stage_auto_block() says */
    unsigned jobs;   /* transfers at once, at least 2 */
    unsigned small_jobs; /* the same, with small ones, which take longer to begin than to come: for
                            as long as the remote takes that many. Not more than jobs: none */
    unsigned far_ms;     /* small_jobs is for remotes that take at least so long to begin */
    uint64_t rate;       /* bytes per second in the background; 0: no limit */
    unsigned retry_limit_s; /* that a reader waits for bytes while the remote fails */
    bool background;        /* stage everything; false: only what is asked for */
    /* Nanoseconds that the processors have been idle, as processors_idle_ns(): the background
     * yields them to a job that has use for all. By the thread, no lock held. NULL: it never does.
     */
    uint64_t (*idle_ns)(void);
    /* Has any process made of all of a blob what is used instead, so that it need not be staged?
     * Asked by any thread, no lock held. NULL: no. */
    bool (*is_done)(const struct blob *blob, const struct cache_folder *cache);
};

/* Upper ends of the classes of waiting times, in ms; the last class has none. */
#define STAGE_WAIT_CLASSES 12
extern const unsigned stage_wait_ms[STAGE_WAIT_CLASSES];

/* All grow only, but for those that say what is. */
struct stage_counters {
    _Atomic uint64_t demand_bytes;     /* fetched because somebody waited */
    _Atomic uint64_t background_bytes; /* fetched otherwise; bytes are those of bodies received */
    _Atomic uint64_t distinct_bytes;   /* of blocks that were fetched at least once */
    _Atomic uint64_t served_bytes;     /* given to readers of blobs */
    _Atomic uint64_t hits, misses;     /* reads whose bytes were all here, or not */
    _Atomic uint64_t waits, wait_ns;   /* of readers for bytes */
    _Atomic uint64_t wait_class[STAGE_WAIT_CLASSES + 1];
    _Atomic uint64_t requests;     /* transfers begun */
    _Atomic uint64_t retries;      /* of them, again after a failure */
    _Atomic uint64_t errors;       /* readers that were told of a failure */
    _Atomic uint64_t evictions;    /* blocks dropped */
    _Atomic uint64_t refused;      /* blocks not kept, for want of room */
    _Atomic uint64_t bad_blocks;   /* whose checksum was wrong */
    _Atomic uint64_t bad_files;    /* that differ from SHA256SUMS */
    _Atomic uint64_t rests;        /* of the background, for others to have the processors */
    _Atomic uint64_t staged_bytes; /* is: of these files' blocks, on disk */
    _Atomic uint64_t total_bytes;  /* is: of these files */
};

/* The block of a file of that size where nothing else is said: the smaller the file, the smaller,
 * so that little is fetched that nobody wants, and a file has no more than 32768 of them if it is
 * not too large for that. It follows from the size alone: all processes find the same. */
uint32_t stage_auto_block(uint64_t size);

/* transport: taken over, also on error. cache must outlive it. 0 or -errno with the reason in d. */
int stage_new(const struct stage_options *options, const struct cache_folder *cache,
              struct transport *transport, struct stage **ret, struct diag *d);

/* Ends what is under way. All blobs must have been freed. Takes NULL. */
void stage_free(struct stage *stage);

/* A blob of a file of the remote. url: for the transport; key: the same for the cache (without
 * credentials); name: for messages; sha256: of the whole file, NULL: not known. Fetches nothing
 * yet. 0 or -errno with the reason in d. */
struct stage_file {
    const char *url, *key, *name;
    const uint8_t *sha256;
    const struct remote_version *version;
    unsigned mode, uid, gid;
};
int stage_add(struct stage *stage, const struct stage_file *file, struct blob **ret,
              struct diag *d);

/* The threads run from the first need on. Before a fork() they have to rest: what is under way has
 * two seconds, then it is stopped. */
void stage_rest(struct stage *stage);

/* Begin to stage in the background, if the options say so. */
void stage_begin(struct stage *stage);

/* From now on nobody waits longer than that for a remote that gives nothing; never longer than the
 * options say. Any thread. */
void stage_limit_retry(struct stage *stage, unsigned seconds);

/* From now on all who wait, and who will, get -EINTR: the mount ends. Transfers are stopped. */
void stage_end(struct stage *stage);

/* Fill the cache with all files, for `epochfs stage`; waits for ms at most. 1: all is here; 0: not
 * yet; -ENOSPC: no room; -EREMOTEIO and others: it failed, with the reason in d. */
int stage_wait(struct stage *stage, int ms, struct diag *d);

/* Read every block that is here and compare its checksum, and files whose SHA-256 is known as a
 * whole; those that blob_done() was called for are left out. progress (may be NULL) is called now
 * and then with the bytes done. 0: all is here and right; -ENODATA: something is missing; -EBADMSG:
 * or wrong; with the reason in d. */
int stage_verify(struct stage *stage, void (*progress)(void *ctx, uint64_t bytes), void *ctx,
                 struct diag *d);

/* Who knows in which order the bytes will be read. A time is a number that only grows: the smaller
 * the sooner; times compare with one another for as long as no reader jumps. */
#define STAGE_NEVER UINT64_MAX

struct stage_need {
    const struct blob *blob;
    uint64_t off, len; /* bytes */
    uint64_t when;
    bool has_begun; /* its reader is there now, and may have used some of it */
};

struct stage_needs {
    /* What is needed next and was not given yet, soonest first. Returns how many; 0: nothing more
     * is known now. Called by the thread of the stage, with no lock held. */
    size_t (*next)(void *ctx, struct stage_need *ret, size_t capacity);
    /* When bytes of a blob are needed next; STAGE_NEVER: not that it is known. Any thread, no lock
     * held, and often: it is asked for every block of the cache when room is sought. */
    uint64_t (*when)(void *ctx, const struct blob *blob, uint64_t off, uint64_t len);
    void *ctx;
};

/* Set the forecast of needs, before stage_begin(); it must outlive the threads, or be taken away,
 * by NULL, while they rest. The background then stages what next() gives, in that order, and in the
 * order of the files what is still missing when next() gives nothing more. NULL: none. */
void stage_set_needs(struct stage *stage, const struct stage_needs *needs);

/* There is something more to be had of next(). jumped: a reader is somewhere else now: what was
 * given and has not begun to come is forgotten, and given again if it is needed. Does not block. */
void stage_needs_changed(struct stage *stage, bool jumped);

/* Who is told how the remote does. By any thread of the stage or its transport, no lock held; it
 * must not wait. */
struct stage_listener {
    /* A file: -EREMOTEIO, or -ESTALE, -EBADMSG ..., for which the remote is not to blame. */
    void (*failed)(void *ctx, int error, const char *reason);
    void (*answered)(void *ctx); /* a transfer went well, the first after a failure */
    void *ctx;
};

/* Set it before the threads run, or while they rest; NULL: nobody. It must outlive them. */
void stage_set_listener(struct stage *stage, const struct stage_listener *listener);

struct stage_counters *stage_counters(struct stage *stage);

/* Count what the cache has of all files, which is otherwise found out bit by bit: staged_bytes and
 * stage_staged() are right then. Reads the records of the blocks, not the blocks. */
void stage_count(struct stage *stage);

/* How many bytes of a blob are on this machine, as far as is known: all, if it is none of a stage.
 * Any thread; does not block. */
uint64_t stage_staged(const struct blob *blob);

/* A reader has waited so long for bytes. */
void stage_waited(struct stage *stage, int64_t ns);

struct quota *stage_quota(struct stage *stage);  /* as long as stage lives */
uint64_t stage_quota_used(struct stage *stage);  /* of the cache folder, bytes */
uint64_t stage_quota_limit(struct stage *stage); /* 0: none */

/* The last failure of the remote, for people; "" if there was none, or it works again. */
void stage_trouble(struct stage *stage, char *ret, size_t capacity);

#endif
