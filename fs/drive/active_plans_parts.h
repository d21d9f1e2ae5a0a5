/* Shared by the files of the active plans: fs/drive/active_plans.c (reads move them),
 * fs/drive/active_plans_push.c (what is pushed), fs/drive/active_plans_list.c (what others see).
 *
 * An active plan has four parts, each with its invariants and tests: its reader (where it is), the
 * window (what is pushed ahead of it), the open units (what it is reading), and its speed. The
 * parts know nothing of each other; what a read means for all of them is decided here. */
#ifndef EPOCHFS_FS_DRIVE_ACTIVE_PLANS_PARTS_H
#define EPOCHFS_FS_DRIVE_ACTIVE_PLANS_PARTS_H

#include <stdatomic.h>

#include "base/lock.h"
#include "fs/drive/active_plans.h"
#include "fs/drive/open_units.h"
#include "fs/drive/push_window.h"
#include "fs/drive/reader.h"
#include "fs/drive/reader_speed.h"

struct active_plan {
    uint64_t id;                   /* 0: free */
    const struct plan_entry *plan; /* NULL: samples in stored order */
    const struct catalog_item *item;
    const struct folder *folder; /* NULL: announced, and not read yet */
    bool is_samples;
    uint64_t epoch;
    struct node node;        /* a node that was read */
    uint64_t columns;        /* bits: the columns that are read */
    uint64_t units, samples; /* of the epoch; of a unit */
    struct reader reader;
    struct push_window window;
    struct open_units open;
    struct reader_speed speed;
};

struct active_plans {
    struct active_plans_options options;
    struct active_plans_counters counters;
    struct lock lock;
    /* Guarded by lock: */
    struct active_plan active[ACTIVE_PLANS_MAX];
    uint64_t ids;
    bool exceeds;      /* see active_plans_exceed() */
    uint64_t capacity; /* bytes that may be pushed, */
    int64_t looked;    /* and the time; both of the last active_plans_next_push() */
};

static inline void active_plan_count(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static inline uint64_t active_plan_unit(const struct node *node)
{
    return node->number;
}

/* Does it have a reader of its own? Samples count once several were read in sequence, batches at
 * once. */
static inline bool active_plan_is_live(const struct active_plan *active)
{
    return active->id && reader_is_live(&active->reader);
}

/* Has nothing been read for so long that the plan may no longer be in use? */
static inline bool active_plan_is_quiet(const struct active_plan *active, int64_t now)
{
    return reader_speed_is_quiet(&active->speed, PUSH_WINDOW_STRIDE, now);
}

/* The active plan that a read belongs to: one that has the unit open or whose reader is close,
 * otherwise the one of that folder that was read last. NULL: none. */
struct active_plan *active_plan_find_locked(struct active_plans *active_plans,
                                            const struct node *node);

/* Push from that unit on, perhaps again. */
static inline void active_plan_push_from(struct active_plan *active, uint64_t unit)
{
    push_window_from(&active->window, unit);
    open_units_back(&active->open, unit);
}

#endif
