/* A window is sorted when one of its batches is needed; the last ones stay in a memo. */
#include "fs/plan/length_batches.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/memo.h"
#include "base/pool.h"
#include "base/scope.h"
#include "base/search.h"
#include "fs/plan/length_sums.h"
#include "fs/plan/length_window.h"
#include "fs/plan/plan.h"

#define MICRO         1000000
#define WINDOWS_KEPT  8                    /* sorted, of a plan, */
#define KEPT_MOST     (UINT64_C(16) << 20) /* bytes, or one */
#define NEAR_PLACES   (UINT64_C(1) << 15)  /* that a lookup passes over itself */
#define PASSED        64                   /* windows of a step of a pass, at most, */
#define PASSED_PLACES (UINT64_C(1) << 20)  /* with so many places, or one window */

struct length_batches {
    struct batch_cuts cuts; /* first; constant, like: */
    struct plan plan;       /* whose positions are those of the windows */
    struct schedule places;
    struct length_cutter cutter;
    struct pool *pool;
    struct memo *windows;

    struct length_sums sums;
};

/* They are const for schedules; sums and windows are not, behind locks. */
struct length_batches *length_batches_of(const struct batch_cuts *cuts)
{
    return (struct length_batches *)(uintptr_t)cuts;
}

/* ---- making ---- */

/* What users wrote in millionths, in the unit of the lengths. */
static int scaled(const struct plan_lengths *lengths, const char *word, uint64_t micro,
                  uint64_t *ret, struct diag *d)
{
    if (!lengths->is_micro && micro % MICRO)
        return diag_set(d, -EINVAL, "%s: expected a whole number of %s, got a fraction", word,
                        lengths->word);
    *ret = lengths->is_micro ? micro : micro / MICRO;
    return 0;
}

static const struct batch_cuts_ops length_batches_ops;

static int set_words(struct length_batches *b, const struct plan *plan, struct diag *d)
{
    int r = 0;

    b->cutter.window = plan->bucket;
    b->cutter.group = plan->group ? plan->group : 1;
    b->cutter.budget = UINT64_MAX;
    b->cutter.most = plan->batch ? plan->batch : UINT64_MAX;
    if (plan->budget)
        r = scaled(b->cutter.lengths, "batch", plan->budget, &b->cutter.budget, d);
    if (r == 0 && plan->quad)
        r = scaled(b->cutter.lengths, "quad", plan->quad, &b->cutter.quad, d);
    b->cutter.drops_short = !plan->budget && plan->tail == TAIL_DROP;
    return r;
}

static int length_batches_set_places(struct length_batches *b, const struct plan *plan,
                                     const struct plan_data *data, struct diag *d)
{
    struct plan_data places = *data;

    b->plan = *plan;
    b->plan.batch = 0;
    b->plan.budget = b->plan.bucket = 0;
    b->plan.rank = 0;
    b->plan.ranks = 1;
    b->plan.tail = TAIL_KEEP;
    places.cuts = NULL;
    schedule_init_data(&b->places, &b->plan, &places);
    b->cutter.n = b->places.positions;
    if (b->cutter.n >= LENGTH_BATCHES_POSITIONS)
        return diag_set(d, -EINVAL,
                        "bucket: expected an epoch of fewer than 2^32 samples, got %llu",
                        (unsigned long long)b->cutter.n);
    if (b->cutter.n / b->cutter.window >= LENGTH_BATCHES_WINDOWS)
        return diag_set(d, -EINVAL, "bucket: expected at least %llu for %llu samples, got %llu",
                        (unsigned long long)(b->cutter.n / LENGTH_BATCHES_WINDOWS + 1),
                        (unsigned long long)b->cutter.n, (unsigned long long)b->cutter.window);
    return schedule_check(&b->places, d);
}

int length_batches_new(const struct plan *plan, const struct plan_data *data, struct pool *pool,
                       struct length_batches **ret, struct diag *d)
{
    struct length_batches *b = calloc(1, sizeof(*b));
    uint64_t each;
    int r;

    if (!b)
        return -ENOMEM;
    b->cutter.places = &b->places;
    b->cutter.lengths = data->lengths;
    b->pool = pool;
    length_sums_init(&b->sums);
    r = set_words(b, plan, d);
    if (r == 0)
        r = length_batches_set_places(b, plan, data, d);
    each = length_window_size(b->cutter.window, b->cutter.window / 8) + MEMO_OWN;
    if (r == 0)
        r = memo_new((size_t)min_u64(WINDOWS_KEPT * each, KEPT_MOST), &b->windows);
    if (r < 0) {
        length_batches_free(b);
        return r;
    }
    b->cuts.ops = &length_batches_ops;
    b->cuts.window = b->cutter.window;
    b->sums.places = &b->places;
    b->sums.window = b->cutter.window;
    b->sums.windows = ceil_div(b->cutter.n, b->cutter.window);
    b->sums.is_arithmetic = !plan->budget;
    *ret = b;
    return 0;
}

void length_batches_free(struct length_batches *b)
{
    if (!b)
        return;
    length_sums_release(&b->sums);
    memo_free(b->windows);
    free(b);
}

void length_batches_keep(struct length_batches *b, const struct length_keeper *keeper)
{
    b->sums.keeper = *keeper;
}

struct window_task {
    struct length_batches *b;
    const struct epoch_sums *e;
    uint64_t w;
};

/* The batches of the windows before w, which is known. */
static uint64_t before_window(const struct length_batches *b, const struct epoch_sums *e,
                              uint64_t w)
{
    uint64_t all =
        b->cutter.n / b->cutter.most + (b->cutter.n % b->cutter.most && !b->cutter.drops_short);

    return e->start ? e->start[w] : min_u64(w * (b->cutter.window / b->cutter.most), all);
}

static int make_window(void *ctx, void **ret, size_t *ret_size)
{
    const struct window_task *task = ctx;

    return length_window_new(&task->b->cutter, &task->e->order, task->w,
                             before_window(task->b, task->e, task->w), ret, ret_size);
}

/* A window before which, and which, all are counted. -EIO: it has not the batches that were
 * counted, and the next mount counts again. */
static int get_window(struct length_batches *b, const struct epoch_sums *e, uint64_t w,
                      struct memo_thing **ret_thing, const struct length_window **ret)
{
    const struct memo_key key = {{e->epoch, w}};
    struct window_task task = {b, e, w};
    int r = memo_get(b->windows, &key, &(struct memo_maker){.make = make_window, .ctx = &task},
                     ret_thing);

    if (r < 0)
        return r;
    *ret = memo_bytes(*ret_thing);
    if (!e->start ||
        (e->start[w] == (*ret)->before && e->start[w + 1] - e->start[w] == (*ret)->cuts))
        return 0;
    memo_let_go(*ret_thing);
    if (b->sums.keeper.remove)
        b->sums.keeper.remove(b->sums.keeper.ctx, e->epoch);
    return -EIO;
}

/* ---- counting ---- */

struct pass {
    struct length_batches *b;
    const struct epoch_sums *e;
    uint64_t from;
    uint32_t count[PASSED];
    struct length_fill fill[PASSED];
    bool fills;
    _Atomic bool failed;
};

static void pass_one(void *ctx, unsigned number)
{
    struct pass *p = ctx;
    struct sorted_window s;

    if (length_sort(&p->b->cutter, &p->e->order, p->from + number, &s) < 0) {
        atomic_store(&p->failed, true);
        return;
    }
    p->count[number] = length_count_cuts(&p->b->cutter, &s);
    if (p->fills)
        length_measure(&p->b->cutter, &s, &p->fill[number]);
    free(s.memory);
}

/* Pass over at most n windows. 0 or -ENOMEM. */
static int pass_windows(struct pass *p, uint64_t n)
{
    atomic_store(&p->failed, false);
    pool_run(p->b->pool, (unsigned)n, pass_one, p);
    return atomic_load(&p->failed) ? -ENOMEM : 0;
}

/* Windows of a step of a pass from number `from` on. */
static uint64_t length_batches_step_of(const struct length_batches *b, uint64_t from)
{
    uint64_t some = max_u64(min_u64(PASSED_PLACES / b->cutter.window, PASSED), 1);

    return min_u64(some, b->sums.windows - from);
}

static int count_windows(struct length_batches *b, struct epoch_sums *e, uint64_t from, uint64_t n)
{
    struct pass pass;
    int r;

    pass.b = b;
    pass.e = e;
    pass.from = from;
    pass.fills = false;
    r = pass_windows(&pass, n);
    if (r == 0)
        length_sums_add(&b->sums, e, from, (size_t)n, pass.count);
    return r;
}

/* Count until more than g batches are known. */
static int length_batches_reach(struct length_batches *b, struct epoch_sums *e, uint64_t g,
                                bool far)
{
    uint64_t passed = 0, known = length_sums_known(e), some = 1;
    int r = 0;

    while (r == 0 && before_window(b, e, known) <= g) {
        if (known == b->sums.windows)
            return -ENOENT;
        if (!known && passed == 0)
            length_sums_load(&b->sums, e);
        if (length_sums_known(e) == known) {
            /* Not wanted: a pass has just ended, and `known` says so below. */
            if (!far && passed && passed + b->cutter.window > NEAR_PLACES &&
                length_sums_want(&b->sums, e))
                return -EAGAIN;
            r = count_windows(b, e, known, some);
            passed += some * b->cutter.window;
            some = far ? length_batches_step_of(b, known + some) : 1;
        }
        known = length_sums_known(e);
        some = min_u64(some, b->sums.windows - known);
    }
    return r;
}

/* Count all windows before w, and it. */
static int reach_window(struct length_batches *b, struct epoch_sums *e, uint64_t w)
{
    uint64_t known;
    int r = 0;

    length_sums_load(&b->sums, e);
    while (r == 0 && (known = length_sums_known(e)) <= w)
        r = count_windows(b, e, known, min_u64(length_batches_step_of(b, known), w + 1 - known));
    return r;
}

static bool length_batches_count(const struct batch_cuts *cuts, uint64_t epoch, uint64_t *ret)
{
    struct length_batches *b = length_batches_of(cuts);
    struct epoch_sums *e;
    bool is_known = length_sums_hold(&b->sums, epoch, &e) == 0;

    *ret = b->cutter.n;
    if (!is_known)
        return false;
    length_sums_load(&b->sums, e);
    is_known = length_sums_known(e) == b->sums.windows;
    if (is_known)
        *ret = before_window(b, e, b->sums.windows);
    length_sums_let_go(&b->sums, e);
    return is_known;
}

static bool length_batches_ask(const struct batch_cuts *cuts, uint64_t epoch)
{
    struct length_batches *b = length_batches_of(cuts);
    struct epoch_sums *e;
    bool is_wanted = false;

    if (!b->sums.is_arithmetic && length_sums_hold(&b->sums, epoch, &e) == 0) {
        is_wanted = length_sums_want(&b->sums, e);
        length_sums_let_go(&b->sums, e);
    }
    return is_wanted;
}

bool length_batches_wants(const struct length_batches *b)
{
    return atomic_load(&b->sums.wanted) > 0;
}

int length_batches_step(struct length_batches *b)
{
    struct epoch_sums *e;
    uint64_t known;
    int r = 0;

    if (!length_sums_hold_wanted(&b->sums, &e))
        return -ENOENT;
    length_sums_load(&b->sums, e);
    known = length_sums_known(e);
    if (known < b->sums.windows)
        r = count_windows(b, e, known, length_batches_step_of(b, known));
    if (r == 0 && length_sums_known(e) == b->sums.windows) {
        length_sums_finish(&b->sums, e);
        r = 1;
    }
    length_sums_let_go(&b->sums, e);
    return r;
}

int length_batches_fill(struct length_batches *b, uint64_t epoch, struct length_fill *ret)
{
    struct length_fill all = {0};
    struct epoch_sums *e;
    struct pass pass;
    int r = length_sums_hold(&b->sums, epoch, &e);

    if (r < 0)
        return r;
    pass.b = b;
    pass.e = e;
    pass.fills = true;
    for (uint64_t w = 0, n; w < b->sums.windows && r == 0; w += n) {
        n = length_batches_step_of(b, w);
        pass.from = w;
        memset(pass.fill, 0, sizeof(pass.fill));
        r = pass_windows(&pass, n);
        for (uint64_t i = 0; i < n && r == 0; i++) {
            all.batches += pass.fill[i].batches;
            all.samples += pass.fill[i].samples;
            all.alone += pass.fill[i].alone;
            all.used += pass.fill[i].used;
            all.area += pass.fill[i].area;
        }
        if (r == 0 && e->start)
            length_sums_add(&b->sums, e, w, (size_t)n, pass.count);
    }
    length_sums_let_go(&b->sums, e);
    all.budget = (double)b->cutter.budget;
    if (r == 0)
        *ret = all;
    return r;
}

/* ---- batches ---- */

/* The last number of start[from ..] that is at most x; start[from] is. */
static uint64_t length_batches_last(const uint32_t *start, uint64_t n, uint64_t x)
{
    return SEARCH_LAST(n, i, start[i] <= x);
}

/* The window of batch g, which is counted. */
static uint64_t window_of(const struct length_batches *b, const struct epoch_sums *e, uint64_t g)
{
    return e->start ? length_batches_last(e->start, length_sums_known(e), g)
                    : g / (b->cutter.window / b->cutter.most);
}

/* Hold the epoch, and the window of batch g. */
static int hold_window(struct length_batches *b, uint64_t epoch, uint64_t g,
                       struct epoch_sums **ret_e, struct memo_thing **ret_thing,
                       const struct length_window **ret, uint64_t *ret_w)
{
    struct epoch_sums *e;
    int r = length_sums_hold(&b->sums, epoch, &e);

    if (r < 0)
        return r;
    r = length_batches_reach(b, e, g, true);
    if (r == 0) {
        *ret_w = window_of(b, e, g);
        r = get_window(b, e, *ret_w, ret_thing, ret);
    }
    if (r < 0)
        length_sums_let_go(&b->sums, e);
    else
        *ret_e = e;
    return r;
}

static int length_batches_find(const struct batch_cuts *cuts, uint64_t epoch, uint64_t g,
                               struct cut_batch *ret)
{
    struct length_batches *b = length_batches_of(cuts);
    const struct length_window *window;
    struct memo_thing *thing;
    struct epoch_sums *e;
    uint64_t w = 0;
    uint32_t cut, start, place;
    int r = hold_window(b, epoch, g, &e, &thing, &window, &w);

    if (r < 0)
        return r;
    place = (uint32_t)(g - window->before);
    cut = window_cut(window)[place];
    start = window_start(window)[cut];
    *ret = (struct cut_batch){.base = w * b->cutter.window,
                              .count = window_start(window)[cut + 1] - start,
                              .begin = w * b->cutter.window + window_shown(window)[place]};
    ret->at = malloc(ret->count * sizeof(*ret->at));
    if (ret->at)
        memcpy(ret->at, window_at(window) + start, ret->count * sizeof(*ret->at));
    memo_let_go(thing);
    length_sums_let_go(&b->sums, e);
    return ret->at ? 0 : -ENOMEM;
}

/* ---- elements ---- */

static bool is_of_rank(const struct cut_rank *rank, uint64_t g)
{
    return g % rank->ranks == rank->rank;
}

/* Elements first .. first + count - 1 of window w. */
static void window_elements(const struct length_window *window, const struct cut_rank *rank,
                            uint64_t base, uint64_t first, size_t count, uint64_t *ret)
{
    const uint32_t *shown = window_shown(window), *start = window_start(window);
    uint64_t place = window->cuts ? length_batches_last(shown, window->cuts, first) : 0;

    for (size_t i = 0; i < count; i++, first++) {
        uint32_t cut;

        while (place < window->cuts && shown[place + 1] <= first)
            place++;
        ret[i] = UINT64_MAX;
        if (place >= window->cuts || !is_of_rank(rank, window->before + place))
            continue;
        cut = window_cut(window)[place];
        ret[i] = base + window_at(window)[start[cut] + (first - shown[place])];
    }
}

static void length_batches_elements(const struct batch_cuts *cuts, uint64_t epoch,
                                    struct cut_rank rank, uint64_t first, size_t count,
                                    uint64_t *ret)
{
    struct length_batches *b = length_batches_of(cuts);
    struct epoch_sums *e;
    size_t some;
    int r = length_sums_hold(&b->sums, epoch, &e);

    for (size_t i = 0; i < count; i += some) {
        uint64_t w = (first + i) / b->cutter.window, at = (first + i) % b->cutter.window;
        const struct length_window *window;
        struct memo_thing *thing;

        some = (size_t)min_u64(count - i, b->cutter.window - at);
        for (size_t k = i; k < i + some; k++)
            ret[k] = UINT64_MAX;
        if (r < 0 || w >= b->sums.windows || reach_window(b, e, w) < 0 ||
            get_window(b, e, w, &thing, &window) < 0)
            continue;
        window_elements(window, &rank, w * b->cutter.window, at, some, ret + i);
        memo_let_go(thing);
    }
    if (r == 0)
        length_sums_let_go(&b->sums, e);
}

/* Where a place is shown in its window; UINT64_MAX: not by this rank. */
static uint64_t shown_at(const struct length_window *window, const struct cut_rank *rank,
                         uint32_t wanted)
{
    const uint32_t *at = window_at(window), *start = window_start(window);
    uint32_t sorted = 0, cut, place = 0;

    while (sorted < window->places && at[sorted] != wanted)
        sorted++;
    if (!window->cuts || sorted >= start[window->cuts])
        return UINT64_MAX;
    cut = (uint32_t)length_batches_last(start, window->cuts, sorted);
    while (window_cut(window)[place] != cut)
        place++;
    return is_of_rank(rank, window->before + place)
               ? window_shown(window)[place] + (sorted - start[cut])
               : UINT64_MAX;
}

static uint64_t length_batches_element(const struct batch_cuts *cuts, uint64_t epoch,
                                       struct cut_rank rank, uint64_t position, uint64_t from)
{
    struct length_batches *b = length_batches_of(cuts);
    uint64_t w = position / b->cutter.window, base = w * b->cutter.window, at;
    const struct length_window *window;
    struct memo_thing *thing;
    struct epoch_sums *e;

    if (position >= b->cutter.n || w < from / b->cutter.window)
        return UINT64_MAX;
    if (w > from / b->cutter.window)
        return base;
    if (length_sums_hold(&b->sums, epoch, &e) < 0)
        return from;
    at = from - base;
    if (reach_window(b, e, w) == 0 && get_window(b, e, w, &thing, &window) == 0) {
        at = shown_at(window, &rank, (uint32_t)(position - base));
        memo_let_go(thing);
    }
    length_sums_let_go(&b->sums, e);
    return at == UINT64_MAX || base + at < from ? UINT64_MAX : base + at;
}

static int length_batches_has(const struct batch_cuts *cuts, uint64_t epoch, uint64_t g)
{
    struct length_batches *b = length_batches_of(cuts);
    struct epoch_sums *e;
    int r = length_sums_hold(&b->sums, epoch, &e);

    if (r < 0)
        return r;
    r = length_batches_reach(b, e, g, false);
    length_sums_let_go(&b->sums, e);
    return r;
}

static const struct batch_cuts_ops length_batches_ops = {
    .count = length_batches_count,
    .has = length_batches_has,
    .ask = length_batches_ask,
    .find = length_batches_find,
    .elements = length_batches_elements,
    .element = length_batches_element,
};

const struct batch_cuts *length_batches_cuts(const struct length_batches *b)
{
    return &b->cuts;
}

struct memory_held length_batches_held(struct length_batches *b)
{
    struct memory_held held = memo_held(b->windows);
    LOCK_SCOPE(&b->sums.lock);

    held.bytes += b->sums.n * length_sums_size(&b->sums);
    held.limit += length_sums_most(&b->sums) * length_sums_size(&b->sums);
    return held;
}
