#include "cache/http/round.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"

#define PAUSE_MOST_MS   UINT64_C(30000)  /* whatever Retry-After says: the caller waits */
#define LIMITED_MOST_MS UINT64_C(300000) /* the same for a rate limit that says when it ends */

void round_init(struct round *ret, struct http *http)
{
    *ret =
        (struct round){.http = http, .clock = http->clock, .heard = clock_monotonic(http->clock)};
    lock_init(&ret->lock);
    condition_init(&ret->ended);
}

void round_release(struct round *round)
{
    pthread_cond_destroy(&round->ended);
    lock_release(&round->lock);
}

void round_heard_locked(struct round *round)
{
    lock_assert_held(&round->lock);
    round->heard = clock_monotonic(round->clock);
    round->is_answered = true;
    atomic_store(&round->http->answered, round->heard);
}

/* That it is busy, or has failed, is no answer. */
static bool round_has_answer(const struct http_request *request)
{
    return request->end == HTTP_DONE && request->reply.complete &&
           (request->reply.status < 300 ||
            http_status_end(request->reply.status) != TRANSFER_AGAIN);
}

void round_done(struct round *round, const struct http_request *request)
{
    LOCK_SCOPE(&round->lock);

    if (request && round_has_answer(request))
        round_heard_locked(round);
    round->pending--;
    pthread_cond_broadcast(&round->ended);
}

void round_wait_below(struct round *round, unsigned n)
{
    LOCK_SCOPE(&round->lock);

    while (round->pending >= n)
        lock_wait(&round->lock, &round->ended);
}

bool round_is_over(struct round *round, uint64_t ms)
{
    LOCK_SCOPE(&round->lock);

    return clock_monotonic(round->clock) - round->heard + (int64_t)ms * 1000000 >=
           round->http->retry_limit_ns;
}

bool round_is_answered(struct round *round)
{
    LOCK_SCOPE(&round->lock);

    return round->is_answered;
}

void round_give_up(struct http *http)
{
    if (http->retry_limit_ns < NO_LIMIT)
        atomic_store(&http->gave_up, clock_monotonic(http->clock));
}

bool round_is_given_up(const struct http *http)
{
    return http_is_silent(http, NULL) &&
           clock_monotonic(http->clock) - atomic_load(&http->gave_up) < http->retry_limit_ns;
}

int round_say_silent(const struct http *http, const char *name, struct diag *d)
{
    return diag_set(d, -EREMOTEIO, "%s: the server sent nothing for %lld s", name,
                    (long long)(http->retry_limit_ns / 1000000000));
}

void round_let_pass(struct round *round, uint64_t ms)
{
    int64_t until = clock_monotonic(round->clock) + (int64_t)ms * 1000000;
    LOCK_SCOPE(&round->lock);

    while (clock_monotonic(round->clock) < until)
        clock_wait(round->clock, &round->lock, &round->ended, until);
}

bool round_let_limit_pass(struct round *round, const struct http_reply *reply)
{
    if (reply->status != 429 || !reply->retry_ms || reply->retry_ms > LIMITED_MOST_MS)
        return false;
    round_let_pass(round, reply->retry_ms);
    LOCK_SCOPE(&round->lock);
    round_heard_locked(round);
    return true;
}

int round_start(struct round *round, struct http_request *request)
{
    int r;

    lock_take(&round->lock);
    round->pending++;
    lock_drop(&round->lock);
    r = http_request_start(round->http, request);
    if (r < 0)
        round_done(round, NULL);
    return r;
}

uint64_t round_pause_ms(const struct round *round, unsigned n, uint64_t asked_ms)
{
    uint64_t random = (uint64_t)clock_monotonic(round->clock) / 1000;

    return min_u64(limiter_pause_ms(n, random, asked_ms), PAUSE_MOST_MS);
}

enum transfer_end http_request_refused(struct http *http, const struct http_request *request,
                                       const char *name, unsigned expected, struct diag *d)
{
    unsigned status = request->reply.status;
    char code[64], said[HTTP_ERROR_SIZE];

    http_error_code(request->error, request->error_len, code);
    http_error_text(request->error, request->error_len, request->url, said);
    if (status == 429 && request->reply.retry_ms)
        diag_set(d, 0, "%s: the server limits requests, and allows them again in %" PRIu64 " s%s",
                 name, request->reply.retry_ms / 1000, said);
    diag_set(d, 0, "%s: expected status %u, got %u%s", name, expected, status, said);
    if (http_is_of_secret(request->signature, status, code))
        return http_signing_expired(&http->signing, request->signature) ? TRANSFER_AGAIN
                                                                        : TRANSFER_REFUSED;
    return strcmp(code, "RequestTimeout") ? http_status_end(status) : TRANSFER_AGAIN;
}

int round_failure(const struct round *round, const struct http_request *request, const char *name,
                  bool *again, struct diag *d)
{
    unsigned status = request->reply.status;

    *again = false;
    if (request->end == HTTP_UNSIGNED)
        return diag_set(d, request->failed, "%s", request->why);
    if (!request->reply.complete || request->end == HTTP_UNTRUSTED ||
        (status < 300 && request->end != HTTP_DONE)) {
        *again = request->end == HTTP_BROKEN;
        return diag_set(d, -EREMOTEIO, "%s: %s", name, request->why);
    }
    *again = http_request_refused(round->http, request, name, 200, d) == TRANSFER_AGAIN;
    return status == 404 || status == 410         ? -ENOENT
           : status == 401 && !request->signature ? -EPERM
           : status == 401 || status == 403       ? -EACCES
                                                  : -EREMOTEIO;
}

bool http_is_silent(const struct http *http, struct diag *d)
{
    int64_t at = atomic_load(&http->gave_up);
    bool is_silent = at && at > atomic_load(&http->answered);

    if (is_silent)
        diag_set(d, -EREMOTEIO, "the server has failed for %lld s; some files are not known",
                 (long long)(http->retry_limit_ns / 1000000000));
    return is_silent;
}
