/* What the files of the stage call of each other. Calls go down this list, and to the
 * right, never up:
 *
 *   stage.c                    life, files, counters
 *   next.c                     the scheduler: the stage's thread
 *   guided.c elsewhere.c       what the forecast of needs says; what other processes fetch
 *   late.c retry_limit.c       runs that take too long; readers that wait too long
 *   count.c reader.c           how much is here; the blob of a file
 *   start.c                    which runs are transferred when
 *   settle.c arrive.c claim.c  the end of a transfer; its bytes; claims before it
 *   retention.c                what goes when there is no space
 *   content.c drop.c ahead.c stop.c  bytes that are here; blocks and runs that go
 *   runs.c speed.c             runs are made, listed, and leave; how fast the remote is
 *   file.c                     which blocks of a file are here
 *   waits.c overflow.c report.c
 *
 * What is below reports up through tables: a transfer its bytes and its end (struct transfer), a
 * wait its end (struct waiter), and stage_kick_locked() wakes stage->main. */
#ifndef EPOCHFS_CACHE_STAGE_PARTS_H
#define EPOCHFS_CACHE_STAGE_PARTS_H

#include "cache/stage/state.h"

/* ---- report.c ---- */

/* There may be something to do for the stage's thread, which is started if there is none. */
void stage_kick_locked(struct stage *stage);

/* Tell the listener of a failure, or, error 0, that the remote answers. No lock held. */
void stage_tell(struct stage *stage, int error, const struct diag *reason);

/* ---- waits.c ---- */

/* Of the waits of a file those for some of the blocks [first, end), in order; NULL: no more. Get
 * the next one before this one is over. */
struct wait *wait_first_locked(struct file *file, uint64_t first, uint64_t end);
struct wait *wait_next_locked(const struct wait *wait, uint64_t first, uint64_t end);

/* Somebody waits from now on; its blocks and what is left of them are set. */
void wait_begin_locked(struct wait *wait, struct file *file, struct waiter *waiter);

/* It is over: it goes to *ret_over. */
void wait_end_locked(struct wait *wait, struct wait **ret_over);

/* Blocks [first, end) have come (error 0) or will not: waits that are over by this go to *ret_over.
 * A wait fails as a whole. */
void waits_over_locked(struct file *file, uint64_t first, uint64_t end, int error,
                       struct wait **ret_over);

/* Does a reader wait for some of the blocks [first, end), and not only who fetches ahead? */
bool is_demanded_locked(struct file *file, uint64_t first, uint64_t end);

/* Tell them. No lock held. */
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

/* It was used up, and is fetched again only for who reads it. */
static inline bool file_has_passed(const struct file *file, uint64_t block)
{
    uint8_t state = atomic_load_explicit(&file->state[block], memory_order_acquire);

    return (state & (BLOCK_PASSED | BLOCK_AGAIN)) == BLOCK_PASSED;
}

/* Set the state of a block, and the counters that follow from it. */
void file_set_locked(struct file *file, uint64_t block, enum block_state state);

/* The state of blocks that were found good after file->drops was read as drops: HERE, or UNKNOWN if
 * it has changed since, for then they may have been among those that were dropped. */
enum block_state file_here(const struct file *file, uint64_t drops);

/* file->drops, for blocks that are written from now on. A staged file that was cut short is begun
 * anew before anything is written to it, and all that was known of it forgotten. No lock held. */
uint64_t file_drops_to_write(struct file *file);

/* Another process has dropped blocks since the count was drops, or the file was cut short: what was
 * known of its blocks is forgotten. No lock held. */
void file_forget(struct file *file, uint64_t drops);

/* Blocks were dropped by this process. Unless another one did that, too, the others are as good as
 * they were. */
void file_dropped_locked(struct file *file, const struct staged_dropped *dropped);

/* The block is on disk, whether we know its state or not. */
void file_count_locked(struct file *file, uint64_t block);

/* The staged file is open until file_put(). 0 or -errno with the reason in d. No lock held. */
int file_take(struct file *file, struct diag *d);

/* Close a file that is in memory for want of disk space, if nobody uses it: the next file_take()
 * tries the disk again. */
void file_try_disk(struct file *file);
void file_put(struct file *file);

/* Is the block on disk what its record says? buf: room for it. */
bool file_block_is_good(const struct file *file, uint64_t block, uint64_t record, uint8_t *buf);

/* Find out which of the blocks [first, end) are here; those of which that is known are not looked
 * at again, but absent ones are. The file must have been taken; no lock held. */
void look_at_blocks(struct file *file, uint64_t first, uint64_t end);

/* The block was looked at: whether it is here. drops: file->drops before that. No lock held. */
void file_looked_at(struct file *file, uint64_t block, bool here, uint64_t drops);

/* The first of blocks [from, to) that is not on disk, and nobody fetches; to: none. again: also one
 * that was used up, if it is needed once more. Those that are on disk are counted. *ret_end: behind
 * the last of such, at most so many. *ret_others: there are some that others fetch. The file must
 * have been taken; no lock held. */
uint64_t find_missing(struct file *file, uint64_t from, uint64_t to, uint64_t most, bool again,
                      uint64_t *ret_end, bool *ret_others);

/* ---- runs.c ---- */

#define DEMAND_BYTES (UINT64_C(4) << 20) /* of a run that somebody waits for */
#define RUN_OVERHEAD 8192 /* bytes of disk space that a run may take beside its blocks */
#define AHEAD_RUN    (UINT64_C(4) << 20) /* bytes of a run that is fetched ahead */
#define BACKOFF_MS   200                 /* the first time that a run sleeps for */

/* Of the runs of a file those with some of the blocks [first, end), as wait_first_locked(). */
struct run *run_first_locked(struct file *file, uint64_t first, uint64_t end);
struct run *run_next_locked(const struct run *run, uint64_t first, uint64_t end);

/* Put a run into the list of that state. */
void run_move_locked(struct run *run, enum run_state state);
void run_sleep_locked(struct run *run, int64_t until);

/* Queue what has slept enough. Returns when to do that again. */
int64_t runs_wake_asleep_locked(struct stage *stage, int64_t now);

/* The run has blocks [first, first + n) from now on. */
void run_set_blocks_locked(struct run *run, uint64_t first, uint64_t n);

/* When the run, which nobody stops, last made progress: what counts is said there, and nowhere
 * else. monotonic_ns() */
int64_t run_progress_locked(const struct run *run);

/* The run is hurried: what it brings is measured from now on. */
void run_watch_locked(struct run *run);

/* The same, since then. */
void run_watch_from_locked(struct run *run, int64_t since);

bool is_waited_for_locked(const struct run *run);

/* Would anybody have what comes and is not kept? No lock held. */
bool run_is_wanted(const struct run *run);

/* Bytes that have not come, but for those in the buffer. */
uint64_t run_bytes_left(const struct run *run);

/* What memory still has is fetched again by the background only, which may find space for it. */
bool run_is_to_fetch(struct file *file, uint64_t block, enum run_why why, bool steal);

/* Make one run of n blocks. 0, -ENOMEM or -EINTR. */
int run_make_locked(struct file *file, uint64_t first, uint64_t n, enum run_why why, bool steal);

/* Make runs of those of the blocks [first, end) that nobody fetches, of at most that many bytes,
 * and queue them. steal: those, too, that another process fetches. 0, -ENOMEM, or -EINTR: the stage
 * ends, or rests. */
int runs_make_locked(struct file *file, uint64_t first, uint64_t end, uint64_t most,
                     enum run_why why, bool steal);

/* Blocks [first, end) do not come by the run, or are not here, any more: fetch those that somebody
 * waits for. Waits for which that cannot be done go to *ret_over; they are over without an error,
 * and who asks again is told it. */
void runs_make_for_waits_locked(struct file *file, uint64_t first, uint64_t end,
                                struct wait **ret_over);

/* Make a run of blocks [first, end) for the background, which are needed at `when`, with room that
 * was taken for them. False: nobody has to fetch them now, and the room is still the caller's. */
bool runs_make_planned_locked(struct file *file, uint64_t first, uint64_t end, uint64_t when,
                              uint64_t capacity);

/* Somebody waits for blocks that are on their way already: they are at least as urgent as why. */
void runs_hurry_locked(struct file *file, uint64_t first, uint64_t end, enum run_why why);

/* The run leaves its list; the caller lets it go, without the lock. error: of the waits for blocks
 * that have not come; 0: they go on, with another run. */
void run_leave_locked(struct run *run, int error, struct wait **over);

/* Let go of a run; the last who does frees it. No lock held. */
void run_let_go(struct run *run);

/* Buffers that no run has. */
void runs_free_buffers_locked(struct stage *stage);

/* ---- speed.c ---- */

/* A transfer of the run is done: how long its first byte took, and how fast the others came. */
void speed_measure_locked(struct stage *stage, const struct run *run, int64_t now);

/* How long the next run of the background is, by that. */
void speed_adapt_locked(struct stage *stage, const struct run *run, int64_t now);

/* Bytes for which a transfer waits as long as they then take to come. */
uint64_t runs_worth_locked(struct stage *stage);

/* Of the next run of the background, bytes. */
uint64_t run_bytes_locked(const struct stage *stage);

/* A run of the background was made: with rate= the next one has to wait. */
void spend_locked(struct stage *stage, int64_t now, uint64_t bytes);

/* ---- stop.c ---- */

/* Forget the runs of the background that have not begun. No lock held. */
void runs_take_back(struct stage *stage);

/* Stop a run that nobody waits for any more, or (not under way) have it leave: it is in *gone. */
void run_give_up_locked(struct run *run, struct wait **over, struct run **gone);

/* Let go of runs that have left, a list by next. No lock held. */
void runs_let_go(struct run *gone);

/* Stop all that is under way, and forget what is not; all who wait get -EINTR. */
void runs_stop_locked(struct stage *stage, struct wait **ret_over);

/* ---- ahead.c ---- */

/* A reader wants bytes [off, off + len): if the file is read in sequence fetch more ahead. */
void ahead_locked(struct file *file, uint64_t off, uint64_t len);

/* ---- drop.c ---- */

/* Drop n ranges of blocks. No lock held; the file must have been taken. 0, or -errno of the last
 * that could not be dropped (-EOPNOTSUPP). */
int file_drop_ranges(struct file *file, const struct staged_range *ranges, size_t n);

void file_drop_blocks(struct file *file, uint64_t first, uint64_t n);

/* ---- content.c ---- */

/* Blocks from first on that are HERE. */
uint64_t file_count_here(const struct file *file, uint64_t first, uint64_t end);

/* 0; -EAGAIN: bytes are missing; or -errno. *ret_overflow: not all is on disk. The file must have
 * been taken. */
int file_read(struct file *file, void *buf, size_t len, uint64_t off, bool *ret_overflow);

/* Compare a file that is here with its SHA-256. 0; -EBADMSG: it differs, its blocks have been
 * dropped; -EAGAIN: a block is missing; or -errno. No lock held. */
int file_verify(struct file *file, struct diag *d);

/* ---- retention.c ---- */

/* Take room for bytes that are needed at `when`. With keep=plan blocks are dropped that are needed
 * later. 0; KEEP_IN_MEMORY: none was taken, there is place for them in the overflow blocks; or
 * -errno, as quota_take(). No lock held. */
#define KEEP_IN_MEMORY 1
int keep_take_quota(struct stage *stage, uint64_t bytes, uint64_t when);

/* In the thread: the same for what is fetched before somebody waits, but so much at most at a time
 * in the place of something else that what stays is still what is needed soonest. */
int keep_take_ahead(struct stage *stage, const struct stage_need *need, uint64_t bytes);

/* In the thread: bytes that keep_take_ahead() may give now in the place of others. */
uint64_t keep_ahead_left(struct stage *stage);

/* Can the cache hold all of the source? */
bool keep_holds_all(struct stage *stage, int64_t now);

/* In the thread: list what may go before somebody has to wait for it. */
void keep_prepare(struct stage *stage);

void keep_release(struct keeping *keeping);

/* ---- claim.c ---- */

/* Of a run that is being started. Claim its blocks: what another process has claimed it fetches.
 * False: nothing is left. */
bool run_claim(struct run *run);

/* After the claim: keep the first blocks that are to be fetched; others are looked at, and made to
 * runs again. False: nothing is left. */
bool run_pass_what_came(struct run *run);

/* Has another process made something else of the whole file, and nobody waits for bytes of it? */
bool run_is_done_elsewhere(const struct run *run);

/* ---- arrive.c ---- */

/* For the transfer of a run: see struct transfer. */
bool run_data_came(struct transfer *transfer, const void *bytes, size_t n);
bool run_grow(struct transfer *transfer);

/* Publish whatever is complete. No lock held. */
void run_publish_ready(struct run *run);

/* Publish blocks that have come, and wait for others to be written with them, though nothing comes
 * any more. No lock held. */
void runs_flush(struct stage *stage);

/* When what the run brings is needed: only what is needed later than that makes space for it. 0:
 * somebody waits. No lock held. */
uint64_t run_needed_when(const struct run *run);

/* What comes cannot be kept: the background rests for a while. */
void stage_note_full(struct stage *stage, int error);

/* ---- settle.c ---- */

/* The transfer of the run has ended so. True: the run has gone, and is to be let go; false: it
 * sleeps, and is the caller's no more. No lock held. */
bool run_settle(struct run *run, enum transfer_end how, uint64_t retry_ms, const struct diag *d);

/* ---- start.c ---- */

/* Start what is queued, for as long as connections are free. No lock held. */
void runs_start(struct stage *stage);

/* May the background have one more run, as far as connections are concerned? */
bool runs_have_place_locked(struct stage *stage);

/* ---- reader.c ---- */

extern const struct blob_ops stage_blob_ops;

/* ---- retry_limit.c ---- */

/* Waits for what has made no progress for `patience=` go to *ret_over, and runs that they alone
 * waited for to *ret_gone, to be let go. Returns when to look again. */
int64_t waits_give_up_locked(struct stage *stage, int64_t now, struct wait **ret_over,
                             struct run **ret_gone);

/* ---- late.c ---- */

/* Stop runs that bring too much that nobody waits for before what a reader waits for. */
void runs_stop_late_locked(struct stage *stage, int64_t now);

/* ---- elsewhere.c ---- */

/* Look at the blocks that others fetch. Returns when to look again. */
int64_t look_at_others(struct stage *stage, int64_t now);

/* ---- guided.c ---- */

/* All in the thread, no lock held. GUIDED_MADE: a run was queued; GUIDED_NONE: nothing is planned
 * now; GUIDED_HELD: there is no room for what is next. */
enum guided_step { GUIDED_MADE, GUIDED_NONE, GUIDED_HELD };
enum guided_step guided_more(struct stage *stage, int64_t now);

/* Is there perhaps something planned to be fetched? */
bool guided_may_locked(const struct stage *stage, int64_t now);

/* ---- next.c ---- */

void *stage_main(void *arg); /* the thread: stage->main */

/* Queue what has slept enough; give up what somebody has waited for too long. Returns when to look
 * again. */
int64_t runs_wake_locked(struct stage *stage, int64_t now, struct wait **ret_over);

#endif
