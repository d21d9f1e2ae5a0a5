/* What the files of HTTP that use libcurl share; no other file includes it. Calls go one way:
 * loop.c (the thread and its lists) uses front.c (requests that go through peers) and active.c (the
 * life of one request), which uses easy.c (the libcurl handle) and target.c (which URL is asked).
 *
 * All of it runs in the loop's thread, except what has a lock or is atomic. */
#ifndef EPOCHFS_CACHE_HTTP_ACTIVE_H
#define EPOCHFS_CACHE_HTTP_ACTIVE_H

#include <curl/curl.h>
#include <pthread.h>

#include "base/lock.h"
#include "cache/http/parts.h"
#include <stdint.h>

#define HEAD_MOST    (256u << 10) /* bytes of heads that one request may receive */
#define HANDLES_KEPT 16
#define NEVER        INT64_MAX

/* A request under way. Belongs to the loop. */
struct http_active {
    struct http_active *next;
    struct http *http;
    struct http_request *request;
    CURL *easy;
    struct curl_slist *headers;
    char *url;             /* the URL asked now, without user info */
    char *user, *password; /* of the first URL, or NULL */
    bool foreign;          /* redirected to another origin */
    bool kept;             /* without asking the first URL again: see target.c */
    bool paused;
    bool held;     /* libcurl holds bytes back until it is resumed */
    bool begun;    /* head() has been called */
    bool given_up; /* we ended the request: the rest of the body is not wanted */
    unsigned redirects;
    int64_t first_sent_ns; /* when the URL was asked that gave the first of them */
    size_t head_bytes, skipped;
    bool answered;    /* the head of this URL's reply is present */
    int64_t given_ns; /* when the server last gave something; NEVER: there is no connection */
    int64_t heard_ns; /* since when the server has given less than its share: heard_bytes */
    uint64_t heard_bytes;
    int64_t deadline_ns;
    /* With the front of a ring of caches: */
    bool via;           /* the request was sent there */
    bool direct;        /* it goes to the origin from now on */
    bool probed;        /* since it was sent, because it got nothing */
    unsigned broken;    /* times that it got nothing good there, since its last byte */
    unsigned stalls;    /* times that it was sent again because it got nothing, the same */
    int64_t sent_ns;    /* when it was sent, or got its last byte */
    int64_t starved_ns; /* when it got its last byte, or was sent first */
    int64_t asked_ns;   /* since when no probe of it has been answered; 0: it has sent none */
    uint64_t slice;     /* UINT64_MAX: it asks for no data */
    char key[HTTP_KEY_SIZE];
    char *front_url; /* as the front is asked */
    char *origin;    /* scheme://host:port */
    struct curl_slist *front_headers;
    char message[CURL_ERROR_SIZE];
};

struct http_loop {
    CURLM *multi;
    struct lock lock;
    /* Guarded by lock: */
    struct http_request *in, **in_end;
    bool running, ending;
    pthread_t thread;
    /* Any thread: */
    atomic_bool poked; /* a request has been stopped or paused, or the signer has answered */
    /* For the loop's thread and http_loop_free(): */
    struct http_active *active;
    struct http_request *unsigned_ones; /* that wait for secrets */
    unsigned counted;                   /* active and not paused */
    bool multiplexes; /* the last server takes many requests on one connection, HTTP/2 */
    int64_t look_ns;  /* when to look for requests that take too long */
    struct kept_targets *targets; /* NULL: none are kept */
    CURL *idle[HANDLES_KEPT];
    unsigned n_idle;
};

/* ---- easy.c ---- */

/* Start the timeout of the server. */
void http_active_listen(struct http_active *active);

/* Set all options of the handle for the URL asked now. False: no memory, or a header is not one
 * line. */
bool http_easy_set(struct http_active *active);

/* Wipe and free the headers of the handle, which may have secrets. */
void http_easy_wipe(struct http_active *active);

/* ---- target.c ---- */

/* Ask the URL of the request. NULL, or what is wrong. */
const char *http_target_first(struct http_active *active);

/* Ask the URL again to which redirects led before, if it is kept. NULL, or what is wrong. */
const char *http_target_kept(struct http_active *active);

/* Keep the URL that is asked now, which has answered; or forget it, and ask the first one again.
 * true: the latter. */
bool http_target_settle(struct http_active *active, const char **ret_why);

/* Ask the URL that the redirect names. NULL, or why not. */
const char *http_target_next(struct http_active *active);

/* Where redirects led; the loop's thread uses it. NULL: no memory. */
struct kept_targets *kept_targets_new(void);
void kept_targets_free(struct kept_targets *kept); /* takes NULL */
void kept_target_drop(struct kept_targets *kept, const char *url);

/* Set front_url of a URL that is asked through the front. false: no memory. */
bool http_target_front(struct http_active *active);

/* ---- active.c ---- */

/* Make a request, which is in no list, active, or end it. */
void http_active_begin(struct http *http, struct http_request *request);

/* End a request that is under way. */
void http_active_cut(struct http_active *active, enum http_end end, const char *why);

/* libcurl has finished: the request ends, or goes on at another URL. */
void http_active_settle(struct http_active *active, CURLcode code);

/* Send a request that is under way again, or what is missing of it. It may end. */
void http_active_resend(struct http_active *active);

/* End a request that is not active. */
void http_request_end(struct http_request *request, enum http_end end, const char *why);

/* ---- front.c ---- */

/* Look after the front of a ring of caches, and the requests that were sent there. These may end,
 * and others begin. */
void http_front_look(struct http *http, int64_t now);

#endif
