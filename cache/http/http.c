/* Requests by libcurl: one thread, the loop, has the multi handle and all easy handles to itself.
 *
 * Others put requests into loop->in and wake it; to stop or pause one they set a flag in the
 * request, which the loop looks at when it is woken. So nothing here is shared but that list, and
 * every callback runs in the loop's thread with no lock held. A request is in exactly one of: in,
 * waiting, active. It leaves the loop's lists before done() is called, so done() may free it, and
 * start others.
 *
 * Between http_loop_rest() and the next request there is no thread, and the handles with their
 * connections are plain memory: they survive a fork() after which only the child goes on.
 *
 * Invariants:
 * 1. Redirects are followed here, not by libcurl: what proves who we are goes to the origin
 * (scheme, host, port) of the first URL and to no other.
 * 2. head() and body() see only replies with status 2xx; other bodies are skipped, or given up when
 *    they are long.
 * 3. Requests that are paused do not count as active: what others wait for is begun.
 * 4. A request ends if the server gives nothing for the timeout, or in the timeout and a little
 * less than transfer_share(): of a request for its head, then of its body each time that much came.
 */
#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/checked.h"
#include "base/clock.h"
#include "cache/http/parts.h"

#define BUFFER       (512L << 10) /* of a connection, bytes: the most that libcurl takes */
#define HEAD_MOST    (256u << 10) /* bytes of heads that one request may cost */
#define SKIP_MOST    (64u << 10)  /* of a body that nobody wants: a connection costs more */
#define REDIRECTS    8
#define HANDLES_KEPT 16
#define LOOK_NS      INT64_C(500000000)
#define NEVER        INT64_MAX
#define IDLE_MS      (60 * 60 * 1000)

/* A request that is under way. The loop's. */
struct http_active {
    struct http_active *next;
    struct http *http;
    struct http_request *request;
    CURL *easy;
    struct curl_slist *headers;
    char *url;             /* that is asked now, without user info */
    char *user, *password; /* of the first URL, or NULL */
    bool foreign;          /* redirected to another origin */
    bool paused;
    bool begun;    /* head() has been called */
    bool given_up; /* the rest of the body is not wanted: we have ended it */
    unsigned redirects;
    size_t head_bytes, skipped;
    bool answered;    /* the head of the reply is here, of this URL */
    int64_t given_ns; /* when the server gave something; NEVER: there is no connection */
    int64_t heard_ns; /* since when it has given less than its share: heard_bytes */
    uint64_t heard_bytes;
    int64_t deadline_ns;
    char message[CURL_ERROR_SIZE];
};

struct http_loop {
    CURLM *multi;
    struct lock lock;
    /* Guarded by lock: */
    struct http_request *in, **in_end;
    bool running, ending;
    pthread_t thread;
    /* Any thread: */
    atomic_bool poked; /* a request has been stopped or paused */
    /* The loop's thread, and http_loop_free(): */
    struct http_request *waiting, **waiting_end;
    struct http_active *active;
    unsigned counted; /* active and not paused */
    bool multiplexes; /* the last server: many requests on one connection, HTTP/2 */
    int64_t look_ns;  /* when to look for requests that take too long */
    CURL *idle[HANDLES_KEPT];
    unsigned n_idle;
};

static void finish(struct http_active *active, enum http_end end, const char *why);

/* ---- what the server gives ---- */

/* From now on the server has a timeout. */
static void listen_anew(struct http_active *active)
{
    active->given_ns = active->heard_ns = monotonic_ns();
    active->heard_bytes = 0;
}

static void hear(struct http_active *active, size_t n)
{
    const struct http *http = active->http;

    active->given_ns = monotonic_ns();
    active->heard_bytes += n;
    if (active->heard_bytes <
        transfer_share((uint64_t)http->timeout_ns / 1000000000, http->loop->counted))
        return;
    active->heard_ns = active->given_ns;
    active->heard_bytes = 0;
}

static size_t on_header(char *bytes, size_t one, size_t n, void *ctx)
{
    struct http_active *active = ctx;

    (void)one;
    hear(active, n);
    active->head_bytes += n;
    if (active->head_bytes > HEAD_MOST)
        return 0;
    http_reply_line(&active->request->reply, bytes, n, now_ns() / 1000000000);
    if (!active->answered && active->request->reply.complete &&
        active->request->reply.status >= 200) {
        active->answered = true; /* it may have taken all of its time */
        listen_anew(active);
    }
    return n;
}

/* A body that nobody wants; its beginning may say why it is an error. */
static bool skip(struct http_active *active, const char *bytes, size_t n)
{
    struct http_request *request = active->request;
    size_t kept = min_u64(n, sizeof(request->error) - request->error_len);

    memcpy(request->error + request->error_len, bytes, kept);
    request->error_len += kept;
    active->skipped += n;
    return active->skipped <= SKIP_MOST;
}

static size_t on_body(char *bytes, size_t one, size_t n, void *ctx)
{
    struct http_active *active = ctx;
    struct http_request *request = active->request;
    bool more;

    (void)one;
    if (active->paused)
        return CURL_WRITEFUNC_PAUSE;
    hear(active, n);
    if (atomic_load_explicit(&request->stopped, memory_order_relaxed)) {
        more = false;
    } else if (request->reply.status / 100 != 2) {
        more = skip(active, bytes, n);
    } else {
        more = active->begun || !request->head || request->head(request);
        active->begun = true;
        more = more && (request->body ? request->body(request, bytes, n) : skip(active, bytes, n));
    }
    if (more)
        return n;
    active->given_up = true;
    return 0;
}

/* There is a connection, and the request is about to be sent. */
static int on_connected(void *ctx, char *to, char *from, int to_port, int from_port)
{
    struct http_active *active = ctx;

    (void)to;
    (void)from;
    (void)to_port;
    (void)from_port;
    listen_anew(active);
    return CURL_PREREQFUNC_OK;
}

/* ---- beginning a request ---- */

/* One line, which must be just one. */
static bool add_header(struct http_active *active, const char *line)
{
    struct curl_slist *longer =
        strpbrk(line, "\r\n") ? NULL : curl_slist_append(active->headers, line);

    if (longer)
        active->headers = longer;
    return longer != NULL;
}

/* Frees the headers; there may be secrets in them. */
static void wipe_headers(struct http_active *active)
{
    for (struct curl_slist *h = active->headers; h; h = h->next)
        explicit_bzero(h->data, strlen(h->data));
    curl_slist_free_all(active->headers);
    active->headers = NULL;
}

static bool add_token(struct http_active *active, const char *token)
{
    AUTO_TEXT struct text line = {0};
    bool ok;

    text_add(&line, "x-amz-security-token: %s", token);
    ok = !line.failed && add_header(active, line.data);
    if (line.data)
        explicit_bzero(line.data, line.len);
    return ok;
}

/* What shows who we are. Not to be called for another origin. */
static bool set_identity(struct http_active *active)
{
    const struct http_signature *signature = active->request->signature;
    const char *const *headers = active->request->headers;
    char scheme[96];

    for (; headers && *headers; headers++)
        if (!add_header(active, *headers))
            return false;
    if (!signature) {
        /* Of this host, for that and no other. */
        if (!active->user && !active->request->plain)
            curl_easy_setopt(active->easy, CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
        return !active->user ||
               (curl_easy_setopt(active->easy, CURLOPT_USERNAME, active->user) == CURLE_OK &&
                curl_easy_setopt(active->easy, CURLOPT_PASSWORD,
                                 active->password ? active->password : "") == CURLE_OK);
    }
    snprintf(scheme, sizeof(scheme), "aws:amz:%s:s3", signature->region);
    return curl_easy_setopt(active->easy, CURLOPT_AWS_SIGV4, scheme) == CURLE_OK &&
           curl_easy_setopt(active->easy, CURLOPT_USERNAME, signature->secret.key_id) == CURLE_OK &&
           curl_easy_setopt(active->easy, CURLOPT_PASSWORD, signature->secret.key) == CURLE_OK &&
           add_header(active, "x-amz-content-sha256: UNSIGNED-PAYLOAD") &&
           (!signature->secret.token || add_token(active, signature->secret.token));
}

static bool set_method(CURL *easy, const struct http_request *request)
{
    char range[64];

    if (request->method && strcmp(request->method, "HEAD") == 0)
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    else if (request->method &&
             curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method) != CURLE_OK)
        return false;
    if (request->len == 0)
        return true;
    snprintf(range, sizeof(range), "%llu-%llu", (unsigned long long)request->off,
             (unsigned long long)(request->off + request->len - 1));
    return curl_easy_setopt(easy, CURLOPT_RANGE, range) == CURLE_OK;
}

/* A server that has another version by now need not send it; a cache on the way knows which one is
 * wanted. */
static bool set_version(struct http_active *active)
{
    const char *version = active->request->version;
    char line[sizeof("If-Match: ") + sizeof(active->request->reply.etag)];

    if (!version)
        return true;
    snprintf(line, sizeof(line), "If-Match: %s", version);
    return add_header(active, line);
}

/* Set all options anew: nothing of the request before may stay. */
static bool set_options(struct http_active *active)
{
    const struct http *http = active->http;
    CURL *easy = active->easy;

    wipe_headers(active);
    curl_easy_reset(easy);
    active->message[0] = '\0';
    active->given_ns = NEVER;
    active->answered = false;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, active);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, active->message);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    /* Both at once are refused by libcurl 8; see may_be_signed(). */
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, active->request->signature ? 0L : 1L);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, BUFFER);
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)(http->timeout_ns / 1000000));
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, active);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, active);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connected);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, active);
    if (active->request->plain)
        curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    if (http->loop->multiplexes) /* rather than to make a connection for each */
        curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
    return curl_easy_setopt(easy, CURLOPT_URL, active->url) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_USERAGENT, "epochfs/" EPOCHFS_VERSION) == CURLE_OK &&
           (!http->ca || curl_easy_setopt(easy, CURLOPT_CAINFO, http->ca) == CURLE_OK) &&
           set_method(easy, active->request) && set_version(active) &&
           add_header(active, "Accept-Encoding: identity") &&
           (active->foreign || set_identity(active)) &&
           curl_easy_setopt(easy, CURLOPT_HTTPHEADER, active->headers) == CURLE_OK;
}

/* A part of a URL, decoded; NULL: none. curl_free() it. */
static char *url_part(CURLU *url, CURLUPart part, unsigned flags)
{
    char *text = NULL;

    return curl_url_get(url, part, &text, flags) == CURLUE_OK ? text : NULL;
}

/* Take the user info out of url, and have its text as the one that is asked. */
static bool take_url(struct http_active *active, CURLU *url)
{
    curl_url_set(url, CURLUPART_USER, NULL, 0);
    curl_url_set(url, CURLUPART_PASSWORD, NULL, 0);
    curl_url_set(url, CURLUPART_OPTIONS, NULL, 0);
    curl_url_set(url, CURLUPART_FRAGMENT, NULL, 0);
    curl_free(active->url);
    active->url = url_part(url, CURLUPART_URL, 0);
    return active->url != NULL;
}

static bool is_http(CURLU *url)
{
    char *scheme = url_part(url, CURLUPART_SCHEME, 0);
    bool ok = scheme && (strcasecmp(scheme, "http") == 0 || strcasecmp(scheme, "https") == 0);

    curl_free(scheme);
    return ok;
}

static bool same_part(CURLU *a, CURLU *b, CURLUPart part)
{
    char *x = url_part(a, part, CURLU_DEFAULT_PORT), *y = url_part(b, part, CURLU_DEFAULT_PORT);
    bool same = x && y && strcasecmp(x, y) == 0;

    curl_free(x);
    curl_free(y);
    return same;
}

/* libcurl takes "." and ".." out of the paths that it signs, so it would ask for another object. */
static bool may_be_signed(CURLU *url, const char *text)
{
    CURLU *signed_one = curl_url();
    bool same = signed_one && curl_url_set(signed_one, CURLUPART_URL, text, 0) == CURLUE_OK &&
                same_part(url, signed_one, CURLUPART_PATH);

    curl_url_cleanup(signed_one);
    return same;
}

/* NULL, or what is wrong. */
static const char *first_url(struct http_active *active)
{
    CURLU *url = curl_url();
    const char *why = "out of memory";

    if (!url)
        return why;
    if (curl_url_set(url, CURLUPART_URL, active->request->url, CURLU_PATH_AS_IS) != CURLUE_OK ||
        !is_http(url)) {
        why = "it is not an http or https URL";
    } else if (active->request->signature && !may_be_signed(url, active->request->url)) {
        why = "want a path without . and .., which is signed; found one";
    } else {
        active->user = url_part(url, CURLUPART_USER, CURLU_URLDECODE);
        active->password = url_part(url, CURLUPART_PASSWORD, CURLU_URLDECODE);
        if (take_url(active, url))
            why = NULL;
    }
    curl_url_cleanup(url);
    return why;
}

/* Go where the reply says. NULL, or why not. */
static const char *next_url(struct http_active *active)
{
    CURLU *from = curl_url(), *to = curl_url();
    const char *why = "out of memory";
    bool same_scheme;

    if (!from || !to || curl_url_set(from, CURLUPART_URL, active->url, 0) != CURLUE_OK ||
        curl_url_set(to, CURLUPART_URL, active->url, 0) != CURLUE_OK)
        goto out;
    if (curl_url_set(to, CURLUPART_URL, active->request->reply.location, CURLU_URLENCODE) !=
            CURLUE_OK ||
        !is_http(to)) {
        why = "redirected to something that is not an http or https URL";
        goto out;
    }
    same_scheme = same_part(from, to, CURLUPART_SCHEME);
    if (!same_scheme && strncasecmp(active->url, "https:", 6) == 0) {
        why = "redirected from https to http";
        goto out;
    }
    if (!same_scheme || !same_part(from, to, CURLUPART_HOST) ||
        !same_part(from, to, CURLUPART_PORT))
        active->foreign = true;
    if (take_url(active, to))
        why = NULL;
out:
    curl_url_cleanup(from);
    curl_url_cleanup(to);
    return why;
}

static CURL *handle_take(struct http_loop *loop)
{
    return loop->n_idle > 0 ? loop->idle[--loop->n_idle] : curl_easy_init();
}

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

/* A request that ends before it is active. */
static void fail(struct http_request *request, enum http_end end, const char *why)
{
    void (*release)(struct http_request * request) = request->release;

    http_signature_let_go(request->signature);
    request->signature = NULL;
    request->end = end;
    snprintf(request->why, sizeof(request->why), "%s", why);
    request->done(request);
    if (release)
        release(request);
}

static void begin(struct http *http, struct http_request *request)
{
    struct http_loop *loop = http->loop;
    struct http_active *active;
    const char *why;

    if (atomic_load(&request->stopped)) {
        fail(request, HTTP_STOPPED, "stopped");
        return;
    }
    active = calloc(1, sizeof(*active));
    if (!active) {
        fail(request, HTTP_BROKEN, "out of memory");
        return;
    }
    active->http = http;
    active->request = request;
    active->paused = atomic_load(&request->pause);
    active->deadline_ns = request->limit_ns ? monotonic_ns() + request->limit_ns : NEVER;
    active->easy = handle_take(loop);
    active->next = loop->active;
    loop->active = active;
    loop->counted += !active->paused;
    why = first_url(active);
    if (why)
        finish(active, HTTP_UNTRUSTED, why);
    else if (!active->easy || !set_options(active) ||
             curl_multi_add_handle(loop->multi, active->easy) != CURLM_OK)
        finish(active, HTTP_BROKEN,
               "it cannot be sent: out of memory, or a header is not one line");
}

/* ---- ending a request ---- */

/* The handle is not of the multi handle any more. */
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
    wipe_headers(active);
    curl_free(active->url);
    curl_free(active->user);
    if (active->password)
        explicit_bzero(active->password, strlen(active->password));
    curl_free(active->password);
    free(active);
    fail(request, end, why);
}

/* End one that is under way. */
static void cut(struct http_active *active, enum http_end end, const char *why)
{
    curl_multi_remove_handle(active->http->loop->multi, active->easy);
    finish(active, end, why);
}

static enum http_end end_of(CURLcode code)
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

/* The reply sends us elsewhere: go there. */
static void redirect(struct http_active *active)
{
    const char *why = active->redirects++ < REDIRECTS ? next_url(active) : "too many redirects";

    if (why) {
        finish(active, HTTP_UNTRUSTED, why);
        return;
    }
    active->request->reply = (struct http_reply){.status = 0};
    active->request->error_len = 0;
    active->skipped = 0;
    active->given_up = false;
    if (!set_options(active) ||
        curl_multi_add_handle(active->http->loop->multi, active->easy) != CURLM_OK)
        finish(active, HTTP_BROKEN,
               "it cannot be sent: out of memory, or a header is not one line");
}

/* libcurl has done what it could. */
static void settle(struct http_active *active, CURLcode code)
{
    struct http_request *request = active->request;
    char why[sizeof(active->message)];
    long version;

    if (curl_easy_getinfo(active->easy, CURLINFO_HTTP_VERSION, &version) == CURLE_OK && version)
        active->http->loop->multiplexes = version >= CURL_HTTP_VERSION_2_0;
    curl_multi_remove_handle(active->http->loop->multi, active->easy);
    if (atomic_load(&request->stopped)) {
        finish(active, HTTP_STOPPED, "stopped");
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
        finish(active, end_of(code), code == CURLE_OK ? "" : why);
    }
}

/* ---- the loop ---- */

/* Requests that have been stopped, or shall pause or go on. */
static void heed_pokes(struct http_loop *loop)
{
    struct http_active *next;

    for (struct http_active *active = loop->active; active; active = next) {
        bool pause = atomic_load(&active->request->pause);

        next = active->next;
        if (atomic_load(&active->request->stopped)) {
            cut(active, HTTP_STOPPED, "stopped");
            continue;
        }
        if (pause == active->paused)
            continue;
        active->paused = pause;
        loop->counted += pause ? -1u : 1u;
        if (pause) /* on_body() does it */
            continue;
        if (active->given_ns != NEVER)
            listen_anew(active);
        if (curl_easy_pause(active->easy, CURLPAUSE_CONT) != CURLE_OK)
            settle(active, CURLE_WRITE_ERROR);
    }
    for (struct http_request **at = &loop->waiting; *at;) {
        struct http_request *request = *at;

        if (!atomic_load(&request->stopped)) {
            at = &request->next;
            continue;
        }
        *at = request->next;
        if (!*at)
            loop->waiting_end = at;
        fail(request, HTTP_STOPPED, "stopped");
    }
}

/* Does the request take too long? Then why says so. A server that has gone silent is to be called
 * that, rather than slow, so slowness has an eighth more of time. */
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
        snprintf(why, size, "too slow: the server sent %" PRIu64 " bytes in %lld s, want %" PRIu64,
                 active->heard_bytes, seconds,
                 transfer_share((uint64_t)seconds, active->http->loop->counted));
    else
        return false;
    return true;
}

static void heed_time(struct http *http)
{
    struct http_loop *loop = http->loop;
    int64_t now = monotonic_ns();
    struct http_active *next;
    char why[120];

    if (now < loop->look_ns)
        return;
    loop->look_ns = now + (http->timeout_ns < LOOK_NS * 8 ? http->timeout_ns / 8 : LOOK_NS);
    for (struct http_active *active = loop->active; active; active = next) {
        next = active->next;
        if (is_late(active, now, why, sizeof(why)))
            cut(active, HTTP_BROKEN, why);
    }
}

/* Take what was put in. Returns whether the loop shall go on. */
static bool take_in(struct http_loop *loop)
{
    LOCK_SCOPE(&loop->lock);

    if (loop->in) {
        *loop->waiting_end = loop->in;
        loop->waiting_end = loop->in_end;
        loop->in = NULL;
        loop->in_end = &loop->in;
    }
    return !loop->ending;
}

static void begin_waiting(struct http *http)
{
    struct http_loop *loop = http->loop;
    struct http_request **at = &loop->waiting;

    while (*at) {
        struct http_request *request = *at;

        if (!request->at_once && loop->counted >= http->jobs) {
            at = &request->next;
            continue;
        }
        *at = request->next;
        if (!*at)
            loop->waiting_end = at;
        begin(http, request);
    }
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
        settle(active, code);
    }
}

/* Until heed_time() has to look again. */
static int ms_to_look(const struct http_loop *loop)
{
    int64_t ns = loop->look_ns - monotonic_ns();

    return ns < 0 ? 0 : (int)(ns / 1000000) + 1;
}

static void *loop_main(void *arg)
{
    struct http *http = arg;
    struct http_loop *loop = http->loop;
    int running;

    while (take_in(loop)) {
        if (atomic_exchange(&loop->poked, false))
            heed_pokes(loop);
        begin_waiting(http);
        curl_multi_perform(loop->multi, &running);
        take_messages(loop);
        heed_time(http);
        begin_waiting(http);
        curl_multi_poll(loop->multi, NULL, 0, loop->active ? ms_to_look(loop) : IDLE_MS, NULL);
    }
    return NULL;
}

/* ---- for the other files ---- */

static int run_locked(struct http *http)
{
    struct http_loop *loop = http->loop;
    sigset_t all, before;
    int r;

    lock_assert_held(&loop->lock);
    if (loop->running)
        return 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(&loop->thread, NULL, loop_main, http);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    loop->running = r == 0;
    return -r;
}

int http_request_start(struct http *http, struct http_request *request)
{
    struct http_loop *loop = http->loop;
    int r;

    lock_take(&loop->lock);
    r = run_locked(http);
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

static void poke(struct http_loop *loop)
{
    atomic_store(&loop->poked, true);
    curl_multi_wakeup(loop->multi);
}

void http_request_stop(struct http *http, struct http_request *request)
{
    atomic_store(&request->stopped, true);
    poke(http->loop);
}

void http_request_pause(struct http *http, struct http_request *request, bool paused)
{
    atomic_store(&request->pause, paused);
    poke(http->loop);
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

static int loop_new(const struct http *http, struct http_loop **ret)
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
    /* Connections that are kept: those of paused requests and of texts, too. */
    curl_multi_setopt(loop->multi, CURLMOPT_MAXCONNECTS, (long)http->jobs + 8);
    curl_multi_setopt(loop->multi, CURLMOPT_MAX_CONCURRENT_STREAMS, (long)http->jobs + 8);
    lock_init(&loop->lock);
    loop->in_end = &loop->in;
    loop->waiting_end = &loop->waiting;
    *ret = loop;
    return 0;
}

/* Closing a TLS connection writes to it: a SIGPIPE must not get to the caller. */
static void loop_free(struct http_loop *loop)
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
    free(loop);
}

void http_free(struct http *http)
{
    if (!http)
        return;
    if (http->loop)
        http_loop_rest(http);
    loop_free(http->loop);
    http_signing_release(&http->signing);
    free(http->ca);
    free(http);
}

/* Are there certificates in the file? */
static int check_ca(const char *path, char **ret, struct diag *d)
{
    AUTO_FREE char *line = NULL;
    size_t capacity = 0;
    FILE *f = fopen(path, "re");
    bool found = false;

    if (!f)
        return diag_set(d, -errno, "%s: certificates to trust: %s", path, strerror(errno));
    while (!found && getline(&line, &capacity, f) >= 0)
        found = strncmp(line, "-----BEGIN ", 11) == 0 && strstr(line, "CERTIFICATE");
    fclose(f);
    if (!found)
        return diag_set(d, -EINVAL,
                        "%s: certificates to trust: want a line -----BEGIN CERTIFICATE-----, "
                        "found none",
                        path);
    *ret = realpath(path, NULL); /* a daemon goes to / */
    return *ret ? 0 : diag_set(d, -errno, "%s: %s", path, strerror(errno));
}

int http_new(const struct http_options *options, struct http **ret, struct diag *d)
{
    struct http *http = calloc(1, sizeof(*http));
    int r;

    if (!http)
        return -ENOMEM;
    http->transport.ops = &http_transport_ops;
    http->jobs = options->jobs < 2 ? 2 : options->jobs;
    http->sure_jobs = options->sure_jobs ? options->sure_jobs : http->jobs;
    http->timeout_ns = (int64_t)(options->timeout_s ? options->timeout_s : 1) * 1000000000;
    http_signing_init(&http->signing, options->signer);
    r = options->ca ? check_ca(options->ca, &http->ca, d) : 0;
    if (r == 0)
        r = loop_new(http, &http->loop);
    if (r < 0) {
        http_free(http);
        return r;
    }
    *ret = http;
    return 0;
}

struct transport *http_transport(struct http *http)
{
    return &http->transport;
}
