#include "base/clock.h"

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S  INT64_C(1000000000)

static int64_t clock_time_of(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static int64_t real_monotonic(const struct clock *clock)
{
    (void)clock;
    return clock_time_of(CLOCK_MONOTONIC);
}

static int64_t real_wall(const struct clock *clock)
{
    (void)clock;
    return clock_time_of(CLOCK_REALTIME);
}

static void real_wait(const struct clock *clock, struct lock *l, pthread_cond_t *condition,
                      int64_t until)
{
    (void)clock;
    if (until == CLOCK_NEVER)
        lock_wait(l, condition);
    else
        lock_wait_until(l, condition, until);
}

static int real_poll_ms(const struct clock *clock, int64_t until)
{
    int64_t left;

    if (until == CLOCK_NEVER)
        return -1;
    left = until - real_monotonic(clock);
    if (left <= 0)
        return 0;
    return left < INT_MAX * NS_PER_MS ? (int)((left + NS_PER_MS - 1) / NS_PER_MS) : INT_MAX;
}

const struct clock real_clock = {
    .monotonic = real_monotonic, .wall = real_wall, .wait = real_wait, .poll_ms = real_poll_ms};
