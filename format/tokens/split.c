/* Windows inside documents (-o across_docs=no): how many begin before every 64th document is known;
 * the rest is read when a window is. */
#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/search.h"
#include "format/tokens/windows.h"

#define GROUP 64
#define STEPS 256 /* groups of a step of preparing */

uint64_t split_groups(const struct documents *docs)
{
    return ceil_div(docs->n, GROUP);
}

int split_prepare(struct split *split, const struct documents *docs, uint64_t tokens, uint64_t step,
                  int (*each)(void *ctx, uint64_t document, uint64_t tokens), void *ctx,
                  struct diag *d)
{
    uint64_t start[GROUP + 1];

    if (!split->before)
        split->before = calloc((size_t)split_groups(docs) + 1, sizeof(*split->before));
    if (!split->before)
        return -ENOMEM;
    for (unsigned i = 0; i < STEPS && split->checked < docs->n; i++) {
        size_t n = (size_t)min_u64(GROUP, docs->n - split->checked);
        int r = documents_starts(READ_WAITS, docs, split->checked, n + 1, start, d);

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
    return split->checked >= docs->n;
}

int split_place(struct read_context *rc, const struct split *split, const struct documents *docs,
                uint64_t tokens, uint64_t step, uint64_t window, uint64_t *ret_start,
                struct diag *d)
{
    uint64_t low =
        search_last_up_to(split->before, sizeof(*split->before), split_groups(docs), window);
    uint64_t start[GROUP + 1], left;
    size_t n;
    int r;

    n = (size_t)min_u64(GROUP, docs->n - low * GROUP);
    r = documents_starts(rc, docs, low * GROUP, n + 1, start, d);
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
                    blob_name(docs->blob), (unsigned long long)(low * GROUP),
                    (unsigned long long)(low * GROUP + n));
}
