/* Secrets of signed requests.
 *
 * The signer may block and make requests, so a thread of its own calls it, with no lock held, once
 * for all requests that wait for secrets in the loop. A failure is not remembered: the next request
 * makes a thread call it again. */
#include "cache/http/sign.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "cache/http/parts.h"

#define REMEMBERED_NS INT64_C(5000000000)

void http_signing_init(struct http_signing *ret, struct http_signer *signer,
                       const struct clock *clock, void (*answered)(struct http *http))
{
    *ret = (struct http_signing){.signer = signer, .clock = clock, .answered = answered};
    lock_init(&ret->lock);
}

void http_signing_release(struct http_signing *signing)
{
    http_signing_rest(signing);
    http_signature_let_go(signing->latest);
    lock_release(&signing->lock);
}

void http_signature_let_go(struct http_signature *signature)
{
    if (!signature || atomic_fetch_sub(&signature->holders, 1) != 1)
        return;
    http_secret_release(&signature->secret);
    free(signature);
}

/* Ask the signer, and tell the loop. */
static void *sign_main(void *arg)
{
    struct http *http = arg;
    struct http_signing *signing = &http->signing;
    struct http_signer *signer = signing->signer;
    struct http_signature *made = calloc(1, sizeof(*made));
    struct diag why = DIAG_INIT;
    int r = made ? signer->secret(signer, &made->secret, &why) : -ENOMEM;

    if (made) {
        made->holders = 1;
        made->none = r == 1;
        made->made_ns = clock_monotonic(signing->clock);
        snprintf(made->region, sizeof(made->region), "%s", signer->region);
        made->header = signer->header;
    }
    lock_take(&signing->lock);
    if (r >= 0) {
        made->number = ++signing->number;
        http_signature_let_go(signing->latest);
        signing->latest = TAKE_PTR(made);
    }
    signing->failed = r < 0 ? r : 0;
    signing->why = why;
    signing->asking = false;
    lock_drop(&signing->lock);
    http_signature_let_go(made);
    signing->answered(http);
    return NULL;
}

/* 0 and what is remembered; -EAGAIN: a thread is asking; 1: the caller starts one. */
static int take_remembered(struct http_signing *signing, struct http_signature **ret)
{
    struct http_signature *latest;
    LOCK_SCOPE(&signing->lock);

    latest = signing->latest;
    if (latest && clock_monotonic(signing->clock) - latest->made_ns < REMEMBERED_NS) {
        *ret = latest->none ? NULL : latest;
        latest->holders += !latest->none;
        return 0;
    }
    if (signing->asking)
        return -EAGAIN;
    signing->asking = true;
    return 1;
}

int http_signing_get(struct http *http, struct http_signature **ret)
{
    struct http_signing *signing = &http->signing;
    int r = take_remembered(signing, ret);

    if (r != 1)
        return r;
    http_signing_rest(signing);
    signing->started = thread_start(&signing->thread, sign_main, http) == 0;
    if (signing->started)
        return -EAGAIN;
    LOCK_SCOPE(&signing->lock);
    signing->asking = false;
    return -ENOMEM;
}

int http_signing_result(struct http_signing *signing, struct diag *d)
{
    LOCK_SCOPE(&signing->lock);

    return signing->asking ? -EAGAIN
           : signing->failed
               ? diag_set(d, signing->failed, "%s", diag_text(&signing->why, signing->failed))
               : 0;
}

void http_signing_rest(struct http_signing *signing)
{
    if (signing->started)
        pthread_join(signing->thread, NULL);
    signing->started = false;
}

bool http_is_of_secret(const struct http_signature *signature, unsigned status, const char *code)
{
    static const char *const codes[] = {"ExpiredToken",         "InvalidToken",
                                        "TokenRefreshRequired", "InvalidAccessKeyId",
                                        "InvalidClientTokenId", "RequestTimeTooSkewed"};

    if (!signature || !signature->secret.key_id)
        return signature && status == 401;
    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (!strcmp(codes[i], code))
            return true;
    return false;
}

bool http_signing_expired(struct http_signing *signing, const struct http_signature *signature)
{
    LOCK_SCOPE(&signing->lock);

    if (signing->latest && signing->latest->number == signature->number) {
        http_signature_let_go(signing->latest);
        signing->latest = NULL;
        if (signing->signer->refused)
            signing->signer->refused(signing->signer);
    }
    /* Is this the first expiry, or one long after the last? Then newer secrets may help. */
    if (signing->expired == 0 || signature->number > signing->expired + 1)
        signing->expired = signature->number;
    return signature->number <= signing->expired;
}
