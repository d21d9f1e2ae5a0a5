/* Rounds of requests for which one caller waits: it sends those that are ready, and waits until all
 * of them are done. No lock is held by callers. */
#ifndef EPOCHFS_CACHE_HTTP_ROUND_H
#define EPOCHFS_CACHE_HTTP_ROUND_H

#include "cache/http/parts.h"

/* Requests of one caller that are under way. */
struct round {
    struct http *http;         /* constant, */
    const struct clock *clock; /* its own */
    struct lock lock;
    pthread_cond_t ended;
    /* Guarded by lock: */
    unsigned pending;
    int64_t heard;    /* when the server last gave something, or the first request was made */
    bool is_answered; /* it gave something */
};

void round_init(struct round *ret, struct http *http);
void round_release(struct round *round);
void round_heard_locked(struct round *round);

/* Count a request as done. request: NULL: it was not sent. */
void round_done(struct round *round, const struct http_request *request);

/* Wait until fewer than n requests are under way. */
void round_wait_below(struct round *round, unsigned n);

/* Will the retry limit be over in that many ms? */
bool round_is_over(struct round *round, uint64_t ms);
bool round_is_answered(struct round *round);

/* The server is silent: requests that could wait for it fail at once for a while. */
void round_give_up(struct http *http);
bool round_is_given_up(const struct http *http);

/* Return -EREMOTEIO with "name: the server sent nothing for N s" in d. */
int round_say_silent(const struct http *http, const char *name, struct diag *d);

/* Let ms milliseconds pass. The server sends nothing meanwhile, so there is no event to wait for.
 */
void round_let_pass(struct round *round, uint64_t ms);

/* If the server limits requests, and says that it allows them again soon (status 429), wait until
 * then: it answers, so this time does not count for the retry limit. false: it does not say so. */
bool round_let_limit_pass(struct round *round, const struct http_reply *reply);

/* Start a request. 0 or -errno. */
int round_start(struct round *round, struct http_request *request);

/* How long to pause before try n; asked_ms: what the server asks for, or 0. */
uint64_t round_pause_ms(const struct round *round, unsigned n, uint64_t asked_ms);

/* The -errno of a request without a good reply, with the reason in d. -EPERM: the server asks for a
 * user. *again: it may work later. */
int round_failure(const struct round *round, const struct http_request *request, const char *name,
                  bool *again, struct diag *d);

#endif
