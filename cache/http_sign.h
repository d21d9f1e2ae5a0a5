/* The secrets that requests are signed with: remembered for some seconds, shared by all requests
 * that are under way, wiped when the last one lets them go. */
#ifndef EPOCHFS_CACHE_HTTP_SIGN_H
#define EPOCHFS_CACHE_HTTP_SIGN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/lock.h"
#include "cache/http.h"

/* Constant while it is held. */
struct http_signature {
    _Atomic unsigned holders;
    uint64_t number; /* they count up */
    int64_t made_ns;
    bool none; /* requests go unsigned */
    char region[64];
    struct http_secret secret;
};

struct http_signing {
    struct http_signer *signer; /* constant; NULL: nothing is signed */
    struct lock lock;
    pthread_cond_t changed;
    /* Guarded by lock: */
    bool asking;                   /* somebody asks the signer */
    struct http_signature *latest; /* held; NULL: none, or no longer good */
    uint64_t number, expired;      /* expired: the number of the first that the server called so */
};

void http_signing_init(struct http_signing *ret, struct http_signer *signer);
void http_signing_release(struct http_signing *signing);

/* A signature that is good now; NULL: send the request unsigned. blocks: ask the signer where none
 * is remembered. 0; -EAGAIN: it would block; or -errno with the reason in d. No lock held. */
int http_signing_get(struct http_signing *signing, bool blocks, struct http_signature **ret,
                     struct diag *d);
void http_signature_let_go(struct http_signature *signature); /* takes NULL */

/* The server says that the secrets have expired (or the clocks differ). Is it worth to try again,
 * with others? Not if those that were asked for after the first such answer get it, too. */
bool http_signing_expired(struct http_signing *signing, const struct http_signature *signature);

#endif
