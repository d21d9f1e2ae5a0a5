/* Lists of samples from text, and their lookup by samples. */
#include "fs/plan/list_text.h"
#include "support/random.h"
#include "support/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/scope.h"
#include "base/text.h"

/* The key of sample i is "k" and i. */
static bool find(const void *ctx, const char *key, size_t len, uint64_t *ret)
{
    const struct list_samples *samples = ctx;

    *ret = 0;
    for (size_t i = 1; i < len && key[i] >= '0' && key[i] <= '9'; i++)
        *ret = *ret * 10 + (uint64_t)(key[i] - '0');
    return len > 1 && key[0] == 'k' && *ret < samples->samples;
}

static int parse(const char *text, uint64_t n, struct plan_list *ret, struct diag *d)
{
    struct list_samples samples = {.samples = n, .find = find};

    samples.ctx = &samples;
    return list_parse("list=a=file", text, strlen(text), &samples, true, ret, d);
}

UNIT_TEST(test_list_parse__keys_and_numbers__in_their_order)
{
    static const uint32_t want[] = {3, 9, 0, 3};
    struct diag d = DIAG_INIT;
    struct plan_list list;

    assert_int_equal(parse("k3\n\n#9\r\n#0\r\n\r\nk3", 10, &list, &d), 0);
    assert_int_equal(list.n, 4);
    assert_memory_equal(list.sample, want, sizeof(want));
    assert_non_null(list.entry);
    list_release(&list);
    assert_int_equal(parse("\xef\xbb\xbfk3\n#9\n", 10, &list, &d), 0); /* a byte order mark */
    assert_memory_equal(list.sample, want, 8);
    list_release(&list);
    assert_int_equal(parse("k3\nk3\n#5\n", 10, &list, &d), 0);
    assert_null(list.entry);
    list_release(&list);
}

UNIT_TEST(test_list_parse__bad__says_which_lines)
{
    static const struct {
        const char *text, *says;
    } lists[] = {
        {"", "list=a=file: expected a key or #number a line, got no line"},
        {"\n\r\n", "got no line"},
        {"k1\nk10\n", "line 2: no sample has the key 'k10'"},
        {"#10", "line 1: expected a number below 10, got '#10'"},
        {"k1\n\xef\xbb\xbf#1", "line 2: no sample has the key '\xef\xbb\xbf#1'"},
        {"#99999999999999999999", "line 1: no sample has the key '#99999999999999999999'"},
        {"\n#1\n#\na\tb\x7f\nc\nd\ne\n",
         "line 3: no sample has the key '#'; line 4: no sample has the key 'a?b?'; line 5: no "
         "sample has the key 'c'; and 2 more"},
        {"0123456789012345678901234567890123456789x",
         "'0123456789012345678901234567890123456789...'"},
    };

    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        struct diag d = DIAG_INIT;
        struct plan_list list;

        assert_int_equal(parse(lists[i].text, 10, &list, &d), -EINVAL);
        assert_diag_has(&d, lists[i].says);
    }
}

UNIT_TEST(test_list_parse__too_many_samples__einval)
{
    struct diag d = DIAG_INIT;
    struct plan_list list;

    assert_int_equal(parse("k1", PLAN_LIST_MOST + 1, &list, &d), -EINVAL);
    assert_diag_has(&d, "a dataset of at most 2^32 samples");
}

UNIT_TEST(test_list_parse__no_way_back__samples_alone)
{
    struct list_samples samples = {.samples = 10, .find = find};
    static const uint32_t want[] = {9, 3, 9};
    struct diag d = DIAG_INIT;
    AUTO(list_release) struct plan_list list;

    samples.ctx = &samples;
    assert_int_equal(list_parse("list=a=file", "#9\nk3\n#9", 8, &samples, false, &list, &d), 0);
    assert_int_equal(list.n, 3);
    assert_memory_equal(list.sample, want, sizeof(want));
    assert_null(list.start);
    assert_null(list.entry);
}

#define ASKED 301

/* One by one, and many at once. */
static void check_entries(const struct plan_list *list, const struct plan_samples *wanted,
                          const struct plan_entries *want)
{
    for (size_t each = 1; each <= PLAN_LIST_AT_ONCE; each += PLAN_LIST_AT_ONCE - 1)
        for (size_t i = 0; i < ASKED; i += each) {
            size_t n = (size_t)min_u64(each, ASKED - i);
            struct plan_entries found[PLAN_LIST_AT_ONCE];

            plan_list_find(list, n, wanted + i, found);
            for (size_t k = 0; k < n; k++) {
                assert_int_equal(found[k].begin, want[i + k].begin);
                assert_int_equal(found[k].end, want[i + k].end);
            }
        }
}

/* Samples lead to their entries, whatever the buckets are. */
UNIT_TEST(test_plan_list_find__random_lists__as_one_by_one)
{
    static const uint64_t ranges[] = {1, 2, 50, 3000, 4000000, PLAN_LIST_MOST};
    uint64_t random = RANDOM_SEED;

    for (unsigned i = 0; i < 60; i++) {
        uint64_t range = ranges[i % ARRAY_LEN(ranges)], n = 1 + random_below(&random, 200);
        AUTO_TEXT struct text t = {0};
        struct diag d = DIAG_INIT;
        struct plan_samples wanted[ASKED];
        struct plan_entries want[ASKED] = {{0}};
        AUTO(list_release) struct plan_list list;

        for (uint64_t k = 0; k < n; k++)
            text_add(&t, "#%llu\n", (unsigned long long)random_below(&random, range));
        assert_int_equal(parse(t.data, range, &list, &d), 0);
        for (uint64_t e = 0; e < n; e++) { /* by sample, then by place */
            uint64_t place = plan_list_place(&list, e), next = place;

            assert_true(place < n);
            if (e + 1 < n)
                next = plan_list_place(&list, e + 1);
            assert_true(list.sample[place] < list.sample[next] ||
                        (list.sample[place] == list.sample[next] && place < next + (e + 1 == n)));
        }
        for (uint64_t k = 0; k < ASKED - 1; k++) {
            uint64_t sample = k % 2 ? random_below(&random, range) : list.sample[k % n], before = 0;

            sample += k % 3 == 2;
            for (uint64_t e = 0; e < n; e++)
                before += list.sample[e] < sample;
            wanted[k] = (struct plan_samples){sample, sample + k * k % 5000 * (k % 5 > 0)};
            want[k].begin = before;
            for (uint64_t e = 0; e < n; e++)
                want[k].end += list.sample[e] <= wanted[k].last;
        }
        wanted[ASKED - 1] = (struct plan_samples){n, UINT64_MAX};
        want[ASKED - 1].end = n;
        for (uint64_t e = 0; e < n; e++)
            want[ASKED - 1].begin += list.sample[e] < n;
        check_entries(&list, wanted, want);
    }
}
