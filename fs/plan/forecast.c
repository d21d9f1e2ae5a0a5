/* A block holds several samples, so a shuffled epoch needs most blocks early and comes back to
 * each: `touched()` says how many it has needed after some of its samples, `visits` how often
 * batches come back. What the cache cannot hold is fetched at each visit.
 *
 * A window shuffle is a sequence of groups of neighbours, each a full shuffle; a full shuffle is
 * one group; the stored order has none. */
#include "fs/plan/forecast.h"

#include <math.h>

#include "base/checked.h"
#include "fs/plan/order.h"

#define POINTS 2048 /* batches of an epoch that are evaluated, at most */

/* What is the same in every epoch. */
struct cursor {
    const struct forecast_task *task;
    double share;     /* of the list that the rank reads */
    double repeats;   /* how often it reads each of those, at any time */
    double per_block; /* samples with a byte in a block */
    double list;      /* bytes of the part */
    double group;     /* samples of a group; 0: the stored order */
    double groups;
    double epoch;      /* bytes of blocks */
    double universe;   /* bytes of blocks of all epochs together */
    double visits;     /* bytes of blocks, counted once a batch */
    double comes_back; /* share of later visits that find their block, with keep=plan */
};

/* Share of a group's blocks that hold at least one of a random share of its samples. */
static double touched(const struct cursor *c, double samples)
{
    double of_block = c->share * c->per_block;

    /* Blocks with less than one sample share none. */
    if (c->task->is_even && samples <= c->share && c->share > 0)
        return fmin(of_block, 1) * (1 - pow(1 - samples / c->share, fmax(of_block, 1)));
    return 1 - pow(1 - fmin(samples, 1), c->per_block);
}

/* Bytes of blocks that the first k batches need. */
static double needed(const struct cursor *c, double k)
{
    const struct forecast_task *t = c->task;
    double read = fmin(k * (double)t->batch, (double)t->elements);
    double list = (double)t->list, at, whole, size;

    if (!t->elements || !t->list)
        return 0;
    if (c->group <= 0)
        return c->epoch * read / (double)t->elements;
    at = t->distinct > 0 ? list * read / (double)t->elements : fmin(read / c->share, list);
    if (c->repeats > 1)
        at = list * (1 - pow(1 - fmin(read / (double)t->elements, 1), c->repeats));
    whole = floor(at / c->group) * c->group; /* samples of finished groups */
    size = fmin(c->group, list - whole);     /* of the group in progress */
    read = whole * touched(c, c->share);
    if (size > 0)
        read += size * touched(c, (at - whole) / size * c->share);
    return read * c->list / list;
}

/* Share of visits that find their block if blocks are used at random and the cache keeps those
 * needed soonest: it keeps a block whose next use is closer than the limit at which the cache is
 * just full. */
static double hits_of_random(double cache)
{
    double low = 0, high = 64;

    if (cache >= 1)
        return 1;
    for (int i = 0; i < 60; i++) {
        double limit = (low + high) / 2;

        if (1 - (1 + limit) * exp(-limit) < cache)
            low = limit;
        else
            high = limit;
    }
    return 1 - exp(-low);
}

/* Bytes of the samples of the plan's part. */
static double bytes_listed(const struct forecast_task *t)
{
    return t->listed > 0 ? t->listed : t->bytes * (double)t->list / (double)t->samples;
}

static void cursor_init(struct cursor *c, const struct forecast_task *t)
{
    double listed = bytes_listed(t), of_batch;
    double size = fmax(listed / fmax((double)t->list, 1), 1e-9);

    *c = (struct cursor){.task = t};
    c->list = listed;
    c->share = t->distinct > 0 ? t->distinct : (double)t->elements;
    c->share = t->list ? fmin(c->share / (double)t->list, 1) : 0;
    if (t->is_drawn && t->distinct > 0)
        c->repeats = (double)t->elements / t->distinct;
    c->per_block = t->block / size + 1;
    if (t->is_shuffled) {
        c->group = (double)t->list;
        if (t->window)
            c->group = fmin(c->group, (double)t->window * ORDER_GROUP_BLOCKS);
        c->groups = c->group > 0 ? (double)t->list / c->group : 0;
        c->epoch = c->list * touched(c, c->share);
        c->universe = t->reach > 0 ? c->list * touched(c, t->reach) : c->list;
        of_batch = c->group > 0 ? (double)t->batch / c->group : 0;
        if (of_batch < c->share) /* several batches a group */
            c->visits = (double)t->batches * touched(c, of_batch) * c->list / c->groups;
    } else {
        c->epoch = c->universe = c->list * fmin(c->share * c->per_block, 1);
    }
    c->visits = fmax(c->visits, c->epoch);
}

/* Bytes fetched for the first k batches. missing: share of the blocks that the cache does not have
 * when the epoch begins; lost: share of the later visits whose block it has not kept. If those
 * cost more than the samples, only the samples are fetched. */
static double fetched(const struct cursor *c, double missing, double lost, double k)
{
    double first = needed(c, k);
    double part = k / (double)c->task->batches, visits = fmax(c->visits * part, first);
    double read = c->list * (double)c->task->elements / fmax((double)c->task->list, 1) * part;

    return fmin(first * missing + (visits - first) * lost, fmax(first, read) * missing);
}

static double seconds_of(const struct forecast_task *t, double bytes)
{
    if (bytes <= 0)
        return 0;
    return t->rate > 0 ? bytes / t->rate : NAN;
}

/* Batch number i of those that are evaluated, from 1; closer together at the start. */
static double point(const struct forecast_task *t, unsigned i, unsigned n)
{
    double x = n > 1 ? (double)i / (n - 1) : 1;

    return t->batches <= POINTS ? i + 1 : floor(1 + (double)(t->batches - 1) * x * x);
}

static unsigned points(const struct forecast_task *t)
{
    return t->batches < POINTS ? (unsigned)t->batches : POINTS;
}

static struct forecast_epoch run_epoch(const struct cursor *c, double missing, double lost)
{
    const struct forecast_task *t = c->task;
    double batches = (double)t->batches, compute = batches * t->compute;
    struct forecast_epoch e = {.seconds = compute};
    unsigned n = points(t);

    if (!n)
        return (struct forecast_epoch){0};
    e.fetched = fetched(c, missing, lost, batches);
    for (unsigned i = 0; i < n && t->ahead; i++) {
        double k = point(t, i, n);
        double arrival = seconds_of(t, fetched(c, missing, lost, k));

        e.seconds =
            isnan(arrival) ? NAN : fmax(e.seconds, arrival + (batches - k + 1) * t->compute);
        if (isnan(arrival))
            break;
    }
    if (!t->ahead)
        e.seconds = compute + seconds_of(t, e.fetched);
    if (t->compute < 0)
        e.seconds = NAN;
    e.wait = e.seconds - compute;
    return e;
}

/* The compute of a batch from which on the job waits only for the first batch. */
static double find_hides_at(const struct cursor *c, double missing, double lost)
{
    const struct forecast_task *t = c->task;
    double first = fetched(c, missing, lost, 1), most = 0;
    unsigned n = points(t);

    for (unsigned i = 1; i < n; i++) {
        double k = point(t, i, n);
        double arrival = seconds_of(t, fetched(c, missing, lost, k) - first);

        if (isnan(arrival))
            return NAN;
        if (k > 1)
            most = fmax(most, arrival / (k - 1));
    }
    return most;
}

/* Share of the later visits whose block the cache has not kept. */
static double lost_share(const struct cursor *c, const struct forecast *f)
{
    if (c->task->keep != FORECAST_PIN)
        return 1 - c->comes_back;
    return c->universe > 0 ? 1 - f->holds / c->universe : 0;
}

/* With keep=once the last announced epoch, and each one after it, leaves nothing behind. */
static bool keeps_after(const struct forecast_task *t, uint64_t epoch)
{
    return t->keep != FORECAST_ONCE || (t->announced && epoch < t->announced - 1);
}

/* How many epochs from number epoch on are like it, if one leaves as much as it finds. */
static uint64_t alike(const struct forecast_task *t, uint64_t epoch, uint64_t end)
{
    bool is_kept = t->keep == FORECAST_ONCE && keeps_after(t, epoch);

    return (is_kept ? min_u64(end, t->announced - 1) : end) - epoch;
}

static void run_epochs(const struct cursor *c, struct forecast *f)
{
    const struct forecast_task *t = c->task;
    double all = c->universe, have = all > 0 ? fmin(all * t->here / fmax(t->bytes, 1), all) : 0;
    double lost = lost_share(c, f), total = 0;
    uint64_t end = max_u64(t->epochs, 2), same;

    for (uint64_t e = 0; e < end; e += same) {
        double missing = all > 0 ? 1 - have / all : 0, before = have;
        struct forecast_epoch run = run_epoch(c, missing, lost);
        double more = missing * c->epoch;

        if (!e)
            f->first = run;
        f->later = run;
        /* Background staging goes on with what later epochs need. */
        if (t->ahead && t->rate > 0 && run.seconds > 0)
            more = fmax(more, run.seconds * t->rate);
        have = keeps_after(t, e) ? fmin(have + more, f->holds) : 0;
        same = e && fabs(have - before) <= 1e-4 * all ? alike(t, e, end) : 1;
        if (e < t->epochs)
            total += (double)min_u64(same, t->epochs - e) * run.seconds;
    }
    f->total = total;
}

/* Without a cache: the samples are read ahead in each epoch. */
static double run_direct(const struct forecast_task *t, double bytes)
{
    double arrival = seconds_of(t, bytes), batches = (double)t->batches;

    if (!t->batches)
        return 0;
    return (double)t->epochs * fmax(arrival + t->compute, arrival / batches + batches * t->compute);
}

void forecast_make(const struct forecast_task *t, struct forecast *ret)
{
    struct forecast f = {0};
    double present, come_back;
    struct cursor c;

    cursor_init(&c, t);
    present = fmin(t->here / fmax(t->bytes, 1), 1);
    f.read = bytes_listed(t) / fmax((double)t->list, 1) * (double)t->elements;
    f.epoch = c.epoch;
    f.all_epochs = c.universe;
    f.here = c.epoch * present;
    f.missing = c.epoch - f.here;
    f.holds = fmin(c.universe, c.universe * present + t->capacity);
    f.fits = f.holds >= c.universe;
    c.comes_back = c.groups > 0 ? hits_of_random(f.holds / fmax(c.list / c.groups, 1)) : 1;
    f.pin = c.universe > 0 ? f.holds / c.universe : 1;
    come_back = c.visits > 0 ? 1 - c.epoch / c.visits : 0; /* share of visits that come back */
    f.plan = (1 - come_back) * f.pin + come_back * c.comes_back;
    f.compute = t->compute >= 0 ? (double)t->batches * t->compute : NAN;
    run_epochs(&c, &f);
    f.staging = seconds_of(t, f.first.fetched);
    f.first_batch = t->batches ? seconds_of(t, fetched(&c, 1 - present, lost_share(&c, &f), 1)) : 0;
    f.hides_at = t->rate > 0 ? find_hides_at(&c, 1 - present, lost_share(&c, &f)) : NAN;
    f.hides = f.first.wait - f.first_batch <= 0.01 * f.compute;
    f.copy = t->compute >= 0 ? seconds_of(t, t->bytes) + (double)t->epochs * f.compute : NAN;
    f.direct = t->compute >= 0 ? run_direct(t, f.read) : NAN;
    *ret = f;
}
