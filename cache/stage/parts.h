/* What the files of the stage share. Calls go down this list, and to the right, never up:
 *
 *   stage.c                    life, files, counters
 *   next.c                     the scheduler: the stage's thread
 *   guided.c elsewhere.c       what the forecast of needs says; what other processes fetch
 *   late.c retry_limit.c       runs that take too long; readers that wait too long
 *   count.c reader.c           how much is here; the blob of a file
 *   start.c                    which runs are transferred when
 *   settle.c arrive.c claim.c  the end of a transfer; its bytes; claims before it
 *   retention.c                which blocks are dropped when there is no space
 *   content.c drop.c ahead.c stop.c  bytes that are here; blocks and runs that leave
 *   runs.c speed.c             runs are made, listed, and leave; how fast the remote is
 *   file.c                     which blocks of a file are here
 *   waits.c overflow.c report.c
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

/* ---- waits.c ---- */

/* The first and the next wait of a file for some of the blocks [first, end), in order; NULL: no
 * more. Get the next wait before the current one is over. */
struct wait *wait_first_locked(struct file *file, uint64_t first, uint64_t end);
struct wait *wait_next_locked(const struct wait *wait, uint64_t first, uint64_t end);

/* A reader waits from now on. The caller has set the wait's blocks and how many are left. */
void wait_begin_locked(struct wait *wait, struct file *file, struct waiter *waiter);

/* The wait is over: move it to *ret_over. */
void wait_end_locked(struct wait *wait, struct wait **ret_over);

/* Blocks [first, end) have come (error 0) or will not come: waits that this ends move to *ret_over.
 * A wait fails as a whole. */
void waits_over_locked(struct file *file, uint64_t first, uint64_t end, int error,
                       struct wait **ret_over);

/* Does a reader wait for some of the blocks [first, end)? Fetching ahead does not count. */
bool is_demanded_locked(struct file *file, uint64_t first, uint64_t end);

/* Report to the waiters that their waits are over. No lock held. */
void waits_tell(struct stage *stage, struct wait *over, int error, const struct diag *reason);

/* ---- file.c ---- */

#define LOOK_AT_ONCE 64 /* records of blocks */

uint32_t file_block_len(const struct file *file, uint64_t block);

static inline enum block_state file_state(const struct file *file, uint64_t block)
{
    return (enum block_state)(atomic_load_explicit(&file->state[block], memory_order_acquire) &
                              BLOCK_STATE);
}

static inline bool file_was_used_up(const struct file *file, uint64_t block)
{
    return atomic_load_explicit(&file->state[block], memory_order_acquire) & BLOCK_PASSED;
}

/* Readers used it up: only a read of it fetches it again. */
static inline bool file_has_passed(const struct file *file, uint64_t block)
{
    uint8_t state = atomic_load_explicit(&file->state[block], memory_order_acquire);

    return (state & (BLOCK_PASSED | BLOCK_AGAIN)) == BLOCK_PASSED;
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

/* Count a block that is on disk, whatever its state here. */
void file_count_locked(struct file *file, uint64_t block);

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

/* Find the first of blocks [from, to) that is not on disk and that no run or process fetches;
 * returns `to` if there is none. *ret_end: end of the missing blocks that follow it, at most `most`
 * of them. again: also a used-up block that is needed once more. *ret_others: others are being
 * fetched. Counts the blocks that are on disk. The file must have been taken; no lock held. */
uint64_t find_missing(struct file *file, uint64_t from, uint64_t to, uint64_t most, bool again,
                      uint64_t *ret_end, bool *ret_others);

/* ---- runs.c ---- */

#define DEMAND_BYTES (UINT64_C(4) << 20) /* bytes of a run that readers wait for */
#define RUN_OVERHEAD 8192 /* bytes of disk space that a run may take besides its blocks */
#define AHEAD_RUN    (UINT64_C(4) << 20) /* bytes of a run that is fetched ahead */
#define BACKOFF_MS   200                 /* how long a run sleeps the first time */

/* The first and the next run of a file with some of the blocks [first, end), as
 * wait_first_locked(). */
struct run *run_first_locked(struct file *file, uint64_t first, uint64_t end);
struct run *run_next_locked(const struct run *run, uint64_t first, uint64_t end);

/* Move a run to the list of that state. */
void run_move_locked(struct run *run, enum run_state state);
void run_sleep_locked(struct run *run, int64_t until);

/* Queue the runs whose sleep is over. Returns when to call this again. */
int64_t runs_wake_asleep_locked(struct stage *stage, int64_t now);

/* Set the run's blocks to [first, first + n). */
void run_set_blocks_locked(struct run *run, uint64_t first, uint64_t n);

/* When the run last made progress, stage_now(). It must not be stopping. This function alone
 * defines what counts as progress. */
int64_t run_progress_locked(const struct run *run);

/* The run is hurried: measure what it brings from now on. */
void run_watch_locked(struct run *run);

/* The same, measured from `since` on. */
void run_watch_from_locked(struct run *run, int64_t since);

bool is_waited_for_locked(const struct run *run);

/* Would a reader use what comes even if it is not kept? No lock held. */
bool run_is_wanted(const struct run *run);

/* Bytes of the run that are not published yet, with those in the buffer. */
uint64_t run_bytes_left(const struct run *run);

/* Must a run fetch the block? Of blocks that memory still has, only the background fetches, because
 * it may find space on disk for them. */
bool run_is_to_fetch(struct file *file, uint64_t block, enum run_why why, bool steal);

/* Make one run of n blocks. 0, -ENOMEM or -EINTR. */
int run_make_locked(struct file *file, uint64_t first, uint64_t n, enum run_why why, bool steal);

/* Make and queue runs, of at most `most` bytes each, of those of the blocks [first, end) that no
 * run fetches. steal: also of those that another process fetches. 0, -ENOMEM, or -EINTR: the stage
 * ends or rests. */
int runs_make_locked(struct file *file, uint64_t first, uint64_t end, uint64_t most,
                     enum run_why why, bool steal);

/* Blocks [first, end) no longer come with their run, or are no longer here: fetch those that
 * readers wait for. Waits for which no run can be made move to *ret_over. They end without an
 * error; a reader that asks again gets the error. */
void runs_make_for_waits_locked(struct file *file, uint64_t first, uint64_t end,
                                struct wait **ret_over);

/* Make a run of blocks [first, end) for the background, which are needed at `when`. capacity: bytes
 * that were taken from the quota for it. False: no run is needed now, and the bytes still belong to
 * the caller. */
bool runs_make_planned_locked(struct file *file, uint64_t first, uint64_t end, uint64_t when,
                              uint64_t capacity);

/* A reader waits for blocks that are coming already: make their runs at least as urgent as why. */
void runs_hurry_locked(struct file *file, uint64_t first, uint64_t end, enum run_why why);

/* Remove the run from its list; the caller then calls run_let_go() without the lock. error: the
 * result of waits for blocks that have not come; 0: they go on, with another run. */
void run_leave_locked(struct run *run, int error, struct wait **over);

/* Leave all but the first n blocks to other runs, as readers need them; its transfer is over, and
 * at least n blocks are left. */
void run_shorten_locked(struct run *run, uint64_t n, struct wait **over);

/* Drop a reference to a run; the last one frees it. No lock held. */
void run_let_go(struct run *run);

/* Free the buffers that no run uses. */
void runs_free_buffers_locked(struct stage *stage);

/* ---- speed.c ---- */

/* A transfer of the run is done: measure how long its first byte took, and how fast the others
 * came. */
void speed_measure_locked(struct stage *stage, const struct run *run, int64_t now);

/* Adapt the length of the next background run to that. */
void speed_adapt_locked(struct stage *stage, const struct run *run, int64_t now);

/* Bytes that take as long to come as a transfer takes to begin. */
uint64_t runs_worth_locked(struct stage *stage);

/* Bytes of the next background run. */
uint64_t run_bytes_locked(const struct stage *stage);

/* A background run was made: with rate= the next one must wait. */
void spend_locked(struct stage *stage, int64_t now, uint64_t bytes);

/* ---- stop.c ---- */

/* Remove the background runs that have not begun. No lock held. */
void runs_take_back(struct stage *stage);

/* Stop a run that no reader waits for any more. A run that is not under way leaves its list and
 * moves to *gone. */
void run_give_up_locked(struct run *run, struct wait **over, struct run **gone);

/* Let go of the runs in a list of removed ones, linked by next. No lock held. */
void runs_let_go(struct run *gone);

/* Stop all runs under way and remove the others; all readers that wait get -EINTR. */
void runs_stop_locked(struct stage *stage, struct wait **ret_over);

/* ---- ahead.c ---- */

/* A reader asks for bytes [off, off + len): if its reads are in sequence, fetch more ahead. */
void ahead_locked(struct file *file, uint64_t off, uint64_t len);

/* ---- drop.c ---- */

/* Drop n ranges of blocks. The file must have been taken; no lock held. 0, or the last -errno of a
 * range that could not be dropped (-EOPNOTSUPP). */
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

/* ---- retention.c ---- */

/* Take from the quota bytes that are needed at `when`. With keep=plan this drops blocks that are
 * needed later. 0; KEEP_IN_MEMORY: none taken, but the overflow blocks have a place for them; or
 * -errno, as quota_take(). No lock held. */
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

/* ---- claim.c ---- */

/* For a run that is being started: claim its blocks. Another process fetches those that it has
 * claimed itself. False: no block is left. */
bool run_claim(struct run *run);

/* After the claim: remove from the run the blocks that another process has fetched before. Keeps
 * the first blocks still to fetch; looks at the others and makes new runs of them. False: no block
 * is left. */
bool run_pass_what_came(struct run *run);

/* Has another process made something from the whole file that replaces it, and does no reader wait
 * for the run? */
bool run_is_done_elsewhere(const struct run *run);

/* ---- arrive.c ---- */

/* Callbacks for the transfer of a run: see struct transfer. */
bool run_data_came(struct transfer *transfer, const void *bytes, size_t n);
bool run_grow(struct transfer *transfer);

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

/* The transfer of the run has ended with `how`. True: the run has left; the caller lets it go.
 * False: it sleeps and no longer belongs to the caller. No lock held. */
bool run_settle(struct run *run, enum transfer_end how, uint64_t retry_ms, const struct diag *d);

/* ---- start.c ---- */

/* Start queued runs while connections are free. No lock held. */
void runs_start(struct stage *stage);

/* Is a connection free for one more background run? */
bool runs_have_place_locked(struct stage *stage);

/* ---- reader.c ---- */

extern const struct blob_ops stage_blob_ops;

/* ---- retry_limit.c ---- */

/* End waits without progress for the retry limit (`patience=`): they move to *ret_over. Runs that
 * only they waited for move to *ret_gone, for runs_let_go(). Returns when to look again. */
int64_t waits_give_up_locked(struct stage *stage, int64_t now, struct wait **ret_over,
                             struct run **ret_gone);

/* ---- late.c ---- */

/* Stop runs that bring too many unwanted bytes before those that a reader waits for. */
void runs_stop_late_locked(struct stage *stage, int64_t now);

/* ---- elsewhere.c ---- */

/* Look at the blocks that other processes fetch. Returns when to look again. */
int64_t look_at_others(struct stage *stage, int64_t now);

/* ---- guided.c ---- */

/* Runs in the stage's thread, no lock held. GUIDED_MADE: a run was queued; GUIDED_NONE: the
 * forecast has no need to fetch now; GUIDED_HELD: no space for the next need. */
enum guided_step { GUIDED_MADE, GUIDED_NONE, GUIDED_HELD };
enum guided_step guided_more(struct stage *stage, int64_t now);

/* May the forecast have something to fetch? */
bool guided_may_locked(const struct stage *stage, int64_t now);

/* ---- next.c ---- */

void *stage_main(void *arg); /* the thread: stage->main */

/* Queue runs whose sleep is over; end waits that have lasted too long. Returns when to look
 * again. */
int64_t runs_wake_locked(struct stage *stage, int64_t now, struct wait **ret_over);

#endif
