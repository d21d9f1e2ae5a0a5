/* Secrets of signed requests.
 *
 * The signer may block and make requests, so it is called with no lock held. `asking` lets one
 * thread at a time call it, while others wait for its result. A failure is not remembered: the next
 * thread that waits calls the signer again.
 *
 * Transfers start in threads that must not block. Where no secret is remembered a transfer waits in
 * a list, and the signing thread asks for it. It may leave the list at any time. */
#include "cache/http/sign.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"

#define REMEMBERED_NS INT64_C(5000000000)

void http_secret_release(struct http_secret *secret)
{
    secret_free(&secret->key_id);
    secret_free(&secret->key);
    secret_free(&secret->token);
}

void http_signing_init(struct http_signing *ret, struct http_signer *signer,
                       const struct clock *clock)
{
    *ret = (struct http_signing){.signer = signer, .clock = clock};
    lock_init(&ret->lock);
    condition_init(&ret->changed);
}

void http_signing_release(struct http_signing *signing)
{
    http_signing_rest(signing);
    http_signature_let_go(signing->latest);
    pthread_cond_destroy(&signing->changed);
    lock_release(&signing->lock);
}

void http_signature_let_go(struct http_signature *signature)
{
    if (!signature || atomic_fetch_sub(&signature->holders, 1) != 1)
        return;
    http_secret_release(&signature->secret);
    free(signature);
}

/* Ask the signer. This thread has set `asking`. */
static int sign_ask(struct http_signing *signing, struct diag *d)
{
    struct http_signature *made = calloc(1, sizeof(*made));
    int r = -ENOMEM;

    if (made) {
        r = signing->signer->secret(signing->signer, &made->secret, d);
        made->holders = 1;
        made->none = r == 1;
        made->made_ns = clock_monotonic(signing->clock);
        memcpy(made->region, signing->signer->region, sizeof(made->region));
        made->region[sizeof(made->region) - 1] = '\0';
        made->header = signing->signer->header;
    }
    LOCK_SCOPE(&signing->lock);
    signing->asking = false;
    pthread_cond_broadcast(&signing->changed);
    if (r < 0) {
        http_signature_let_go(made);
        return r;
    }
    made->number = ++signing->number;
    http_signature_let_go(signing->latest);
    signing->latest = made;
    return 0;
}

static bool is_remembered_locked(const struct http_signing *signing)
{
    const struct http_signature *latest = signing->latest;

    lock_assert_held(&signing->lock);
    return latest && clock_monotonic(signing->clock) - latest->made_ns < REMEMBERED_NS;
}

/* 0 and what is remembered; 1: nothing is, and this thread must ask(); or -EAGAIN. */
static int take_remembered(struct http_signing *signing, bool blocks, struct http_signature **ret)
{
    LOCK_SCOPE(&signing->lock);

    while (!is_remembered_locked(signing)) {
        if (!blocks)
            return -EAGAIN;
        if (!signing->asking) {
            signing->asking = true;
            return 1;
        }
        lock_wait(&signing->lock, &signing->changed);
    }
    *ret = signing->latest->none ? NULL : signing->latest;
    if (*ret)
        signing->latest->holders++;
    return 0;
}

int http_signing_get(struct http_signing *signing, bool blocks, struct http_signature **ret,
                     struct diag *d)
{
    int r;

    if (!signing->signer) {
        *ret = NULL;
        return 0;
    }
    while ((r = take_remembered(signing, blocks, ret)) == 1) {
        r = sign_ask(signing, d);
        if (r < 0)
            break;
    }
    return r;
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

/* ---- transfers that wait without a thread ---- */

/* Wait for a transfer that waits. false: the thread must end. */
static bool await_waiting(struct http_signing *signing)
{
    LOCK_SCOPE(&signing->lock);

    while (!signing->ending && !signing->waiting)
        lock_wait(&signing->lock, &signing->changed);
    return !signing->ending;
}

static struct http_signing_wait *take_waiting(struct http_signing *signing)
{
    LOCK_SCOPE(&signing->lock);
    struct http_signing_wait *waiting = signing->waiting;

    signing->waiting = NULL;
    return waiting;
}

/* Ask the signer, and call ready() of all that wait. */
static void sign_serve(struct http_signing *signing)
{
    struct http_signature *signature = NULL;
    struct http_signing_wait *waiting;
    struct diag why = DIAG_INIT;
    int r = http_signing_get(signing, true, &signature, &why);

    waiting = take_waiting(signing);
    while (waiting) {
        struct http_signing_wait *next = waiting->next;

        if (signature)
            atomic_fetch_add(&signature->holders, 1);
        waiting->ready(waiting, signature, r, &why);
        waiting = next;
    }
    http_signature_let_go(signature);
}

static void *signing_main(void *arg)
{
    struct http_signing *signing = arg;

    while (await_waiting(signing))
        sign_serve(signing);
    return NULL;
}

int http_signing_later(struct http_signing *signing, struct http_signing_wait *wait)
{
    int r = 0;
    LOCK_SCOPE(&signing->lock);

    if (!signing->running) {
        r = thread_start(&signing->thread, signing_main, signing);
        signing->running = r == 0;
    }
    if (r == 0) {
        wait->next = signing->waiting;
        signing->waiting = wait;
        pthread_cond_broadcast(&signing->changed);
    }
    return r;
}

bool http_signing_forget(struct http_signing *signing, struct http_signing_wait *wait)
{
    struct http_signing_wait **at = &signing->waiting;
    LOCK_SCOPE(&signing->lock);

    while (*at && *at != wait)
        at = &(*at)->next;
    if (!*at)
        return false;
    *at = wait->next;
    return true;
}

void http_signing_rest(struct http_signing *signing)
{
    bool running;

    lock_take(&signing->lock);
    running = signing->running;
    signing->ending = true;
    pthread_cond_broadcast(&signing->changed);
    lock_drop(&signing->lock);
    if (running)
        pthread_join(signing->thread, NULL);
    lock_take(&signing->lock);
    signing->running = false;
    signing->ending = false;
    lock_drop(&signing->lock);
}
