/* Heads of replies, well-formed and hostile, and the conclusions from them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/scope.h"
#include "cache/http/http.h"
#include "cache/http/reply.h"
#include "cache/http/reply_fields.h"
#include "cache/http/url.h"
#include "support/random.h"
#include "support/unit.h"

#define NOW 1000000000 /* Sun, 09 Sep 2001 01:46:40 GMT */

/* The lines of a head, each ended by "\n"; the empty one is added. */
static struct http_reply reply_of(const char *lines)
{
    struct http_reply reply = {0};

    while (*lines) {
        size_t n = strcspn(lines, "\n");

        http_reply_line(&reply, lines, n, NOW);
        lines += n + (lines[n] == '\n');
    }
    http_reply_line(&reply, "\r\n", 2, NOW);
    return reply;
}

UNIT_TEST(test_http_reply__common_head__all_fields)
{
    struct http_reply reply =
        reply_of("HTTP/1.1 206 Partial Content\r\nContent-Length: 100\r\n"
                 "content-range:bytes 200-299/1000 \r\nETag: W/\"a b\"\r\nX-Other: 1\r\n"
                 "Last-Modified: Sun, 09 Sep 2001 01:46:39 GMT\r\nAccept-Ranges: NONE\r\n"
                 "Retry-After: 3\r\nContent-Encoding: gzip\r\nno colon\r\n: \r\n");

    assert_int_equal(reply.status, 206);
    assert_true(reply.complete && reply.has_length && reply.has_range && reply.has_total);
    assert_int_equal(reply.length, 100);
    assert_int_equal(reply.first, 200);
    assert_int_equal(reply.last, 299);
    assert_int_equal(reply.total, 1000);
    assert_string_equal(reply.etag, "W/\"a b\"");
    assert_true(reply.has_modified);
    assert_int_equal(reply.modified, NOW - 1);
    assert_true(reply.no_ranges);
    assert_int_equal(reply.retry_ms, 3000);
    assert_string_equal(reply.encoding, "gzip");
    assert_false(reply.contradicts);
}

UNIT_TEST(test_http_reply__status_lines)
{
    static const struct {
        const char *line;
        unsigned status;
    } cases[] = {
        {"HTTP/1.1 200 OK", 200},
        {"HTTP/2 206 ", 206},
        {"HTTP/1.1 404", 404},
        {"HTTP/1.1 099 x", 0},
        {"HTTP/1.1 2000 x", 0},
        {"HTTP/1.1 -20 x", 0},
        {"HTTP/1.1", 0},
        {"HTTP/", 0},
        {"HTTP/1.1  200", 0},
        {"HTTP/1.1 20x", 0},
        {"HTTP/1.1 999999999 x", 0},
        {"http/1.1 200", 0},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct http_reply reply = {0};

        http_reply_line(&reply, cases[i].line, strlen(cases[i].line), NOW);
        if (reply.status != cases[i].status)
            fail_msg("%s: %u", cases[i].line, reply.status);
    }
}

UNIT_TEST(test_http_reply__second_head_counts__trailers_do_not)
{
    struct http_reply reply =
        reply_of("HTTP/1.1 103 Early Hints\r\nETag: \"old\"\r\nContent-Length: 1"
                 "\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n");

    assert_int_equal(reply.status, 200);
    assert_int_equal(reply.length, 2);
    assert_string_equal(reply.etag, "");
    http_reply_line(&reply, "Content-Length: 5", 17, NOW);
    assert_int_equal(reply.length, 2);
    assert_false(reply.contradicts);
}

UNIT_TEST(test_http_reply__hostile_numbers__contradict)
{
    static const char *const cases[] = {
        "Content-Length: 99999999999999999999999999\r\n",
        "Content-Length: 18446744073709551615\r\n",
        "Content-Length: 9223372036854775807\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: +1\r\n",
        "Content-Length: 0x10\r\n",
        "Content-Length: 1, 2\r\n",
        "Content-Length:\r\n",
        "Content-Length: 1\r\nContent-Length: 2\r\n",
        "Content-Range: bytes 0-99\r\n",
        "Content-Range: bytes 5-4/10\r\n",
        "Content-Range: bytes 0-10/10\r\n",
        "Content-Range: bytes 0-9/10 x\r\n",
        "Content-Range: bytes -9/10\r\n",
        "Content-Range: bytes 0-/10\r\n",
        "Content-Range: bytes */*\r\n",
        "Content-Range: items 0-9/10\r\n",
        "Content-Range: bytes 0-18446744073709551615/18446744073709551616\r\n",
        "Content-Range: bytes 18446744073709551616-18446744073709551617/*\r\n",
        "Content-Range: bytes 0-9/10\r\nContent-Range: bytes 0-9/11\r\n",
        "Content-Range: bytes 0-9/10\r\nContent-Range: bytes 1-9/10\r\n",
        "Content-Range: bytes 0-9/*\r\nContent-Range: bytes 0-9/10\r\n",
    };
    char head[512];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        snprintf(head, sizeof(head), "HTTP/1.1 206 x\r\n%s", cases[i]);
        if (!reply_of(head).contradicts)
            fail_msg("%s is taken", cases[i]);
    }
}

UNIT_TEST(test_http_reply__same_twice_or_unusual__taken)
{
    static const char *const cases[] = {
        "Content-Length: 10\r\nContent-Length: 10\r\n",
        "Content-Range: bytes 0-9/10\r\nContent-Range: bytes 0-9/10\r\n",
        "Content-Range: bytes 0-9/*\r\n",
        "Content-Range: BYTES  0-9/10\r\n",
        "Content-Range: bytes */10\r\n",
    };
    char head[512];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        snprintf(head, sizeof(head), "HTTP/1.1 206 x\r\n%s", cases[i]);
        if (reply_of(head).contradicts)
            fail_msg("%s is not taken", cases[i]);
    }
}

UNIT_TEST(test_http_reply__long_or_binary_texts__none)
{
    struct http_reply reply = {0};
    char line[9000];

    memset(line, 'x', sizeof(line));
    memcpy(line, "ETag: \"", 7);
    http_reply_line(&reply, "HTTP/1.1 200 OK", 15, NOW);
    http_reply_line(&reply, line, 300, NOW);
    assert_string_equal(reply.etag, "");
    http_reply_line(&reply, line, sizeof(line), NOW);
    assert_string_equal(reply.etag, "");
    http_reply_line(&reply, "ETag: \"a\x01\"", 10, NOW);
    assert_string_equal(reply.etag, "");
    http_reply_line(&reply, "ETag: \"a\0b\"", 11, NOW);
    assert_string_equal(reply.etag, "");
    memcpy(line, "Location: ", 10);
    http_reply_line(&reply, line, sizeof(line), NOW);
    assert_string_equal(reply.location, "");
    http_reply_line(&reply, line, 4000, NOW);
    assert_int_equal(strlen(reply.location), 3990);
}

UNIT_TEST(test_http_reply__members__last_one)
{
    struct http_reply reply = {0};
    char line[200] = "X-Epochfs-Member: 10.0.0.1:20001, 10.0.0.2:20001";

    http_reply_line(&reply, "HTTP/1.1 204 No Content", 23, NOW);
    assert_string_equal(reply.member, "");
    http_reply_line(&reply, line, 32, NOW);
    assert_string_equal(reply.member, "10.0.0.1:20001");
    http_reply_line(&reply, line, strlen(line), NOW);
    assert_string_equal(reply.member, "10.0.0.2:20001");
    memset(line + 18, 'x', 100);
    http_reply_line(&reply, "HTTP/1.1 204 No Content", 23, NOW);
    http_reply_line(&reply, line, 118, NOW);
    assert_string_equal(reply.member, "");
}

UNIT_TEST(test_http_reply__any_bytes__no_crash)
{
    static const char *const names[] = {"HTTP/1.1 ",     "Content-Length:", "Content-Range: bytes ",
                                        "Retry-After: ", "Last-Modified: ", "Content-Encoding: "};
    static const char letters[] = "0123456789-/* ,:GMTSunJa\r\n\xff";
    uint64_t random = RANDOM_SEED;
    struct http_reply reply = {0};

    for (unsigned i = 0; i < 200000; i++) {
        const char *name = names[random_below(&random, ARRAY_LEN(names))];
        size_t n = strlen(name), extra = random_below(&random, 40);
        char *line = malloc(n + extra); /* of exactly that size, for ASan */

        memcpy(line, name, n);
        for (size_t k = 0; k < extra; k++)
            line[n + k] = letters[random_below(&random, sizeof(letters))];
        http_reply_line(&reply, line, n + extra, NOW);
        free(line);
        assert_true(reply.retry_ms <= HTTP_RETRY_MOST_MS);
        assert_true(!reply.has_range || reply.first <= reply.last);
    }
}

UNIT_TEST(test_http_date)
{
    static const struct {
        const char *text;
        int64_t want; /* -1: none */
    } cases[] = {
        {"Sun, 06 Nov 1994 08:49:37 GMT", 784111777},
        {"Sunday, 06-Nov-94 08:49:37 GMT", 784111777},
        {"Sun Nov  6 08:49:37 1994", 784111777},
        {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
        {"Tue, 29 Feb 2000 23:59:60 GMT", 951868800},
        {"Sat, 01 Jan 2050 00:00:00 GMT", 2524608000},
        {"Thu, 30 Feb 2000 00:00:00 GMT", -1},
        {"Sun, 06 Nov 1994 08:49:37", -1},
        {"Sun, 06 Nov 1994 08:49:37 GMT+1", -1},
        {"Sun, 06 Nov 1994 24:00:00 GMT", -1},
        {"Sun, 06 Nov 1994 -1:00:00 GMT", -1},
        {"Sun, 00 Nov 1994 08:49:37 GMT", -1},
        {"Sun, 06 Nov 1899 08:49:37 GMT", -1},
        {"Sun, 06 Nov 99999 08:49:37 GMT", -1},
        {"Sun, 06 No 1994 08:49:37 GMT", -1},
        {"0", -1},
        {"", -1},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t found = -1;
        bool ok = http_date_parse(cases[i].text, &found);

        if (ok != (cases[i].want >= 0) || found != cases[i].want)
            fail_msg("%s: %d, %lld", cases[i].text, ok, (long long)found);
    }
}

UNIT_TEST(test_http_retry_after)
{
    static const struct {
        const char *text;
        uint64_t want;
    } cases[] = {
        {"1", 1000},
        {"0", 0},
        {"600", 600000},
        {"601", 600000},
        {"00", 0},
        {"999999999999999999999999999", 600000},
        {"Sun, 09 Sep 2001 01:46:50 GMT", 10000},
        {"Sun, 09 Sep 2001 01:46:40 GMT", 0},
        {"Sun, 09 Sep 2001 01:46:30 GMT", 0},
        {"Sun, 09 Sep 9999 01:46:30 GMT", 600000},
        {"-1", 0},
        {"1.5", 0},
        {"soon", 0},
        {"", 0},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (http_retry_parse(cases[i].text, NOW) != cases[i].want)
            fail_msg("%s: %llu", cases[i].text,
                     (unsigned long long)http_retry_parse(cases[i].text, NOW));
}

/* ---- the judge ---- */

static const struct remote_version version = {
    .size = 1000, .mtime.tv_sec = NOW - 1, .etag = "\"v1\""};
static const struct remote_version no_etag = {.size = 1000, .mtime.tv_sec = NOW - 1};
static const struct remote_version whole_only = {
    .size = 1000, .etag = "\"v1\"", .whole_only = true};
static const struct remote_version unknown = {.size = 1000};
static const struct remote_version both = {
    .size = 1000, .mtime.tv_sec = NOW - 1, .etag = "\"v1\"", .time_counts = true};
static const struct remote_version weak = {
    .size = 1000, .mtime.tv_sec = NOW - 1, .etag = "W/\"v1\""};

#define V1       "ETag: \"v1\"\r\n"
#define HEAD_206 "HTTP/1.1 206 x\r\nContent-Length: 100\r\n"
#define RANGE    "Content-Range: bytes 200-299/1000\r\n"
#define TIME     "Last-Modified: Sun, 09 Sep 2001 01:46:39 GMT\r\n"

struct judgement {
    const struct remote_version *version;
    uint64_t off, len;
    const char *head;
    enum transfer_end want;
    const char *message; /* a piece of it */
};

static void check_judgement(const struct judgement *c)
{
    struct http_want want = {
        .version = c->version, .off = c->off, .len = c->len, .part = !c->version->whole_only};
    struct http_reply reply = reply_of(c->head);
    struct diag d = DIAG_INIT;
    enum transfer_end how = http_reply_judge(&reply, &want, "http://h/f", &d);

    if (how != c->want)
        fail_msg("%s: %d, expected %d: %s", c->head, how, c->want, d.text);
    if (c->message)
        assert_diag_has(&d, c->message);
    else
        assert_false(d.set);
}

UNIT_TEST(test_http_judge)
{
    static const struct judgement cases[] = {
        {&version, 200, 100, HEAD_206 RANGE "ETag: \"v1\"\r\n", TRANSFER_DONE, NULL},
        /* What lacks that by which the file is known may be any version. */
        {&version, 200, 100, HEAD_206 RANGE, TRANSFER_AGAIN, "has no ETag"},
        {&version, 200, 100, HEAD_206 RANGE TIME, TRANSFER_AGAIN, "mount with -o version=time"},
        {&no_etag, 200, 100, HEAD_206 RANGE, TRANSFER_AGAIN, "has no Last-Modified"},
        {&no_etag, 200, 100, HEAD_206 RANGE "ETag: \"v1\"\r\n", TRANSFER_AGAIN,
         "has no Last-Modified"},
        {&no_etag, 0, 1000, "HTTP/1.1 200 x\r\nContent-Length: 1000\r\n", TRANSFER_AGAIN,
         "has no Last-Modified"},
        {&unknown, 200, 100, HEAD_206 RANGE, TRANSFER_DONE, NULL},
        /* A file without a version gets one: which bytes came before is not known. */
        {&unknown, 200, 100, HEAD_206 RANGE V1, TRANSFER_CHANGED, "it had no ETag, has \"v1\""},
        {&unknown, 200, 100, HEAD_206 RANGE TIME, TRANSFER_CHANGED, "it had no Last-Modified"},
        {&weak, 200, 100, HEAD_206 RANGE "ETag: W/\"v1\"\r\n", TRANSFER_DONE, NULL},
        {&weak, 200, 100, HEAD_206 RANGE "ETag: \"v1\"\r\n", TRANSFER_CHANGED, "is \"v1\""},
        {&weak, 200, 100, HEAD_206 RANGE, TRANSFER_AGAIN, "has no ETag"},
        {&version, 200, 100, HEAD_206 RANGE "ETag: \"v1-gzip\"\r\n" TIME, TRANSFER_CHANGED,
         "Its size and time are the same: if several machines"},
        {&version, 200, 100, "HTTP/1.1 206 x\r\n" RANGE V1, TRANSFER_DONE, NULL},
        {&no_etag, 200, 100, HEAD_206 RANGE "ETag: \"new\"\r\n" TIME, TRANSFER_CHANGED,
         "it had no ETag, has \"new\". If only some replies have one, mount with -o version=time"},
        {&both, 200, 100, HEAD_206 RANGE V1 TIME, TRANSFER_DONE, NULL},
        {&both, 200, 100, HEAD_206 RANGE V1, TRANSFER_DONE, NULL},
        {&both, 200, 100, HEAD_206 RANGE TIME, TRANSFER_AGAIN, "has no ETag"},
        {&both, 200, 100, HEAD_206 RANGE V1 "Last-Modified: Sun, 09 Sep 2001 01:46:40 GMT\r\n",
         TRANSFER_CHANGED,
         "was 999999999, is 1000000000, and its ETag is still \"v1\". If several machines answer "
         "by "
         "this name, mount with -o version=etag"},
        /* If the ETag suffices, it decides, whatever the times are. */
        {&version, 200, 100,
         HEAD_206 RANGE "ETag: \"v1\"\r\nLast-Modified: Sun, 09 Sep 2001 01:46:00 GMT\r\n",
         TRANSFER_DONE, NULL},
        {&version, 200, 100, HEAD_206 RANGE "ETag: \"v2\"\r\n" TIME, TRANSFER_CHANGED,
         "its ETag was \"v1\", is \"v2\". Its size and time are the same"},
        {&version, 200, 100, HEAD_206 RANGE "ETag: \"v2\"\r\n", TRANSFER_CHANGED,
         "its ETag was \"v1\", is \"v2\""},
        {&version, 200, 100, HEAD_206 RANGE "ETag: W/\"v1\"\r\n", TRANSFER_CHANGED, "W/\"v1\""},
        {&no_etag, 200, 100, HEAD_206 RANGE "Last-Modified: Sun, 09 Sep 2001 01:46:40 GMT\r\n",
         TRANSFER_CHANGED, "999999999, is 1000000000"},
        {&version, 200, 100, HEAD_206 "Content-Range: bytes 200-299/1001\r\n", TRANSFER_CHANGED,
         "its size was 1000, is 1001"},
        {&version, 200, 100, HEAD_206, TRANSFER_AGAIN, "without a Content-Range"},
        {&version, 200, 100, HEAD_206 "Content-Range: bytes 201-300/1000\r\n", TRANSFER_AGAIN,
         "expected bytes 200-299, got bytes 201-300"},
        {&version, 200, 100, HEAD_206 "Content-Range: bytes 200-298/1000\r\n", TRANSFER_AGAIN,
         "got bytes 200-298"},
        {&version, 200, 100, HEAD_206 "Content-Range: bytes 200-299/*\r\n", TRANSFER_AGAIN,
         "neither the size"},
        {&version, 200, 100, HEAD_206 "Content-Range: bytes 200-299/*\r\nETag: \"v1\"\r\n",
         TRANSFER_DONE, NULL},
        {&version, 200, 100, "HTTP/1.1 206 x\r\nContent-Length: 101\r\n" RANGE, TRANSFER_AGAIN,
         "Content-Length 101"},
        {&version, 200, 100, HEAD_206 RANGE "Content-Length: 99999999999999999999999\r\n",
         TRANSFER_AGAIN, "cannot be read"},
        {&version, 200, 100, HEAD_206 RANGE "Content-Encoding: gzip\r\n", TRANSFER_REFUSED,
         "Content-Encoding: gzip"},
        {&version, 200, 100, HEAD_206 RANGE V1 "Content-Encoding: identity\r\n", TRANSFER_DONE,
         NULL},
        /* A file that is stored packed; one that the server packs; how it was uploaded. */
        {&version, 200, 100, HEAD_206 RANGE V1 "Content-Encoding: x-gzip\r\n", TRANSFER_DONE, NULL},
        {&version, 200, 100, HEAD_206 RANGE V1 "Content-Encoding: aws-chunked,gzip\r\n",
         TRANSFER_DONE, NULL},
        {&version, 200, 100, HEAD_206 RANGE V1 "Content-Encoding: aws-chunked\r\n", TRANSFER_DONE,
         NULL},
        {&weak, 200, 100, HEAD_206 RANGE "ETag: W/\"v1\"\r\nContent-Encoding: gzip\r\n",
         TRANSFER_REFUSED, "Content-Encoding: gzip"},
        {&version, 0, 1000, "HTTP/1.1 200 x\r\n" V1 "Content-Encoding: gzip\r\n", TRANSFER_REFUSED,
         "Content-Encoding: gzip"},
        {&version, 200, 100, HEAD_206 RANGE V1 "Content-Encoding: br\r\n", TRANSFER_REFUSED,
         "Content-Encoding: br"},
        {&version, 200, 100, "HTTP/1.1 200 x\r\nContent-Length: 1000\r\n", TRANSFER_WHOLE,
         "the whole file"},
        {&version, 0, 100, "HTTP/1.1 200 x\r\nContent-Length: 1000\r\n", TRANSFER_WHOLE,
         "the whole file"},
        {&version, 0, 1000, "HTTP/1.1 200 x\r\nContent-Length: 1000\r\n" V1, TRANSFER_DONE, NULL},
        {&version, 0, 1000, "HTTP/1.1 200 x\r\nContent-Length: 1000\r\n", TRANSFER_AGAIN,
         "has no ETag"},
        {&version, 0, 100, "HTTP/1.1 200 x\r\n", TRANSFER_WHOLE, "the whole file"},
        {&version, 0, 100, "HTTP/1.1 200 x\r\nContent-Length: 100\r\n", TRANSFER_CHANGED, "is 100"},
        {&whole_only, 0, 100, "HTTP/1.1 200 x\r\n" V1, TRANSFER_DONE, NULL},
        {&whole_only, 200, 100, "HTTP/1.1 200 x\r\n" V1, TRANSFER_DONE, NULL},
        {&whole_only, 200, 100, "HTTP/1.1 200 x\r\n", TRANSFER_AGAIN, "has no ETag"},
        {&whole_only, 0, 100, "HTTP/1.1 206 x\r\nContent-Range: bytes 0-99/1000\r\n",
         TRANSFER_AGAIN, "expected the whole file"},
        {&whole_only, 0, 100, "HTTP/1.1 200 x\r\nContent-Length: 999\r\n", TRANSFER_CHANGED,
         "is 999"},
        {&version, 200, 100, "HTTP/1.1 204 x\r\n", TRANSFER_AGAIN, "status 204"},
        {&version, 200, 100, "HTTP/1.1 304 x\r\n", TRANSFER_REFUSED, "status 304"},
        {&version, 200, 100, "HTTP/1.1 xyz\r\n", TRANSFER_AGAIN, "status 0"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check_judgement(&cases[i]);
}

static void judge_by_time(const struct remote_version *of, const char *head,
                          enum transfer_end expected)
{
    const struct http_want want = {
        .version = of, .off = 200, .len = 100, .part = true, .by_time = true};
    struct http_reply reply = reply_of(head);
    struct diag d = DIAG_INIT;

    assert_int_equal(http_reply_judge(&reply, &want, "http://h/f", &d), expected);
}

/* With version=time the ETag says nothing, except where there is no time. */
UNIT_TEST(test_http_judge__by_time)
{
    static const struct remote_version no_time = {.size = 1000, .etag = "\"v1\""};

    judge_by_time(&version, HEAD_206 RANGE "ETag: \"other\"\r\n" TIME, TRANSFER_DONE);
    judge_by_time(&version, HEAD_206 RANGE TIME, TRANSFER_DONE);
    judge_by_time(&version, HEAD_206 RANGE V1, TRANSFER_AGAIN);
    judge_by_time(&version, HEAD_206 RANGE V1 "Last-Modified: Sun, 09 Sep 2001 01:46:40 GMT\r\n",
                  TRANSFER_CHANGED);
    judge_by_time(&no_time, HEAD_206 RANGE "ETag: \"other\"\r\n" TIME, TRANSFER_CHANGED);
    judge_by_time(&no_time, HEAD_206 RANGE V1, TRANSFER_DONE);
}

UNIT_TEST(test_http_error_text)
{
    static const struct {
        const char *body, *url, *expected;
    } cases[] = {
        {"<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>Request has expired"
         "</Message><Expires>x</Expires></Error>",
         "http://h/f?X-Amz-Signature=0123456789", " AccessDenied: Request has expired"},
        {"<Error><Code>InvalidObjectState</Code><Message>The action is not\n valid for the "
         "object's <b>storage class</Message>",
         "s3://b/k", " InvalidObjectState: The action is not valid for the object's"},
        {"<Error><Code>SignatureDoesNotMatch</Code><Message>got 0123456789</Message>",
         "http://h/f?X-Amz-Signature=0123456789", " SignatureDoesNotMatch"},
        {"<Error><Code>X</Code><Message>no /f?sig=1 here</Message>", "http://h/f?sig=1", " X"},
        {"token abc/def is old", "http://h/f?t=abc%2Fdef", ""},
        {"<html><head><title>404 Not Found</title>", "http://h/f", ""},
        {"<html><TITLE>Access to this\tpage is denied</TITLE>", "http://h/f",
         ": Access to this page is denied"},
        {"{\"error\": \"gated repo\"}", "http://h/f", ": gated repo"},
        {"{\"code\": 3, \"message\": \"quota\"}", "http://h/f", ": quota"},
        {"  no such bucket\nsecond line", "http://h/f", ": no such bucket"},
        {"\x1b[31mred", "http://h/f", ": [31mred"},
        {"", "http://h/f", ""},
        {"<Message>never ends", "http://h/f", ""},
        {"{", "http://h/f", ""},
    };
    char said[HTTP_ERROR_SIZE], longer[2000];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        http_error_text(cases[i].body, strlen(cases[i].body), cases[i].url, said);
        assert_string_equal(said, cases[i].expected);
    }
    memset(longer, 'x', sizeof(longer));
    http_error_text(longer, sizeof(longer), "http://h/f", said);
    assert_in_range(strlen(said), 150, HTTP_ERROR_SIZE - 1);
}

UNIT_TEST(test_http_status_end)
{
    static const struct {
        unsigned status;
        enum transfer_end want;
    } cases[] = {
        {400, TRANSFER_REFUSED}, {401, TRANSFER_REFUSED}, {403, TRANSFER_REFUSED},
        {404, TRANSFER_CHANGED}, {408, TRANSFER_AGAIN},   {410, TRANSFER_CHANGED},
        {412, TRANSFER_CHANGED}, {416, TRANSFER_CHANGED}, {425, TRANSFER_AGAIN},
        {429, TRANSFER_AGAIN},   {500, TRANSFER_AGAIN},   {503, TRANSFER_AGAIN},
        {999, TRANSFER_AGAIN},   {302, TRANSFER_REFUSED},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(http_status_end(cases[i].status), cases[i].want);
}

UNIT_TEST(test_http_etag_is_strong)
{
    assert_true(http_etag_is_strong("\"v1\""));
    assert_true(http_etag_is_strong("\"a, b-12\""));
    assert_false(http_etag_is_strong(""));
    assert_false(http_etag_is_strong("\"\""));
    assert_false(http_etag_is_strong("\""));
    assert_false(http_etag_is_strong("W/\"v1\""));
    assert_false(http_etag_is_strong("v1"));
    assert_false(http_etag_is_strong("\"a\", \"b\"")); /* two of them */
}

UNIT_TEST(test_http_link_next)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"<https://h/x?c=1,2>; rel=\"next\"", "https://h/x?c=1,2"},
        {"<a>; rel=\"help\", </b?c>; rel=next", "/b?c"},
        {"<a>; title=\"x, <z>; rel=next\", <b>; rel=\"prev next\"", "b"},
        {"<a>; REL=Next", "a"},
        {"<a>; rel=\"nextly\"", ""},
        {"<a>; rel=\"prev\"", ""},
        {"<a b>; rel=next", ""},
        {"<>; rel=next", ""},
        {"<a; rel=next", ""},
        {"a; rel=next", ""},
        {"<a>; rel=", ""},
        {"", ""},
    };
    char found[32];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(http_link_next(cases[i].text, found, sizeof(found)), *cases[i].want != 0);
        assert_string_equal(found, cases[i].want);
    }
    assert_false(
        http_link_next("<0123456789012345678901234567890123>; rel=next", found, sizeof(found)));
}

UNIT_TEST(test_http_limit)
{
    static const struct {
        const char *text;
        uint64_t want;
    } cases[] = {
        {"\"api\";r=0;t=54", 55000},
        {"\"api\"; r=0; t=0", 1000},
        {"\"api\";r=1;t=54", 0},
        {"\"api\";t=54", 0},
        {"\"api\";r=0", 0},
        {"\"api\";r=0;t=9999999", 0},
        {"\"api\";r=0;t=-1", 0},
        {"\"api\";r=0;t=700", 600000},
        {"", 0},
    };
    struct http_reply reply =
        reply_of("HTTP/1.1 429 x\r\nRateLimit: \"api\";r=0;t=54\r\nRetry-After: 3\r\n\r\n");

    assert_int_equal(reply.retry_ms, 55000);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(http_limit_parse(cases[i].text), cases[i].want);
}

UNIT_TEST(test_http_reply_version)
{
    struct remote_version found;
    struct diag d = DIAG_INIT;
    struct http_reply reply =
        reply_of("HTTP/1.1 200 x\r\nContent-Length: 7\r\nETag: \"e\"\r\n" TIME);

    assert_int_equal(http_reply_version(&reply, false, "f", &found, &d), 0);
    assert_int_equal(found.size, 7);
    assert_int_equal(found.mtime.tv_sec, NOW - 1);
    assert_string_equal(found.etag, "\"e\"");
    assert_false(found.whole_only);
    /* The whole file in reply to a Range. */
    assert_int_equal(http_reply_version(&reply, true, "f", &found, &d), 0);
    assert_true(found.whole_only);
    reply = reply_of("HTTP/1.1 200 x\r\nContent-Length: 7\r\nAccept-Ranges: none\r\n");
    assert_int_equal(http_reply_version(&reply, false, "f", &found, &d), 0);
    assert_true(found.whole_only);
    reply = reply_of("HTTP/1.1 206 x\r\nContent-Length: 1\r\nContent-Range: bytes 0-0/70\r\n");
    assert_int_equal(http_reply_version(&reply, true, "f", &found, &d), 0);
    assert_int_equal(found.size, 70);
    reply = reply_of("HTTP/1.1 416 x\r\nContent-Range: bytes */0\r\n");
    assert_int_equal(http_reply_version(&reply, true, "f", &found, &d), 0);
    assert_int_equal(found.size, 0);
    reply = reply_of("HTTP/1.1 200 x\r\n");
    assert_int_equal(http_reply_version(&reply, false, "f", &found, &d), -EAGAIN);
    assert_false(d.set);
    reply = reply_of("HTTP/1.1 200 x\r\nContent-Length: 7\r\nContent-Encoding: br\r\n");
    assert_int_equal(http_reply_version(&reply, false, "f", &found, &d), -EREMOTEIO);
    assert_diag_has(&d, "Content-Encoding: br");
}

UNIT_TEST(test_http_error_code)
{
    static const char body[] = "<?xml?><Error><Code>ExpiredToken</Code><Message>x</Message>";
    char code[64], longer[300];

    http_error_code(body, strlen(body), code);
    assert_string_equal(code, "ExpiredToken");
    http_error_code(body, 25, code); /* cut */
    assert_string_equal(code, "Expir");
    http_error_code("<html>", 6, code);
    assert_string_equal(code, "");
    http_error_code("", 0, code);
    assert_string_equal(code, "");
    memset(longer, 'x', sizeof(longer));
    memcpy(longer, "<Code>", 6);
    http_error_code(longer, sizeof(longer), code);
    assert_int_equal(strlen(code), 63);
}

UNIT_TEST(test_http_url_name)
{
    static const char *const cases[][2] = {
        {"http://host/a/b", "http://host/a/b"},
        {"https://user:secret@host:81/a?X-Amz-Signature=secret#secret", "https://host:81/a"},
        {"https://user:s@cret@host?q", "https://host"},
        {"http://host/a@b", "http://host/a@b"},
        {"http://host?a@b/c", "http://host"},
        {"host/a\nb", "host/a?b"},
        {"", ""},
    };
    char name[64];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        http_url_name(cases[i][0], name, sizeof(name));
        assert_string_equal(name, cases[i][1]);
    }
    http_url_name("http://host/abcdef", name, 12);
    assert_string_equal(name, "http://host");
}

UNIT_TEST(test_url_host)
{
    static const char *const cases[][2] = {{"http://h.x/a:b", "h.x"},     {"https://h:8/?a", "h"},
                                           {"http://[::1]:80/", "[::1]"}, {"http://[::1]", "[::1]"},
                                           {"http://h?a:b", "h"},         {"http://[::1", "[::1"}};
    char host[16];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        url_host(cases[i][0], host, sizeof(host));
        assert_string_equal(host, cases[i][1]);
    }
    url_host("http://0123456789abcdefg/", host, sizeof(host));
    assert_string_equal(host, "0123456789abcde");
}

UNIT_TEST(test_http_encode)
{
    AUTO_TEXT struct text url = {0};

    http_encode(&url, "a/b c+\xc3\xa4?%~", true);
    assert_string_equal(url.data, "a/b%20c%2B%C3%A4%3F%25~");
    http_encode(&url, "a/b", false);
    http_encode(&url, "", false);
    assert_string_equal(url.data, "a/b%20c%2B%C3%A4%3F%25~a%2Fb");
}
