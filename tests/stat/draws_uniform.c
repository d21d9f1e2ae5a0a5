/* slow: ten million draws */
/* Are draws and classes (docs/spec/order.md) as random as they should be? Chi-square tests over
 * many keys, with fixed seeds, so that every run prints the same figures.
 *
 *   draws_uniform [SCALE]    SCALE times as many keys, default 1
 *
 * One line per test: name, chi2, degrees of freedom, z, as tests/stat/order_uniform.c prints them.
 * About 200 tests; one fails when |z| reaches 4, and the program exits with 1. Each counts a second
 * time with a planted bias: one draw in 50 is not what the order says but the first cell. Nearly
 * all of those must fail.
 *
 * Over keys, the place that an order shows at one position has the probability of its share of
 * the epoch: that of a weight, of a class, of a member. So its counts are multinomial. So are those
 * of two places that should be independent: of neighbouring epochs at one position, of two
 * classes, passes or rounds. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/scope.h"
#include "fs/plan/epoch_order.h"
#include "support/order_each.h"
#include "support/test_labels.h"

#define LIMIT  4.0
#define PLACES 30
#define CELLS  1024

/* The t-th key of a walk is (seed + t * seed_step, epoch + t * epoch_step). */
static const struct walk {
    const char *name;
    uint64_t seed, seed_step, epoch, epoch_step;
} walks[] = {
    {"seeds", 0, 1, 3, 0},
    {"epochs", 7, 0, 0, 1},
    {"high-bits", 1, UINT64_C(1) << 40, UINT64_C(1) << 63, 0},
};

static uint64_t keys = 20000;
static unsigned tests, failures, planted_failures;
static struct test_labels labels;
static double share[PLACES]; /* of the draws, of each place; set by use() */

/* Counts of one test, and what is expected of them. */
struct cells {
    size_t n;
    uint64_t count[CELLS], planted[CELLS], total;
    double part[CELLS]; /* probabilities */
};

static void tally(struct cells *c, uint64_t t, size_t cell)
{
    c->count[cell]++;
    c->planted[t % 50 == 0 ? 0 : cell]++;
}

/* The z of these counts, whose distribution is nearly a standard normal one. */
static double deviation(const struct cells *c, const uint64_t *count, double *ret_chi2,
                        double *ret_df)
{
    double chi2 = 0, df = -1, v;

    for (size_t i = 0; i < c->n; i++) {
        double expected = (double)c->total * c->part[i];
        double d = (double)count[i] - expected;

        if (c->part[i] > 0) {
            chi2 += d * d / expected;
            df++;
        } else if (count[i]) {
            chi2 = INFINITY;
        }
    }
    *ret_chi2 = chi2;
    *ret_df = df;
    v = 2 / (9 * df);
    return (cbrt(chi2 / df) - (1 - v)) / sqrt(v);
}

static void verdict(const struct walk *w, const char *name, const struct cells *c)
{
    double chi2, df, z;
    bool bad;

    planted_failures += !(fabs(deviation(c, c->planted, &chi2, &df)) < LIMIT);
    z = deviation(c, c->count, &chi2, &df);
    bad = !(fabs(z) < LIMIT);
    failures += bad;
    tests++;
    printf("%-10s %-34s %12.1f %6.0f %6.2f%s\n", w->name, name, chi2, df, z, bad ? "  FAIL" : "");
}

/* What one key shows at a position. */
static uint64_t shown(const struct order_spec *spec, const struct epoch_order *e, uint64_t position)
{
    spec->ops->at(spec, e, 1, &position);
    return position;
}

static void begin(struct order_spec *spec, const struct walk *w, uint64_t t, uint64_t later,
                  struct epoch_order *ret)
{
    spec->seed = w->seed + t * w->seed_step;
    spec->ops->begin(spec, w->epoch + t * w->epoch_step + later, ret);
}

/* ---- positions ---- */

static void test_position(struct order_spec *spec, const struct walk *w, const char *name,
                          uint64_t position)
{
    static struct cells c;
    struct epoch_order e;
    char text[64];

    c = (struct cells){.n = PLACES, .total = keys};
    memcpy(c.part, share, sizeof(share));
    for (uint64_t t = 0; t < keys; t++) {
        begin(spec, w, t, 0, &e);
        tally(&c, t, shown(spec, &e, position));
    }
    snprintf(text, sizeof(text), "%s/position %u", name, (unsigned)position);
    verdict(w, text, &c);
}

/* The places at one position of an epoch and of the next. */
static void test_epochs(struct order_spec *spec, const struct walk *w, const char *name)
{
    static struct cells c;
    struct epoch_order a, b;
    char text[64];

    c = (struct cells){.n = PLACES * PLACES, .total = 10 * keys};
    for (size_t i = 0; i < c.n; i++)
        c.part[i] = share[i / PLACES] * share[i % PLACES];
    for (uint64_t t = 0; t < 10 * keys; t++) {
        begin(spec, w, 2 * t, 0, &a);
        begin(spec, w, 2 * t, 1, &b);
        tally(&c, t, shown(spec, &a, 1) * PLACES + shown(spec, &b, 1));
    }
    snprintf(text, sizeof(text), "%s/two epochs", name);
    verdict(w, text, &c);
}

/* ---- draws ---- */

static void test_offset(struct order_spec *spec, const struct walk *w, const char *name,
                        double line)
{
    static struct cells c;
    struct epoch_order e;
    char text[64];

    /* A short line has few offsets. */
    c = (struct cells){.n = line < 100 ? (size_t)line : 100, .total = keys};
    for (size_t i = 0; i < c.n; i++)
        c.part[i] = 1 / (double)c.n;
    for (uint64_t t = 0; t < keys; t++) {
        size_t cell;

        begin(spec, w, t, 0, &e);
        cell = line < 100 ? e.offset : (size_t)((double)e.offset / line * 100);
        tally(&c, t, cell);
    }
    snprintf(text, sizeof(text), "%s/offset", name);
    verdict(w, text, &c);
}

static void use_uniform(struct order_spec *spec)
{
    (void)spec;
    for (size_t i = 0; i < PLACES; i++)
        share[i] = 1.0 / PLACES;
}

static void use_balanced(struct order_spec *spec)
{
    spec->classes = &labels.classes;
    for (uint64_t i = 0, class, member; i < PLACES; i++) {
        labels.classes.ops->find(&labels.classes, i, &class, &member);
        share[i] = 1 / (double)(labels.classes.n * labels.count[class]);
    }
}

static void use_weights(struct order_spec *spec)
{
    spec->weights = &labels.weights;
    for (size_t i = 0; i < PLACES; i++)
        share[i] = (double)(labels.sum[i + 1] - labels.sum[i]) / (double)labels.weights.total;
}

static void test_draws(const struct walk *w)
{
    static const struct {
        const char *name;
        void (*use)(struct order_spec *spec);
    } hows[] = {{"uniform", use_uniform}, {"balanced", use_balanced}, {"weights", use_weights}};
    static const uint64_t draws[] = {7, PLACES, 101};
    char name[32];

    for (size_t how = 0; how < ARRAY_LEN(hows); how++) {
        double line = how == 0 ? PLACES : how == 1 ? 3 * 0x1p32 : (double)labels.weights.total;
        struct order_spec spec = {.ops = &order_draw, .places = PLACES, .seeded = true};

        hows[how].use(&spec);
        for (size_t n = 0; n < ARRAY_LEN(draws); n++) {
            spec.length = draws[n];
            snprintf(name, sizeof(name), "%s %u", hows[how].name, (unsigned)draws[n]);
            test_position(&spec, w, name, 0);
            test_position(&spec, w, name, draws[n] / 3);
            test_position(&spec, w, name, draws[n] - 2);
            test_position(&spec, w, name, draws[n] - 1);
        }
        test_offset(&spec, w, hows[how].name, line);
        test_epochs(&spec, w, hows[how].name);
    }
}

/* ---- classes ---- */

static void test_classes(const struct walk *w)
{
    static const uint64_t shapes[][2] = {{1, 1}, {2, 3}, {3, 5}, {1, 16}, {3, 1}};

    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        struct order_spec spec = {.ops = &order_classes,
                                  .places = PLACES,
                                  .seeded = true,
                                  .batch_classes = shapes[i][0],
                                  .of_class = shapes[i][1]};
        char name[32];

        use_balanced(&spec);
        spec.length = order_classes_length(&spec);
        snprintf(name, sizeof(name), "classes %ux%u", (unsigned)shapes[i][0],
                 (unsigned)shapes[i][1]);
        for (uint64_t p = 0; p < 4; p++)
            test_position(&spec, w, name, (spec.length - 1) * p / 3);
        test_epochs(&spec, w, name);
    }
}

/* ---- families ---- */

/* The number of the permutation of n that x is, among all n!. */
static size_t rank_of(const uint64_t *x, size_t n)
{
    size_t rank = 0;

    for (size_t i = 0; i < n; i++) {
        size_t less = 0;

        for (size_t k = i + 1; k < n; k++)
            less += x[k] < x[i];
        rank = rank * (n - i) + less;
    }
    return rank;
}

static void test_permutations(const struct walk *w, size_t n)
{
    static struct cells c;
    char name[32];

    c = (struct cells){.n = 1, .total = 4 * keys};
    for (size_t i = 2; i <= n; i++)
        c.n *= i;
    for (size_t i = 0; i < c.n; i++)
        c.part[i] = 1 / (double)c.n;
    for (uint64_t t = 0; t < 4 * keys; t++) {
        struct permutation_member m = family_member(t % 3, t % 5, n);
        struct permutation_family f;
        uint64_t x[8] = {0, 1, 2, 3, 4, 5, 6, 7};

        family_init(&f, w->seed + t * w->seed_step, w->epoch + t * w->epoch_step, LANE_CLASSES);
        for (size_t i = 0; i < n; i++)
            x[i] = family_send_one(&f, m, x[i]);
        tally(&c, t, rank_of(x, n));
    }
    snprintf(name, sizeof(name), "family/permutations of %u", (unsigned)n);
    verdict(w, name, &c);
}

/* Two members of one family, which share its constants: where one number goes in both. */
static void test_members(const struct walk *w, const char *name, struct permutation_member a,
                         struct permutation_member b)
{
    static struct cells c;

    c = (struct cells){.n = a.n * b.n, .total = 4 * keys};
    for (size_t i = 0; i < c.n; i++)
        c.part[i] = 1 / (double)c.n;
    for (uint64_t t = 0; t < 4 * keys; t++) {
        struct permutation_family f;
        uint64_t x, y;

        family_init(&f, w->seed + t * w->seed_step, w->epoch + t * w->epoch_step, LANE_CLASSES);
        x = family_send_one(&f, a, 2);
        y = family_send_one(&f, b, 2);
        tally(&c, t, x * b.n + y);
    }
    verdict(w, name, &c);
}

static void test_families(const struct walk *w)
{
    for (size_t n = 2; n <= 5; n++)
        test_permutations(w, n);
    test_members(w, "family/two classes of 16", family_member(0, 0, 16), family_member(1, 0, 16));
    test_members(w, "family/two classes of 5", family_member(3, 7, 5), family_member(4, 7, 5));
    test_members(w, "family/two passes of 16", family_member(2, 0, 16), family_member(2, 1, 16));
    test_members(w, "family/two passes of 31", family_member(2, 8, 31), family_member(2, 9, 31));
    test_members(w, "family/two rounds", family_member(UINT64_MAX, 0, 10),
                 family_member(UINT64_MAX, 1, 10));
    test_members(w, "family/rounds and classes", family_member(UINT64_MAX, 0, 10),
                 family_member(0, 0, 12));
}

int main(int argc, char **argv)
{
    uint64_t label[PLACES], weight[PLACES];

    keys *= argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    for (uint64_t i = 0; i < PLACES; i++) {
        label[i] = i < 16 ? 1 : i < 25 ? 4 : 2; /* classes of 16, 5 and 9 */
        weight[i] = i * 5 % 7;                  /* some are 0 */
    }
    test_labels_make(&labels, PLACES, label, weight);
    for (size_t i = 0; i < ARRAY_LEN(walks); i++) {
        test_draws(&walks[i]);
        test_classes(&walks[i]);
        test_families(&walks[i]);
    }
    printf("%u tests, %u fail, %u with a planted bias\n", tests, failures, planted_failures);
    return failures != 0 || planted_failures * 10 < tests * 9; /* the tests see a bias of 2 % */
}
