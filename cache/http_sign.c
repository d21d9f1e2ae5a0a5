/* Secrets of signed requests.
 *
 * The signer may block and make requests, so it is asked with no lock held; `asking` sees to it
 * that one thread asks at a time, while others wait for what it gets. A failure is not remembered:
 * the next who waits asks again. */
#include "cache/http_sign.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define REMEMBERED_NS INT64_C(5000000000)

static void wipe(char **text)
{
    if (*text) {
        explicit_bzero(*text, strlen(*text));
        free(*text);
    }
    *text = NULL;
}

void http_secret_release(struct http_secret *secret)
{
    wipe(&secret->key_id);
    wipe(&secret->key);
    wipe(&secret->token);
}

void http_signing_init(struct http_signing *ret, struct http_signer *signer)
{
    *ret = (struct http_signing){.signer = signer};
    lock_init(&ret->lock);
    condition_init(&ret->changed);
}

void http_signing_release(struct http_signing *signing)
{
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

/* Ask the signer, the lock dropped meanwhile. */
static int ask_locked(struct http_signing *signing, struct diag *d)
{
    struct http_signature *made = calloc(1, sizeof(*made));
    int r = -ENOMEM;

    lock_assert_held(&signing->lock);
    signing->asking = true;
    lock_drop(&signing->lock);
    if (made) {
        r = signing->signer->secret(signing->signer, &made->secret, d);
        made->holders = 1;
        made->none = r == 1;
        made->made_ns = monotonic_ns();
        memcpy(made->region, signing->signer->region, sizeof(made->region));
        made->region[sizeof(made->region) - 1] = '\0';
    }
    lock_take(&signing->lock);
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

static int get_locked(struct http_signing *signing, bool blocks, struct http_signature **ret,
                      struct diag *d)
{
    struct http_signature *latest;

    lock_assert_held(&signing->lock);
    for (;;) {
        latest = signing->latest;
        if (latest && monotonic_ns() - latest->made_ns < REMEMBERED_NS)
            break;
        if (!blocks)
            return -EAGAIN;
        if (signing->asking) {
            lock_wait(&signing->lock, &signing->changed);
        } else {
            int r = ask_locked(signing, d);

            if (r < 0)
                return r;
        }
    }
    if (latest->none) {
        *ret = NULL;
        return 0;
    }
    latest->holders++;
    *ret = latest;
    return 0;
}

int http_signing_get(struct http_signing *signing, bool blocks, struct http_signature **ret,
                     struct diag *d)
{
    if (!signing->signer) {
        *ret = NULL;
        return 0;
    }
    LOCK_SCOPE(&signing->lock);
    return get_locked(signing, blocks, ret, d);
}

bool http_signing_expired(struct http_signing *signing, const struct http_signature *signature)
{
    LOCK_SCOPE(&signing->lock);

    if (signing->latest && signing->latest->number == signature->number) {
        http_signature_let_go(signing->latest);
        signing->latest = NULL;
    }
    /* Long ago, in which case it was another story, or just now? */
    if (signing->expired == 0 || signature->number > signing->expired + 1)
        signing->expired = signature->number;
    return signature->number <= signing->expired;
}
