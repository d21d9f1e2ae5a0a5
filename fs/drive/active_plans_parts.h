/* Shared by the files of the active plans: fs/drive/active_plans.c (reads move them),
 * fs/drive/active_plans_push.c (what is pushed), fs/drive/active_plans_list.c (what others see).
 *
 * Invariants of an active plan that is read:
 *
 *  1. at is the furthest unit of which a read has reached us. Units between at and pushed are, or
 *     were, in the page cache, except for marks. So the reader has not passed the next mark.
 *  2. Bytes that are pushed and, as far as is known, not read yet: (pushed - at) * unit_bytes. They
 *     are at most the plan's share of options.ahead.
 *  3. Several workers of one reader read a little out of order: somewhat behind at, or ahead of it.
 *     A read further away is a jump, unless it continues a unit that is open.
 *  4. A unit that was not pushed is needed until all of it has been returned to its reader, because
 *     the kernel asks for a large one in pieces. Until then it is open: the cursor begins there.
 */
#ifndef EPOCHFS_FS_DRIVE_ACTIVE_PLANS_PARTS_H
#define EPOCHFS_FS_DRIVE_ACTIVE_PLANS_PARTS_H

#include <stdatomic.h>

#include "base/checked.h"
#include "base/lock.h"
#include "fs/drive/active_plans.h"

#define SLACK       32 /* units that the workers of one reader may be apart */
#define OPEN_MOST   128
#define USED_MOST   128
#define WINDOW_MOST 65536
#define MARK_MOST   64                             /* units between two marks */
#define MARKS       (WINDOW_MOST / MARK_MOST + 64) /* marks that are remembered */
#define PAGE        4096
#define QUIET_S     60.0 /* without a read; then the plan may no longer be in use */
#define NS_PER_S    1e9

/* A unit that is being read and was not pushed. */
struct open_unit {
    bool is_open;
    bool was_open; /* some of it was returned to the reader */
    uint64_t unit;
    uint64_t kinds; /* bits: the kinds whose sizes are known, */
    uint64_t bytes; /* and the sum of these sizes */
    uint64_t given; /* bytes returned, of all kinds */
};

/* A file whose bytes before end were used (keep=once) when it was made. */
struct used_file {
    uint64_t unit;
    unsigned kind;
    uint64_t end;
};

struct active_plan {
    uint64_t id; /* 0: free */
    uint64_t jumps;
    const struct plan_entry *plan; /* NULL: samples in stored order */
    const struct catalog_item *item;
    const struct folder *folder; /* NULL: announced, and not read yet */
    bool is_samples;
    uint64_t epoch;
    struct node node; /* a node that was read */
    uint64_t kinds;   /* bits */
    uint64_t came;    /* bits: the kinds read since the last jump, */
    uint64_t ended;   /* and those of which the last unit's file was read to its end */
    uint64_t units, samples;
    uint64_t at;
    unsigned in_sequence;
    /* What is pushed: */
    uint64_t pushed;     /* the next unit to push, */
    uint64_t done;       /* units from stored on and before this one have been stored */
    uint64_t stored;     /* units from this one to pushed are in the page cache, or will be */
    unsigned kind;       /* the first kind to push of unit pushed */
    uint64_t dropped;    /* the next unit to drop, */
    unsigned drop_kind;  /* and its first kind to drop */
    uint64_t unit_bytes; /* bytes of a unit in the page cache */
    uint64_t this_bytes; /* bytes so far of the unit that is being pushed */
    uint64_t window;     /* units that may be pushed ahead of at */
    uint64_t mark[MARKS], n_marks; /* ascending */
    int64_t rest_until;
    unsigned overtaken;  /* in a row */
    unsigned rests;      /* in a row */
    unsigned lost;       /* units in a row, */
    uint64_t lost_unit;  /* the last of them */
    bool waits_for_move; /* the kernel does not know the next file, or it is too large */
    bool being_made;     /* a file of it, one at a time */
    struct open_unit open[OPEN_MOST]; /* unit u: [u % OPEN_MOST] */
    uint64_t reported;                /* the unit where the cursor was last reported to begin */
    struct used_file used[USED_MOST]; /* the files made last */
    /* Numbers: */
    int64_t first_ns, last_ns; /* reads; 0: none */
    int64_t moved_ns;          /* the last read that was further on */
    double units_per_s;
    int64_t wait_ns;
    uint64_t ghost; /* the unit where the reader was before it jumped; UINT64_MAX: none */
    bool is_stray;  /* another plan continues at the ghost, and this one has not moved yet */
};

struct active_plans {
    struct active_plans_options options;
    struct active_plans_counters counters;
    struct lock lock;
    /* Guarded by lock: */
    struct active_plan active[ACTIVE_PLANS_MAX];
    uint64_t ids;
    uint64_t capacity; /* bytes that may be pushed, */
    int64_t looked;    /* and the time; both of the last active_plans_next_push() */
};

static inline void active_plan_count(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* The size of the whole pages that hold so many bytes. */
static inline uint64_t active_plan_pages(uint64_t bytes)
{
    return ceil_div(max_u64(bytes, 1), PAGE) * PAGE;
}

static inline uint64_t active_plan_unit(const struct node *node)
{
    return node->number;
}

static inline bool active_plan_is_open(const struct active_plan *active, uint64_t unit)
{
    const struct open_unit *open = &active->open[unit % OPEN_MOST];

    return open->is_open && open->unit == unit;
}

/* Has nothing been read for so long that the plan may no longer be in use? */
static inline bool active_plan_is_quiet(const struct active_plan *active, int64_t now)
{
    double quiet = (double)(now - active->last_ns) / NS_PER_S;
    double expected = active->units_per_s > 0 ? MARK_MOST / active->units_per_s : 0;

    return quiet > QUIET_S + 4 * expected;
}

/* The active plan that a read belongs to: one that has the unit open or whose reader is close, else
 * the one of that folder that was read last. NULL: none. */
struct active_plan *active_plan_find_locked(struct active_plans *active_plans,
                                            const struct node *node);

/* Does it have a reader of its own? Samples count once several were read in sequence, batches at
 * once. A stray does not count: a worker of a reader that is far ahead has read its unit very
 * late. */
bool active_plan_is_live(const struct active_plan *active);

bool active_plan_is_marked(const struct active_plan *active, uint64_t unit);

/* Push from that unit on, perhaps again. The marks from there on are forgotten. */
void active_plan_push_from(struct active_plan *active, uint64_t unit);

#endif
