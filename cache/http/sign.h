/* The secrets that sign requests: remembered for some seconds, shared by all requests under way,
 * wiped when the last one releases them. */
#ifndef EPOCHFS_CACHE_HTTP_SIGN_H
#define EPOCHFS_CACHE_HTTP_SIGN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/lock.h"
#include "cache/http/http.h"

/* Constant while a caller holds it. */
struct http_signature {
    _Atomic unsigned holders;
    uint64_t number; /* counts up */
    int64_t made_ns;
    bool none; /* requests go unsigned */
    char region[64];
    const char *header; /* as in struct http_signer */
    struct http_secret secret;
};

/* A wait for a signature that occupies no thread. */
struct http_signing_wait {
    struct http_signing_wait *next;
    /* Called once, in the signing thread, no lock held. signature: the callee must release it, or
     * NULL; r: as of http_signing_get(). */
    void (*ready)(struct http_signing_wait *wait, struct http_signature *signature, int r,
                  const struct diag *d);
};

struct http_signing {
    struct http_signer *signer; /* constant; NULL: nothing is signed */
    const struct clock *clock;  /* constant */
    struct lock lock;
    pthread_cond_t changed;
    /* Guarded by lock: */
    bool asking;                   /* a thread asks the signer */
    struct http_signature *latest; /* held; NULL: none, or no longer valid */
    uint64_t number, expired; /* expired: the number of the first that the server called expired */
    struct http_signing_wait *waiting;
    bool running, ending; /* the signing thread */
    pthread_t thread;
};

void http_signing_init(struct http_signing *ret, struct http_signer *signer,
                       const struct clock *clock);
void http_signing_release(struct http_signing *signing);

/* Get a signature that is valid now; NULL: send the request unsigned. blocks: ask the signer if
 * none is remembered. 0; -EAGAIN: it would block; or -errno with the reason in d. No lock held. */
int http_signing_get(struct http_signing *signing, bool blocks, struct http_signature **ret,
                     struct diag *d);

/* The same in the signing thread, which starts when it is first needed. 0, or -errno and the wait
 * has not begun. */
int http_signing_later(struct http_signing *signing, struct http_signing_wait *wait);

/* Stop waiting. true; false: ready() has been called, or is about to be. */
bool http_signing_forget(struct http_signing *signing, struct http_signing_wait *wait);

void http_signing_rest(struct http_signing *signing); /* end the thread; there must be no waits */

void http_signature_let_go(struct http_signature *signature); /* takes NULL */

/* The server says that the secrets have expired (or that the clocks differ). Should the caller
 * retry with others? Not if secrets fetched after the first such answer get it as well. */
/* Do status and code (of S3) of a reply say so? signature NULL: no. */
bool http_is_of_secret(const struct http_signature *signature, unsigned status, const char *code);
bool http_signing_expired(struct http_signing *signing, const struct http_signature *signature);

#endif
