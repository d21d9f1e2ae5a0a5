#include "fs/plan/distinct.h"

#include <assert.h>
#include <math.h>

#include "base/checked.h"

#define LOOKED_AT 4096 /* places */

/* How often a place comes in an epoch of all ranks, on average over epochs. */
static double times_of(const struct schedule *s, uint64_t place)
{
    const struct order_spec *o = &s->order;
    uint64_t class, member;

    if (o->weights)
        return (double)o->length *
               (double)(o->weights->ops->before(o->weights, place + 1) -
                        o->weights->ops->before(o->weights, place)) /
               (double)o->weights->total;
    if (!o->classes)
        return (double)o->length / (double)o->places;
    o->classes->ops->find(o->classes, place, &class, &member);
    return (double)o->length / (double)o->classes->n /
           (double)o->classes->ops->count(o->classes, class);
}

/* The share of entries of a list that are the first of their sample. */
static double share_of_firsts(const struct plan_list *list)
{
    uint64_t n = min_u64(list->n, LOOKED_AT), firsts = 0;

    assert(list->start);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at = i * (list->n / n);
        uint32_t sample = list->sample[plan_list_place(list, at)];

        firsts += !at || sample != list->sample[plan_list_place(list, at - 1)];
    }
    return (double)firsts / (double)n;
}

static void set_span(const struct schedule *s, struct plan_distinct *ret)
{
    uint64_t low = UINT64_MAX, high = 0;

    ret->first = s->taken.start;
    ret->span = s->taken.length;
    if (!s->only || !ret->span)
        return;
    for (uint64_t i = 0; i < s->taken.length; i++) {
        uint64_t sample = s->only->sample[s->taken.start + i];

        low = min_u64(low, sample);
        high = max_u64(high, sample);
    }
    ret->first = low;
    ret->span = high - low + 1;
}

/* Different positions that the rank reads. With tail=wrap the positions are a circle, on which it
 * goes from one to the rank-th behind it. */
static uint64_t positions_read(const struct schedule *s)
{
    uint64_t units = ceil_div(s->positions, s->unit);

    if (!units || s->plan->tail != TAIL_WRAP)
        return s->elements;
    return min_u64(min_u64(s->elements, s->positions),
                   units / common_divisor(units, s->plan->ranks) * s->unit);
}

void plan_distinct(const struct schedule *s, struct plan_distinct *ret)
{
    uint64_t n = min_u64(s->length, LOOKED_AT), positions = positions_read(s);
    double share = s->only ? share_of_firsts(s->only) : 1, some = 0, read = 0;
    double part = s->order.length ? (double)positions / (double)s->order.length : 0;

    ret->part = s->positions ? (double)positions / (double)s->positions : 0;
    ret->repeats = positions < s->elements;
    set_span(s, ret);
    for (uint64_t i = 0; i < n; i++) {
        double times = times_of(s, i * (s->length / n)) / share;

        some += times > 0;
        /* Systematic draws: once at most while its share is below 1. */
        read += times <= 1 ? times * part : 1 - pow(1 - part, times);
    }
    if (!n)
        n = 1;
    ret->listed = some / (double)n * (double)s->length * share;
    ret->epoch = read / (double)n * (double)s->length * share;
}
