/* Looks after requests that were sent to the front of a ring of caches, and after the front.
 *
 * A request that gets nothing for 0.5 s is sent again 0.9 s later. Meanwhile probes are under way.
 * One must be answered at once, by the front alone; if it is not, all requests go to the origin.
 * MEMBER_PROBES are passed on to the member of the ring that has the slice. No code waits for their
 * answers: the front notes that the member answers none, and takes another one for the request that
 * is sent again. If members are alive and it is the origin that is slow, sending again costs no
 * byte: members finish and keep what they have begun to fetch.
 *
 * A request that has got nothing for 5 s, whatever timeout= is, goes to the origin. Not earlier: it
 * may wait for a slice that another node fetches from a slow origin, which must not be asked twice.
 */
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
#define STARVED_NS    UINT64_C(5000000000) /* without a byte: the origin is asked */

/* ---- probes ---- */

struct probe {
    struct http_request request; /* first */
    struct http *http;
    bool of_front;
    char url[512], key[96], slice[64];
    const char *header[4];
};

static void probe_done(struct http_request *request)
{
    struct probe *probe = (struct probe *)request;
    struct http_via *via = &probe->http->via;
    char why[TRANSPORT_WHY_SIZE];
    unsigned status = request->reply.status;

    if (!probe->of_front)
        return;
    via->asking = false;
    if (request->end == HTTP_STOPPED)
        return;
    if (request->end == HTTP_DONE && status / 100 == 2) {
        via->down = false;
        return;
    }
    if (request->end == HTTP_DONE && status == 403)
        snprintf(why, sizeof(why), "refuses the secret of this job (status 403)");
    else if (request->end == HTTP_DONE)
        snprintf(why, sizeof(why), "want status 204, found %u: it is no front of peers", status);
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

static void probe_both(struct http *http, const char *key, uint64_t slice)
{
    probe_front(http);
    for (unsigned i = 0; i < MEMBER_PROBES; i++)
        probe_member(http, key, slice);
}

/* ---- requests ---- */

/* Look after a request. It may end. */
static void watch(struct http_active *active, int64_t now)
{
    struct http *http = active->http;
    int64_t patience = STALL_NS << (active->stalls > 1 ? min_u64(active->stalls - 1, 4) : 0);

    if (!active->via || active->paused)
        return;
    if (http->via.lost) {
        active->direct = true;
    } else if ((uint64_t)(now - active->starved_ns) >
               min_u64((uint64_t)http->timeout_ns / 2, STARVED_NS)) {
        active->direct = true;
        http_via_trouble(http, "gives nothing");
    } else if (now - active->sent_ns <= patience) {
        return;
    } else if (!active->probed) {
        active->probed = true;
        probe_both(http, active->key, active->slice);
        return;
    } else if (now - active->sent_ns <= patience + PROBE_NS) {
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
