/* What the files of the stage share: what is constant of a stage and of a file, the one lock, and
 * reports. All other state is a struct of one file, behind its header. No file outside cache/stage
 * includes this.
 *
 * Calls go down this list:
 *   stage.c whole.c     life, files, the thread; filling and verifying the whole cache
 *   background.c        what is fetched when no reader waits
 *   passed.c            which blocks are dropped at once
 *   reader.c            the blob of a file
 *   transfers.c         the next run, the start and the end of its transfers
 *   arrive.c            a transfer's bytes become blocks
 *   keep.c              which blocks are dropped when there is no space
 *   content.c           cached bytes; blocks that leave
 *   speed.c             how fast the remote is; runs that take too long
 *   needs.c runs.c      which readers want which blocks; runs are made, wait, and are sent
 *   blocks.c            which blocks of a file are cached
 *   overflow.c limiter.c report.c
 *
 * A read of a missing block: file_read() (blocks.h) says -EAGAIN. The blob's fetch() looks at the
 * disk again, because another process may have fetched the block, and asks needs_ask_locked()
 * (needs.h), which queues the need. runs_start() (runs.h) makes a run of the most urgent need when
 * a connection is free, claims its blocks, takes space by policy.h, and starts a transfer; its
 * bytes become blocks on disk, or in memory (overflow.h). A wait ends with the last of its blocks:
 * waits_over_locked() reports this to the waiter, and the reader reads again. Where a read may
 * wait, blob_wait() does all of this.
 *
 * Lower files report to higher ones through tables: a transfer its bytes and its end (struct
 * transfer), a wait its end (struct waiter), and stage_kick_locked() wakes stage->main. */
#ifndef EPOCHFS_CACHE_STAGE_CORE_H
#define EPOCHFS_CACHE_STAGE_CORE_H

#include <pthread.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/lock.h"
#include "cache/disk/quota.h"
#include "cache/stage/overflow.h"
#include "cache/stage/stage.h"

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S  INT64_C(1000000000)

enum file_verdict { FILE_NOT_VERIFIED, FILE_GOOD, FILE_BAD };

/* A file of the remote; the blob is its first member. */
struct file {
    struct blob blob;
    /* Set by stage_add(), then constant: */
    struct stage *stage;
    char *url, *version_text; /* the key is blob.source */
    const void *parts;
    uint32_t block_bytes;
    uint64_t blocks;
    bool has_sha256, trusted; /* see struct stage_file */
    uint8_t sha256[32];
    _Atomic uint8_t *state;    /* [blocks] of blocks.h */
    struct block_store *store; /* of blocks.c, content.c */
    struct file_needs *needs;
    struct file_runs *runs;
    uint64_t *last; /* [blocks] of passed.c, keep=once: the last answer of the forecast when it is
                       needed last, 0: never asked */
    uint64_t *when; /* [blocks] of keep.c: the same when it is needed next */
    bool surveyed;  /* of keep.c: its blocks are counted */

    struct file *_Atomic next; /* in the list of all files of the stage */
    _Atomic bool done;         /* no reader reads it any more: blob_done() */
    _Atomic int failed;  /* -ESTALE: the file has changed; -EBADMSG: it differs from SHA256SUMS */
    _Atomic int verdict; /* enum file_verdict, of the SHA-256 */
    _Atomic uint64_t ahead_at; /* reads from this byte on fetch more ahead; UINT64_MAX: none */
    /* Guarded by stage->lock: */
    struct remote_version version; /* whole_only may become true later */
    struct stale_bytes *stale;     /* of content.c; NULL: there are none */
    char *trouble; /* why it could not be opened, or its last transfer failed; NULL: it works */
};

struct stage {
    /* Set by stage_new(), then constant: */
    struct stage_options options;
    const struct cache_folder *cache;
    struct transport *transport;
    struct limiter *limiter; /* of the transport; or own_limiter */
    struct limiter own_limiter;
    struct quota *quota;
    void *(*main)(void *stage); /* main function of its thread */
    uint64_t nonce;             /* stage_own_number() */
    struct open_files *open_files;
    struct needs *needs;
    struct runs *runs;
    struct speed *speed;
    struct keeping *keeping;
    struct passing *passing;
    struct background *background;
    struct overflow *overflow;
    struct stage_counters counters;
    const struct stage_listener *_Atomic listener; /* see stage_set_listener(); NULL: none */
    const struct stage_needs *_Atomic forecast;    /* set before stage_begin(); NULL: none */
    _Atomic bool ending;
    _Atomic int64_t progress; /* when any run last made progress, stage_now() */

    struct lock lock;
    pthread_cond_t wake;        /* wakes the stage's thread */
    pthread_cond_t gone;        /* a run has gone, or a file is open, or a drop has ended */
    struct file *_Atomic files; /* the first; files are only added, at the end */
    /* Guarded by lock: */
    struct file *last_file;
    size_t n_files;
    uint64_t n_blocks, blocks_most; /* of all files; see stage_add() */
    size_t block_state_bytes;       /* memory that each takes, once something is known of it */
    void *by_key;                   /* the files, as tsearch() has them */
    pthread_t thread;
    bool has_thread, resting, begun;
    bool kicked;                     /* there may be something to do */
    _Atomic uint64_t changes, jumps; /* of the forecast, reported, ever */
    uint64_t missed;                 /* blocks found missing or forgotten, ever */
    int full_error;                  /* why what has come could not be kept; 0: it could */
    int64_t full_until;              /* when to look again */
    struct diag trouble, untold;     /* the last failure, of any file; of a staged file, perhaps
                                        before there was a listener; */
    int trouble_error, untold_error; /* 0: it works again, there is nothing to tell */
};

/* The time that the stage goes by. */
static inline int64_t stage_now(const struct stage *stage)
{
    return clock_monotonic(stage->options.clock);
}

static inline uint32_t file_block_len(const struct file *file, uint64_t block)
{
    return (uint32_t)min_u64(file->block_bytes, file->blob.size - block * file->block_bytes);
}

/* Blocks of a piece of at most so many bytes, or of one block: such pieces tile the file. */
static inline uint64_t file_tile(const struct file *file, uint64_t bytes)
{
    uint64_t n = 1;

    while (2 * n * file->block_bytes <= bytes)
        n *= 2;
    return n;
}

extern const struct blob_ops stage_blob_ops; /* reader.c */

static inline bool stage_has(const struct blob *blob) /* does it belong to a stage? */
{
    return blob->ops == &stage_blob_ops;
}

/* There may be work for the stage's thread: wake it, or start it if there is none. */
void stage_kick_locked(struct stage *stage);

/* Report to the listener a failure, or, with error 0, that the remote answers. No lock held. */
void stage_tell(struct stage *stage, int error, const struct diag *reason);

/* The same of a failure that the listener is also told of if it comes later. */
void stage_tell_early(struct stage *stage, int error, const struct diag *reason);

/* Note why the file cannot be opened or fetched; NULL: it can. */
void file_set_trouble_locked(struct file *file, const char *text);

/* What comes cannot be kept: the background pauses for a while. */
void stage_note_full(struct stage *stage, int error);

#endif
