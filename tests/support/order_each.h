/* An order, one number at a time and by strides, as tests look at it. */
#ifndef EPOCHFS_TESTS_SUPPORT_ORDER_EACH_H
#define EPOCHFS_TESTS_SUPPORT_ORDER_EACH_H

#include "fs/plan/order.h"

static inline uint64_t order_sample(const struct order *o, uint64_t position)
{
    order_map(o, 1, &position);
    return position;
}

static inline uint64_t order_position(const struct order *o, uint64_t sample)
{
    order_unmap(o, 1, &sample);
    return sample;
}

/* The samples at positions first, first + stride, ... each modulo n. */
static inline void order_samples(const struct order *o, uint64_t first, size_t count,
                                 uint64_t stride, uint64_t *ret)
{
    uint64_t position = first % o->n;

    stride %= o->n;
    for (size_t k = 0; k < count; k++) {
        ret[k] = position;
        position = position >= o->n - stride ? position - (o->n - stride) : position + stride;
    }
    order_map(o, count, ret);
}

/* The number that a member of the family sends x to. */
static inline uint64_t family_send_one(const struct permutation_family *f,
                                       struct permutation_member m, uint64_t x)
{
    family_send_each(f, &m, 1, &x);
    return x;
}

#endif
