/* What the files of the active plans share: fs/drive/active_plans.c (reads move them),
 * fs/drive/active_plans_push.c (what is pushed), fs/drive/active_plans_list.c (what others see).
 *
 * Invariants of an active plan that is read:
 *
 *  1. at is the furthest unit of which a read has reached us. What lies between at and pushed is in
 *     the page cache, but for marks, or was. So the reader is no further on than the next mark.
 *  2. Bytes that are pushed and, as far as is known, not read yet: (pushed - at) * unit_bytes, no
 *     more than the plan's share of options.ahead.
 *  3. Reads a little behind at, or before their turn, are those of several workers of one reader.
 *     What is further away is a jump, but for who goes on with a unit that is open.
 *  4. A unit that was not pushed is still needed until all of it has been given to its reader: the
 *     kernel asks for a large one bit by bit. It is open until then, and the cursor begins there.
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
#define MARKS       (WINDOW_MOST / MARK_MOST + 64) /* that are remembered */
#define PAGE        4096
#define QUIET_S     60.0 /* after which a plan may be one that is not read any more */
#define NS_PER_S    1e9

/* A unit that is read and was not pushed. */
struct open_unit {
    bool is_open;
    bool was_open; /* something of it was given */
    uint64_t unit;
    uint64_t kinds; /* bits: the sizes of these are known, */
    uint64_t bytes; /* and this is their sum */
    uint64_t given; /* bytes, of all kinds */
};

/* A file whose bytes before end were used when it was made. */
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
    struct node node; /* one that was read */
    uint64_t kinds;   /* bits */
    uint64_t came;    /* bits: of these kinds, those read since it is here, and not elsewhere; */
    uint64_t ended;   /* of these it has read the last unit's file to its end */
    uint64_t units, samples;
    uint64_t at;
    unsigned in_sequence;
    /* What is pushed: */
    uint64_t pushed;               /* the next unit, */
    uint64_t done;                 /* units before this one have come from stored on */
    uint64_t stored;               /* units from this one to pushed are in the page cache */
    unsigned kind;                 /* and of its kinds those from this one on */
    uint64_t dropped;              /* the next unit to drop, */
    unsigned drop_kind;            /* and of its kinds those from this one on */
    uint64_t unit_bytes;           /* in the page cache */
    uint64_t this_bytes;           /* of the unit that is being pushed */
    uint64_t window;               /* units that may be pushed ahead of at */
    uint64_t mark[MARKS], n_marks; /* ascending */
    int64_t rest_until;
    unsigned overtaken;  /* in a row */
    unsigned rests;      /* in a row */
    unsigned lost;       /* units in a row, */
    uint64_t lost_unit;  /* this one last */
    bool waits_for_move; /* the kernel does not know what is next, or it is too large */
    bool being_made;     /* one file at a time */
    struct open_unit open[OPEN_MOST]; /* unit u: [u % OPEN_MOST] */
    uint64_t reported;                /* the cursor was told to begin at this unit */
    struct used_file used[USED_MOST]; /* that were made last */
    /* Numbers: */
    int64_t first_ns, last_ns; /* reads; 0: none */
    int64_t moved_ns;          /* the last one that was further on */
    double units_per_s;
    int64_t wait_ns;
    uint64_t ghost; /* where the reader was before it jumped; UINT64_MAX: none */
    bool is_stray;  /* another one has gone on there, and this one not yet where it is */
};

struct active_plans {
    struct active_plans_options options;
    struct active_plans_counters counters;
    struct lock lock;
    /* Guarded by lock: */
    struct active_plan active[ACTIVE_PLANS_MAX];
    uint64_t ids;
    uint64_t capacity; /* bytes that may be pushed, and */
    int64_t looked;    /* the time, of active_plans_next_push() */
};

static inline void active_plan_count(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* Bytes of whole pages. */
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

/* Has nothing been read for so long that the plan may be one that is not read any more? */
static inline bool active_plan_is_quiet(const struct active_plan *active, int64_t now)
{
    double quiet = (double)(now - active->last_ns) / NS_PER_S;
    double expected = active->units_per_s > 0 ? MARK_MOST / active->units_per_s : 0;

    return quiet > QUIET_S + 4 * expected;
}

/* The active plan that a read belongs to: the one that has the unit open, or whose reader is close,
 * else any reader of that folder. NULL: none. */
struct active_plan *active_plan_find_locked(struct active_plans *active_plans,
                                            const struct node *node);

/* Do samples that are read follow one another at all? Batches always count; but one that was read
 * very late, by a worker of a reader that is far ahead, is no reader of its own. */
bool active_plan_is_live(const struct active_plan *active);

bool active_plan_is_marked(const struct active_plan *active, uint64_t unit);

/* Units from that one on are pushed, perhaps again: marks that they had are none, any more. */
void active_plan_push_from(struct active_plan *active, uint64_t unit);

#endif
