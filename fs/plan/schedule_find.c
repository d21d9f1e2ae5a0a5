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
static uint64_t schedule_find_element_of(const struct schedule *s, uint64_t n)
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
            element = schedule_find_element_of(s, first);
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
    if (s->cuts) /* not later than the end of its window */
        return min_u64((last / s->cuts->window + 1) * s->cuts->window, s->elements);
    if (s->unit > 1) {
        element = schedule_find_element_of(s, first);
        return element < s->elements ? element + 1 : 0;
    }
    if (last < rank || !s->elements)
        return 0;
    element = min_u64((last - rank) / ranks, s->elements - 1);
    return element * ranks + rank >= first ? element + 1 : 0;
}

/* ---- from samples to positions ---- */

#define AT_ONCE PLAN_LIST_AT_ONCE

/* What is looked for, and what is found so far. Several questions are asked together, each for the
 * samples of its own: places of theirs are collected, so that many of them go the way back side by
 * side. */
struct search {
    const struct schedule *s;
    const struct epoch_order *order;
    bool wants_last;
    uint64_t from;
    uint64_t *least; /* element, of each question */
    uint64_t end;    /* one more than the last element */
    uint64_t budget; /* positions that may still be looked at */

    /* Neighbouring places of the list, and whose question they are of. */
    size_t n_walks;
    struct order_walk walk[AT_ONCE];
    uint32_t walk_of[AT_ONCE];
    /* Places in the list that a split divides. */
    size_t n_taken;
    uint64_t taken[AT_ONCE];
    uint32_t taken_of[AT_ONCE];
};

static void search_init(struct search *ret, const struct schedule *s,
                        const struct epoch_order *order, uint64_t budget)
{
    ret->s = s;
    ret->order = order;
    ret->wants_last = false;
    ret->from = ret->end = 0;
    ret->least = NULL;
    ret->budget = budget;
    ret->n_walks = ret->n_taken = 0;
}

static void look_at_position(struct search *search, uint32_t question, uint64_t position)
{
    const struct schedule *s = search->s;

    if (position >= s->positions)
        return;
    if (search->wants_last)
        search->end = max_u64(search->end, end_of_positions(s, position, position));
    else if (s->cuts)
        search->least[question] =
            min_u64(search->least[question],
                    s->cuts->ops->element(s->cuts, search->order->epoch,
                                          (struct cut_rank){s->plan->rank, s->plan->ranks},
                                          position, search->from));
    else
        search->least[question] =
            min_u64(search->least[question], find_position(s, position, search->from));
}

/* Look at the positions of the places that were collected. */
static void look_at_walks(struct search *search)
{
    const struct order_spec *o = &search->s->order;
    uint64_t position[AT_ONCE];
    uint32_t whose[AT_ONCE];

    for (size_t i = 0; i < search->n_walks && search->budget;) {
        struct order_walk *walk = search->walk + i;
        size_t capacity = (size_t)min_u64(AT_ONCE, search->budget);
        size_t n = o->ops->positions(o, search->order, search->n_walks - i, walk, capacity,
                                     position, whose);

        for (size_t k = 0; k < n; k++)
            look_at_position(search, search->walk_of[i + whose[k]], position[k]);
        search->budget -= n;
        while (i < search->n_walks && search->walk[i].place > search->walk[i].last)
            i++;
    }
    search->n_walks = 0;
}

static void add_places(struct search *search, uint32_t question, uint64_t first, uint64_t last)
{
    if (search->n_walks == AT_ONCE)
        look_at_walks(search);
    search->walk[search->n_walks] = (struct order_walk){.place = first, .last = last};
    search->walk_of[search->n_walks++] = question;
}

/* Turn places in the list that a split divides into places of its share; drop those of others. */
static void look_at_taken(struct search *search)
{
    const struct schedule *s = search->s;

    if (s->plan->splits)
        permutation_back(&search->order->split, search->n_taken, search->taken);
    for (size_t i = 0; i < search->n_taken; i++) {
        uint64_t place = search->taken[i] - s->offset;

        if (search->taken[i] >= s->offset && place < s->length)
            add_places(search, search->taken_of[i], place, place);
    }
    search->n_taken = 0;
}

static void add_taken(struct search *search, uint32_t question, uint64_t place)
{
    if (search->n_taken == AT_ONCE)
        look_at_taken(search);
    search->taken[search->n_taken] = place;
    search->taken_of[search->n_taken++] = question;
}

/* Look at what was collected and not looked at. */
static void look_at_rest(struct search *search)
{
    look_at_taken(search);
    look_at_walks(search);
}

/* Clip what clip_all() has found; false: nothing of it is left. */
static bool clip_to_taken(const struct schedule *s, struct plan_samples *range)
{
    uint64_t start = s->taken.start, length = s->taken.length;

    if (range->last < range->first || range->last < start || range->first >= start + length)
        return false;
    range->first = max_u64(range->first, start) - start;
    range->last = min_u64(range->last, start + length - 1) - start;
    return true;
}

/* Samples of the dataset are looked for in what the list is taken from: `taken`, or those places of
 * only=. Clip count ranges of samples, at most AT_ONCE, to what `taken` has, as its places from 0;
 * or to the entries of the list. What has nothing gets first > last. */
static void clip_all(const struct schedule *s, size_t count, const struct plan_samples *wanted,
                     struct plan_samples *ret)
{
    struct plan_entries entries[AT_ONCE];

    if (s->only && s->positions)
        plan_list_find(s->only, count, wanted, entries);
    for (size_t i = 0; i < count; i++) {
        bool some = s->positions && wanted[i].first <= wanted[i].last;

        ret[i] = wanted[i];
        if (s->only && some) {
            some = entries[i].begin < entries[i].end;
            ret[i] = (struct plan_samples){entries[i].begin, entries[i].end - some};
        }
        if (!(s->only && s->only->entry))
            some = some && clip_to_taken(s, &ret[i]);
        if (!some)
            ret[i] = (struct plan_samples){1, 0};
    }
}

/* What clip_all() has found is looked at. */
static void schedule_find_examine(struct search *search, uint32_t question, uint64_t first,
                                  uint64_t last)
{
    const struct schedule *s = search->s;
    bool is_sorted = s->only && s->only->entry;

    if (!is_sorted && !s->plan->splits) {
        add_places(search, question, first, last);
        return;
    }
    for (; first <= last && search->budget; first++) {
        uint64_t at = is_sorted ? plan_list_place(s->only, first) : s->taken.start + first;

        if (at >= s->taken.start && at - s->taken.start < s->taken.length)
            add_taken(search, question, at - s->taken.start);
    }
}

static bool is_stored_order(const struct schedule *s)
{
    return s->order.ops == &order_permutation && !s->order.seeded && !s->plan->splits &&
           !(s->only && s->only->entry) && !s->cuts;
}

/* ---- the first element ---- */

/* About how many positions the samples have. */
static uint64_t count_of(const struct schedule *s, uint64_t first, uint64_t last)
{
    const struct order_spec *o = &s->order;
    uint64_t n = last - first + 1;

    if (!s->plan->splits && !(s->only && s->only->entry))
        return o->ops->count(o, first, last);
    /* Anywhere in the list. */
    return (uint64_t)((double)n * (double)s->length / (double)s->taken.length * (double)o->length /
                      (double)o->places) +
           1;
}

/* Look at the elements from `from` on until one reads one of the samples. False: none of many
 * does. */
static bool schedule_find_scan(struct search *search, const struct plan_samples *wanted)
{
    const struct schedule *s = search->s;
    uint64_t end = s->elements - min_u64(s->elements, search->from), sample[64];

    end = search->from + min_u64(end, SCAN);
    for (uint64_t e = search->from; e < end; e += ARRAY_LEN(sample)) {
        size_t n = (size_t)min_u64(end - e, ARRAY_LEN(sample));

        schedule_elements(s, search->order, e, n, sample);
        for (size_t i = 0; i < n; i++)
            if (sample[i] >= wanted->first && sample[i] <= wanted->last) {
                *search->least = e + i;
                return true;
            }
    }
    return end == s->elements;
}

/* Are all positions of what clip_all() has found looked at? */
static bool is_small(const struct schedule *s, const struct plan_samples *found)
{
    uint64_t count = found->last - found->first + 1;

    return count <= LOOK_ALL && (s->order.ops == &order_permutation ||
                                 (found->first == found->last && s->order.length <= LOOK_ALL) ||
                                 count_of(s, found->first, found->last) <= LOOK_ALL);
}

/* The first element of very many samples, or with very many positions. */
static void find_large(const struct schedule *s, const struct epoch_order *order,
                       const struct plan_samples *wanted, const struct plan_samples *found,
                       uint64_t from, uint64_t *ret)
{
    uint64_t count = found->last - found->first + 1;
    struct search search;

    search_init(&search, s, order, POSITIONS_MOST);
    search.from = from;
    search.least = ret;
    if (s->order.ops != &order_permutation && schedule_find_scan(&search, wanted))
        return;
    if (count <= LOOK_ALL)
        schedule_find_examine(&search, 0, found->first, found->last);
    for (uint64_t i = 0; i < LOOK_RUNS && count > LOOK_ALL; i++) {
        uint64_t at = found->first + (count - LOOK_EACH) / (LOOK_RUNS - 1) * i;

        schedule_find_examine(&search, 0, at, at + LOOK_EACH - 1);
    }
    look_at_rest(&search);
}

/* At most AT_ONCE of them. */
static void find_some(const struct schedule *s, const struct epoch_order *order, size_t count,
                      const struct plan_samples *wanted, uint64_t from, uint64_t *ret)
{
    struct plan_samples found[AT_ONCE];
    struct search search;

    search_init(&search, s, order, UINT64_MAX);
    search.from = from;
    search.least = ret;
    clip_all(s, count, wanted, found);
    for (uint32_t i = 0; i < count; i++) {
        ret[i] = SCHEDULE_NONE;
        if (found[i].first > found[i].last)
            continue;
        if (is_stored_order(s)) {
            found[i].last = min_u64(found[i].last, s->positions - 1);
            if (found[i].first <= found[i].last)
                ret[i] = find_positions(s, found[i].first, found[i].last, from);
        } else if (is_small(s, &found[i])) {
            schedule_find_examine(&search, i, found[i].first, found[i].last);
        } else {
            find_large(s, order, &wanted[i], &found[i], from, &ret[i]);
        }
    }
    look_at_rest(&search);
}

/* The units of some samples. */
static struct plan_samples units_of(const struct schedule *s, struct plan_samples samples)
{
    return s->units ? (struct plan_samples){plan_units_of(s->units, samples.first),
                                            plan_units_of(s->units, samples.last)}
                    : samples;
}

void schedule_find_each(const struct schedule *s, const struct epoch_order *order, size_t count,
                        const struct plan_samples *wanted, uint64_t from, uint64_t *ret)
{
    struct plan_samples units[AT_ONCE];

    for (size_t n; count; count -= n, wanted += n, ret += n) {
        n = (size_t)min_u64(count, AT_ONCE);
        for (size_t i = 0; s->units && i < n; i++)
            units[i] = units_of(s, wanted[i]);
        find_some(s, order, n, s->units ? units : wanted, from, ret);
    }
}

uint64_t schedule_find(const struct schedule *s, const struct epoch_order *order, uint64_t first,
                       uint64_t last, uint64_t from)
{
    const struct plan_samples wanted = units_of(s, (struct plan_samples){first, last});
    uint64_t element;

    find_some(s, order, 1, &wanted, from, &element);
    return element;
}

uint64_t schedule_last(const struct schedule *s, const struct epoch_order *order, uint64_t first,
                       uint64_t last)
{
    const struct plan_samples wanted = units_of(s, (struct plan_samples){first, last});
    struct plan_samples found;
    struct search search;

    search_init(&search, s, order, POSITIONS_MOST);
    search.wants_last = true;
    clip_all(s, 1, &wanted, &found);
    if (found.first > found.last)
        return SCHEDULE_NONE;
    if (is_stored_order(s)) {
        found.last = min_u64(found.last, s->positions - 1);
        if (found.first <= found.last)
            search.end = end_of_positions(s, found.first, found.last);
    } else if (found.last - found.first >= LAST_ALL) {
        search.end = s->elements;
    } else {
        schedule_find_examine(&search, 0, found.first, found.last);
        look_at_rest(&search);
        search.end = search.budget ? search.end : s->elements;
    }
    return search.end ? search.end - 1 : SCHEDULE_NONE;
}
