/* How many requests at once a remote gets after it has refused some, and how long tries pause. */
#include "cache/stage/limiter.h"
#include "tests/support/test_clock.h"
#include "tests/support/unit.h"

UNIT_TEST(test_limiter__refused__fewer_for_a_while)
{
    struct test_clock clock;
    struct limiter limiter;
    int64_t began;

    test_clock_init(&clock);
    limiter_init(&limiter, 8, 128, &clock.clock);
    assert_int_equal(limiter_most(&limiter), 128);
    began = clock_monotonic(&clock.clock);
    test_clock_turn(&clock, TEST_S);
    limiter_refused(&limiter, began);
    assert_int_equal(limiter_most(&limiter), 8);
    limiter_refused(&limiter, began + TEST_S); /* together with the first */
    test_clock_turn(&clock, 60 * TEST_S - 1);
    assert_int_equal(limiter_most(&limiter), 8);
    test_clock_turn(&clock, 1);
    assert_int_equal(limiter_most(&limiter), 64);
    limiter_refused(&limiter, clock_monotonic(&clock.clock));
    assert_int_equal(limiter_most(&limiter), 8);
    test_clock_turn(&clock, 60 * TEST_S);
    assert_int_equal(limiter_most(&limiter), 32);
    test_clock_turn(&clock, 540 * TEST_S - 1);
    assert_int_equal(limiter_most(&limiter), 32);
    test_clock_turn(&clock, 1);
    assert_int_equal(limiter_most(&limiter), 128);
    test_clock_turn(&clock, 1);
    for (unsigned i = 0; i < 100; i++) { /* forgotten before the first of them */
        limiter_refused(&limiter, clock_monotonic(&clock.clock));
        test_clock_turn(&clock, 60 * TEST_S);
        assert_int_equal(limiter_most(&limiter), i < 3 ? 64 >> i : 8);
    }
    limiter_release(&limiter);
    test_clock_release(&clock);
}

UNIT_TEST(test_limiter__jobs_are_more__jobs)
{
    struct limiter limiter;

    limiter_init(&limiter, 8, 0, NULL);
    assert_int_equal(limiter_most(&limiter), 8);
    limiter_release(&limiter);
}

UNIT_TEST(test_limiter__pause__doubles_to_a_limit)
{
    const uint64_t want[] = {200, 200, 400, 800};

    for (unsigned n = 0; n < 4; n++) {
        assert_int_equal(limiter_pause_ms(n, 0, 0), want[n]);
        assert_in_range(limiter_pause_ms(n, UINT64_MAX, 0), want[n], want[n] * 3 / 2);
    }
    assert_int_equal(limiter_pause_ms(1, 100, 0), 300);
    assert_int_equal(limiter_pause_ms(1, 101, 0), 200);
    assert_int_equal(limiter_pause_ms(1000, 0, 0), 15000);
    assert_int_equal(limiter_pause_ms(1, 0, 60000), 60000);
}
