/* Requests by libcurl: one thread, the loop, owns the multi handle and all easy handles.
 *
 * Other threads put requests into loop->in and wake the loop. To stop or pause a request they set a
 * flag in it, which the loop looks at when it is woken. So threads share only that list and these
 * flags, and every callback runs in the loop's thread with no lock held. A request is in exactly
 * one of: in, unsigned_ones, active. How many are under way is left to those who start them: struct
 * limiter.
 *
 * Between http_loop_rest() and the next request there is no thread, and the handles with their
 * connections are plain memory: they survive a fork() after which only the child goes on.
 *
 * A request ends if the server gives nothing for the timeout, or less than transfer_share() in a
 * little more than the timeout. This is measured for the head, then for the body, again each time
 * that much has come. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/thread.h"
#include "cache/http/active.h"

#define LOOK_NS       INT64_C(500000000)
#define IDLE_MS       (60 * 60 * 1000)
#define FRONT_LOOK_NS INT64_C(100000000) /* with a front of a ring of caches */

/* Begin a request, or let it wait for secrets. */
static void loop_begin(struct http *http, struct http_request *request)
{
    int r = request->no_sign || request->plain || !http->signing.signer ||
                    atomic_load(&request->stopped)
                ? 0
                : http_signing_get(http, &request->signature);

    if (r == -EAGAIN) {
        request->next = http->loop->unsigned_ones;
        http->loop->unsigned_ones = request;
    } else if (r < 0) {
        http_request_end(request, HTTP_BROKEN, "out of memory");
    } else {
        http_active_begin(http, request);
    }
}

/* The signer was asked: sign the requests that wait, or end them. */
static void heed_signer(struct http *http)
{
    struct http_request *request = http->loop->unsigned_ones;
    struct diag why = DIAG_INIT;
    int r = request ? http_signing_result(&http->signing, &why) : -EAGAIN;

    if (r == -EAGAIN)
        return;
    http->loop->unsigned_ones = NULL;
    while (request) {
        struct http_request *next = request->next; /* it may end and be freed at once */

        request->failed = r;
        if (r < 0)
            http_request_end(request, HTTP_UNSIGNED, why.text);
        else
            loop_begin(http, request);
        request = next;
    }
}

/* Handle requests that other threads have stopped, paused or resumed. */
static void heed_pokes(struct http_loop *loop)
{
    struct http_request **at = &loop->unsigned_ones;
    struct http_active *next;

    while (*at) {
        struct http_request *request = *at;

        if (!atomic_load(&request->stopped)) {
            at = &request->next;
            continue;
        }
        *at = request->next;
        http_request_end(request, HTTP_STOPPED, "stopped");
    }
    for (struct http_active *active = loop->active; active; active = next) {
        bool pause = atomic_load(&active->request->pause);

        next = active->next;
        if (atomic_load(&active->request->stopped)) {
            http_active_cut(active, HTTP_STOPPED, "stopped");
            continue;
        }
        if (pause == active->paused)
            continue;
        active->paused = pause;
        loop->counted += pause ? -1u : 1u;
        if (pause) /* easy_on_body() pauses it */
            continue;
        if (active->given_ns != NEVER)
            http_active_listen(active);
        active->sent_ns = active->starved_ns = clock_monotonic(active->http->clock);
        if (!active->held) /* it may have no connection yet, and then libcurl refuses this */
            continue;
        active->held = false;
        if (curl_easy_pause(active->easy, CURLPAUSE_CONT) != CURLE_OK)
            http_active_settle(active, CURLE_WRITE_ERROR);
    }
}

/* Does the request take too long? Then why says how. A server that has gone silent should be
 * reported as silent, not slow, so slowness has an eighth more time. */
static bool is_late(const struct http_active *active, int64_t now, char *why, size_t size)
{
    int64_t timeout = active->http->timeout_ns;
    long long seconds = timeout / 1000000000;

    if (now >= active->deadline_ns)
        snprintf(why, size, "not done after %lld ms",
                 (long long)(active->request->limit_ns / 1000000));
    else if (active->paused || active->given_ns == NEVER)
        return false;
    else if (now - active->given_ns > timeout)
        snprintf(why, size, "the server sent nothing for %lld s", seconds);
    else if (now - active->heard_ns > timeout + timeout / 8)
        snprintf(why, size,
                 "too slow: the server sent %" PRIu64 " bytes in %lld s, expected %" PRIu64,
                 active->heard_bytes, seconds,
                 transfer_share((uint64_t)seconds, active->http->loop->counted));
    else
        return false;
    return true;
}

static void heed_time(struct http *http)
{
    struct http_loop *loop = http->loop;
    int64_t now = clock_monotonic(http->clock);
    struct http_active *next;
    char why[120];

    if (now < loop->look_ns && !http->via.lost)
        return;
    loop->look_ns = now + (http->timeout_ns < LOOK_NS * 8 ? http->timeout_ns / 8
                           : http->via.url                ? FRONT_LOOK_NS
                                                          : LOOK_NS);
    for (struct http_active *active = loop->active; active; active = next) {
        next = active->next;
        if (is_late(active, now, why, sizeof(why)))
            http_active_cut(active, HTTP_BROKEN, why);
    }
    if (http->via.url)
        http_front_look(http, now);
}

/* Begin the new requests. Returns whether the loop must go on. */
static bool begin_new(struct http *http)
{
    struct http_loop *loop = http->loop;
    struct http_request *request;
    bool goes_on;

    lock_take(&loop->lock);
    request = loop->in;
    loop->in = NULL;
    loop->in_end = &loop->in;
    goes_on = !loop->ending;
    lock_drop(&loop->lock);
    while (request) {
        struct http_request *next = request->next; /* it may end and be freed at once */

        loop_begin(http, request);
        request = next;
    }
    return goes_on;
}

static void take_messages(struct http_loop *loop)
{
    struct CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(loop->multi, &left))) {
        CURLcode code = message->data.result;
        struct http_active *active;

        if (message->msg != CURLMSG_DONE ||
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &active) != CURLE_OK)
            continue;
        http_active_settle(active, code);
    }
}

/* Wait for the sockets, or a wake-up. */
static void wait_for_events(struct http *http)
{
    struct http_loop *loop = http->loop;
    int ms = clock_poll_ms(http->clock, loop->active ? loop->look_ns : CLOCK_NEVER);
    int64_t waited = atomic_load(&http->waited) - clock_monotonic(http->clock);

    atomic_store(&http->waited, waited);
    curl_multi_poll(loop->multi, NULL, 0, ms < 0 ? IDLE_MS : ms, NULL);
    atomic_store(&http->waited, waited + clock_monotonic(http->clock));
}

static void *loop_main(void *arg)
{
    struct http *http = arg;
    struct http_loop *loop = http->loop;
    int running;

    while (begin_new(http)) {
        curl_multi_perform(loop->multi, &running);
        take_messages(loop);
        heed_time(http);
        wait_for_events(http);
        if (atomic_exchange(&loop->poked, false)) {
            heed_pokes(loop);
            heed_signer(http);
        }
    }
    while (loop->active) /* probes; nothing else may be under way */
        http_active_cut(loop->active, HTTP_STOPPED, "stopped");
    return NULL;
}

/* ---- for other threads ---- */

static int loop_run_locked(struct http *http)
{
    struct http_loop *loop = http->loop;
    int r;

    lock_assert_held(&loop->lock);
    if (loop->running)
        return 0;
    r = thread_start(&loop->thread, loop_main, http);
    loop->running = r == 0;
    return r;
}

int http_request_start(struct http *http, struct http_request *request)
{
    struct http_loop *loop = http->loop;
    int r;

    lock_take(&loop->lock);
    r = loop_run_locked(http);
    if (r == 0) {
        request->next = NULL;
        *loop->in_end = request;
        loop->in_end = &request->next;
    }
    lock_drop(&loop->lock);
    if (r == 0)
        curl_multi_wakeup(loop->multi);
    return r;
}

void http_loop_poke(struct http *http)
{
    atomic_store(&http->loop->poked, true);
    curl_multi_wakeup(http->loop->multi);
}

void http_request_stop(struct http *http, struct http_request *request)
{
    atomic_store(&request->stopped, true);
    http_loop_poke(http);
}

void http_request_pause(struct http *http, struct http_request *request, bool paused)
{
    atomic_store(&request->pause, paused);
    http_loop_poke(http);
}

bool http_loop_is_here(struct http *http)
{
    LOCK_SCOPE(&http->loop->lock);

    return http->loop->running && pthread_equal(http->loop->thread, pthread_self());
}

void http_loop_rest(struct http *http)
{
    struct http_loop *loop = http->loop;
    bool running;

    lock_take(&loop->lock);
    running = loop->running;
    loop->ending = true;
    lock_drop(&loop->lock);
    if (running) {
        curl_multi_wakeup(loop->multi);
        pthread_join(loop->thread, NULL);
    }
    lock_take(&loop->lock);
    loop->running = false;
    loop->ending = false;
    lock_drop(&loop->lock);
}

/* ---- making and freeing ---- */

static void global_init(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

int http_loop_new(const struct http *http, struct http_loop **ret)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct http_loop *loop = calloc(1, sizeof(*loop));

    pthread_once(&once, global_init);
    if (!loop)
        return -ENOMEM;
    loop->multi = curl_multi_init();
    if (!loop->multi) {
        free(loop);
        return -ENOMEM;
    }
    /* Connections that are kept, with those of paused requests and of texts. */
    curl_multi_setopt(loop->multi, CURLMOPT_MAXCONNECTS,
                      (long)max_u64(http->limiter.jobs, http->limiter.most) + 8);
    curl_multi_setopt(loop->multi, CURLMOPT_MAX_CONCURRENT_STREAMS,
                      (long)max_u64(http->limiter.jobs, http->limiter.most) + 8);
    loop->targets = http->by_url ? kept_targets_new() : NULL;
    lock_init(&loop->lock);
    loop->in_end = &loop->in;
    *ret = loop;
    return 0;
}

/* Closing a TLS connection writes to it: a SIGPIPE must not get to the caller. */
void http_loop_free(struct http_loop *loop)
{
    static const struct timespec now = {0};
    sigset_t pipe, before;

    if (!loop)
        return;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    while (loop->n_idle > 0)
        curl_easy_cleanup(loop->idle[--loop->n_idle]);
    curl_multi_cleanup(loop->multi);
    if (!sigismember(&before, SIGPIPE))
        sigtimedwait(&pipe, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    lock_release(&loop->lock);
    kept_targets_free(loop->targets);
    free(loop);
}
