/* The samples of a selection, one at a time, for a walk that mostly goes forward: those that follow
 * are asked for together, since a single place of a shuffled order costs several times its share of
 * many. Who jumps about gets what it asks for, and no more.
 *
 * One walk's: no lock, one thread. */
#ifndef EPOCHFS_FORMAT_CORE_SAMPLE_WINDOW_H
#define EPOCHFS_FORMAT_CORE_SAMPLE_WINDOW_H

#include "format/core/selection.h"

#define SAMPLE_WINDOW 256

struct sample_window {
    const struct selection *sel; /* set by whoever makes it; all else begins as 0 */
    uint64_t first;              /* the place of sample[0] */
    size_t n;
    uint64_t next; /* the place behind the one that was asked for last */
    uint64_t sample[SAMPLE_WINDOW];
};

/* The sample at a place below sel->count. */
uint64_t sample_window_at(struct sample_window *w, uint64_t place);

#endif
