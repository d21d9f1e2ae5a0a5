/* The schedule against a literal model: the list of an epoch is written out, dealt to the ranks
 * and cut into batches, element by element, as docs/order.md says in words. */
#include "fs/plan/schedule.h"
#include "support/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/scope.h"

#define N_MAX     11
#define LIST_SIZE 1024

struct model {
    uint64_t batches;
    uint64_t count[LIST_SIZE];  /* of each batch */
    uint64_t sample[LIST_SIZE]; /* batch after batch */
};

/* The share, counted out one sample at a time. */
static void model_share(uint64_t part, uint64_t parts, uint64_t n, uint64_t *ret_start,
                        uint64_t *ret_length)
{
    uint64_t length[64] = {0};

    for (uint64_t i = 0; i < n; i++)
        length[i % parts]++;
    *ret_start = 0;
    for (uint64_t p = 0; p < part; p++)
        *ret_start += length[p];
    *ret_length = length[part];
}

/* The list, written out: take, split, part. Returns its length. */
static uint64_t model_list(const struct plan *p, uint64_t n, uint64_t *ret)
{
    uint64_t from = 0, to = n, sum = 0, below = 0, start, length;
    struct permutation fixed;

    if (p->takes) {
        from = p->take_from.is_percent ? n * p->take_from.n / 100 : p->take_from.n;
        to = p->take_to.is_percent ? n * p->take_to.n / 100 : p->take_to.n;
        from = min_u64(from, n);
        to = max_u64(min_u64(to, n), from);
    }
    for (uint64_t i = from; i < to; i++)
        ret[i - from] = i;
    n = to - from;
    if (p->splits) {
        uint64_t shuffled[LIST_SIZE], count = 0;

        permutation_init(&fixed, 0, 0, ORDER_LANES, n);
        for (unsigned i = 0; i < p->splits; i++) {
            below += i < p->split ? p->weight[i] : 0;
            sum += p->weight[i];
        }
        for (uint64_t x = n * below / sum; x < n * (below + p->weight[p->split]) / sum; x++) {
            shuffled[count] = x;
            permutation_send(&fixed, 1, &shuffled[count]);
            shuffled[count++] += from;
        }
        memcpy(ret, shuffled, count * sizeof(*ret));
        n = count;
    }
    model_share(p->part, p->parts, n, &start, &length);
    memmove(ret, ret + start, length * sizeof(*ret));
    return length;
}

static void model_make(const struct plan *p, uint64_t samples, uint64_t epoch, struct model *ret)
{
    uint64_t whole[LIST_SIZE], list[LIST_SIZE], rank[LIST_SIZE], len = 0, at = 0, each;
    uint64_t n = model_list(p, samples, whole);
    struct order order;

    order_init(&order, p->seed, epoch, n, p->window);
    for (uint64_t i = 0; i < n; i++)
        list[i] = whole[p->seeded ? order_sample(&order, i) : i];
    n = p->limits ? min_u64(n, p->limit) : n;
    /* Deal the list, in rounds of one sample to every rank. */
    for (uint64_t round = 0; round * p->ranks < n; round++) {
        uint64_t place = round * p->ranks + p->rank;
        bool all = (round + 1) * p->ranks <= n;

        if (p->tail == TAIL_KEEP ? place < n : p->tail == TAIL_DROP ? all : true)
            rank[len++] = list[place % n];
    }
    *ret = (struct model){0};
    if (!p->batch) {
        ret->batches = 1;
        ret->count[0] = len;
        memcpy(ret->sample, rank, len * sizeof(*rank));
        return;
    }
    while (at < len) {
        each = p->batch;
        if (len - at < each && p->tail == TAIL_DROP)
            break;
        if (len - at < each && p->tail == TAIL_KEEP)
            each = len - at;
        for (uint64_t i = 0; i < each; i++)
            ret->sample[at + i] =
                at + i < len ? rank[at + i] : list[((at + i) * p->ranks + p->rank) % n];
        ret->count[ret->batches++] = each;
        at += each;
    }
}

static void check_plan(const struct plan *p, uint64_t n, uint64_t epoch)
{
    uint64_t got[LIST_SIZE], at = 0;
    struct schedule s;
    struct epoch_order order;
    struct model m;

    model_make(p, n, epoch, &m);
    schedule_init(&s, p, n, NULL);
    schedule_order(&s, epoch, &order);
    if (s.batches != m.batches) {
        char name[PLAN_NAME_SIZE];

        plan_name(p, name);
        fail_msg("%s of %d: %d batches, want %d", name, (int)n, (int)s.batches, (int)m.batches);
    }
    for (uint64_t b = 0; b < m.batches; b++) {
        assert_int_equal(schedule_count(&s, b), m.count[b]);
        schedule_samples(&s, &order, b, 0, m.count[b], got);
        for (uint64_t i = 0; i < m.count[b]; i++) {
            uint64_t one = 0;

            assert_int_equal(got[i], m.sample[at + i]);
            schedule_samples(&s, &order, b, i, 1, &one);
            assert_int_equal(one, got[i]);
        }
        at += m.count[b];
    }
}

/* The way back: for every range of samples, and from every element on. */
static void check_find(const struct plan *p, uint64_t n, uint64_t epoch)
{
    uint64_t length, sample[LIST_SIZE];
    struct schedule s;
    struct epoch_order order;

    schedule_init(&s, p, n, NULL);
    schedule_order(&s, epoch, &order);
    length = s.positions;
    for (uint64_t e = 0; length && e < s.elements; e++)
        schedule_samples(&s, &order, 0, e, 1, &sample[e]);
    for (uint64_t first = 0; first < n; first++) {
        for (uint64_t last = first; last < n && last < first + 3; last++) {
            uint64_t from = (first * 5 + last) % (s.elements + 1), want = from, end = s.elements;

            while (want < s.elements && length && (sample[want] < first || sample[want] > last))
                want++;
            want = want < s.elements && length ? want : SCHEDULE_NONE;
            assert_int_equal(schedule_find(&s, &order, first, last, from), want);
            while (end && length && (sample[end - 1] < first || sample[end - 1] > last))
                end--;
            want = end && length ? end - 1 : SCHEDULE_NONE;
            if (s.wraps) /* then it may be later */
                assert_true(schedule_last(&s, &order, first, last) + 1 >= want + 1);
            else
                assert_int_equal(schedule_last(&s, &order, first, last), want);
        }
    }
}

static void check_orders(struct plan *p, uint64_t n)
{
    for (uint64_t batch = 0; batch <= n + 2; batch++) {
        p->batch = batch;
        for (p->tail = TAIL_KEEP; p->tail <= TAIL_WRAP; p->tail++) {
            check_plan(p, n, 3);
            check_find(p, n, 3);
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

static void test_schedule__stored_order__as_the_model(void **state)
{
    (void)state;
    check_all(false, 0);
}

static void test_schedule__full_shuffle__as_the_model(void **state)
{
    (void)state;
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

static void test_schedule__window_shuffle__as_the_model(void **state)
{
    (void)state;
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

static void test_schedule__selections__as_the_model(void **state)
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

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        check_selection(words[i], 1);
        check_selection(words[i], 10);
        check_selection(words[i], 23);
    }
}

/* The shares of a split are disjoint, and together all samples. */
static void test_schedule__shares_of_a_split__each_sample_once(void **state)
{
    static const char *const shares[] = {"split=0@80:10:10", "split=1@80:10:10",
                                         "split=2@80:10:10"};
    uint8_t seen[1000] = {0};
    uint64_t sample[1000];

    (void)state;
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
        schedule_samples(&s, &order, 0, 0, s.elements, sample);
        for (uint64_t k = 0; k < s.elements; k++)
            assert_int_equal(seen[sample[k]]++, 0);
    }
    for (size_t k = 0; k < 1000; k++)
        assert_int_equal(seen[k], 1);
}

static void test_schedule_check__words_that_do_not_hold__einval(void **state)
{
    static const struct {
        const char *name;
        uint64_t samples;
        const char *says; /* NULL: they hold */
    } plans[] = {
        {"batch=1,split=0@0:1", 10, "found none in share 0 of 10 samples"},
        {"batch=1,split=1@99:1", 10, NULL},
        {"batch=1,split=0@1:99", 10, "found none in share 0"},
        {"batch=1,split=0@1:1", 0, "found none in share 0 of 0 samples"},
        {"batch=1,limit=11", 10, "want at most 10, the samples of the list, found 11"},
        {"batch=1,limit=10", 10, NULL},
        {"batch=1,take=0:4,limit=5", 10, "want at most 4"},
        {"batch=1,part=0of2,limit=6", 10, "want at most 5"},
        {"batch=1,take=5:5", 10, NULL},
        {"batch=1,limit=0", 0, NULL},
    };

    (void)state;
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
static void test_schedule__part_by_format__used_alone(void **state)
{
    const struct plan_range part = {.start = 3, .length = 4};
    struct plan p;
    struct schedule s;

    (void)state;
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
static void test_schedule__largest__samples_in_range(void **state)
{
    static const uint64_t numbers[] = {1, 2, 1000003, ORDER_MAX - 1, ORDER_MAX};
    static const uint64_t lengths[] = {1, 3, 4294967295, ORDER_MAX - 1, ORDER_MAX};

    (void)state;
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
            uint64_t count = schedule_count(&s, b);

            assert_true(count > 0 && count <= p.batch);
            for (uint64_t first = count - 1;; first = 0) {
                __extension__ unsigned __int128 place =
                    ((unsigned __int128)b * p.batch + first) * p.ranks + p.rank;

                schedule_samples(&s, NULL, b, first, 1, sample);
                assert_int_equal(sample[0], (uint64_t)(place % n));
                if (!first)
                    break;
            }
            if (!b)
                break;
        }
    }
}

static void test_plan_share__all_shares__cut_without_gaps(void **state)
{
    static const uint64_t n[] = {0, 1, 7, 60000, UINT64_C(1) << 48};
    static const uint64_t parts[] = {1, 2, 3, 7, 64, 1001};

    (void)state;
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

static void test_plan_share__more_parts_than_samples__empty_behind(void **state)
{
    uint64_t start, length;

    (void)state;
    plan_share(ORDER_MAX - 1, ORDER_MAX, 10, &start, &length);
    assert_int_equal(start, 10);
    assert_int_equal(length, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedule__stored_order__as_the_model),
        cmocka_unit_test(test_schedule__full_shuffle__as_the_model),
        cmocka_unit_test(test_schedule__window_shuffle__as_the_model),
        cmocka_unit_test(test_schedule__largest__samples_in_range),
        cmocka_unit_test(test_schedule__selections__as_the_model),
        cmocka_unit_test(test_schedule__shares_of_a_split__each_sample_once),
        cmocka_unit_test(test_schedule_check__words_that_do_not_hold__einval),
        cmocka_unit_test(test_schedule__part_by_format__used_alone),
        cmocka_unit_test(test_plan_share__all_shares__cut_without_gaps),
        cmocka_unit_test(test_plan_share__more_parts_than_samples__empty_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
