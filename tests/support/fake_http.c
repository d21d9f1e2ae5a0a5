/* HTTP without a network. */
#include "support/fake_http.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/http/reply.h"

struct fake_http fake_http;
int (*fake_http_serve)(const char *url, struct text *ret);

struct http {
    struct transport transport;
};

static void fake_rest(struct transport *transport)
{
    (void)transport;
}

static void fake_transport_free(struct transport *transport)
{
    free(transport);
}

static const struct transport_ops fake_ops = {.start = NULL,
                                              .stop = NULL,
                                              .pause = NULL,
                                              .stop_threads = fake_rest,
                                              .free = fake_transport_free};

void fake_http_set(const struct fake_answer *answer, size_t n)
{
    fake_http = (struct fake_http){.answer = answer, .n = n};
}

int http_new(const struct http_options *options, struct http **ret, struct diag *d)
{
    (void)d;
    *ret = calloc(1, sizeof(**ret));
    if (!*ret)
        return -ENOMEM;
    (*ret)->transport.ops = &fake_ops;
    fake_http.signer = options->signer;
    return 0;
}

struct transport *http_transport(struct http *http)
{
    return &http->transport;
}

static const struct fake_answer *find(const char *url, const char *method)
{
    for (size_t i = 0; i < fake_http.n; i++) {
        const struct fake_answer *answer = &fake_http.answer[i];

        if (!strcmp(answer->url, url) &&
            !strcmp(answer->method ? answer->method : "GET", method ? method : "GET"))
            return answer;
    }
    return NULL;
}

static void hear(const struct http_call *call, const struct fake_answer *answer)
{
    struct http_reply reply = {.status = answer && !answer->error ? 200 : 404};

    for (size_t i = 0; i < fake_http.n_heard; i++) {
        const struct fake_heard *heard = &fake_http.heard[i];

        if (strcmp(heard->url, call->url) != 0)
            continue;
        snprintf(reply.next, sizeof(reply.next), "%s", heard->next ? heard->next : "");
        snprintf(reply.said_code, sizeof(reply.said_code), "%s", heard->code ? heard->code : "");
        if (call->led)
            *call->led = heard->target ? strdup(heard->target) : NULL;
    }
    if (call->heard)
        *call->heard = reply;
}

int http_get(struct http *http, const struct http_call *call, struct text *ret, struct diag *d)
{
    const struct fake_answer *answer = find(call->url, call->method);
    size_t i = fake_http.requests++;

    (void)http;
    if (i < FAKE_REQUESTS) {
        snprintf(fake_http.request[i].url, sizeof(fake_http.request[i].url), "%s", call->url);
        snprintf(fake_http.request[i].method, sizeof(fake_http.request[i].method), "%s",
                 call->method ? call->method : "GET");
        snprintf(fake_http.request[i].header, sizeof(fake_http.request[i].header), "%s",
                 call->headers && call->headers[0] ? call->headers[0] : "");
        snprintf(fake_http.request[i].post, sizeof(fake_http.request[i].post), "%s",
                 call->post ? call->post : "");
        fake_http.request[i].plain = call->plain;
        fake_http.request[i].timeout_s = call->timeout_s;
        fake_http.request[i].tries = call->tries;
    }
    hear(call, answer);
    if (fake_http.signer)
        snprintf(fake_http.region, sizeof(fake_http.region), "%s", fake_http.signer->region);
    if (!answer && fake_http_serve) {
        int r = fake_http_serve(call->url, ret);

        return r < 0 ? diag_set(d, r, "%.*s: expected status 200, got an error",
                                (int)strcspn(call->url, "?"), call->url)
                     : 0;
    }
    if (answer && answer->body)
        text_add(ret, "%s", answer->body);
    if (ret->failed)
        return -ENOMEM;
    if (!answer || answer->error)
        return diag_set(d, answer ? answer->error : -ENOENT, "%.*s: expected status 200, got %s",
                        (int)strcspn(call->url, "?"), call->url, answer ? "an error" : "404");
    return 0;
}

struct http_ahead {
    struct http *http;
    struct http_call call;
    char *url, *led;
    size_t requests, aheads, stats; /* so far, when it was asked for */
};

struct http_ahead *http_ahead_start(struct http *http, char *url, size_t most, unsigned tries)
{
    struct http_ahead *ahead = url ? calloc(1, sizeof(*ahead)) : NULL;

    (void)tries;
    if (!ahead) {
        free(url);
        return NULL;
    }
    *ahead = (struct http_ahead){.http = http,
                                 .url = url,
                                 .requests = fake_http.requests,
                                 .aheads = ++fake_http.aheads,
                                 .stats = fake_http.stats};
    ahead->call = (struct http_call){.url = url, .most = most, .led = &ahead->led};
    return ahead;
}

int http_ahead_take(struct http_ahead *ahead, struct text *ret, char **ret_led, struct diag *d)
{
    int r = -ENOMEM;

    if (ahead && fake_http.requests == ahead->requests && fake_http.aheads == ahead->aheads &&
        fake_http.stats == ahead->stats)
        fake_http.aheads--; /* it is taken at once */
    if (ahead)
        r = http_get(ahead->http, &ahead->call, ret, d);
    if (ahead && ret_led)
        *ret_led = TAKE_PTR(ahead->led);
    http_ahead_drop(&ahead);
    return r;
}

void http_ahead_drop(struct http_ahead **ahead)
{
    if (!*ahead)
        return;
    free((*ahead)->led);
    free((*ahead)->url);
    free(TAKE_PTR(*ahead));
}

void http_stat(struct http *http, size_t n, struct http_file *file)
{
    (void)http;
    for (size_t i = 0; i < n; i++) {
        const struct fake_answer *answer = find(file[i].url, NULL);

        fake_http.stats++;
        file[i].why = DIAG_INIT;
        file[i].error = answer ? answer->error : -ENOENT;
        if (file[i].error == 0)
            file[i].version = answer->version;
        else
            diag_set(&file[i].why, file[i].error, "%.*s: expected status 200, got 404",
                     (int)strcspn(file[i].url, "?"), file[i].url);
    }
}

void http_encode(struct text *url, const char *text, bool path)
{
    for (; *text; text++)
        text_add(url,
                 isalnum((unsigned char)*text) || strchr("-._~", *text) || (path && *text == '/')
                     ? "%c"
                     : "%%%02X",
                 (unsigned char)*text);
}

bool http_is_silent(const struct http *http, struct diag *d)
{
    (void)http;
    (void)d;
    return false;
}

void http_via_listen(struct http *http, void (*changed)(bool answers, const char *text))
{
    (void)http;
    (void)changed;
}

bool http_sends_user(const struct http *http)
{
    (void)http;
    return false;
}
