/* A plan applied to a dataset: element of the rank -> position of the list -> sample, and back. */
#include "fs/plan/schedule.h"

#include "base/checked.h"
#include "base/scope.h"

#define WRAPS_MOST 64    /* wraps that schedule_find() looks at */
#define LOOK_ALL   4096  /* samples; of more: */
#define LOOK_RUNS  32    /* runs of neighbours, evenly spaced, */
#define LOOK_EACH  8     /* of this many samples */
#define LAST_ALL   65536 /* samples of which schedule_last() looks at all */

void plan_share(uint64_t part, uint64_t parts, uint64_t n, uint64_t *ret_start,
                uint64_t *ret_length)
{
    uint64_t each = n / parts, larger = n % parts;

    *ret_start = part * each + min_u64(part, larger);
    *ret_length = each + (part < larger);
}

/* How often the list begins again before the epoch ends. */
static uint64_t wraps_of(const struct schedule *s)
{
    uint64_t all;

    if (!s->length || s->plan->tail != TAIL_WRAP)
        return 0;
    return checked_mul(s->elements, s->plan->ranks, &all) ? (all - 1) / s->length : WRAPS_MOST;
}

void schedule_init(struct schedule *ret, const struct plan *plan, uint64_t start, uint64_t length)
{
    uint64_t ranks = plan->ranks;
    uint64_t elements;

    *ret = (struct schedule){.plan = plan, .start = start, .length = length};
    switch (plan->tail) {
    case TAIL_KEEP:
        elements = plan->rank < length ? ceil_div(length - plan->rank, ranks) : 0;
        break;
    case TAIL_DROP:
        elements = length / ranks;
        break;
    default:
        elements = ceil_div(length, ranks);
        break;
    }
    if (!plan->batch) {
        ret->batch = ret->elements = elements;
        ret->batches = 1;
    } else {
        ret->batch = plan->batch;
        ret->batches =
            plan->tail == TAIL_DROP ? elements / plan->batch : ceil_div(elements, plan->batch);
        ret->elements = plan->tail == TAIL_KEEP ? elements : ret->batches * plan->batch;
    }
    ret->wraps = wraps_of(ret);
}

void schedule_order(const struct schedule *s, uint64_t epoch, struct order *ret)
{
    if (s->plan->seeded)
        order_init(ret, s->plan->seed, epoch, s->length, s->plan->window);
}

uint64_t schedule_count(const struct schedule *s, uint64_t number)
{
    return min_u64(s->batch, s->elements - number * s->batch);
}

/* (a * b + c) mod n where the product may not fit in 64 bits. */
static uint64_t mul_add_mod(uint64_t a, uint64_t b, uint64_t c, uint64_t n)
{
    __extension__ typedef unsigned __int128 u128;

    return (uint64_t)(((u128)a * b + c) % n);
}

bool schedule_in_order(const struct schedule *s, uint64_t number, uint64_t *ret_first)
{
    const struct plan *plan = s->plan;
    uint64_t first = number * s->batch;

    *ret_first = s->start + first;
    /* A last batch that is filled up continues at the start. */
    return !plan->seeded && plan->ranks == 1 && first + schedule_count(s, number) <= s->length;
}

void schedule_samples(const struct schedule *s, const struct order *order, uint64_t number,
                      uint64_t first, size_t count, uint64_t *ret)
{
    const struct plan *plan = s->plan;
    uint64_t element = number * s->batch + first;
    uint64_t position, stride;

    if (!count)
        return;
    position = mul_add_mod(element, plan->ranks, plan->rank, s->length);
    stride = plan->ranks % s->length;
    if (plan->seeded) {
        order_samples(order, position, count, stride, ret);
        for (size_t i = 0; i < count; i++)
            ret[i] += s->start;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        ret[i] = s->start + position;
        position =
            position >= s->length - stride ? position - (s->length - stride) : position + stride;
    }
}

/* ---- from samples to elements ---- */

/* The first element from `from` on that reads one of positions first .. last of the list. */
static uint64_t find_positions(const struct schedule *s, uint64_t first, uint64_t last,
                               uint64_t from)
{
    uint64_t rank = s->plan->rank, ranks = s->plan->ranks, passed, skip = 0;

    if (s->wraps && checked_mul(from, ranks, &passed))
        skip = passed / s->length;
    first += skip * s->length;
    last += skip * s->length;
    for (uint64_t i = skip; i <= s->wraps && i <= skip + WRAPS_MOST; i++) {
        uint64_t element = first > rank ? ceil_div(first - rank, ranks) : 0;

        element = max_u64(element, from);
        if (element >= s->elements)
            break;
        if (last >= rank && element <= (last - rank) / ranks)
            return element;
        first += s->length;
        last += s->length;
    }
    return SCHEDULE_NONE;
}

/* The same for one position. Nearly always there is no wrap and one rank. */
static inline uint64_t find_position(const struct schedule *s, uint64_t position, uint64_t from)
{
    if (s->wraps || s->plan->ranks > 1)
        return find_positions(s, position, position, from);
    return position >= from && position < s->elements ? position : SCHEDULE_NONE;
}

/* The smallest element from `from` on that reads one of count samples of the list, or `least` if
 * that is smaller. */
static uint64_t look_at(const struct schedule *s, const struct order *order, uint64_t sample,
                        uint64_t count, uint64_t from, uint64_t least)
{
    uint64_t position[64];

    while (count) {
        size_t n = (size_t)min_u64(count, ARRAY_LEN(position));

        order_positions(order, sample, n, position);
        for (size_t i = 0; i < n; i++)
            least = min_u64(least, find_position(s, position[i], from));
        sample += n;
        count -= n;
    }
    return least;
}

/* Clip samples of the dataset to those of the list, and number them as it does. False: none is in
 * it. */
static bool clip(const struct schedule *s, uint64_t *first, uint64_t *last)
{
    if (!s->length || *last < s->start || *first >= s->start + s->length)
        return false;
    *first = *first > s->start ? *first - s->start : 0;
    *last = min_u64(*last - s->start, s->length - 1);
    return true;
}

uint64_t schedule_find(const struct schedule *s, const struct order *order, uint64_t first,
                       uint64_t last, uint64_t from)
{
    uint64_t count, least = SCHEDULE_NONE;

    if (!clip(s, &first, &last))
        return SCHEDULE_NONE;
    if (!s->plan->seeded)
        return find_positions(s, first, last, from);
    count = last - first + 1;
    if (count <= LOOK_ALL)
        return look_at(s, order, first, count, from, least);
    for (uint64_t i = 0; i < LOOK_RUNS; i++)
        least = look_at(s, order, first + (count - LOOK_EACH) / (LOOK_RUNS - 1) * i, LOOK_EACH,
                        from, least);
    return least;
}

/* One more than the last element that reads one of positions first .. last of the list; 0: none. */
static uint64_t end_of_positions(const struct schedule *s, uint64_t first, uint64_t last)
{
    uint64_t rank = s->plan->rank, ranks = s->plan->ranks, element;

    if (s->wraps)
        return s->elements;
    if (last < rank || !s->elements)
        return 0;
    element = min_u64((last - rank) / ranks, s->elements - 1);
    return element * ranks + rank >= first ? element + 1 : 0;
}

uint64_t schedule_last(const struct schedule *s, const struct order *order, uint64_t first,
                       uint64_t last)
{
    uint64_t end = 0, position[64];

    if (!clip(s, &first, &last))
        return SCHEDULE_NONE;
    if (!s->plan->seeded)
        end = end_of_positions(s, first, last);
    else if (last - first >= LAST_ALL)
        end = s->elements;
    else
        for (size_t n; first <= last; first += n) {
            n = (size_t)min_u64(last - first + 1, ARRAY_LEN(position));
            order_positions(order, first, n, position);
            for (size_t i = 0; i < n; i++)
                end = max_u64(end, end_of_positions(s, position[i], position[i]));
        }
    return end ? end - 1 : SCHEDULE_NONE;
}
