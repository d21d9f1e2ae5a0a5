/* Times. Each cursor has a clock: the time at which its next element is read. The clock goes
 * forward with the reader, by one for each element of the fastest reader. An element of a slower
 * reader counts for more, if both speeds are known. So the time of an element stays the same while
 * its reader comes closer, and bytes needed sooner have the smaller time, whichever reader needs
 * them. Clocks of readers whose speeds are not known drift apart; a clock too far behind the latest
 * is set forward. */
#include "fs/drive/needs_cursors.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

#define LAG        4096 /* elements that a clock may be behind the latest; two units if more */
#define SCALE_MOST 4096.0

/* ---- making them ---- */

static void needs_cursors_add_field(struct cursor *c, const struct field *f)
{
    for (unsigned i = 0; i < c->n_fields; i++)
        if (c->field[i] == f)
            return;
    c->field[c->n_fields++] = f;
}

/* Collect the fields of the files that are read. */
static void needs_cursors_set_fields(struct cursor *c, const struct active_cursor *active)
{
    enum scope scope =
        active->is_samples || !active->plan ? SCOPE_SAMPLES : plan_scope(active->plan);
    const struct folder *folder = active->folder;

    c->n_fields = 0;
    for (unsigned i = 0; folder && i < folder->n_kinds[scope]; i++) {
        const struct field *f = folder->files[scope][i].field;

        if (!(active->columns >> i & 1))
            continue;
        if (!f) {
            c->n_fields = 0;
            return;
        }
        needs_cursors_add_field(c, f->base_field ? f->base_field : f);
    }
}

/* Batches that differ in their samples were counted, and not their elements. */
static uint64_t cursor_element(const struct cursor *c, const struct active_cursor *active,
                               uint64_t at)
{
    uint64_t batches;

    if (c->schedule.cuts && !active->is_samples) {
        if (schedule_batches(&c->schedule, active->epoch, &batches) && at >= batches)
            return c->elements;
        at = at ? schedule_begin(&c->schedule, active->epoch, at) : 0;
    }
    return min_u64(at, c->elements);
}

static void set_schedule(struct cursor *c, const struct active_cursor *active)
{
    static const struct plan stored_order = {.batch = 1, .parts = 1, .ranks = 1};
    uint64_t batches;

    if (active->plan)
        c->schedule = active->plan->schedule;
    else
        schedule_init(&c->schedule, &stored_order, c->ds->samples, NULL);
    c->elements = c->schedule.positions ? c->schedule.elements : 0;
    c->unit = active->is_samples ? 1 : max_u64(c->schedule.batch, 1);
    c->is_seeded = c->schedule.plan->seeded;
    if (c->schedule.cuts && schedule_batches(&c->schedule, c->epoch, &batches) && batches)
        c->speed = active->speed * (double)c->elements / (double)batches; /* of batches */
    c->at = cursor_element(c, active, active->at);
    c->from = cursor_element(c, active, active->from);
    c->read = cursor_element(c, active, active->read);
}

static void set_orders(struct cursor *c, const struct cursor *before)
{
    if (!schedule_has_order(&c->schedule))
        return;
    if (before && before->plan == c->plan && before->epoch == c->epoch) {
        memcpy(c->order, before->order, sizeof(c->order));
        return;
    }
    for (unsigned i = 0; i < 2; i++)
        schedule_order(&c->schedule, c->epoch + i, &c->order[i]);
}

static const struct cursor *find_id(const struct cursors *cursors, uint64_t id)
{
    for (size_t i = 0; i < cursors->n; i++)
        if (cursors->cursor[i].id == id)
            return &cursors->cursor[i];
    return NULL;
}

/* The cursor of another epoch of the plan of c. */
static const struct cursor *find_epoch(const struct cursors *cursors, const struct cursor *c,
                                       uint64_t epoch)
{
    for (size_t i = 0; i < cursors->n; i++)
        if (cursors->cursor[i].plan == c->plan && cursors->cursor[i].item == c->item &&
            cursors->cursor[i].epoch == epoch && cursors->cursor[i].id != c->id)
            return &cursors->cursor[i];
    return NULL;
}

/* Continue from where the reader was, plus what it has passed since. */
static void go_forward(struct cursor *c, const struct cursor *before, uint64_t passed)
{
    c->passed = before->passed + passed;
    c->scale = before->scale;
    c->clock = cursor_time(before, passed);
}

static void needs_cursors_set_progress(struct cursor *c, const struct cursors *before,
                                       struct cursors *cursors)
{
    const struct cursor *same = find_id(before, c->id), *last = NULL;

    set_orders(c, same);
    if (same && same->jumps == c->jumps && same->epoch == c->epoch &&
        (c->at >= same->at || !c->is_seeded)) {
        c->run = same->run;
        c->from_run = same->from_run;
        /* Without a seed every round is the same. */
        go_forward(c, same, c->at >= same->at ? c->at - same->at : c->elements - same->at + c->at);
        return;
    }
    if (!same && c->is_seeded && c->epoch)
        last = find_epoch(before, c, c->epoch - 1);
    c->run = ++cursors->runs;
    c->from_run = last ? last->run : 0;
    if (last) {
        go_forward(c, last, last->elements - last->at + c->at);
        return;
    }
    cursors->jumps++;
    c->passed = 0;
    c->clock = before->latest;
    c->scale = same ? same->scale : 1;
}

/* The time that an element of each reader counts for, next to one of the fastest. Speeds vary, so a
 * scale stays until it is far off. */
static void set_scales(struct cursors *cursors)
{
    double fastest = 0;

    for (size_t i = 0; i < cursors->n; i++)
        fastest = fmax(fastest, cursors->cursor[i].speed);
    for (size_t i = 0; i < cursors->n; i++) {
        struct cursor *c = &cursors->cursor[i];
        double scale = c->speed > 0 ? fastest / c->speed : 1;

        scale = scale > SCALE_MOST ? SCALE_MOST : scale;
        if (scale > c->scale * 1.5 || scale * 1.5 < c->scale)
            c->scale = scale;
    }
}

static void set_clocks(struct cursors *cursors)
{
    for (size_t i = 0; i < cursors->n; i++)
        cursors->latest = max_u64(cursors->latest, cursors->cursor[i].clock);
    for (size_t i = 0; i < cursors->n; i++) {
        struct cursor *c = &cursors->cursor[i];
        uint64_t elements = max_u64(LAG, min_u64(2 * c->unit, c->elements));
        uint64_t lag = cursor_time(c, elements) - c->clock;

        if (cursors->latest - c->clock > lag)
            c->clock = cursors->latest - lag;
    }
}

static bool needs_cursors_is_same(const struct cursor *a, const struct cursor *b)
{
    return a->run == b->run && a->epoch == b->epoch && a->n_fields == b->n_fields &&
           a->scale == b->scale && !memcmp(a->field, b->field, a->n_fields * sizeof(a->field[0]));
}

void cursors_make(const struct cursors *before, const struct active_cursor *active, size_t n,
                  struct cursors *ret)
{
    bool same = true;

    ret->n = 0;
    ret->runs = before->runs;
    ret->jumps = before->jumps;
    ret->latest = before->latest;
    for (size_t i = 0; i < n; i++) {
        struct cursor *c = &ret->cursor[ret->n];

        if (!active[i].item->ds || dataset_state(active[i].item->ds) != DATASET_READY)
            continue;
        c->id = active[i].id;
        c->jumps = active[i].jumps;
        c->goes_on = !active[i].is_last;
        c->epoch = active[i].epoch;
        c->item = active[i].item;
        c->plan = active[i].plan;
        c->speed = active[i].speed;
        c->ds = c->item->ds;
        set_schedule(c, &active[i]);
        if (!c->elements)
            continue;
        needs_cursors_set_fields(c, &active[i]);
        needs_cursors_set_progress(c, before, ret);
        ret->n++;
    }
    set_scales(ret);
    set_clocks(ret);
    for (size_t i = 0; i < ret->n; i++) {
        struct cursor *c = &ret->cursor[i];

        c->goes_on = c->goes_on && (!c->is_seeded || !find_epoch(ret, c, c->epoch + 1));
        same = same && i < before->n && needs_cursors_is_same(c, &before->cursor[i]);
    }
    ret->version = before->version + !(same && ret->n == before->n);
}

/* ---- elements and samples ---- */

void cursor_samples(const struct cursor *c, uint64_t distance, size_t count, uint64_t *ret)
{
    uint64_t place = c->at + distance;
    bool next = place >= c->elements;
    uint64_t element = next ? place - c->elements : place;

    schedule_elements(&c->schedule, &c->order[next], element, count, ret);
}

/* Look in the next epoch for those that this one does not read any more. */
static void find_in_next(const struct cursor *c, size_t count, const struct plan_samples *wanted,
                         uint64_t *ret)
{
    struct plan_samples left[CURSOR_ASKED_MOST];
    uint64_t element[CURSOR_ASKED_MOST];
    size_t n = 0, k = 0;

    for (size_t i = 0; i < count; i++)
        if (ret[i] == SCHEDULE_NONE)
            left[n++] = wanted[i];
    if (!n)
        return;
    schedule_find_each(&c->schedule, &c->order[1], n, left, 0, element);
    for (size_t i = 0; i < count; i++)
        if (ret[i] == SCHEDULE_NONE) {
            ret[i] = element[k] == SCHEDULE_NONE ? UINT64_MAX : c->elements + element[k];
            k++;
        }
}

void cursor_distances(const struct cursor *c, size_t count, const struct plan_samples *wanted,
                      uint64_t *ret)
{
    schedule_find_each(&c->schedule, &c->order[0], count, wanted, c->at, ret);
    find_in_next(c, count, wanted, ret);
    for (size_t i = 0; i < count; i++)
        ret[i] -= ret[i] == UINT64_MAX ? 0 : c->at;
}

uint64_t cursor_last(const struct cursor *c, uint64_t first, uint64_t last)
{
    uint64_t element;

    if (c->goes_on)
        return c->elements;
    element = schedule_last(&c->schedule, &c->order[0], first, last);
    return element < c->from ? SCHEDULE_NONE : element;
}
