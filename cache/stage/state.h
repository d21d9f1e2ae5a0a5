/* The state of the stage, and which functions change it. parts.h has the functions that the files
 * of the stage call of each other; nobody outside of this room includes either. */
#ifndef EPOCHFS_CACHE_STAGE_STATE_H
#define EPOCHFS_CACHE_STAGE_STATE_H

#include <pthread.h>
#include <sys/types.h>

#include "base/lock.h"
#include "base/missing_ranges.h"
#include "base/ranges.h"
#include "base/yield.h"
#include "cache/disk/quota.h"
#include "cache/disk/staged_file.h"
#include "cache/stage/overflow.h"
#include "cache/stage/stage.h"

/* The state of a block in this process. On disk it may be there all the same, put there by another.
 *
 * UNKNOWN   -> HERE, ABSENT  look_at_blocks()    its checksum is right, or not
 * ABSENT    -> HERE          look_at_blocks()    another process has fetched it
 * UNKNOWN, ABSENT, ELSEWHERE -> COMING  runs_make_locked(), run_grow()  a run of ours fetches it
 * COMING    -> HERE          publish_blocks()    wakes waits
 * COMING    -> ABSENT        publish_blocks()    it could not be written; wakes waits
 * COMING    -> ABSENT        release_blocks_locked()  the run has failed, or had no room
 * COMING    -> ELSEWHERE     run_claim()         another process fetches it
 * COMING    -> UNKNOWN       run_pass_what_came()  another process has fetched it before the claim
 * ELSEWHERE -> HERE          look_at_blocks()    it has come
 * ELSEWHERE -> UNKNOWN       take_over_locked()  the other process has let go of it
 * HERE      -> COMING        begin_drop_locked() by the keep policy: no run is made for it now
 * COMING    -> ABSENT, UNKNOWN  end_drop()       it is dropped; or not, for another one claims it
 * HERE      -> ABSENT        lost()              it could not be read
 * HERE      -> UNKNOWN       drop_bad()          its checksum was wrong
 * HERE, ABSENT -> UNKNOWN    forget_locked()     another process has dropped blocks; it is closed
 */
enum block_state { BLOCK_UNKNOWN, BLOCK_ABSENT, BLOCK_ELSEWHERE, BLOCK_COMING, BLOCK_HERE };
#define BLOCK_STATE   0x0f
#define BLOCK_FLAGS   0xf0
#define BLOCK_FETCHED 0x10 /* by this process, at least once */
#define BLOCK_COUNTED 0x20 /* in staged_bytes */
#define BLOCK_PASSED  0x40 /* keep=once: it was used up, */
#define BLOCK_AGAIN   0x80 /* and is needed once more, as the forecast of needs says */

/* A range of blocks that somebody waits for. */
struct wait {
    struct range blocks; /* its head: in file->waits */
    struct range quiet;  /* in stage->quiet: [monotonic_ns() of the last progress, as far as it was
                            looked at; that + 1) */
    struct file *file;
    uint64_t left; /* blocks that are not here */
    struct waiter *waiter;
    struct wait *next; /* when it is over: of those that are told together */
};

static inline struct wait *wait_of(struct range *blocks)
{
    return (struct wait *)blocks;
}

enum file_verdict { FILE_NOT_VERIFIED, FILE_GOOD, FILE_BAD };

/* A file of the remote; its head is the blob. */
struct file {
    struct blob blob;
    /* Set by stage_add(), then constant: */
    struct stage *stage;
    char *url, *key, *version_text;
    uint32_t block_bytes;
    uint64_t blocks;
    bool has_sha256;
    uint8_t sha256[32];
    uint64_t hash; /* of key */

    _Atomic uint8_t *state; /* [blocks] enum block_state | flags; written with stage->lock held */
    _Atomic uint32_t *used; /* [blocks] bytes that were used; NULL: not counted */
    uint64_t *when; /* [blocks] as the forecast of needs said last, 0: never asked; of who lists
                       victims */
    _Atomic uint64_t drops;    /* of the staged file, when the states were right */
    _Atomic uint64_t ahead_at; /* a read from this byte on fetches more ahead; UINT64_MAX: none */
    int open_error;            /* of the last try to open its staged file; guarded by lock */
    _Atomic int failed;        /* -ESTALE: it has changed; -EBADMSG: differs from SHA256SUMS */
    _Atomic int verdict;       /* enum file_verdict, of the SHA-256 */
    _Atomic uint64_t counted;  /* bytes of blocks that are BLOCK_COUNTED */
    _Atomic unsigned users;    /* threads and runs that use staged */
    _Atomic bool is_open;
    _Atomic bool recent;  /* used since it was last looked at for closing */
    struct staged staged; /* constant while it is open */

    struct file *_Atomic next; /* of all of the stage */
    _Atomic bool done;         /* it is not read any more: blob_done() */
    /* Guarded by stage->lock: */
    struct file *next_in_bucket;
    struct remote_version version; /* whole_only may be found out later */
    bool opening;
    struct file *newer, *older; /* of those that are open */
    struct ranges waits;        /* struct wait, by their blocks */
    struct ranges runs;         /* struct run, by theirs */
    uint64_t coming, elsewhere; /* blocks in that state */
    unsigned dropping;          /* drops that are under way */
    bool surveyed;              /* what is on disk was counted; of who lists victims */
    bool in_elsewhere;          /* of the stage's list of files with such blocks */
    struct file *next_elsewhere;
    int64_t gave_up; /* when patience with blocks last ended; 0: never */
    uint64_t gave_up_first, gave_up_end;
    int64_t elsewhere_since; /* when the last of them came */
    uint64_t last_end;       /* byte behind the last demand */
    unsigned in_sequence;    /* reads that went on where the one before ended */
    uint64_t ahead_end;      /* byte up to which was fetched ahead */
    uint64_t ahead_bytes;    /* how far to fetch ahead; 0: it is not read in sequence */
    int64_t rest_until;      /* nothing in the background before */
    struct run *whole;       /* that fetches all of it */
};

enum run_why { RUN_DEMAND, RUN_AHEAD, RUN_BACKGROUND, RUN_WHYS };

/* Blocks that are fetched by one transfer after another until all have come.
 *
 * QUEUED -> ACTIVE       runs_start()       a connection is free
 * ACTIVE -> ASLEEP       run_settle()       it failed, and is tried again at wake_at
 * ASLEEP -> QUEUED       runs_wake_locked(), runs_hurry_locked()
 * ACTIVE -> gone         run_settle()
 * QUEUED, ASLEEP -> gone runs_wake_locked()  patience has ended; runs_stop_locked() */
enum run_state { RUN_QUEUED, RUN_ACTIVE, RUN_ASLEEP };

enum run_phase { RUN_STARTING, RUN_RUNNING, RUN_OVER }; /* of the transfer of an ACTIVE run */

struct run {
    struct transfer transfer; /* its head */
    struct file *file;        /* has a user for it */
    uint64_t first, n;        /* blocks; they change before it is first in the transport only */
    bool whole;               /* of a file that comes as a whole; then some blocks may be HERE */
    _Atomic int why;          /* enum run_why; written with stage->lock held */
    _Atomic int64_t progress; /* when a block, or its share of bytes, last came; 0: never */
    /* Guarded by stage->lock: */
    struct run *next, *previous; /* of its list */
    struct range blocks;         /* in file->runs, while it is in a list: [first, first + n) */
    struct range alarm;          /* in stage->asleep, while it sleeps: [wake_at, ...) */
    enum run_state state;
    enum run_phase phase;
    unsigned begun;      /* how often */
    unsigned references; /* its list, and who starts it */
    bool paused, stopping;
    bool small;   /* it is beside the jobs: see is_small_locked() */
    bool crowded; /* more than jobs were under way when it began */
    int64_t made;
    uint64_t when;      /* it is needed, by the forecast of needs; STAGE_NEVER: that is not known */
    bool was_paused;    /* this transfer */
    int64_t watched_at; /* since it was hurried: when its bytes were last looked at; 0: never */
    uint64_t watched_bytes;   /* then */
    unsigned failures;        /* in a row, without a block */
    int over_error;           /* why it was stopped */
    uint64_t claimed;         /* blocks from first on; the others are written without a claim */
    bool steals;              /* it does without claims: who has them has given no sign of life */
    _Atomic int64_t ready_at; /* since when there are complete blocks in the buffer; 0: none */
    struct lock buffer_lock;  /* of what comes: before stage->lock */
    /* Of the thread that starts it, then of who has buffer_lock: */
    bool refused;   /* there is no room: all that comes goes to the overflow blocks */
    uint64_t taken; /* bytes that were taken for blocks to come */
    uint64_t done;  /* blocks from first on that are dealt with */
    size_t fill;    /* bytes in buffer, of the blocks behind */
    size_t buffer_capacity;
    uint8_t *buffer;
    _Atomic uint64_t bytes; /* of this transfer */
    uint64_t share;         /* bytes that are progress: less in patience= is too slow to count */
    uint64_t unheard;       /* bytes since the last progress */
    int64_t came_at;        /* when bytes last came */
    int64_t began;
    int64_t first_at; /* when its first bytes came, */
    size_t first_bytes;
    int64_t published; /* when blocks were last written */
    struct remote_version version;
};

struct run_list {
    struct run *first, *last;
    size_t n;
};

#define GUIDED_NEEDS 256

/* What the forecast of needs has given. */
struct guided {
    const struct stage_needs *_Atomic needs; /* set before stage_begin(); NULL: none */
    /* Guarded by stage->lock: */
    uint64_t changes, jumps; /* that were told of, ever */
    bool dry;                /* next() has given nothing since the last change */
    bool all_here;           /* every block is on disk, so nothing that it gives is missing */
    int64_t hold_until;      /* nothing planned before: there is no room for what is needed then */
    /* Of the thread: */
    uint64_t changes_seen, jumps_seen;
    size_t at, n; /* need[at .. n) are left */
    struct stage_need need[GUIDED_NEEDS];
};

struct victim;
struct displaced;

/* keep=plan: what goes when there is no room. */
struct keeping {
    /* Guarded by stage->lock: */
    struct victim *victim; /* [n], the latest first; those before `at` have gone */
    size_t n, at;
    uint64_t jumps;    /* of the forecast of needs, when they were listed */
    int64_t listed_at; /* monotonic_ns() */
    unsigned passes;   /* lists that were made */
    bool listing;      /* a thread makes the list */
    bool is_full;      /* something had to go */
    bool cannot;       /* the file system cannot drop */
    bool holds_all;    /* the cache has room for all of the source, as it was */
    int64_t holds_at;  /* then */
    /* Of the thread: what it has fetched in the place of something else, and is not used yet. */
    struct displaced *ahead; /* [AHEAD_MOST], a ring; NULL: none */
    size_t ahead_at, ahead_n;
    uint64_t ahead_bytes, ahead_jumps;
};

struct stage {
    /* Set by stage_new(), then constant: */
    struct stage_options options;
    const struct cache_folder *cache;
    struct transport *transport;
    const struct stage_listener *_Atomic listener; /* see stage_set_listener(); NULL: none */
    struct quota *quota;
    void *(*main)(void *stage); /* of its thread */
    unsigned open_most;         /* descriptors */
    struct stage_counters counters;
    struct overflow overflow;
    _Atomic bool ending;
    _Atomic int64_t progress; /* of any run, monotonic_ns() */

    struct lock lock;
    pthread_cond_t wake; /* of the thread */
    pthread_cond_t gone; /* a run has gone, or a file is open */
    /* Guarded by lock: */
    struct file *files, *last_file;
    size_t n_files, buckets;
    struct file **bucket; /* [buckets], a power of two; by the hash of their keys */
    unsigned n_open;
    struct file *newest, *oldest; /* of those that are open */
    struct file *elsewhere;
    struct run_list queued[RUN_WHYS], active, asleep;
    struct ranges alarms; /* runs that are asleep, by when they are to wake */
    struct ranges quiet;  /* waits, by their last progress as far as it was looked at */
    uint64_t looks;       /* at the progress of a run, ever: what tests count */
    uint8_t *buffer[16];  /* [n_buffers], of runs that have gone */
    unsigned n_buffers;
    unsigned alive;    /* runs, in lists or not */
    unsigned starting; /* of them */
    pthread_t thread;
    bool runs, resting, begun;
    bool kicked;     /* there may be something to do */
    struct file *at; /* where the background goes on; NULL: at the first */
    uint64_t at_block;
    int full_error;     /* why what has come could not be kept; 0: it could */
    int64_t full_until; /* look again then */
    int64_t look_until; /* nothing is missing, or others fetch it; look again then */
    bool all_staged;    /* nothing was missing when it looked last */
    bool saw_missing;   /* in this turn through the files */
    bool added;         /* files, since it began */
    uint64_t missed;    /* blocks found missing or forgotten, ever; */
    uint64_t missed_at; /* of them those when this turn began */
    int64_t budget_ns;  /* rate=: nothing in the background before */
    uint64_t run_bytes; /* of a run, adapted to the speed */
    double wait_ns;     /* for the first byte of a transfer; 0: not measured yet */
    double byte_ns;     /* for each byte behind the first ones, on one connection */
    unsigned refusals;  /* of more than jobs at once, lately */
    int64_t refused_at; /* the last one */
    struct guided guided;
    struct keeping keeping;
    struct yield yield;       /* of the thread */
    struct diag trouble;      /* the last failure */
    struct diag open_trouble; /* why a staged file could not be opened, the last time */
    int trouble_error;        /* 0: it works again */
};

#endif
