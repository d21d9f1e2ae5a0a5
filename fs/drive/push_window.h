/* The window of an active plan: which units are pushed into the page cache ahead of the reader, in
 * which of them a mark is left, and which units are dropped behind it.
 *
 * Reads that the page cache serves do not reach us. So now and then a pushed unit is marked: the
 * last page of each of its files stays out, and the read of that page tells where the reader is.
 *
 * Invariants:
 *  1. done <= pushed. Units from stored on and before done are, or were, in the page cache, except
 *     marks; those from done on and before pushed are made and about to be stored.
 *  2. A reader at `at` has not passed the next mark. Marks ascend, and all are before pushed, or
 *     are pushed itself.
 *  3. Bytes that are pushed and, as far as is known, not read yet: (pushed - at) * unit_bytes. They
 *     are at most the plan's share of active_plans_options.ahead, or one unit's.
 *  4. One file is made at a time.
 *
 * at: the unit where the reader is. units: of the epoch. share: bytes that may be pushed ahead.
 * columns: bits, the columns that are read, see node_column(). The active plans' lock guards it
 * all. */
#ifndef EPOCHFS_FS_DRIVE_PUSH_WINDOW_H
#define EPOCHFS_FS_DRIVE_PUSH_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#define PUSH_WINDOW_MAX    65536 /* units */
#define PUSH_WINDOW_STRIDE 64    /* units between two marks at most */
#define PUSH_WINDOW_MARKS  (PUSH_WINDOW_MAX / PUSH_WINDOW_STRIDE + 64) /* that are remembered */

struct push_window {
    uint64_t pushed;      /* the next unit to push, */
    unsigned column;      /* and its first column to push */
    uint64_t done;        /* units from stored on and before this one have been stored */
    uint64_t stored;      /* units from this one to pushed are in the page cache, or will be */
    uint64_t cached;      /* units before this one may also be in it, from an earlier push */
    uint64_t dropped;     /* the next unit to drop, */
    unsigned drop_column; /* and its first column to drop */
    uint64_t unit_bytes;  /* bytes of a unit in the page cache */
    uint64_t this_bytes;  /* bytes so far of the unit that is being pushed */
    uint64_t size;        /* units that may be pushed ahead of the reader */
    uint64_t mark[PUSH_WINDOW_MARKS], n_marks;
    bool is_making;      /* a file is being made */
    bool waits_for_move; /* the kernel does not know the next file, or it is too large */
    int64_t rest_until;
    unsigned overtaken;    /* in a row */
    unsigned rests;        /* in a row */
    uint64_t ready;        /* the next unit to make ready while the push rests, */
    unsigned ready_column; /* and its column */
    bool is_readying;      /* a file of it is being made */
    unsigned lost;         /* units in a row, */
    uint64_t lost_unit;    /* the last of them */
};

/* The reader begins, or has jumped to that unit: the push begins again behind it. What is known of
 * the size of a unit remains, and a file that is being made ends. */
void push_window_start(struct push_window *window, uint64_t unit);

/* Push from that unit on, perhaps again. The marks from there on are forgotten. */
void push_window_from(struct push_window *window, uint64_t unit);

/* The unit up to which reads need not reach us: the page cache may serve them. */
uint64_t push_window_until(const struct push_window *window);

bool push_window_is_marked(const struct push_window *window, uint64_t unit);

/* Was the unit stored, so that a read of it shows that the kernel has dropped it? */
bool push_window_has(const struct push_window *window, uint64_t unit);

/* ---- what the reader does ---- */

/* The first read of a file shows how large it is at least. */
void push_window_sees(struct push_window *window, uint64_t bytes);

/* It has read a marked unit, so the push keeps up: the window doubles. */
void push_window_grows(struct push_window *window);

/* It was no read that a push had missed. */
void push_window_keeps_up(struct push_window *window);

/* It has reached a unit from done on, so before it was stored. If the unit is made, and about to be
 * stored, so are those behind it, and the push goes on where it is: none is made twice. Otherwise,
 * it has overtaken the push, which goes on behind that unit. True: either happened so often that
 * the push rests, because a push that is always late only takes processor time. What happens during
 * a rest does not count; after a rest, two times are enough for the next one. */
bool push_window_overtaken(struct push_window *window, uint64_t unit, int64_t now);

/* It has read a unit that had been stored, so memory is short: the window is halved. True: so many
 * were lost in a row that the kernel has dropped everything, and the push is to begin again. A page
 * here and there is left to reads; so are all losses of a reader that takes only units far apart.
 */
bool push_window_loses(struct push_window *window, uint64_t unit, uint64_t at);

/* ---- what is pushed ---- */

/* May a file be made now? */
bool push_window_may_push(const struct push_window *window, uint64_t at, uint64_t units,
                          uint64_t share, int64_t now);

/* A file of unit `pushed` is about to be made. Its column; *ret_marked: its last page stays out.
 * All files of a unit are marked, or none: a reader of several columns may come for one only,
 * because the page cache has the others from before. */
unsigned push_window_take(struct push_window *window, uint64_t at, uint64_t units, uint64_t columns,
                          uint64_t share, bool *ret_marked);

/* May a file of that size be stored as the next one? */
bool push_window_fits(const struct push_window *window, uint64_t at, uint64_t size, uint64_t share);

/* The file in that column of unit `pushed` is made, and has that many bytes. */
void push_window_made(struct push_window *window, unsigned column, uint64_t columns,
                      uint64_t bytes);

/* The file in that column of unit `pushed` cannot be read: it is left to its reader. */
void push_window_leaves(struct push_window *window, unsigned column, uint64_t columns);

/* Unit `pushed` could not be made or stored. -ENOENT, -EFBIG: nothing more until the reader moves;
 * another -errno: for a while. */
void push_window_failed(struct push_window *window, int64_t error, int64_t now);

/* Does the push rest because its reader is faster? */
bool push_window_rests(const struct push_window *window, int64_t now);

/* While the push rests because its reader is faster, the next files are made and left in memory for
 * the reads: storing them is what made the push late. May one be made now? Its column, and its unit
 * in *ret_unit. It is made, or cannot be. */
bool push_window_may_ready(const struct push_window *window, uint64_t at, uint64_t units,
                           int64_t now);
unsigned push_window_take_ready(struct push_window *window, uint64_t at, uint64_t columns,
                                uint64_t *ret_unit);
void push_window_readied(struct push_window *window, uint64_t unit, unsigned column,
                         uint64_t columns);

/* A file of that unit has been stored. */
void push_window_stored(struct push_window *window, uint64_t unit);

/* ---- what is dropped ---- */

/* A unit is dropped once the reader has passed it for certain. */
bool push_window_may_drop(const struct push_window *window, uint64_t at);

/* Which column of which unit is to be dropped; the next call has the next one. */
void push_window_take_drop(struct push_window *window, uint64_t columns, uint64_t *ret_unit,
                           unsigned *ret_column);

#endif
