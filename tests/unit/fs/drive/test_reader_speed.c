/* A reader's speed, with times that the tests choose. */
#include <math.h>

#include "fs/drive/reader_speed.h"
#include "support/unit.h"

#define S INT64_C(1000000000)

UNIT_TEST(test_speed__moves__an_average)
{
    struct reader_speed s = {0};

    reader_speed_jumped(&s, 10 * S);
    assert_true(s.units_per_s == 0);
    reader_speed_moved(&s, 20, 12 * S);
    assert_true(fabs(s.units_per_s - 10) < 1e-9);
    reader_speed_moved(&s, 20, 13 * S);
    assert_true(fabs(s.units_per_s - 12) < 1e-9);
    reader_speed_moved(&s, 5, 13 * S); /* no time has passed */
    assert_true(fabs(s.units_per_s - 12) < 1e-9);
    reader_speed_jumped(&s, 113 * S); /* the way there does not count */
    reader_speed_moved(&s, 12, 114 * S);
    assert_true(fabs(s.units_per_s - 12) < 1e-9);
}

UNIT_TEST(test_speed__not_read__quiet_for_ever)
{
    struct reader_speed s = {0};

    assert_true(reader_speed_since(&s, 5 * S) == 0);
    assert_true(isinf(reader_speed_quiet(&s, 5 * S)));
}

UNIT_TEST(test_speed__quiet__after_a_minute_or_four_marks)
{
    struct reader_speed s = {0};

    reader_speed_read(&s, 100 * S);
    reader_speed_read(&s, 200 * S);
    assert_true(fabs(reader_speed_since(&s, 201 * S) - 101) < 1e-9);
    assert_true(fabs(reader_speed_quiet(&s, 201 * S) - 1) < 1e-9);
    assert_false(reader_speed_is_quiet(&s, 64, 260 * S));
    assert_true(reader_speed_is_quiet(&s, 64, 261 * S));
    s.units_per_s = 2; /* a read that reaches us every 32 s */
    assert_false(reader_speed_is_quiet(&s, 64, (260 + 128) * S));
    assert_true(reader_speed_is_quiet(&s, 64, (261 + 128) * S));
}
