/* HTTP without a network: gives the answers that a test sets, and records the requests. As an
 * object linked into a test it replaces cache/http/http.c. */
#ifndef EPOCHFS_TESTS_SUPPORT_FAKE_HTTP_H
#define EPOCHFS_TESTS_SUPPORT_FAKE_HTTP_H

#include "cache/http/http.h"

/* A request gets the first answer with its URL and method. */
struct fake_answer {
    const char *url, *method; /* method NULL: GET, and the requests of http_stat() */
    int error;                /* 0 or -errno */
    const char *body;         /* NULL: "" */
    struct remote_version version;
};

/* What is said besides with the answer for a URL; NULL: "". */
struct fake_heard {
    const char *url, *next, *code, *target; /* target: where redirects led */
};

#define FAKE_REQUESTS 64

/* Answers of a server that a test makes up: a request for a text that no answer is set for. 0 and a
 * text, or -errno. */
extern int (*fake_http_serve)(const char *url, struct text *ret);

struct fake_http {
    const struct fake_answer *answer; /* [n] */
    size_t n;
    const struct fake_heard *heard; /* [n_heard], set after fake_http_set() */
    size_t n_heard;
    size_t requests; /* requests for texts; one made ahead counts when it is taken */
    size_t aheads;   /* requests for texts ahead, but those that are taken at once */
    struct {
        char url[512], method[8], header[256]; /* the first header, "": none */
        char post[512];
        bool plain;
        unsigned timeout_s, tries;
    } request[FAKE_REQUESTS];
    size_t stats;               /* requests of http_stat() */
    struct http_signer *signer; /* of the latest http_new() */
    char region[64];            /* its region at the latest request */
};
extern struct fake_http fake_http;

/* Forget the requests, and give these answers from now on; any other request gets 404. */
void fake_http_set(const struct fake_answer *answer, size_t n);

#endif
