/* The parts of the forecast, which fs/drive/needs.c, needs_when.c and needs_moment.c share; no
 * other file includes this. */
#ifndef EPOCHFS_FS_DRIVE_NEEDS_PARTS_H
#define EPOCHFS_FS_DRIVE_NEEDS_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/lock.h"
#include "format/core/extents.h"
#include "fs/drive/extent_map.h"
#include "fs/drive/needs.h"
#include "fs/drive/needs_cursors.h"
#include "fs/tree/mixes.h"

#define NEEDS_MOST (2 * KINDS_MAX * EXTENTS_MOST)
#define ANSWERS    (1 << 18) /* a power of two */

/* How far the needs of a cursor have been reported. */
struct horizon {
    uint64_t run;
    uint64_t reported; /* in elements like cursor.passed, */
    uint64_t within;   /* and so many samples of the unit that comes next, if there are units */
};

#define CURSOR_SIZE 64 /* numbers of cursors; ACTIVE_PLANS_MAX: none */

/* The map of a dataset whose samples differ. */
struct dataset_map {
    _Atomic bool is_wanted;
    _Atomic(struct extent_map *) ready;
    /* Only the thread of next() uses: */
    struct extent_map *making;
    bool failed;
};

/* An answer of when(). check is the exclusive or of the other two with a hash of the question, so a
 * slot that two threads have written at once answers no question. */
struct answer {
    _Atomic uint64_t check, time;
    _Atomic uint64_t whose; /* the number of the cursor, and cursors.version above it */
};

struct needs {
    /* Set by needs_new(), then constant: */
    const struct clock *clock;
    struct stage_needs for_stage;
    struct active_plans *active_plans;
    const struct catalog *catalog;
    struct dataset_map *map; /* [catalog->n] */
    struct answer *answer;   /* [ANSWERS] */

    struct lock lock;
    pthread_cond_t refreshed;
    /* Guarded by lock: */
    bool refreshing;               /* one thread makes the cursors, with no lock held */
    struct cursors *cursors;       /* the current ones; owned */
    struct cursors *spare_cursors; /* memory for the next ones; owned, may be NULL */

    _Atomic int64_t refreshed_at;

    /* Only the thread of next() uses: */
    uint64_t jumps; /* cursors.jumps of the last call */
    size_t n_cursors;
    struct horizon horizon[ACTIVE_PLANS_MAX];
    uint64_t needs_run; /* the run that the needs belong to, */
    uint64_t needs_end; /* and the element up to which they go, like cursor.passed */
    size_t n_needs, returned;
    struct stage_need need[NEEDS_MOST];
};

/* A dataset whose samples a cursor reads: its own, or a source of it, if it is a mix. */
struct cursor_part {
    const struct dataset *ds;
    uint64_t first; /* its samples have these numbers for the cursor, from first on */
    struct dataset_map *map;
};

static inline unsigned needs_parts(const struct cursor *c)
{
    return c->item->mixture ? c->item->mixture->spec->n_sources : 1;
}

static inline struct cursor_part needs_part(const struct needs *needs, const struct cursor *c,
                                            unsigned i)
{
    const struct mixture *m = c->item->mixture;

    if (!m)
        return (struct cursor_part){c->ds, 0, &needs->map[c->item - needs->catalog->item]};
    return (struct cursor_part){m->ds[i], m->order->list[i].first, &needs->map[m->item[i]]};
}

/* ---- the cursors of one moment (needs_moment.c) ---- */

/* The current cursors, constant until they are let go of. */
struct cursors *needs_hold_cursors(struct needs *needs);
void needs_let_go_of_cursors(struct needs *needs, struct cursors *cursors);

/* Make the cursors again from the active plans, unless they are fresh. must: even then. Without
 * memory they stay as they were. */
void needs_refresh(struct needs *needs, bool must);

/* ---- the way back (needs_when.c): see struct stage_needs; ctx: the struct needs ---- */

void needs_when(void *ctx, size_t n, struct stage_need *need);
uint64_t needs_last(void *ctx, const struct blob *blob, uint64_t off, uint64_t len);
uint64_t needs_now(void *ctx, uint64_t *ret_version);

#endif
