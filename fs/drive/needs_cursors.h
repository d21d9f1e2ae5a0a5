/* The cursors of the active plans as the forecast sees them at one moment: which elements are still
 * to be read, of which samples, and at what times. */
#ifndef EPOCHFS_FS_DRIVE_NEEDS_CURSORS_H
#define EPOCHFS_FS_DRIVE_NEEDS_CURSORS_H

#include "base/checked.h"
#include "fs/drive/active_plans.h"
#include "fs/tree/catalog.h"

/* Distances are in elements from `at`: the element at `at` is 0 away, and the first one of the next
 * epoch is elements - at away. */
struct cursor {
    uint64_t id, jumps, epoch; /* as in struct active_cursor, and: */
    const struct catalog_item *item;
    const struct plan_entry *plan; /* NULL: samples in stored order */
    double speed;

    const struct dataset *ds;
    const struct field *field[KINDS_MAX]; /* [n_fields] the fields that are read; 0: all */
    unsigned n_fields;

    struct schedule schedule; /* of the plan, or of the stored order */
    uint64_t elements, unit;  /* of an epoch; of a unit */
    bool is_seeded;
    bool goes_on;                /* the next epoch is planned for, and has no cursor of its own */
    struct epoch_order order[2]; /* of this epoch and the next, if there is one */

    uint64_t at;         /* element, <= elements */
    uint64_t from, read; /* elements between which its reader has read all for certain */
    uint64_t run;        /* a new number after each jump */
    uint64_t from_run;   /* the run of the epoch before, if its reader continued into this one */
    uint64_t passed;     /* elements since this run began, or the one that it continues */
    uint64_t clock;      /* the time of `at` */
    double scale;        /* time of an element */
};

struct cursors {
    unsigned users;   /* that hold it; guarded by the lock of struct needs */
    uint64_t version; /* a new one when times do not compare with those before */
    uint64_t runs;    /* so far, and how many of them continue no other run: */
    uint64_t jumps;
    uint64_t latest; /* of all clocks so far */
    size_t n;
    struct cursor cursor[ACTIVE_PLANS_MAX];
};

/* The cursors as they are now; before: the previous ones. */
void cursors_make(const struct cursors *before, const struct active_cursor *active, size_t n,
                  struct cursors *ret);

/* The samples of count elements from that distance on, all in one epoch. */
void cursor_samples(const struct cursor *c, uint64_t distance, size_t count, uint64_t *ret);

/* The distances of the next elements that read one of count ranges of samples each, at most
 * CURSOR_ASKED_MOST. UINT64_MAX: none does before the end of the next epoch. For very many samples,
 * not all are looked at. */
#define CURSOR_ASKED_MOST 96
void cursor_distances(const struct cursor *c, size_t count, const struct plan_samples *wanted,
                      uint64_t *ret);

/* The last element that reads one of samples first .. last, as far as is planned: `elements` if an
 * epoch is planned after this one. UINT64_MAX: none since the reader began. For very many samples,
 * the last element of the epoch. */
uint64_t cursor_last(const struct cursor *c, uint64_t first, uint64_t last);

/* The time of the element at that distance. */
static inline uint64_t cursor_time(const struct cursor *c, uint64_t distance)
{
    return c->clock + (c->scale > 1 ? (uint64_t)(c->scale * (double)distance) : distance);
}

/* The time of an element of this epoch, which may be read already; at least 1. */
static inline uint64_t cursor_when(const struct cursor *c, uint64_t element)
{
    uint64_t behind = element < c->at ? cursor_time(c, c->at - element) - c->clock : 0;

    if (element >= c->at)
        return max_u64(cursor_time(c, element - c->at), 1);
    return c->clock > behind ? c->clock - behind : 1;
}

#endif
