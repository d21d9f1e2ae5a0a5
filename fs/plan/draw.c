/* draw=N:HOW: systematic draws with replacement.
 *
 * The places of the list lie side by side on a line of length W, each as long as its share. N draws
 * are at equal distances on it, from an offset on that each epoch has of its own. So a place is
 * drawn floor or ceil of its share of N times. Positions are the draws in the order of version 1.
 *
 * Draw x is at y = (x W + offset) / N, a rational number; here it is the pair of its numerator and
 * N. In a uniform draw W is the number of places, and each is 1 long. With weights W is their sum.
 * In a balanced draw each class is 2^32 long, whatever it has, and its places share that equally.
 */
#include "base/checked.h"
#include "fs/plan/epoch_order.h"

__extension__ typedef unsigned __int128 u128;

#define CLASS_BITS 32 /* length of a class on the line */

static uint64_t line_of(const struct order_spec *spec)
{
    if (spec->weights)
        return spec->weights->total;
    if (spec->classes)
        return spec->classes->n << CLASS_BITS;
    return spec->places;
}

static void draw_begin(const struct order_spec *spec, uint64_t epoch, struct epoch_order *ret)
{
    uint64_t n = spec->length, line;

    if (!n)
        return;
    line = line_of(spec);
    ret->offset = line / 2;
    if (!spec->seeded)
        return;
    order_init(&ret->of_kind.shuffle, spec->seed, epoch, n, spec->window);
    ret->offset = (uint64_t)((u128)order_key(spec->seed, epoch, LANE_DRAW, n) * line >> 64);
}

/* ---- from draws to places ---- */

/* line: a numerator of y. */
static uint64_t place_of_class(const struct plan_classes *c, uint64_t n, u128 line)
{
    uint64_t class = (uint64_t)((line >> CLASS_BITS) / n);
    u128 within = line - ((u128) class * n << CLASS_BITS);
    uint64_t members = c->ops->count(c, class);

    return c->ops->place(c, class, (uint64_t)((within * members >> CLASS_BITS) / n));
}

static void draw_at(const struct order_spec *spec, const struct epoch_order *e, size_t count,
                    uint64_t *x)
{
    uint64_t line = line_of(spec), n = spec->length;

    if (spec->seeded)
        order_map(&e->of_kind.shuffle, count, x);
    for (size_t i = 0; i < count; i++) {
        u128 y = (u128)x[i] * line + e->offset;

        if (spec->classes)
            x[i] = place_of_class(spec->classes, n, y);
        else
            x[i] = (uint64_t)(y / n);
    }
    for (size_t i = 0; i < count && spec->weights; i++)
        x[i] = spec->weights->ops->place(spec->weights, x[i]);
}

/* ---- and back ---- */

/* The first draw whose numerator is not below `line`. */
static uint64_t draw_from(const struct order_spec *spec, const struct epoch_order *e, u128 line)
{
    uint64_t all = line_of(spec);

    return line <= e->offset ? 0 : (uint64_t)((line - e->offset + all - 1) / all);
}

/* The draws of places first .. last, or at least those of first: *ret up to the end that is
 * returned. *ret_next: the place after those. */
static uint64_t draws_of(const struct order_spec *spec, const struct epoch_order *e, uint64_t first,
                         uint64_t last, uint64_t *ret, uint64_t *ret_next)
{
    uint64_t n = spec->length;

    if (spec->classes) {
        const struct plan_classes *c = spec->classes;
        u128 size = (u128)n << CLASS_BITS, start;
        uint64_t class, member, members;

        c->ops->find(c, first, &class, &member);
        members = c->ops->count(c, class);
        start = class * size;
        *ret_next = first + 1;
        *ret = draw_from(spec, e, start + (size * member + members - 1) / members);
        return draw_from(spec, e, start + (size * (member + 1) + members - 1) / members);
    }
    *ret_next = last + 1;
    if (spec->weights) {
        first = spec->weights->ops->before(spec->weights, first);
        last = spec->weights->ops->before(spec->weights, last + 1);
    } else {
        last++;
    }
    *ret = draw_from(spec, e, (u128)first * n);
    return draw_from(spec, e, (u128)last * n);
}

/* The draws of a walk's places from where it is, at most capacity of them, moving it on. */
static size_t walk_draws(const struct order_spec *spec, const struct epoch_order *e,
                         struct order_walk *walk, size_t capacity, uint64_t *ret)
{
    uint64_t start, next;
    size_t n = 0;

    while (n < capacity && walk->place <= walk->last) {
        uint64_t end = draws_of(spec, e, walk->place, walk->last, &start, &next);

        for (start += walk->done; start < end && n < capacity; start++, walk->done++)
            ret[n++] = start;
        if (start >= end) {
            walk->place = next;
            walk->done = 0;
        }
    }
    return n;
}

static size_t draw_positions(const struct order_spec *spec, const struct epoch_order *e, size_t n,
                             struct order_walk *walk, size_t capacity, uint64_t *ret,
                             uint32_t *whose)
{
    size_t got = 0;

    for (uint32_t i = 0; i < n && got < capacity; i++) {
        size_t some = walk_draws(spec, e, &walk[i], capacity - got, ret + got);

        for (; some; some--)
            whose[got++] = i;
    }
    if (spec->seeded)
        order_unmap(&e->of_kind.shuffle, got, ret);
    return got;
}

static uint64_t draw_count(const struct order_spec *spec, uint64_t first, uint64_t last)
{
    u128 n = spec->length;

    if (spec->weights)
        return (uint64_t)(n *
                          (spec->weights->ops->before(spec->weights, last + 1) -
                           spec->weights->ops->before(spec->weights, first)) /
                          line_of(spec)) +
               1;
    if (spec->classes)
        return order_count_by_class(spec, first, last);
    return (uint64_t)(n * (last - first + 1) / spec->places) + 1;
}

const struct order_ops order_draw = {
    .name = "draw",
    .version = 1,
    .begin = draw_begin,
    .at = draw_at,
    .positions = draw_positions,
    .count = draw_count,
};
