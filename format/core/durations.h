/* How long the samples of a dataset of audio are, by the headers of their files: for batches of so
 * many seconds. What has audio offers it (ds->durations), whether or not the mount shows arrays. */
#ifndef EPOCHFS_FORMAT_CORE_DURATIONS_H
#define EPOCHFS_FORMAT_CORE_DURATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"

struct durations {
    /* Read headers for a moment, of a dataset that is ready. 1: all lengths are known, also by an
     * earlier mount; 0: not yet; or -errno with the reason in d, after which -EREMOTEIO and -EINTR
     * go on. One thread at a time. */
    int (*step)(struct durations *durations, struct diag *d);
    /* Then, any thread: frames and frames per second of a sample. false: it has no audio, or none
     * that can be read; where batches have zeros instead, both numbers are 0. */
    bool (*get)(const struct durations *durations, uint64_t sample, uint64_t *ret_frames,
                uint32_t *ret_rate);
};

#endif
