/* What the active plans read next, for the stage.
 *
 * next() walks each course from its reader on, an epoch ahead at most. The course whose place is
 * soonest takes a turn: it gives what one batch needs, neighbours in the source as one. So nothing
 * is kept but a place per course, and what is left of a turn.
 *
 * when() asks the other way round: which samples stand in those bytes, where do these stand in the
 * epoch? The samples come from arithmetic, or from an extent_map; the places from the inverse of
 * the order, which takes some 100 ns a sample. But the answer is a time that stays true until it
 * has come: so answers are remembered, by a hash, in slots that anyone overwrites.
 *
 * Courses are looked at as they were at one moment: a struct courses, which is constant while
 * somebody uses it. */
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

#define FRESH_NS     (4 * 1000 * 1000) /* so long when() takes the courses as they were */
#define TURN_MOST    1024              /* elements */
#define NEEDS_MOST   (2 * KINDS_MAX * EXTENTS_MOST)
#define ANSWERS      (1 << 18)         /* a power of two */
#define WAYS         4                 /* slots that an answer may stand in */
#define EMPTY_MOST   256               /* turns of a call of next() that come to nothing */
#define STEP         256               /* samples of a map between two looks at the clock */
#define STEP_NS      (2 * 1000 * 1000) /* for maps, of a call of next(); and if it has nothing: */
#define STEP_IDLE_NS (20 * 1000 * 1000)

/* How far a course was told. */
struct cursor {
    uint64_t run;
    uint64_t told; /* in elements like course.passed */
};

#define COURSE_ROOM 64 /* numbers of courses, and ACTIVES_MOST: none */

/* Of a dataset whose samples are not all alike. */
struct dataset_map {
    _Atomic bool is_wanted;
    _Atomic(struct extent_map *) ready;
    /* next()'s thread's: */
    struct extent_map *making;
    bool failed;
};

/* An answer of when(). check is the exclusive or of the others with a hash of the question, so that
 * a slot that two have written at once answers nobody. */
struct answer {
    _Atomic uint64_t check, time;
    _Atomic uint64_t whose; /* the course, and courses.version above it */
};

struct guide {
    /* Set by guide_new(), then constant: */
    struct stage_guide for_stage;
    struct actives *actives;
    const struct catalog *catalog;
    struct dataset_map *map; /* [catalog->n] */
    struct answer *answer;   /* [ANSWERS] */

    struct lock lock;
    pthread_cond_t refreshed;
    /* Guarded by lock: */
    bool refreshing;         /* by one thread, which then makes the courses with no lock held */
    struct courses *courses; /* as they are; owned */
    struct courses *spare;   /* unused; owned, may be NULL */

    _Atomic int64_t refreshed_at;

    /* next()'s thread's: */
    uint64_t jumps; /* courses.jumps of the last call */
    size_t n_cursors;
    struct cursor cursor[ACTIVES_MOST];
    uint64_t needs_run; /* the run that the needs are of, */
    uint64_t needs_end; /* and the element that it was told up to with them, like course.passed */
    size_t n_needs, given;
    struct stage_need need[NEEDS_MOST];
};

/* ---- courses ---- */

static struct courses *courses_hold(struct guide *guide)
{
    LOCK_SCOPE(&guide->lock);

    guide->courses->users++;
    return guide->courses;
}

static struct courses *let_go_locked(struct guide *guide, struct courses *courses)
{
    lock_assert_held(&guide->lock);
    if (--courses->users)
        return NULL;
    if (guide->spare)
        return courses;
    guide->spare = courses;
    return NULL;
}

static void courses_let_go(struct guide *guide, struct courses *courses)
{
    lock_take(&guide->lock);
    courses = let_go_locked(guide, courses);
    lock_drop(&guide->lock);
    free(courses);
}

/* May this thread make the courses anew? Others make them one after another. */
static bool begin_refresh(struct guide *guide, bool must, struct courses **ret_before,
                          struct courses **ret)
{
    LOCK_SCOPE(&guide->lock);

    while (guide->refreshing && must)
        lock_wait(&guide->lock, &guide->refreshed);
    if (guide->refreshing)
        return false;
    guide->refreshing = true;
    *ret_before = guide->courses;
    (*ret_before)->users++;
    *ret = guide->spare;
    guide->spare = NULL;
    return true;
}

static void end_refresh(struct guide *guide, struct courses *before, struct courses *courses)
{
    struct courses *old = NULL, *unused = NULL;

    lock_take(&guide->lock);
    if (courses) {
        courses->users = 1;
        old = let_go_locked(guide, guide->courses);
        guide->courses = courses;
    }
    unused = let_go_locked(guide, before);
    guide->refreshing = false;
    pthread_cond_broadcast(&guide->refreshed);
    lock_drop(&guide->lock);
    free(old);
    free(unused);
}

/* Look at the actives. Without memory the courses stay as they were. */
static void refresh(struct guide *guide, bool must)
{
    struct active_course active[ACTIVES_MOST];
    struct courses *before, *courses;

    if (!must && monotonic_ns() - atomic_load_explicit(&guide->refreshed_at, memory_order_relaxed) <
                     FRESH_NS)
        return;
    if (!begin_refresh(guide, must, &before, &courses))
        return;
    if (!courses)
        courses = malloc(sizeof(*courses));
    if (courses)
        courses_make(before, active, actives_courses(guide->actives, active), courses);
    atomic_store_explicit(&guide->refreshed_at, monotonic_ns(), memory_order_relaxed);
    end_refresh(guide, before, courses);
}

/* ---- what comes next ---- */

static const struct cursor *find_cursor(const struct guide *guide, uint64_t run)
{
    for (size_t i = 0; i < guide->n_cursors; i++)
        if (guide->cursor[i].run == run)
            return &guide->cursor[i];
    return NULL;
}

/* Are the needs that are left those of this course? */
static bool has_needs(const struct guide *guide, const struct course *c)
{
    return c->run == guide->needs_run || (c->from_run && c->from_run == guide->needs_run);
}

/* Make cursor number i that of course number i. After a jump the stage has forgotten what it was
 * told, of all courses. */
static void set_cursors(struct guide *guide, const struct courses *courses)
{
    struct cursor cursor[ACTIVES_MOST];
    bool needs_count = false;

    if (guide->jumps != courses->jumps)
        guide->n_cursors = guide->needs_run = 0;
    guide->jumps = courses->jumps;
    for (size_t i = 0; i < courses->n; i++) {
        const struct course *c = &courses->course[i];
        const struct cursor *before = find_cursor(guide, c->run);

        if (!before && c->from_run)
            before = find_cursor(guide, c->from_run);
        cursor[i] = (struct cursor){c->run, max_u64(c->passed, before ? before->told : 0)};
        needs_count = needs_count || (has_needs(guide, c) && c->passed < guide->needs_end);
    }
    memcpy(guide->cursor, cursor, courses->n * sizeof(*cursor));
    guide->n_cursors = courses->n;
    if (!needs_count) /* their reader has passed them, or is somewhere else now */
        guide->n_needs = guide->given = 0;
}

/* Elements ahead of the reader that are not told. */
static uint64_t left_of(const struct course *c, const struct cursor *cursor)
{
    uint64_t ahead = cursor->told - c->passed,
             most = c->goes_on ? c->elements : c->elements - c->at;

    return ahead < most ? most - ahead : 0;
}

/* The course whose turn it is; courses->n: all are told. */
static size_t soonest(const struct guide *guide, const struct courses *courses)
{
    size_t best = courses->n;
    uint64_t least = 0;

    for (size_t i = 0; i < courses->n; i++) {
        const struct course *c = &courses->course[i];
        uint64_t far = course_time(c, guide->cursor[i].told - c->passed) - c->clock;

        if (left_of(c, &guide->cursor[i]) && (best == courses->n || far < least)) {
            best = i;
            least = far;
        }
    }
    return best;
}

static void add_needs(struct guide *guide, const struct course *c, uint64_t sample, uint64_t when)
{
    for (unsigned i = 0; i < max_u64(c->n_fields, 1); i++) {
        struct extent extent[EXTENTS_MOST];
        unsigned n = dataset_extents(c->ds, sample, c->n_fields ? c->field[i] : NULL, extent);

        for (unsigned k = 0; k < n; k++)
            guide->need[guide->n_needs++] =
                (struct stage_need){extent[k].blob, extent[k].off, extent[k].len, when, false};
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

/* What touches becomes one; then soonest first. */
static void merge_needs(struct guide *guide)
{
    struct stage_need *need = guide->need;
    size_t kept = 0;

    qsort(need, guide->n_needs, sizeof(*need), by_place);
    for (size_t i = 0; i < guide->n_needs; i++) {
        struct stage_need *last = kept ? &need[kept - 1] : NULL;

        if (!last || last->blob != need[i].blob || need[i].off > last->off + last->len) {
            need[kept++] = need[i];
            continue;
        }
        last->len = max_u64(last->len, need[i].off + need[i].len - last->off);
        last->when = min_u64(last->when, need[i].when);
    }
    guide->n_needs = kept;
    qsort(need, kept, sizeof(*need), by_time);
}

/* What stands in one batch, or in a part of it. Samples that are files of their own are read one by
 * one, but staged as if some were read together. */
static void take_turn(struct guide *guide, const struct course *c, struct cursor *cursor)
{
    uint64_t distance = cursor->told - c->passed, sample[TURN_MOST];
    uint64_t element = (c->at + distance) % c->elements;
    uint64_t unit = c->unit > 1 ? c->unit - element % c->unit : TURN_MOST / 4;
    uint64_t n = min_u64(min_u64(unit, TURN_MOST), left_of(c, cursor));
    size_t most = NEEDS_MOST - max_u64(c->n_fields, 1) * EXTENTS_MOST, i = 0;

    n = min_u64(n, c->elements - element);
    course_samples(c, distance, (size_t)n, sample);
    guide->needs_run = c->run;
    guide->n_needs = guide->given = 0;
    for (; i < n && guide->n_needs <= most; i++)
        add_needs(guide, c, sample[i], course_time(c, distance + i));
    merge_needs(guide);
    cursor->told += i;
    guide->needs_end = cursor->told;
}

/* ---- maps ---- */

static struct dataset_map *map_of(const struct guide *guide, const struct course *c)
{
    return &guide->map[c->item - guide->catalog->item];
}

/* Go on with a map until that time. */
static void make_map(struct dataset_map *map, const struct dataset *ds, int64_t until)
{
    int r = map->making ? 0 : extent_map_new(ds, &map->making);

    while (r == 0 && monotonic_ns() < until)
        r = extent_map_step(map->making, STEP);
    if (r == 1)
        atomic_store_explicit(&map->ready, TAKE_PTR(map->making), memory_order_release);
    if (r >= 0)
        return;
    extent_map_free(map->making);
    map->making = NULL;
    map->failed = true;
}

static void make_maps(const struct guide *guide, const struct courses *courses, int64_t ns)
{
    int64_t until = monotonic_ns() + ns;

    for (size_t i = 0; i < courses->n; i++) {
        struct dataset_map *map = map_of(guide, &courses->course[i]);

        if (atomic_load(&map->is_wanted) && !atomic_load(&map->ready) && !map->failed)
            make_map(map, courses->course[i].ds, until);
    }
}

/* Give some of the needs that are left. */
static size_t give_needs(struct guide *guide, const struct courses *courses, struct stage_need *ret,
                         size_t room)
{
    size_t n = (size_t)min_u64(room, guide->n_needs - guide->given);
    uint64_t begun = 0; /* what is needed before */

    memcpy(ret, guide->need + guide->given, n * sizeof(*ret));
    guide->given += n;
    for (size_t i = 0; i < courses->n; i++) {
        const struct course *c = &courses->course[i];

        if (has_needs(guide, c))
            begun = max_u64(begun, course_time(c, c->unit - c->at % c->unit));
    }
    for (size_t i = 0; i < n; i++)
        ret[i].has_begun = ret[i].when < begun;
    return n;
}

static size_t guide_next(void *ctx, struct stage_need *ret, size_t room)
{
    struct guide *guide = ctx;
    struct courses *courses;
    unsigned empty = 0;
    size_t n = 0;

    refresh(guide, true);
    courses = courses_hold(guide);
    set_cursors(guide, courses);
    while (n < room) {
        size_t i;

        n += give_needs(guide, courses, ret + n, room - n);
        i = n < room ? soonest(guide, courses) : courses->n;
        if (i == courses->n)
            break;
        take_turn(guide, &courses->course[i], &guide->cursor[i]);
        if (!guide->n_needs && ++empty == EMPTY_MOST)
            break; /* what is read has no bytes in sources, as sample numbers */
    }
    make_maps(guide, courses, n ? STEP_NS : STEP_IDLE_NS);
    courses_let_go(guide, courses);
    return n;
}

/* ---- when ---- */

/* Of fields whose items are all alike. */
static uint64_t stored_distance(const struct course *c, const struct blob *blob, uint64_t off,
                                uint64_t len)
{
    unsigned n = c->n_fields ? c->n_fields : c->ds->n_fields;
    uint64_t best = UINT64_MAX;

    for (unsigned i = 0; i < n; i++) {
        const struct field *f = c->n_fields ? c->field[i] : &c->ds->field[i];

        if (f->blob != blob || f->of || !f->stored_bytes || off + len <= f->offset)
            continue;
        best = min_u64(best,
                       course_distance(c, off > f->offset ? (off - f->offset) / f->stored_bytes : 0,
                                       (off + len - 1 - f->offset) / f->stored_bytes));
    }
    return best;
}

/* How far away the need of these bytes is; UINT64_MAX: not needed. */
static uint64_t distance_of(const struct guide *guide, const struct course *c,
                            const struct blob *blob, uint64_t off, uint64_t len, bool *known)
{
    uint64_t first, last;
    struct extent_map *ready;
    struct dataset_map *map;

    if (!c->ds->ops || !c->ds->ops->extents)
        return stored_distance(c, blob, off, len);
    map = map_of(guide, c);
    ready = atomic_load_explicit(&map->ready, memory_order_acquire);
    if (!ready) {
        if (!atomic_load_explicit(&map->is_wanted, memory_order_relaxed))
            atomic_store(&map->is_wanted, true);
        *known = false;
        return 0;
    }
    return extent_map_find(ready, blob, off, len, &first, &last) ? course_distance(c, first, last)
                                                                 : UINT64_MAX;
}

static uint64_t find_time(const struct guide *guide, const struct courses *courses,
                          const struct blob *blob, uint64_t off, uint64_t len, size_t *ret_course,
                          bool *ret_known)
{
    uint64_t best = STAGE_NEVER;

    *ret_course = ACTIVES_MOST;
    *ret_known = true;
    for (size_t i = 0; i < courses->n; i++) {
        const struct course *c = &courses->course[i];
        uint64_t distance = distance_of(guide, c, blob, off, len, ret_known), time;

        if (distance == UINT64_MAX)
            continue;
        time = course_time(c, distance);
        if (time < best) {
            best = time;
            *ret_course = i;
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

static uint64_t hash_of(const struct courses *courses, const struct blob *blob, uint64_t off,
                        uint64_t len)
{
    return stir(stir(stir(courses->version + 1, (uintptr_t)blob), off), len);
}

/* Is it of these courses, and has its time not come yet? Then another one may be due. */
static bool is_true(const struct courses *courses, uint64_t time, uint64_t whose)
{
    uint64_t course = whose % COURSE_ROOM;

    if (whose / COURSE_ROOM != courses->version % (UINT64_MAX / COURSE_ROOM))
        return false;
    return course < courses->n ? time >= courses->course[course].clock : time == STAGE_NEVER;
}

/* The answer that was given before, or the slot for it: the one whose time comes first. */
static bool recall(const struct guide *guide, const struct courses *courses, uint64_t hash,
                   uint64_t *ret, struct answer **ret_slot)
{
    struct answer *slot = &guide->answer[hash % ANSWERS / WAYS * WAYS];
    uint64_t soonest = UINT64_MAX;

    *ret_slot = slot;
    for (unsigned i = 0; i < WAYS; i++) {
        uint64_t check = atomic_load_explicit(&slot[i].check, memory_order_relaxed);
        uint64_t time = atomic_load_explicit(&slot[i].time, memory_order_relaxed);
        uint64_t whose = atomic_load_explicit(&slot[i].whose, memory_order_relaxed);
        bool is_good = is_true(courses, time, whose);

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

static void remember(const struct courses *courses, struct answer *slot, uint64_t hash,
                     uint64_t time, size_t course)
{
    uint64_t whose = courses->version % (UINT64_MAX / COURSE_ROOM) * COURSE_ROOM + course;

    atomic_store_explicit(&slot->check, hash ^ time ^ whose, memory_order_relaxed);
    atomic_store_explicit(&slot->time, time, memory_order_relaxed);
    atomic_store_explicit(&slot->whose, whose, memory_order_relaxed);
}

static uint64_t guide_when(void *ctx, const struct blob *blob, uint64_t off, uint64_t len)
{
    struct guide *guide = ctx;
    struct courses *courses;
    struct answer *slot;
    uint64_t hash, time;
    size_t course;
    bool known;

    if (!len)
        return STAGE_NEVER;
    refresh(guide, false);
    courses = courses_hold(guide);
    hash = hash_of(courses, blob, off, len);
    if (!recall(guide, courses, hash, &time, &slot)) {
        time = find_time(guide, courses, blob, off, len, &course, &known);
        if (known)
            remember(courses, slot, hash, time, course);
    }
    courses_let_go(guide, courses);
    return time;
}

/* ---- making it ---- */

int guide_new(struct actives *actives, const struct catalog *catalog, struct guide **ret)
{
    struct guide *guide = calloc(1, sizeof(*guide));

    if (!guide)
        return -ENOMEM;
    lock_init(&guide->lock);
    condition_init(&guide->refreshed);
    guide->for_stage = (struct stage_guide){guide_next, guide_when, guide};
    guide->actives = actives;
    guide->catalog = catalog;
    guide->map = calloc(catalog->n, sizeof(*guide->map));
    guide->answer = calloc(ANSWERS, sizeof(*guide->answer));
    guide->courses = calloc(1, sizeof(*guide->courses));
    if (!guide->map || !guide->answer || !guide->courses) {
        guide_free(guide);
        return -ENOMEM;
    }
    guide->courses->users = 1;
    *ret = guide;
    return 0;
}

void guide_free(struct guide *guide)
{
    if (!guide)
        return;
    for (size_t i = 0; guide->map && i < guide->catalog->n; i++) {
        extent_map_free(atomic_load(&guide->map[i].ready));
        extent_map_free(guide->map[i].making);
    }
    free(guide->map);
    free(guide->answer);
    free(guide->courses);
    free(guide->spare);
    lock_release(&guide->lock);
    pthread_cond_destroy(&guide->refreshed);
    free(guide);
}

const struct stage_guide *guide_for_stage(struct guide *guide)
{
    return &guide->for_stage;
}
