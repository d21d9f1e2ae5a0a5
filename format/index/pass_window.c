#include "format/index/pass_window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

#define GAP 4096u /* bytes that are rather read than hopped over */

/* Room for size bytes from byte at on, of which those are there that it has already: *ret_kept. A
 * window that one large part has made very large gets smaller again. */
static int pass_window_move(struct pass_window *w, uint64_t at, size_t size, size_t *ret_kept)
{
    bool is_inside = at >= w->start && at < pass_window_end(w);
    size_t kept = is_inside ? (size_t)(pass_window_end(w) - at) : 0, capacity = w->capacity;
    const uint8_t *from = kept ? w->bytes + (at - w->start) : NULL;
    uint8_t *bytes = w->bytes;

    if (size > w->capacity || (size <= w->most && w->capacity > 8 * w->most)) {
        capacity = (size_t)max_u64(size, w->most);
        bytes = malloc(capacity);
        if (!bytes)
            return -ENOMEM;
    }
    if (kept)
        memmove(bytes, from, kept);
    if (bytes != w->bytes)
        free(w->bytes);
    w->bytes = bytes;
    w->capacity = capacity;
    w->start = at;
    w->have = 0;
    *ret_kept = kept;
    return 0;
}

int pass_window_at(struct pass_window *w, const struct blob *blob, uint64_t at, uint64_t len,
                   uint64_t end, const uint8_t **ret, struct diag *d)
{
    if (!pass_window_has(w, at, len)) {
        bool follows = w->have && at >= w->start && at <= pass_window_end(w) + GAP;
        size_t size, kept;
        int r;

        w->step = follows ? (size_t)min_u64(2 * w->step, w->most) : w->least;
        size = (size_t)min_u64(max_u64(w->step, len), end - at);
        r = pass_window_move(w, at, size, &kept);
        if (r == 0)
            r = blob_read(w->rc, blob, w->bytes + kept, size - kept, at + kept, d);
        if (r < 0)
            return r;
        w->have = size;
    }
    *ret = w->bytes + (at - w->start);
    return 0;
}

void pass_window_release(struct pass_window *w)
{
    free(w->bytes);
    w->bytes = NULL;
    w->have = w->capacity = 0;
}
