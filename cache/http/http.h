/* HTTP by libcurl: the transport of http://, https:// and s3://, and requests for small texts.
 *
 * Only this folder uses libcurl. Connections are kept and reused. HTTP/2 is used where the server
 * offers it. Proxies come from the environment. TLS is verified. */
#ifndef EPOCHFS_CACHE_HTTP_HTTP_H
#define EPOCHFS_CACHE_HTTP_HTTP_H

#include <stdbool.h>

#include "base/clock.h"
#include "base/text.h"
#include "cache/stage/transport.h"

struct http;

/* Secrets that sign requests (AWS Signature Version 4), or a token that goes with them: then key_id
 * is NULL. The code that fills it in owns it, and wipes it after use. */
struct http_secret {
    char *key_id, *key, *token; /* token: NULL: none */
};

/* Gives the secrets that are valid now; the caller releases them. Blocks; may make requests itself,
 * plain ones. One thread at a time calls it; its result is remembered for some seconds. 1: none,
 * send the request unsigned; 0; or -errno with the reason in d. */
struct http_signer {
    int (*secret)(struct http_signer *signer, struct http_secret *ret, struct diag *d);
    /* The server refuses the last one: perhaps it was renewed where it is kept. Any thread. NULL:
     * ignored. */
    void (*refused)(struct http_signer *signer);
    char region[64];
    const char *header; /* "Name: value", in requests that are signed; NULL: none. Constant */
};
void http_secret_release(struct http_secret *secret);

struct http_options {
    unsigned jobs, most; /* requests at once: see limiter_init(). Texts do not count */
    unsigned timeout_s;  /* a connection fails if it is not made, or gives nothing, for so long */
    unsigned retry_limit_s; /* how long a caller waits for a server that fails; 0: no limit */
    const char *ca; /* a file of certificates to trust in place of the system's file (the system's
                       folder of certificates still counts); NULL: the system's */
    struct http_signer *signer; /* NULL: requests are not signed */
    const char *via;            /* the URL of the front of a ring of caches; NULL: none */
    const char *via_secret;     /* the file of its secret; NULL: none */
    bool by_time; /* files are known by size and time, if the server tells it: ETags differ between
                     machines that give the same bytes */
    bool by_url;  /* a URL names one version: files are known by their size. Where foreign servers
                     answer for it is remembered for some minutes */
    bool accepts_gzip; /* stored files that are packed come as they are only if gzip is accepted */
    bool asks_by_reading; /* http_stat() reads a byte: so who gets a version may read the file */
    const struct clock *clock; /* must outlive it; NULL: the real one. libcurl has a clock of its
                                  own, for the time that a connection may take to be made */
};

/* 0 or -errno with the reason in d. */
int http_new(const struct http_options *options, struct http **ret, struct diag *d);

/* Does libcurl know a user of the server, of ~/.netrc? False until a request was sent. Any thread.
 */
bool http_sends_user(const struct http *http);

/* Its transport, valid as long as http; transport_free() frees http as well. */
struct transport *http_transport(struct http *http);

/* A request for a text: a listing, a SHA256SUMS. At most `most` bytes; retried a few times, within
 * the retry limit. Once it has given up, others fail at once, until the server has answered, or for
 * the time of the limit. Blocks.
 * headers: "Name: value" lines, NULL-terminated; NULL: none; not sent to a redirect's target on
 * another host. method NULL: GET. heard: gets the head of the reply (cache/http/reply.h); NULL: not
 * wanted. led: gets where redirects led, without user info, which the caller frees; NULL: nowhere.
 */
struct http_reply;

struct http_call {
    const char *url; /* percent-encoded */
    const char *method;
    const char *const *headers;
    size_t most;
    unsigned timeout_s; /* in all; 0: as for transfers */
    unsigned tries;     /* 0: 4 */
    struct http_reply *heard;
    char **led;       /* NULL: not wanted */
    const char *post; /* the body of a POST; no redirect is followed; NULL: none */
    bool no_sign;     /* not signed */
    bool plain;       /* not signed, no proxy, no redirects: for endpoints of this machine */
};

/* ret: empty; the caller releases it, also on error, when it has the beginning of the error's body.
 * 0 and the body; -ENOENT: 404 or 410; -EPERM: 401 without a signature; -EACCES: 403, or 401 with a
 * signature; -EFBIG; -EREMOTEIO and others, with the reason (the URL without its query, what was
 * wanted and found) in d. -EDEADLK: called in data() or end() of a transfer, which is not allowed.
 */
int http_get(struct http *http, const struct http_call *call, struct text *ret, struct diag *d);

/* Begin to ask for a text that the caller may need, while it waits for something else. url: taken
 * over; NULL: no memory. tries: as in struct http_call. What cannot begin now, as while the server
 * is silent, begins when it is taken. NULL: no memory. */
struct http_ahead *http_ahead_start(struct http *http, char *url, size_t most, unsigned tries);

/* Get the text as http_get() of that URL. Frees ahead; NULL: -ENOMEM. *ret_led: where redirects
 * led, as http_call.led. */
int http_ahead_take(struct http_ahead *ahead, struct text *ret, char **ret_led, struct diag *d);

/* The text is not wanted: end the request, and free it. */
void http_ahead_drop(struct http_ahead **ahead);

/* A file whose version is asked for. */
struct http_file {
    char *url; /* the caller's, percent-encoded */
    struct remote_version version;
    int error;       /* 0 or -errno, */
    struct diag why; /* with the reason */
};

/* Ask for the versions of n files at the same time. GET asks for the first byte where HEAD is
 * refused, or tells neither ETag nor time, and where it tells no ETag but GET does. Takes 12 KiB of
 * memory a file meanwhile. Blocks, as http_get(). */
void http_stat(struct http *http, size_t n, struct http_file *file);

/* Has a text or a version been given up, and has the server answered none since then? With the
 * reason in d. Any thread. */
bool http_is_silent(const struct http *http, struct diag *d);

/* Call changed() when the front stops answering and when it answers again, with a text for the log;
 * now, if it does not answer. A thread of http calls it, no lock held. NULL: nothing. */
void http_via_listen(struct http *http, void (*changed)(bool answers, const char *text));

/* Add a text to a URL: what is not allowed in its path ('/' is allowed), or in a value of its
 * query, is percent-encoded. */
void http_encode(struct text *url, const char *text, bool path);

#endif
