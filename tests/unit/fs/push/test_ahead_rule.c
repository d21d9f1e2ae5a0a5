/* What is asked of a disk: which ranges, how much ahead, and when whole sources in sequence. */
#include "base/blob.h"
#include "base/checked.h"
#include "fs/push/ahead_rule.h"
#include "support/unit.h"

#define MiB  (UINT64_C(1) << 20)
#define GiB  (UINT64_C(1) << 30)
#define SIZE UINT64_C(1000000)

static const struct blob blobs[2] = {{.size = SIZE}, {.size = SIZE}};

static struct stage_need need_of(unsigned blob, uint64_t off, uint64_t len)
{
    return (struct stage_need){.blob = &blobs[blob], .off = off, .len = len};
}

UNIT_TEST(test_ranges__needs__whole_pages_in_order)
{
    const struct stage_need need[] = {need_of(0, 50000, 784), need_of(0, 10, 1),
                                      need_of(0, 4095, 2)};
    struct ahead_range range[ARRAY_LEN(need)];

    assert_int_equal(ahead_ranges(need, ARRAY_LEN(need), range), 2);
    assert_int_equal(range[0].off, 0);
    assert_int_equal(range[0].len, 2 * AHEAD_PAGE);
    assert_int_equal(range[1].off, 12 * AHEAD_PAGE);
    assert_int_equal(range[1].len, AHEAD_PAGE);
}

UNIT_TEST(test_ranges__gaps__small_ones_are_read_too)
{
    const uint64_t apart = AHEAD_PAGE + AHEAD_GAP;
    const struct stage_need near_by[] = {need_of(0, 0, 1), need_of(0, apart, 1)};
    const struct stage_need far[] = {need_of(0, 0, 1), need_of(0, apart + AHEAD_PAGE, 1)};
    const struct stage_need two_blobs[] = {need_of(1, 0, 1), need_of(0, 0, 1)};
    struct ahead_range range[2];

    assert_int_equal(ahead_ranges(near_by, 2, range), 1);
    assert_int_equal(range[0].len, apart + AHEAD_PAGE);
    assert_int_equal(ahead_ranges(far, 2, range), 2);
    assert_int_equal(ahead_ranges(two_blobs, 2, range), 2);
}

UNIT_TEST(test_ranges__within_another__one_range)
{
    const struct stage_need need[] = {need_of(0, 0, 100000), need_of(0, 5000, 10)};
    struct ahead_range range[2];

    assert_int_equal(ahead_ranges(need, 2, range), 1);
    assert_int_equal(range[0].len, ceil_div(100000, AHEAD_PAGE) * AHEAD_PAGE);
}

/* A need is a hint, and its numbers may come from a source that has changed. */
UNIT_TEST(test_ranges__outside__nothing_but_the_blob)
{
    const struct stage_need need[] = {need_of(0, SIZE - 1, UINT64_MAX), need_of(0, SIZE, 1),
                                      need_of(0, UINT64_MAX, 1), need_of(1, 0, 0)};
    struct ahead_range range[ARRAY_LEN(need)];

    assert_int_equal(ahead_ranges(need, ARRAY_LEN(need), range), 1);
    assert_int_equal(range[0].off + range[0].len, SIZE);
    assert_int_equal(ahead_ranges(need, 0, range), 0);
}

UNIT_TEST(test_window__free_memory__a_share_of_it)
{
    assert_int_equal(ahead_window(64 * GiB), 64 * MiB);
    assert_int_equal(ahead_window(96 * MiB), 24 * MiB);
    assert_true(ahead_window(0) > 0);
}

static const struct ahead_facts shuffled = {.bytes = 400 * MiB,
                                            .missing = 400 * MiB,
                                            .left = 400 * MiB,
                                            .memory = 8 * GiB,
                                            .scattered = 50e6,
                                            .sequential = 1e9};

UNIT_TEST(test_sequence__sooner_and_fits__yes)
{
    assert_true(ahead_in_sequence(&shuffled));
}

UNIT_TEST(test_sequence__no_time_won__no)
{
    struct ahead_facts few = shuffled, done = shuffled, large = shuffled;

    few.left = MiB; /* a plan of few samples, or the end of an epoch */
    assert_false(ahead_in_sequence(&few));
    done.missing = 0;
    assert_false(ahead_in_sequence(&done));
    large.scattered = 0.7 * large.sequential; /* samples of megabytes come nearly as fast */
    assert_false(ahead_in_sequence(&large));
}

UNIT_TEST(test_sequence__more_than_half_the_memory__no)
{
    struct ahead_facts facts = shuffled;

    facts.memory = 799 * MiB;
    assert_false(ahead_in_sequence(&facts));
    facts.memory = 800 * MiB;
    assert_true(ahead_in_sequence(&facts));
}

/* First the rate of samples, which readers wait for; then that of the sequence. */
UNIT_TEST(test_sequence__rates_unknown__measured_in_turn)
{
    struct ahead_facts facts = shuffled;

    facts.scattered = facts.sequential = 0;
    assert_false(ahead_in_sequence(&facts));
    facts.scattered = 50e6;
    assert_true(ahead_in_sequence(&facts));
}

UNIT_TEST(test_exceeds__by_memory)
{
    assert_false(ahead_exceeds(400 * MiB, 400 * MiB));
    assert_true(ahead_exceeds(400 * MiB + 1, 400 * MiB));
}
