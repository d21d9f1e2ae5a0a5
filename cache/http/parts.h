/* What the files of HTTP share: loop.c runs requests (with front.c, active.c, easy.c and target.c,
 * the only files that know libcurl: active.h), transfer.c makes transfers of them, call.c texts and
 * versions of files, and http.c makes and frees all of it.
 *
 *   request:  made -> active      http_request_start(); a redirect keeps it active
 *             active -> done      done(), then release(), once each, in the loop's thread */
#ifndef EPOCHFS_CACHE_HTTP_PARTS_H
#define EPOCHFS_CACHE_HTTP_PARTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/http/http.h"
#include "cache/http/reply.h"
#include "cache/http/sign.h"
#include "cache/http/via.h"

#define HTTP_NAME_SIZE 512

enum http_end {
    HTTP_DONE,      /* the server has replied; see the status */
    HTTP_BROKEN,    /* no connection, or it broke, or gave nothing for too long */
    HTTP_UNTRUSTED, /* a retry would not help: certificates, the URL, redirects */
    HTTP_STOPPED,   /* by http_request_stop(), or head() or body() */
    HTTP_UNSIGNED,  /* there are no secrets to sign it with, because of `failed` */
};

struct http_request {
    /* The caller sets these; constant from http_request_start() on: */
    const char *url;
    const char *method;         /* NULL: GET */
    const char *const *headers; /* "Name: value", NULL-terminated; NULL: none */
    uint64_t off, len;          /* Range; len 0: none */
    const char *version;        /* a strong ETag, for If-Match; NULL: any version will do */
    int64_t limit_ns;           /* of all of it; 0: none */
    const char *post;           /* the body of a POST; NULL: none */
    bool no_sign;               /* it is not signed */
    bool plain;                 /* the same, no proxy, and no redirects */
    bool shared;                /* the front of a ring of caches may answer it */
    bool in_slices;             /* there, each slice of a file is a request; see aim() */
    /* The loop's thread calls these, no lock held. head: before the first byte of the body of a
     * reply with status 2xx; body: a piece of it. false: stop. body NULL: the body is not wanted; a
     * long one is given up. */
    /* aim: before each time that the request is sent: forget a reply that was not complete, and
     * set off and len to what is missing, up to the end of a slice of so many bytes (0: all of it).
     * false: nothing is missing. NULL: it is sent as it is. */
    bool (*aim)(struct http_request *request, uint64_t slice);
    bool (*head)(struct http_request *request);
    bool (*body)(struct http_request *request, const void *bytes, size_t n);
    void (*done)(struct http_request *request);
    void (*release)(struct http_request *request); /* NULL: done() is the last call */
    bool wants_target;
    /* Set when done() is called: */
    enum http_end end;
    struct http_signature *signature; /* held, the caller lets it go; NULL: it was unsigned */
    int failed;                       /* of HTTP_UNSIGNED: -errno */
    struct http_reply reply;
    char *target; /* with wants_target: where redirects led; the caller frees it; NULL: nowhere */
    char why[sizeof(((struct diag *)0)->text)]; /* why it ended; not set for HTTP_DONE */
    char error[2048]; /* the beginning of the body of a reply with another status than 2xx */
    size_t error_len;
    /* Set by http_request_stop() and _pause(): */
    atomic_bool stopped, pause;
    /* Belong to the loop: */
    struct http_request *next;
    struct http_active *active;
};

struct http_loop;

/* Does GET tell an ETag where HEAD tells none? */
enum http_get_tells { HTTP_GET_UNKNOWN, HTTP_GET_SAME, HTTP_GET_MORE };

/* Has ~/.netrc a user of the server? */
enum http_user { HTTP_USER_UNKNOWN, HTTP_USER_SENT, HTTP_USER_NONE };

#define NO_LIMIT (INT64_MAX / 2)

struct http {
    struct transport transport;
    /* Constant: */
    struct limiter limiter;
    int64_t timeout_ns, retry_limit_ns;
    const struct clock *clock;
    char *ca; /* an absolute path, or NULL */
    bool asks_by_reading, by_time, by_url, accepts_gzip;
    struct http_signing signing;
    struct http_via via;
    struct http_loop *loop;
    /* For those who wait for texts and versions: when the server last answered one, and when the
     * last of them gave up. Any thread. */
    _Atomic int64_t answered, gave_up;
    _Atomic int64_t waited; /* of transport.waited: by the loop */
    _Atomic enum http_get_tells get_tells;
    _Atomic enum http_user user;
};

static inline struct http *http_of(struct transport *transport)
{
    return (struct http *)((char *)transport - offsetof(struct http, transport));
}

/* ---- loop.c ---- */

/* 0, or -errno and the request is not under way. Any thread. */
int http_request_start(struct http *http, struct http_request *request);

/* As transport_stop() and transport_pause(). Call these only before release(). */
void http_request_stop(struct http *http, struct http_request *request);
void http_request_pause(struct http *http, struct http_request *request, bool paused);

/* Wake the loop, so that it looks for requests that are stopped, paused or signed. Any thread. */
void http_loop_poke(struct http *http);

/* Is this the loop's own thread? Code in it must not wait for a request. */
bool http_loop_is_here(struct http *http);

void http_loop_rest(struct http *http);

/* 0 or -ENOMEM. */
int http_loop_new(const struct http *http, struct http_loop **ret);

/* Its thread must have ended. Takes NULL. */
void http_loop_free(struct http_loop *loop);

/* ---- round.c ---- */

/* The reply is an error: how a transfer ends that gets it, with the reason in d. name: its URL in
 * messages; expected: a status. */
enum transfer_end http_request_refused(struct http *http, const struct http_request *request,
                                       const char *name, unsigned expected, struct diag *d);

/* ---- transfer.c: see struct transport_ops ---- */

int http_transfer_start(struct transport *transport, struct transfer *transfer);
void http_transfer_stop(struct transport *transport, struct transfer *transfer);
void http_transfer_pause(struct transport *transport, struct transfer *transfer, bool paused);

#endif
