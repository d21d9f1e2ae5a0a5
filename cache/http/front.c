/* Looks after requests that were sent to the front of a ring of caches, and after the front.
 *
 * A request that gets nothing for 0.5 s is sent again 0.9 s later. Meanwhile probes are under way.
 * One must be answered at once, by the front alone; if it is not, all requests go to the origin.
 * MEMBER_PROBES are passed on to the member of the ring that has the slice. If it answers none, the
 * front notes that, and takes another member for the request that is sent again.
 *
 * The head of a reply names the member that gives it, and so does the answer to a probe. If that
 * member has given something lately, to whichever request, or answers a probe, the request is not
 * sent again: the member waits for the origin. Before there is a head nothing knows where the
 * request is. Then sending it again costs no byte, because members finish what they have begun to
 * fetch.
 *
 * A slow origin must not be asked twice. So a request goes there only if the ring gives nothing to
 * any request: for 2 s if no member answers probes, otherwise for 5 s, because members may wait for
 * slices that other nodes fetch; or if it alone gets nothing for half of timeout=. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/clock.h"
#include "cache/http/active.h"

#define FRONT_MS  INT64_C(1300) /* for an answer of the front: readers go on within 2 s */
#define MEMBER_MS INT64_C(5000)
/* max_fails of mount-scripts/peers: on a busy machine an answer may be late, but hardly two. */
#define MEMBER_PROBES 2
#define STALL_NS      INT64_C(500000000) /* without a byte: look what is wrong */
#define PROBE_NS      INT64_C(900000000) /* after that: send it again; a member has 0.8 s to answer */
/* The same, before a member has answered: the machine is busy. */
#define LATE_NS INT64_C(1300000000)
/* Without a byte for any request: the origin is asked. */
#define DEAD_NS INT64_C(2000000000)
#define SLOW_NS INT64_C(5000000000) /* the same, unless no member answers probes */

/* ---- probes ---- */

struct probe {
    struct http_request request; /* first */
    struct http *http;
    bool of_front;
    int64_t sent_ns;
    char url[512], key[96], slice[64];
    const char *header[4];
};

static void probe_done(struct http_request *request)
{
    struct probe *probe = (struct probe *)request;
    struct http_via *via = &probe->http->via;
    char why[TRANSPORT_WHY_SIZE];
    unsigned status = request->reply.status;

    if (!probe->of_front) {
        if (request->end == HTTP_DONE && status / 100 == 2)
            via->answered_ns = clock_monotonic(probe->http->clock);
        http_via_hear(probe->http, request->reply.member);
        return;
    }
    via->asking = false;
    if (request->end == HTTP_STOPPED)
        return;
    if (request->end == HTTP_DONE && status / 100 == 2) {
        via->down = false;
        return;
    }
    /* It is busy, not dead: meanwhile it has passed something on. */
    if (request->end == HTTP_BROKEN && !via->down && via->gave_ns > probe->sent_ns)
        return;
    if (request->end == HTTP_DONE && status == 403)
        snprintf(why, sizeof(why), "refuses the secret of this job (status 403)");
    else if (request->end == HTTP_DONE)
        snprintf(why, sizeof(why), "expected status 204, got %u: it is no front of peers", status);
    else
        snprintf(why, sizeof(why), "does not answer: %s", request->why);
    http_via_fail(probe->http, why);
}

static void probe_release(struct http_request *request)
{
    free(request);
}

static struct probe *probe_new(struct http *http, const char *path, int64_t limit_ms)
{
    struct probe *probe = calloc(1, sizeof(*probe));

    if (!probe)
        return NULL;
    probe->http = http;
    probe->sent_ns = clock_monotonic(http->clock);
    snprintf(probe->url, sizeof(probe->url), "%s%s", http->via.url, path);
    probe->header[0] = http->via.secret;
    probe->request = (struct http_request){.url = probe->url,
                                           .headers = probe->header,
                                           .limit_ns = limit_ms * 1000000,
                                           .plain = true,
                                           .done = probe_done,
                                           .release = probe_release};
    return probe;
}

static void probe_front(struct http *http)
{
    struct probe *probe =
        http->via.asking ? NULL : probe_new(http, "/.epochfs-peers/front", FRONT_MS);

    if (!probe)
        return;
    http->via.asking = probe->of_front = true;
    http_active_begin(http, &probe->request);
}

/* Probe the member of the ring that has a slice (UINT64_MAX: what is no data), so that the front
 * learns whether it is alive. */
static void probe_member(struct http *http, const char *key, uint64_t slice)
{
    struct probe *probe = probe_new(http, "/.epochfs-peers/member", MEMBER_MS);
    unsigned n = 0;

    if (!probe)
        return;
    if (http->via.secret)
        n++;
    snprintf(probe->key, sizeof(probe->key), "X-Epochfs-Key: %s", key);
    probe->header[n++] = probe->key;
    if (slice != UINT64_MAX) {
        snprintf(probe->slice, sizeof(probe->slice), "X-Epochfs-Slice: %" PRIu64, slice);
        probe->header[n++] = probe->slice;
    }
    http_active_begin(http, &probe->request);
}

/* ---- requests ---- */

static int64_t latest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Does no member answer the probes that the request has sent? */
static bool members_are_dead(const struct http_active *active, int64_t now)
{
    return active->asked_ns && active->http->via.answered_ns < active->asked_ns &&
           now - active->asked_ns > PROBE_NS;
}

/* Does the ring give so little that the origin must be asked? */
static bool is_starved(const struct http_active *active, int64_t now)
{
    const struct http *http = active->http;
    int64_t nothing = now - latest(active->starved_ns, http->via.gave_ns);

    return nothing > (members_are_dead(active, now) ? DEAD_NS : SLOW_NS) ||
           now - active->starved_ns > http->timeout_ns / 2;
}

/* Look after a request. It may end. */
static void watch(struct http_active *active, int64_t now)
{
    struct http *http = active->http;
    int64_t patience = STALL_NS << (active->stalls > 1 ? min_u64(active->stalls - 1, 4) : 0),
            silent;

    if (!active->via || active->paused)
        return;
    silent = now - latest(active->sent_ns, http_via_heard(http, active->request->reply.member));
    if (http->via.lost) {
        active->direct = true;
    } else if (is_starved(active, now)) {
        active->direct = true;
        http_via_trouble(http, "gives nothing");
    } else if (silent <= patience) {
        active->probed = false;
        return;
    } else if (!active->probed) {
        active->probed = true;
        if (http->via.answered_ns >= active->asked_ns)
            active->asked_ns = now;
        probe_front(http);
        for (unsigned i = 0; i < MEMBER_PROBES; i++)
            probe_member(http, active->key, active->slice);
        return;
    } else if (silent <=
               patience + (http->via.answered_ns < active->asked_ns ? LATE_NS : PROBE_NS)) {
        return;
    } else {
        active->stalls++;
    }
    http_active_resend(active);
}

void http_front_look(struct http *http, int64_t now)
{
    struct http_active *next;

    if (http->via.wants_probe) {
        http->via.wants_probe = false;
        http->via.retry_ns = now + FRONT_MS * 1000000;
        probe_front(http);
    }
    for (struct http_active *active = http->loop->active; active; active = next) {
        next = active->next;
        watch(active, now);
    }
    http->via.lost = false;
}
