/* epochfs-bench-orders: what a position of a plan's order costs, and the way back.
 *
 *   epochfs-bench-orders PLAN SAMPLES [MIX]
 *
 * MIX: as in -o mix=; its sources have SAMPLES in all, in equal shares. Prints nanoseconds from an
 * element to its sample, asked for in batches of 64 and one at a time, and from a sample to its
 * element, the same: each the least of some runs. The elements and samples are spread over the
 * epoch. */
#include "base/checked.h"
#include "bench/common.h"
#include "bench/orders_data.h"
#include "fs/plan/mix_order.h"
#include "fs/plan/mix_text.h"
#include "fs/plan/schedule.h"

enum { RUNS = 7, EACH = 64, BATCHES = 1200 };

struct timed {
    struct schedule schedule;
    struct epoch_order order;
    uint64_t samples, step; /* those that are looked for are multiples of it */
    volatile uint64_t sum;  /* what is computed is used */
};

/* n numbers below `most`, far apart. */
static uint64_t spread(uint64_t i, uint64_t most)
{
    return i * UINT64_C(0x9e3779b97f4a7c15) % most;
}

static void batches(struct timed *t)
{
    uint64_t got[EACH], room = t->schedule.elements - EACH + 1;

    for (uint64_t i = 0; i < BATCHES; i++) {
        schedule_elements(&t->schedule, &t->order, spread(i, room), EACH, got);
        t->sum += got[0] + got[EACH - 1];
    }
}

static void singles(struct timed *t)
{
    uint64_t got;

    for (uint64_t i = 0; i < EACH * BATCHES; i++) {
        schedule_elements(&t->schedule, &t->order, spread(i, t->schedule.elements), 1, &got);
        t->sum += got;
    }
}

static void back(struct timed *t)
{
    for (uint64_t i = 0; i < EACH * BATCHES; i++) {
        uint64_t sample = spread(i, t->samples / t->step) * t->step;

        t->sum += schedule_find(&t->schedule, &t->order, sample, sample, 0);
    }
}

static void back_batches(struct timed *t)
{
    struct plan_samples wanted[EACH];
    uint64_t got[EACH];

    for (uint64_t i = 0; i < EACH * BATCHES;) {
        for (size_t k = 0; k < EACH; k++, i++)
            wanted[k].first = wanted[k].last = spread(i, t->samples / t->step) * t->step;
        schedule_find_each(&t->schedule, &t->order, EACH, wanted, 0, got);
        t->sum += got[0] + got[EACH - 1];
    }
}

/* The processor's time, as other programs may run. */
static uint64_t thread_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static double least_ns(void (*run)(struct timed *t), struct timed *t)
{
    double least = 0;

    for (int i = 0; i < RUNS; i++) {
        uint64_t begin = thread_ns();
        double ns;

        run(t);
        ns = (double)(thread_ns() - begin) / (EACH * BATCHES);
        least = i && least < ns ? least : ns;
    }
    return least;
}

/* The order of a mix. What it takes lives until the program ends. */
static const struct order_spec *make_mix(const char *text, uint64_t samples)
{
    static struct mix_spec spec;
    static struct order_spec own;
    uint64_t passes[MIX_SOURCES_MAX];
    struct mix_order *o = calloc(1, sizeof(*o) + MIX_SOURCES_MAX * sizeof(o->list[0]));
    struct diag d = DIAG_INIT;
    struct mix *mix;
    unsigned source;

    if (!o || mix_spec_parse(text, &spec, &d) < 0 ||
        mix_new(spec.weights, spec.n_stretches, spec.n_sources, &mix) < 0)
        die(d.set ? d.text : "no memory", EINVAL);
    o->mix = mix;
    o->n = spec.n_sources;
    for (unsigned i = 0; i < o->n; i++) {
        o->list[i].first = i * (samples / o->n);
        o->list[i].samples = passes[i] = samples / o->n;
        schedule_init(&o->list[i].schedule, &spec.source[i].plan, passes[i], NULL);
    }
    if (mix_length(mix, passes, spec.end, spec.length, &o->length, &source) < 0)
        die("the mix has no epoch", EINVAL);
    mix_order_set(o, &own);
    return &own;
}

int main(int argc, char **argv)
{
    static struct timed t;
    struct plan_data data = {0};
    struct diag d = DIAG_INIT;
    struct plan plan;

    if (argc < 3 || argc > 4 || plan_parse(argv[1], strlen(argv[1]), ',', &plan, &d) < 0) {
        fprintf(stderr, "usage: epochfs-bench-orders PLAN SAMPLES [MIX]: %s\n",
                d.set ? d.text : "");
        return 1;
    }
    t.samples = number(argv[2]);
    data.dataset_order = argc > 3 ? make_mix(argv[3], t.samples) : NULL;
    t.samples = data.samples = data.dataset_order ? data.dataset_order->places : t.samples;
    make_data(&plan, t.samples, &data, &t.step);
    schedule_init_data(&t.schedule, &plan, &data);
    if (schedule_check(&t.schedule, &d) < 0 || t.schedule.elements < EACH)
        die(d.set ? d.text : "fewer samples than a batch", EINVAL);
    schedule_order(&t.schedule, 3, &t.order);
    printf("%.1f %.1f %.1f %.1f\n", least_ns(batches, &t), least_ns(singles, &t),
           least_ns(back_batches, &t), least_ns(back, &t));
    return 0;
}
