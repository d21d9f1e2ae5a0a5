#include "format/index/pass_window.h"

#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"

#define GAP 4096u /* bytes that are rather read than hopped over */

static int pass_window_set_capacity(struct pass_window *w, size_t capacity)
{
    uint8_t *bytes = malloc(capacity);

    if (!bytes)
        return -ENOMEM;
    free(w->bytes);
    w->bytes = bytes;
    w->capacity = capacity;
    return 0;
}

int pass_window_at(struct pass_window *w, const struct blob *blob, uint64_t at, uint64_t len,
                   uint64_t end, const uint8_t **ret, struct diag *d)
{
    if (!pass_window_has(w, at, len)) {
        bool follows = w->have && at >= w->start && at <= pass_window_end(w) + GAP;
        uint64_t want;
        int r = 0;

        w->step = follows ? (size_t)min_u64(2 * w->step, w->most) : w->least;
        want = min_u64(max_u64(w->step, len), end - at);
        w->have = 0;
        if (want > w->capacity)
            r = pass_window_set_capacity(w, (size_t)max_u64(want, w->most));
        if (r == 0)
            r = blob_read(w->rc, blob, w->bytes, (size_t)want, at, d);
        if (r < 0)
            return r;
        w->start = at;
        w->have = (size_t)want;
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
