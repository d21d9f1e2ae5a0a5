/* The schedule against a literal model: the list of an epoch is written out, dealt to the ranks
 * and cut into batches, element by element, as docs/spec/order.md says in words. */
#include "fs/plan/schedule.h"
#include "support/plan_model.h"
#include "support/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/scope.h"

#define N_MAX 11

static void check_orders(struct plan *p, uint64_t n)
{
    for (uint64_t batch = 0; batch <= n + 2; batch++) {
        p->batch = batch;
        for (p->tail = TAIL_KEEP; p->tail <= TAIL_WRAP; p->tail++) {
            model_check(p, &(struct model_data){.samples = n}, 3);
        }
    }
}

static void check_all(bool seeded, uint64_t window)
{
    for (uint64_t n = 0; n <= N_MAX; n++) {
        for (uint64_t parts = 1; parts <= 4; parts++) {
            for (uint64_t ranks = 1; ranks <= n + 2; ranks++) {
                for (uint64_t k = 0; k < parts * ranks; k++) {
                    struct plan p = {.part = k % parts,
                                     .parts = parts,
                                     .rank = k / parts,
                                     .ranks = ranks,
                                     .seeded = seeded,
                                     .seed = 7,
                                     .window = window};

                    check_orders(&p, n);
                }
            }
        }
    }
}

UNIT_TEST(test_schedule__stored_order__as_the_model)
{
    check_all(false, 0);
}

UNIT_TEST(test_schedule__full_shuffle__as_the_model)
{
    for (uint64_t n = 0; n <= N_MAX; n++) {
        for (uint64_t ranks = 1; ranks <= 5; ranks++) {
            for (uint64_t rank = 0; rank < ranks; rank++) {
                struct plan p = {
                    .parts = 1, .rank = rank, .ranks = ranks, .seeded = true, .seed = 7};

                check_orders(&p, n);
                p.part = 1;
                p.parts = 3;
                check_orders(&p, n);
            }
        }
    }
}

UNIT_TEST(test_schedule__window_shuffle__as_the_model)
{
    for (uint64_t window = 1; window <= 4; window++) {
        for (uint64_t ranks = 1; ranks <= 3; ranks++) {
            struct plan p = {.parts = 2,
                             .part = 1,
                             .rank = ranks - 1,
                             .ranks = ranks,
                             .seeded = true,
                             .seed = 9,
                             .window = window};

            check_orders(&p, 9);
            check_orders(&p, 20);
        }
    }
}

/* Parse a selection and apply it in each kind of order. */
static void check_selection(const char *words, uint64_t n)
{
    static const char *const orders[] = {"", ",seed=7", ",seed=7,shuffle=window:3"};
    char name[PLAN_NAME_SIZE];

    for (size_t i = 0; i < 3; i++) {
        for (unsigned ranks = 1; ranks <= 3; ranks++) {
            struct diag d = DIAG_INIT;
            struct plan p;

            snprintf(name, sizeof(name), "batch=1,%s,rank=%uof%u%s", words, ranks - 1, ranks,
                     orders[i]);
            if (plan_parse(name, strlen(name), ',', &p, &d) < 0)
                fail_msg("%s: %s", name, d.text);
            check_orders(&p, n);
        }
    }
}

UNIT_TEST(test_schedule__selections__as_the_model)
{
    static const char *const words[] = {
        "take=0:5",
        "take=3:3",
        "take=2:100",
        "take=90:100",
        "take=0:80%",
        "take=25%:100%",
        "take=3:60%",
        "split=0@80:10:10",
        "split=1@80:10:10",
        "split=2@1:1:1",
        "split=1@0:5",
        "take=1:9,split=1@2:1,part=1of2",
        "split=0@1:1,part=2of3,limit=2",
        "part=1of2,limit=3",
        "limit=0",
        "limit=1",
        "limit=7",
        "limit=1000",
        "take=10%:90%,split=0@3:2,limit=4",
    };

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        check_selection(words[i], 1);
        check_selection(words[i], 10);
        check_selection(words[i], 23);
    }
}

/* The shares of a split are disjoint, and together all samples. */
UNIT_TEST(test_schedule__shares_of_a_split__each_sample_once)
{
    static const char *const shares[] = {"split=0@80:10:10", "split=1@80:10:10",
                                         "split=2@80:10:10"};
    uint8_t seen[1000] = {0};
    uint64_t sample[1000];

    for (size_t i = 0; i < ARRAY_LEN(shares); i++) {
        char name[PLAN_NAME_SIZE];
        struct plan p;
        struct schedule s;
        struct epoch_order order;

        snprintf(name, sizeof(name), "batch=all,%s,seed=%zu", shares[i], i);
        assert_int_equal(plan_parse(name, strlen(name), ',', &p, NULL), 0);
        schedule_init(&s, &p, 1000, NULL);
        assert_int_equal(s.elements, i ? 100 : 800);
        schedule_order(&s, i, &order);
        schedule_elements(&s, &order, 0, s.elements, sample);
        for (uint64_t k = 0; k < s.elements; k++)
            assert_int_equal(seen[sample[k]]++, 0);
    }
    for (size_t k = 0; k < 1000; k++)
        assert_int_equal(seen[k], 1);
}

UNIT_TEST(test_schedule_check__words_that_do_not_hold__einval)
{
    static const struct {
        const char *name;
        uint64_t samples;
        const char *says; /* NULL: they hold */
    } plans[] = {
        {"batch=1,split=0@0:1", 10, "got none in share 0 of 10 samples"},
        {"batch=1,split=1@99:1", 10, NULL},
        {"batch=1,split=0@1:99", 10, "got none in share 0"},
        {"batch=1,split=0@1:1", 0, "got none in share 0 of 0 samples"},
        {"batch=1,limit=11", 10, "expected at most 10, the samples of the list, got 11"},
        {"batch=1,limit=10", 10, NULL},
        {"batch=1,take=0:4,limit=5", 10, "expected at most 4"},
        {"batch=1,part=0of2,limit=6", 10, "expected at most 5"},
        {"batch=1,take=5:5", 10, NULL},
        {"batch=1,limit=0", 0, NULL},
    };

    for (size_t i = 0; i < ARRAY_LEN(plans); i++) {
        struct diag d = DIAG_INIT;
        struct plan p;
        struct schedule s;
        int r;

        assert_int_equal(plan_parse(plans[i].name, strlen(plans[i].name), ',', &p, NULL), 0);
        schedule_init(&s, &p, plans[i].samples, NULL);
        r = schedule_check(&s, &d);
        assert_int_equal(r, plans[i].says ? -EINVAL : 0);
        if (r < 0)
            assert_diag_has(&d, plans[i].says);
    }
}

/* The format's own share comes before nothing else. */
UNIT_TEST(test_schedule__part_by_format__used_alone)
{
    const struct plan_range part = {.start = 3, .length = 4};
    struct plan p;
    struct schedule s;

    assert_int_equal(plan_parse("batch=all,part=1of2", 19, ',', &p, NULL), 0);
    schedule_init(&s, &p, 10, &part);
    assert_int_equal(s.taken.start, 3);
    assert_int_equal(s.elements, 4);
    assert_int_equal(plan_parse("batch=all,take=0:6,part=1of2", 28, ',', &p, NULL), 0);
    schedule_init(&s, &p, 10, &part);
    assert_int_equal(s.taken.start, 3);
    assert_int_equal(s.elements, 3);
}

/* Numbers at the limit, where products do not fit in 64 bits. */
UNIT_TEST(test_schedule__largest__samples_in_range)
{
    static const uint64_t numbers[] = {1, 2, 1000003, ORDER_MAX - 1, ORDER_MAX};
    static const uint64_t lengths[] = {1, 3, 4294967295, ORDER_MAX - 1, ORDER_MAX};

    for (size_t i = 0; i < 5 * 5 * 5 * 3; i++) {
        struct plan p = {.parts = 1,
                         .batch = numbers[i % 5],
                         .ranks = numbers[i / 5 % 5],
                         .tail = (enum plan_tail)(i / 125)};
        uint64_t n = lengths[i / 25 % 5], sample[3];
        struct schedule s;

        p.rank = p.ranks - 1;
        schedule_init(&s, &p, n, NULL);
        if (!s.batches)
            continue;
        for (uint64_t b = s.batches - 1;; b = 0) {
            struct schedule_batch batch;

            assert_int_equal(schedule_batch_init(&s, 0, b, &batch), 0);
            assert_true(batch.count > 0 && batch.count <= p.batch);
            for (uint64_t first = batch.count - 1;; first = 0) {
                __extension__ unsigned __int128 place =
                    ((unsigned __int128)b * p.batch + first) * p.ranks + p.rank;

                schedule_samples(&s, NULL, &batch, first, 1, sample);
                assert_int_equal(sample[0], (uint64_t)(place % n));
                if (!first)
                    break;
            }
            if (!b)
                break;
        }
    }
}

UNIT_TEST(test_plan_share__all_shares__cut_without_gaps)
{
    static const uint64_t n[] = {0, 1, 7, 60000, UINT64_C(1) << 48};
    static const uint64_t parts[] = {1, 2, 3, 7, 64, 1001};

    for (size_t i = 0; i < 5 * 6; i++) {
        uint64_t next = 0, count = parts[i % 6], all = n[i / 6];

        for (uint64_t p = 0; p < count; p++) {
            uint64_t start, length;

            plan_share(p, count, all, &start, &length);
            assert_int_equal(start, next);
            assert_int_equal(length, all / count + (p < all % count));
            next += length;
        }
        assert_int_equal(next, all);
    }
}

UNIT_TEST(test_plan_share__more_parts_than_samples__empty_behind)
{
    uint64_t start, length;

    plan_share(ORDER_MAX - 1, ORDER_MAX, 10, &start, &length);
    assert_int_equal(start, 10);
    assert_int_equal(length, 0);
}
