/* The stage: brings blocks of remote files to this node's disk, and provides blobs that read them.
 *
 * Blocks that readers wait for come before all others. In the background the stage fetches the
 * files whole, in their order, while there is space. Each block is fetched once, by one of all the
 * processes that share the cache folder. docs/internals/staging.md. */
#ifndef EPOCHFS_CACHE_STAGE_STAGE_H
#define EPOCHFS_CACHE_STAGE_STAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/blob.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/memory.h"
#include "cache/disk/quota.h"
#include "cache/stage/transport.h"

struct stage;

enum stage_keep {
    STAGE_PIN,  /* no block is dropped */
    STAGE_ONCE, /* a block is dropped soon after its last need, and as STAGE_PLAN does */
    STAGE_PLAN, /* without space, the block needed last is dropped: see stage_needs */
};

struct stage_options {
    enum stage_keep keep;
    uint64_t limit;         /* bytes that the cache folder may take; 0: limit_percent applies */
    unsigned limit_percent; /* of the file system that the folder is on */
    uint64_t own_limit;     /* bytes that this stage's blocks may take of it, about; 0: all of it */
    uint64_t memory;        /* bytes of overflow blocks, for every keep; 0: 64 MiB */
    uint32_t block;         /* bytes, see cache/disk/staged_file.h; 0: stage_auto_block() decides */
    unsigned jobs;          /* transfers at once, at least 2 */
    /* The same, counting small transfers, which take longer to begin than to come. Fewer while the
     * remote refuses that many. No special limit if not more than jobs. */
    unsigned small_jobs;
    unsigned far_ms; /* small_jobs applies to remotes that take at least this long to begin */
    uint64_t rate;   /* bytes per second in the background; 0: no limit */
    unsigned retry_limit_s;    /* how long a reader waits for bytes while the remote fails */
    bool background;           /* stage everything; false: only what readers ask for */
    bool no_ahead;             /* nothing is fetched ahead of readers in sequence */
    const struct clock *clock; /* must outlive the stage; NULL: the real one */
    /* Nanoseconds that the processors have been idle, as processors_idle_ns(): the background
     * yields them to a job that can use them all. The stage's thread calls it, no lock held. NULL:
     * never yields. */
    uint64_t (*idle_ns)(void);
    /* Has any process made something from the whole blob that readers use in its place, so that it
     * need not be staged? Any thread calls it, no lock held. NULL: no. */
    bool (*is_done)(const struct blob *blob, const struct cache_folder *cache);
};

/* Upper bounds of the classes of waiting times, in ms; the last class has none. */
#define STAGE_WAIT_CLASSES 12
extern const unsigned stage_wait_ms[STAGE_WAIT_CLASSES];

/* Counters only grow; the two marked "now" are current values. */
struct stage_counters {
    _Atomic uint64_t demand_bytes;     /* fetched because a reader waited */
    _Atomic uint64_t background_bytes; /* fetched otherwise; both count bytes of bodies received */
    _Atomic uint64_t distinct_bytes;   /* of blocks that were fetched at least once */
    _Atomic uint64_t served_bytes;     /* given to readers of blobs */
    _Atomic uint64_t hits, misses;     /* reads whose bytes were all here; the others */
    _Atomic uint64_t waits, wait_ns;   /* of readers for bytes */
    _Atomic uint64_t wait_class[STAGE_WAIT_CLASSES + 1];
    _Atomic uint64_t requests;     /* transfers begun */
    _Atomic uint64_t retries;      /* those of them that repeat a failed one */
    _Atomic uint64_t errors;       /* failures that readers got */
    _Atomic uint64_t evictions;    /* blocks dropped */
    _Atomic uint64_t held;         /* drops refused: readers read the file without the stage */
    _Atomic uint64_t refused;      /* blocks not kept: no space */
    _Atomic uint64_t bad_blocks;   /* blocks whose checksum was wrong */
    _Atomic uint64_t bad_files;    /* files that differ from SHA256SUMS */
    _Atomic uint64_t rests;        /* pauses of the background, which yields the processors */
    _Atomic uint64_t staged_bytes; /* now: of these files' blocks, on disk */
    _Atomic uint64_t total_bytes;  /* now: of these files */
};

/* The block size of a file of `size` bytes unless the options set one. Smaller files have smaller
 * blocks, so that little is fetched in vain; a file has at most 262144 blocks unless it is too
 * large for that. Depends on size alone: all processes compute the same. */
uint32_t stage_auto_block(uint64_t size);

/* Takes ownership of transport, also on error. cache must outlive it. 0 or -errno with the reason
 * in d. */
int stage_new(const struct stage_options *options, const struct cache_folder *cache,
              struct transport *transport, struct stage **ret, struct diag *d);

/* Ends all transfers. All blobs must have been freed. Takes NULL. */
void stage_free(struct stage *stage);

/* A blob of a file of the remote. url: what the transport asks for; key: what the cache calls it
 * (no credentials); name: for messages; sha256: of the whole file, NULL: unknown. A file of at most
 * 16 MiB is compared before its readers get bytes; a larger one is compared once it is whole.
 * Fetches nothing yet. 0 or -errno with the reason in d. */
struct stage_file {
    const char *url, *key, *name;
    const uint8_t *sha256;
    bool trusted; /* readers of small files do not wait for the SHA-256 either */
    const struct remote_version *version;
    unsigned mode, uid, gid;
    const void *parts; /* what the file is made of, for stage_parts(); it outlives the stage */
};
int stage_add(struct stage *stage, const struct stage_file *file, struct blob **ret,
              struct diag *d);

/* What stage_add() was given for the blob; NULL: nothing, or the blob belongs to no stage. */
const void *stage_parts(const struct blob *blob);

/* Threads start when they are first needed. Call this before a fork(): it ends them. Transfers
 * under way have two seconds, then they are stopped. This and the next two take NULL. */
void stage_rest(struct stage *stage);

/* Begin to stage in the background, if the options say so. */
void stage_begin(struct stage *stage);

/* From now on nothing is fetched ahead of readers in sequence: they read a little, and end. Any
 * thread. */
void stage_read_no_ahead(struct stage *stage);

/* From now on no reader waits longer than this for a remote that sends nothing; the options' limit
 * applies. Any thread. */
void stage_limit_retry(struct stage *stage, unsigned seconds);

/* How many waits the retry limit has ended since the remote last sent something; with the reason of
 * the first in d. 0: it is not silent, or may be tried again. Any thread. */
unsigned stage_silent(struct stage *stage, struct diag *d);

/* From now on all readers that wait, and later ones, get -EINTR: the mount ends. Stops transfers.
 * Takes NULL. */
void stage_end(struct stage *stage);

/* Fill the cache with all files, for `epochfs stage`; waits at most ms. 1: all is cached; 0: not
 * yet; -ENOSPC: no space; -EREMOTEIO and others: failed, with the reason in d. */
int stage_wait(struct stage *stage, int ms, struct diag *d);

/* Read every block that is here and compare its checksum. Compare whole files whose SHA-256 is
 * known. Skips files for which blob_done() was called. progress (may be NULL) is called now
 * and then with the bytes done. 0: all is here and right; -ENODATA: something is missing; -EBADMSG:
 * something is wrong; with the reason in d. */
int stage_verify(struct stage *stage, void (*progress)(void *ctx, uint64_t bytes), void *ctx,
                 struct diag *d);

/* The forecast of needs: in which order readers will read bytes. A time is a number that only
 * grows; smaller is sooner. Times compare with one another until a reader jumps. */
#define STAGE_NEVER UINT64_MAX

struct stage_need {
    const struct blob *blob;
    uint64_t off, len; /* bytes */
    uint64_t when;
};

struct stage_needs {
    /* Gives what is needed next and was not given yet, soonest first. Returns how many needs; 0:
     * nothing more is known now. The stage's thread calls it, no lock held. */
    size_t (*next)(void *ctx, struct stage_need *ret, size_t capacity);
    /* Set `when` of n ranges: when bytes are needed next; STAGE_NEVER: no need is known. Must be
     * cheap: the search for space asks for every block of the cache. Any thread, no lock held. */
    void (*when)(void *ctx, size_t n, struct stage_need *need);
    /* For keep=once. When bytes of a blob are needed last, as far as is known: ask again when that
     * time has come. 0: readers have had their last need for certain. STAGE_NEVER: no reader needs
     * them, and none has needed them. Any thread, no lock held. */
    uint64_t (*last)(void *ctx, const struct blob *blob, uint64_t off, uint64_t len);
    /* The time. While *ret_version stays the same, answers of last() hold until their time. The
     * stage's thread calls it, no lock held. */
    uint64_t (*now)(void *ctx, uint64_t *ret_version);
    void *ctx;
};

/* When bytes of a blob are needed next. */
static inline uint64_t stage_when(const struct stage_needs *needs, const struct blob *blob,
                                  uint64_t off, uint64_t len)
{
    struct stage_need need = {.blob = blob, .off = off, .len = len};

    needs->when(needs->ctx, 1, &need);
    return need.when;
}

/* Set the forecast of needs, before stage_begin(); it must outlive the threads, or be unset with
 * NULL while they rest. The background then stages what next() gives, in that order; when next()
 * gives nothing more, it stages the rest in the order of the files. NULL: none. */
void stage_set_needs(struct stage *stage, const struct stage_needs *needs);

/* next() has more to give. jumped: a reader has moved: needs that were given and whose transfer has
 * not begun are forgotten, and given again if they still are needed. Does not block. */
void stage_needs_changed(struct stage *stage, bool jumped);

/* Receives reports of how the remote does. Any thread of the stage or its transport calls it, no
 * lock held; it must not block. */
struct stage_listener {
    /* A file failed: -EREMOTEIO, or -ESTALE, -EBADMSG and others, which are not the remote's
     * fault. */
    void (*failed)(void *ctx, int error, const char *reason);
    void (*answered)(void *ctx); /* the first transfer that succeeds after a failure */
    void *ctx;
};

/* Set it before the threads run, or while they rest; NULL: none. It must outlive the threads. */
void stage_set_listener(struct stage *stage, const struct stage_listener *listener);

struct stage_counters *stage_counters(struct stage *stage);

/* Count what the cache has of all files, which the stage otherwise learns bit by bit: staged_bytes
 * and stage_staged() are exact afterwards. Reads the blocks' records, not the blocks. */
void stage_count(struct stage *stage);

/* How many bytes of a blob are on this machine, as far as is known; all of them if the blob belongs
 * to no stage. Any thread; does not block. */
uint64_t stage_staged(const struct blob *blob);

/* Count a reader's wait of ns nanoseconds. */
void stage_waited(struct stage *stage, int64_t ns);

/* What overflow blocks take; what the buffers of transfers take. owner: the struct stage. */
struct memory_held stage_overflow_held(void *owner);
struct memory_held stage_buffers_held(void *owner);

/* Does a group share the folder of the staged files? */
bool stage_is_shared(const struct stage *stage);

struct quota *stage_quota(struct stage *stage); /* of the cache folder; valid as long as stage */

/* How much of the source the cache can hold. */
struct stage_space {
    uint64_t total, limit; /* bytes of the source, and what its blocks may take */
    uint64_t staged;       /* bytes of it that are on disk, as far as is known */
    uint64_t others;       /* bytes of the folder that other files take */
    enum stage_keep keep;
    const char *folder; /* valid as long as stage */
    bool is_refused;    /* blocks were not kept */
};
void stage_space(struct stage *stage, struct stage_space *ret);

/* See transport_peers(). */
bool stage_peers(struct stage *stage, struct transport_peers *ret);

/* A number that no other stage has. It stands for the version of files that have none. */
uint64_t stage_own_number(const struct stage *stage);

/* Text of the remote's last failure; "" if there was none, or the remote works again. */
void stage_trouble(struct stage *stage, char *ret, size_t capacity);

#endif
