#include "support/test_labels.h"

#include <stddef.h>

#include "base/checked.h"

static const struct test_labels *of_classes(const struct plan_classes *c)
{
    return (const struct test_labels *)(const void *)c; /* its first member */
}

static const struct test_labels *of_weights(const struct plan_weights *w)
{
    return (const struct test_labels *)(const void *)((const char *)w -
                                                      offsetof(struct test_labels, weights));
}

static uint64_t class_count(const struct plan_classes *c, uint64_t class)
{
    return of_classes(c)->count[class];
}

static uint64_t class_place(const struct plan_classes *c, uint64_t class, uint64_t i)
{
    return of_classes(c)->place[class][i];
}

static void class_find(const struct plan_classes *c, uint64_t place, uint64_t *ret_c,
                       uint64_t *ret_i)
{
    for (*ret_c = 0; *ret_c < c->n; ++*ret_c)
        for (*ret_i = 0; *ret_i < of_classes(c)->count[*ret_c]; ++*ret_i)
            if (of_classes(c)->place[*ret_c][*ret_i] == place)
                return;
}

static uint64_t weights_before(const struct plan_weights *w, uint64_t place)
{
    return of_weights(w)->sum[place];
}

static uint64_t weights_place(const struct plan_weights *w, uint64_t value)
{
    uint64_t place = 0;

    while (of_weights(w)->sum[place + 1] <= value)
        place++;
    return place;
}

void test_labels_make(struct test_labels *ret, uint64_t n, const uint64_t *label,
                      const uint64_t *weight)
{
    static const struct plan_classes_ops classes_ops = {class_count, class_place, class_find};
    static const struct plan_weights_ops weights_ops = {weights_before, weights_place};

    *ret = (struct test_labels){
        .classes = {.ops = &classes_ops, .places = n, .least = UINT64_MAX},
        .weights = {.ops = &weights_ops, .places = n},
    };
    for (uint64_t i = 0; i < n; i++)
        ret->sum[i + 1] = ret->sum[i] + weight[i];
    ret->weights.total = ret->sum[n];
    for (uint64_t l = 0, all = 0; l < TEST_PLACES_MOST; l++) {
        uint64_t c = ret->classes.n;

        ret->place[c] = ret->all + all;
        for (uint64_t i = 0; i < n; i++)
            if (label[i] == l)
                ret->place[c][ret->count[c]++] = i;
        if (!ret->count[c])
            continue;
        all += ret->count[c];
        ret->classes.least = min_u64(ret->classes.least, ret->count[c]);
        ret->classes.most = max_u64(ret->classes.most, ret->count[c]);
        if (++ret->classes.n == TEST_PLACES_MOST)
            break;
    }
}
