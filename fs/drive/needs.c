/* What the active plans read next, for the stage.
 *
 * next() walks each cursor onwards from its reader, an epoch ahead at most. The cursor whose next
 * element is due soonest takes a turn: it gives the needs of one batch, with neighbours in the
 * source merged. So the only state is a place per cursor, and the rest of a turn.
 *
 * when() asks the inverse: which samples have bytes in this range, and where in the epoch are these
 * samples? Arithmetic or an extent_map gives the samples. The inverse of the order gives their
 * places, in some 100 ns per sample. The answer is a time that stays true until that time has come.
 * So answers are remembered, by a hash, in slots that any thread may overwrite.
 *
 * Both use the cursors of one moment: a struct cursors, which is constant while a thread holds
 * it. */
#include "fs/drive/needs.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/lock.h"
#include "format/core/extents.h"
#include "fs/drive/extent_map.h"
#include "fs/drive/needs_cursors.h"

#define FRESH_NS     (4 * 1000 * 1000) /* how long when() uses the same cursors */
#define TURN_MOST    1024              /* elements */
#define NEEDS_MOST   (2 * KINDS_MAX * EXTENTS_MOST)
#define ANSWERS      (1 << 18)         /* a power of two */
#define WAYS         4                 /* slots that an answer may be in */
#define EMPTY_MOST   256               /* turns without needs, in one call of next() */
#define STEP         256               /* samples of a map between two looks at the clock */
#define STEP_NS      (2 * 1000 * 1000) /* for maps, in one call of next(); and if it has no needs: */
#define STEP_IDLE_NS (20 * 1000 * 1000)

/* How far the needs of a cursor have been reported. */
struct horizon {
    uint64_t run;
    uint64_t reported; /* in elements like cursor.passed */
};

#define CURSOR_SIZE 64 /* numbers of cursors; ACTIVE_PLANS_MAX: none */

/* The map of a dataset whose samples differ. */
struct dataset_map {
    _Atomic bool is_wanted;
    _Atomic(struct extent_map *) ready;
    /* Only the thread of next() uses: */
    struct extent_map *making;
    bool failed;
};

/* An answer of when(). check is the exclusive or of the other two with a hash of the question, so a
 * slot that two threads have written at once answers no question. */
struct answer {
    _Atomic uint64_t check, time;
    _Atomic uint64_t whose; /* the number of the cursor, and cursors.version above it */
};

struct needs {
    /* Set by needs_new(), then constant: */
    const struct clock *clock;
    struct stage_needs for_stage;
    struct active_plans *active_plans;
    const struct catalog *catalog;
    struct dataset_map *map; /* [catalog->n] */
    struct answer *answer;   /* [ANSWERS] */

    struct lock lock;
    pthread_cond_t refreshed;
    /* Guarded by lock: */
    bool refreshing;               /* one thread makes the cursors, with no lock held */
    struct cursors *cursors;       /* the current ones; owned */
    struct cursors *spare_cursors; /* memory for the next ones; owned, may be NULL */

    _Atomic int64_t refreshed_at;

    /* Only the thread of next() uses: */
    uint64_t jumps; /* cursors.jumps of the last call */
    size_t n_cursors;
    struct horizon horizon[ACTIVE_PLANS_MAX];
    uint64_t needs_run; /* the run that the needs belong to, */
    uint64_t needs_end; /* and the element up to which they go, like cursor.passed */
    size_t n_needs, given;
    struct stage_need need[NEEDS_MOST];
};

/* ---- cursors ---- */

static struct cursors *cursors_hold(struct needs *needs)
{
    LOCK_SCOPE(&needs->lock);

    needs->cursors->users++;
    return needs->cursors;
}

static struct cursors *let_go_locked(struct needs *needs, struct cursors *cursors)
{
    lock_assert_held(&needs->lock);
    if (--cursors->users)
        return NULL;
    if (needs->spare_cursors)
        return cursors;
    needs->spare_cursors = cursors;
    return NULL;
}

static void cursors_let_go(struct needs *needs, struct cursors *cursors)
{
    lock_take(&needs->lock);
    cursors = let_go_locked(needs, cursors);
    lock_drop(&needs->lock);
    free(cursors);
}

/* May this thread make the cursors anew? One thread at a time may. must: wait for its turn; else
 * return false at once. */
static bool begin_refresh(struct needs *needs, bool must, struct cursors **ret_before,
                          struct cursors **ret)
{
    LOCK_SCOPE(&needs->lock);

    while (needs->refreshing && must)
        lock_wait(&needs->lock, &needs->refreshed);
    if (needs->refreshing)
        return false;
    needs->refreshing = true;
    *ret_before = needs->cursors;
    (*ret_before)->users++;
    *ret = needs->spare_cursors;
    needs->spare_cursors = NULL;
    return true;
}

static void end_refresh(struct needs *needs, struct cursors *before, struct cursors *cursors)
{
    struct cursors *old = NULL, *unused = NULL;

    lock_take(&needs->lock);
    if (cursors) {
        cursors->users = 1;
        old = let_go_locked(needs, needs->cursors);
        needs->cursors = cursors;
    }
    unused = let_go_locked(needs, before);
    needs->refreshing = false;
    pthread_cond_broadcast(&needs->refreshed);
    lock_drop(&needs->lock);
    free(old);
    free(unused);
}

/* Make the cursors anew from the active plans. Without memory they stay as they were. */
static void refresh(struct needs *needs, bool must)
{
    struct active_cursor active[ACTIVE_PLANS_MAX];
    struct cursors *before, *cursors;

    if (!must && clock_monotonic(needs->clock) -
                         atomic_load_explicit(&needs->refreshed_at, memory_order_relaxed) <
                     FRESH_NS)
        return;
    if (!begin_refresh(needs, must, &before, &cursors))
        return;
    if (!cursors)
        cursors = malloc(sizeof(*cursors));
    if (cursors)
        cursors_make(before, active, active_plans_cursors(needs->active_plans, active), cursors);
    atomic_store_explicit(&needs->refreshed_at, clock_monotonic(needs->clock),
                          memory_order_relaxed);
    end_refresh(needs, before, cursors);
}

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
        horizon[i] = (struct horizon){c->run, max_u64(c->passed, before ? before->reported : 0)};
        needs_count = needs_count || (has_needs(needs, c) && c->passed < needs->needs_end);
    }
    memcpy(needs->horizon, horizon, cursors->n * sizeof(*horizon));
    needs->n_cursors = cursors->n;
    if (!needs_count) /* their reader has passed them, or is elsewhere */
        needs->n_needs = needs->given = 0;
}

/* Elements ahead of the reader whose needs are not reported yet. */
static uint64_t left_of(const struct cursor *c, const struct horizon *horizon)
{
    uint64_t ahead = horizon->reported - c->passed,
             most = c->goes_on ? c->elements : c->elements - c->at;

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

static int by_place(const void *a, const void *b)
{
    const struct stage_need *x = a, *y = b;

    if (x->blob != y->blob)
        return (uintptr_t)x->blob < (uintptr_t)y->blob ? -1 : 1;
    return x->off < y->off ? -1 : x->off > y->off;
}

static int by_time(const void *a, const void *b)
{
    const struct stage_need *x = a, *y = b;

    return x->when < y->when ? -1 : x->when > y->when ? 1 : by_place(a, b);
}

/* Merge ranges that touch; then sort, soonest first. */
static void merge_needs(struct needs *needs)
{
    struct stage_need *need = needs->need;
    size_t kept = 0;

    qsort(need, needs->n_needs, sizeof(*need), by_place);
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

/* Find the needs of one batch, or of a part of it. Samples that are files of their own are read one
 * by one, but staged as if some were read together. */
static void take_turn(struct needs *needs, const struct cursor *c, struct horizon *horizon)
{
    uint64_t distance = horizon->reported - c->passed, sample[TURN_MOST];
    uint64_t element = (c->at + distance) % c->elements;
    uint64_t unit = c->unit > 1 ? c->unit - element % c->unit : TURN_MOST / 4;
    uint64_t n = min_u64(min_u64(unit, TURN_MOST), left_of(c, horizon));
    size_t most = NEEDS_MOST - max_u64(c->n_fields, 1) * EXTENTS_MOST, i = 0;

    n = min_u64(n, c->elements - element);
    cursor_samples(c, distance, (size_t)n, sample);
    needs->needs_run = c->run;
    needs->n_needs = needs->given = 0;
    for (; i < n && needs->n_needs <= most; i++)
        add_needs(needs, c, sample[i], cursor_time(c, distance + i));
    merge_needs(needs);
    horizon->reported += i;
    needs->needs_end = horizon->reported;
}

/* ---- maps ---- */

static struct dataset_map *map_of(const struct needs *needs, const struct cursor *c)
{
    return &needs->map[c->item - needs->catalog->item];
}

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
        struct dataset_map *map = map_of(needs, &cursors->cursor[i]);

        if (atomic_load(&map->is_wanted) && !atomic_load(&map->ready) && !map->failed)
            make_map(needs, map, cursors->cursor[i].ds, until);
    }
}

/* Give some of the needs that are left. */
static size_t give_needs(struct needs *needs, struct stage_need *ret, size_t capacity)
{
    size_t n = (size_t)min_u64(capacity, needs->n_needs - needs->given);

    memcpy(ret, needs->need + needs->given, n * sizeof(*ret));
    needs->given += n;
    return n;
}

static size_t needs_next(void *ctx, struct stage_need *ret, size_t capacity)
{
    struct needs *needs = ctx;
    struct cursors *cursors;
    unsigned empty = 0;
    size_t n = 0;

    refresh(needs, true);
    cursors = cursors_hold(needs);
    set_cursors(needs, cursors);
    while (n < capacity) {
        size_t i;

        n += give_needs(needs, ret + n, capacity - n);
        i = n < capacity ? soonest(needs, cursors) : cursors->n;
        if (i == cursors->n)
            break;
        take_turn(needs, &cursors->cursor[i], &needs->horizon[i]);
        if (!needs->n_needs && ++empty == EMPTY_MOST)
            break; /* the files that are read have no bytes in sources, such as sample numbers */
    }
    make_maps(needs, cursors, n ? STEP_NS : STEP_IDLE_NS);
    cursors_let_go(needs, cursors);
    return n;
}

/* ---- when ---- */

/* Samples whose neighbours in the source are all neighbours in the dataset, too. */
struct samples {
    uint64_t first, last;
};

/* The samples for fields whose items are all alike. */
static unsigned stored_samples(const struct cursor *c, const struct blob *blob, uint64_t off,
                               uint64_t len, struct samples ret[static KINDS_MAX])
{
    unsigned n = c->n_fields ? c->n_fields : (unsigned)min_u64(c->ds->n_fields, KINDS_MAX), got = 0;

    for (unsigned i = 0; i < n; i++) {
        const struct field *f = c->n_fields ? c->field[i] : &c->ds->field[i];

        if (f->blob != blob || f->base_field || !f->stored_bytes || off + len <= f->offset)
            continue;
        ret[got++] = (struct samples){off > f->offset ? (off - f->offset) / f->stored_bytes : 0,
                                      (off + len - 1 - f->offset) / f->stored_bytes};
    }
    return got;
}

/* Which samples that the cursor reads have some of these bytes? Returns how many ranges of them.
 * *known becomes false while the map is missing. */
static unsigned samples_of(const struct needs *needs, const struct cursor *c,
                           const struct blob *blob, uint64_t off, uint64_t len,
                           struct samples ret[static KINDS_MAX], bool *known)
{
    struct extent_map *ready;
    struct dataset_map *map;

    if (!c->ds->ops || !c->ds->ops->extents)
        return stored_samples(c, blob, off, len, ret);
    map = map_of(needs, c);
    ready = atomic_load_explicit(&map->ready, memory_order_acquire);
    if (!ready) {
        if (!atomic_load_explicit(&map->is_wanted, memory_order_relaxed))
            atomic_store(&map->is_wanted, true);
        *known = false;
        return 0;
    }
    return extent_map_find(ready, blob, off, len, &ret[0].first, &ret[0].last);
}

/* The distance of the next need of these bytes; UINT64_MAX: not needed. */
static uint64_t distance_of(const struct needs *needs, const struct cursor *c,
                            const struct blob *blob, uint64_t off, uint64_t len, bool *known)
{
    struct samples samples[KINDS_MAX];
    bool has_map = true;
    unsigned n = samples_of(needs, c, blob, off, len, samples, &has_map);
    uint64_t best = has_map ? UINT64_MAX : 0;

    *known = *known && has_map;
    for (unsigned i = 0; i < n; i++)
        best = min_u64(best, cursor_distance(c, samples[i].first, samples[i].last));
    return best;
}

static uint64_t find_time(const struct needs *needs, const struct cursors *cursors,
                          const struct blob *blob, uint64_t off, uint64_t len, size_t *ret_cursor,
                          bool *ret_known)
{
    uint64_t best = STAGE_NEVER;

    *ret_cursor = ACTIVE_PLANS_MAX;
    *ret_known = true;
    for (size_t i = 0; i < cursors->n; i++) {
        const struct cursor *c = &cursors->cursor[i];
        uint64_t distance = distance_of(needs, c, blob, off, len, ret_known), time;

        if (distance == UINT64_MAX)
            continue;
        time = cursor_time(c, distance);
        if (time < best) {
            best = time;
            *ret_cursor = i;
        }
    }
    return best;
}

static uint64_t stir(uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ h >> 32) * UINT64_C(0xbf58476d1ce4e5b9);
    return h ^ h >> 29;
}

static uint64_t hash_of(const struct cursors *cursors, const struct blob *blob, uint64_t off,
                        uint64_t len)
{
    return stir(stir(stir(cursors->version + 1, (uintptr_t)blob), off), len);
}

/* Does the answer still hold? It must be of these cursors, and its time must not have come: after
 * that another need may be the next. */
static bool is_true(const struct cursors *cursors, uint64_t time, uint64_t whose)
{
    uint64_t cursor = whose % CURSOR_SIZE;

    if (whose / CURSOR_SIZE != cursors->version % (UINT64_MAX / CURSOR_SIZE))
        return false;
    return cursor < cursors->n ? time >= cursors->cursor[cursor].clock : time == STAGE_NEVER;
}

/* Find a remembered answer, or else the slot for a new one: that whose time comes first. */
static bool recall(const struct needs *needs, const struct cursors *cursors, uint64_t hash,
                   uint64_t *ret, struct answer **ret_slot)
{
    struct answer *slot = &needs->answer[hash % ANSWERS / WAYS * WAYS];
    uint64_t soonest = UINT64_MAX;

    *ret_slot = slot;
    for (unsigned i = 0; i < WAYS; i++) {
        uint64_t check = atomic_load_explicit(&slot[i].check, memory_order_relaxed);
        uint64_t time = atomic_load_explicit(&slot[i].time, memory_order_relaxed);
        uint64_t whose = atomic_load_explicit(&slot[i].whose, memory_order_relaxed);
        bool is_good = is_true(cursors, time, whose);

        if (is_good && (check ^ time ^ whose) == hash) {
            *ret = time;
            return true;
        }
        time = is_good ? time : 0;
        if (time < soonest) {
            soonest = time;
            *ret_slot = &slot[i];
        }
    }
    return false;
}

static void remember(const struct cursors *cursors, struct answer *slot, uint64_t hash,
                     uint64_t time, size_t cursor)
{
    uint64_t whose = cursors->version % (UINT64_MAX / CURSOR_SIZE) * CURSOR_SIZE + cursor;

    atomic_store_explicit(&slot->check, hash ^ time ^ whose, memory_order_relaxed);
    atomic_store_explicit(&slot->time, time, memory_order_relaxed);
    atomic_store_explicit(&slot->whose, whose, memory_order_relaxed);
}

static uint64_t needs_when(void *ctx, const struct blob *blob, uint64_t off, uint64_t len)
{
    struct needs *needs = ctx;
    struct cursors *cursors;
    struct answer *slot;
    uint64_t hash, time;
    size_t cursor;
    bool known;

    if (!len)
        return STAGE_NEVER;
    refresh(needs, false);
    cursors = cursors_hold(needs);
    hash = hash_of(cursors, blob, off, len);
    if (!recall(needs, cursors, hash, &time, &slot)) {
        time = find_time(needs, cursors, blob, off, len, &cursor, &known);
        if (known)
            remember(cursors, slot, hash, time, cursor);
    }
    cursors_let_go(needs, cursors);
    return time;
}

/* ---- last ---- */

/* When the cursor needs these bytes last: STAGE_NEVER: it does not; 0: its reader has read them. */
static uint64_t last_of(const struct needs *needs, const struct cursor *c, const struct blob *blob,
                        uint64_t off, uint64_t len)
{
    struct samples samples[KINDS_MAX];
    bool known = true, is_read = false;
    unsigned n = samples_of(needs, c, blob, off, len, samples, &known);
    uint64_t last = 0;

    if (!known)
        return 1; /* ask again each time */
    for (unsigned i = 0; i < n; i++) {
        uint64_t element = cursor_last(c, samples[i].first, samples[i].last);

        is_read = is_read || element < c->read;
        if (element >= c->read && element != UINT64_MAX)
            last = max_u64(last, cursor_when(c, element + 1));
    }
    return last ? last : is_read ? 0 : STAGE_NEVER;
}

static uint64_t needs_last(void *ctx, const struct blob *blob, uint64_t off, uint64_t len)
{
    struct needs *needs = ctx;
    uint64_t result = STAGE_NEVER;
    struct cursors *cursors;

    refresh(needs, false);
    cursors = cursors_hold(needs);
    for (size_t i = 0; i < cursors->n; i++) {
        uint64_t last = last_of(needs, &cursors->cursor[i], blob, off, len);

        if (last != STAGE_NEVER)
            result = result == STAGE_NEVER ? last : max_u64(result, last);
    }
    cursors_let_go(needs, cursors);
    return result;
}

/* The reader that is furthest on, in its own time: the answers for slower ones are asked for
 * sooner than they need be. */
static uint64_t needs_now(void *ctx, uint64_t *ret_version)
{
    struct needs *needs = ctx;
    struct cursors *cursors;
    uint64_t now = 1;

    refresh(needs, true);
    cursors = cursors_hold(needs);
    for (size_t i = 0; i < cursors->n; i++)
        now = max_u64(now, cursor_when(&cursors->cursor[i], cursors->cursor[i].read));
    *ret_version = cursors->version + 1;
    cursors_let_go(needs, cursors);
    return now;
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
