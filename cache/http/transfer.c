/* Makes transfers of requests with a Range. The head of the reply is judged before its first byte
 * goes to data(), which gets at most len bytes. `how` is decided once, by the first that knows the
 * end: the judge, the count of bytes, or the end of the request. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "cache/http/parts.h"

struct http_transfer {
    struct http_request request; /* first */
    struct http *http;
    struct transfer *transfer;
    struct http_want wanted;
    /* A transfer is one request, or one after the other, each for a part: */
    uint64_t passed; /* bytes before the wanted ones, of a file that comes whole */
    uint64_t handed; /* bytes of this part, to data() */
    uint64_t before; /* bytes of the parts before */
    bool judged;
    bool decided;
    enum transfer_end how;
    struct diag why;
    char name[HTTP_NAME_SIZE];
};

static bool decide(struct http_transfer *t, enum transfer_end how)
{
    if (!t->decided)
        t->how = how;
    t->decided = true;
    return false;
}

/* Ask for the part of the transfer that is missing. A file that comes whole cannot be continued. */
static bool on_aim(struct http_request *request, uint64_t slice)
{
    struct http_transfer *t = (struct http_transfer *)request;
    const struct transfer *transfer = t->transfer;
    uint64_t before = t->before + t->handed;

    if (t->decided || before == transfer->len || (!t->wanted.part && before))
        return false;
    t->before = before;
    t->handed = t->passed = 0;
    t->judged = false;
    t->wanted.off = transfer->off + t->before;
    t->wanted.len = transfer->len - t->before;
    if (slice)
        t->wanted.len = min_u64(t->wanted.len, slice - t->wanted.off % slice);
    if (t->wanted.part) {
        request->off = t->wanted.off;
        request->len = t->wanted.len;
    }
    return true;
}

static bool on_head(struct http_request *request)
{
    struct http_transfer *t = (struct http_transfer *)request;
    enum transfer_end how = http_reply_judge(&request->reply, &t->wanted, t->name, &t->why);

    t->judged = true;
    if (how != TRANSFER_DONE)
        return decide(t, how);
    return true;
}

static bool transfer_on_body(struct http_request *request, const void *bytes, size_t n)
{
    struct http_transfer *t = (struct http_transfer *)request;
    bool is_part = request->reply.status == 206;
    size_t skip = is_part ? 0 : min_u64(n, t->wanted.off - t->passed),
           used = min_u64(n - skip, t->wanted.len - t->handed);
    bool all = is_part || t->wanted.off + t->wanted.len == t->wanted.version->size;

    if (skip && t->transfer->passed)
        t->transfer->passed(t->transfer, skip);
    t->passed += skip;
    if (n - skip > used && all) {
        diag_set(&t->why, 0, "%s: expected %" PRIu64 " bytes, got more", t->name, t->wanted.len);
        return decide(t, TRANSFER_AGAIN);
    }
    t->handed += used;
    if (used && !t->transfer->data(t->transfer, (const uint8_t *)bytes + skip, used)) {
        diag_set(&t->why, 0, "%s: stopped", t->name);
        return decide(t, TRANSFER_STOPPED);
    }
    /* A whole file may come where its end is not wanted. */
    return all || t->handed < t->wanted.len || decide(t, TRANSFER_DONE);
}

/* The reply is an error: decide how the transfer ends. */
static void decide_status(struct http_transfer *t)
{
    const struct http_request *request = &t->request;

    if (request->reply.status == 412 && request->version)
        diag_set(&t->why, 0,
                 "%s: has changed: its ETag was %s, is %s (status 412). If several machines answer "
                 "by this name, mount with -o version=time",
                 t->name, request->version,
                 request->reply.etag[0] ? request->reply.etag : "another");
    decide(t, http_request_refused(t->http, request, t->name, t->wanted.part ? 206 : 200, &t->why));
}

static void on_done(struct http_request *request)
{
    struct http_transfer *t = (struct http_transfer *)request;
    unsigned status = request->reply.status;

    if (t->decided) {
    } else if (request->end == HTTP_STOPPED) {
        diag_set(&t->why, 0, "%s: %s", t->name, request->why);
        decide(t, TRANSFER_STOPPED);
    } else if (request->end == HTTP_UNSIGNED) {
        diag_set(&t->why, 0, "%s: signing: %s", t->name, request->why);
        decide(t, request->failed == -EACCES ? TRANSFER_REFUSED : TRANSFER_AGAIN);
    } else if (request->end != HTTP_UNTRUSTED && request->reply.complete && status >= 300) {
        decide_status(t);
    } else if (request->end != HTTP_DONE) {
        diag_set(&t->why, 0, "%s: after %" PRIu64 " of %" PRIu64 " bytes: %s", t->name,
                 t->before + t->handed, t->transfer->len, request->why);
        decide(t, request->end == HTTP_UNTRUSTED ? TRANSFER_REFUSED : TRANSFER_AGAIN);
    } else if (t->judged || on_head(request)) {
        if (t->handed < t->wanted.len)
            diag_set(&t->why, 0, "%s: expected %" PRIu64 " bytes, got %" PRIu64, t->name,
                     t->wanted.len, t->handed);
        decide(t, t->handed < t->wanted.len ? TRANSFER_AGAIN : TRANSFER_DONE);
    }
    if (t->how == TRANSFER_CHANGED && t->http->transport.changed)
        t->http->transport.changed(t->http->transport.changed_user);
    t->transfer->end(t->transfer, t->how, request->reply.retry_ms, &t->why);
}

static void on_release(struct http_request *request)
{
    struct http_transfer *t = (struct http_transfer *)request;

    http_signature_let_go(request->signature);
    free(t);
}

static struct http_transfer *transfer_new(struct http *http, struct transfer *transfer)
{
    struct http_transfer *t = calloc(1, sizeof(*t));

    if (!t)
        return NULL;
    t->http = http;
    t->transfer = transfer;
    t->wanted = (struct http_want){.version = transfer->version,
                                   .off = transfer->off,
                                   .len = transfer->len,
                                   .part = !transfer->version->whole_only,
                                   .by_time = http->by_time,
                                   .by_url = http->by_url};
    if (!http->by_url && !http_is_by_time(transfer->version, http->by_time) &&
        http_etag_is_strong(transfer->version->etag))
        t->request.version = transfer->version->etag;
    http_url_name(transfer->url, t->name, sizeof(t->name));
    t->request.url = transfer->url;
    /* What a ring of caches keeps must be one version, byte for byte. */
    t->request.shared = t->request.in_slices = t->wanted.part && t->request.version;
    t->request.aim = on_aim;
    t->request.head = on_head;
    t->request.body = transfer_on_body;
    t->request.done = on_done;
    t->request.release = on_release;
    return t;
}

int http_transfer_start(struct transport *transport, struct transfer *transfer)
{
    struct http *http = http_of(transport);
    struct http_transfer *t;
    int r;

    if (transfer->len == 0 || transfer->off > transfer->version->size ||
        transfer->len > transfer->version->size - transfer->off)
        return -EINVAL;
    t = transfer_new(http, transfer);
    if (!t)
        return -ENOMEM;
    transfer->impl = t;
    r = http_request_start(http, &t->request);
    if (r < 0)
        on_release(&t->request);
    return r;
}

void http_transfer_stop(struct transport *transport, struct transfer *transfer)
{
    struct http_transfer *t = transfer->impl;

    http_request_stop(http_of(transport), &t->request);
}

void http_transfer_pause(struct transport *transport, struct transfer *transfer, bool paused)
{
    struct http_transfer *t = transfer->impl;

    http_request_pause(http_of(transport), &t->request, paused);
}
