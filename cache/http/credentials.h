/* Credentials of S3: where they come from, and keeping them valid.
 *
 * Places, in this order: the environment, unless a profile is named; a role that the environment
 * names; the profile in the shared files; the container's endpoint; the machine's (IMDSv2). For
 * Google Cloud Storage, before all others: a token in the environment, and that of the machine's
 * service account, if the environment says where its endpoint is. Options
 * and URLs never have credentials, and messages never show them. */
#ifndef EPOCHFS_CACHE_HTTP_CREDENTIALS_H
#define EPOCHFS_CACHE_HTTP_CREDENTIALS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/diag.h"
#include "cache/http/http.h"

struct credentials;

/* NULL: not given. */
struct credentials_options {
    const char *profile, *region;
    const char *header; /* see struct http_signer; copied */
    bool anonymous;     /* requests are not signed */
    bool google;        /* a token of Google's counts first, if the environment asks for it */
    /* In the place of all others: find a token, NULL: there is none; origin: what it is. 0 or
     * -errno with the reason in d. */
    int (*find_token)(char **ret, char *ret_origin, size_t capacity, struct diag *d);
    const struct clock *clock; /* must outlive the credentials; NULL: the real one */
};

/* Reads what does not change: profile and region. 0; -ENOENT: the named profile is missing; or
 * -errno with the reason in d. */
int credentials_new(const struct credentials_options *options, struct credentials **ret,
                    struct diag *d);
void credentials_free(struct credentials *credentials); /* takes NULL */

/* Set the HTTP that asks the endpoints; without it they are not asked. Call it before the first
 * secret is needed. */
void credentials_set_http(struct credentials *credentials, struct http *http);

/* The signer of requests; valid as long as credentials. NULL: requests are anonymous. Any thread.
 * It gets secrets that expire again 5 minutes before they do. Its functions expect what struct
 * http_signer says: one thread at a time wants a secret. */
struct http_signer *credentials_signer(struct credentials *credentials);

/* The region that requests are signed for. Set it only while no request is under way. */
const char *credentials_region(const struct credentials *credentials);
void credentials_set_region(struct credentials *credentials, const char *region);

/* endpoint_url of the profile; the caller frees it. 1; 0: there is none; or -errno. */
int credentials_endpoint(const struct credentials *credentials, char **ret);

/* The place of the last secrets given: "environment", "profile x of ~/.aws/credentials", "container
 * endpoint", "instance endpoint", "anonymous". */
void credentials_origin(struct credentials *credentials, char *ret, size_t capacity);

#endif
