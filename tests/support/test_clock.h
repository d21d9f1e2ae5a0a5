/* A clock that stands still until a test turns it.
 *
 * A wait with a time limit ends when the clock is turned past its end, or by its condition, never
 * by itself. So a test turns the clock once the thread in question waits: test_clock_await() is
 * that event. Failures end the test. */
#ifndef EPOCHFS_TESTS_SUPPORT_TEST_CLOCK_H
#define EPOCHFS_TESTS_SUPPORT_TEST_CLOCK_H

#include <stdbool.h>

#include "base/clock.h"

#define TEST_MS          INT64_C(1000000)
#define TEST_S           INT64_C(1000000000)
#define TEST_CLOCK_START (1000 * TEST_S) /* the time of test_clock_init() */

struct test_clock_wait;

struct test_clock {
    struct clock clock; /* first */
    struct lock lock;
    pthread_cond_t changed;
    /* Guarded by lock: */
    int64_t monotonic, wall;
    struct test_clock_wait *waits; /* of threads in clock_wait() with a time limit */
    uint64_t begun;                /* waits of threads in clock_wait(), ever */
    int64_t polled;                /* the time that the last poll() knew, */
    bool polls_for_ever;           /* which has no time limit */
    int64_t runs;                  /* see test_clock_run(); 0: it stands */
    pthread_t thread;
};

/* At a time of its own, 2001 by the wall. */
void test_clock_init(struct test_clock *ret);

/* No thread waits for the clock any more. */
void test_clock_release(struct test_clock *clock);

/* Let ns nanoseconds pass, and wake the threads whose waits end within them. */
void test_clock_turn(struct test_clock *clock, int64_t ns);

/* Wait until a thread waits for the clock and would do so for exactly ns nanoseconds from now. */
void test_clock_await(struct test_clock *clock, int64_t ns);

/* Do that, and then let these ns nanoseconds pass. */
void test_clock_pass(struct test_clock *clock, int64_t ns);

/* Wait until threads have begun to wait for the clock more than *begun times, with or without a
 * time limit, and set *begun to how many times. At first it is 0. What a thread does before it
 * waits is done then: so a test waits for a state by looking at it after each call. */
void test_clock_await_begun(struct test_clock *clock, uint64_t *begun);

/* Let ns nanoseconds pass, and wait until the thread that polls has noticed, or polls for ever.
 * There is one such thread, and it reads the time before each poll(). */
void test_clock_turn_polled(struct test_clock *clock, int64_t ns);

/* Turn the clock to the end of each wait of at most ns nanoseconds, in a thread, until
 * test_clock_stand(): for work that pauses now and then. ns is less than any time limit that must
 * not be reached, and nothing but short pauses may wait for the clock. */
void test_clock_run(struct test_clock *clock, int64_t ns);
void test_clock_stand(struct test_clock *clock);

#endif
