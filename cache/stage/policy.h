/* What is kept when there is no space (keep.c), what is dropped at once (passed.c), and what is
 * fetched when no reader waits (background.c). */
#ifndef EPOCHFS_CACHE_STAGE_POLICY_H
#define EPOCHFS_CACHE_STAGE_POLICY_H

#include "cache/stage/core.h"

/* ---- keep.c ---- */

int keep_init(struct stage *stage);
void keep_release(struct stage *stage);

/* Take from the quota bytes that are needed at `when`. This drops blocks that are needed later, but
 * with keep=pin. 0; KEEP_IN_MEMORY: none taken, but the overflow blocks have a place for them; or
 * -errno, as quota_take(). No lock held. */
#define KEEP_IN_MEMORY 1
int keep_take_quota(struct stage *stage, uint64_t bytes, uint64_t when);

/* In the stage's thread: the same for what no reader waits for yet. It may displace only a limited
 * number of bytes at a time, so that the cache keeps most of the blocks needed soonest. */
int keep_take_ahead(struct stage *stage, const struct stage_need *need, uint64_t bytes);

/* In the stage's thread: note that the run of so many bytes has started, for which the last
 * keep_take_ahead() took space. */
void keep_note_ahead(struct stage *stage, uint64_t bytes);

/* In the stage's thread: bytes that keep_take_ahead() may take now in the place of other blocks. */
uint64_t keep_ahead_left(struct stage *stage);

/* Had a block to be dropped? Can the cache hold all of the source, as of the last keep_look(),
 * which the stage's thread calls? */
bool keep_is_full(const struct stage *stage);
bool keep_holds_all(const struct stage *stage);
void keep_look(struct stage *stage, int64_t now);

/* In the stage's thread: list victims before a reader must wait for the list. */
void keep_prepare(struct stage *stage);

/* ---- passed.c ---- */

int passed_init(struct stage *stage);

/* In the stage's thread, keep=once: drop blocks after their last need. Returns when to call it
 * again, if no change is reported before. */
int64_t passed_drop(struct stage *stage, int64_t now);

/* In the stage's thread: blocks that were dropped so may be fetched again if they are needed
 * again. */
void passed_revive(struct file *file, uint64_t first, uint64_t end);

/* ---- background.c ---- */

int background_init(struct stage *stage);

/* Start what may be fetched now though no reader waits for it. The stage's thread calls it, no lock
 * held. */
void stage_in_background(struct stage *stage, int64_t now);

/* When to call it again; INT64_MAX: after an event. */
int64_t background_next_look_locked(const struct stage *stage, int64_t now);

/* A file was added. Was nothing missing in the last turn through all files? */
void background_add_locked(struct stage *stage);
bool background_is_done_locked(const struct stage *stage);

#endif
