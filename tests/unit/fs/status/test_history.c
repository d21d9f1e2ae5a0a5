#include "fs/cli/status_values.h"
#include "fs/status/history.h"
#include "support/test_clock.h"
#include "support/unit.h"

#include <math.h>

static _Atomic uint64_t served;

/* How many samples the text has; *ret_first, *ret_last: bytes served of the first and last one. */
static size_t read_samples(struct history *h, uint64_t *ret_first, uint64_t *ret_last)
{
    AUTO_TEXT struct text t = {0};
    AUTO_JSON json_t *json = NULL;
    const json_t *samples;
    size_t n = 0;

    history_json(h, &t);
    assert_false(t.failed);
    json = status_parse(t.data);
    samples = status_value(json, "samples");
    assert_int_equal(status_number(json, "interval_seconds"), 10);
    for (; n < json_array_size(samples); n++) {
        *ret_last = status_number(json_array_get(samples, n), "served_bytes");
        if (!n)
            *ret_first = *ret_last;
    }
    return n;
}

/* A sample every ten seconds, however often it is asked; the last 360 are kept. */
UNIT_TEST(test_history_note)
{
    const struct history_sources sources = {&served, NULL, NULL};
    AUTO(test_clock_release) struct test_clock clock;
    AUTO(history_release) struct history h;
    uint64_t first = 0, last = 0;

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
}

static void assert_speed(double units_per_s, double since_s, double quiet_s, uint64_t unseen,
                         double want)
{
    double got = history_speed(units_per_s, since_s, quiet_s, unseen);

    if (!(fabs(got - want) < 1e-9))
        fail_msg("%g units/s, since %g s, quiet for %g s: expected %g, got %g", units_per_s,
                 since_s, quiet_s, want, got);
}

/* On average over ten seconds: short epochs one after another do not add up, and one reader whom
 * the page cache serves for a while goes on. */
UNIT_TEST(test_history_speed)
{
    assert_speed(100, 60, 0, 0, 100);          /* is read */
    assert_speed(100, 60, 0.01, 0, 100);       /* its next unit is due now */
    assert_speed(100, 2, 0, 0, 20);            /* began 2 s ago */
    assert_speed(1000, 1.001, 0.501, 0, 50.1); /* an epoch of half a second */
    assert_speed(1000, 3.001, 2.501, 0, 50.1); /* and the one before */
    assert_speed(100, 60, 6.01, 0, 40);        /* ended 6 s ago */
    assert_speed(100, 60, 11, 0, 0);           /* ended before */
    assert_speed(0.05, 60, 15, 0, 0.05);       /* one in 20 s */
    assert_speed(0.05, 60, 25, 0, 0.025);      /* is late */
    assert_speed(0.05, 60, 100, 0, 0);         /* comes no more */
    assert_speed(2, 60, 21, 63, 2);            /* 64 units from one read to the next */
    assert_speed(2, 60, 37, 63, 1);
    assert_speed(2, 60, 50, 63, 0);
    assert_speed(0, 60, 1, 0, 0); /* not known */
    assert_speed(NAN, 60, 1, 0, 0);
    assert_speed(INFINITY, 60, 1, 0, 0);
    assert_speed(5, 0, INFINITY, 0, 0); /* was never read */
}
