/* The way back: from samples of the dataset to the elements that read them.
 *
 *   sample -> places of the list -> positions -> elements
 *             only, take, split     order       rank, tail
 *
 * A sample has several places if only= names it several times, and a place several positions in an
 * order with replacement. */
#include "base/checked.h"
#include "base/scope.h"
#include "fs/plan/schedule.h"

#define WRAPS_MOST     64    /* wraps that are looked at */
#define LOOK_ALL       4096  /* samples, or positions of theirs; of more: */
#define LOOK_RUNS      32    /* runs of neighbours, evenly spaced, */
#define LOOK_EACH      8     /* of this many samples */
#define SCAN           16384 /* elements of an order with replacement that are looked at in a row */
#define LAST_ALL       65536 /* samples of which schedule_last() looks at all */
#define POSITIONS_MOST (UINT64_C(1) << 20) /* of an order with replacement */

/* ---- from positions to elements ---- */

/* The element of the rank that reads the n'th position of all ranks together, counted on over
 * wraps. SCHEDULE_NONE: another rank does. */
static uint64_t element_of(const struct schedule *s, uint64_t n)
{
    uint64_t unit = n / s->unit, ranks = s->plan->ranks;

    if (ranks > 1 && unit % ranks != s->plan->rank)
        return SCHEDULE_NONE;
    return unit / ranks * s->unit + n % s->unit;
}

/* The first element from `from` on that reads one of positions first .. last, or, of units that go
 * to a rank together, position first. */
static uint64_t find_positions(const struct schedule *s, uint64_t first, uint64_t last,
                               uint64_t from)
{
    uint64_t rank = s->plan->rank, ranks = s->plan->ranks, passed, skip = 0;

    if (s->wraps && checked_mul(from / s->unit * s->unit, ranks, &passed))
        skip = passed / s->positions;
    first += skip * s->positions;
    last += skip * s->positions;
    for (uint64_t i = skip; i <= s->wraps && i <= skip + WRAPS_MOST; i++) {
        uint64_t element = first > rank ? ceil_div(first - rank, ranks) : 0;

        if (s->unit > 1)
            element = element_of(s, first);
        else
            element = max_u64(element, from);
        if (element >= s->elements && element != SCHEDULE_NONE)
            break;
        if (s->unit > 1 ? element != SCHEDULE_NONE && element >= from
                        : last >= rank && element <= (last - rank) / ranks)
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
    if (s->unit > 1) {
        element = element_of(s, first);
        return element < s->elements ? element + 1 : 0;
    }
    if (last < rank || !s->elements)
        return 0;
    element = min_u64((last - rank) / ranks, s->elements - 1);
    return element * ranks + rank >= first ? element + 1 : 0;
}

/* ---- from samples to positions ---- */

/* What is looked for, and what is found so far. */
struct search {
    const struct schedule *s;
    const struct epoch_order *order;
    bool wants_last;
    uint64_t from;
    uint64_t least;  /* element */
    uint64_t end;    /* one more than the last element */
    uint64_t budget; /* positions that may still be looked at */
};

static void look_at_position(struct search *search, uint64_t position)
{
    const struct schedule *s = search->s;

    if (position >= s->positions)
        return;
    if (search->wants_last)
        search->end = max_u64(search->end, end_of_positions(s, position, position));
    else
        search->least = min_u64(search->least, find_position(s, position, search->from));
}

/* All positions of neighbouring places of the list. */
static void look_at_places(struct search *search, uint64_t first, uint64_t last)
{
    const struct order_spec *o = &search->s->order;
    struct order_walk walk = {.place = first, .last = last};
    uint64_t position[64];

    while (walk.place <= walk.last && search->budget) {
        size_t room = (size_t)min_u64(ARRAY_LEN(position), search->budget);
        size_t n = o->kind->positions(o, search->order, &walk, room, position);

        for (size_t i = 0; i < n; i++)
            look_at_position(search, position[i]);
        search->budget -= n;
    }
}

/* The same for n places of the dataset, or of only='s list; some are not in the plan's list. */
static void look_at_taken(struct search *search, size_t n, uint64_t *place)
{
    const struct schedule *s = search->s;

    if (s->plan->splits)
        permutation_back(&search->order->split, n, place);
    for (size_t i = 0; i < n; i++)
        if (place[i] >= s->offset && place[i] - s->offset < s->length)
            look_at_places(search, place[i] - s->offset, place[i] - s->offset);
}

/* Samples of the dataset are looked for in what the list is taken from: `taken`, or those places of
 * only=. Clip samples first .. last to what `taken` has, as its places from 0 on; or to the
 * entries of the sorted list. False: none is among them. */
static bool clip(const struct schedule *s, uint64_t *first, uint64_t *last)
{
    uint64_t start = s->taken.start, length = s->taken.length;

    if (!s->positions || *last < *first)
        return false;
    if (s->only) {
        *last = plan_list_range(s->only, *first, *last, first);
        if (*first >= *last)
            return false;
        --*last;
        if (s->only->sorted)
            return true;
    }
    if (*last < start || *first >= start + length)
        return false;
    *first = max_u64(*first, start) - start;
    *last = min_u64(*last, start + length - 1) - start;
    return true;
}

/* What clip() has found is looked at. */
static void look_at(struct search *search, uint64_t first, uint64_t last)
{
    const struct schedule *s = search->s;
    const uint32_t *sorted = s->only ? s->only->sorted : NULL;
    uint64_t place[64];

    if (!sorted && !s->plan->splits) {
        look_at_places(search, first, last);
        return;
    }
    while (first <= last && search->budget) {
        size_t n = 0;

        for (; first <= last && n < ARRAY_LEN(place); first++) {
            uint64_t at = sorted ? sorted[first] : s->taken.start + first;

            if (at >= s->taken.start && at - s->taken.start < s->taken.length)
                place[n++] = at - s->taken.start;
        }
        look_at_taken(search, n, place);
    }
}

static bool is_stored_order(const struct schedule *s)
{
    return s->order.kind == &order_permutation && !s->order.seeded && !s->plan->splits &&
           !(s->only && s->only->sorted);
}

/* ---- the first element ---- */

/* About how many positions the samples have. */
static uint64_t count_of(const struct schedule *s, uint64_t first, uint64_t last)
{
    const struct order_spec *o = &s->order;
    uint64_t n = last - first + 1;

    if (!s->plan->splits && !(s->only && s->only->sorted))
        return o->kind->count(o, first, last);
    /* Anywhere in the list. */
    return (uint64_t)((double)n * (double)s->length / (double)s->taken.length * (double)o->length /
                      (double)o->places) +
           1;
}

/* Look at the elements from `from` on until one reads one of samples first .. last. False: none of
 * many does. */
static bool scan(struct search *search, uint64_t first, uint64_t last)
{
    const struct schedule *s = search->s;
    uint64_t end = s->elements - min_u64(s->elements, search->from), sample[64];

    end = search->from + min_u64(end, SCAN);
    for (uint64_t e = search->from; e < end; e += ARRAY_LEN(sample)) {
        size_t n = (size_t)min_u64(end - e, ARRAY_LEN(sample));

        schedule_samples(s, search->order, 0, e, n, sample);
        for (size_t i = 0; i < n; i++)
            if (sample[i] >= first && sample[i] <= last) {
                search->least = e + i;
                return true;
            }
    }
    return end == s->elements;
}

uint64_t schedule_find(const struct schedule *s, const struct epoch_order *order, uint64_t first,
                       uint64_t last, uint64_t from)
{
    struct search search = {
        .s = s, .order = order, .from = from, .least = SCHEDULE_NONE, .budget = UINT64_MAX};
    uint64_t a = first, b = last, count, many;

    if (!clip(s, &a, &b))
        return SCHEDULE_NONE;
    if (is_stored_order(s)) {
        b = min_u64(b, s->positions - 1);
        return a <= b ? find_positions(s, a, b, from) : SCHEDULE_NONE;
    }
    count = b - a + 1;
    many = s->order.kind == &order_permutation ? count : max_u64(count, count_of(s, a, b));
    if (many <= LOOK_ALL) {
        look_at(&search, a, b);
        return search.least;
    }
    if (s->order.kind != &order_permutation && scan(&search, first, last))
        return search.least;
    search.budget = POSITIONS_MOST;
    if (count <= LOOK_ALL)
        look_at(&search, a, b);
    for (uint64_t i = 0; i < LOOK_RUNS && count > LOOK_ALL; i++) {
        uint64_t at = a + (count - LOOK_EACH) / (LOOK_RUNS - 1) * i;

        look_at(&search, at, at + LOOK_EACH - 1);
    }
    return search.least;
}

uint64_t schedule_last(const struct schedule *s, const struct epoch_order *order, uint64_t first,
                       uint64_t last)
{
    struct search search = {.s = s, .order = order, .wants_last = true, .budget = POSITIONS_MOST};

    if (!clip(s, &first, &last))
        return SCHEDULE_NONE;
    if (is_stored_order(s)) {
        last = min_u64(last, s->positions - 1);
        search.end = first <= last ? end_of_positions(s, first, last) : 0;
    } else if (last - first >= LAST_ALL) {
        search.end = s->elements;
    } else {
        look_at(&search, first, last);
        search.end = search.budget ? search.end : s->elements;
    }
    return search.end ? search.end - 1 : SCHEDULE_NONE;
}
