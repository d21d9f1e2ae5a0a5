/* The shares of a mix: after any number of positions, each source was shown as often as its weight
 * says, less than one off. */
#ifndef EPOCHFS_FS_AUDIT_SHARES_H
#define EPOCHFS_FS_AUDIT_SHARES_H

#include <stdint.h>

#include "fs/audit/batch.h"
#include "fs/audit/tally.h"

#define AUDIT_SOURCES_MAX   256
#define AUDIT_STRETCHES_MAX 64
#define AUDIT_POSITION_MAX  (UINT64_C(1) << 62) /* weights change long before */

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

/* How often some positions from `from` on show a source, at least and at most. from is at most
 * AUDIT_POSITION_MAX. */
void audit_shares_bounds(const struct audit_shares *shares, unsigned source, uint64_t from,
                         uint64_t positions, uint64_t *ret_least, uint64_t *ret_most);

/* shares: sources and stretches are set. Look at `positions` positions from `position` on. */
void audit_shares_begin(struct audit_shares *shares, uint64_t position, uint64_t positions);

/* The next batch, of one rank of one: compare, and report faults to the tally. */
void audit_shares_note(struct audit_shares *shares, const struct audit_batch *batch,
                       const char *name, struct audit_tally *tally);

#endif
