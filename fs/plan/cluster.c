/* The sums of cluster.h. What a rank reads, and how an epoch passes while bytes come, is
 * forecast.c's: it is asked with the rate at which a node gets its bytes. */
#include "fs/plan/cluster.h"

#include <math.h>

#include "base/checked.h"

/* The first epoch of a task whose bytes come into caches that can hold them. */
static struct forecast first_epoch(struct forecast_task t, double rate)
{
    struct forecast f;

    t.rate = rate;
    t.here = 0;
    t.ahead = true;
    t.keep = FORECAST_PIN;
    t.capacity = HUGE_VAL;
    forecast_make(&t, &f);
    return f;
}

/* What all nodes together need, as if one read all of their batches with the same number at once:
 * in slices, because the ring fetches these, and by the origin's link. */
static struct forecast of_ring(const struct cluster_task *t, double rate)
{
    struct forecast_task all = t->plan;
    double most = (double)all.list;

    all.block = CLUSTER_SLICE;
    if (t->ranks > 1) {
        all.batch *= max_u64(t->ranks, t->nodes);
        all.elements = (uint64_t)fmin((double)all.elements * (double)t->ranks, most);
        all.distinct = fmin(all.distinct * (double)t->ranks, most);
    } else if (all.is_shuffled) { /* in as many orders: samples come back at any time */
        all.distinct = all.distinct > 0 ? all.distinct : (double)all.elements;
        all.is_drawn = true;
        all.batch *= t->nodes;
        all.elements *= t->nodes;
    }
    return first_epoch(all, rate);
}

/* origin: of the bytes that all nodes read, those that the origin sends. */
static struct cluster_reads cluster_split(double origin, double nodes)
{
    double later = origin < 0.99999 ? 1 - origin : 0;

    return (struct cluster_reads){
        .disk = later / nodes, .peers = later - later / nodes, .origin = 1 - later};
}

void cluster_make(const struct cluster_task *t, struct cluster *ret)
{
    double n = (double)t->nodes, alive = n - (double)t->dead, others = 1 - 1 / n;
    double here = t->ranks > 1 ? (double)t->ranks / n : 1; /* ranks on a node */
    double node_rate = t->node_rate * CLUSTER_PAYLOAD;
    double origin_rate = fmin(t->origin_rate, n * t->node_rate) * CLUSTER_PAYLOAD;
    struct forecast ring = of_ring(t, origin_rate), rank = first_epoch(t->plan, 0);
    double all = ring.all_epochs, epochs = (double)max_u64(t->plan.epochs, 1), later, universe;
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
        fmax(fmin(n * CLUSTER_JOBS * CLUSTER_SLICE, c.once) / origin_rate, ring.first_batch);
    c.share = all / n;
    c.share_after = all / alive;
    c.first_epoch = c.later_epoch = NAN;
    if (t->plan.compute >= 0) {
        struct forecast f =
            first_epoch(t->plan, c.link > 0 ? rank.epoch / c.link * node_rate : HUGE_VAL);

        c.first_epoch = fmax(f.first.seconds, ring.first.seconds);
        c.first_epoch = fmax(c.first_epoch, c.first_batch + f.compute);
        c.later_epoch = fmax(f.compute, c.link_later / node_rate);
    }
    later = epochs > 1 ? (all - c.once) / (epochs - 1) : 0; /* of draws, in each later epoch */
    c.first = cluster_split(c.once / (n * c.reads), n);
    c.later = cluster_split(later / (n * c.reads), n);
    /* Ranks of dead nodes go on elsewhere, so as much is read as before. */
    c.after = cluster_split(
        (later + all * (double)t->dead / n) / ((t->ranks > 1 ? n : alive) * c.reads), alive);
    *ret = c;
}
