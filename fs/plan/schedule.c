/* A plan applied to a dataset: element of the rank -> position -> place of the list -> sample, and
 * back. */
#include "fs/plan/schedule.h"

#include <errno.h>

#include "base/checked.h"
#include "base/scope.h"

__extension__ typedef unsigned __int128 u128;

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

/* How often the positions begin again before the epoch ends. */
static uint64_t wraps_of(const struct schedule *s)
{
    uint64_t all;

    if (!s->positions || s->plan->tail != TAIL_WRAP)
        return 0;
    return checked_mul(s->elements, s->plan->ranks, &all) ? (all - 1) / s->positions : WRAPS_MOST;
}

/* floor(a * b / n) */
static uint64_t mul_div(uint64_t a, uint64_t b, uint64_t n)
{
    return (uint64_t)((u128)a * b / n);
}

static uint64_t place_of(const struct plan_place *place, uint64_t samples)
{
    return min_u64(place->is_percent ? mul_div(samples, place->n, 100) : place->n, samples);
}

static struct plan_range take(const struct plan *plan, uint64_t samples)
{
    uint64_t from = place_of(&plan->take_from, samples), to = place_of(&plan->take_to, samples);

    return plan->takes ? (struct plan_range){from, to > from ? to - from : 0}
                       : (struct plan_range){0, samples};
}

/* The share of n places of the split's permutation. */
static struct plan_range split(const struct plan *plan, uint64_t n)
{
    uint64_t sum = 0, before = 0, from, to;

    if (!plan->splits)
        return (struct plan_range){0, n};
    for (unsigned i = 0; i < plan->splits; i++) {
        before += i < plan->split ? plan->weight[i] : 0;
        sum += plan->weight[i];
    }
    from = mul_div(n, before, sum);
    to = mul_div(n, before + plan->weight[plan->split], sum);
    return (struct plan_range){from, to - from};
}

/* Find the list. */
static void set_list(struct schedule *s, uint64_t samples, const struct plan_range *part)
{
    const struct plan *plan = s->plan;
    struct plan_range share, list;

    if (part && !plan->takes && !plan->splits) {
        s->taken = *part;
        s->length = part->length;
        return;
    }
    s->taken = take(plan, samples);
    share = split(plan, s->taken.length);
    plan_share(plan->part, plan->parts, share.length, &list.start, &list.length);
    s->length = list.length;
    if (plan->splits)
        s->offset = share.start + list.start;
    else
        s->taken = (struct plan_range){s->taken.start + list.start, list.length};
}

void schedule_init(struct schedule *ret, const struct plan *plan, uint64_t samples,
                   const struct plan_range *part)
{
    uint64_t ranks = plan->ranks, elements, n;

    *ret = (struct schedule){.plan = plan};
    set_list(ret, samples, part);
    n = ret->positions = plan->limits ? min_u64(plan->limit, ret->length) : ret->length;
    switch (plan->tail) {
    case TAIL_KEEP:
        elements = plan->rank < n ? ceil_div(n - plan->rank, ranks) : 0;
        break;
    case TAIL_DROP:
        elements = n / ranks;
        break;
    default:
        elements = ceil_div(n, ranks);
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

int schedule_check(const struct schedule *s, struct diag *d)
{
    const struct plan *plan = s->plan;

    if (plan->splits && !split(plan, s->taken.length).length)
        return diag_set(d, -EINVAL,
                        "split: want a share that has samples, found none in share %u "
                        "of %llu samples",
                        plan->split, (unsigned long long)s->taken.length);
    if (plan->limits && plan->limit > s->length)
        return diag_set(d, -EINVAL, "limit: want at most %llu, the samples of the list, found %llu",
                        (unsigned long long)s->length, (unsigned long long)plan->limit);
    return 0;
}

#define LANE_SPLIT ORDER_LANES

void schedule_order(const struct schedule *s, uint64_t epoch, struct epoch_order *ret)
{
    if (s->plan->seeded)
        order_init(&ret->shuffle, s->plan->seed, epoch, s->length, s->plan->window);
    if (s->plan->splits)
        permutation_init(&ret->split, 0, 0, LANE_SPLIT, s->taken.length);
}

uint64_t schedule_count(const struct schedule *s, uint64_t number)
{
    return min_u64(s->batch, s->elements - number * s->batch);
}

/* (a * b + c) mod n where the product may not fit in 64 bits. */
static uint64_t mul_add_mod(uint64_t a, uint64_t b, uint64_t c, uint64_t n)
{
    return (uint64_t)(((u128)a * b + c) % n);
}

bool schedule_in_order(const struct schedule *s, uint64_t number, uint64_t *ret_first)
{
    uint64_t first = number * s->batch;

    *ret_first = s->taken.start + first;
    /* A last batch that is filled up continues at the start. */
    return !schedule_has_order(s) && s->plan->ranks == 1 &&
           first + schedule_count(s, number) <= s->positions;
}

void schedule_samples(const struct schedule *s, const struct epoch_order *order, uint64_t number,
                      uint64_t first, size_t count, uint64_t *ret)
{
    const struct plan *plan = s->plan;
    uint64_t element = number * s->batch + first, n = s->positions;
    uint64_t position, stride;

    if (!count)
        return;
    position = mul_add_mod(element, plan->ranks, plan->rank, n);
    stride = plan->ranks % n;
    for (size_t i = 0; i < count; i++) {
        ret[i] = position;
        position = position >= n - stride ? position - (n - stride) : position + stride;
    }
    if (plan->seeded)
        order_map(&order->shuffle, count, ret);
    if (plan->splits) {
        for (size_t i = 0; i < count; i++)
            ret[i] += s->offset;
        permutation_send(&order->split, count, ret);
    }
    for (size_t i = 0; i < count; i++)
        ret[i] += s->taken.start;
}

/* ---- from samples to elements ---- */

/* The first element from `from` on that reads one of positions first .. last. */
static uint64_t find_positions(const struct schedule *s, uint64_t first, uint64_t last,
                               uint64_t from)
{
    uint64_t rank = s->plan->rank, ranks = s->plan->ranks, passed, skip = 0;

    if (s->wraps && checked_mul(from, ranks, &passed))
        skip = passed / s->positions;
    first += skip * s->positions;
    last += skip * s->positions;
    for (uint64_t i = skip; i <= s->wraps && i <= skip + WRAPS_MOST; i++) {
        uint64_t element = first > rank ? ceil_div(first - rank, ranks) : 0;

        element = max_u64(element, from);
        if (element >= s->elements)
            break;
        if (last >= rank && element <= (last - rank) / ranks)
            return element;
        first += s->positions;
        last += s->positions;
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

/* One more than the last element that reads one of positions first .. last; 0: none. */
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

/* Positions that neighbouring samples have. */
struct positions {
    uint64_t at[64];
    size_t n;
};

/* Those of count samples of the dataset, all in s->taken; at most as many as there is room for.
 * Returns how many samples were looked at. Some have no position in this epoch. */
static uint64_t positions_of(const struct schedule *s, const struct epoch_order *order,
                             uint64_t sample, uint64_t count, struct positions *ret)
{
    size_t n = (size_t)min_u64(count, ARRAY_LEN(ret->at)), kept = 0;
    uint64_t place = sample - s->taken.start;

    ret->n = n;
    if (!s->plan->splits) {
        order_positions(&order->shuffle, place, n, ret->at);
    } else {
        for (size_t i = 0; i < n; i++)
            ret->at[i] = place + i;
        permutation_back(&order->split, n, ret->at);
        for (size_t i = 0; i < n; i++)
            if (ret->at[i] >= s->offset && ret->at[i] - s->offset < s->length)
                ret->at[kept++] = ret->at[i] - s->offset;
        ret->n = kept;
        for (size_t i = 0; i < kept && s->plan->seeded; i++)
            ret->at[i] = order_position(&order->shuffle, ret->at[i]);
    }
    for (size_t i = kept = 0; i < ret->n; i++)
        if (ret->at[i] < s->positions)
            ret->at[kept++] = ret->at[i];
    ret->n = kept;
    return n;
}

/* The smallest element from `from` on that reads one of count samples, or `least` if that is
 * smaller. */
static uint64_t look_at(const struct schedule *s, const struct epoch_order *order, uint64_t sample,
                        uint64_t count, uint64_t from, uint64_t least)
{
    struct positions found;

    for (uint64_t n; count; sample += n, count -= n) {
        n = positions_of(s, order, sample, count, &found);
        for (size_t i = 0; i < found.n; i++)
            least = min_u64(least, find_position(s, found.at[i], from));
    }
    return least;
}

/* Clip samples of the dataset to those that the list is of. False: none is among them. */
static bool clip(const struct schedule *s, uint64_t *first, uint64_t *last)
{
    uint64_t start = s->taken.start, length = s->taken.length;

    if (!s->positions || *last < start || *first >= start + length)
        return false;
    *first = max_u64(*first, start);
    *last = min_u64(*last, start + length - 1);
    return true;
}

/* Without an order: the positions of such samples. False: there are none. */
static bool in_order(const struct schedule *s, uint64_t *first, uint64_t *last)
{
    *first -= s->taken.start;
    *last = min_u64(*last - s->taken.start, s->positions - 1);
    return *first <= *last;
}

uint64_t schedule_find(const struct schedule *s, const struct epoch_order *order, uint64_t first,
                       uint64_t last, uint64_t from)
{
    uint64_t count, least = SCHEDULE_NONE;

    if (!clip(s, &first, &last))
        return SCHEDULE_NONE;
    if (!schedule_has_order(s))
        return in_order(s, &first, &last) ? find_positions(s, first, last, from) : SCHEDULE_NONE;
    count = last - first + 1;
    if (count <= LOOK_ALL)
        return look_at(s, order, first, count, from, least);
    for (uint64_t i = 0; i < LOOK_RUNS; i++)
        least = look_at(s, order, first + (count - LOOK_EACH) / (LOOK_RUNS - 1) * i, LOOK_EACH,
                        from, least);
    return least;
}

uint64_t schedule_last(const struct schedule *s, const struct epoch_order *order, uint64_t first,
                       uint64_t last)
{
    struct positions found;
    uint64_t end = 0;

    if (!clip(s, &first, &last))
        return SCHEDULE_NONE;
    if (!schedule_has_order(s)) {
        end = in_order(s, &first, &last) ? end_of_positions(s, first, last) : 0;
    } else if (last - first >= LAST_ALL) {
        end = s->elements;
    } else {
        for (uint64_t n; first <= last; first += n) {
            n = positions_of(s, order, first, last - first + 1, &found);
            for (size_t i = 0; i < found.n; i++)
                end = max_u64(end, end_of_positions(s, found.at[i], found.at[i]));
        }
    }
    return end ? end - 1 : SCHEDULE_NONE;
}
