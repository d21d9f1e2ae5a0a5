/* The forecast of needs for the stage: what the active plans will read next, and when bytes are
 * needed.
 *
 * Times count elements of the fastest reader; an element of a slower reader counts for more, as far
 * as the speeds are known. Memory is per active plan and per 64 KiB of a source, never per
 * sample. */
#ifndef EPOCHFS_FS_DRIVE_NEEDS_H
#define EPOCHFS_FS_DRIVE_NEEDS_H

#include "cache/stage/stage.h"
#include "fs/drive/active_plans.h"

struct needs;

/* The active plans, the catalog and the clock must outlive it. 0 or -ENOMEM. */
int needs_new(struct active_plans *active_plans, const struct catalog *catalog,
              const struct clock *clock, struct needs **ret);
void needs_free(struct needs *needs); /* takes NULL; after the stage's threads have ended */

/* For stage_set_needs(); lives as long as needs. next() looks at the active plans each time, when()
 * at most every few milliseconds. */
const struct stage_needs *needs_for_stage(struct needs *needs);

/* How far all readers are, for code that asks this machine's disks for bytes ahead of them. */
struct needs_place {
    uint64_t version;         /* while it stays the same, times compare with one another */
    uint64_t now;             /* needs of earlier times were read, or made into pushed files */
    const struct dataset *ds; /* the fastest reader's; NULL: nothing is read */
    uint64_t bytes;           /* of the sources that are read; of very many files, of some */
    uint64_t left;            /* bytes that the readers still need in their epochs */
};

/* Looks at the active plans each time. Only the thread of next(). */
struct needs_place needs_place(struct needs *needs);

#endif
