/* Order version 1 as an order of positions: the shuffle of a list, or without a seed the list
 * itself. */
#include "fs/plan/epoch_order.h"

#include "base/checked.h"

static void epoch_order_begin(const struct order_spec *spec, uint64_t epoch,
                              struct epoch_order *ret)
{
    if (spec->seeded)
        order_init(&ret->of_kind.shuffle, spec->seed, epoch, spec->length, spec->window);
}

static void epoch_order_at(const struct order_spec *spec, const struct epoch_order *e, size_t count,
                           uint64_t *x)
{
    if (spec->seeded)
        order_map(&e->of_kind.shuffle, count, x);
}

static size_t epoch_order_positions(const struct order_spec *spec, const struct epoch_order *e,
                                    size_t n, struct order_walk *walk, size_t capacity,
                                    uint64_t *ret, uint32_t *whose)
{
    size_t got = 0;

    for (uint32_t i = 0; i < n; i++)
        for (; walk[i].place <= walk[i].last && got < capacity; got++) {
            ret[got] = walk[i].place++;
            whose[got] = i;
        }
    if (spec->seeded)
        order_unmap(&e->of_kind.shuffle, got, ret);
    return got;
}

static uint64_t epoch_order_count(const struct order_spec *spec, uint64_t first, uint64_t last)
{
    (void)spec;
    return last - first + 1;
}

const struct order_ops order_permutation = {
    .name = "permutation",
    .version = ORDER_VERSION,
    .begin = epoch_order_begin,
    .at = epoch_order_at,
    .positions = epoch_order_positions,
    .count = epoch_order_count,
};
