/* A plan applied to a dataset: element of the rank -> position -> place of the list -> sample.
 * fs/plan/schedule_find.c is the way back. */
#include "fs/plan/schedule.h"

#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/search.h"
#include "base/text.h"

__extension__ typedef unsigned __int128 u128;

#define WRAPS_MOST 64 /* where there are more than 2^64 elements */

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

static uint64_t schedule_place_of(const struct plan_place *place, uint64_t samples)
{
    return min_u64(place->is_percent ? mul_div(samples, place->n, 100) : place->n, samples);
}

static struct plan_range schedule_range(const struct plan *plan, uint64_t samples)
{
    uint64_t from = schedule_place_of(&plan->take_from, samples),
             to = schedule_place_of(&plan->take_to, samples);

    return plan->takes ? (struct plan_range){from, to > from ? to - from : 0}
                       : (struct plan_range){0, samples};
}

/* The share of n places of the split's permutation. */
static struct plan_range schedule_split(const struct plan *plan, uint64_t n)
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
static void schedule_set_list(struct schedule *s, const struct plan_data *data)
{
    const struct plan *plan = s->plan;
    const struct plan_range *part = s->units ? NULL : data->part;
    struct plan_range share, list;

    if (part && !plan->takes && !plan->splits && !s->only) {
        s->taken = *part;
        s->length = part->length;
        return;
    }
    s->taken = plan->ranges ? (struct plan_range){0, s->samples} : schedule_range(plan, s->samples);
    share = schedule_split(plan, s->taken.length);
    plan_share(plan->part, plan->parts, share.length, &list.start, &list.length);
    s->length = list.length;
    if (plan->splits)
        s->offset = share.start + list.start;
    else
        s->taken = (struct plan_range){s->taken.start + list.start, list.length};
}

/* Choose the order of the list. */
static void set_order(struct schedule *s, const struct plan_data *data)
{
    const struct plan *plan = s->plan;
    struct order_spec *o = &s->order;

    *o = (struct order_spec){
        .ops = &order_permutation,
        .places = s->length,
        .length = s->length,
        .seeded = plan->seeded,
        .seed = plan->seed,
        .window = plan->window,
    };
    if (plan->draw) {
        o->ops = &order_draw;
        o->length = s->length ? plan->draws : 0;
        o->weights = plan->draw == DRAW_WEIGHTS ? data->weights : NULL;
        o->classes = plan->draw == DRAW_BALANCED ? data->classes : NULL;
        if (plan->draw != DRAW_UNIFORM && !o->weights && !o->classes)
            o->length = 0;
    } else if (plan->of_class) {
        o->ops = &order_classes;
        o->classes = data->classes;
        o->batch_classes = plan->batch_classes;
        o->of_class = plan->of_class;
        o->length = o->classes ? order_classes_length(o) : 0;
        s->unit = plan->batch_classes * plan->of_class;
    } else if (data->dataset_order) {
        o->ops = data->dataset_order->ops;
        o->impl = data->dataset_order->impl;
        o->length = data->dataset_order->length;
    }
}

static uint64_t schedule_elements_of(const struct plan *plan, uint64_t units)
{
    switch (plan->tail) {
    case TAIL_KEEP:
        return plan->rank < units ? ceil_div(units - plan->rank, plan->ranks) : 0;
    case TAIL_DROP:
        return units / plan->ranks;
    default:
        return ceil_div(units, plan->ranks);
    }
}

/* Elements of a rank whose batches are dealt whole. */
static uint64_t elements_of_units(const struct schedule *s)
{
    const struct plan *plan = s->plan;
    uint64_t full = s->positions / s->unit, over = s->positions % s->unit;
    uint64_t units = schedule_elements_of(plan, full + (over && plan->tail != TAIL_DROP));
    bool has_short = over && plan->tail == TAIL_KEEP && full % plan->ranks == plan->rank;

    return units * s->unit - (has_short ? s->unit - over : 0);
}

static void set_cuts(struct schedule *s, const struct plan_data *data)
{
    uint64_t most = s->positions;

    s->cuts = data->cuts;
    s->elements = s->positions;
    s->batch = 1;
    if (s->cuts)
        s->cuts->ops->count(s->cuts, 0, &most);
    s->batches = schedule_elements_of(s->plan, s->plan->budget ? s->positions : most);
}

void schedule_init_data(struct schedule *ret, const struct plan *plan, const struct plan_data *data)
{
    uint64_t elements, n;

    *ret = (struct schedule){
        .plan = plan, .only = plan->only[0] || plan->ranges ? data->only : NULL, .unit = 1};
    ret->units = plan->unit[0] ? data->units : NULL;
    ret->samples = ret->units ? ret->units->n : ret->only ? ret->only->n : data->samples;
    schedule_set_list(ret, data);
    set_order(ret, data);
    n = ret->order.length;
    ret->positions = plan->limits ? min_u64(plan->limit, n) : n;
    if (plan_is_by_length(plan)) {
        set_cuts(ret, data);
        return;
    }
    elements = ret->unit > 1 ? elements_of_units(ret) : schedule_elements_of(plan, ret->positions);
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

void schedule_init(struct schedule *ret, const struct plan *plan, uint64_t samples,
                   const struct plan_range *part)
{
    schedule_init_data(ret, plan, &(struct plan_data){.samples = samples, .part = part});
}

/* Do the words that make the order hold? */
static int schedule_check_order(const struct schedule *s, struct diag *d)
{
    const struct plan *plan = s->plan;
    const struct order_spec *o = &s->order;

    if (plan->only[0] && !s->only)
        return diag_set(d, -EINVAL,
                        "only: expected the name of a list that subset=NAME=FILE gives to "
                        "the mount, got '%s'",
                        plan->only);
    if (plan->ranges && !s->only)
        return diag_set(d, -EINVAL,
                        "length: expected a dataset whose samples have lengths, got none");
    if (plan->draw == DRAW_WEIGHTS && !o->weights)
        return diag_set(d, -EINVAL, "draw: expected a field of weights, got no '%s'",
                        plan->draw_field);
    if ((plan->draw == DRAW_BALANCED || plan->of_class) && !o->classes)
        return diag_set(d, -EINVAL,
                        "%s: expected a dataset whose samples have classes, got no 'label'",
                        plan->draw ? "draw" : "classes");
    if (plan->of_class && plan->batch_classes > o->classes->n)
        return diag_set(d, -EINVAL,
                        "classes: expected at most %llu classes, those of the list, in a "
                        "batch, got %llu",
                        (unsigned long long)o->classes->n, (unsigned long long)plan->batch_classes);
    if (o->length > ORDER_MAX)
        return diag_set(d, -EINVAL, "expected an epoch of at most 2^48 samples, got more");
    return 0;
}

/* What a plan counts. */
static const char *counted(const struct schedule *s)
{
    return s->units ? "units" : "samples";
}

int schedule_check_list(const struct schedule *s, struct diag *d)
{
    const struct plan *plan = s->plan;

    if (plan->splits && !schedule_split(plan, s->taken.length).length)
        return diag_set(d, -EINVAL,
                        "split: expected a share that has %s, got none in share %u of %llu %s",
                        counted(s), plan->split, (unsigned long long)s->taken.length, counted(s));
    if (((plan->draw && plan->draws) || plan->of_class) && !s->length)
        return diag_set(d, -EINVAL, "%s: expected a list that has samples, got none",
                        plan->draw ? "draw" : "classes");
    return 0;
}

int schedule_check(const struct schedule *s, struct diag *d)
{
    const struct plan *plan = s->plan;

    if (schedule_check_list(s, d) < 0 || schedule_check_order(s, d) < 0)
        return -EINVAL;
    if (plan->unit[0] && !s->units)
        return diag_set(d, -EINVAL, "unit: expected a dataset with the field '%s', got none",
                        plan->unit);
    if (plan_is_by_length(plan) && !s->cuts)
        return diag_set(d, -EINVAL,
                        "bucket: expected a dataset whose samples have lengths, got none");
    if (plan->limits && plan->limit > s->order.length)
        return diag_set(d, -EINVAL, "limit: expected at most %llu, the %s of the %s, got %llu",
                        (unsigned long long)s->order.length, counted(s),
                        s->order.ops == &order_permutation ? "list" : "epoch",
                        (unsigned long long)plan->limit);
    return 0;
}

/* A percentage is never beyond the end. */
static void schedule_note_place(const struct schedule *s, const struct plan_place *place,
                                struct text *t)
{
    if (!place->is_percent && place->n > s->samples)
        text_add(t, "%stake=: %llu is past the end (%llu %s); using the end", t->len ? "; " : "",
                 (unsigned long long)place->n, (unsigned long long)s->samples,
                 s->only ? "lines of the list" : "samples of the dataset");
}

void schedule_note(const struct schedule *s, struct text *t)
{
    const struct plan *plan = s->plan;

    if (s->units && s->units->repeated)
        text_add(t,
                 "unit=%s: %llu of %llu units have a value that an earlier one has, and are "
                 "units of their own; split= may put them into different shares",
                 plan->unit, (unsigned long long)s->units->repeated,
                 (unsigned long long)s->units->n);
    if (plan->takes && !plan->ranges) {
        schedule_note_place(s, &plan->take_from, t);
        schedule_note_place(s, &plan->take_to, t);
    }
    if (s->elements)
        return;
    text_add(t, "%s", t->len ? "; " : "");
    if (!s->positions)
        text_add(t, "the plan leaves none of %llu samples", (unsigned long long)s->samples);
    else if (plan->tail == TAIL_DROP)
        text_add(t, "tail=drop leaves no batch: %llu samples are fewer than a batch for each rank",
                 (unsigned long long)s->positions);
    else
        text_add(t, "rank %llu has none of %llu samples", (unsigned long long)plan->rank,
                 (unsigned long long)s->positions);
}

void schedule_order(const struct schedule *s, uint64_t epoch, struct epoch_order *ret)
{
    ret->epoch = epoch;
    if (s->order.ops->begin)
        s->order.ops->begin(&s->order, epoch, ret);
    if (s->plan->splits)
        permutation_init(&ret->split, 0, 0, LANE_SPLIT, s->taken.length);
}

bool schedule_batches(const struct schedule *s, uint64_t epoch, uint64_t *ret)
{
    uint64_t all;
    bool is_known;

    *ret = s->batches;
    if (!s->cuts)
        return true;
    is_known = s->cuts->ops->count(s->cuts, epoch, &all);
    *ret = schedule_elements_of(s->plan, all);
    return is_known;
}

int schedule_has(const struct schedule *s, uint64_t epoch, uint64_t number)
{
    uint64_t ranks = s->plan->ranks, last = number * ranks + s->plan->rank;

    if (number >= s->batches || !s->cuts)
        return number < s->batches ? 0 : -ENOENT;
    if (s->plan->tail != TAIL_KEEP)
        last = s->plan->tail == TAIL_DROP ? number * ranks + ranks - 1 : number * ranks;
    return s->cuts->ops->has(s->cuts, epoch, last);
}

/* The batch of all ranks. The last ones of tail=wrap are the first of the epoch. */
static int schedule_find_cut(const struct schedule *s, uint64_t epoch, uint64_t number,
                             struct cut_batch *ret)
{
    uint64_t g = number * s->plan->ranks + s->plan->rank, all;
    int r = s->cuts->ops->find(s->cuts, epoch, g, ret);

    if (r == -ENOENT && s->plan->tail == TAIL_WRAP && s->cuts->ops->count(s->cuts, epoch, &all) &&
        all)
        r = s->cuts->ops->find(s->cuts, epoch, g % all, ret);
    return r;
}

static int find_batch(const struct schedule *s, uint64_t epoch, uint64_t number,
                      struct schedule_batch *ret)
{
    struct cut_batch found;
    int r;

    *ret = (struct schedule_batch){0};
    if (!s->cuts) {
        *ret = (struct schedule_batch){.number = number,
                                       .count = min_u64(s->batch, s->elements - number * s->batch)};
        return 0;
    }
    r = schedule_find_cut(s, epoch, number, &found);
    if (r == 0)
        *ret = (struct schedule_batch){
            .number = number, .count = found.count, .base = found.base, .at = found.at};
    return r;
}

void schedule_batch_release(struct schedule_batch *batch)
{
    free(batch->unit);
    free(batch->at);
    *batch = (struct schedule_batch){0};
}

uint64_t schedule_begin(const struct schedule *s, uint64_t epoch, uint64_t number)
{
    struct cut_batch found;

    if (!s->cuts)
        return number * s->batch;
    if (schedule_find_cut(s, epoch, number, &found) < 0)
        return s->elements;
    free(found.at);
    return found.begin;
}

/* (a * b + c) mod n where the product may not fit in 64 bits. */
static uint64_t mul_add_mod(uint64_t a, uint64_t b, uint64_t c, uint64_t n)
{
    return (uint64_t)(((u128)a * b + c) % n);
}

bool schedule_in_order(const struct schedule *s, const struct schedule_batch *batch,
                       uint64_t *ret_first)
{
    uint64_t first = batch->number * s->batch;

    *ret_first = s->taken.start + first;
    /* A last batch that is filled up continues at the start. */
    return !schedule_has_order(s) && s->plan->ranks == 1 && first + batch->count <= s->positions;
}

/* The positions of elements of units that go to a rank together. */
static void unit_positions(const struct schedule *s, uint64_t element, size_t count, uint64_t *ret)
{
    const struct plan *plan = s->plan;
    uint64_t n = s->positions, number = element / s->unit, within = element % s->unit;

    for (size_t i = 0; i < count; number++, within = 0) {
        u128 start = ((u128)number * plan->ranks + plan->rank) * s->unit + within;
        uint64_t position = (uint64_t)(start % n);

        for (uint64_t k = within; i < count && k < s->unit; i++, k++) {
            ret[i] = position;
            position = position + 1 == n ? 0 : position + 1;
        }
    }
}

static void element_positions(const struct schedule *s, uint64_t element, size_t count,
                              uint64_t *ret)
{
    uint64_t n = s->positions, ranks = s->plan->ranks;
    uint64_t position = mul_add_mod(element, ranks, s->plan->rank, n), stride = ranks % n;

    for (size_t i = 0; i < count; i++) {
        ret[i] = position;
        position = position >= n - stride ? position - (n - stride) : position + stride;
    }
}

/* From places of the list to samples. */
static void map_list(const struct schedule *s, const struct permutation *shares, size_t count,
                     uint64_t *x)
{
    if (s->plan->splits) {
        for (size_t i = 0; i < count; i++)
            x[i] += s->offset;
        permutation_send(shares, count, x);
    }
    for (size_t i = 0; i < count; i++)
        x[i] += s->taken.start;
    for (size_t i = 0; i < count && s->only; i++)
        x[i] = s->only->sample[x[i]];
}

void schedule_list(const struct schedule *s, uint64_t first, size_t count, uint64_t *ret)
{
    struct permutation shares;

    if (s->plan->splits)
        permutation_init(&shares, 0, 0, LANE_SPLIT, s->taken.length);
    for (size_t i = 0; i < count; i++)
        ret[i] = first + i;
    map_list(s, &shares, count, ret);
}

/* The positions of elements of the rank. */
static void schedule_find_positions(const struct schedule *s, uint64_t element, size_t count,
                                    uint64_t *ret)
{
    if (!count)
        return;
    if (s->unit > 1)
        unit_positions(s, element, count, ret);
    else
        element_positions(s, element, count, ret);
}

/* Turn positions into samples. */
static void schedule_map(const struct schedule *s, const struct epoch_order *order, size_t count,
                         uint64_t *x)
{
    if (s->order.ops != &order_permutation || s->order.seeded)
        s->order.ops->at(&s->order, order, count, x);
    map_list(s, order ? &order->split : NULL, count, x);
}

static void plain_positions(const struct schedule *s, const struct schedule_batch *batch,
                            uint64_t first, size_t count, uint64_t *ret)
{
    for (size_t i = 0; batch->at && i < count; i++)
        ret[i] = batch->base + batch->at[first + i];
    if (!batch->at)
        schedule_find_positions(s, batch->number * s->batch + first, count, ret);
}

void schedule_positions(const struct schedule *s, const struct schedule_batch *batch,
                        uint64_t first, size_t count, uint64_t *ret)
{
    if (!batch->unit)
        plain_positions(s, batch, first, count, ret);
    for (size_t i = 0; batch->unit && i < count; i++)
        ret[i] = first + i; /* no word that may stand with unit= asks for them */
}

/* Find the units of a batch, and count its samples. */
static int expand_units(const struct schedule *s, uint64_t epoch, struct schedule_batch *batch)
{
    struct epoch_order order;
    uint64_t samples = 0;

    batch->units = batch->count;
    batch->unit = calloc(batch->units + 1, 2 * sizeof(*batch->unit));
    if (!batch->unit)
        return -ENOMEM;
    batch->end = batch->unit + batch->units;
    schedule_order(s, epoch, &order);
    plain_positions(s, batch, 0, (size_t)batch->units, batch->unit);
    schedule_map(s, &order, (size_t)batch->units, batch->unit);
    for (uint64_t i = 0; i < batch->units; i++) {
        uint64_t unit = batch->unit[i] = min_u64(batch->unit[i], s->units->n - 1);

        samples += s->units->start[unit + 1] - s->units->start[unit];
        batch->end[i] = samples;
    }
    batch->count = samples;
    return 0;
}

int schedule_batch_init(const struct schedule *s, uint64_t epoch, uint64_t number,
                        struct schedule_batch *ret)
{
    struct schedule_batch found;
    int r = find_batch(s, epoch, number, &found);

    if (r == 0 && s->units)
        r = expand_units(s, epoch, &found);
    if (r == 0)
        *ret = found;
    else if (s->units)
        schedule_batch_release(&found);
    return r;
}

/* Samples first .. first + count - 1 of the units of a batch, one unit after another. */
static void unit_samples(const struct schedule *s, const struct schedule_batch *batch,
                         uint64_t first, size_t count, uint64_t *ret)
{
    /* The unit that has the first: those before it end at or before that. */
    uint64_t low = SEARCH_LAST(batch->units, i, batch->end[i - 1] <= first);

    for (size_t i = 0; i < count; low++) {
        uint64_t begin = low ? batch->end[low - 1] : 0;

        for (; i < count && first + i < batch->end[low]; i++)
            ret[i] = s->units->start[batch->unit[low]] + (first + i - begin);
    }
}

void schedule_samples(const struct schedule *s, const struct epoch_order *order,
                      const struct schedule_batch *batch, uint64_t first, size_t count,
                      uint64_t *ret)
{
    if (batch->unit) {
        unit_samples(s, batch, first, count, ret);
        return;
    }
    plain_positions(s, batch, first, count, ret);
    schedule_map(s, order, count, ret);
}

static void cut_elements(const struct schedule *s, const struct epoch_order *order, uint64_t first,
                         size_t count, uint64_t *ret)
{
    const struct cut_rank rank = {s->plan->rank, s->plan->ranks};

    s->cuts->ops->elements(s->cuts, order->epoch, rank, first, count, ret);
    for (size_t i = 0, n; i < count; i += n) {
        bool is_none = ret[i] == SCHEDULE_NONE;

        for (n = 1; i + n < count && (ret[i + n] == SCHEDULE_NONE) == is_none;)
            n++;
        if (!is_none)
            schedule_map(s, order, n, ret + i);
    }
}

void schedule_elements(const struct schedule *s, const struct epoch_order *order, uint64_t first,
                       size_t count, uint64_t *ret)
{
    if (s->cuts) {
        cut_elements(s, order, first, count, ret);
    } else {
        schedule_find_positions(s, first, count, ret);
        schedule_map(s, order, count, ret);
    }
    for (size_t i = 0; s->units && i < count; i++)
        if (ret[i] != SCHEDULE_NONE)
            ret[i] = s->units->start[min_u64(ret[i], s->units->n - 1)];
}
