/* What the files of HTTP that know libcurl share; nobody else includes it. Calls go one way: loop.c
 * (the thread and its lists) uses active.c (the life of one request), and that uses easy.c (the
 * handle of libcurl) and target.c (which URL is asked).
 *
 * All of it runs in the loop's thread, but for what has a lock or is atomic. */
#ifndef EPOCHFS_CACHE_HTTP_ACTIVE_H
#define EPOCHFS_CACHE_HTTP_ACTIVE_H

#include <curl/curl.h>
#include <pthread.h>

#include "base/lock.h"
#include "cache/http/parts.h"

#define HEAD_MOST    (256u << 10) /* bytes of heads that one request may cost */
#define HANDLES_KEPT 16
#define NEVER        INT64_MAX

/* A request that is under way. The loop's. */
struct http_active {
    struct http_active *next;
    struct http *http;
    struct http_request *request;
    CURL *easy;
    struct curl_slist *headers;
    char *url;             /* that is asked now, without user info */
    char *user, *password; /* of the first URL, or NULL */
    bool foreign;          /* redirected to another origin */
    bool paused;
    bool begun;    /* head() has been called */
    bool given_up; /* the rest of the body is not wanted: we have ended it */
    unsigned redirects;
    size_t head_bytes, skipped;
    bool answered;    /* the head of the reply is here, of this URL */
    int64_t given_ns; /* when the server gave something; NEVER: there is no connection */
    int64_t heard_ns; /* since when it has given less than its share: heard_bytes */
    uint64_t heard_bytes;
    int64_t deadline_ns;
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
    atomic_bool poked; /* a request has been stopped or paused */
    /* The loop's thread, and http_loop_free(): */
    struct http_request *waiting, **waiting_end;
    struct http_active *active;
    unsigned counted; /* active and not paused */
    bool multiplexes; /* the last server: many requests on one connection, HTTP/2 */
    int64_t look_ns;  /* when to look for requests that take too long */
    CURL *idle[HANDLES_KEPT];
    unsigned n_idle;
};

/* ---- easy.c ---- */

/* From now on the server has a timeout. */
void http_active_listen(struct http_active *active);

/* Set all options of the handle for the URL that is asked now. False: no memory, or a header is no
 * line. */
bool http_easy_set(struct http_active *active);

/* Free the headers of the handle; there may be secrets in them. */
void http_easy_wipe(struct http_active *active);

/* ---- target.c ---- */

/* The URL of the request is the one that is asked. NULL, or what is wrong. */
const char *http_target_first(struct http_active *active);

/* Go where the reply says. NULL, or why not. */
const char *http_target_next(struct http_active *active);

/* ---- active.c ---- */

/* Make a request active, or end it. It is in no list. */
void http_active_begin(struct http *http, struct http_request *request);

/* End one that is under way. */
void http_active_cut(struct http_active *active, enum http_end end, const char *why);

/* libcurl has done what it could: the request ends, or goes on at another URL. */
void http_active_settle(struct http_active *active, CURLcode code);

/* End a request that is not active. */
void http_request_end(struct http_request *request, enum http_end end, const char *why);

#endif
