/* Windows inside documents (-o across_docs=no): how many begin before every 64th document is known;
 * the rest is read when a window is. */
#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/search.h"
#include "format/tokens/windows.h"

#define GROUP 64
#define STEPS 256 /* groups of a step of preparing */

uint64_t split_groups(const struct token_stream *s)
{
    return ceil_div(s->documents.n, GROUP);
}

int split_prepare(struct split *split, const struct token_stream *s, uint64_t tokens, uint64_t step,
                  int (*each)(void *ctx, uint64_t document, uint64_t tokens), void *ctx,
                  struct diag *d)
{
    uint64_t start[GROUP + 1];

    if (!split->before)
        split->before = calloc((size_t)split_groups(s) + 1, sizeof(*split->before));
    if (!split->before)
        return -ENOMEM;
    for (unsigned i = 0; i < STEPS && split->checked < s->documents.n; i++) {
        size_t n = (size_t)min_u64(GROUP, s->documents.n - split->checked);
        int r = documents_starts(READ_WAITS, s, split->checked, n + 1, start, d);

        if (r < 0)
            return r;
        for (size_t k = 0; k < n && r == 0; k++, split->checked++) {
            split->n += windows_in(start[k + 1] - start[k], tokens, step);
            r = each ? each(ctx, split->checked, start[k + 1] - start[k]) : 0;
        }
        if (r < 0)
            return r;
        split->before[ceil_div(split->checked, GROUP)] = split->n;
    }
    return split->checked >= s->documents.n;
}

int split_place(struct read_context *rc, const struct split *split, const struct token_stream *s,
                uint64_t tokens, uint64_t step, uint64_t window, uint64_t *ret_start,
                struct diag *d)
{
    uint64_t low =
        search_last_up_to(split->before, sizeof(*split->before), split_groups(s), window);
    uint64_t start[GROUP + 1], left;
    size_t n;
    int r;

    n = (size_t)min_u64(GROUP, s->documents.n - low * GROUP);
    r = documents_starts(rc, s, low * GROUP, n + 1, start, d);
    if (r < 0)
        return r;
    left = window - split->before[low];
    for (size_t k = 0; k < n; k++) {
        uint64_t here = windows_in(start[k + 1] - start[k], tokens, step);

        if (left < here) {
            *ret_start = start[k] + left * step;
            return 0;
        }
        left -= here;
    }
    return diag_set(d, -ESTALE, "%s: documents %llu to %llu: expected as many tokens as at first",
                    blob_name(s->index), (unsigned long long)(low * GROUP),
                    (unsigned long long)(low * GROUP + n));
}
