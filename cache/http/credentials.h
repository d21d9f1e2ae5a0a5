/* Credentials of S3: where they come from, and that they are good when a request needs them.
 *
 * Looked for in this order: the environment, unless a profile is named; the profile in the shared
 * files; the container's endpoint; the machine's (IMDSv2). They are never given in options or URLs,
 * and never shown. */
#ifndef EPOCHFS_CACHE_HTTP_CREDENTIALS_H
#define EPOCHFS_CACHE_HTTP_CREDENTIALS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"
#include "cache/http/http.h"

struct credentials;

/* NULL: not given. */
struct credentials_options {
    const char *profile, *region;
    bool anonymous; /* requests are not signed */
};

/* Reads what does not change: profile and region. 0; -ENOENT: a profile that was named is not
 * there; or -errno with the reason in d. */
int credentials_new(const struct credentials_options *options, struct credentials **ret,
                    struct diag *d);
void credentials_free(struct credentials *credentials); /* takes NULL */

/* What endpoints are asked with; before that they are not. Before the first secret. */
void credentials_set_http(struct credentials *credentials, struct http *http);

/* Signs requests; valid as long as credentials. NULL: they are anonymous. Any thread. Secrets that
 * expire are asked for again 5 minutes before. */
struct http_signer *credentials_signer(struct credentials *credentials);

/* The region that requests are signed for. It is set only while no request is under way. */
const char *credentials_region(const struct credentials *credentials);
void credentials_set_region(struct credentials *credentials, const char *region);

/* endpoint_url of the profile; the caller frees it. 1, 0: there is none, or -errno. */
int credentials_endpoint(const struct credentials *credentials, char **ret);

/* Where the secrets that were last given come from: "environment", "profile x of
 * ~/.aws/credentials", "container endpoint", "instance endpoint", "anonymous". */
void credentials_origin(struct credentials *credentials, char *ret, size_t capacity);

#endif
