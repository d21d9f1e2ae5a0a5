/* Ranges: overlapping ones are found, in order and in few steps, whatever is added and removed. */
#include <stdbool.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/ranges.h"
#include "support/random.h"
#include "support/unit.h"

#define N 300

static bool overlaps(const struct range *range, uint64_t first, uint64_t end)
{
    return max_u64(range->first, first) < min_u64(range->end, end);
}

/* Every contained range that overlaps is found once, in order, and nothing else. */
static void expect_found(struct ranges *ranges, const struct range *all, const bool *in,
                         uint64_t first, uint64_t end)
{
    size_t want = 0, found = 0;
    uint64_t last = 0;

    for (size_t i = 0; i < N; i++)
        want += in[i] && overlaps(&all[i], first, end);
    for (struct range *at = ranges_first(ranges, first, end); at;
         at = ranges_next(ranges, at, first, end)) {
        assert_true(in[at - all] && overlaps(at, first, end));
        assert_true(at->first >= last);
        last = at->first;
        found++;
    }
    assert_int_equal(found, want);
}

UNIT_TEST(test_ranges__at_random__what_overlaps)
{
    struct range all[N] = {0};
    bool in[N] = {false};
    struct ranges ranges = {0};
    uint64_t random = RANDOM_SEED;

    for (unsigned step = 0; step < 20000; step++) {
        size_t i = (size_t)random_below(&random, N);
        uint64_t first = random_below(&random, 1000),
                 end = first + random_below(&random, step % 50 ? 20 : 800), least = UINT64_MAX;

        if (!in[i]) {
            all[i].first = first;
            all[i].end = end;
            ranges_add(&ranges, &all[i]);
        } else if (step % 3) {
            ranges_remove(&ranges, &all[i]);
        } else {
            ranges_move(&ranges, &all[i], first, end);
        }
        in[i] = !in[i] || step % 3 == 0;
        if (step % 10)
            continue;
        first = random_below(&random, 1000);
        expect_found(&ranges, all, in, first, first + random_below(&random, 100));
        for (size_t k = 0; k < N; k++)
            least = in[k] ? min_u64(least, all[k].first) : least;
        assert_int_equal(ranges_least(&ranges) ? ranges_least(&ranges)->first : UINT64_MAX, least);
    }
}

/* The number of steps to add, find and remove n adjacent ranges. */
static uint64_t steps_of(size_t n)
{
    struct range *all = calloc(n, sizeof(*all));
    struct ranges ranges = {0};

    for (size_t i = 0; i < n; i++) {
        all[i].first = i * 10;
        all[i].end = i * 10 + 10;
        ranges_add(&ranges, &all[i]);
    }
    for (size_t i = 0; i < n; i++) {
        struct range *found = ranges_first(&ranges, i * 10 + 3, i * 10 + 12);

        assert_ptr_equal(found, &all[i]);
        found = ranges_next(&ranges, found, i * 10 + 3, i * 10 + 12);
        assert_ptr_equal(found, i + 1 < n ? &all[i + 1] : NULL);
    }
    for (size_t i = 0; i < n; i++)
        ranges_remove(&ranges, &all[(i * 7919) % n]);
    assert_null(ranges.root);
    assert_int_equal(ranges.n, 0);
    free(all);
    return ranges.steps;
}

UNIT_TEST(test_ranges__ten_times_as_many__little_more_each)
{
    uint64_t few = steps_of(1000), many = steps_of(10000);

    assert_true(many < few * 15); /* 10 log(10000) / log(1000) = 13.3 */
}
