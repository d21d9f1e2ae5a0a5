/* The sums of cluster.h. What a rank reads, and how an epoch passes while bytes come, is
 * forecast.c's: it is asked with the rate at which a node gets its bytes. */
#include "fs/plan/cluster.h"

#include <math.h>

#include "base/checked.h"

/* What all nodes together need: in slices, because the ring fetches these. At one byte a second, so
 * that seconds are bytes. */
static struct forecast of_ring(const struct cluster_task *t)
{
    struct forecast_task all = t->plan;
    struct forecast f;

    all.block = CLUSTER_SLICE;
    all.here = 0;
    all.rate = 1;
    all.batch *= max_u64(t->ranks, t->nodes); /* the first batches of all */
    if (t->ranks > 1) {
        double most = (double)all.list;

        all.elements = (uint64_t)fmin((double)all.elements * (double)t->ranks, most);
        all.distinct = fmin(all.distinct * (double)t->ranks, most);
    }
    forecast_make(&all, &f);
    return f;
}

/* The first epoch of a rank whose bytes come at this rate, into a cache that can hold them. */
static struct forecast of_rank(const struct cluster_task *t, double rate)
{
    struct forecast_task one = t->plan;
    struct forecast f;

    one.rate = rate;
    one.here = 0;
    one.ahead = true;
    one.keep = FORECAST_PIN;
    one.capacity = HUGE_VAL;
    forecast_make(&one, &f);
    return f;
}

/* origin: of the bytes that all nodes read, those that the origin sends. */
static struct cluster_reads split(double origin, double nodes)
{
    double rest = origin < 0.99999 ? 1 - origin : 0;

    return (struct cluster_reads){
        .disk = rest / nodes, .peers = rest - rest / nodes, .origin = 1 - rest};
}

void cluster_make(const struct cluster_task *t, struct cluster *ret)
{
    double n = (double)t->nodes, alive = n - (double)t->dead, others = 1 - 1 / n;
    double here = t->ranks > 1 ? (double)t->ranks / n : 1; /* ranks on a node */
    double node_rate = t->node_rate * CLUSTER_PAYLOAD;
    double origin_rate = fmin(t->origin_rate, n * t->node_rate) * CLUSTER_PAYLOAD;
    struct forecast ring = of_ring(t), rank = of_rank(t, 0);
    double all = ring.all_epochs, epochs = (double)max_u64(t->plan.epochs, 1), rest, universe;
    struct cluster c = {.once = ring.epoch};

    c.reads = fmin(rank.epoch * here, fmax(rank.all_epochs, ring.epoch));
    universe = fmax(rank.all_epochs, c.reads);
    /* A shuffled rank reads other samples in each epoch. */
    c.alone = n * universe * (1 - pow(1 - c.reads / universe, epochs));
    c.origin = all + (t->dead ? all * (double)t->dead / n : 0);
    c.link = c.once / n + c.reads * others;
    c.link_later = c.reads * others;
    c.by_origin = c.once / origin_rate >= c.link / node_rate;
    c.staging = fmax(c.once / origin_rate, c.link / node_rate);
    c.first_batch =
        fmax(fmin(n * CLUSTER_JOBS * CLUSTER_SLICE, c.once), ring.first_batch) / origin_rate;
    c.share = all / n;
    c.share_after = all / alive;
    c.first_epoch = c.later_epoch = NAN;
    if (t->plan.compute >= 0) {
        struct forecast f = of_rank(t, c.staging > 0 ? rank.epoch / c.staging : HUGE_VAL);

        c.first_epoch = fmax(f.first.seconds, c.first_batch + f.compute);
        c.later_epoch = fmax(f.compute, c.link_later / node_rate);
    }
    rest = epochs > 1 ? (all - c.once) / (epochs - 1) : 0; /* of draws, in each later epoch */
    c.first = split(c.once / (n * c.reads), n);
    c.later = split(rest / (n * c.reads), n);
    /* Ranks of dead nodes go on elsewhere, so as much is read as before. */
    c.after =
        split((rest + all * (double)t->dead / n) / ((t->ranks > 1 ? n : alive) * c.reads), alive);
    *ret = c;
}
