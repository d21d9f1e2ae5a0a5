/* Texts and versions of files: requests for which the caller waits.
 *
 * Requests are sent in rounds: a round has all that are ready to be sent, and ends when all of them
 * are done. A request that may work later is sent again in the next round, after a pause that
 * doubles. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "cache/http/round.h"

#define TRIES 4

/* ---- texts ---- */

/* A request for a text, which is tried again. */
struct http_ahead {
    struct http_request request; /* first; of the last try */
    struct round round;
    struct http_call call;
    char *led;
    char *url;  /* owned; NULL: the caller of http_get() has it */
    bool begun; /* a try is under way */
    struct text body;
    size_t counted; /* bytes at the last progress: see transfer_share() */
    bool too_much;
};

/* So many bytes are progress, of a text that takes long to come. */
static void note_progress(struct http_ahead *get)
{
    struct round *round = &get->round;
    uint64_t share = transfer_share((uint64_t)(round->http->retry_limit_ns / 1000000000), 1);

    if (get->body.len - get->counted < share)
        return;
    get->counted = get->body.len;
    LOCK_SCOPE(&round->lock);
    round_heard_locked(round);
}

static bool get_body(struct http_request *request, const void *bytes, size_t n)
{
    struct http_ahead *get = (struct http_ahead *)request;

    get->too_much = n > get->call.most - get->body.len;
    if (!get->too_much)
        text_add_bytes(&get->body, bytes, n);
    note_progress(get);
    return !get->too_much && !get->body.failed;
}

static bool get_aim(struct http_request *request, uint64_t slice)
{
    struct http_ahead *get = (struct http_ahead *)request;

    (void)slice;
    text_release(&get->body);
    get->counted = 0;
    get->too_much = false;
    return true;
}

static bool get_head(struct http_request *request)
{
    struct http_ahead *get = (struct http_ahead *)request;

    get->too_much = request->reply.has_length && request->reply.length > get->call.most;
    return !get->too_much;
}

static void get_done(struct http_request *request)
{
    round_done(&((struct http_ahead *)request)->round, request);
}

/* Begin a try. */
static int get_begin(struct http_ahead *get)
{
    const struct http_call *call = &get->call;
    int r;

    get->request = (struct http_request){.url = call->url,
                                         .method = call->method,
                                         .headers = call->headers,
                                         .limit_ns = (int64_t)call->timeout_s * 1000000000,
                                         .plain = call->plain,
                                         .post = call->post,
                                         .no_sign = call->no_sign || call->plain,
                                         .shared = !call->method && !call->headers,
                                         .wants_target = call->led != NULL,
                                         .aim = get_aim,
                                         .head = get_head,
                                         .body = get_body,
                                         .done = get_done};
    r = round_start(&get->round, &get->request);
    get->begun = r == 0;
    return r;
}

/* Wait for the end of a try, and tell the caller what the reply says besides its body. */
static void get_end(struct http_ahead *get)
{
    const struct http_call *call = &get->call;

    round_wait_below(&get->round, 1);
    get->begun = false;
    if (call->heard)
        *call->heard = get->request.reply;
    if (call->led) {
        secret_free(call->led);
        *call->led = TAKE_PTR(get->request.target);
    }
}

/* The result of a try that has ended. */
static int get_result(struct http_ahead *get, const char *name, bool *again, struct diag *d)
{
    const struct http_reply *reply = &get->request.reply;

    *again = false;
    if (get->too_much)
        return diag_set(d, -EFBIG, "%s: expected at most %zu bytes, got more", name,
                        get->call.most);
    if (get->body.failed)
        return -ENOMEM;
    if (get->request.end != HTTP_DONE || reply->status / 100 != 2)
        return round_failure(&get->round, &get->request, name, again, d);
    if (reply->status == 206)
        return diag_set(d, -EREMOTEIO, "%s: expected status 200, got 206, a part", name);
    if (reply->encoding[0]) /* whatever it is, it is no text */
        return diag_set(d, -EREMOTEIO,
                        "%s: expected the bytes as they are, got Content-Encoding: %s", name,
                        reply->encoding);
    return 0;
}

/* Try it once, or go on with the try that was begun. */
static int get_once(struct http_ahead *get, const char *name, bool *again, struct diag *d)
{
    int r = get->begun ? 0 : get_begin(get);

    *again = false;
    if (r < 0)
        return r;
    get_end(get);
    r = get_result(get, name, again, d);
    http_signature_let_go(TAKE_PTR(get->request.signature));
    return r;
}

static int get_all_tries(struct http_ahead *get, struct text *ret, struct diag *d)
{
    const struct http_call *call = &get->call;
    struct round *round = &get->round;
    struct http *http = round->http;
    unsigned tries = call->tries ? call->tries : TRIES;
    bool again = true, was_begun = get->begun, counts = !call->plain && !call->no_sign;
    struct diag why = DIAG_INIT;
    char name[HTTP_NAME_SIZE];
    int r = -EINVAL;

    http_url_name(call->url, name, sizeof(name));
    if (!was_begun && http_loop_is_here(http))
        return diag_set(d, -EDEADLK, "%s: requested by the thread that would have to fetch it",
                        name);
    if (!was_begun && counts && round_is_given_up(http))
        return round_say_silent(http, name, d);
    lock_take(&round->lock);
    round->heard = clock_monotonic(round->clock); /* the time for tries begins */
    lock_drop(&round->lock);
    for (unsigned n = 1; again && n <= tries; n++) {
        uint64_t pause;

        why = DIAG_INIT;
        r = get_once(get, name, &again, &why);
        if (r == 0)
            break;
        text_release(&get->body);
        if (was_begun && counts && round_is_given_up(http))
            again = false; /* it was silent for another text meanwhile */
        if (again && n < tries && round_let_limit_pass(round, &get->request.reply))
            continue;
        pause = round_pause_ms(round, n, get->request.reply.retry_ms);
        if (again && n < tries && !round_is_over(round, pause)) {
            round_let_pass(round, pause);
            continue;
        }
        /* A server that fails for one URL may have the others. */
        if (again && counts && !get->request.reply.status &&
            (!call->tries || round_is_over(round, 0)))
            round_give_up(http);
        again = false;
        text_add_bytes(&get->body, get->request.error, get->request.error_len);
    }
    text_release(ret);
    *ret = get->body;
    get->body = (struct text){0};
    return r < 0 ? diag_set(d, r, "%s", diag_text(&why, r)) : 0;
}

int http_get(struct http *http, const struct http_call *call, struct text *ret, struct diag *d)
{
    struct http_ahead now = {.call = *call};
    int r;

    round_init(&now.round, http);
    r = get_all_tries(&now, ret, d);
    round_release(&now.round);
    return r;
}

/* ---- texts, ahead ---- */

struct http_ahead *http_ahead_start(struct http *http, char *url, size_t most, unsigned tries)
{
    struct http_ahead *ahead = url ? calloc(1, sizeof(*ahead)) : NULL;

    if (!ahead) {
        free(url);
        return NULL;
    }
    ahead->url = url;
    ahead->call = (struct http_call){.url = url, .most = most, .tries = tries, .led = &ahead->led};
    round_init(&ahead->round, http);
    if (!http_loop_is_here(http) && !round_is_given_up(http))
        get_begin(ahead);
    return ahead;
}

int http_ahead_take(struct http_ahead *ahead, struct text *ret, char **ret_led, struct diag *d)
{
    int r = ahead ? get_all_tries(ahead, ret, d) : -ENOMEM;

    if (ahead && ret_led)
        *ret_led = TAKE_PTR(ahead->led);
    http_ahead_drop(&ahead);
    return r;
}

void http_ahead_drop(struct http_ahead **at)
{
    struct http_ahead *ahead = TAKE_PTR(*at);

    if (!ahead)
        return;
    if (ahead->begun) {
        http_request_stop(ahead->round.http, &ahead->request);
        get_end(ahead);
        http_signature_let_go(ahead->request.signature);
    }
    text_release(&ahead->body);
    secret_free(&ahead->led);
    round_release(&ahead->round);
    free(ahead->url);
    free(ahead);
}

/* ---- versions of files ---- */

enum stat_step { STAT_HEAD, STAT_GET, STAT_ENDED };

struct stat_one {
    struct http_request request; /* first */
    struct round *round;
    enum stat_step step;
    unsigned tries;
    bool again; /* in the next round, after a pause */
    uint64_t retry_ms;
    struct http_file *file;
    /* The reply to HEAD has no ETag: the version that it has, until GET tells more. */
    struct remote_version head;
    bool has_head;
};

static void stat_done(struct http_request *request)
{
    round_done(((struct stat_one *)request)->round, request);
}

/* Send the request for one file. */
static void stat_send(struct stat_one *one, struct round *round)
{
    int r;

    one->file->why = DIAG_INIT;
    one->again = false;
    one->round = round;
    one->request = (struct http_request){.url = one->file->url, .shared = true, .done = stat_done};
    if (one->step == STAT_HEAD)
        one->request.method = "HEAD";
    else
        one->request.len = 1;
    r = round_start(round, &one->request);
    if (r < 0) {
        one->file->error = r;
        one->step = STAT_ENDED;
    }
}

/* The server has been silent for too long. A server that fails for one URL may have the others.
 */
static void stat_give_up(struct http *http, struct stat_one *one, bool answered)
{
    bool fails_here = answered && one->request.reply.status;
    char name[HTTP_NAME_SIZE];

    http_url_name(one->file->url, name, sizeof(name));
    one->again = false;
    one->step = STAT_ENDED;
    if (fails_here) {
        one->file->error = diag_set(
            &one->file->why, -EREMOTEIO, "%s: failed for %lld s, the last time with status %u",
            name, (long long)(http->retry_limit_ns / 1000000000), one->request.reply.status);
        return;
    }
    one->file->error = round_say_silent(http, name, &one->file->why);
    round_give_up(http);
}

/* Take the reply, and choose the next step if there is one. crowded: too many requests may have
 * been under way. */
static void stat_take(struct http *http, struct stat_one *one, bool crowded)
{
    const struct http_request *request = &one->request;
    unsigned status = request->reply.status;
    bool part = one->step == STAT_GET, reported;
    char name[HTTP_NAME_SIZE];

    http_url_name(one->file->url, name, sizeof(name));
    reported =
        request->reply.complete &&
        (status == 200 || (part && (status == 206 || (status == 416 && request->reply.has_total))));
    if (reported && (part || request->end == HTTP_DONE)) {
        one->file->error =
            http_reply_version(&request->reply, part, name, &one->file->version, &one->file->why);
        if (one->file->error == -EAGAIN && part)
            one->file->error = diag_set(&one->file->why, -EREMOTEIO,
                                        "%s: expected the size of the file in Content-Length or "
                                        "Content-Range, got neither",
                                        name);
        if (one->file->error == 0 && http_is_by_time(&one->file->version, http->by_time))
            one->file->version.etag[0] = '\0';
    } else if (!part && request->end == HTTP_DONE &&
               (status == 403 || status == 405 || status == 501 ||
                (status == 400 && request->signature))) {
        one->file->error = -EAGAIN; /* a server that refuses HEAD may send parts, or say why not */
    } else {
        one->file->error = round_failure(one->round, request, name, &one->again, &one->file->why);
        one->tries += !crowded;
        one->again = one->again && one->tries < TRIES;
        one->retry_ms = crowded ? min_u64(request->reply.retry_ms, LIMITER_CROWDED_MS)
                                : request->reply.retry_ms;
        if (one->again)
            return;
    }
    one->step = one->file->error == -EAGAIN ? STAT_GET : STAT_ENDED;
    if (!part && one->file->error == 0 && !one->file->version.etag[0] &&
        !http_is_by_time(&one->file->version, http->by_time)) {
        one->head = one->file->version;
        one->has_head = true;
        one->step = one->file->version.mtime.tv_sec ? STAT_ENDED : STAT_GET;
    }
}

/* Send those that have a step to do, as many at once as the limiter says. *failed: some have
 * failed, in the round before and now. Returns whether there were any to send. */
static bool stat_round(struct http *http, struct round *round, size_t n, struct stat_one *all,
                       bool *failed)
{
    int64_t began = clock_monotonic(round->clock);
    uint64_t sent = 0, asked_ms = 0, pause;
    unsigned tries = 1;
    bool crowded;

    for (size_t i = 0; i < n; i++) {
        sent += all[i].step != STAT_ENDED;
        tries = (unsigned)max_u64(tries, all[i].again ? all[i].tries : 0);
        asked_ms = max_u64(asked_ms, all[i].again ? all[i].retry_ms : 0);
    }
    crowded = min_u64(sent, limiter_most(&http->limiter)) > http->limiter.jobs;
    pause = *failed ? round_pause_ms(round, tries, asked_ms) : 0;
    if (*failed && !round_is_over(round, pause))
        round_let_pass(round, pause);
    *failed = false;
    for (size_t i = 0; i < n; i++) {
        if (all[i].step == STAT_ENDED)
            continue;
        round_wait_below(round, limiter_most(&http->limiter));
        if (round_is_over(round, pause))
            stat_give_up(http, &all[i], round_is_answered(round));
        else
            stat_send(&all[i], round);
    }
    round_wait_below(round, 1);
    for (size_t i = 0; i < n; i++) {
        if (all[i].step == STAT_ENDED)
            continue;
        stat_take(http, &all[i], crowded);
        *failed = *failed || all[i].again;
        http_signature_let_go(TAKE_PTR(all[i].request.signature));
    }
    if (*failed && crowded)
        limiter_refused(&http->limiter, began);
    return sent > 0;
}

/* Send all that have a step to do until none has. */
static void stat_rounds(struct http *http, size_t n, struct stat_one *all)
{
    bool failed = false;
    struct round round;

    round_init(&round, http);
    while (stat_round(http, &round, n, all, &failed)) {
    }
    round_release(&round);
}

/* Some servers send an ETag with GET, but none with HEAD. Whether this one does, the first file
 * tells that has a time and no ETag; then GET asks for the others. */
static void stat_more(struct http *http, size_t n, struct stat_one *all)
{
    for (size_t i = 0; i < n && atomic_load(&http->get_tells) != HTTP_GET_SAME; i++) {
        if (!all[i].has_head || !all[i].head.mtime.tv_sec || all[i].file->error < 0)
            continue;
        all[i].step = STAT_GET;
        if (atomic_load(&http->get_tells) == HTTP_GET_MORE)
            continue;
        stat_rounds(http, n, all);
        if (all[i].file->error == 0)
            atomic_store(&http->get_tells,
                         all[i].file->version.etag[0] ? HTTP_GET_MORE : HTTP_GET_SAME);
        else
            break; /* read() tells what is wrong */
    }
    stat_rounds(http, n, all);
    for (size_t i = 0; i < n; i++) {
        if (all[i].has_head && all[i].file->error < 0) {
            all[i].file->version = all[i].head;
            all[i].file->error = 0;
        }
    }
}

void http_stat(struct http *http, size_t n, struct http_file *file)
{
    AUTO_FREE struct stat_one *all = calloc(n + 1, sizeof(*all));
    int no = http_loop_is_here(http) ? -EDEADLK : all ? 0 : -ENOMEM;
    bool silent = round_is_given_up(http);

    for (size_t i = 0; i < n; i++) {
        file[i].why = DIAG_INIT;
        file[i].error = no;
        if (no == 0) {
            all[i].file = &file[i];
            all[i].step = http->asks_by_reading ? STAT_GET : STAT_HEAD;
            if (silent)
                stat_give_up(http, &all[i], false);
        }
    }
    if (no == 0) {
        stat_rounds(http, n, all);
        stat_more(http, n, all);
    }
}

/* ---- URLs ---- */

void http_encode(struct text *url, const char *text, bool path)
{
    static const char plain[] = "/ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789-._~";

    for (size_t n; *text; text += n) {
        n = strspn(text, plain + !path);
        text_add_bytes(url, text, n);
        if (!n)
            text_add(url, "%%%02X", (unsigned char)text[n++]);
    }
}
