/* What the active plans read next, for the stage.
 *
 * next() walks each cursor onwards from its reader, an epoch ahead, or to the end of the next one.
 * The cursor whose next element is due soonest takes a turn: it gives the needs of one batch, with
 * neighbours in the source merged. So the only state is a place per cursor, and the rest of a turn.
 *
 * needs_when.c has the way back: when are these bytes needed?
 *
 * Both use the cursors of one moment: a struct cursors, which is constant while a thread holds
 * it. */
#include "fs/drive/needs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "fs/drive/needs_parts.h"

#define TURN_MOST    1024                /* elements, and samples */
#define EMPTY_MOST   256                 /* turns without needs, in one call of next() */
#define STEP         256                 /* samples of a map between two looks at the clock */
#define PLACE_BLOBS  4096                /* of a dataset, whose sizes are added, */
#define PLACE_SIZE   (UINT64_C(1) << 50) /* up to this, sparse files too */
#define STEP_NS      (2 * 1000 * 1000) /* for maps, in one call of next(); and if it has no needs: */
#define STEP_IDLE_NS (20 * 1000 * 1000)

/* ---- what comes next ---- */

static const struct horizon *find_horizon(const struct needs *needs, uint64_t run)
{
    for (size_t i = 0; i < needs->n_cursors; i++)
        if (needs->horizon[i].run == run)
            return &needs->horizon[i];
    return NULL;
}

/* Do the needs that are left belong to this cursor? */
static bool has_needs(const struct needs *needs, const struct cursor *c)
{
    return c->run == needs->needs_run || (c->from_run && c->from_run == needs->needs_run);
}

/* Set horizon i to that of cursor i. After a jump the stage has forgotten the needs of all cursors
 * that were reported to it. */
static void set_cursors(struct needs *needs, const struct cursors *cursors)
{
    struct horizon horizon[ACTIVE_PLANS_MAX];
    bool needs_count = false;

    if (needs->jumps != cursors->jumps)
        needs->n_cursors = needs->needs_run = 0;
    needs->jumps = cursors->jumps;
    for (size_t i = 0; i < cursors->n; i++) {
        const struct cursor *c = &cursors->cursor[i];
        const struct horizon *before = find_horizon(needs, c->run);

        if (!before && c->from_run)
            before = find_horizon(needs, c->from_run);
        horizon[i] = (struct horizon){.run = c->run, .reported = c->passed};
        if (before && before->reported >= c->passed) {
            horizon[i].reported = before->reported;
            horizon[i].within = before->within;
        }
        needs_count = needs_count || (has_needs(needs, c) && c->passed < needs->needs_end);
    }
    memcpy(needs->horizon, horizon, cursors->n * sizeof(*horizon));
    needs->n_cursors = cursors->n;
    if (!needs_count) /* their reader has passed them, or is elsewhere */
        needs->n_needs = needs->returned = 0;
}

/* Elements ahead of the reader whose needs may be reported: an epoch; or, where the next epoch has
 * samples that this one has not, as that of a rank, to the end of that. */
static uint64_t horizon_of(const struct cursor *c)
{
    const struct schedule *s = &c->schedule;
    bool others = c->is_seeded && (s->order.ops != &order_permutation || s->elements < s->length ||
                                   (s->cuts && s->plan->ranks > 1));

    if (!c->goes_on)
        return c->elements - c->at;
    return others ? 2 * c->elements - c->at : c->elements;
}

/* Elements ahead of the reader whose needs are not reported yet. */
static uint64_t left_of(const struct cursor *c, const struct horizon *horizon)
{
    uint64_t ahead = horizon->reported - c->passed, most = horizon_of(c);

    return ahead < most ? most - ahead : 0;
}

/* The cursor whose turn it is; cursors->n: all needs are reported. */
static size_t soonest(const struct needs *needs, const struct cursors *cursors)
{
    size_t best = cursors->n;
    uint64_t least = 0;

    for (size_t i = 0; i < cursors->n; i++) {
        const struct cursor *c = &cursors->cursor[i];
        uint64_t far = cursor_time(c, needs->horizon[i].reported - c->passed) - c->clock;

        if (left_of(c, &needs->horizon[i]) && (best == cursors->n || far < least)) {
            best = i;
            least = far;
        }
    }
    return best;
}

static void add_needs(struct needs *needs, const struct cursor *c, uint64_t sample, uint64_t when)
{
    for (unsigned i = 0; i < max_u64(c->n_fields, 1); i++) {
        struct extent extent[EXTENTS_MOST];
        unsigned n = dataset_extents(c->ds, sample, c->n_fields ? c->field[i] : NULL, extent);

        for (unsigned k = 0; k < n; k++)
            needs->need[needs->n_needs++] =
                (struct stage_need){extent[k].blob, extent[k].off, extent[k].len, when};
    }
}

static int needs_by_place(const void *a, const void *b)
{
    const struct stage_need *x = a, *y = b;

    if (x->blob != y->blob)
        return (uintptr_t)x->blob < (uintptr_t)y->blob ? -1 : 1;
    return x->off < y->off ? -1 : x->off > y->off;
}

static int by_time(const void *a, const void *b)
{
    const struct stage_need *x = a, *y = b;

    return x->when < y->when ? -1 : x->when > y->when ? 1 : needs_by_place(a, b);
}

/* Merge ranges that touch; then sort, soonest first. */
static void merge_needs(struct needs *needs)
{
    struct stage_need *need = needs->need;
    size_t kept = 0;

    qsort(need, needs->n_needs, sizeof(*need), needs_by_place);
    for (size_t i = 0; i < needs->n_needs; i++) {
        struct stage_need *last = kept ? &need[kept - 1] : NULL;

        if (!last || last->blob != need[i].blob || need[i].off > last->off + last->len) {
            need[kept++] = need[i];
            continue;
        }
        last->len = max_u64(last->len, need[i].off + need[i].len - last->off);
        last->when = min_u64(last->when, need[i].when);
    }
    needs->n_needs = kept;
    qsort(need, kept, sizeof(*need), by_time);
}

/* How many samples an element has that begins with this one. */
static uint64_t samples_from(const struct cursor *c, uint64_t sample)
{
    const struct plan_units *units = c->schedule.units;

    if (sample == SCHEDULE_NONE) /* another rank's */
        return 0;
    return units ? units->start[plan_units_of(units, sample) + 1] - sample : 1;
}

/* Find the needs of one batch, or of a part of it. Samples that are files of their own are read one
 * by one, but staged as if some were read together. */
static void needs_take_turn(struct needs *needs, const struct cursor *c, struct horizon *horizon)
{
    uint64_t distance = horizon->reported - c->passed, sample[TURN_MOST];
    uint64_t element = (c->at + distance) % c->elements;
    uint64_t unit = c->unit > 1 ? c->unit - element % c->unit : TURN_MOST / 4;
    uint64_t n = min_u64(min_u64(unit, TURN_MOST), left_of(c, horizon));
    size_t most = NEEDS_MOST - max_u64(c->n_fields, 1) * EXTENTS_MOST, i = 0;

    n = min_u64(n, c->elements - element);
    cursor_samples(c, distance, (size_t)n, sample);
    needs->needs_run = c->run;
    needs->n_needs = needs->returned = 0;
    for (unsigned k = 0; i < n && needs->n_needs <= most && k < TURN_MOST; k++) {
        uint64_t count = samples_from(c, sample[i]);

        if (horizon->within < count)
            add_needs(needs, c, sample[i] + horizon->within++, cursor_time(c, distance + i));
        if (horizon->within >= count) {
            horizon->within = 0;
            i++;
        }
    }
    merge_needs(needs);
    horizon->reported += i;
    needs->needs_end = horizon->reported + (horizon->within > 0);
}

/* ---- maps ---- */

/* Continue making a map until that time. */
static void make_map(const struct needs *needs, struct dataset_map *map, const struct dataset *ds,
                     int64_t until)
{
    int r = map->making ? 0 : extent_map_new(ds, &map->making);

    while (r == 0 && clock_monotonic(needs->clock) < until)
        r = extent_map_step(map->making, STEP);
    if (r == 1)
        atomic_store_explicit(&map->ready, TAKE_PTR(map->making), memory_order_release);
    if (r >= 0)
        return;
    extent_map_free(map->making);
    map->making = NULL;
    map->failed = true;
}

static void make_maps(const struct needs *needs, const struct cursors *cursors, int64_t ns)
{
    int64_t until = clock_monotonic(needs->clock) + ns;

    for (size_t i = 0; i < cursors->n; i++) {
        for (unsigned k = 0; k < needs_parts(&cursors->cursor[i]); k++) {
            const struct cursor_part part = needs_part(needs, &cursors->cursor[i], k);
            struct dataset_map *map = part.map;

            if (atomic_load(&map->is_wanted) && !atomic_load(&map->ready) && !map->failed)
                make_map(needs, map, part.ds, until);
        }
    }
}

/* Give some of the needs that are left. */
static size_t give_needs(struct needs *needs, struct stage_need *ret, size_t capacity)
{
    size_t n = (size_t)min_u64(capacity, needs->n_needs - needs->returned);

    memcpy(ret, needs->need + needs->returned, n * sizeof(*ret));
    needs->returned += n;
    return n;
}

static size_t needs_next(void *ctx, struct stage_need *ret, size_t capacity)
{
    struct needs *needs = ctx;
    struct cursors *cursors;
    unsigned empty = 0;
    size_t n = 0;

    needs_refresh(needs, true);
    cursors = needs_hold_cursors(needs);
    set_cursors(needs, cursors);
    while (n < capacity) {
        size_t i;

        n += give_needs(needs, ret + n, capacity - n);
        i = n < capacity ? soonest(needs, cursors) : cursors->n;
        if (i == cursors->n)
            break;
        needs_take_turn(needs, &cursors->cursor[i], &needs->horizon[i]);
        if (!needs->n_needs && ++empty == EMPTY_MOST)
            break; /* the files that are read have no bytes in sources, such as sample numbers */
    }
    make_maps(needs, cursors, n ? STEP_NS : STEP_IDLE_NS);
    needs_let_go_of_cursors(needs, cursors);
    return n;
}

/* ---- how far the readers are ---- */

static uint64_t bytes_of_sources(const struct dataset *ds)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < ds->n_blobs && i < PLACE_BLOBS; i++)
        if (ds->blob[i])
            bytes += min_u64(ds->blob[i]->size, PLACE_SIZE);
    return bytes;
}

/* Does an earlier cursor read the same samples? */
static bool is_counted(const struct cursors *cursors, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (cursors->cursor[k].ds == cursors->cursor[i].ds)
            return true;
    return false;
}

struct needs_place needs_place(struct needs *needs)
{
    struct needs_place place = {0};
    struct cursors *cursors;

    needs_refresh(needs, true);
    cursors = needs_hold_cursors(needs);
    place.version = cursors->version;
    for (size_t i = 0; i < cursors->n; i++) {
        const struct cursor *c = &cursors->cursor[i];
        uint64_t bytes = bytes_of_sources(c->ds);
        double share = (double)(c->elements - c->at) / (double)max_u64(c->ds->samples, 1);

        if (!place.ds || c->clock > place.now) {
            place.now = c->clock;
            place.ds = c->ds;
        }
        place.bytes += is_counted(cursors, i) ? 0 : bytes;
        place.left += (uint64_t)(share * (double)bytes);
    }
    needs_let_go_of_cursors(needs, cursors);
    return place;
}

/* ---- making it ---- */

int needs_new(struct active_plans *active_plans, const struct catalog *catalog,
              const struct clock *clock, struct needs **ret)
{
    struct needs *needs = calloc(1, sizeof(*needs));

    if (!needs)
        return -ENOMEM;
    lock_init(&needs->lock);
    condition_init(&needs->refreshed);
    needs->for_stage = (struct stage_needs){
        .next = needs_next, .when = needs_when, .last = needs_last, .now = needs_now, .ctx = needs};
    needs->active_plans = active_plans;
    needs->catalog = catalog;
    needs->clock = clock;
    needs->map = calloc(catalog->n, sizeof(*needs->map));
    needs->answer = calloc(ANSWERS, sizeof(*needs->answer));
    needs->cursors = calloc(1, sizeof(*needs->cursors));
    if (!needs->map || !needs->answer || !needs->cursors) {
        needs_free(needs);
        return -ENOMEM;
    }
    needs->cursors->users = 1;
    *ret = needs;
    return 0;
}

void needs_free(struct needs *needs)
{
    if (!needs)
        return;
    for (size_t i = 0; needs->map && i < needs->catalog->n; i++) {
        extent_map_free(atomic_load(&needs->map[i].ready));
        extent_map_free(needs->map[i].making);
    }
    free(needs->map);
    free(needs->answer);
    free(needs->cursors);
    free(needs->spare_cursors);
    lock_release(&needs->lock);
    pthread_cond_destroy(&needs->refreshed);
    free(needs);
}

const struct stage_needs *needs_for_stage(struct needs *needs)
{
    return &needs->for_stage;
}
