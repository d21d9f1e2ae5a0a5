/* Runs: blocks that are fetched by one transfer after another until all have come.
 *
 * made -> STARTING       run_make_locked()   a connection is free
 * STARTING -> RUNNING    note_started()      the transport has its transfer
 * STARTING, RUNNING -> ASLEEP  run_settle()  it failed; the next try is when its alarm goes off
 * ASLEEP -> STARTING     run_wake_locked()   a connection is free
 * STARTING, RUNNING -> gone  run_settle(), drop_run()
 * ASLEEP -> gone         run_give_up_locked(), runs_stop_locked()
 *
 * Readers that wait for blocks of a run get -EREMOTEIO after TRANSFER_REFUSED, and -ESTALE after
 * TRANSFER_CHANGED. Later reads that miss a block of a changed file also get -ESTALE. After
 * TRANSFER_AGAIN and TRANSFER_WHOLE readers go on waiting, for the retry limit at most, and then
 * get -EREMOTEIO.
 *
 * struct run is in run.h, for the four files that move runs: runs.c, transfers.c, arrive.c and
 * speed.c. */
#ifndef EPOCHFS_CACHE_STAGE_RUNS_H
#define EPOCHFS_CACHE_STAGE_RUNS_H

#include "cache/stage/needs.h"

#define RUN_OVERHEAD 8192 /* bytes of disk space that a run may take besides its blocks */

int runs_init(struct stage *stage);
int file_runs_init(struct file *file);

/* ---- runs.c ---- */

/* A file that comes whole has one run at a time, because each of its transfers begins at the first
 * byte: may no run be made now? When that run leaves, the needs of the file are looked at again. */
bool run_must_wait_locked(const struct file *file);

/* May the background fetch blocks of the file? It rests for a while after a failure. */
bool file_may_run_locked(const struct file *file, int64_t now);

/* A reader waits for blocks that are coming already: make their runs at least as urgent as why. */
void runs_hurry_locked(struct file *file, uint64_t first, uint64_t end, enum run_why why);

/* The oldest progress of the runs with blocks of [first, end) that a reader may end, at most now.
 */
int64_t runs_progress_locked(struct file *file, uint64_t first, uint64_t end, int64_t now);

/* End those of them that no reader waits for, and that made no progress since `since`. */
void runs_give_up_locked(struct file *file, uint64_t first, uint64_t end, int64_t since,
                         struct wait **ret_over);

/* Stop the runs under way, and let the others leave. */
void runs_stop_locked(struct stage *stage, struct wait **ret_over);

bool runs_alive_locked(const struct stage *stage); /* is any not freed yet? */
void runs_await_gone_locked(struct stage *stage);  /* wait until none is */

bool runs_sleep_locked(const struct stage *stage); /* is any run ASLEEP? */

/* When the next sleep of a run ends, after now. */
int64_t runs_next_alarm_locked(struct stage *stage, int64_t now);

/* How many runs of that urgency are active. */
unsigned runs_active_locked(const struct stage *stage, enum run_why why);

/* A file whose run is under way, and gets bytes unless the remote is silent; NULL: none. */
const struct file *runs_under_way_locked(const struct stage *stage);

/* Free the runs that have gone, and their buffers: all; or those that no run has used for a while.
 * The latter returns when to call it again. No lock held for the first one. */
void runs_free_dead(struct stage *stage);
void runs_free_buffers_locked(struct stage *stage);
int64_t runs_trim_buffers_locked(struct stage *stage, int64_t now);

/* ---- arrive.c ---- */

/* Publish complete blocks that wait in buffers to be written together with later ones, though
 * nothing more comes. No lock held. */
void runs_flush(struct stage *stage);

/* Is the cache too small for whole blocks, and only what readers want of them is to be fetched?
 * false: also for a file that is read in sequence. Any thread. */
bool file_wants_parts(const struct file *file);

/* ---- transfers.c ---- */

/* Start runs for the most urgent needs while connections are free. No lock held. */
void runs_start(struct stage *stage);

/* Start a run of the background, of those of n blocks, from the first on, that it can fetch. They
 * are needed at `when`; taken: bytes taken from the quota for it. 1: the run is started; 0: nothing
 * to fetch; -EAGAIN: there is no place for it now; unless 1, the bytes still belong to the caller.
 * No lock held. */
int runs_start_background(struct file *file, uint64_t first, uint64_t n, uint64_t when,
                          uint64_t taken);

/* Is a connection free for one more background run? */
bool runs_have_place_locked(struct stage *stage);

/* ---- speed.c ---- */

int speed_init(struct stage *stage);

/* Stop runs that bring too many unwanted bytes before those that a reader waits for. */
void runs_stop_late_locked(struct stage *stage, int64_t now);

/* Bytes that take as long to come as a transfer takes to begin. */
uint64_t runs_worth_locked(const struct stage *stage);

/* Bytes of the next background run; yields: few, between pauses. */
uint64_t run_bytes_locked(const struct stage *stage, bool yields);

/* A background run was made: with rate= the next one must wait. When it may begin. */
void speed_spend_locked(struct stage *stage, int64_t now, uint64_t bytes);
int64_t speed_budget_locked(const struct stage *stage);

#endif
