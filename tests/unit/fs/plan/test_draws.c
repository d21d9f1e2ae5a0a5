/* Draws, classes and lists, in each combination with the other words, against models that write
 * them out. What the plans' words say of a dataset is checked too. */
#include "fs/plan/distinct.h"
#include "support/plan_model.h"
#include "support/random.h"
#include "support/test_labels.h"
#include "support/test_lists.h"
#include "support/unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/scope.h"

#define SAMPLES 23

/* Three classes of 14, 1 and 8 samples, in no order; weights with zeros, also at both ends. */
static const uint64_t label[SAMPLES] = {5, 2, 5, 2, 2, 5, 2, 2, 7, 2, 2, 5,
                                        2, 5, 2, 2, 5, 2, 2, 5, 2, 5, 2};
static const uint64_t weight[SAMPLES] = {0, 3, 1, 0, 0, 9, 1, 2, 1, 4, 0, 100,
                                         7, 1, 1, 0, 2, 5, 1, 1, 3, 8, 0};

/* Lists: in ascending order, with and without repeats; in no order; one sample again and again. */
static const uint32_t rising[] = {1, 2, 5, 5, 8, 11, 20, 21};
static const uint32_t any[] = {11, 3, 22, 11, 0, 5, 11, 7, 3, 8};
static const uint32_t same[] = {9, 9, 9};
static struct plan_list lists[3];

int unit_setup(void **state)
{
    (void)state;
    lists[0] = test_list(rising, ARRAY_LEN(rising));
    lists[1] = test_list(any, ARRAY_LEN(any));
    lists[2] = test_list(same, ARRAY_LEN(same));
    return 0;
}

int unit_teardown(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        list_release(&lists[i]);
    return 0;
}

static struct plan parse(const char *name)
{
    struct diag d = DIAG_INIT;
    struct plan p;

    if (plan_parse(name, strlen(name), ',', &p, &d) < 0)
        fail_msg("%s: %s", name, d.text);
    return p;
}

/* Does such a plan hold for the data? Combinations that do not are skipped. */
static bool holds(const struct plan *p, const struct model_data *data)
{
    struct plan_data of = {.samples = data->samples, .only = data->only};
    static struct test_labels labels;
    uint64_t l[SAMPLES], w[SAMPLES], sum = 0, sample;
    struct diag d = DIAG_INIT;
    struct schedule s;

    schedule_init_data(&s, p, &of);
    for (uint64_t i = 0; i < s.length; i++) {
        schedule_list(&s, i, 1, &sample);
        l[i] = label[sample];
        w[i] = weight[sample];
        sum += w[i];
    }
    test_labels_make(&labels, s.length, l, w);
    of.classes = &labels.classes;
    of.weights = sum ? &labels.weights : NULL;
    schedule_init_data(&s, p, &of);
    return schedule_check(&s, &d) == 0;
}

/* Check a plan with every tail, a few ranks, and in two epochs. Returns how many held. */
static unsigned check_words(const char *words, const struct model_data *data)
{
    unsigned held = 0;

    for (unsigned ranks = 1; ranks <= 3; ranks++) {
        for (unsigned tail = 0; tail < 3; tail++) {
            static const char *const tails[] = {"keep", "drop", "wrap"};
            char name[PLAN_NAME_SIZE];
            struct plan p;

            snprintf(name, sizeof(name), "%s,rank=%uof%u,tail=%s", words, ranks - 1, ranks,
                     tails[tail]);
            p = parse(name);
            if (!holds(&p, data))
                continue;
            model_check(&p, data, 0);
            model_check(&p, data, 3);
            held++;
        }
    }
    return held;
}

static const char *const selections[] = {
    "",           ",take=2:9",    ",take=20%:100%",
    ",part=1of2", ",split=0@2:1", ",take=1:100%,split=1@1:2,part=0of2",
    ",take=3:3",
};

/* Every order with every selection, from no list and from each of them. */
static void check_orders(const char *const *orders, size_t n, unsigned least)
{
    unsigned held = 0;

    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < ARRAY_LEN(selections); k++) {
            for (size_t l = 0; l <= ARRAY_LEN(lists); l++) {
                struct model_data data = {.samples = SAMPLES,
                                          .label = label,
                                          .weight = weight,
                                          .only = l ? &lists[l - 1] : NULL};
                char words[PLAN_NAME_SIZE];

                snprintf(words, sizeof(words), "%s%s%s", orders[i], selections[k],
                         l ? ",only=list" : "");
                held += check_words(words, &data);
            }
        }
    }
    assert_true(held >= least);
}

UNIT_TEST(test_only__every_combination__as_the_model)
{
    static const char *const orders[] = {
        "batch=4",
        "batch=all,seed=7",
        "batch=3,seed=7,shuffle=window:2",
        "batch=2,seed=1,limit=3",
    };

    check_orders(orders, ARRAY_LEN(orders), 800);
}

UNIT_TEST(test_draw__every_combination__as_the_model)
{
    static const char *const orders[] = {
        "batch=4,draw=7:uniform",
        "batch=5,draw=60:uniform,seed=7",
        "batch=all,draw=1:uniform,seed=3",
        "batch=4,draw=0:uniform",
        "batch=8,draw=23:uniform,seed=3,shuffle=window:4",
        "batch=4,draw=40:balanced",
        "batch=4,draw=41:balanced,seed=7",
        "batch=6,draw=5:balanced,seed=1",
        "batch=6,draw=50:balanced,seed=1,shuffle=window:5,limit=31",
        "batch=4,draw=30:weight",
        "batch=5,draw=64:weight,seed=9",
        "batch=5,draw=3:weight,seed=9",
        "batch=7,draw=33:weight,seed=9,shuffle=window:3,limit=20",
    };

    check_orders(orders, ARRAY_LEN(orders), 2500);
}

UNIT_TEST(test_classes__every_combination__as_the_model)
{
    static const char *const orders[] = {
        "batch=1,classes=1x1",         "batch=2,classes=2x1,seed=7",
        "batch=6,classes=3x2",         "batch=6,classes=3x2,seed=7",
        "batch=6,classes=2x3",         "batch=6,classes=2x3,seed=7",
        "batch=3,classes=1x3,seed=7",  "batch=20,classes=1x20,seed=5",
        "batch=4,classes=2x2,limit=9", "batch=4,classes=2x2,limit=9,seed=7",
    };

    check_orders(orders, ARRAY_LEN(orders), 900);
}

/* Each place is drawn floor or ceil of its share of the draws. */
UNIT_TEST(test_draw__each_place__floor_or_ceil_of_its_share)
{
    static const char *const hows[] = {"uniform", "balanced", "weight"};
    static struct test_labels l;

    test_labels_make(&l, SAMPLES, label, weight);
    for (uint64_t draws = 1; draws < 200; draws += 7) {
        for (size_t how = 0; how < 3; how++) {
            for (uint64_t epoch = 0; epoch < 20; epoch++) {
                unsigned count[SAMPLES] = {0};
                struct epoch_order order;
                char name[PLAN_NAME_SIZE];
                struct schedule s;
                struct plan p;

                snprintf(name, sizeof(name), "batch=all,draw=%u:%s,seed=11", (unsigned)draws,
                         hows[how]);
                p = parse(name);
                schedule_init_data(&s, &p,
                                   &(struct plan_data){.samples = SAMPLES,
                                                       .classes = &l.classes,
                                                       .weights = &l.weights});
                schedule_order(&s, epoch, &order);
                for (uint64_t i = 0, sample; i < draws; i++) {
                    schedule_elements(&s, &order, i, 1, &sample);
                    count[sample]++;
                }
                for (uint64_t i = 0; i < SAMPLES; i++) {
                    uint64_t class, member;
                    uint64_t part = how == 2 ? weight[i] : 1,
                             of = how == 2 ? l.weights.total : SAMPLES;

                    l.classes.ops->find(&l.classes, i, &class, &member);
                    of = how == 1 ? l.classes.n * l.count[class] : of;
                    assert_in_range(count[i], draws * part / of, ceil_div(draws * part, of));
                }
            }
        }
    }
}

/* With as many draws as places, a uniform draw is the shuffle. */
UNIT_TEST(test_draw__as_many_as_places__the_shuffle)
{
    struct plan drawn = parse("batch=all,seed=5,draw=1000:uniform"),
                plain = parse("batch=all,seed=5");
    uint64_t a[1000], b[1000];
    struct epoch_order order;
    struct schedule s;

    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        schedule_init(&s, &drawn, 1000, NULL);
        schedule_order(&s, epoch, &order);
        schedule_elements(&s, &order, 0, 1000, a);
        schedule_init(&s, &plain, 1000, NULL);
        schedule_order(&s, epoch, &order);
        schedule_elements(&s, &order, 0, 1000, b);
        assert_memory_equal(a, b, sizeof(a));
    }
}

/* More positions of one sample than are looked at one by one. */
UNIT_TEST(test_find__a_sample_with_very_many_positions__the_first)
{
    struct plan p = parse("batch=all,seed=5,draw=1000000:uniform");
    uint64_t state_of_random = RANDOM_SEED, sample[64];
    struct epoch_order order;
    struct schedule s;

    schedule_init(&s, &p, 7, NULL);
    schedule_order(&s, 1, &order);
    for (unsigned i = 0; i < 50; i++) {
        uint64_t from = random_below(&state_of_random, 1000000 - 64), want = from;
        uint64_t wanted = i % 7;

        schedule_elements(&s, &order, from, 64, sample);
        while (want < from + 64 && sample[want - from] != wanted)
            want++;
        if (want < from + 64)
            assert_int_equal(schedule_find(&s, &order, wanted, wanted, from), want);
    }
    assert_in_range(schedule_last(&s, &order, 3, 3), 999000, 999999);
}

/* The largest numbers: nothing overflows, and each way is the other's inverse. */
UNIT_TEST(test_draw__largest__both_ways)
{
    static const uint64_t places[] = {1, 2, 4294967295, ORDER_MAX - 1, ORDER_MAX};
    static const uint64_t draws[] = {1, 1000003, ORDER_MAX - 1, ORDER_MAX};

    for (size_t i = 0; i < ARRAY_LEN(places) * ARRAY_LEN(draws); i++) {
        uint64_t n = draws[i / ARRAY_LEN(places)], of = places[i % ARRAY_LEN(places)], sample;
        struct epoch_order order;
        char name[PLAN_NAME_SIZE];
        struct schedule s;
        struct plan p;

        snprintf(name, sizeof(name), "batch=1,seed=3,draw=%llu:uniform", (unsigned long long)n);
        p = parse(name);
        schedule_init(&s, &p, of, NULL);
        schedule_order(&s, UINT64_MAX, &order);
        for (uint64_t k = 0; k < 20; k++) {
            uint64_t position = k * UINT64_C(0x9e3779b97f4a7c15) % n, found;

            schedule_elements(&s, &order, position, 1, &sample);
            assert_true(sample < of);
            if (n / of > 1000)
                continue;
            found = schedule_find(&s, &order, sample, sample, position);
            assert_int_equal(found, position);
        }
    }
}

/* As many different samples as plan_distinct() says, on average over epochs. */
UNIT_TEST(test_plan_distinct__epochs__as_counted)
{
    static const char *const names[] = {
        "batch=1,seed=7",
        "batch=1,seed=7,limit=9",
        "batch=1,seed=7,rank=1of3",
        "batch=1,seed=7,draw=10:uniform",
        "batch=1,seed=7,draw=70:uniform,rank=0of4",
        "batch=1,seed=7,draw=30:balanced",
        "batch=1,seed=7,draw=50:weight,rank=1of2",
        "batch=1,seed=7,split=0@1:1,draw=50:weight",
        "batch=6,seed=7,classes=3x2,rank=0of2",
        "batch=1,seed=7,only=list,rank=0of2",
        "batch=1,only=list,draw=30:uniform,seed=7",
        "batch=10,seed=7,rank=1of2,tail=wrap",
        "batch=100,seed=7,rank=1of2,tail=wrap",
        "batch=100,seed=7,rank=1of2,limit=20,tail=wrap",
        "batch=50,seed=7,limit=1,tail=wrap",
        "batch=6,seed=7,classes=3x2,rank=0of2,tail=wrap",
    };
    static struct test_labels l;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct plan p = parse(names[i]);
        struct plan_data data = {.samples = SAMPLES, .only = &lists[1]};
        uint64_t list_label[SAMPLES], list_weight[SAMPLES], sample, found = 0, epochs = 400;
        struct plan_distinct distinct;
        struct epoch_order order;
        struct schedule s;

        schedule_init_data(&s, &p, &data);
        for (uint64_t k = 0; k < s.length; k++) {
            schedule_list(&s, k, 1, &sample);
            list_label[k] = label[sample];
            list_weight[k] = weight[sample];
        }
        test_labels_make(&l, s.length, list_label, list_weight);
        data.classes = &l.classes;
        data.weights = &l.weights;
        schedule_init_data(&s, &p, &data);
        plan_distinct(&s, &distinct);
        for (uint64_t epoch = 0; epoch < epochs; epoch++) {
            bool seen[SAMPLES] = {false};

            schedule_order(&s, epoch, &order);
            for (uint64_t e = 0; e < s.elements; e++) {
                schedule_elements(&s, &order, e, 1, &sample);
                assert_in_range(sample, distinct.first, distinct.first + distinct.span - 1);
                found += !seen[sample];
                seen[sample] = true;
            }
        }
        if (fabs((double)found / (double)epochs / distinct.epoch - 1) > 0.1)
            fail_msg("%s: expected %g different samples, got %g", names[i],
                     (double)found / (double)epochs, distinct.epoch);
    }
}

UNIT_TEST(test_schedule_check__words_of_labels_and_lists__einval)
{
    static const struct {
        const char *name;
        const char *says; /* NULL: they hold */
    } plans[] = {
        {"batch=1,only=list", NULL},
        {"batch=1,only=list,limit=9", "expected at most 8, the samples of the list, got 9"},
        {"batch=1,draw=5:uniform,limit=6", "expected at most 5, the samples of the epoch, got 6"},
        {"batch=1,draw=5:uniform,take=4:4", "draw: expected a list that has samples, got none"},
        {"batch=1,draw=0:uniform,take=4:4", NULL},
        {"batch=8,classes=4x2", "expected at most 3 classes, those of the list, in a batch, got 4"},
        {"batch=6,classes=3x2", NULL},
        {"batch=1,draw=5:balanced", NULL},
        {"batch=1,draw=5:weight", NULL},
    };
    static struct test_labels l;

    test_labels_make(&l, SAMPLES, label, weight);
    for (size_t i = 0; i < ARRAY_LEN(plans); i++) {
        struct plan p = parse(plans[i].name);
        struct diag d = DIAG_INIT;
        struct schedule s;
        int r;

        schedule_init_data(&s, &p,
                           &(struct plan_data){.samples = SAMPLES,
                                               .only = &lists[0],
                                               .classes = &l.classes,
                                               .weights = &l.weights});
        r = schedule_check(&s, &d);
        assert_int_equal(r, plans[i].says ? -EINVAL : 0);
        if (r < 0)
            assert_diag_has(&d, plans[i].says);
    }
}

UNIT_TEST(test_schedule_check__nothing_given__einval)
{
    static const char *const plans[][2] = {
        {"batch=1,only=list", "only: expected the name of a list"},
        {"batch=1,draw=5:balanced", "got no 'label'"},
        {"batch=1,draw=5:weight", "got no 'weight'"},
        {"batch=6,classes=3x2", "got no 'label'"},
    };

    for (size_t i = 0; i < ARRAY_LEN(plans); i++) {
        struct plan p = parse(plans[i][0]);
        struct diag d = DIAG_INIT;
        struct schedule s;

        schedule_init(&s, &p, 10, NULL);
        assert_int_equal(schedule_check(&s, &d), -EINVAL);
        assert_diag_has(&d, plans[i][1]);
    }
}

/* What docs/spec/order.md's vectors are of: see data_of() in tests/order_reference.py. */
struct vector_data {
    struct test_labels labels;
    struct plan_list list;
    struct plan_data of;
};

static void make_list(uint64_t n, struct vector_data *ret)
{
    uint32_t some[512];

    for (uint32_t i = 0; i < n / 2; i++)
        some[i] = (uint32_t)((7 * i + 3) % n);
    ret->list = test_list(some, n / 2);
    ret->of.only = &ret->list;
}

static void make_data(uint64_t n, const struct plan *p, struct vector_data *ret)
{
    uint64_t l[TEST_PLACES_MOST], w[TEST_PLACES_MOST], sample;
    struct schedule s;

    ret->of = (struct plan_data){.samples = n};
    ret->list = (struct plan_list){0};
    if (n >= TEST_PLACES_MOST)
        return;
    make_list(n, ret);
    schedule_init_data(&s, p, &ret->of);
    for (uint64_t i = 0; i < s.length; i++) {
        schedule_list(&s, i, 1, &sample);
        l[i] = sample * sample % 7;
        w[i] = sample % 5 << 40; /* the rule of the page gives another power of two */
    }
    test_labels_make(&ret->labels, s.length, l, w);
    ret->of.classes = &ret->labels.classes;
    ret->of.weights = &ret->labels.weights;
}

/* A line `plan N name epoch batch: samples`. */
static void check_vector(char *line)
{
    static struct vector_data data;
    unsigned long long n, epoch, number;
    char name[PLAN_NAME_SIZE], *at = strchr(line, ':');
    struct epoch_order order;
    uint64_t got[16], count;
    struct schedule_batch batch;
    struct schedule s;
    struct plan p;

    at = strstr(line, ": ");
    assert_non_null(at);
    assert_int_equal(sscanf(line, "plan %llu %255s %llu %llu", &n, name, &epoch, &number), 4);
    p = parse(name);
    make_data(n, &p, &data);
    schedule_init_data(&s, &p, &data.of);
    schedule_order(&s, epoch, &order);
    assert_int_equal(schedule_batch_init(&s, epoch, number, &batch), 0);
    count = batch.count;
    assert_in_range(count, 1, ARRAY_LEN(got));
    schedule_samples(&s, &order, &batch, 0, count, got);
    at++;
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(got[i], strtoull(at, &at, 10));
        if (s.order.length < 4000)
            assert_true(schedule_find(&s, &order, got[i], got[i], 0) <= number * s.batch + i);
    }
    assert_string_equal(at, "\n");
    list_release(&data.list);
}

UNIT_TEST(test_vectors__plans__as_the_reference)
{
    FILE *f = fopen(VECTORS, "r");
    size_t lines = 0;
    char line[1024];

    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        if (!strncmp(line, "plan ", 5)) {
            check_vector(line);
            lines++;
        }
    fclose(f);
    assert_true(lines > 400);
}
