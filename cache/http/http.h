/* HTTP by libcurl: the transport of http://, https:// and s3://, and requests for small texts.
 *
 * This is the only part that knows libcurl. Connections are kept and used again; HTTP/2 is used
 * where the server offers it; proxies are taken from the environment. TLS is verified. */
#ifndef EPOCHFS_CACHE_HTTP_HTTP_H
#define EPOCHFS_CACHE_HTTP_HTTP_H

#include "base/text.h"
#include "cache/stage/transport.h"

struct http;

/* Of a signed request (AWS Signature Version 4). Owned by whoever gives it; wiped after use. */
struct http_secret {
    char *key_id, *key, *token; /* token: NULL: none */
};

/* Gives the secrets that are valid now; the caller of it releases them. Blocks; may itself make
 * requests that are plain. Called by one thread at a time; what it gives is remembered for some
 * seconds. 1: none, send the request unsigned; 0; or -errno with the reason in d. */
struct http_signer {
    int (*secret)(struct http_signer *signer, struct http_secret *ret, struct diag *d);
    char region[64];
};
void http_secret_release(struct http_secret *secret);

struct http_options {
    unsigned jobs;      /* requests at once, at least 2; those that are paused, and texts, do not
                           wait for a place */
    unsigned sure_jobs; /* that any server takes: if it refuses some of more, no more are tried; 0:
                           jobs */
    unsigned timeout_s; /* a connection that is not made, or that gives nothing for so long, has
                           failed */
    const char *ca;     /* a file of certificates to trust in place of the system's file (its folder
                           of certificates counts still); NULL: the system's */
    struct http_signer *signer; /* NULL: requests are not signed */
};

/* 0 or -errno with the reason in d. */
int http_new(const struct http_options *options, struct http **ret, struct diag *d);

/* Its transport: valid as long as http; transport_free() frees all. */
struct transport *http_transport(struct http *http);

/* A text: a listing, a SHA256SUMS. At most `most` bytes; retried a few times. Blocks. headers:
 * "Name: value" lines, NULL-terminated; NULL: none; not sent to where a redirect leads if that is
 * another host. method NULL: GET. */
struct http_call {
    const char *url; /* percent-encoded */
    const char *method;
    const char *const *headers;
    size_t most;
    unsigned timeout_s; /* in all; 0: as for transfers */
    unsigned tries;     /* 0: 4 */
    bool plain;         /* not signed, no proxy: endpoints of the machine */
};

/* ret: empty; the caller releases it, also on error: then it has the beginning of what the server
 * said with the error. 0 and the body; -ENOENT: 404 or 410; -EACCES: 401 or 403; -EFBIG; -EREMOTEIO
 * and others, with the reason (the URL without its query, what was wanted and found) in d. Not to
 * be called in data() or end() of a transfer: -EDEADLK. */
int http_get(struct http *http, const struct http_call *call, struct text *ret, struct diag *d);

/* A text that is perhaps wanted, asked for while something else is waited for. Of call, url must
 * live until it ends. NULL: that cannot be; then http_get() it. */
struct http_ahead *http_ahead_start(struct http *http, const struct http_call *call);

/* As http_get(), of that call. Frees it. */
int http_ahead_take(struct http_ahead *ahead, struct text *ret, struct diag *d);

/* It is not wanted. Takes NULL. */
void http_ahead_drop(struct http_ahead *ahead);

/* What is known of n files, asked for at the same time. *ret_error[i]: 0 or -errno; reasons in
 * why[i]. A server that refuses HEAD is asked for the first byte. Blocks, as http_get(). */
void http_stat(struct http *http, size_t n, const char *const *urls, struct remote_version *ret,
               int *ret_error, struct diag *why);

/* Percent-encode what must not stand in the path of a URL ('/' may), or in a value of its query;
 * the caller frees *ret. 0 or -ENOMEM. */
int http_encode(const char *text, bool path, char **ret);

#endif
