/* The time, in nanoseconds. */
#ifndef EPOCHFS_BASE_CLOCK_H
#define EPOCHFS_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Of a clock that is never set, for time limits. */
static inline int64_t monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Since 1970. */
static inline int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

#endif
