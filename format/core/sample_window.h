/* The samples of a selection, one at a time, for a walk that mostly goes forward. The window
 * computes the following samples together, since in a shuffled order a single place costs several
 * times its share of many. A caller that jumps about gets only the samples it asks for.
 *
 * Each walk has its own window: no lock, one thread. */
#ifndef EPOCHFS_FORMAT_CORE_SAMPLE_WINDOW_H
#define EPOCHFS_FORMAT_CORE_SAMPLE_WINDOW_H

#include "format/core/selection.h"

#define SAMPLE_WINDOW 256

struct sample_window {
    const struct selection *sel; /* set by the window's maker; all else begins as 0 */
    uint64_t first;              /* the place of sample[0] */
    size_t n;
    uint64_t next; /* the place after the last request */
    uint64_t sample[SAMPLE_WINDOW];
};

/* The sample at a place below sel->count. */
uint64_t sample_window_at(struct sample_window *w, uint64_t place);

#endif
