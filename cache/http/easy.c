/* The libcurl handle of one request: its options and callbacks.
 *
 * Invariants:
 * 1. Credentials go to the origin (scheme, host, port) of the first URL and to no other.
 * 2. head() and body() get only replies with status 2xx. Other bodies are skipped, or given up if
 *    they are long. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/checked.h"
#include "base/clock.h"
#include "cache/http/active.h"

#define BUFFER           (64L << 10) /* bytes; from 128 KiB on it is new memory for each request */
#define SKIP_MOST        (64u << 10) /* of an unwanted body: a new connection costs more */
#define FRONT_CONNECT_MS 1000L       /* to the front of a ring of caches, on this machine */

/* ---- what the server gives ---- */

/* Start the timeout of the server. */
void http_active_listen(struct http_active *active)
{
    active->given_ns = active->heard_ns = clock_monotonic(active->http->clock);
    active->heard_bytes = 0;
}

static void hear(struct http_active *active, size_t n)
{
    struct http *http = active->http;

    active->given_ns = active->sent_ns = clock_monotonic(http->clock);
    if (active->via) {
        http->via.gave_ns = active->given_ns;
        http_via_hear(http, active->request->reply.member);
    }
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
    http_reply_line(&active->request->reply, bytes, n,
                    clock_wall(active->http->clock) / 1000000000);
    if (!active->answered && active->request->reply.complete &&
        active->request->reply.status >= 200) {
        active->answered = true; /* the head may have taken all of its time */
        http_active_listen(active);
    }
    return n;
}

/* Skip an unwanted body; its beginning may say why it is an error. */
static bool skip(struct http_active *active, const char *bytes, size_t n)
{
    struct http_request *request = active->request;
    size_t kept = min_u64(n, sizeof(request->error) - request->error_len);

    memcpy(request->error + request->error_len, bytes, kept);
    request->error_len += kept;
    active->skipped += n;
    return active->skipped <= SKIP_MOST;
}

static size_t easy_on_body(char *bytes, size_t one, size_t n, void *ctx)
{
    struct http_active *active = ctx;
    struct http_request *request = active->request;
    bool more;

    (void)one;
    if (active->paused) {
        active->held = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    hear(active, n);
    if (atomic_load_explicit(&request->stopped, memory_order_relaxed)) {
        more = false;
    } else if (request->reply.status / 100 != 2) {
        more = skip(active, bytes, n);
    } else {
        active->starved_ns = active->given_ns;
        active->broken = active->stalls = 0;
        active->probed = false;
        if (active->via)
            atomic_fetch_add_explicit(&active->http->via.bytes, n, memory_order_relaxed);
        more = active->begun || !request->head || request->head(request);
        active->begun = true;
        more = more && (request->body ? request->body(request, bytes, n) : skip(active, bytes, n));
    }
    if (more)
        return n;
    active->given_up = true;
    return 0;
}

/* libcurl has a connection and is about to send the request. */
static int on_connected(void *ctx, char *to, char *from, int to_port, int from_port)
{
    struct http_active *active = ctx;

    (void)to;
    (void)from;
    (void)to_port;
    (void)from_port;
    http_active_listen(active);
    return CURL_PREREQFUNC_OK;
}

/* libcurl tells what it sends. */
static int on_sent(CURL *easy, curl_infotype type, char *bytes, size_t n, void *ctx)
{
    struct http_active *active = ctx;

    (void)easy;
    if (type == CURLINFO_HEADER_OUT && n > 8 && memcmp(bytes, "CONNECT ", 8) != 0)
        atomic_store(&active->http->user, memmem(bytes, n, "\nAuthorization:", 15) ||
                                                  memmem(bytes, n, "\nauthorization:", 15)
                                              ? HTTP_USER_SENT
                                              : HTTP_USER_NONE);
    return 0;
}

/* ---- its options ---- */

/* Let libcurl look into ~/.netrc, for this host and no other, and learn whether it finds a user. If
 * the first host had none, none is sent: that host may have named this one by a redirect. */
static void set_netrc(struct http_active *active)
{
    if (atomic_load(&active->http->user) == HTTP_USER_NONE)
        return;
    curl_easy_setopt(active->easy, CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
    if (active->request->plain || atomic_load(&active->http->user) != HTTP_USER_UNKNOWN)
        return;
    curl_easy_setopt(active->easy, CURLOPT_DEBUGFUNCTION, on_sent);
    curl_easy_setopt(active->easy, CURLOPT_DEBUGDATA, active);
    curl_easy_setopt(active->easy, CURLOPT_VERBOSE, 1L);
}

/* Add a header, which must be exactly one line, and may have a secret. */
static bool __attribute__((format(printf, 2, 3)))
add_header(struct curl_slist **list, const char *format, ...)
{
    struct curl_slist *longer = NULL;
    char *line = NULL;
    va_list args;

    va_start(args, format);
    if (vasprintf(&line, format, args) < 0)
        line = NULL;
    va_end(args);
    if (line && !strpbrk(line, "\r\n"))
        longer = curl_slist_append(*list, line);
    secret_free(&line);
    if (longer)
        *list = longer;
    return longer != NULL;
}

static void wipe_list(struct curl_slist **list)
{
    for (struct curl_slist *h = *list; h; h = h->next)
        explicit_bzero(h->data, strlen(h->data));
    curl_slist_free_all(*list);
    *list = NULL;
}

void http_easy_wipe(struct http_active *active)
{
    wipe_list(&active->headers);
    wipe_list(&active->front_headers);
}

/* Set the credentials. Must not be called for another origin. */
static bool set_identity(struct http_active *active)
{
    const struct http_signature *signature = active->request->signature;
    const char *const *line = active->request->headers;
    struct curl_slist **headers = &active->headers;
    char scheme[96];

    for (; line && *line; line++)
        if (!add_header(headers, "%s", *line))
            return false;
    if (!signature) {
        if (!active->user && !active->request->no_sign)
            set_netrc(active);
        return !active->user ||
               (curl_easy_setopt(active->easy, CURLOPT_USERNAME, active->user) == CURLE_OK &&
                curl_easy_setopt(active->easy, CURLOPT_PASSWORD,
                                 active->password ? active->password : "") == CURLE_OK);
    }
    if (!signature->secret.key_id)
        return add_header(headers, "Authorization: Bearer %s", signature->secret.token) &&
               (!signature->header || add_header(headers, "%s", signature->header));
    snprintf(scheme, sizeof(scheme), "aws:amz:%s:s3", signature->region);
    return curl_easy_setopt(active->easy, CURLOPT_AWS_SIGV4, scheme) == CURLE_OK &&
           curl_easy_setopt(active->easy, CURLOPT_USERNAME, signature->secret.key_id) == CURLE_OK &&
           curl_easy_setopt(active->easy, CURLOPT_PASSWORD, signature->secret.key) == CURLE_OK &&
           add_header(headers, "x-amz-content-sha256: UNSIGNED-PAYLOAD") &&
           (!signature->header || add_header(headers, "%s", signature->header)) &&
           (!signature->secret.token ||
            add_header(headers, "x-amz-security-token: %s", signature->secret.token));
}

static bool set_method(CURL *easy, const struct http_request *request)
{
    char range[64];

    if (request->method && strcmp(request->method, "HEAD") == 0)
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    else if (request->method &&
             curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method) != CURLE_OK)
        return false;
    if (request->post)
        return curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->post) == CURLE_OK;
    if (request->len == 0)
        return true;
    snprintf(range, sizeof(range), "%llu-%llu", (unsigned long long)request->off,
             (unsigned long long)(request->off + request->len - 1));
    return curl_easy_setopt(easy, CURLOPT_RANGE, range) == CURLE_OK;
}

/* A socket for a connection to the front. It must be of this user or root: others may take the port
 * when the front has ended, and what is sent there is secret. */
static curl_socket_t open_to_front(void *ctx, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct http_active *active = ctx;

    (void)purpose;
    if (!http_via_may_ask(active->http, &to->addr))
        return CURL_SOCKET_BAD;
    return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

/* A probe is sent to the front itself. */
static bool is_for_front(const struct http_active *active)
{
    const char *front = active->http->via.url;

    return front && (active->via || (active->request->plain &&
                                     strncmp(active->request->url, front, strlen(front)) == 0));
}

/* Send the request to the front of a ring of caches, as to a proxy. Headers for it are not among
 * those that are signed: the ring takes them away. */
static bool set_front(struct http_active *active)
{
    const struct http_via *via = &active->http->via;
    struct curl_slist **headers = &active->front_headers;
    CURL *easy = active->easy;

    active->slice = active->request->in_slices ? active->request->off / HTTP_SLICE : UINT64_MAX;
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, FRONT_CONNECT_MS);
    return http_target_front(active) &&
           http_via_key(active->origin, active->url, active->key) == 0 &&
           (!via->secret || add_header(headers, "%s", via->secret)) &&
           add_header(headers, "X-Epochfs-Origin: %s", active->origin) &&
           add_header(headers, "X-Epochfs-Key: %s", active->key) &&
           (active->slice == UINT64_MAX ||
            add_header(headers, "X-Epochfs-Slice: %" PRIu64, active->slice)) &&
           curl_easy_setopt(easy, CURLOPT_URL, active->front_url) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PROXY, via->url) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_NOPROXY, "") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PROXYHEADER, active->front_headers) == CURLE_OK;
}

/* Set all options again: nothing of the previous request may remain. */
bool http_easy_set(struct http_active *active)
{
    const struct http *http = active->http;
    const char *version = active->request->version;
    CURL *easy = active->easy;

    http_easy_wipe(active);
    curl_easy_reset(easy);
    active->message[0] = '\0';
    active->given_ns = NEVER;
    active->answered = false;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, active);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, active->message);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    /* libcurl 8 refuses both at once; see may_be_signed(). */
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, active->request->signature ? 0L : 1L);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, BUFFER);
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)(http->timeout_ns / 1000000));
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, active);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, easy_on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, active);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connected);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, active);
    if (active->request->plain)
        curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    if (http->loop->multiplexes) /* instead of a connection for each request */
        curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
    /* Ask for the bytes as they are stored. libcurl signs what is in CURLOPT_HTTPHEADER, and front
     * ends of Google change this header on the way, so it is made apart. */
    curl_easy_setopt(easy, CURLOPT_HTTP_CONTENT_DECODING, 0L);
    return curl_easy_setopt(easy, CURLOPT_URL, active->url) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_USERAGENT, "epochfs/" EPOCHFS_VERSION) == CURLE_OK &&
           (!http->ca || curl_easy_setopt(easy, CURLOPT_CAINFO, http->ca) == CURLE_OK) &&
           curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING,
                            http->accepts_gzip ? "gzip" : "identity") == CURLE_OK &&
           /* A server that has another version by now need not send it, and a cache on the way
            * knows which one to give. */
           (!version || add_header(&active->headers, "If-Match: %s", version)) &&
           set_method(easy, active->request) && (active->foreign || set_identity(active)) &&
           curl_easy_setopt(easy, CURLOPT_HTTPHEADER, active->headers) == CURLE_OK &&
           (!is_for_front(active) ||
            (curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_to_front) == CURLE_OK &&
             curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, active) == CURLE_OK)) &&
           (!active->via || set_front(active));
}
