/* The state of the stage, and which functions change it. parts.h declares the functions that the
 * files of the stage share; no file outside cache/stage includes either header. */
#ifndef EPOCHFS_CACHE_STAGE_STATE_H
#define EPOCHFS_CACHE_STAGE_STATE_H

#include <pthread.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/ranges.h"
#include "base/read_context.h"
#include "base/yield.h"
#include "cache/disk/quota.h"
#include "cache/disk/staged_file.h"
#include "cache/stage/overflow.h"
#include "cache/stage/stage.h"

/* The state of a block as this process knows it. Another process may have put it on disk already.
 *
 * UNKNOWN   -> HERE, ABSENT  look_at_blocks()    its checksum on disk is right, or not
 * ABSENT    -> HERE          look_at_blocks()    another process has fetched it
 * UNKNOWN, ABSENT, ELSEWHERE -> COMING  run_make_locked()  a run of ours fetches it
 * COMING    -> HERE          publish_blocks()    wakes waits
 * COMING    -> ABSENT        publish_blocks()    it could not be written to disk; wakes waits
 * COMING    -> ABSENT        let_go_of_blocks_locked()  the run has failed, or had no space
 * COMING    -> ELSEWHERE     run_claim()         another process fetches it
 * ELSEWHERE -> HERE          look_at_blocks()    the other process has fetched it
 * ELSEWHERE -> UNKNOWN       look_elsewhere()    the other process has let go of it
 * HERE      -> COMING        begin_drop_locked() it is being dropped: no run may fetch it now
 * COMING    -> ABSENT        end_drop()          it is dropped
 * COMING    -> UNKNOWN       end_drop()          it is not: another process claims it
 * HERE      -> ABSENT        lost()              it could not be read
 * HERE      -> UNKNOWN       drop_bad()          its checksum was wrong
 * HERE, ABSENT -> UNKNOWN    forget_locked()     another process drops blocks, or the file closes
 */
enum block_state { BLOCK_UNKNOWN, BLOCK_ABSENT, BLOCK_ELSEWHERE, BLOCK_COMING, BLOCK_HERE };
#define BLOCK_STATE   0x0f
#define BLOCK_FLAGS   0xf0
#define BLOCK_FETCHED 0x10 /* by this process, at least once */
#define BLOCK_COUNTED 0x20 /* counted in staged_bytes */
#define BLOCK_PASSED  0x40 /* keep=once: dropped after its last need; only a reader brings it */
#define BLOCK_STALE   0x80 /* some of its bytes are stale; never on disk, only a reader brings it */

/* Why blocks are fetched, most urgent first. */
enum run_why { RUN_DEMAND, RUN_AHEAD, RUN_BACKGROUND, RUN_WHYS };

/* Blocks of a file that are needed, in the queue of those with the same `why` while some of them
 * may have no run: see cache/stage/needs.c. Guarded by stage->lock. */
struct need {
    TAILQ_ENTRY(need) link; /* in stage->needs */
    struct file *file;
    uint64_t at, end;  /* the blocks that may have no run */
    uint64_t from, to; /* bytes that are needed of them */
    int64_t since;     /* when it was first queued */
    enum run_why why;  /* never RUN_BACKGROUND */
    bool is_queued;
};

TAILQ_HEAD(need_queue, need);

/* A range of blocks that a reader waits for. */
struct wait {
    struct range blocks; /* first member: in file->waits */
    struct range quiet;  /* in stage->quiet: [stage_now() of the last progress, as of the last
                            look; that + 1) */
    struct need need;
    int64_t early;         /* it began that much earlier, as the retry limit counts */
    uint64_t left;         /* blocks that are not here */
    struct waiter *waiter; /* NULL: nobody is told when it is over */
    char *reason;          /* why it was given up; NULL: it was not */
    struct wait *next;     /* when it is over: in a list of waits to report */
};

static inline struct wait *wait_of(struct range *blocks)
{
    return (struct wait *)blocks;
}

enum file_verdict { FILE_NOT_VERIFIED, FILE_GOOD, FILE_BAD };

/* A file of the remote; the blob is its first member. */
struct file {
    struct blob blob;
    /* Set by stage_add(), then constant: */
    struct stage *stage;
    char *url, *key, *version_text;
    const void *parts;
    uint32_t block_bytes;
    uint64_t blocks;
    bool has_sha256;
    uint8_t sha256[32];

    _Atomic uint8_t *state; /* [blocks] enum block_state | flags; written with stage->lock held */
    uint64_t *last; /* [blocks] keep=once: the last answer of the forecast when it is needed last,
                       0: never asked; belongs to the stage's thread */
    uint64_t *when; /* [blocks] the last answer of the forecast of needs, 0: never asked; belongs to
                       the thread that lists victims */
    _Atomic uint64_t drops;    /* drops of the staged file when the states were right */
    _Atomic uint64_t ahead_at; /* reads from this byte on fetch more ahead; UINT64_MAX: none */
    _Atomic int failed;  /* -ESTALE: the file has changed; -EBADMSG: it differs from SHA256SUMS */
    _Atomic int verdict; /* enum file_verdict, of the SHA-256 */
    _Atomic uint64_t counted; /* bytes of blocks that are BLOCK_COUNTED */
    _Atomic unsigned users;   /* threads and runs that use `staged` */
    _Atomic bool is_open;
    _Atomic bool recent;  /* used since close_some_locked() last looked at it */
    struct staged staged; /* constant while it is open */

    struct file *_Atomic next; /* in the list of all files of the stage */
    _Atomic bool done;         /* no reader reads it any more: blob_done() */
    /* Guarded by stage->lock: */
    struct remote_version version; /* whole_only may become true later */
    bool opening;
    int open_error; /* of the last try to open its staged file */
    char *trouble;  /* why it could not be opened, or its last transfer failed; NULL: it works */
    struct ranges stale;         /* of bytes: see cache/stage/stale.c */
    char *stale_why;             /* of the first one found; NULL: there is none, or no memory */
    TAILQ_ENTRY(file) open_link; /* in stage->open, while it is open */
    TAILQ_ENTRY(file) elsewhere_link; /* in stage->elsewhere, */
    bool in_elsewhere;                /* if this says so */
    struct ranges waits;              /* struct wait, by their blocks */
    struct ranges runs;               /* struct run, by their blocks */
    uint64_t coming, elsewhere;       /* blocks in that state */
    unsigned dropping;                /* drops under way */
    bool surveyed;   /* survey() has counted its blocks; belongs to the thread that lists victims
                      */
    int64_t gave_up; /* when the retry limit last ended a wait for blocks; 0: never */
    uint64_t gave_up_first, gave_up_end;
    int64_t elsewhere_since; /* when an ELSEWHERE block last came */
    _Atomic bool
        steals; /* the process that has claimed them gives no sign of life: they are fetched */
    uint64_t last_end;    /* byte behind the last demand */
    unsigned in_sequence; /* reads that went on where the previous one ended */
    uint64_t ahead_end;   /* byte up to which blocks were fetched ahead */
    uint64_t ahead_bytes; /* how far to fetch ahead; 0: reads are not in sequence */
    struct need ahead;    /* the blocks up to there */
    int64_t rest_until;   /* the background leaves the file alone until then */
};

/* Blocks fetched by one transfer after another until all have come.
 *
 * made -> STARTING       run_make_locked()   a connection is free
 * STARTING -> RUNNING    note_started()      the transport has its transfer
 * STARTING, RUNNING -> ASLEEP  run_settle()  it failed; the next try is when its alarm goes off
 * ASLEEP -> STARTING     run_wake_locked()   a connection is free
 * STARTING, RUNNING -> gone  run_settle(), drop_run()
 * ASLEEP -> gone         run_give_up_locked(), runs_stop_locked() */
enum run_state { RUN_STARTING, RUN_RUNNING, RUN_ASLEEP, RUN_GONE };

struct run {
    struct transfer transfer; /* first member */
    struct file *file;        /* the run counts as one of its users */
    /* Blocks; they change before the first transfer starts, and in run_shorten_locked(). */
    uint64_t first, n;
    _Atomic int why;          /* enum run_why; written with stage->lock held */
    _Atomic int64_t progress; /* when it was needed, or when a block, or `share` bytes, last came */
    /* Guarded by stage->lock: */
    TAILQ_ENTRY(run) link; /* in stage->active, or stage->dead */
    struct range blocks;   /* in file->runs until it has gone: [first, first + n) */
    struct range alarm;    /* in stage->alarms, while it sleeps: [wake_at, ...) */
    enum run_state state;
    unsigned begun;      /* how often */
    unsigned references; /* of the stage until it has gone, and of functions that use it */
    bool paused, stopping;
    bool is_late;           /* stopped by cache/stage/late.c */
    bool small;             /* does not count as one of the jobs: see is_small_locked() */
    bool crowded;           /* more than jobs were under way when it began */
    uint64_t when;          /* when it is needed, by the forecast of needs; STAGE_NEVER: unknown */
    bool was_paused;        /* in this transfer */
    int64_t watched_at;     /* when its bytes were last looked at since it was hurried; 0: never */
    uint64_t watched_bytes; /* bytes at that time */
    unsigned failures;      /* in a row, with no block in between */
    uint64_t claimed; /* claimed blocks, from `first` on; the others are written without a claim */
    bool steals; /* fetches without claims: the process that holds them gives no sign of life */
    _Atomic int64_t ready_at; /* since when the buffer has complete blocks; 0: it has none */
    struct lock buffer_lock;  /* guards incoming bytes; taken before stage->lock */
    /* Belong to the thread that starts the run, then to the holder of buffer_lock: */
    bool refused;       /* no space: all that comes goes to the overflow blocks */
    uint32_t skip, cut; /* bytes of the first block and of the last one that do not come: no reader
                           wants them; then the run is refused */
    uint64_t taken;     /* bytes taken from the quota for blocks to come */
    uint64_t done;      /* blocks from `first` on that are finished */
    size_t fill;        /* bytes in buffer, of the blocks after those */
    size_t buffer_capacity;
    uint8_t *buffer;
    _Atomic uint64_t bytes; /* of this transfer */
    uint64_t share; /* bytes that count as progress: less than this within patience= is too slow */
    uint64_t unheard; /* bytes since the last progress */
    int64_t came_at;  /* when bytes last came */
    int64_t began;
    int64_t first_at; /* when its first bytes came, */
    size_t first_bytes;
    int64_t published; /* when blocks were last written */
    struct remote_version version;
};

TAILQ_HEAD(run_list, run);
TAILQ_HEAD(file_list, file);

#define FORECAST_NEEDS 256

/* The needs that the forecast has given: cache/stage/background.c. */
struct forecast {
    const struct stage_needs *_Atomic needs; /* set before stage_begin(); NULL: none */
    /* Guarded by stage->lock: */
    uint64_t changes, jumps; /* reported, ever */
    bool dry;                /* next() has given nothing since the last change */
    int64_t hold_until;      /* no run for a need before then: no space for it */
    /* Belong to the stage's thread: */
    uint64_t changes_seen, jumps_seen;
    size_t at, n; /* need[at .. n) are still to do */
    struct stage_need need[FORECAST_NEEDS];
};

/* The background's turns through all files. */
struct turn {
    /* Guarded by stage->lock: */
    int64_t look_until; /* nothing is missing, or others fetch it: when the next turn begins */
    bool all_staged;    /* nothing was missing in the last turn, */
    bool all_here;      /* and nothing has been found missing, or forgotten, since it began */
    bool added;         /* files, since it began */
    uint64_t missed;    /* blocks found missing or forgotten, ever; */
    uint64_t missed_at; /* their number when this turn began */
    /* Belong to the stage's thread: */
    struct file *file; /* where it goes on; NULL: a new turn begins */
    uint64_t block;
    bool saw_missing;
};

struct victim;
struct displaced;

/* keep=once: a walk over all blocks that are here, which drops those after their last need. Belongs
 * to the stage's thread. */
struct passing {
    uint64_t changes;      /* of the forecast when the last walk began */
    uint64_t now, version; /* of the forecast at that time */
    int64_t next_walk;     /* monotonic_ns(); none begins before */
    struct file *file;     /* where the walk goes on; NULL: none is under way */
    uint64_t block;
};

/* Which blocks are dropped when there is no space. */
struct keeping {
    /* Guarded by stage->lock: */
    struct victim *victim; /* [n], the latest need first; those before `at` have been taken */
    size_t n, at;
    uint64_t jumps;    /* jumps of the forecast of needs when the victims were listed */
    int64_t listed_at; /* stage_now() */
    unsigned passes;   /* lists made */
    bool listing;      /* a thread makes the list */
    bool is_full;      /* a block had to be dropped */
    bool cannot;       /* the file system cannot drop blocks */
    bool holds_all;    /* the cache has space for all of the source */
    int64_t holds_at;  /* when holds_all was computed */
    /* Belong to the stage's thread: blocks that it fetched in the place of others, not used yet. */
    struct displaced *ahead; /* [AHEAD_MOST], a ring; NULL: none */
    size_t ahead_at, ahead_n;
    uint64_t ahead_bytes, ahead_jumps;
};

/* The least of what was measured lately: cache/stage/speed.c. 0: nothing was. */
struct least {
    double now, before; /* in this window, and in the one before */
    int64_t since;
};

struct stage {
    /* Set by stage_new(), then constant: */
    struct stage_options options;
    const struct cache_folder *cache;
    struct transport *transport;
    const struct stage_listener *_Atomic listener; /* see stage_set_listener(); NULL: none */
    struct limiter *limiter;                       /* of the transport; or own_limiter */
    struct limiter own_limiter;
    struct quota *quota;
    void *(*main)(void *stage); /* main function of its thread */
    unsigned open_most;         /* descriptors */
    uint64_t blocks_most;       /* of all files */
    size_t block_state_bytes;   /* memory that each takes, once something is known of it */
    struct stage_counters counters;
    struct overflow overflow;
    _Atomic bool ending;
    _Atomic int64_t progress; /* when any run last made progress, stage_now() */
    _Atomic unsigned buffers; /* of runs, and of those that have gone; RUN_BUFFER bytes each */

    struct lock lock;
    pthread_cond_t wake; /* wakes the stage's thread */
    pthread_cond_t gone; /* a run has gone, or a file is open, or a drop has ended */
    /* Guarded by lock: */
    struct file *files, *last_file;
    size_t n_files;
    uint64_t n_blocks; /* of all files */
    void *by_key;      /* the files, as tsearch() has them */
    unsigned n_open;
    struct file_list open;      /* the least recently looked at first: close_some_locked() */
    struct file_list elsewhere; /* files with blocks that other processes fetch */
    struct need_queue needs[RUN_BACKGROUND]; /* of blocks that have no run yet */
    struct run_list active;                  /* runs that are STARTING or RUNNING, */
    size_t n_active;                         /* and how many */
    struct ranges alarms[RUN_WHYS];          /* runs that are ASLEEP, by when they are to wake */
    struct ranges quiet;                     /* waits, by their last progress as of the last look */
    struct run_list dead; /* runs that have gone, to be freed: runs_free_dead() */
    uint64_t looks;       /* looks at the progress of a run, ever: tests count them */
    uint8_t *buffer[16];  /* [n_buffers], buffers of runs that have gone */
    unsigned n_buffers;
    unsigned buffers_spare; /* the least n_buffers since the last runs_trim_buffers_locked(), */
    int64_t buffers_until;  /* and when the next is due */
    unsigned alive;         /* runs that are not freed yet */
    pthread_t thread;
    bool runs, resting, begun;
    bool kicked;        /* there may be something to do */
    int full_error;     /* why what has come could not be kept; 0: it could */
    int64_t full_until; /* when to look again */
    int64_t budget_ns;  /* rate=: the background waits until then */
    uint64_t run_bytes; /* bytes of a run, adapted to the speed */
    double wait_ns;     /* wait for the first byte of a transfer; 0: not measured yet */
    double byte_ns;     /* time for each byte after the first ones, on one connection */
    struct least least_wait_ns, least_byte_ns; /* of either */
    struct forecast forecast;
    struct turn turn;
    uint64_t nonce; /* stage_own_number() */
    struct keeping keeping;
    struct passing passing;
    struct yield yield;  /* belongs to the stage's thread */
    struct diag trouble; /* the last failure, of any file */
    int trouble_error;   /* 0: it works again */
    struct diag untold;  /* of a staged file, perhaps before there was a listener; */
    int untold_error;    /* 0: there is nothing to tell */
    /* The remote is silent: the retry limit has ended a wait, and nothing has come since then. */
    int64_t silent_since;   /* 0: never */
    unsigned silent_waits;  /* that were ended since then, */
    struct diag silent_why; /* and why the first was */
};

/* The time that the stage goes by. */
static inline int64_t stage_now(const struct stage *stage)
{
    return clock_monotonic(stage->options.clock);
}

#endif
