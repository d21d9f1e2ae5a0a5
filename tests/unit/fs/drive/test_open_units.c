/* Open units: which open, when they close, and where the cursor begins. */
#include "fs/drive/open_units.h"
#include "fs/drive/reader.h"
#include "support/unit.h"

#define NO_SIZE UINT64_MAX

static struct open_units open;

UNIT_TEST(test_open__start__the_first_units_too)
{
    open_units_start(&open, 5); /* workers begin an epoch out of order */
    for (uint64_t u = 0; u <= 5; u++)
        assert_true(open_units_has(&open, u));
    assert_int_equal(open_units_first(&open, 5), 0);
    open_units_start(&open, 100); /* a jump into the middle does not */
    assert_false(open_units_has(&open, 99));
    assert_true(open_units_has(&open, 100));
    assert_int_equal(open_units_first(&open, 100), 100);
}

UNIT_TEST(test_open__bit_by_bit__closes_with_the_last)
{
    open_units_start(&open, 100);
    assert_false(open_units_given(&open, 100, 0, 1, 60, 100));
    assert_true(open_units_has(&open, 100));
    assert_true(open_units_given(&open, 100, 0, 1, 40, 100));
    assert_false(open_units_has(&open, 100));
    assert_false(open_units_given(&open, 100, 0, 1, 40, 100));
    assert_int_equal(open_units_first(&open, 101), 101);
}

UNIT_TEST(test_open__two_kinds__closes_with_both)
{
    open_units_start(&open, 100);
    open_units_given(&open, 100, 2, 5, 10, 10);
    assert_true(open_units_has(&open, 100));
    open_units_given(&open, 100, 0, 5, 10, 10);
    assert_false(open_units_has(&open, 100));
}

UNIT_TEST(test_open__size_unknown__stays_open)
{
    open_units_start(&open, 100);
    open_units_given(&open, 100, 0, 1, 10, NO_SIZE);
    assert_true(open_units_has(&open, 100));
    open_units_stored(&open, 100);
    assert_false(open_units_has(&open, 100));
}

UNIT_TEST(test_open__left_out__open_but_not_again)
{
    open_units_start(&open, 100);
    open_units_given(&open, 100, 0, 1, 10, 10);
    open_units_reach(&open, 100, 103);
    assert_false(open_units_has(&open, 100)); /* it was given */
    assert_true(open_units_has(&open, 101));
    assert_true(open_units_has(&open, 103));
    open_units_reach(&open, 0, 103 + 2 * READER_SLACK); /* not further back than workers are */
    assert_false(open_units_has(&open, 103 + READER_SLACK - 1));
    assert_true(open_units_has(&open, 103 + READER_SLACK));
}

UNIT_TEST(test_open__first__ignores_what_is_far_behind)
{
    open_units_start(&open, 100);
    assert_int_equal(open_units_first(&open, 100 + READER_SLACK - 1), 100);
    assert_int_equal(open_units_first(&open, 100 + READER_SLACK), 100 + READER_SLACK);
}

UNIT_TEST(test_open__first__only_grows_but_for_back)
{
    open_units_start(&open, 100);
    open_units_stored(&open, 100);
    assert_int_equal(open_units_first(&open, 120), 120);
    open_units_reach(&open, 118, 118); /* a late worker */
    assert_int_equal(open_units_first(&open, 120), 120);
    open_units_back(&open, 119);
    assert_int_equal(open_units_first(&open, 119), 119);
}

UNIT_TEST(test_open__same_place__the_earlier_one_is_forgotten)
{
    open_units_start(&open, 100);
    open_units_reach(&open, 100 + OPEN_UNITS_MAX, 100 + OPEN_UNITS_MAX);
    assert_false(open_units_has(&open, 100));
    open_units_given(&open, 100, 0, 1, 10, 10);
    assert_true(open_units_has(&open, 100 + OPEN_UNITS_MAX));
}
