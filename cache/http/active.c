/* The life of an active request: it gets a libcurl handle, is redirected, and ends.
 *
 * A request leaves the loop's lists before done() is called, so done() may free it and start
 * others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/scope.h"
#include "cache/http/active.h"

#define REDIRECTS   10
#define BROKEN_MOST 2 /* bad answers of the front to one request */

static void handle_give_back(struct http_loop *loop, CURL *easy)
{
    if (!easy)
        return;
    curl_easy_reset(easy);
    if (loop->n_idle < HANDLES_KEPT)
        loop->idle[loop->n_idle++] = easy;
    else
        curl_easy_cleanup(easy);
}

/* End a request that is not active. */
void http_request_end(struct http_request *request, enum http_end end, const char *why)
{
    void (*release)(struct http_request * request) = request->release;

    request->end = end;
    snprintf(request->why, sizeof(request->why), "%s", why);
    request->done(request);
    if (release)
        release(request);
}

/* End the request; its handle has left the multi handle. */
static void finish(struct http_active *active, enum http_end end, const char *why)
{
    struct http_loop *loop = active->http->loop;
    struct http_active **at = &loop->active;
    struct http_request *request = active->request;

    while (*at != active)
        at = &(*at)->next;
    *at = active->next;
    loop->counted -= !active->paused;
    handle_give_back(loop, active->easy);
    http_easy_wipe(active);
    if (request->wants_target && active->redirects && active->url)
        request->target = strdup(active->url);
    if (active->foreign && active->url && strchr(active->url, '?'))
        request->error_len = 0; /* its text may repeat the query, which may be a signature */
    curl_free(active->url);
    curl_free(active->user);
    if (active->password)
        explicit_bzero(active->password, strlen(active->password));
    curl_free(active->password);
    curl_free(active->front_url);
    free(active->origin);
    free(active);
    http_request_end(request, end, why);
}

/* ---- sending, to the front of a ring of caches or to the origin ---- */

enum sending { SENDING, NOTHING_MISSING, FAILED };

/* Send the request, or what is missing of it. FAILED: it has ended. */
static enum sending send_it(struct http_active *active)
{
    struct http *http = active->http;
    struct http_request *request = active->request;

    active->via = http->via.url && request->shared && !request->plain && !active->foreign &&
                  !active->direct && http_via_is_up(http);
    if (request->aim && !request->aim(request, active->via ? HTTP_SLICE : 0))
        return NOTHING_MISSING;
    request->reply = (struct http_reply){.status = 0};
    request->error_len = 0;
    active->skipped = 0;
    active->begun = active->given_up = active->probed = active->held = false;
    active->sent_ns = clock_monotonic(http->clock);
    if (active->easy && http_easy_set(active) &&
        curl_multi_add_handle(http->loop->multi, active->easy) == CURLM_OK)
        return SENDING;
    finish(active, HTTP_BROKEN, "it cannot be sent: out of memory, or a header is not one line");
    return FAILED;
}

/* Send a request of which something is missing. Its handle has left the multi handle. */
static void send_rest(struct http_active *active)
{
    if (send_it(active) == NOTHING_MISSING)
        finish(active, HTTP_DONE, "");
}

void http_active_resend(struct http_active *active)
{
    curl_multi_remove_handle(active->http->loop->multi, active->easy);
    send_rest(active);
}

/* The front has not given what was asked for: ask it again, then the origin. The handle has
 * left the multi handle. */
static void send_again(struct http_active *active, const char *why)
{
    if (++active->broken >= BROKEN_MOST) {
        active->direct = true;
        http_via_trouble(active->http, why);
    }
    send_rest(active);
}

void http_active_begin(struct http *http, struct http_request *request)
{
    struct http_loop *loop = http->loop;
    struct http_active *active;
    const char *why;

    if (atomic_load(&request->stopped)) {
        http_request_end(request, HTTP_STOPPED, "stopped");
        return;
    }
    active = calloc(1, sizeof(*active));
    if (!active) {
        http_request_end(request, HTTP_BROKEN, "out of memory");
        return;
    }
    active->http = http;
    active->request = request;
    active->paused = atomic_load(&request->pause);
    active->deadline_ns =
        request->limit_ns ? clock_monotonic(http->clock) + request->limit_ns : NEVER;
    active->easy = loop->n_idle > 0 ? loop->idle[--loop->n_idle] : curl_easy_init();
    active->next = loop->active;
    loop->active = active;
    loop->counted += !active->paused;
    active->starved_ns = clock_monotonic(http->clock);
    why = http_target_first(active);
    if (!why)
        why = http_target_kept(active);
    if (why)
        finish(active, HTTP_UNTRUSTED, why);
    else
        send_rest(active);
}

/* End a request that is under way. */
void http_active_cut(struct http_active *active, enum http_end end, const char *why)
{
    curl_multi_remove_handle(active->http->loop->multi, active->easy);
    if (end == HTTP_BROKEN && active->kept) /* the server that sent it there may know another */
        kept_target_drop(active->http->loop->targets, active->request->url);
    finish(active, end, why);
}

static enum http_end active_end_of(CURLcode code)
{
    switch (code) {
    case CURLE_OK:
        return HTTP_DONE;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CRL_BADFILE:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
    case CURLE_URL_MALFORMAT:
        return HTTP_UNTRUSTED;
    default:
        return HTTP_BROKEN;
    }
}

/* Follow the redirect of the reply. */
static void redirect(struct http_active *active)
{
    int64_t now = clock_monotonic(active->http->clock), timeout = active->http->timeout_ns;
    const char *why;

    if (!active->redirects)
        active->first_sent_ns = active->sent_ns;
    if (now - active->first_sent_ns > timeout) {
        active->request->reply = (struct http_reply){0}; /* it has not answered yet */
        finish(active, HTTP_BROKEN, "too slow: its redirects take longer than one reply may");
        return;
    }
    if (active->request->post || active->request->plain)
        why = "redirected, with a secret in its body or to get one";
    else
        why = active->redirects++ < REDIRECTS ? http_target_next(active) : "too many redirects";
    if (why) {
        finish(active, HTTP_UNTRUSTED, why);
        return;
    }
    send_rest(active);
}

/* Why a reply through the front is none; NULL: it is one. */
static const char *front_failed(const struct http_active *active, CURLcode code)
{
    static const struct {
        const char *word, *why;
    } words[] = {
        {"refused", "refuses the secret of this job"},
        {"unknown", "does not know this origin"},
        {"gone", "no peer answers"},
        {"origin", "a peer cannot reach the origin"},
    };
    const struct http_reply *reply = &active->request->reply;

    if (code != CURLE_OK && !active->given_up)
        return active->message[0] ? active->message : curl_easy_strerror(code);
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(reply->peers, words[i].word) == 0)
            return words[i].why;
    return reply->peers[0] ? "cannot answer" : NULL;
}

/* A request that was sent to the front is done there. false: it goes on. */
static bool front_is_done(struct http_active *active, CURLcode code)
{
    const struct http_reply *reply = &active->request->reply;
    const char *why = front_failed(active, code);
    char text[TRANSPORT_WHY_SIZE];

    if (why) {
        snprintf(text, sizeof(text), "%s", why);
        if (code == CURLE_COULDNT_CONNECT || code == CURLE_OPERATION_TIMEDOUT)
            http_via_fail(active->http, text);
        else if (strcmp(reply->peers, "refused") == 0 || strcmp(reply->peers, "unknown") == 0)
            http_via_rest(active->http, text);
        else if (strcmp(reply->peers, "origin") != 0) {
            send_again(active, text);
            return false;
        }
        active->broken = BROKEN_MOST;
        send_again(active, text);
        return false;
    }
    if (!active->http->via.down)
        http_via_trouble(active->http, NULL);
    if (active->given_up || reply->status / 100 != 2 || !active->request->in_slices)
        return true;
    if (active->begun)
        return send_it(active) == NOTHING_MISSING;
    send_again(active, "sends a reply without a byte");
    return false;
}

/* libcurl has finished the request. */
void http_active_settle(struct http_active *active, CURLcode code)
{
    struct http_request *request = active->request;
    char why[sizeof(active->message)];
    const char *target_why = NULL;
    long version;

    if (curl_easy_getinfo(active->easy, CURLINFO_HTTP_VERSION, &version) == CURLE_OK && version)
        active->http->loop->multiplexes = version >= CURL_HTTP_VERSION_2_0;
    curl_multi_remove_handle(active->http->loop->multi, active->easy);
    if (atomic_load(&request->stopped)) {
        finish(active, HTTP_STOPPED, "stopped");
    } else if (http_target_settle(active, &target_why)) {
        if (target_why)
            finish(active, HTTP_UNTRUSTED, target_why);
        else
            send_rest(active);
    } else if (active->via && !front_is_done(active, code)) {
        return;
    } else if ((code == CURLE_OK || active->given_up) && http_reply_redirects(&request->reply)) {
        redirect(active);
    } else if (active->given_up && request->reply.status / 100 == 2) {
        finish(active, HTTP_STOPPED, "stopped");
    } else if (active->given_up) {
        finish(active, HTTP_DONE, "");
    } else if (active->head_bytes > HEAD_MOST) {
        finish(active, HTTP_BROKEN, "too many headers");
    } else {
        snprintf(why, sizeof(why), "%s",
                 active->message[0] ? active->message : curl_easy_strerror(code));
        finish(active, active_end_of(code), code == CURLE_OK ? "" : why);
    }
}
