#include "cache/stage/limiter.h"

#include "base/checked.h"

#define NS_PER_S      INT64_C(1000000000)
#define CALM_S        60  /* after a refusal: at most `jobs` for this long; */
#define FORGET_S      600 /* after this long the refusal is forgotten */
#define REFUSALS_MOST 16
#define PAUSE_MS      200
#define PAUSE_MOST_MS 15000

void limiter_init(struct limiter *ret, unsigned jobs, unsigned most, const struct clock *clock)
{
    *ret = (struct limiter){.clock = clock_or_real(clock), .jobs = jobs, .most = most};
    lock_init(&ret->lock);
}

void limiter_release(struct limiter *limiter)
{
    lock_release(&limiter->lock);
}

unsigned limiter_most(struct limiter *limiter)
{
    int64_t now = clock_monotonic(limiter->clock);
    unsigned most = limiter->most;
    LOCK_SCOPE(&limiter->lock);

    if (limiter->refusals && now - limiter->refused_at < CALM_S * NS_PER_S)
        most = limiter->jobs;
    else if (limiter->refusals && now - limiter->refused_at < FORGET_S * NS_PER_S)
        most >>= limiter->refusals;
    return most > limiter->jobs ? most : limiter->jobs;
}

void limiter_refused(struct limiter *limiter, int64_t began)
{
    int64_t now = clock_monotonic(limiter->clock);
    LOCK_SCOPE(&limiter->lock);

    if (limiter->refusals && began <= limiter->refused_at)
        return;
    if (now - limiter->refused_at > FORGET_S * NS_PER_S)
        limiter->refusals = 0;
    limiter->refusals += limiter->refusals < REFUSALS_MOST;
    limiter->refused_at = now;
}

uint64_t limiter_pause_ms(unsigned failures, uint64_t random, uint64_t asked_ms)
{
    uint64_t ms = PAUSE_MS;

    for (unsigned i = 1; i < failures && ms < PAUSE_MOST_MS; i++)
        ms *= 2;
    ms = min_u64(ms, PAUSE_MOST_MS);
    return max_u64(ms + random % (ms / 2 + 1), asked_ms);
}
