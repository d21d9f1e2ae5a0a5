/* The shares of a mix: after any number of positions, each source was shown as often as its weight
 * says, less than one off. */
#ifndef EPOCHFS_FS_AUDIT_SHARES_H
#define EPOCHFS_FS_AUDIT_SHARES_H

#include <stdint.h>

#include "fs/audit/batch.h"
#include "fs/audit/tally.h"

#define AUDIT_SOURCES_MAX   256
#define AUDIT_STRETCHES_MAX 64

/* Weights from a position of the mix on. */
struct audit_stretch {
    uint64_t start;
    uint64_t weight[AUDIT_SOURCES_MAX], sum;
};

struct audit_shares {
    unsigned n_sources, n_stretches;
    struct audit_stretch stretch[AUDIT_STRETCHES_MAX]; /* in ascending order, the first at 0 */
    uint64_t position;                                 /* of the mix, the next one */
    uint64_t left;                                     /* positions to look at */
    /* Of this stretch: */
    unsigned at;
    uint64_t n; /* positions seen of it, and how often each source was shown */
    uint64_t shown[AUDIT_SOURCES_MAX];
    uint64_t slack; /* how many a source may be off, at most: 2 if the first position that is seen
                       is not the stretch's first one */
};

/* shares: sources and stretches are set. Look at `positions` positions from `position` on. */
void audit_shares_begin(struct audit_shares *shares, uint64_t position, uint64_t positions);

/* The next batch, of one rank of one: compare, and report faults to the tally. */
void audit_shares_note(struct audit_shares *shares, const struct audit_batch *batch,
                       const char *name, struct audit_tally *tally);

#endif
