/* How hard a remote is tried: how many requests at once, and how long between two tries. Transfers
 * of the stage and requests for listings and sizes go by the same limiter, so what one of them
 * learns counts for all.
 *
 * `jobs` requests fill the bandwidth; more at once are for those that take longer to begin than to
 * come. A remote may refuse so many. Then there are no more than `jobs` for a minute, and half as
 * many as before until ten minutes have passed. */
#ifndef EPOCHFS_CACHE_STAGE_LIMITER_H
#define EPOCHFS_CACHE_STAGE_LIMITER_H

#include <stdint.h>

#include "base/clock.h"
#include "base/lock.h"

/* Longest Retry-After obeyed, in ms, when too many at once may be why a request was refused. */
#define LIMITER_CROWDED_MS 1000

struct limiter {
    /* Set by limiter_init(), then constant: */
    const struct clock *clock;
    unsigned jobs, most;
    struct lock lock;
    /* Guarded by lock: */
    unsigned refusals;  /* recent ones */
    int64_t refused_at; /* the last one */
};

/* most: at once; jobs if it is less. Any thread may use the limiter, with any lock held. */
void limiter_init(struct limiter *ret, unsigned jobs, unsigned most, const struct clock *clock);
void limiter_release(struct limiter *limiter);

/* How many may be under way at once now, at least `jobs`. */
unsigned limiter_most(struct limiter *limiter);

/* The remote has refused a request that began at `began` (clock_monotonic()), when more than `jobs`
 * were under way. Requests that began together count as one refusal. */
void limiter_refused(struct limiter *limiter, int64_t began);

/* Milliseconds to wait after n failures in a row: doubled each time, and up to half of it more, so
 * that not all come back at the same time. random: any number. asked_ms: Retry-After; it may be
 * more. */
uint64_t limiter_pause_ms(unsigned failures, uint64_t random, uint64_t asked_ms);

#endif
