/* A reader's place: what goes on, what is a jump, and when there are two readers. */
#include "fs/drive/reader.h"
#include "support/unit.h"

UNIT_TEST(test_reader__out_of_order__no_jump)
{
    struct reader r;

    reader_start(&r, false, 100);
    assert_true(reader_is_live(&r));
    assert_false(reader_is_jump(&r, 0, 100 - READER_SLACK));
    assert_true(reader_is_jump(&r, 0, 100 - READER_SLACK - 1));
    assert_false(reader_is_jump(&r, 0, 100 + READER_SLACK));
    assert_true(reader_is_jump(&r, 0, 100 + READER_SLACK + 1));
}

UNIT_TEST(test_reader__units_that_need_no_read__no_jump_behind_them)
{
    struct reader r;

    reader_start(&r, false, 100);
    assert_false(reader_is_jump(&r, 500, 500 + READER_SLACK));
    assert_true(reader_is_jump(&r, 500, 501 + READER_SLACK));
}

UNIT_TEST(test_reader__samples__live_once_in_sequence)
{
    struct reader r;

    reader_start(&r, true, 7);
    assert_false(reader_is_live(&r));
    assert_true(reader_is_jump(&r, 0, 6));  /* at random: back, */
    assert_true(reader_is_jump(&r, 0, 20)); /* or far */
    for (uint64_t u = 8; u < 7 + READER_SURE; u++) {
        assert_false(reader_is_live(&r));
        assert_false(reader_is_jump(&r, 0, u));
        reader_moves(&r, u);
    }
    assert_true(reader_is_live(&r));
    assert_false(reader_is_jump(&r, 0, 6));
}

UNIT_TEST(test_reader__samples_at_random__no_ghost)
{
    struct reader r;

    reader_start(&r, true, 7);
    assert_false(reader_splits(&r, 1000));
    assert_false(reader_splits(&r, 8));
    assert_int_equal(r.jumps, 2);
    assert_int_equal(r.at, 8);
}

UNIT_TEST(test_reader__goes_on_before_the_jump__two_readers)
{
    struct reader r;

    reader_start(&r, false, 100);
    assert_false(reader_splits(&r, 1000));
    assert_int_equal(r.at, 1000);
    reader_moves(&r, 1001);
    assert_true(reader_splits(&r, 101));
    assert_int_equal(r.at, 1001);         /* it stays there, */
    assert_true(reader_is_live(&r));      /* and has a place of its own, because it went on */
    assert_false(reader_splits(&r, 101)); /* the ghost is gone: now it is a jump */
}

UNIT_TEST(test_reader__one_late_read__stray_until_it_goes_on)
{
    struct reader r;

    reader_start(&r, false, 1000);
    assert_false(reader_splits(&r, 100)); /* a worker that is late, */
    assert_true(reader_splits(&r, 1001)); /* while the others go on */
    assert_int_equal(r.at, 100);
    assert_false(reader_is_live(&r));
    reader_moves(&r, 101);
    assert_true(reader_is_live(&r));
}

UNIT_TEST(test_reader__end__of_all_kinds_since_the_jump)
{
    struct reader r;

    reader_start(&r, false, 9);
    assert_false(reader_is_over(&r));
    reader_comes(&r, 0);
    reader_comes(&r, 63);
    reader_ends(&r, 63);
    assert_false(reader_is_over(&r));
    reader_ends(&r, 0);
    assert_true(reader_is_over(&r));
    assert_false(reader_splits(&r, 100));
    reader_comes(&r, 0);
    assert_false(reader_is_over(&r));
}
