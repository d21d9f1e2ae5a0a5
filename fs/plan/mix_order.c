/* Positions come in batches, whose elements belong to several sources and passes. With shuffle=full
 * each goes through a member of one family of permutations; with shuffle=window the elements of a
 * pass are collected, because they may share what costs much to set up. */
#include "fs/plan/mix_order.h"

#include <assert.h>

#include "base/checked.h"
#include "base/scope.h"
#include "base/search.h"

#define AT_ONCE 64
#define FOUND   8 /* sources */

/* ---- elements ---- */

/* Elements of the mix, of a batch of positions or on the way back. */
struct elements {
    size_t n;
    unsigned source[AT_ONCE];
    uint64_t pass[AT_ONCE];  /* modulo 2^64 */
    uint64_t place[AT_ONCE]; /* in the list, or in the shuffled pass */
};

static void family_of(const struct mix_order *o, const struct elements *e,
                      struct permutation_member ret[static AT_ONCE])
{
    for (size_t i = 0; i < e->n; i++)
        ret[i] = family_member(e->source[i], e->pass[i], o->list[e->source[i]].schedule.positions);
}

/* Send those elements of a pass that are not sent yet; bit i of *sent is that of element i. */
static void send_pass(const struct order_spec *spec, const struct elements *e, size_t first,
                      bool back, uint64_t *place, uint64_t *sent)
{
    const struct mix_order *o = spec->impl;
    unsigned source = e->source[first];
    uint64_t x[AT_ONCE];
    size_t at[AT_ONCE], n = 0;
    struct order order;

    for (size_t i = first; i < e->n; i++)
        if (e->source[i] == source && e->pass[i] == e->pass[first]) {
            *sent |= UINT64_C(1) << i;
            x[n] = place[i];
            at[n++] = i;
        }
    order_init(&order, order_key(spec->seed, source, LANE_MIX, 1), e->pass[first],
               o->list[source].schedule.positions, spec->window);
    (back ? order_unmap : order_map)(&order, n, x);
    for (size_t i = 0; i < n; i++)
        place[at[i]] = x[i];
}

static_assert(AT_ONCE <= 64, "a bit for each");

/* From places of shuffled passes to places of lists, or back. */
static void shuffle(const struct order_spec *spec, const struct epoch_order *epoch, bool back,
                    struct elements *e)
{
    struct permutation_member member[AT_ONCE];
    uint64_t sent = 0;

    if (!spec->seeded)
        return;
    if (!spec->window) {
        family_of(spec->impl, e, member);
        (back ? family_back_each : family_send_each)(&epoch->of_kind.family, member, e->n,
                                                     e->place);
        return;
    }
    for (size_t i = 0; i < e->n; i++)
        if (!(sent >> i & 1))
            send_pass(spec, e, i, back, e->place, &sent);
}

/* The first position of an epoch. */
static mix_number start_of(const struct order_spec *spec, const struct epoch_order *epoch)
{
    const struct mix_order *o = spec->impl;

    return spec->seeded ? (mix_number)epoch->epoch * o->length : 0;
}

static void mix_order_begin(const struct order_spec *spec, uint64_t epoch, struct epoch_order *ret)
{
    (void)epoch;
    if (spec->seeded && !spec->window)
        family_init(&ret->of_kind.family, spec->seed, 0, LANE_MIX);
}

/* ---- from positions to samples ---- */

static uint64_t mix_order_sample_of(const struct mix_list *list, uint64_t place)
{
    uint64_t sample = place;

    if (!list->is_whole)
        schedule_elements(&list->schedule, &list->order, place, 1, &sample);
    return list->first + sample;
}

static void mix_order_at(const struct order_spec *spec, const struct epoch_order *epoch,
                         size_t count, uint64_t *x)
{
    const struct mix_order *o = spec->impl;
    mix_number start = start_of(spec, epoch);
    struct elements e;

    for (; count; count -= e.n, x += e.n) {
        e.n = (size_t)min_u64(count, AT_ONCE);
        for (size_t i = 0; i < e.n; i++) {
            mix_number element;

            e.source[i] = mix_at(o->mix, start + x[i], &element);
            e.pass[i] =
                (uint64_t)mix_divide(element, o->list[e.source[i]].schedule.positions, &e.place[i]);
        }
        shuffle(spec, epoch, false, &e);
        for (size_t i = 0; i < e.n; i++)
            x[i] = mix_order_sample_of(&o->list[e.source[i]], e.place[i]);
    }
}

/* ---- from samples to positions ---- */

/* Where a sample of the mix is: its source, and the passes of it that the epoch shows a part of. */
struct found {
    unsigned source;
    uint64_t first, end; /* the source's first sample, and the number behind its last one */
    mix_number pass;
    uint64_t passes; /* 0: the epoch shows nothing of the source */
};

static unsigned mix_order_source_of(const struct mix_order *o, uint64_t sample)
{
    return (unsigned)search_last_up_to(&o->list->first, sizeof(*o->list), o->n, sample);
}

static void find_passes(const struct order_spec *spec, const struct epoch_order *epoch,
                        unsigned source, struct found *ret)
{
    const struct mix_order *o = spec->impl;
    mix_number start = start_of(spec, epoch), first, end;
    uint64_t places = o->list[source].schedule.positions, remainder;

    first = mix_count_least(o->mix, source, start);
    end = mix_count_least(o->mix, source, start + o->length) + 1; /* perhaps one too many */
    *ret = (struct found){.source = source, .first = o->list[source].first};
    ret->end = ret->first + o->list[source].samples;
    ret->pass = mix_divide(first, places, &remainder);
    ret->passes = (uint64_t)(mix_divide(end - 1, places, &remainder) - ret->pass) + 1;
}

/* The places of a sample in its source's list: one at most, but with only=. Returns whether there
 * is a place number `number`. */
static bool mix_order_find_place(const struct mix_list *list, uint64_t sample, uint64_t number,
                                 uint64_t *ret)
{
    uint64_t from = 0, place = 0;

    if (list->is_whole) {
        *ret = sample;
        return !number;
    }
    for (uint64_t i = 0; i <= number; i++, from = place + 1) {
        place = schedule_find(&list->schedule, &list->order, sample, sample, from);
        if (place == SCHEDULE_NONE)
            return false;
    }
    *ret = place;
    return true;
}

/* Elements that a sample may have. */
struct collected {
    struct elements e;
    struct found found[FOUND]; /* of the latest sources; end 0: of none yet */
    mix_number pass[AT_ONCE];  /* not modulo anything */
    uint32_t whose[AT_ONCE];   /* the number of the walk */
};

/* Where a sample is. recent: [FOUND] sources that were found lately. */
static const struct found *found_of(const struct order_spec *spec, const struct epoch_order *epoch,
                                    uint64_t sample, struct found *recent)
{
    unsigned source = mix_order_source_of(spec->impl, sample);
    struct found *ret = &recent[source % FOUND];

    if (!ret->end || ret->source != source)
        find_passes(spec, epoch, source, ret);
    return ret;
}

/* Collect the next elements of samples walk->place ..; each place of a sample in turn shows it in
 * each pass: walk->done counts both. */
static void collect_walk(const struct order_spec *spec, const struct epoch_order *epoch,
                         uint32_t walk_number, struct order_walk *walk, size_t capacity,
                         struct collected *ret)
{
    const struct mix_order *o = spec->impl;
    struct elements *e = &ret->e;

    while (walk->place <= walk->last && e->n < capacity) {
        const struct found *found = found_of(spec, epoch, walk->place, ret->found);
        uint64_t place, number, pass;

        number = found->passes ? walk->done / found->passes : 0;
        pass = found->passes ? walk->done % found->passes : 0;
        if (!found->passes || !mix_order_find_place(&o->list[found->source],
                                                    walk->place - found->first, number, &place)) {
            walk->place++;
            walk->done = 0;
            continue;
        }
        for (; pass < found->passes && e->n < capacity; pass++, walk->done++) {
            ret->whose[e->n] = walk_number;
            ret->pass[e->n] = found->pass + pass;
            e->source[e->n] = found->source;
            e->pass[e->n] = (uint64_t)ret->pass[e->n];
            e->place[e->n++] = place;
        }
        if (pass == found->passes && o->list[found->source].is_whole) {
            walk->place++;
            walk->done = 0;
        }
    }
}

static size_t mix_order_positions(const struct order_spec *spec, const struct epoch_order *epoch,
                                  size_t n, struct order_walk *walk, size_t capacity, uint64_t *ret,
                                  uint32_t *whose)
{
    const struct mix_order *o = spec->impl;
    mix_number start = start_of(spec, epoch);
    struct collected found;
    size_t got = 0;

    found.e.n = 0;
    for (size_t i = 0; i < FOUND; i++)
        found.found[i].end = 0;
    for (uint32_t i = 0; i < n && found.e.n < min_u64(capacity, AT_ONCE); i++)
        collect_walk(spec, epoch, i, &walk[i], (size_t)min_u64(capacity, AT_ONCE), &found);
    shuffle(spec, epoch, true, &found.e);
    for (size_t i = 0; i < found.e.n; i++) {
        unsigned source = found.e.source[i];
        uint64_t places = o->list[source].schedule.positions;
        mix_number position;

        if (mix_position(o->mix, source, found.pass[i] * places + found.e.place[i], &position) &&
            position >= start && position - start < o->length) {
            whose[got] = found.whose[i];
            ret[got++] = (uint64_t)(position - start);
        }
    }
    return got;
}

/* As if all samples of the source came equally often. */
static uint64_t mix_order_count(const struct order_spec *spec, uint64_t first, uint64_t last)
{
    static const struct epoch_order first_epoch = {.epoch = 0};
    const struct mix_order *o = spec->impl;
    uint64_t sum = 0;

    while (first <= last) {
        struct found found;
        uint64_t n;

        find_passes(spec, &first_epoch, mix_order_source_of(o, first), &found);
        n = min_u64(last - first + 1, found.end - first);
        if (!checked_mul(n, found.passes, &n) || !checked_add(sum, n, &sum))
            return UINT64_MAX;
        first = found.end;
    }
    return min_u64(sum, o->length);
}

const struct order_ops order_mix = {
    .name = "mix",
    .version = 1,
    .begin = mix_order_begin,
    .at = mix_order_at,
    .positions = mix_order_positions,
    .count = mix_order_count,
};

void mix_order_set(struct mix_order *o, struct order_spec *ret)
{
    for (unsigned i = 0; i < o->n; i++) {
        struct mix_list *list = &o->list[i];

        schedule_order(&list->schedule, 0, &list->order);
        list->is_whole = !schedule_has_order(&list->schedule) && !list->schedule.taken.start &&
                         list->schedule.positions == list->samples;
    }
    *ret = (struct order_spec){
        .ops = &order_mix,
        .places = o->list[o->n - 1].first + o->list[o->n - 1].samples,
        .length = o->length,
        .impl = o,
    };
}
