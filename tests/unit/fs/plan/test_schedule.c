/* The schedule against a literal model: the list of an epoch is written out, dealt to the ranks
 * and cut into batches, element by element, as docs/order.md says in words. */
#include "fs/plan/schedule.h"
#include "support/unit.h"

#include <stdio.h>

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

static void model_make(const struct plan *p, uint64_t start, uint64_t n, const struct order *order,
                       struct model *ret)
{
    uint64_t list[LIST_SIZE], rank[LIST_SIZE], len = 0, at = 0, each;

    for (uint64_t i = 0; i < n; i++)
        list[i] = start + (order ? order_sample(order, i) : i);
    /* Deal the list, in rounds of one sample to every rank. */
    for (uint64_t round = 0; round * p->ranks < n; round++) {
        uint64_t place = round * p->ranks + p->rank;
        bool whole = (round + 1) * p->ranks <= n;

        if (p->tail == TAIL_KEEP ? place < n : p->tail == TAIL_DROP ? whole : true)
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
    uint64_t start, length, model_start, model_length, got[LIST_SIZE], at = 0;
    struct schedule s;
    struct order order;
    struct model m;

    plan_share(p->part, p->parts, n, &start, &length);
    model_share(p->part, p->parts, n, &model_start, &model_length);
    assert_int_equal(start, model_start);
    assert_int_equal(length, model_length);
    order_init(&order, p->seed, epoch, length, p->window);
    model_make(p, start, length, p->seeded ? &order : NULL, &m);
    schedule_init(&s, p, start, length);
    if (s.batches != m.batches) {
        char name[PLAN_NAME_SIZE];

        plan_name(p, name);
        fail_msg("%s of %d: %d batches, want %d", name, (int)n, (int)s.batches, (int)m.batches);
    }
    for (uint64_t b = 0; b < m.batches; b++) {
        assert_int_equal(schedule_count(&s, b), m.count[b]);
        schedule_samples(&s, p->seeded ? &order : NULL, b, 0, m.count[b], got);
        for (uint64_t i = 0; i < m.count[b]; i++) {
            uint64_t one = 0;

            assert_int_equal(got[i], m.sample[at + i]);
            schedule_samples(&s, p->seeded ? &order : NULL, b, i, 1, &one);
            assert_int_equal(one, got[i]);
        }
        at += m.count[b];
    }
}

/* The way back: for every range of samples, and from every element on. */
static void check_find(const struct plan *p, uint64_t n, uint64_t epoch)
{
    uint64_t start, length, sample[LIST_SIZE];
    struct schedule s;
    struct order order;

    plan_share(p->part, p->parts, n, &start, &length);
    schedule_init(&s, p, start, length);
    schedule_order(&s, epoch, &order);
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
        schedule_init(&s, &p, 0, n);
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
        cmocka_unit_test(test_plan_share__all_shares__cut_without_gaps),
        cmocka_unit_test(test_plan_share__more_parts_than_samples__empty_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
