/* The front of a ring of caches, on this machine, that requests go through (-o via=URL;
 * mount-scripts/peers runs it).
 *
 * A request that the ring can answer goes to the front as to a proxy: its Host and its signature
 * are those for the origin, and X-Epochfs-... headers, which only the ring sees, say what is asked
 * for. Each request for data lies in one slice of a file. If the front is dead or hangs, requests
 * go to the origin; when it answers again, new ones go there again.
 *
 *   up -> down   http_via_fail(), http_via_rest()
 *   down -> up   a probe, sent with a new request when the front has been down for a while, is
 *                answered */
#ifndef EPOCHFS_CACHE_HTTP_VIA_H
#define EPOCHFS_CACHE_HTTP_VIA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/diag.h"
#include "base/lock.h"
#include "cache/http/http.h"

#define HTTP_SLICE    (UINT64_C(1) << 20) /* bytes; that of mount-scripts/peers */
#define HTTP_KEY_SIZE 65
#define HTTP_MEMBERS  32

/* A member of the ring, as the front calls it. */
struct http_member {
    char name[64];    /* "": none */
    int64_t heard_ns; /* when it last gave something, or answered a probe */
};

struct http_via {
    /* Constant: */
    char *url;      /* of the front, without '/' at its end; NULL: there is none */
    char *secret;   /* a header's line; NULL: none */
    uid_t users[3]; /* who may run the front: root, this user, and the owner of the secret */
    struct lock lock;
    /* Guarded by lock: */
    void (*changed)(bool answers, const char *text);
    bool failed;       /* it was reported that the front fails */
    int64_t failed_ns; /* when it failed last */
    char why[TRANSPORT_WHY_SIZE];
    /* Any thread: */
    _Atomic uint64_t bytes; /* of bodies, from the front */
    /* Belong to the loop's thread: */
    bool down;
    bool lost;        /* requests at the front must go elsewhere */
    bool wants_probe; /* of the front, while it is down */
    bool asking;      /* such a probe is under way */
    bool is_strange;  /* another user listened on its port when a connection was wanted last */
    int64_t retry_ns; /* when it wants one */
    /* 0: never */
    int64_t gave_ns;     /* when something of a reply last came through the front */
    int64_t answered_ns; /* when a member last answered a probe */
    struct http_member member[HTTP_MEMBERS]; /* the latest ones */
    unsigned next_member;
};

/* secret_file: NULL: none. 0, or -errno with the reason in d, without the secret. */
int http_via_init(struct http_via *ret, const char *url, const char *secret_file, struct diag *d);
void http_via_release(struct http_via *via);

/* What the ring calls a file: a hash of the origin and of the URL's path and query, of the latter
 * without the parts that sign it. origin: "https://host:443". 0 or -ENOMEM. */
int http_via_key(const char *origin, const char *url, char ret[static HTTP_KEY_SIZE]);

/* See struct transport_ops. */
bool http_via_peers(struct transport *transport, struct transport_peers *ret);

/* ---- for the loop's thread ---- */

/* May requests and the secret be sent to who listens on that address? */
bool http_via_may_ask(struct http *http, const struct sockaddr *address);

/* Do requests go to the front? If not for a while, it is probed. */
bool http_via_is_up(struct http *http);

/* The front does not answer: do without it for a while; requests that are there go to the origin.
 */
void http_via_fail(struct http *http, const char *why);

/* The front refuses requests: do without it for a while. */
void http_via_rest(struct http *http, const char *why);

/* Report that a request could not be answered there, and goes to the origin; why NULL: that the
 * front works again, if it has not failed for a while. */
void http_via_trouble(struct http *http, const char *why);

/* A member has given something (name "": it is unknown which), now. */
void http_via_hear(struct http *http, const char *name);

/* When it last gave something; 0: not lately. */
int64_t http_via_heard(struct http *http, const char *name);

/* ---- who listens on a port ---- */

/* Who listens on a port of this machine: /proc/net/tcp and tcp6. */

/* Is a line of such a table a socket that listens on the address, or on all addresses, and on its
 * port? *ret_uid: whose it is. Pure; any text may come. */
bool listener_line(const char *line, const struct sockaddr *address, uid_t *ret_uid);

/* Do only these users listen there? False even if no process does. *ret_uid: another user who does;
 * unchanged if there is none. True where the tables cannot be read. */
bool listener_is_of(const struct sockaddr *address, const uid_t *users, size_t n, uid_t *ret_uid);

#endif
