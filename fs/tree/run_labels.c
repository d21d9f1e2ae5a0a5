/* What comes from an index is bounded where it is used: its file may be changed while it is
 * mapped. */
#include "fs/tree/run_labels.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/search.h"

/* ---- classes ---- */

static uint64_t class_count(const struct plan_classes *classes, uint64_t c)
{
    const struct run_classes *r = (const struct run_classes *)classes;

    return r->end[c] - r->at[c];
}

static uint64_t class_place(const struct plan_classes *classes, uint64_t c, uint64_t i)
{
    const struct run_classes *r = (const struct run_classes *)classes;

    return min_u64(r->arrays->member[r->at[c] + i] - r->first, r->classes.places - 1);
}

static void class_find(const struct plan_classes *classes, uint64_t place, uint64_t *ret_c,
                       uint64_t *ret_i)
{
    const struct run_classes *r = (const struct run_classes *)classes;
    uint64_t where = r->arrays->where[r->first + place];
    uint64_t c = search_last_up_to(r->at, sizeof(*r->at), r->classes.n, where);

    *ret_c = c;
    *ret_i = where < r->at[c] ? 0 : min_u64(where - r->at[c], r->end[c] - r->at[c] - 1);
}

static const struct plan_classes_ops classes_ops = {class_count, class_place, class_find};

/* Find the samples of the run in each class, and omit classes that have none. */
static int cut_classes(struct run_classes *r, uint64_t length)
{
    const struct label_arrays *a = r->arrays;
    uint64_t n = 0, *at = malloc(16 * a->classes + 1), *end = at + a->classes;

    if (!at)
        return -ENOMEM;
    for (uint64_t c = 0; c < a->classes; c++) {
        const uint32_t *member = a->member + a->begin[c];
        uint64_t members = a->begin[c + 1] - a->begin[c];

        at[n] = a->begin[c] + SEARCH(members, i, member[i] < r->first);
        end[n] = a->begin[c] + SEARCH(members, i, member[i] < r->first + length);
        n += end[n] > at[n];
    }
    r->owned = at;
    r->at = at;
    r->end = end;
    r->classes.n = n;
    return 0;
}

int run_classes_init(struct run_classes *ret, const struct label_arrays *arrays, uint64_t first,
                     uint64_t length, uint64_t *ret_held)
{
    struct run_classes *r = ret;
    bool is_whole = !first && length == arrays->n;

    *r = (struct run_classes){.classes = {.ops = &classes_ops, .places = length},
                              .arrays = arrays,
                              .first = first,
                              .at = arrays->begin,
                              .end = arrays->begin + 1};
    r->classes.n = arrays->classes;
    if (!is_whole && cut_classes(r, length) < 0)
        return -ENOMEM;
    *ret_held = is_whole ? 0 : 16 * arrays->classes;
    for (uint64_t c = 0; c < r->classes.n; c++) {
        uint64_t count = class_count(&r->classes, c);

        r->classes.least = c ? min_u64(r->classes.least, count) : count;
        r->classes.most = max_u64(r->classes.most, count);
    }
    return 0;
}

void run_classes_release(struct run_classes *r)
{
    free(r->owned);
    r->owned = NULL;
}

/* ---- weights ---- */

static uint64_t weight_before(const struct plan_weights *weights, uint64_t place)
{
    const struct run_weights *r = (const struct run_weights *)weights;

    return min_u64(r->sum[place] - r->sum[0], r->weights.total);
}

static uint64_t weight_place(const struct plan_weights *weights, uint64_t value)
{
    const struct run_weights *r = (const struct run_weights *)weights;
    uint64_t target = r->sum[0] + value;
    uint64_t from = search_last_up_to(r->top, sizeof(*r->top), r->tops, target) * RUN_TOP;
    uint64_t n = min_u64(RUN_TOP, r->weights.places - from);

    return from + search_last_up_to(r->sum + from, sizeof(*r->sum), n, target);
}

static const struct plan_weights_ops weights_ops = {weight_before, weight_place};

int run_weights_init(struct run_weights *ret, const struct label_arrays *arrays, uint64_t first,
                     uint64_t length, uint64_t *ret_held)
{
    struct run_weights *r = ret;
    const uint64_t *sum = arrays->sum + first;

    *r = (struct run_weights){
        .weights = {.ops = &weights_ops, .places = length, .total = sum[length] - sum[0]},
        .sum = sum,
        .tops = ceil_div(length, RUN_TOP)};
    if (!r->weights.total)
        return -EDOM;
    r->top = malloc(8 * r->tops);
    if (!r->top)
        return -ENOMEM;
    for (uint64_t i = 0; i < r->tops; i++)
        r->top[i] = sum[i * RUN_TOP];
    *ret_held = 8 * r->tops;
    return 0;
}

void run_weights_release(struct run_weights *r)
{
    free(r->top);
    r->top = NULL;
}
