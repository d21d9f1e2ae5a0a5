/* What the files of the stage share. Calls go down this list, and to the right, never up:
 *
 *   stage.c                    life, files, counters
 *   thread.c                   the stage's thread
 *   background.c elsewhere.c   what is fetched when no reader waits; what other processes fetch
 *   run_blocks.c               which blocks a run of the background brings
 *   passed.c                   which blocks are dropped at once
 *   late.c retry_limit.c       runs that take too long; readers that wait too long
 *   count.c reader.c           how much is here; the blob of a file
 *   start.c                    the next run, and when its transfer starts
 *   settle.c arrive.c claim.c  the end of a transfer; its bytes; claims before it
 *   retention.c                which blocks are dropped when there is no space
 *   latest.c                   which blocks are needed latest
 *   sealed.c                   files that readers read without the stage
 *   content.c drop.c ahead.c   bytes that are here; blocks that leave; readers in sequence
 *   runs.c speed.c             runs are made, sleep, and leave; how fast the remote is
 *   file.c                     which blocks of a file are here
 *   needs.c overflow.c limiter.c stale.c report.c
 *
 * Lower files report to higher ones through tables: a transfer its bytes and its end (struct
 * transfer), a wait its end (struct waiter), and stage_kick_locked() wakes stage->main. */
#ifndef EPOCHFS_CACHE_STAGE_PARTS_H
#define EPOCHFS_CACHE_STAGE_PARTS_H

#include "cache/stage/state.h"

/* ---- report.c ---- */

/* There may be work for the stage's thread: wake it, or start it if there is none. */
void stage_kick_locked(struct stage *stage);

/* Report to the listener a failure, or, with error 0, that the remote answers. No lock held. */
void stage_tell(struct stage *stage, int error, const struct diag *reason);

/* The same of a failure that the listener is also told of if it comes later. */
void stage_tell_early(struct stage *stage, int error, const struct diag *reason);

/* ---- needs.c ---- */

/* Is what is needed of the block in memory? */
bool file_is_in_memory(const struct need *need, uint64_t block);

/* Queue a need, or change it in its queue: its blocks from `from` on may have no run. The caller
 * has set its end. */
void need_queue_locked(struct need *need, uint64_t from);

void need_unqueue_locked(struct need *need); /* if it is queued */

/* The blocks that the next run of a queued need brings. False: all its blocks are here, or come; it
 * has left its queue. */
bool need_next_locked(struct need *need, uint64_t *ret_first, uint64_t *ret_n);

/* If the next run of a queued need would begin with one of the blocks [first, end), it begins
 * behind them. */
void need_skip_locked(struct need *need, uint64_t first, uint64_t end);

/* Blocks [first, end) no longer come with their run, or are no longer here: queue the needs of the
 * readers that wait for them. */
void needs_again_locked(struct file *file, uint64_t first, uint64_t end);

/* The first and the next wait of a file for some of the blocks [first, end), in order; NULL: no
 * more. Get the next wait before the current one is over. */
struct wait *wait_first_locked(struct file *file, uint64_t first, uint64_t end);
struct wait *wait_next_locked(const struct wait *wait, uint64_t first, uint64_t end);

/* A reader waits from now on. The caller has set the wait's blocks, its waiter, how many blocks are
 * left, and the file and the `why` of its need. */
void wait_begin_locked(struct wait *wait);

/* The wait is over: move it to *ret_over. */
void wait_end_locked(struct wait *wait, struct wait **ret_over);

/* Blocks [first, end) have come (error 0) or will not come: waits that this ends move to *ret_over.
 * A wait fails as a whole. */
void waits_over_locked(struct file *file, uint64_t first, uint64_t end, int error,
                       struct wait **ret_over);

/* Why nothing comes for readers of the file. A failure of another file is not reported as one of
 * this file. */
void wait_explain_locked(const struct file *file, struct diag *ret);

/* Report to the waiters that their waits are over. reason: of waits that have none of their own. No
 * lock held. */
void waits_tell(struct stage *stage, struct wait *over, int error, const struct diag *reason);

/* ---- file.c ---- */

#define LOOK_AT_ONCE 64 /* records of blocks */

uint32_t file_block_len(const struct file *file, uint64_t block);

static inline enum block_state file_state(const struct file *file, uint64_t block)
{
    return (enum block_state)(atomic_load_explicit(&file->state[block], memory_order_acquire) &
                              BLOCK_STATE);
}

/* Is it on disk, as far as is known? */
static inline bool file_is_on_disk(const struct file *file, uint64_t block)
{
    uint8_t state = atomic_load_explicit(&file->state[block], memory_order_relaxed);

    return (state & BLOCK_STATE) == BLOCK_HERE ||
           ((state & BLOCK_STATE) == BLOCK_UNKNOWN && state & BLOCK_COUNTED);
}

/* It was dropped after its last need: only a read or a new need of it fetches it again. */
static inline bool file_has_passed(const struct file *file, uint64_t block)
{
    return atomic_load_explicit(&file->state[block], memory_order_acquire) & BLOCK_PASSED;
}

/* Can a run fetch the block now? Of those that another process fetches only if that gives no sign
 * of life. */
static inline bool file_may_fetch(const struct file *file, uint64_t block)
{
    enum block_state state = file_state(file, block);

    return state == BLOCK_UNKNOWN || state == BLOCK_ABSENT ||
           (state == BLOCK_ELSEWHERE && file->steals);
}

/* Is it fetched for readers only? It was dropped after its last need, or has stale bytes. */
static inline bool file_is_for_readers(const struct file *file, uint64_t block)
{
    return atomic_load_explicit(&file->state[block], memory_order_acquire) &
           (BLOCK_PASSED | BLOCK_STALE);
}

/* Set the state of a block, and the counters that follow from it. */
void file_set_locked(struct file *file, uint64_t block, enum block_state state);

/* The state of blocks found good after file->drops was read as drops: HERE; UNKNOWN if it has
 * changed since, because the drop may have included them. */
enum block_state file_here(const struct file *file, uint64_t drops);

/* file->drops, for blocks that are written from now on. If the staged file was cut short, begins it
 * anew and forgets its blocks' states first. No lock held. */
uint64_t file_drops_to_write(struct file *file);

/* Another process has dropped blocks since the count was drops, or the file was cut short: forget
 * its blocks' states. No lock held. */
void file_forget(struct file *file, uint64_t drops);

/* This process has dropped blocks. Unless another process did so, too, the other blocks' states
 * stay valid. */
void file_dropped_locked(struct file *file, const struct staged_dropped *dropped);

/* Note why the file cannot be opened or fetched; NULL: it can. */
void file_set_trouble_locked(struct file *file, const char *text);

/* Count a block that is on disk, whatever its state here. */
void file_count_locked(struct file *file, uint64_t block);

/* Count all blocks that are on disk. The file must have been taken; no lock held. */
void file_count(struct file *file);

/* Keep the staged file open until file_put(). 0 or -errno with the reason in d. No lock held. */
int file_take(struct file *file, struct diag *d);

/* Close an unused file that is in memory because the disk was full: the next file_take() tries the
 * disk again. */
void file_try_disk(struct file *file);
void file_put(struct file *file);

/* Does the block on disk match its record? buf: space for one block. */
bool file_block_is_good(const struct file *file, uint64_t block, uint64_t record, uint8_t *buf);

/* Find out which of the blocks [first, end) are here. Blocks known to be here or coming are
 * skipped, absent ones are checked again. The file must have been taken; no lock held. */
void look_at_blocks(struct file *file, uint64_t first, uint64_t end);

/* Note whether a block that was looked at is here. drops: file->drops before the look. No lock
 * held. */
void file_looked_at(struct file *file, uint64_t block, bool here, uint64_t drops);

/* The first of blocks [from, to) that is not on disk and that no run or process fetches; `to`:
 * there is none; not one that is for readers only. *ret_others: some before it are being
 * fetched. Counts the blocks that are on disk. The file must have been taken; no lock
 * held. */
uint64_t find_missing(struct file *file, uint64_t from, uint64_t to, bool *ret_others);

/* ---- stale.c ---- */

/* Bytes [off, off + n) are stale: note that, and mark their blocks. 1; 0: that was known; or
 * -ENOMEM. No lock held. */
int file_add_stale(struct file *file, uint64_t off, uint64_t n, int error, const struct diag *why);

/* The error of the first of these bytes that is stale, -ESTALE or -EACCES; 0: none is. No lock
 * held.
 */
int file_stale_error(struct file *file, uint64_t off, uint64_t len);

/* How many bytes of the block are stale. */
uint64_t file_stale_bytes_locked(struct file *file, uint64_t block);

void file_free_stale(struct file *file);

/* ---- runs.c ---- */

#define RUN_OVERHEAD 8192 /* bytes of disk space that a run may take besides its blocks */

/* The first and the next run of a file with some of the blocks [first, end), as
 * wait_first_locked(). */
struct run *run_first_locked(struct file *file, uint64_t first, uint64_t end);
struct run *run_next_locked(const struct run *run, uint64_t first, uint64_t end);

/* A file that comes whole has one run at a time, because each of its transfers begins at the first
 * byte: may no run be made now? When that run leaves, the needs of the file are looked at again. */
bool run_must_wait_locked(const struct file *file);

/* Make a STARTING run of n blocks that can be fetched, for a need since `since`. Of a file that
 * comes whole it gets all others that are missing, too, and blocks between them that pass by. The
 * stage has a reference to it until it has gone. NULL: no memory. */
struct run *run_make_locked(struct file *file, uint64_t first, uint64_t n, enum run_why why,
                            int64_t since);

/* The transfer of a run has ended: the next one is at `until`. */
void run_sleep_locked(struct run *run, int64_t until);

/* A run that is ASLEEP becomes STARTING. */
void run_wake_locked(struct run *run);

/* The run whose sleep is over for longest; NULL: none. */
struct run *run_due_locked(struct stage *stage, enum run_why why, int64_t now);

/* When the next sleep of a run ends, after now. */
int64_t runs_next_alarm_locked(struct stage *stage, int64_t now);

bool runs_sleep_locked(const struct stage *stage); /* is any run ASLEEP? */

/* Set the run's blocks to [first, first + n). */
void run_set_blocks_locked(struct run *run, uint64_t first, uint64_t n);

/* When the run last made progress, stage_now(). It must not be stopping. This function alone
 * defines what counts as progress. */
int64_t run_progress_locked(const struct run *run);

/* Measure what the run brings from `since` on. */
void run_watch_from_locked(struct run *run, int64_t since);

bool is_waited_for_locked(const struct run *run);

/* Would a reader use what comes even if it is not kept? No lock held. */
bool run_is_wanted(const struct run *run);

/* Bytes of the run that are not published yet, with those in the buffer. */
uint64_t run_bytes_left(const struct run *run);

/* A reader waits for blocks that are coming already: make their runs at least as urgent as why. */
void runs_hurry_locked(struct file *file, uint64_t first, uint64_t end, enum run_why why);

/* Leave all but the first n blocks to other runs, as readers need them; its transfer is over, and
 * at least n blocks are left. */
void run_shorten_locked(struct run *run, uint64_t n);

/* The run has gone: the stage lets go of it. error: the result of waits for blocks that have not
 * come; 0: they go on, with another run. */
void run_leave_locked(struct run *run, int error, struct wait **ret_over);

/* Drop a reference to a run. The last one makes it dead: runs_free_dead() then frees it, and
 * run_let_go() does so at once. No lock held there. The stage is not freed before its runs are. */
void run_let_go_locked(struct run *run);
void run_let_go(struct run *run);
void runs_free_dead(struct stage *stage);

/* A buffer for a run, of RUN_BUFFER bytes; NULL: no memory. */
#define RUN_BUFFER (UINT64_C(1) << 20)
uint8_t *runs_take_buffer(struct stage *stage);

/* Free the buffers that no run uses. */
void runs_free_buffers_locked(struct stage *stage);

/* The same, but those that no run has used for a while. Returns when to call it again. */
int64_t runs_trim_buffers_locked(struct stage *stage, int64_t now);

/* Stop a run that no reader waits for any more. One that is ASLEEP leaves. */
void run_give_up_locked(struct run *run, struct wait **ret_over);

/* End all waits and forget all needs; stop the runs under way, and let the others leave. */
void runs_stop_locked(struct stage *stage, struct wait **ret_over);

/* ---- version.c ---- */

/* See stage_own_number(). */
uint64_t version_own_number(const struct stage *stage);

/* A text that differs between two versions of a file. If the remote tells none, it has the sum that
 * the bytes must have, or the stage's own number. 0 or -ENOMEM. */
int version_describe(const struct stage *stage, const struct stage_file *what, char **ret);

/* Remove the staged file of a closed file that has no version: no later mount can use it. Stays if
 * another process uses it. */
void version_remove(const struct file *file);

/* ---- speed.c ---- */

/* A transfer of the run is done: measure how long its first byte took, and how fast the others
 * came. */
void speed_measure_locked(struct stage *stage, const struct run *run, int64_t now);

/* Adapt the length of the next background run to that. */
void speed_adapt_locked(struct stage *stage, const struct run *run, int64_t now);

/* Bytes that take as long to come as a transfer takes to begin. */
uint64_t runs_worth_locked(struct stage *stage);

/* The bytes that a near remote (options.far_ms) sends in the time that a request costs the
 * processors, by the least waits and times of late: others are times in a queue. 0: the remote is
 * far, or not known. */
uint64_t speed_near_worth_locked(const struct stage *stage);

/* Bytes of the next background run. */
uint64_t run_bytes_locked(const struct stage *stage);

/* A background run was made: with rate= the next one must wait. */
void spend_locked(struct stage *stage, int64_t now, uint64_t bytes);

/* ---- ahead.c ---- */

/* A reader asks for bytes [off, off + len): if its reads are in sequence, fetch more ahead. */
void ahead_locked(struct file *file, uint64_t off, uint64_t len);

/* ---- drop.c ---- */

/* Drop n ranges of blocks. The file must have been taken; no lock held. 0, or the last -errno of a
 * range that could not be dropped (-EOPNOTSUPP; -EBUSY: readers read it without the stage). */
int file_drop_ranges(struct file *file, const struct staged_range *ranges, size_t n);

void file_drop_blocks(struct file *file, uint64_t first, uint64_t n);

/* ---- content.c ---- */

/* How many blocks from first on are HERE, without a gap. */
uint64_t file_count_here(const struct file *file, uint64_t first, uint64_t end);

/* 0; -EAGAIN: bytes are missing; or -errno. *ret_overflow: some bytes came from overflow blocks.
 * The file must have been taken. */
int file_read(struct file *file, void *buf, size_t len, uint64_t off, bool *ret_overflow);

/* Compare a file that is here with its SHA-256. 0; -EBADMSG: it differs, and its blocks are
 * dropped; -EAGAIN: a block is missing; or -errno. No lock held. */
int file_verify(struct file *file, struct diag *d);

/* ---- sealed.c ---- */

/* Open the content of a file all of which is here, compared, and locked against drops until the
 * last copy of the descriptor is closed. 0; -EAGAIN: not now; -EMFILE or -ENFILE. No lock held. May
 * read all of the file. */
int file_open_sealed(struct file *file, int *ret_fd);

/* ---- retention.c ---- */

/* Take from the quota bytes that are needed at `when`. This drops blocks that are needed
 * later, but with keep=pin. 0; KEEP_IN_MEMORY: none taken, but the overflow blocks have a place for
 * them; or -errno, as quota_take(). No lock held. */
#define KEEP_IN_MEMORY 1
int keep_take_quota(struct stage *stage, uint64_t bytes, uint64_t when);

/* In the stage's thread: the same for what no reader waits for yet. It may displace only a limited
 * number of bytes at a time, so that the cache keeps most of the blocks needed soonest. */
int keep_take_ahead(struct stage *stage, const struct stage_need *need, uint64_t bytes);

/* In the stage's thread: bytes that keep_take_ahead() may take now in the place of other blocks. */
uint64_t keep_ahead_left(struct stage *stage);

/* Can the cache hold all of the source? */
bool keep_holds_all(struct stage *stage, int64_t now);

/* In the stage's thread: list victims before a reader must wait for the list. */
void keep_prepare(struct stage *stage);

void keep_release(struct keeping *keeping);

/* ---- passed.c ---- */

/* In the stage's thread, keep=once: drop blocks after their last need. Returns when to call it
 * again, if no change is reported before. */
int64_t passed_drop(struct stage *stage, int64_t now);

/* In the stage's thread: blocks that were dropped so may be fetched again if they are needed once
 * more. */
void passed_revive(struct file *file, uint64_t first, uint64_t end);

/* ---- claim.c ---- */

/* For a run that is being started: claim its blocks. Another process fetches those that it has
 * claimed itself. False: no block is left. */
bool run_claim(struct run *run);

/* After the claim: has another process fetched blocks of the run before? */
bool run_finds_some_came(const struct run *run);

/* Has another process made something from the whole file that replaces it, and does no reader wait
 * for the run? */
bool run_is_done_elsewhere(const struct run *run);

/* ---- arrive.c ---- */

/* Callbacks for the transfer of a run: see struct transfer. */
bool run_data_came(struct transfer *transfer, const void *bytes, size_t n);
bool run_stale_came(struct transfer *transfer, uint64_t n, int error, const struct diag *d);
void run_passed(struct transfer *transfer, size_t n);

/* Publish the complete blocks of the run. No lock held. */
void run_publish_ready(struct run *run);

/* Publish complete blocks that wait in buffers to be written together with later ones, though
 * nothing more comes. No lock held. */
void runs_flush(struct stage *stage);

/* When the blocks of the run are needed: only blocks needed later make space for them. 0: a reader
 * waits. */
uint64_t run_needed_when(const struct run *run);

/* What comes cannot be kept: the background pauses for a while. */
void stage_note_full(struct stage *stage, int error);

/* ---- settle.c ---- */

/* The transfer of the run has ended with `how`: the run sleeps, or has left. The caller holds a
 * reference, and no lock. */
void run_settle(struct run *run, enum transfer_end how, uint64_t retry_ms, const struct diag *d);

/* ---- start.c ---- */

/* Start runs for the most urgent needs while connections are free. No lock held. */
void runs_start(struct stage *stage);

/* The cache is too small for whole blocks: fetch only what readers want of them. Not of a file that
 * is read in sequence. Any thread. */
bool file_wants_parts(const struct file *file);

/* Start a run of the background, of those of n blocks, from the first on, that it can fetch. They
 * are needed at `when`; taken: bytes taken from the quota for it. 1: the run is started; 0: nothing
 * to fetch; -EAGAIN: there is no place for it now; unless 1, the bytes still belong to the caller.
 * No lock held. */
int runs_start_background(struct file *file, uint64_t first, uint64_t n, uint64_t when,
                          uint64_t taken);

/* Is a connection free for one more background run? */
bool runs_have_place_locked(struct stage *stage);

/* ---- reader.c ---- */

extern const struct blob_ops stage_blob_ops;

/* ---- retry_limit.c ---- */

/* End waits without progress for the retry limit (`patience=`): they move to *ret_over. Runs that
 * only they waited for end, too. Returns when to look again. */
int64_t waits_give_up_locked(struct stage *stage, int64_t now, struct wait **ret_over);

/* May the wait begin? It is brief, see struct waiter. -EREMOTEIO: the remote has been silent for
 * too long. */
int wait_brief_locked(struct wait *wait, int64_t now);

/* ---- late.c ---- */

/* Stop runs that bring too many unwanted bytes before those that a reader waits for. */
void runs_stop_late_locked(struct stage *stage, int64_t now);

/* ---- elsewhere.c ---- */

/* Look at the blocks that other processes fetch. Returns when to look again. */
int64_t look_at_others(struct stage *stage, int64_t now);

/* ---- run_blocks.c ---- */

struct blocks {
    uint64_t first, end;
};

/* The blocks of a need; an empty range if none can be fetched. */
struct blocks run_blocks_of(const struct stage_need *need);

/* In the stage's thread: the blocks of a run for the missing block `at`, one of `blocks`. need:
 * NULL: no forecast needs it; else the first of the forecast's buffer. Empty: the block is in
 * memory, passed, or coming meanwhile. *ret_no_space: look-ahead may displace nothing more now. */
struct blocks run_blocks_around(struct stage *stage, struct file *file, uint64_t at,
                                struct blocks blocks, const struct stage_need *need, int64_t now,
                                bool *ret_no_space);

/* ---- background.c ---- */

/* Start what may be fetched now though no reader waits for it. The stage's thread calls it, no lock
 * held. */
void stage_in_background(struct stage *stage, int64_t now);

/* When to call it again; INT64_MAX: after an event. */
int64_t background_next_look_locked(const struct stage *stage, int64_t now);

/* May the forecast have something to fetch? */
bool forecast_may_locked(const struct stage *stage, int64_t now);

/* ---- thread.c ---- */

void *stage_main(void *arg); /* the thread: stage->main */

/* End waits that have lasted too long, stop late runs. Returns when to look again. */
int64_t runs_look_locked(struct stage *stage, int64_t now, struct wait **ret_over);

#endif
