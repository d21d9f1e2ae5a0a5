/* The secrets that sign requests: remembered for some seconds, shared by all requests under way,
 * wiped when the last one lets them go. */
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

struct http_signing {
    struct http_signer *signer;          /* constant; NULL: nothing is signed */
    const struct clock *clock;           /* constant */
    void (*answered)(struct http *http); /* constant: the signer has; called in the thread */
    struct lock lock;
    /* Guarded by lock: */
    bool asking;                   /* the thread asks the signer */
    int failed;                    /* -errno: it did not get any; 0: it did */
    struct diag why;               /* with the reason */
    struct http_signature *latest; /* held; NULL: none, or no longer valid */
    uint64_t number, expired; /* expired: the number of the first that the server called expired */
    /* Belong to the loop's thread: */
    bool started; /* the thread, which has not been joined */
    pthread_t thread;
};

void http_signing_init(struct http_signing *ret, struct http_signer *signer,
                       const struct clock *clock, void (*answered)(struct http *http));
void http_signing_release(struct http_signing *signing);

/* Get a signature that is valid now, for the loop's thread; NULL: send the request unsigned. 0;
 * -EAGAIN: a thread asks the signer, and calls answered() when it is done; or -ENOMEM. */
int http_signing_get(struct http *http, struct http_signature **ret);

/* How the thread's last question has ended: 0; -EAGAIN: it has not; or -errno with the reason in d.
 */
int http_signing_result(struct http_signing *signing, struct diag *d);

void http_signing_rest(struct http_signing *signing); /* end the thread; no request may wait */

void http_signature_let_go(struct http_signature *signature); /* takes NULL */

/* The server says that the secrets have expired (or that the clocks differ). Should the caller
 * retry with others? Not if secrets fetched after the first such answer get it as well. */
/* Do status and code (of S3) of a reply say so? signature NULL: no. */
bool http_is_of_secret(const struct http_signature *signature, unsigned status, const char *code);
bool http_signing_expired(struct http_signing *signing, const struct http_signature *signature);

#endif
