/* What dataset.json says of a mix: its sources, and their weights. */
#ifndef EPOCHFS_FS_CLI_AUDIT_MIX_H
#define EPOCHFS_FS_CLI_AUDIT_MIX_H

#include <limits.h>

#include "base/json.h"
#include "fs/audit/shares.h"

struct audit_mix {
    uint64_t epoch_samples;
    unsigned n; /* sources; 0: it is no mix */
    struct audit_source source[AUDIT_SOURCES_MAX];
    char *folder[AUDIT_SOURCES_MAX]; /* of each source's list in its stored order; owned */
    struct audit_shares shares;      /* sources and stretches are set */
};

void audit_mix_release(struct audit_mix *mix);

/* Read it. dataset: the folder of the mix; samples: its number of samples; batch: of the batches of
 * the sources that will be read. {0} for another dataset. 0; -EBADMSG: the text says what cannot
 * be; or -ENOMEM. */
int audit_mix_read(const json_t *json, const char *dataset, uint64_t samples, uint64_t batch,
                   struct audit_mix *ret);

#endif
