/* Which readers want which blocks, how urgently, and how long a reader waits for a block. */
#ifndef EPOCHFS_CACHE_STAGE_NEEDS_H
#define EPOCHFS_CACHE_STAGE_NEEDS_H

#include "base/read_context.h"
#include "cache/stage/core.h"

/* Why blocks are fetched, most urgent first. */
enum run_why { RUN_DEMAND, RUN_AHEAD, RUN_BACKGROUND, RUN_WHYS };

/* Blocks that are wanted of a file. */
struct wanted {
    struct file *file;
    uint64_t first, n;
    int64_t since; /* when that was first queued */
};

struct wait; /* of a reader for a range of blocks */

int needs_init(struct stage *stage);
int file_needs_init(struct file *file);

/* A reader asks for bytes of a file, which was taken and looked at. 1: it waits from now on, and
 * its waiter is told when that is over; 0: all is cached; or -errno: -EREMOTEIO: the remote has
 * been silent for too long. */
int needs_ask_locked(struct file *file, uint64_t off, uint64_t len, struct waiter *waiter);

/* A reader reads bytes [off, off + len): if its reads are in sequence, fetch more ahead. */
void needs_ahead_locked(struct file *file, uint64_t off, uint64_t len);

/* The blocks of the next run for a need of that urgency. False: there is none. */
bool needs_next_locked(struct stage *stage, enum run_why why, struct wanted *ret);
bool needs_any_locked(const struct stage *stage, enum run_why why); /* is any queued? */

/* Blocks [first, end) no longer come with their run, or are no longer here: queue the needs of the
 * readers that wait for them. */
void needs_again_locked(struct file *file, uint64_t first, uint64_t end);

/* A run of [first, end) was not started: look ahead again from there on; or, !again, behind it. */
void needs_ahead_ended_locked(struct file *file, uint64_t first, uint64_t end, bool again);

/* Does a reader wait for one of the blocks [first, end)? How many waits are there? */
bool needs_wait_locked(const struct file *file, uint64_t first, uint64_t end);
size_t needs_waits_locked(const struct stage *stage);

/* Is there a wait for which only blocks of [first, end) are missing? */
bool needs_end_a_wait_locked(struct file *file, uint64_t first, uint64_t end);

/* The bytes that readers wait for of the blocks [first, end); nothing: *ret_from > *ret_to. */
void needs_bytes_locked(struct file *file, uint64_t first, uint64_t end, uint64_t *ret_from,
                        uint64_t *ret_to);

/* The bytes that no reader waits for of the blocks [first, end), up to the last that one waits for.
 * Returns how many transfers would fetch the others. */
uint64_t needs_unwanted_locked(struct file *file, uint64_t first, uint64_t end,
                               uint64_t *ret_bytes);

/* Blocks [first, end) have come (error 0) or will not come: waits that this ends move to *ret_over.
 * A wait fails as a whole. */
void waits_over_locked(struct file *file, uint64_t first, uint64_t end, int error,
                       struct wait **ret_over);

/* End waits without progress for the retry limit (`patience=`): they move to *ret_over. Runs that
 * only they waited for end. Returns when to look again. */
int64_t waits_give_up_locked(struct stage *stage, int64_t now, struct wait **ret_over);

/* End all waits, and forget all needs. */
void waits_stop_locked(struct stage *stage, struct wait **ret_over);

/* Report to the waiters that their waits are over. reason: of waits that have none of their own. No
 * lock held. */
void waits_tell(struct stage *stage, struct wait *over, int error, const struct diag *reason);

/* Why nothing comes for readers of the file. A failure of another file is not reported as one of
 * this file. */
void wait_explain_locked(const struct file *file, struct diag *ret);

#endif
