/* The time, in nanoseconds, and waiting until a time.
 *
 * Code whose behaviour depends on time gets a struct clock with its options, so that unit tests can
 * turn it (tests/support/test_clock.h). monotonic_ns() and now_ns() are for the rest. Only
 * clock.c asks the system for the time: tests/check/layers. */
#ifndef EPOCHFS_BASE_CLOCK_H
#define EPOCHFS_BASE_CLOCK_H

#include <limits.h>
#include <stdint.h>
#include <time.h>

#include "base/lock.h"

/* A place in time that is never reached. */
#define CLOCK_NEVER INT64_MAX

/* Any thread may call all of it. */
struct clock {
    /* By a clock that is never set, for time limits. */
    int64_t (*monotonic)(const struct clock *clock);
    /* Since 1970. */
    int64_t (*wall)(const struct clock *clock);
    /* See clock_wait(). */
    void (*wait)(const struct clock *clock, struct lock *l, pthread_cond_t *condition,
                 int64_t until);
    /* See clock_poll_ms(). */
    int (*poll_ms)(const struct clock *clock, int64_t until);
};

/* That of the system. */
extern const struct clock real_clock;

/* The clock of options: NULL means the system's. */
static inline const struct clock *clock_or_real(const struct clock *clock)
{
    return clock ? clock : &real_clock;
}

static inline int64_t clock_monotonic(const struct clock *clock)
{
    return clock->monotonic(clock);
}

static inline int64_t clock_wall(const struct clock *clock)
{
    return clock->wall(clock);
}

/* Wait for the condition, which condition_init() made, at most until clock_monotonic() reaches
 * `until`; CLOCK_NEVER: for ever. May return earlier. l is held, and dropped meanwhile. */
static inline void clock_wait(const struct clock *clock, struct lock *l, pthread_cond_t *condition,
                              int64_t until)
{
    clock->wait(clock, l, condition, until);
}

/* Milliseconds that a poll() may wait if its caller then compares the time with `until` again;
 * CLOCK_NEVER: -1, for ever. */
static inline int clock_poll_ms(const struct clock *clock, int64_t until)
{
    return clock->poll_ms(clock, until);
}

/* A time of the system, as of a file, in nanoseconds since 1970; one beyond 64 bits wraps around.
 */
static inline int64_t timespec_ns(const struct timespec *t)
{
    return (int64_t)((uint64_t)t->tv_sec * UINT64_C(1000000000) + (uint64_t)t->tv_nsec);
}

static inline int64_t monotonic_ns(void)
{
    return clock_monotonic(&real_clock);
}

static inline int64_t now_ns(void)
{
    return clock_wall(&real_clock);
}

#endif
