/* Bytes of a blob around the place of a pass that goes from header to header. After a hop it reads
 * little; where headers follow each other closely it reads on, twice as much each time. One thread.
 */
#ifndef EPOCHFS_FORMAT_INDEX_PASS_WINDOW_H
#define EPOCHFS_FORMAT_INDEX_PASS_WINDOW_H

#include "base/blob.h"
#include "base/diag.h"

struct pass_window {
    size_t least, most;      /* bytes that are read after a hop, and at most */
    struct read_context *rc; /* of its reads; NULL: READ_WAITS */

    /* Private: */
    uint64_t start;
    size_t have, step, capacity;
    uint8_t *bytes; /* [capacity] */
};

/* Has it the len bytes at byte at? Otherwise, pass_window_at() reads. */
static inline bool pass_window_has(const struct pass_window *w, uint64_t at, uint64_t len)
{
    return at >= w->start && len <= w->have && at - w->start <= w->have - len;
}

/* The byte behind those that it has. */
static inline uint64_t pass_window_end(const struct pass_window *w)
{
    return w->start + w->have;
}

/* The len bytes at byte at of the blob, which are before `end`, as is all that is read; end is at
 * most its size. Valid until the next call. 0; -ENOMEM; or as blob_read(). */
int pass_window_at(struct pass_window *w, const struct blob *blob, uint64_t at, uint64_t len,
                   uint64_t end, const uint8_t **ret, struct diag *d);

/* Begin with another blob, in the memory of the last. */
static inline void pass_window_again(struct pass_window *w)
{
    w->have = 0;
}

void pass_window_release(struct pass_window *w); /* of one that starts with nothing private set */

#endif
