/* A run, for the four files that move it: see runs.h. */
#ifndef EPOCHFS_CACHE_STAGE_RUN_H
#define EPOCHFS_CACHE_STAGE_RUN_H

#include <sys/queue.h>

#include "base/ranges.h"
#include "cache/stage/runs.h"
#include "cache/stage/transport.h"

enum run_state { RUN_STARTING, RUN_RUNNING, RUN_ASLEEP, RUN_GONE };

struct run {
    struct transfer transfer; /* first member */
    struct file *file;        /* the run counts as one of its users */
    _Atomic int why;          /* enum run_why; written with stage->lock held */
    _Atomic int64_t progress; /* when it was needed, or when a block, or `share` bytes, last came */
    /* Guarded by stage->lock: */
    TAILQ_ENTRY(run) link; /* in stage->active, or stage->dead */
    struct range blocks;   /* in file->runs until it has gone. The end changes before the first
                              transfer starts, and in run_shorten_locked() */
    struct range alarm;    /* in stage->alarms, while it sleeps: [wake_at, ...) */
    enum run_state state;
    unsigned begun;      /* how often */
    unsigned references; /* of the stage until it has gone, and of functions that use it */
    bool paused, stopping;
    bool is_late;           /* stopped by cache/stage/speed.c */
    bool small;             /* does not count as one of the jobs: see started_locked() */
    bool crowded;           /* more than jobs were under way when it began */
    uint64_t when;          /* when it is needed, by the forecast of needs; STAGE_NEVER: unknown */
    bool was_paused;        /* in this transfer */
    int64_t watched_at;     /* when its bytes were last looked at since it was hurried; 0: never */
    uint64_t watched_bytes; /* bytes at that time */
    unsigned failures;      /* in a row, with no block in between */
    uint64_t claimed;       /* blocks before this one are claimed; the others are written without */
    bool steals; /* fetches without claims: the process that holds them gives no sign of life */
    _Atomic int64_t ready_at; /* since when the buffer has complete blocks; 0: it has none */
    struct lock buffer_lock;  /* guards incoming bytes; taken before stage->lock */
    /* Belong to the thread that starts the run, then to the holder of buffer_lock: */
    bool refused;       /* no space: all that comes goes to the overflow blocks */
    uint32_t skip, cut; /* bytes of the first block and of the last one that do not come: no reader
                           wants them; then the run is refused */
    uint64_t taken;     /* bytes taken from the quota for blocks to come */
    uint64_t at;        /* the first block that is not finished */
    size_t fill;        /* bytes in buffer, of the blocks after those */
    size_t buffer_capacity;
    uint8_t *buffer;
    _Atomic uint64_t bytes; /* of this transfer */
    uint64_t share; /* bytes that count as progress: less than this within patience= is too slow */
    uint64_t unheard; /* bytes since the last progress */
    int64_t came_at;  /* when bytes last came */
    int64_t began;
    int64_t waited;   /* transport_waited() then, and later how long it was until: */
    int64_t first_at; /* when its first bytes came, */
    size_t first_bytes;
    int64_t published; /* when blocks were last written */
    struct remote_version version;
};

TAILQ_HEAD(run_list, run);

struct runs {
    /* Guarded by stage->lock: */
    struct run_list active;         /* runs that are STARTING or RUNNING, */
    size_t n_active;                /* and how many */
    struct ranges alarms[RUN_WHYS]; /* runs that are ASLEEP, by when they are to wake */
    struct run_list dead;           /* runs that have gone, to be freed: runs_free_dead() */
    unsigned alive;                 /* runs that are not freed yet */
    uint8_t *buffer[128];           /* [n_buffers], buffers of runs that have gone */
    unsigned n_buffers;
    unsigned buffers_spare;   /* the least n_buffers since the last runs_trim_buffers_locked(), */
    int64_t buffers_until;    /* and when the next is due */
    _Atomic unsigned buffers; /* of runs, and of those that have gone; RUN_BUFFER bytes each */
};

struct file_runs {
    /* Guarded by stage->lock: */
    struct ranges runs; /* struct run, by their blocks */
    int64_t rest_until; /* the background leaves the file alone until then */
    uint64_t n_small;   /* small runs until now */
};

/* ---- runs.c ---- */

/* Make a STARTING run of n blocks that can be fetched, for a need since `since`. A run of
 * a file that comes whole gets all others that are missing, and blocks between them that pass by.
 * The stage has a reference to it until it has gone. NULL: no memory. */
struct run *run_make_locked(struct file *file, uint64_t first, uint64_t n, enum run_why why,
                            int64_t since);

/* The transfer of a run has ended: the next one is at `until`. */
void run_sleep_locked(struct run *run, int64_t until);

/* A run that is ASLEEP becomes STARTING. */
void run_wake_locked(struct run *run);

/* The run whose sleep is over for longest; NULL: none. */
struct run *run_due_locked(struct stage *stage, enum run_why why, int64_t now);

/* Measure what the run brings from `since` on. */
void run_watch_from_locked(struct run *run, int64_t since);

/* Would a reader use what comes even if it is not kept? No lock held. */
bool run_is_wanted(const struct run *run);
bool run_is_waited_for_locked(const struct run *run);

/* Bytes of the run that are not published yet, with those in the buffer. */
uint64_t run_bytes_left(const struct run *run);

/* Leave the blocks from `end` on to other runs, as readers need them; its transfer is over. */
void run_shorten_locked(struct run *run, uint64_t end);

/* The run has gone: the stage lets go of it. error: the result of waits for blocks that have not
 * come; 0: they go on, with another run. */
void run_leave_locked(struct run *run, int error, struct wait **ret_over);

/* Drop a reference to a run. The last one frees it. No lock held. The stage is not freed before its
 * runs are. */
void run_let_go(struct run *run);

/* Stop a run that no reader waits for any more. One that is ASLEEP leaves. */
void run_give_up_locked(struct run *run, struct wait **ret_over);

#define RUN_BUFFER (UINT64_C(1) << 20)
uint8_t *runs_take_buffer(struct stage *stage); /* of RUN_BUFFER bytes; NULL: no memory */

/* ---- arrive.c ---- */

/* Before the first transfer: take disk space from the quota for what is to come. False: there is
 * none, and no reader waits. */
bool run_take_quota(struct run *run);

/* Callbacks for the transfer of a run: see struct transfer. */
bool run_data_came(struct transfer *transfer, const void *bytes, size_t n);
bool run_stale_came(struct transfer *transfer, uint64_t n, int error, const struct diag *d);
void run_passed(struct transfer *transfer, size_t n);

/* Publish the complete blocks of the run. No lock held. */
void run_publish_ready(struct run *run);

/* ---- speed.c ---- */

/* A transfer of the run is done: measure how long its first byte took, and how fast the others
 * came; and adapt the length of the next background run to that. */
void speed_measure_locked(struct stage *stage, const struct run *run, int64_t now);

/* Does a transfer take longer to begin than to come? Other background runs are made so long that
 * they do not. */
bool speed_is_small_locked(const struct stage *stage, enum run_why why, uint64_t bytes);

/* The bytes that a request to a near remote (options.far_ms) should bring, or with far_too to any,
 * by the least times of late: others are times in a queue. But by the usual time of a byte if that
 * is much longer: the way is limited. 0: the remote is far, or not known. */
uint64_t speed_near_worth_locked(const struct stage *stage, bool far_too);

#endif
