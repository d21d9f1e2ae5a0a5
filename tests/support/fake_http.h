/* HTTP without a network: answers that a test gives, and the requests that were made. Linked into a
 * test as an object, it takes the place of cache/http/http.c. */
#ifndef EPOCHFS_TESTS_SUPPORT_FAKE_HTTP_H
#define EPOCHFS_TESTS_SUPPORT_FAKE_HTTP_H

#include "cache/http/http.h"

/* The first with that URL and method is given. */
struct fake_answer {
    const char *url, *method; /* method NULL: GET, and what http_stat() asks */
    int error;                /* 0 or -errno */
    const char *body;         /* NULL: "" */
    struct remote_version version;
};

#define FAKE_REQUESTS 64

struct fake_http {
    const struct fake_answer *answer; /* [n] */
    size_t n;
    size_t requests; /* texts that were asked for; those ahead when they are taken */
    size_t aheads;   /* texts that were asked for ahead */
    struct {
        char url[512], method[8], header[256]; /* the first header, "": none */
        bool plain;
        unsigned timeout_s, tries;
    } request[FAKE_REQUESTS];
    size_t stats;               /* files that were asked for */
    struct http_signer *signer; /* of the latest http_new() */
    char region[64];            /* its region at the latest request */
};
extern struct fake_http fake_http;

/* Forget requests, give these answers from now on; all others are 404. */
void fake_http_set(const struct fake_answer *answer, size_t n);

#endif
