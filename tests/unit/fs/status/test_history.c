#include "fs/cli/status_values.h"
#include "fs/status/history.h"
#include "support/test_clock.h"
#include "support/unit.h"

static _Atomic uint64_t served;

/* How many samples the text has; *ret_first, *ret_last: bytes served of the first and last one. */
static size_t read_samples(struct history *h, uint64_t *ret_first, uint64_t *ret_last)
{
    AUTO_TEXT struct text t = {0};
    size_t n = 0;

    history_json(h, &t);
    assert_false(t.failed);
    assert_int_equal(status_number(t.data, "interval_seconds"), 10);
    for (const char *s = status_first(t.data, "samples"); s; s = status_next(s), n++) {
        *ret_last = status_number(s, "served_bytes");
        if (!n)
            *ret_first = *ret_last;
    }
    return n;
}

/* A sample each ten seconds, however often it is asked; the last 360 stay. */
static void test_history_note(void **state)
{
    const struct history_sources sources = {&served, NULL, NULL};
    struct test_clock clock;
    struct history h;
    uint64_t first = 0, last = 0;

    (void)state;
    test_clock_init(&clock);
    history_init(&h);
    assert_int_equal(read_samples(&h, &first, &last), 0);
    for (unsigned second = 0; second < 4000; second++) {
        atomic_store(&served, second);
        history_note(&h, &sources, &clock.clock);
        if (second == 0 || second == 9 || second == 10 || second == 3599)
            assert_int_equal(read_samples(&h, &first, &last), 1 + second / 10);
        test_clock_turn(&clock, TEST_S);
    }
    assert_int_equal(read_samples(&h, &first, &last), HISTORY_SAMPLES);
    assert_int_equal(last, 3990);
    assert_int_equal(first, 3990 - 10 * (HISTORY_SAMPLES - 1));
    test_clock_turn(&clock, 100 * TEST_S); /* a pause: one sample, not ten */
    atomic_store(&served, 5000);
    history_note(&h, &sources, &clock.clock);
    history_note(&h, &sources, &clock.clock);
    assert_int_equal(read_samples(&h, &first, &last), HISTORY_SAMPLES);
    assert_int_equal(first, 400 + 10);
    assert_int_equal(last, 5000);
    history_release(&h);
    test_clock_release(&clock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_history_note)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
