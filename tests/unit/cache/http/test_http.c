/* HTTP against a server that follows a script: right, wrong, late, or not at all.
 *
 * No test waits for time to pass, unless a time limit is its subject. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/scope.h"
#include "cache/http/http.h"
#include "cache/http/parts.h"
#include "support/script_server.h"
#include "support/temp_folder.h"
#include "support/test_clock.h"
#include "support/unit.h"

#define TRIES     50 /* a loaded machine may be slower than the tested limit */
#define FILE_SIZE UINT64_C(1000000)
#define ETAG      "\"v1\""

static uint8_t byte_at(uint64_t i)
{
    return (uint8_t)(i * 31 ^ i >> 8);
}

/* ---- scripts ---- */

static bool send_file(const struct script_request *q, uint64_t first, uint64_t n)
{
    uint8_t bytes[4096];

    while (n > 0) {
        size_t now = min_u64(n, sizeof(bytes));

        for (size_t i = 0; i < now; i++)
            bytes[i] = byte_at(first + i);
        if (!script_send(q, bytes, now))
            return false;
        first += now;
        n -= now;
    }
    return true;
}

#define RANGE_FORMAT "Content-Range: bytes %llu-%llu/%llu\r\n"
#define RANGE_OF(q)                                                                                \
    (unsigned long long)(q)->first, (unsigned long long)(q)->last, (unsigned long long)FILE_SIZE

static uint64_t len_of(const struct script_request *q)
{
    return q->last - q->first + 1;
}

/* A correct head; the lines in `more` come first. */
static bool part_head(const struct script_request *q, const char *more)
{
    return script_say(q,
                      "HTTP/1.1 206 Partial Content\r\n%sContent-Length: %llu\r\n" RANGE_FORMAT
                      "ETag: " ETAG "\r\n\r\n",
                      more, (unsigned long long)len_of(q), RANGE_OF(q));
}

static bool say_status(const struct script_request *q, const char *status, const char *more,
                       const char *body)
{
    return script_say(q, "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n%s", status, more,
                      strlen(body), body);
}

static bool right(const struct script_request *q)
{
    return part_head(q, "") && send_file(q, q->first, len_of(q));
}

static bool early_hints(const struct script_request *q)
{
    return script_say(q, "HTTP/1.1 103 Early Hints\r\nETag: \"v0\"\r\n\r\n") && right(q);
}

static bool wrong_place(const struct script_request *q)
{
    struct script_request other = *q;

    other.first++;
    other.last++;
    return right(&other);
}

static bool other_size(const struct script_request *q)
{
    return script_say(q,
                      "HTTP/1.1 206 x\r\nContent-Length: %llu\r\n"
                      "Content-Range: bytes %llu-%llu/%llu\r\n\r\n",
                      (unsigned long long)len_of(q), (unsigned long long)q->first,
                      (unsigned long long)q->last, (unsigned long long)FILE_SIZE + 1) &&
           send_file(q, q->first, len_of(q));
}

/* Obeys If-Match, as S3 servers do. */
static bool matches(const struct script_request *q)
{
    return strstr(q->head, "\r\nIf-Match: " ETAG "\r\n")
               ? right(q)
               : say_status(q, "412 Precondition Failed", "", "");
}

static bool asked_for_any(const struct script_request *q)
{
    if (strstr(q->head, "If-Match"))
        return say_status(q, "412 Precondition Failed", "", "");
    return script_say(
               q, "HTTP/1.1 206 Partial Content\r\nContent-Length: %llu\r\n" RANGE_FORMAT "\r\n",
               (unsigned long long)len_of(q), RANGE_OF(q)) &&
           send_file(q, q->first, len_of(q));
}

static bool other_etag(const struct script_request *q)
{
    return script_say(
               q, "HTTP/1.1 206 x\r\nContent-Length: %llu\r\n" RANGE_FORMAT "ETag: \"v2\"\r\n\r\n",
               (unsigned long long)len_of(q), RANGE_OF(q)) &&
           send_file(q, q->first, len_of(q));
}

static bool no_range(const struct script_request *q)
{
    return script_say(q, "HTTP/1.1 206 x\r\nContent-Length: %llu\r\n\r\n",
                      (unsigned long long)len_of(q)) &&
           send_file(q, q->first, len_of(q));
}

static bool encoded(const struct script_request *q)
{
    return part_head(q, "Content-Encoding: br\r\n") && send_file(q, q->first, len_of(q));
}

static bool stored_packed(const struct script_request *q)
{
    return part_head(q, "Content-Encoding: gzip\r\n") && send_file(q, q->first, len_of(q));
}

static bool whole(const struct script_request *q)
{
    return script_say(q, "HTTP/1.1 200 OK\r\nContent-Length: %llu\r\nETag: " ETAG "\r\n\r\n",
                      (unsigned long long)FILE_SIZE) &&
           send_file(q, 0, FILE_SIZE);
}

static bool whole_longer(const struct script_request *q)
{
    script_say(q, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nETag: " ETAG "\r\n\r\n%llx\r\n",
               (unsigned long long)FILE_SIZE + 1);
    return send_file(q, 0, FILE_SIZE + 1) && script_say(q, "\r\n0\r\n\r\n");
}

/* The requested bytes come, and then nothing. */
static bool whole_stalls(const struct script_request *q)
{
    script_say(q, "HTTP/1.1 200 OK\r\nContent-Length: %llu\r\nETag: " ETAG "\r\n\r\n",
               (unsigned long long)FILE_SIZE);
    send_file(q, 0, 200);
    script_wait_closed(q);
    return false;
}

static bool busy_once(const struct script_request *q)
{
    return q->nth == 1 ? say_status(q, "503 Busy", "Retry-After: 7\r\n", "busy") : right(q);
}

static bool too_many(const struct script_request *q)
{
    return q->nth == 1 ? say_status(q, "429 Slow down", "Retry-After: 1\r\n", "") : right(q);
}

static bool gone(const struct script_request *q)
{
    return say_status(q, "404 Not Found", "", "<html>");
}

static bool path_as_is(const struct script_request *q)
{
    return strstr(q->head, "GET /a/../right/./b HTTP") == q->head ? right(q) : gone(q);
}

static bool forbidden(const struct script_request *q)
{
    return say_status(q, "403 Forbidden", "", "<Error><Code>AccessDenied</Code></Error>");
}

static bool expired(const struct script_request *q)
{
    return say_status(q, "400 Bad Request", "", "<Error><Code>ExpiredToken</Code></Error>");
}

static bool out_of_range(const struct script_request *q)
{
    return say_status(q, "416 x", "Content-Range: bytes */10\r\n", "");
}

static bool resets(const struct script_request *q)
{
    part_head(q, "");
    send_file(q, q->first, len_of(q) / 2);
    return script_reset(q);
}

static bool shorter(const struct script_request *q)
{
    part_head(q, "");
    send_file(q, q->first, len_of(q) / 2);
    return false;
}

/* The body ends with a proper end, but too early. */
static bool shorter_chunked(const struct script_request *q)
{
    return script_say(q,
                      "HTTP/1.1 206 x\r\nTransfer-Encoding: chunked\r\n" RANGE_FORMAT "ETag: " ETAG
                      "\r\n\r\n1\r\n%c\r\n0\r\n\r\n",
                      RANGE_OF(q), byte_at(q->first));
}

static bool longer_chunked(const struct script_request *q)
{
    script_say(q,
               "HTTP/1.1 206 x\r\nTransfer-Encoding: chunked\r\n" RANGE_FORMAT "ETag: " ETAG
               "\r\n\r\n%llx\r\n",
               RANGE_OF(q), (unsigned long long)len_of(q) + 10);
    return send_file(q, q->first, len_of(q) + 10) && script_say(q, "\r\n0\r\n\r\n");
}

static bool stalls(const struct script_request *q)
{
    part_head(q, "");
    send_file(q, q->first, len_of(q) / 2);
    script_wait_closed(q);
    return false;
}

/* Sends half, then the rest when the test writes a byte into the gate. */
static int gate[2];

static bool gated(const struct script_request *q)
{
    char byte;

    return part_head(q, "") && send_file(q, q->first, len_of(q) / 2) &&
           read(gate[0], &byte, 1) == 1 &&
           send_file(q, q->first + len_of(q) / 2, len_of(q) - len_of(q) / 2);
}

/* The clock of the test's fixtures, of which there may be two. */
static struct test_clock the_clock;
static unsigned clock_users;

static void pause_50_ms(void)
{
    test_clock_turn_polled(&the_clock, 50 * TEST_MS);
}

/* A quarter of 100 ms: four connections pass the time. */
static void pause_25_ms(void)
{
    test_clock_turn_polled(&the_clock, 25 * TEST_MS);
}

/* Time passes, and nothing is sent. */
static bool silent(const struct script_request *q)
{
    script_stay_silent(q, pause_50_ms);
    return false;
}

/* Send the requested part, piece bytes at a time. */
static bool drip_part(const struct script_request *q, size_t piece, void (*pause)(void))
{
    uint8_t bytes[4096];
    size_t n = (size_t)min_u64(len_of(q), sizeof(bytes));

    for (size_t i = 0; i < n; i++)
        bytes[i] = byte_at(q->first + i);
    return part_head(q, "") && script_drip(q, bytes, min_u64(n, 1000 * piece), piece, pause);
}

static bool drips(const struct script_request *q)
{
    return drip_part(q, 1, pause_50_ms);
}

/* 800 bytes per second: too few for one transfer, enough for one of four. */
static bool trickles(const struct script_request *q)
{
    return drip_part(q, 80, pause_25_ms);
}

static bool drips_head(const struct script_request *q)
{
    static const char line[] = "X-A: b\r\n";

    script_say(q, "HTTP/1.1 206 x\r\n");
    for (int i = 0; i < 1000; i++)
        if (!script_drip(q, line, sizeof(line) - 1, sizeof(line) - 1, pause_50_ms))
            break;
    return false;
}

/* An endless page. */
static bool drips_text(const struct script_request *q)
{
    script_say(q, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 1000; i++)
        if (!script_drip(q, "1\r\nx\r\n", 6, 6, pause_50_ms))
            break;
    return false;
}

static bool mute(const struct script_request *q)
{
    script_wait_closed(q);
    return false;
}

static bool redirect_to(const struct script_request *q, const char *url)
{
    char location[1100];

    snprintf(location, sizeof(location), "Location: %s\r\n", url);
    return say_status(q, "302 Found", location, "moved");
}

static bool redirects(const struct script_request *q)
{
    return redirect_to(q, "/hop");
}

static bool to_matches(const struct script_request *q)
{
    return redirect_to(q, "/matches");
}

static bool ten_redirects(const struct script_request *q)
{
    return redirect_to(q, q->nth < 10 ? "/ten" : "/right");
}

static bool eleven_redirects(const struct script_request *q)
{
    return redirect_to(q, q->nth < 11 ? "/eleven" : "/right");
}

static bool loops(const struct script_request *q)
{
    return redirect_to(q, "/loops?again");
}

/* Each reply comes in time. */
static bool slow_hops(const struct script_request *q)
{
    for (int i = 0; i < 8; i++)
        pause_50_ms();
    return redirect_to(q, "/slow_hops");
}

static bool to_ftp(const struct script_request *q)
{
    return redirect_to(q, "ftp://127.0.0.1/right");
}

static bool to_file(const struct script_request *q)
{
    return redirect_to(q, "file:///etc/passwd");
}

/* Redirect to the other server, whose port is in the query. */
static bool to_other(const struct script_request *q)
{
    const char *port = strstr(q->head, "?port=");
    char url[64];

    snprintf(url, sizeof(url), "http://127.0.0.1:%.5s/tells", port ? port + 6 : "1");
    url[17 + strspn(url + 17, "0123456789")] = '\0';
    snprintf(url + strlen(url), sizeof(url) - strlen(url), "/tells");
    return redirect_to(q, url);
}

/* Reply with the credentials that this server received. */
static bool tells(const struct script_request *q)
{
    bool knows = strstr(q->head, "uthorization:") || strstr(q->head, "security-token") ||
                 strstr(q->head, "X-Secret");

    return say_status(q, "200 OK", "", knows ? "known" : "unknown");
}

static bool echoes(const struct script_request *q)
{
    return say_status(q, "200 OK", "", q->head);
}

static bool huge_length(const struct script_request *q)
{
    script_say(q,
               "HTTP/1.1 206 x\r\nContent-Length: 99999999999999999999999\r\n" RANGE_FORMAT "\r\n",
               RANGE_OF(q));
    send_file(q, q->first, len_of(q));
    return false;
}

static bool garbage(const struct script_request *q)
{
    script_say(q, "\x01\x02garbage\r\n\r\nmore");
    return false;
}

static bool endless_headers(const struct script_request *q)
{
    if (!script_say(q, "HTTP/1.1 206 x\r\n"))
        return false;
    while (script_say(q, "X-More: %0500d\r\n", 7)) {
    }
    return false;
}

static bool endless_hints(const struct script_request *q)
{
    while (script_say(q, "HTTP/1.1 103 x\r\nX-More: %0500d\r\n\r\n", 7)) {
    }
    return false;
}

static bool endless_error(const struct script_request *q)
{
    if (!script_say(q, "HTTP/1.1 403 x\r\nTransfer-Encoding: chunked\r\n\r\n"))
        return false;
    while (script_say(q, "1f4\r\n%0500d\r\n", 7)) {
    }
    return false;
}

static bool closes_after(const struct script_request *q)
{
    right(q);
    return false;
}

/* ---- files, for http_stat() ---- */

static bool is_head(const struct script_request *q)
{
    return strcmp(q->method, "HEAD") == 0;
}

static bool says_version(const struct script_request *q)
{
    return script_say(q, "HTTP/1.1 200 OK\r\nContent-Length: 12345\r\nETag: " ETAG
                         "\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n");
}

static bool says_none(const struct script_request *q)
{
    return script_say(q, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nAccept-Ranges: none\r\n\r\n%s",
                      is_head(q) ? "" : "hello");
}

#define DATED "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"

static bool head_without_etag(const struct script_request *q)
{
    return is_head(q) ? script_say(q, "HTTP/1.1 200 OK\r\nContent-Length: %u\r\n" DATED "\r\n",
                                   (unsigned)FILE_SIZE)
                      : part_head(q, DATED) && send_file(q, q->first, len_of(q));
}

static bool head_without_any(const struct script_request *q)
{
    return is_head(q)
               ? script_say(q, "HTTP/1.1 200 OK\r\nContent-Length: %u\r\n\r\n", (unsigned)FILE_SIZE)
               : right(q);
}

static bool never_an_etag(const struct script_request *q)
{
    return script_say(q, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n" DATED "\r\n%s",
                      is_head(q) ? "" : "hello");
}

static bool get_forbidden(const struct script_request *q)
{
    return is_head(q) ? never_an_etag(q) : forbidden(q);
}

static bool no_head(const struct script_request *q)
{
    return is_head(q) ? script_say(q, "HTTP/1.1 405 No\r\nContent-Length: 3\r\n\r\n") : right(q);
}

static bool no_head_whole(const struct script_request *q)
{
    return is_head(q) ? script_say(q, "HTTP/1.1 403 No\r\n\r\n") : whole(q);
}

static bool head_without_length(const struct script_request *q)
{
    return is_head(q) ? script_say(q, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                      : right(q);
}

static bool never_a_length(const struct script_request *q)
{
    if (!script_say(q, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"))
        return false;
    return is_head(q) || script_say(q, "0\r\n\r\n");
}

static bool empty(const struct script_request *q)
{
    return is_head(q) ? script_say(q, "HTTP/1.1 501 No\r\n\r\n")
                      : say_status(q, "416 x", "Content-Range: bytes */0\r\n", "");
}

static bool busy_head_once(const struct script_request *q)
{
    return q->nth == 1 ? script_say(q, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
                       : says_version(q);
}

#define CROWD 20

static _Atomic unsigned crowd;   /* requests without an answer yet */
static _Atomic unsigned arrived; /* requests, ever */

/* Refuses more than four requests at once, and asks for a minute of rest. The first ones wait until
 * there is a crowd. */
static bool crowded(const struct script_request *q)
{
    bool many = atomic_fetch_add(&crowd, 1) >= 4;

    atomic_fetch_add(&arrived, 1);
    while (atomic_load(&arrived) < CROWD)
        sched_yield();
    atomic_fetch_sub(&crowd, 1); /* before the client has the answer and may ask again */
    return many ? script_say(q, "HTTP/1.1 429 Too many\r\nContent-Length: 0\r\n"
                                "Retry-After: 60\r\n\r\n")
                : says_version(q);
}

/* A hub that sends its clients to another server, the same one by another name, with a URL that is
 * good for two requests. */
static atomic_int resolved, stored;

static bool to_storage(const struct script_request *q)
{
    atomic_fetch_add(&resolved, 1);
    return script_say(
        q,
        "HTTP/1.1 302 x\r\nContent-Length: 0\r\n"
        "Location: http://localhost:%u/storage?Expires=4102444800&Signature=s\r\n\r\n",
        script_server_port(q->server));
}

static bool storage(const struct script_request *q)
{
    if (strstr(q->head, "Authorization"))
        return say_status(q, "400 x", "", "a token");
    if (atomic_fetch_add(&stored, 1) % 3 == 2)
        return say_status(q, "403 x", "", "expired");
    return script_say(q,
                      "HTTP/1.1 206 x\r\nContent-Length: %llu\r\n" RANGE_FORMAT
                      "ETag: \"of-the-storage\"\r\n\r\n",
                      (unsigned long long)len_of(q), RANGE_OF(q)) &&
           send_file(q, q->first, len_of(q));
}

static bool limited_once(const struct script_request *q)
{
    return q->nth == 1 ? say_status(q, "429 x", "RateLimit: \"api\";r=0;t=6\r\n", "")
                       : say_status(q, "200 OK", "", "hello");
}

static bool hello(const struct script_request *q)
{
    return say_status(q, "200 OK", "", "hello");
}

static bool hello_third(const struct script_request *q)
{
    return q->nth < 3 ? say_status(q, "500 x", "", "") : hello(q);
}

static bool always_500(const struct script_request *q)
{
    return say_status(q, "500 x", "", "");
}

static bool hello_chunked(const struct script_request *q)
{
    return script_say(q, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
                         "0\r\n\r\n");
}

static const struct script scripts[] = {
    {"/right", right},
    {"/crowded", crowded},
    {"/hop", right},
    {"/early_hints", early_hints},
    {"/wrong_place", wrong_place},
    {"/other_size", other_size},
    {"/other_etag", other_etag},
    {"/matches", matches},
    {"/asked_for_any", asked_for_any},
    {"/to_matches", to_matches},
    {"/no_range", no_range},
    {"/encoded", encoded},
    {"/stored_packed", stored_packed},
    {"/to_storage", to_storage},
    {"/storage", storage},
    {"/limited_once", limited_once},
    {"/whole", whole},
    {"/whole_longer", whole_longer},
    {"/whole_stalls", whole_stalls},
    {"/a/../right/./b", path_as_is},
    {"/busy_once", busy_once},
    {"/too_many", too_many},
    {"/gone", gone},
    {"/forbidden", forbidden},
    {"/expired", expired},
    {"/out_of_range", out_of_range},
    {"/resets", resets},
    {"/hangs_up", script_reset},
    {"/shorter", shorter},
    {"/shorter_chunked", shorter_chunked},
    {"/longer_chunked", longer_chunked},
    {"/stalls", stalls},
    {"/silent", silent},
    {"/gated", gated},
    {"/drips", drips},
    {"/trickles", trickles},
    {"/drips_head", drips_head},
    {"/drips_text", drips_text},
    {"/mute", mute},
    {"/redirects", redirects},
    {"/ten", ten_redirects},
    {"/eleven", eleven_redirects},
    {"/loops", loops},
    {"/slow_hops", slow_hops},
    {"/to_ftp", to_ftp},
    {"/to_file", to_file},
    {"/to_other", to_other},
    {"/tells", tells},
    {"/echoes", echoes},
    {"/huge_length", huge_length},
    {"/garbage", garbage},
    {"/endless_headers", endless_headers},
    {"/endless_hints", endless_hints},
    {"/endless_error", endless_error},
    {"/closes_after", closes_after},
    {"/says_version", says_version},
    {"/says_none", says_none},
    {"/head_without_etag", head_without_etag},
    {"/head_without_any", head_without_any},
    {"/never_an_etag", never_an_etag},
    {"/get_forbidden", get_forbidden},
    {"/no_head", no_head},
    {"/no_head_whole", no_head_whole},
    {"/head_without_length", head_without_length},
    {"/never_a_length", never_a_length},
    {"/empty", empty},
    {"/busy_head_once", busy_head_once},
    {"/hello", hello},
    {"/hello_third", hello_third},
    {"/always_500", always_500},
    {"/hello_chunked", hello_chunked},
    {NULL, NULL},
};

/* ---- transfers ---- */

struct fixture {
    struct script_server *server;
    struct http *http;
    struct lock lock;
    pthread_cond_t changed;
    /* Guarded by lock: */
    unsigned ended;
};

/* One transfer, and its result. */
struct fetch {
    struct transfer transfer; /* first */
    struct fixture *f;
    char url[256];
    uint64_t most;     /* stop at that many bytes; 0: never */
    uint64_t pause_at; /* pause at that many; 0: never */
    uint64_t given;    /* guarded by f->lock, as all below */
    bool wrong;        /* a byte was not what it should be */
    unsigned ends;
    enum transfer_end how;
    uint64_t retry_ms;
    struct diag d;
    struct fetch *then; /* start it in end() */
};

static const struct remote_version version = {.size = FILE_SIZE, .etag = ETAG};
static const struct remote_version other_version = {.size = FILE_SIZE, .etag = "\"v0\""};
static const struct remote_version no_version = {.size = FILE_SIZE};
static const struct remote_version whole_only = {
    .size = FILE_SIZE, .etag = ETAG, .whole_only = true};

/* Pauses between requests end at once; otherwise time stands still, unless a script lets it pass.
 */
static void setup(struct fixture *f, const struct http_options *of)
{
    struct http_options options = *of;
    struct diag d = DIAG_INIT;

    if (clock_users++ == 0) {
        test_clock_init(&the_clock);
        test_clock_run(&the_clock, 100 * TEST_S);
    }
    options.clock = &the_clock.clock;

    *f = (struct fixture){.ended = 0};
    lock_init(&f->lock);
    condition_init(&f->changed);
    f->server = script_server_new(scripts);
    assert_non_null(f->server);
    assert_int_equal(http_new(&options, &f->http, &d), 0);
}

static void teardown(struct fixture *f)
{
    transport_free(http_transport(f->http));
    script_server_free(f->server);
    if (--clock_users == 0) {
        test_clock_stand(&the_clock);
        test_clock_release(&the_clock);
    }
    pthread_cond_destroy(&f->changed);
    lock_release(&f->lock);
}

static const struct http_options usual = {.jobs = 4, .timeout_s = 30};

static bool take(struct transfer *transfer, const void *bytes, size_t n)
{
    struct fetch *fetch = (struct fetch *)transfer;
    const uint8_t *got = bytes;
    bool wrong = false;
    LOCK_SCOPE(&fetch->f->lock);

    for (size_t i = 0; i < n; i++)
        wrong = wrong || got[i] != byte_at(transfer->off + fetch->given + i);
    fetch->wrong = fetch->wrong || wrong;
    fetch->given += n;
    if (fetch->pause_at && fetch->given >= fetch->pause_at)
        transport_pause(http_transport(fetch->f->http), transfer, true);
    pthread_cond_broadcast(&fetch->f->changed);
    return fetch->most == 0 || fetch->given < fetch->most;
}

static void ended(struct transfer *transfer, enum transfer_end how, uint64_t retry_ms,
                  const struct diag *d)
{
    struct fetch *fetch = (struct fetch *)transfer, *then = fetch->then;
    struct http *http = fetch->f->http;

    lock_take(&fetch->f->lock);
    fetch->ends++;
    fetch->how = how;
    fetch->retry_ms = retry_ms;
    fetch->d = *d;
    fetch->f->ended++;
    pthread_cond_broadcast(&fetch->f->changed);
    lock_drop(&fetch->f->lock);
    if (then)
        transport_start(http_transport(http), &then->transfer);
}

static void fetch_init(struct fixture *f, struct fetch *ret, const char *path,
                       const struct remote_version *of, uint64_t off, uint64_t len)
{
    *ret = (struct fetch){.f = f};
    snprintf(ret->url, sizeof(ret->url), "http://127.0.0.1:%u%s", script_server_port(f->server),
             path);
    ret->transfer = (struct transfer){
        .url = ret->url, .version = of, .off = off, .len = len, .data = take, .end = ended};
}

static void start(struct fetch *fetch)
{
    assert_int_equal(transport_start(http_transport(fetch->f->http), &fetch->transfer), 0);
}

static unsigned ended_now(struct fixture *f)
{
    LOCK_SCOPE(&f->lock);

    return f->ended;
}

/* Wait until that many transfers have ended. */
static void wait_ended(struct fixture *f, unsigned n)
{
    lock_take(&f->lock);
    while (f->ended < n)
        lock_wait(&f->lock, &f->changed);
    n -= f->ended;
    lock_drop(&f->lock);
    assert_int_equal(n, 0);
}

/* Wait until n bytes have arrived or the transfer has ended. Have they arrived? */
static bool are_given(struct fetch *fetch, uint64_t n)
{
    LOCK_SCOPE(&fetch->f->lock);

    while (fetch->given < n && !fetch->ends)
        lock_wait(&fetch->f->lock, &fetch->f->changed);
    return fetch->given >= n;
}

static void wait_given(struct fetch *fetch, uint64_t n)
{
    assert_true(are_given(fetch, n));
}

static void wait_end_of(struct fetch *fetch)
{
    assert_false(are_given(fetch, UINT64_MAX));
    assert_int_equal(fetch->ends, 1);
}

/* Fetch and wait. */
static void fetch_now(struct fixture *f, struct fetch *ret, const char *path,
                      const struct remote_version *of, uint64_t off, uint64_t len)
{
    fetch_init(f, ret, path, of, off, len);
    start(ret);
    wait_end_of(ret);
    assert_false(ret->wrong);
    assert_true(ret->given <= len);
    if (ret->how == TRANSFER_DONE)
        assert_int_equal(ret->given, len);
}

/* The same for a server with little time: repeat until some bytes arrive. */
static void fetch_some(struct fixture *f, struct fetch *ret, const char *path, uint64_t off,
                       uint64_t len)
{
    for (unsigned i = 0; i == 0 || (i < TRIES && ret->given == 0); i++)
        fetch_now(f, ret, path, &version, off, len);
}

struct end_case {
    const char *path;
    const struct remote_version *version;
    uint64_t off, len;
    enum transfer_end how;
    uint64_t given;      /* bytes, UINT64_MAX: any */
    const char *message; /* a piece of it */
};

static void check_end(struct fixture *f, const struct end_case *c)
{
    struct fetch fetch;

    fetch_now(f, &fetch, c->path, c->version, c->off, c->len);
    if (fetch.how != c->how || (c->given != UINT64_MAX && fetch.given != c->given))
        fail_msg("%s: ended %d, expected %d; %llu bytes, expected %llu: %s", c->path, fetch.how,
                 c->how, (unsigned long long)fetch.given, (unsigned long long)c->given,
                 fetch.d.text);
    if (c->message) {
        assert_diag_has(&fetch.d, c->message);
        assert_diag_has(&fetch.d, "http://127.0.0.1:");
        assert_null(strstr(fetch.d.text, "secret"));
    }
}

UNIT_TEST(test_http_transfer__ends_as_it_should)
{
    static const struct end_case cases[] = {
        {"/right", &version, 1000, 200000, TRANSFER_DONE, 200000, NULL},
        {"/right", &version, 0, FILE_SIZE, TRANSFER_DONE, FILE_SIZE, NULL},
        {"/right", &version, FILE_SIZE - 1, 1, TRANSFER_DONE, 1, NULL},
        {"/early_hints", &version, 5, 7, TRANSFER_DONE, 7, NULL},
        {"/wrong_place?secret", &version, 1000, 200, TRANSFER_AGAIN, 0,
         "expected bytes 1000-1199, got bytes 1001-1200"},
        {"/other_size", &version, 1000, 200, TRANSFER_CHANGED, 0, "was 1000000, is 1000001"},
        {"/other_etag", &version, 1000, 200, TRANSFER_CHANGED, 0, "was \"v1\", is \"v2\""},
        {"/matches", &version, 1000, 200, TRANSFER_DONE, 200, NULL},
        {"/to_matches", &version, 1000, 200, TRANSFER_DONE, 200, NULL},
        {"/matches", &other_version, 1000, 200, TRANSFER_CHANGED, 0, "its ETag was \"v0\""},
        {"/asked_for_any", &no_version, 1000, 200, TRANSFER_DONE, 200, NULL},
        {"/no_range", &version, 1000, 200, TRANSFER_AGAIN, 0, "without a Content-Range"},
        {"/encoded", &version, 1000, 200, TRANSFER_REFUSED, 0, "Content-Encoding: br"},
        {"/stored_packed", &version, 1000, 200, TRANSFER_DONE, 200, NULL},
        {"/whole", &version, 1000, 200, TRANSFER_WHOLE, 0, "the whole file"},
        {"/whole", &version, 0, FILE_SIZE, TRANSFER_DONE, FILE_SIZE, NULL},
        {"/whole", &version, 0, 200, TRANSFER_WHOLE, 0, "the whole file"},
        {"/whole", &whole_only, 0, FILE_SIZE, TRANSFER_DONE, FILE_SIZE, NULL},
        {"/whole", &whole_only, 0, 20000, TRANSFER_DONE, 20000, NULL},
        {"/whole", &whole_only, 20000, 20000, TRANSFER_DONE, 20000, NULL},
        {"/whole", &whole_only, 20000, FILE_SIZE - 20000, TRANSFER_DONE, FILE_SIZE - 20000, NULL},
        {"/whole", &whole_only, FILE_SIZE - 1, 1, TRANSFER_DONE, 1, NULL},
        {"/whole_longer", &whole_only, FILE_SIZE - 1, 1, TRANSFER_AGAIN, UINT64_MAX, "got more"},
        {"/whole_longer", &whole_only, 0, FILE_SIZE, TRANSFER_AGAIN, UINT64_MAX, "got more"},
        {"/whole_stalls", &whole_only, 0, 200, TRANSFER_DONE, 200, NULL},
        {"/a/../right/./b", &version, 7, 200, TRANSFER_DONE, 200, NULL},
        {"/gone", &version, 0, 10, TRANSFER_CHANGED, 0, "got 404"},
        {"/forbidden?secret", &version, 0, 10, TRANSFER_REFUSED, 0, "got 403 AccessDenied"},
        {"/expired", &version, 0, 10, TRANSFER_REFUSED, 0, "got 400 ExpiredToken"},
        {"/out_of_range", &version, 0, 10, TRANSFER_CHANGED, 0, "got 416"},
        {"/resets?secret", &version, 0, 200000, TRANSFER_AGAIN, UINT64_MAX, "of 200000 bytes"},
        {"/shorter", &version, 0, 200000, TRANSFER_AGAIN, 100000, "100000 of 200000 bytes"},
        {"/shorter_chunked", &version, 0, 200000, TRANSFER_AGAIN, 1, "200000 bytes, got 1"},
        {"/longer_chunked", &version, 0, 200, TRANSFER_AGAIN, 0, "expected 200 bytes, got more"},
        {"/redirects", &version, 10, 20, TRANSFER_DONE, 20, NULL},
        {"/ten", &version, 10, 20, TRANSFER_DONE, 20, NULL},
        {"/eleven", &version, 10, 20, TRANSFER_REFUSED, 0, "too many redirects"},
        {"/loops?secret", &version, 10, 20, TRANSFER_REFUSED, 0, "too many redirects"},
        {"/to_ftp", &version, 10, 20, TRANSFER_REFUSED, 0, "not an http or https URL"},
        {"/to_file", &version, 10, 20, TRANSFER_REFUSED, 0, "not an http or https URL"},
        {"/huge_length", &version, 10, 20, TRANSFER_AGAIN, 0, ""},
        {"/garbage", &version, 10, 20, TRANSFER_AGAIN, 0, ""},
        {"/endless_headers", &version, 10, 20, TRANSFER_AGAIN, 0, "too many headers"},
        {"/endless_hints", &version, 10, 20, TRANSFER_AGAIN, 0, "too many headers"},
        {"/endless_error", &version, 10, 20, TRANSFER_REFUSED, 0, "got 403"},
        {"/closes_after", &version, 10, 20, TRANSFER_DONE, 20, NULL},
        {"/right", &version, 1000, 200000, TRANSFER_DONE, 200000, NULL},
    };
    struct fixture f;

    setup(&f, &usual);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check_end(&f, &cases[i]);
    teardown(&f);
}

UNIT_TEST(test_http_transfer__busy__retry_after_is_reported)
{
    struct fixture f;
    struct fetch fetch;

    setup(&f, &usual);
    fetch_now(&f, &fetch, "/busy_once", &version, 0, 10);
    assert_int_equal(fetch.how, TRANSFER_AGAIN);
    assert_int_equal(fetch.retry_ms, 7000);
    fetch_now(&f, &fetch, "/busy_once", &version, 0, 10);
    assert_int_equal(fetch.how, TRANSFER_DONE);
    assert_int_equal(fetch.retry_ms, 0);
    fetch_now(&f, &fetch, "/too_many", &version, 0, 10);
    assert_int_equal(fetch.how, TRANSFER_AGAIN);
    assert_int_equal(fetch.retry_ms, 1000);
    assert_int_equal(script_server_accepted(f.server),
                     1); /* an error does not cost the connection */
    teardown(&f);
}

UNIT_TEST(test_http_transfer__server_gives_nothing__again)
{
    static const struct http_options short_time = {.jobs = 4, .timeout_s = 1};
    struct fixture f;
    struct fetch stalled, silent;
    int64_t began;

    setup(&f, &short_time);
    began = clock_monotonic(&the_clock.clock);
    fetch_init(&f, &stalled, "/stalls", &version, 0, 2000);
    start(&stalled);
    wait_given(&stalled, 1000);
    fetch_init(&f, &silent, "/silent", &version, 0, 2000);
    start(&silent);
    wait_end_of(&stalled);
    assert_int_equal(stalled.how, TRANSFER_AGAIN);
    assert_int_equal(stalled.given, 1000);
    assert_diag_has(&stalled.d, "after 1000 of 2000 bytes: ");
    assert_diag_has(&stalled.d, "the server sent ");
    wait_end_of(&silent);
    assert_int_equal(silent.how, TRANSFER_AGAIN);
    assert_in_range(clock_monotonic(&the_clock.clock) - began, TEST_S, 2 * TEST_S);
    teardown(&f);
}

/* All redirects of a request have the time that one reply may take. */
UNIT_TEST(test_http_transfer__slow_redirects__again)
{
    static const struct http_options short_time = {.jobs = 4, .timeout_s = 1};
    struct fixture f;
    struct fetch fetch;

    setup(&f, &short_time);
    fetch_now(&f, &fetch, "/slow_hops", &version, 0, 10);
    assert_int_equal(fetch.how, TRANSFER_AGAIN);
    assert_diag_has(&fetch.d, "its redirects take longer than one reply may");
    assert_in_range(script_server_requests(f.server), 2, 4);
    teardown(&f);
}

UNIT_TEST(test_http_transfer__nobody_listens__again)
{
    struct fixture f;
    struct fetch fetch;

    setup(&f, &usual);
    fetch_init(&f, &fetch, "", &version, 0, 10);
    snprintf(fetch.url, sizeof(fetch.url), "http://127.0.0.1:1/x?secret");
    start(&fetch);
    wait_ended(&f, 1);
    assert_int_equal(fetch.how, TRANSFER_AGAIN);
    assert_diag_has(&fetch.d, "127.0.0.1");
    assert_null(strstr(fetch.d.text, "secret"));
    fetch_init(&f, &fetch, "", &version, 0, 10);
    snprintf(fetch.url, sizeof(fetch.url), "gopher://u:secret@127.0.0.1/x");
    start(&fetch);
    wait_ended(&f, 2);
    assert_int_equal(fetch.how, TRANSFER_REFUSED);
    assert_null(strstr(fetch.d.text, "secret"));
    teardown(&f);
}

UNIT_TEST(test_http_transfer__outside_of_the_file__einval)
{
    static const uint64_t cases[][2] = {
        {0, 0}, {FILE_SIZE, 1}, {0, FILE_SIZE + 1}, {1, UINT64_MAX}, {UINT64_MAX, 2}};
    struct fixture f;
    struct fetch fetch;

    setup(&f, &usual);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        fetch_init(&f, &fetch, "/right", &version, cases[i][0], cases[i][1]);
        assert_int_equal(transport_start(http_transport(f.http), &fetch.transfer), -EINVAL);
    }
    assert_int_equal(ended_now(&f), 0);
    teardown(&f);
}

UNIT_TEST(test_http_transfer__started_in_end__goes_on)
{
    struct fixture f;
    struct fetch chain[5];

    setup(&f, &usual);
    for (unsigned i = 0; i < 5; i++)
        fetch_init(&f, &chain[i], "/right", &version, i, 10);
    for (unsigned i = 0; i < 4; i++)
        chain[i].then = &chain[i + 1];
    start(&chain[0]);
    wait_ended(&f, 5);
    assert_int_equal(chain[4].how, TRANSFER_DONE);
    teardown(&f);
}

UNIT_TEST(test_http_transfer__stopped)
{
    static const struct http_options two = {.jobs = 2, .timeout_s = 30};
    struct fixture f;
    struct fetch stalled, silent, full;

    setup(&f, &two);
    fetch_init(&f, &stalled, "/stalls", &version, 0, 2000);
    fetch_init(&f, &silent, "/mute", &version, 0, 2000);
    start(&stalled);
    start(&silent);
    wait_given(&stalled, 1000);
    transport_stop(http_transport(f.http), &stalled.transfer);
    wait_ended(&f, 1);
    assert_int_equal(stalled.how, TRANSFER_STOPPED);
    transport_stop(http_transport(f.http), &silent.transfer);
    wait_ended(&f, 2);
    assert_int_equal(silent.how, TRANSFER_STOPPED);
    fetch_init(&f, &full, "/right", &version, 0, FILE_SIZE);
    full.most = 1;
    start(&full);
    wait_ended(&f, 3);
    assert_int_equal(full.how, TRANSFER_STOPPED);
    assert_in_range(full.given, 1, FILE_SIZE - 1);
    teardown(&f);
}

/* Let half of it arrive, then pause. Returns the number of requests. */
static unsigned start_and_pause(struct fixture *f, struct fetch *ret)
{
    unsigned n = 0;
    bool half;

    do {
        fetch_init(f, ret, "/gated", &version, 0, 200000);
        ret->pause_at = 100000;
        start(ret);
        half = are_given(ret, 100000);
    } while (++n < TRIES && !half);
    assert_true(half);
    return n;
}

UNIT_TEST(test_http_transfer__paused__nothing_comes_and_others_go_on)
{
    static const struct http_options two = {.jobs = 2, .timeout_s = 1};
    struct fixture f;
    struct fetch paused[2], other;
    unsigned asked = 0;

    assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
    setup(&f, &two);
    for (unsigned i = 0; i < 2; i++)
        asked += start_and_pause(&f, &paused[i]);
    fetch_some(&f, &other, "/right", 7, 1000);
    assert_int_equal(other.how, TRANSFER_DONE);
    assert_int_equal(write(gate[1], "xxxxxxxxxx", asked), asked);
    /* Longer than a silent server is allowed to take. */
    fetch_now(&f, &other, "/silent", &version, 7, 1000);
    assert_int_equal(other.how, TRANSFER_AGAIN);
    for (unsigned i = 0; i < 2; i++) {
        lock_take(&f.lock);
        assert_int_equal(paused[i].ends, 0);
        assert_int_equal(paused[i].given, 100000);
        paused[i].pause_at = 0;
        lock_drop(&f.lock);
        transport_pause(http_transport(f.http), &paused[i].transfer, false);
    }
    for (unsigned i = 0; i < 2; i++) {
        wait_end_of(&paused[i]);
        assert_int_equal(paused[i].how, TRANSFER_DONE);
        assert_int_equal(paused[i].given, 200000);
        assert_false(paused[i].wrong);
    }
    teardown(&f);
    close(gate[0]);
    close(gate[1]);
}

/* Stop a paused transfer, and pause one that has not begun. */
UNIT_TEST(test_http_transfer__paused_and_stopped)
{
    struct fixture f;
    struct fetch stopped, late;

    setup(&f, &usual);
    fetch_init(&f, &stopped, "/stalls", &version, 0, 2000);
    start(&stopped);
    wait_given(&stopped, 1000);
    transport_pause(http_transport(f.http), &stopped.transfer, true);
    transport_stop(http_transport(f.http), &stopped.transfer);
    wait_ended(&f, 1);
    assert_int_equal(stopped.how, TRANSFER_STOPPED);
    fetch_init(&f, &late, "/mute", &version, 0, FILE_SIZE);
    start(&late);
    transport_pause(http_transport(f.http), &late.transfer, true);
    transport_pause(http_transport(f.http), &late.transfer, false);
    transport_stop(http_transport(f.http), &late.transfer);
    wait_ended(&f, 2);
    assert_int_equal(late.how, TRANSFER_STOPPED);
    teardown(&f);
}

/* A request that begins paused, and is resumed before libcurl has a connection for it. */
struct early {
    struct http_request request; /* first */
    struct fixture *f;
    uint64_t given;
};

static bool early_aim(struct http_request *request, uint64_t slice)
{
    struct early *early = (struct early *)request;

    (void)slice;
    http_request_pause(early->f->http, request, false);
    return true;
}

static bool early_body(struct http_request *request, const void *bytes, size_t n)
{
    (void)bytes;
    ((struct early *)request)->given += n;
    return true;
}

static void early_done(struct http_request *request)
{
    struct fixture *f = ((struct early *)request)->f;
    LOCK_SCOPE(&f->lock);

    f->ended++;
    pthread_cond_broadcast(&f->changed);
}

UNIT_TEST(test_http_request__resumed_before_its_connection__comes)
{
    struct fixture f;
    struct early early = {.f = &f};
    char url[64];

    setup(&f, &usual);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/right", script_server_port(f.server));
    early.request = (struct http_request){
        .url = url, .len = 2000, .aim = early_aim, .body = early_body, .done = early_done};
    atomic_store(&early.request.pause, true);
    assert_int_equal(http_request_start(f.http, &early.request), 0);
    wait_ended(&f, 1);
    if (early.request.end != HTTP_DONE)
        fail_msg("ended %d: %s", early.request.end, early.request.why);
    assert_int_equal(early.given, 2000);
    teardown(&f);
}

UNIT_TEST(test_http_transfer__rest__connections_stay)
{
    struct fixture f;
    struct fetch fetch;

    setup(&f, &usual);
    for (unsigned i = 0; i < 3; i++) {
        fetch_now(&f, &fetch, "/right", &version, 0, 1000);
        assert_int_equal(fetch.how, TRANSFER_DONE);
        transport_rest(http_transport(f.http));
        transport_rest(http_transport(f.http));
    }
    assert_int_equal(script_server_accepted(f.server), 1);
    teardown(&f);
}

/* Ten transfers by a forked child of this process. 0: success. */
static int child_main(struct fixture *f)
{
    struct fetch fetch;
    bool ok = true;

    for (unsigned i = 0; i < 10 && ok; i++) {
        fetch_init(f, &fetch, "/right", &version, i, 1000);
        ok = transport_start(http_transport(f->http), &fetch.transfer) == 0;
        lock_take(&f->lock);
        while (ok && fetch.ends == 0)
            lock_wait(&f->lock, &f->changed);
        lock_drop(&f->lock);
        ok = ok && fetch.how == TRANSFER_DONE && !fetch.wrong && fetch.given == 1000;
    }
    transport_free(http_transport(f->http));
    return ok ? 0 : 1;
}

UNIT_TEST(test_http_transfer__fork__child_goes_on)
{
    struct fixture f;
    struct fetch fetch;
    int status;
    pid_t child;

#ifdef __SANITIZE_THREAD__
    skip(); /* TSan knows the parent's threads by ids that the child's threads get too */
#endif
    setup(&f, &usual);
    fetch_now(&f, &fetch, "/right", &version, 0, 1000);
    transport_rest(http_transport(f.http));
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(child_main(&f));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(script_server_accepted(f.server), 1);
    teardown(&f);
}

/* ---- texts ---- */

static int get(struct fixture *f, const char *path, const struct http_call *how, struct text *ret,
               struct diag *d)
{
    struct http_call call = how ? *how : (struct http_call){.most = 100000};
    char url[256];

    snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", script_server_port(f->server), path);
    call.url = url;
    *d = DIAG_INIT;
    return http_get(f->http, &call, ret, d);
}

/* A byte now and then does not count as progress. */
UNIT_TEST(test_http_transfer__drips__again)
{
    static const struct http_options short_time = {.jobs = 4, .timeout_s = 1};
    struct http_call call = {.most = 100000, .tries = 1};
    AUTO_TEXT struct text text = {0};
    struct diag d = DIAG_INIT;
    struct fixture f;
    struct fetch fetch;

    setup(&f, &short_time);
    fetch_some(&f, &fetch, "/drips", 0, 2000);
    assert_int_equal(fetch.how, TRANSFER_AGAIN);
    assert_true(fetch.given < 1000);
    assert_diag_has(&fetch.d, "of 2000 bytes: ");
    assert_diag_has(&fetch.d, "the server sent ");
    fetch_now(&f, &fetch, "/drips_head", &version, 0, 2000);
    assert_int_equal(fetch.how, TRANSFER_AGAIN);
    assert_diag_has(&fetch.d, "the server sent ");
    assert_int_equal(get(&f, "/drips_text", &call, &text, &d), -EREMOTEIO);
    assert_diag_has(&d, "the server sent ");
    teardown(&f);
}

/* Transfers share the bandwidth of the connection. */
UNIT_TEST(test_http_transfer__four_share_the_least_speed__done)
{
    static const struct http_options short_time = {.jobs = 4, .timeout_s = 1};
    struct fixture f;
    unsigned done = 0;

    setup(&f, &short_time);
    for (unsigned tries = 0; tries < TRIES && done < 4; tries++) {
        struct fetch fetch[4];

        for (unsigned i = 0; i < 4; i++) {
            fetch_init(&f, &fetch[i], "/trickles", &version, i, 1200);
            start(&fetch[i]);
        }
        done = 0;
        for (unsigned i = 0; i < 4; i++) {
            wait_end_of(&fetch[i]);
            assert_false(fetch[i].wrong);
            done += fetch[i].how == TRANSFER_DONE;
        }
    }
    assert_int_equal(done, 4);
    teardown(&f);
}

UNIT_TEST(test_http_get)
{
    static const struct {
        const char *path;
        size_t most;
        int r;
        const char *text; /* the body, or a piece of the message */
    } cases[] = {
        {"/hello", 5, 0, "hello"},
        {"/hello_chunked", 5, 0, "hello"},
        {"/hello_third", 5, 0, "hello"},
        {"/hello?secret", 4, -EFBIG, "expected at most 4 bytes, got more"},
        {"/hello_chunked", 4, -EFBIG, "expected at most 4 bytes, got more"},
        {"/gone?secret", 100, -ENOENT, "got 404"},
        {"/forbidden", 100, -EACCES, "got 403 AccessDenied"},
        {"/expired", 100, -EREMOTEIO, "got 400 ExpiredToken"},
        {"/loops?secret", 100, -EREMOTEIO, "too many redirects"},
    };
    struct fixture f;

    setup(&f, &usual);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct http_call call = {.most = cases[i].most};
        AUTO_TEXT struct text text = {0};
        struct diag d;
        int r = get(&f, cases[i].path, &call, &text, &d);

        if (r != cases[i].r)
            fail_msg("%s: %d: %s", cases[i].path, r, d.text);
        if (r == 0)
            assert_string_equal(text.data, cases[i].text);
        else
            assert_diag_has(&d, cases[i].text);
        assert_null(strstr(d.text, "secret"));
    }
    teardown(&f);
}

UNIT_TEST(test_http_get__tries_and_time)
{
    struct fixture f;
    AUTO_TEXT struct text text = {0};
    struct http_call twice = {.most = 100, .tries = 2};
    struct http_call short_time = {.most = 100, .tries = 1, .timeout_s = 1};
    struct diag d;

    setup(&f, &usual);
    assert_int_equal(get(&f, "/always_500", &twice, &text, &d), -EREMOTEIO);
    assert_diag_has(&d, "got 500");
    assert_int_equal(script_server_requests(f.server), 2);
    assert_int_equal(get(&f, "/silent", &short_time, &text, &d), -EREMOTEIO);
    assert_diag_has(&d, "not done after 1000 ms");
    teardown(&f);
}

UNIT_TEST(test_http_ahead__as_get)
{
    static const struct {
        const char *path;
        int r;
        const char *text; /* the body, or a piece of the message */
    } cases[] = {
        {"/hello", 0, "hello"},
        {"/hello_third", 0, "hello"}, /* requested again */
        {"/gone?secret", -ENOENT, "got 404"},
        {"/hello_chunked", 0, "hello"},
    };
    struct http_ahead *ahead[ARRAY_LEN(cases)];
    char url[ARRAY_LEN(cases)][64];
    struct fixture f;

    setup(&f, &usual);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        snprintf(url[i], sizeof(url[i]), "http://127.0.0.1:%u%s", script_server_port(f.server),
                 cases[i].path);
        ahead[i] = http_ahead_start(f.http, strdup(url[i]), 100, 0);
        assert_non_null(ahead[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_TEXT struct text text = {0};
        struct diag d = DIAG_INIT;

        assert_int_equal(http_ahead_take(ahead[i], &text, NULL, &d), cases[i].r);
        if (cases[i].r < 0)
            assert_diag_has(&d, cases[i].text);
        else
            assert_string_equal(text.data, cases[i].text);
    }
    teardown(&f);
}

UNIT_TEST(test_http_ahead__silent_server__tries_for_one_text)
{
    static const struct http_options limited = {.jobs = 4, .timeout_s = 30, .retry_limit_s = 60};
    struct http_ahead *ahead[3];
    struct fixture f;
    char url[64];

    setup(&f, &limited);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/hangs_up", script_server_port(f.server));
    for (unsigned i = 0; i < 3; i++)
        ahead[i] = http_ahead_start(f.http, strdup(url), 100, 0);
    for (unsigned i = 0; i < 3; i++) {
        AUTO_TEXT struct text text = {0};
        struct diag d = DIAG_INIT;

        assert_int_equal(http_ahead_take(ahead[i], &text, NULL, &d), -EREMOTEIO);
    }
    assert_int_equal(script_server_requests(f.server), 3 + 3);
    for (unsigned i = 0; i < 2; i++) { /* then none is asked for */
        AUTO_TEXT struct text text = {0};

        ahead[0] = http_ahead_start(f.http, strdup(url), 100, 0);
        assert_int_equal(http_ahead_take(ahead[0], &text, NULL, NULL), -EREMOTEIO);
    }
    assert_int_equal(script_server_requests(f.server), 3 + 3);
    teardown(&f);
}

/* A dropped text is not waited for: time stands still. */
UNIT_TEST(test_http_ahead__dropped__ends_at_once)
{
    struct http_ahead *ahead = NULL;
    struct fixture f;
    char url[64];

    setup(&f, &usual);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/mute", script_server_port(f.server));
    http_ahead_drop(&ahead);
    ahead = http_ahead_start(f.http, strdup(url), 100, 0);
    http_ahead_drop(&ahead);
    assert_null(ahead);
    teardown(&f);
}

UNIT_TEST(test_http_get__headers_and_method)
{
    static const char *const headers[] = {"X-Secret: 7", "X-Other: 8", NULL};
    struct http_call call = {.most = 10000, .method = "PUT", .headers = headers, .plain = true};
    AUTO_TEXT struct text text = {0};
    struct fixture f;
    struct diag d;

    setup(&f, &usual);
    assert_int_equal(get(&f, "/echoes?q=a%2Fb", &call, &text, &d), 0);
    assert_ptr_equal(strstr(text.data, "PUT /echoes?q=a%2Fb HTTP/1.1\r\n"), text.data);
    assert_non_null(strstr(text.data, "\r\nX-Secret: 7\r\n"));
    assert_non_null(strstr(text.data, "\r\nX-Other: 8\r\n"));
    assert_non_null(strstr(text.data, "\r\nUser-Agent: epochfs/"));
    assert_non_null(strstr(text.data, "\r\nAccept-Encoding: identity\r\n"));
    teardown(&f);
}

UNIT_TEST(test_http_get__secrets__follows_no_redirect)
{
    const struct http_call calls[] = {{.most = 10000, .plain = true},
                                      {.most = 10000, .post = "secret=7"}};
    struct fixture f;

    setup(&f, &usual);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        struct http_call call = calls[i];
        AUTO_TEXT struct text text = {0};
        struct diag d = DIAG_INIT;

        assert_true(get(&f, "/redirects", &call, &text, &d) < 0);
        assert_diag_has(&d, "redirected, with a secret");
    }
    teardown(&f);
}

/* ---- who we are ---- */

struct test_signer {
    struct http_signer signer; /* first */
    struct fixture *f;
    _Atomic unsigned asked;
    _Atomic bool waits; /* it gives nothing */
    int r;
    bool asks_server;
};

static int test_secret(struct http_signer *signer, struct http_secret *ret, struct diag *d)
{
    struct test_signer *s = (struct test_signer *)signer;

    atomic_fetch_add(&s->asked, 1);
    while (atomic_load(&s->waits))
        sched_yield();
    if (s->asks_server) {
        struct http_call call = {.most = 100, .plain = true};
        AUTO_TEXT struct text text = {0};
        int r = get(s->f, "/hello", &call, &text, d);

        if (r < 0)
            return r;
    }
    if (s->r != 0)
        return s->r < 0 ? diag_set(d, s->r, "no secrets here") : s->r;
    ret->key_id = strdup("KEYID");
    ret->key = strdup("secret-key");
    ret->token = strdup("secret-token");
    return 0;
}

static void setup_signed(struct fixture *f, struct test_signer *s)
{
    struct http_options options = usual;

    s->signer = (struct http_signer){.secret = test_secret, .region = "here-1"};
    s->f = f;
    options.signer = &s->signer;
    setup(f, &options);
}

UNIT_TEST(test_http_signed__header_and_token)
{
    struct http_call call = {.most = 10000}, plain = {.most = 10000, .plain = true};
    struct test_signer s = {.asks_server = true};
    AUTO_TEXT struct text text = {0};
    struct fixture f;
    struct diag d;

    setup_signed(&f, &s);
    assert_int_equal(get(&f, "/echoes?prefix=a%2Fb", &call, &text, &d), 0);
    assert_non_null(strstr(text.data, "\r\nAuthorization: AWS4-HMAC-SHA256 Credential=KEYID/"));
    assert_non_null(strstr(text.data, "/here-1/s3/aws4_request"));
    assert_non_null(strstr(text.data, "x-amz-security-token: secret-token\r\n"));
    assert_non_null(strstr(text.data, "x-amz-content-sha256: UNSIGNED-PAYLOAD\r\n"));
    assert_null(strstr(text.data, "secret-key"));
    assert_int_equal(get(&f, "/echoes", &plain, &text, &d), 0);
    assert_null(strstr(text.data, "Authorization"));
    assert_null(strstr(text.data, "secret-token"));
    assert_int_equal(s.asked, 1);
    teardown(&f);
}

UNIT_TEST(test_http_signed__dots__refused)
{
    static const char *const paths[] = {"/a/../hello", "/./hello", "/hello/.."};
    struct test_signer s = {.r = 0};
    AUTO_TEXT struct text text = {0};
    struct fixture f;
    struct diag d;

    setup_signed(&f, &s);
    for (unsigned i = 0; i < ARRAY_LEN(paths); i++) {
        assert_true(get(&f, paths[i], NULL, &text, &d) < 0);
        assert_diag_has(&d, "expected a path without . and ..");
    }
    assert_int_equal(script_server_requests(f.server), 0);
    assert_int_equal(get(&f, "/hello", NULL, &text, &d), 0);
    teardown(&f);
}

UNIT_TEST(test_http_signed__transfers)
{
    struct test_signer s = {.asks_server = true};
    struct fixture f;
    struct fetch fetches[20];

    setup_signed(&f, &s);
    for (unsigned i = 0; i < 20; i++) {
        fetch_init(&f, &fetches[i], "/right", &version, i, 1000);
        start(&fetches[i]);
    }
    wait_ended(&f, 20);
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(fetches[i].how, TRANSFER_DONE);
    assert_int_equal(s.asked, 1);
    transport_rest(http_transport(f.http));
    fetch_now(&f, &fetches[0], "/right", &version, 0, 1000);
    assert_int_equal(fetches[0].how, TRANSFER_DONE);
    teardown(&f);
}

/* A transfer that waits for secrets is stopped at once; the others get them. */
UNIT_TEST(test_http_signed__stopped_before_there_are_secrets__ends)
{
    struct test_signer s = {.waits = true};
    struct fixture f;
    struct fetch stopped, other;

    setup_signed(&f, &s);
    fetch_init(&f, &stopped, "/right", &version, 0, 1000);
    fetch_init(&f, &other, "/right", &version, 0, 1000);
    start(&stopped);
    start(&other);
    while (!atomic_load(&s.asked))
        sched_yield();
    transport_stop(http_transport(f.http), &stopped.transfer);
    wait_ended(&f, 1);
    assert_int_equal(stopped.how, TRANSFER_STOPPED);
    atomic_store(&s.waits, false);
    wait_ended(&f, 2);
    assert_int_equal(other.how, TRANSFER_DONE);
    assert_int_equal(s.asked, 1);
    teardown(&f);
}

UNIT_TEST(test_http_signed__expired__again_once_with_others)
{
    struct test_signer s = {.r = 0};
    struct fixture f;
    struct fetch fetch;

    setup_signed(&f, &s);
    fetch_now(&f, &fetch, "/expired", &version, 0, 10);
    assert_int_equal(fetch.how, TRANSFER_AGAIN);
    fetch_now(&f, &fetch, "/expired", &version, 0, 10);
    assert_int_equal(fetch.how, TRANSFER_REFUSED);
    assert_int_equal(s.asked, 2);
    fetch_now(&f, &fetch, "/right", &version, 0, 10);
    assert_int_equal(fetch.how, TRANSFER_DONE);
    teardown(&f);
}

UNIT_TEST(test_http_signed__no_secrets)
{
    struct test_signer s = {.r = -EREMOTEIO};
    AUTO_TEXT struct text text = {0};
    struct fixture f;
    struct fetch fetch;
    struct diag d;

    setup_signed(&f, &s);
    fetch_now(&f, &fetch, "/right", &version, 0, 10);
    assert_int_equal(fetch.how, TRANSFER_AGAIN);
    assert_diag_has(&fetch.d, "no secrets here");
    assert_int_equal(get(&f, "/hello", NULL, &text, &d), -EREMOTEIO);
    assert_diag_has(&d, "no secrets here");
    assert_int_equal(script_server_requests(f.server), 0);
    s.r = 1; /* unsigned */
    assert_int_equal(get(&f, "/echoes", NULL, &text, &d), 0);
    assert_null(strstr(text.data, "uthorization"));
    teardown(&f);
}

UNIT_TEST(test_http_redirect__other_server__not_reported_who_we_are)
{
    static const char *const headers[] = {"X-Secret: 7", NULL};
    struct http_call call = {.most = 1000, .headers = headers};
    struct test_signer s = {.r = 0};
    AUTO_TEXT struct text text = {0};
    struct fixture f, other;
    char path[64];
    struct diag d;

    setup_signed(&f, &s);
    setup(&other, &usual);
    assert_int_equal(get(&f, "/tells", &call, &text, &d), 0);
    assert_string_equal(text.data, "known");
    snprintf(path, sizeof(path), "/to_other?port=%u", script_server_port(f.server));
    assert_int_equal(get(&f, path, &call, &text, &d), 0);
    assert_string_equal(text.data, "known");
    snprintf(path, sizeof(path), "/to_other?port=%u", script_server_port(other.server));
    assert_int_equal(get(&f, path, &call, &text, &d), 0);
    assert_string_equal(text.data, "unknown");
    teardown(&other);
    teardown(&f);
}

static int bearer_secret(struct http_signer *signer, struct http_secret *ret, struct diag *d)
{
    (void)signer;
    (void)d;
    ret->token = strdup("secret-token");
    return ret->token ? 0 : -ENOMEM;
}

/* Where a redirect led is kept, until that server refuses; the token does not go there. */
UNIT_TEST(test_http_by_url__redirect__kept_while_it_is_good)
{
    static const struct remote_version pinned = {.size = FILE_SIZE, .etag = "0123"};
    struct http_options options = usual;
    struct http_signer signer = {.secret = bearer_secret};
    AUTO_TEXT struct text text = {0};
    struct fixture f;
    struct fetch fetch;
    struct diag d;

    options.by_url = true;
    options.signer = &signer;
    setup(&f, &options);
    for (int i = 0; i < 4; i++) { /* the third is refused at first */
        fetch_now(&f, &fetch, "/to_storage", &pinned, (uint64_t)i * 1000, 1000);
        assert_int_equal(fetch.how, TRANSFER_DONE);
        assert_int_equal(fetch.given, 1000);
        assert_int_equal(atomic_load(&resolved), i < 2 ? 1 : 2);
    }
    assert_int_equal(get(&f, "/echoes", &(struct http_call){.most = 10000}, &text, &d), 0);
    assert_non_null(strstr(text.data, "\r\nAuthorization: Bearer secret-token\r\n"));
    teardown(&f);
}

/* A limit that says when it ends is waited for, longer than the retry limit. */
UNIT_TEST(test_http_get__limited__waits)
{
    struct http_options options = usual;
    AUTO_TEXT struct text text = {0};
    struct fixture f;
    struct diag d;

    options.retry_limit_s = 5;
    setup(&f, &options);
    assert_int_equal(get(&f, "/limited_once", NULL, &text, &d), 0);
    assert_string_equal(text.data, "hello");
    assert_true(clock_monotonic(&the_clock.clock) - TEST_CLOCK_START >= 7 * TEST_S);
    teardown(&f);
}

UNIT_TEST(test_http_user_info__sent_to_its_server_only)
{
    struct fixture f, other;
    AUTO_TEXT struct text text = {0};
    char url[128];
    struct http_call call = {.url = url, .most = 1000};
    struct diag d = DIAG_INIT;

    setup(&f, &usual);
    setup(&other, &usual);
    snprintf(url, sizeof(url), "http://user:pa%%20ss@127.0.0.1:%u/echoes",
             script_server_port(f.server));
    assert_int_equal(http_get(f.http, &call, &text, &d), 0);
    assert_non_null(strstr(text.data, "Authorization: Basic dXNlcjpwYSBzcw==\r\n"));
    snprintf(url, sizeof(url), "http://user:pass@127.0.0.1:%u/to_other?port=%u",
             script_server_port(f.server), script_server_port(other.server));
    assert_int_equal(http_get(f.http, &call, &text, &d), 0);
    assert_string_equal(text.data, "unknown");
    teardown(&other);
    teardown(&f);
}

/* ---- metadata of files ---- */

UNIT_TEST(test_http_stat)
{
    static const struct {
        const char *path;
        int error;
        uint64_t size;
        bool whole_only;
        const char *message;
    } cases[] = {
        {"/says_version", 0, 12345, false, NULL},
        {"/says_none", 0, 5, true, NULL},
        {"/no_head", 0, FILE_SIZE, false, NULL},
        {"/no_head_whole", 0, FILE_SIZE, true, NULL},
        {"/head_without_length", 0, FILE_SIZE, false, NULL},
        {"/never_a_length", -EREMOTEIO, 0, false, "expected the size of the file"},
        {"/empty", 0, 0, false, NULL},
        {"/busy_head_once", 0, 12345, false, NULL},
        {"/missing?secret", -ENOENT, 0, false, "got 404"},
        {"/forbidden", -EACCES, 0, false, "got 403 AccessDenied"},
    };
    enum { N = ARRAY_LEN(cases) };
    struct http_file file[N] = {0};
    char urls[N][128];
    struct fixture f;

    setup(&f, &usual);
    for (size_t i = 0; i < N; i++) {
        snprintf(urls[i], sizeof(urls[i]), "http://127.0.0.1:%u%s", script_server_port(f.server),
                 cases[i].path);
        file[i].url = urls[i];
    }
    http_stat(f.http, N, file);
    for (size_t i = 0; i < N; i++) {
        if (file[i].error != cases[i].error)
            fail_msg("%s: %d: %s", cases[i].path, file[i].error, file[i].why.text);
        if (file[i].error == 0)
            assert_int_equal(file[i].version.size, cases[i].size);
        assert_int_equal(file[i].version.whole_only, cases[i].whole_only);
        if (cases[i].message)
            assert_diag_has(&file[i].why, cases[i].message);
        assert_null(strstr(file[i].why.text, "secret"));
    }
    assert_string_equal(file[0].version.etag, ETAG);
    assert_int_equal(file[0].version.mtime.tv_sec, 784111777);
    teardown(&f);
}

/* Ask for the file path n times. */
static void stat_many(struct fixture *f, const struct http_options *options, const char *path,
                      size_t n)
{
    struct http_file *file = calloc(n, sizeof(*file));
    char url[64];

    assert_non_null(file);
    setup(f, options);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", script_server_port(f->server), path);
    for (size_t i = 0; i < n; i++)
        file[i].url = url;
    http_stat(f->http, n, file);
    for (size_t i = 0; i < n; i++) {
        if (file[i].error < 0)
            fail_msg("%zu: %s", i, file[i].why.text);
        assert_int_equal(file[i].version.size, 12345);
    }
    free(file);
}

/* Ask for 100 versions of a file: they need so many requests, and have that ETag. */
static void check_asked(const char *path, const char *etag, unsigned requests)
{
    enum { N = 100 };
    struct http_file file[N] = {0};
    char text[128];
    struct fixture f;

    setup(&f, &usual);
    snprintf(text, sizeof(text), "http://127.0.0.1:%u%s", script_server_port(f.server), path);
    for (size_t i = 0; i < N; i++)
        file[i].url = text;
    http_stat(f.http, N, file);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(file[i].error, 0);
        assert_string_equal(file[i].version.etag, etag);
    }
    assert_int_equal(script_server_requests(f.server), requests);
    teardown(&f);
}

/* HEAD tells no ETag, GET does: GET asks for all. If GET tells none either, it asks once. */
UNIT_TEST(test_http_stat__head_without_etag)
{
    check_asked("/head_without_etag", ETAG, 200);
    check_asked("/head_without_any", ETAG, 200);
    check_asked("/never_an_etag", "", 101);
    check_asked("/get_forbidden", "", 101);
}

UNIT_TEST(test_http_stat__thousands__few_connections)
{
    struct fixture f;

    stat_many(&f, &usual, "/says_version", 2500);
    assert_in_range(script_server_accepted(f.server), 1, 4);
    teardown(&f);
}

UNIT_TEST(test_http_stat__refused__fewer_at_once)
{
    static const struct http_options many = {.jobs = 4, .most = 40, .timeout_s = 30};
    struct fixture f;

    stat_many(&f, &many, "/crowded", 100);
    assert_in_range(script_server_accepted(f.server), CROWD, 40);
    assert_in_range(script_server_requests(f.server), 101, 200);
    /* It does not rest for a minute. */
    assert_in_range(clock_monotonic(&the_clock.clock) - TEST_CLOCK_START, 1, 20 * TEST_S);
    teardown(&f);
}

/* libcurl would wait for the pipe. */
UNIT_TEST_WITH(test_http_new__netrc_is_a_pipe__error, temp_setup, temp_teardown)
{
    struct http *http = NULL;
    char path[PATH_MAX];
    struct diag d = DIAG_INIT;

    temp_path(*state, ".netrc", path);
    assert_int_equal(mkfifo(path, 0600), 0);
    *strrchr(path, '/') = '\0';
    setenv("HOME", path, true);
    assert_int_equal(http_new(&usual, &http, &d), -EINVAL);
    assert_diag_has(&d, "/.netrc: expected a regular file");
    setenv("HOME", "/", true);
}

UNIT_TEST_WITH(test_http_new__ca_is_none__error, temp_setup, temp_teardown)
{
    struct http_options options = usual;
    struct http *http = NULL;
    char path[PATH_MAX];
    struct diag d = DIAG_INIT;

    temp_path(*state, "ca.pem", path);
    options.ca = path;
    assert_int_equal(http_new(&options, &http, &d), -ENOENT);
    assert_diag_has(&d, "ca.pem");
    temp_write(*state, "ca.pem", "text\n", 5);
    d = DIAG_INIT;
    assert_int_equal(http_new(&options, &http, &d), -EINVAL);
    assert_diag_has(&d, "expected a line -----BEGIN CERTIFICATE-----");
    temp_write(*state, "ca.pem", "x\n-----BEGIN CERTIFICATE-----\n", 30);
    d = DIAG_INIT;
    assert_int_equal(http_new(&options, &http, &d), 0);
    transport_free(http_transport(http));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    d = DIAG_INIT;
    assert_int_equal(http_new(&options, &http, &d), -EINVAL);
    assert_diag_has(&d, "ca.pem: certificates to trust: expected a regular file");
}
