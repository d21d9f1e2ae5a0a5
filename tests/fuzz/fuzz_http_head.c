/* Bytes as the head of an HTTP reply, line by line, and as the body of an error. What comes out is
 * in its bounds, and no head lets a body pass that it does not prove to be the wanted part. */
#include <errno.h>
#include <string.h>

#include "cache/http/reply.h"
#include "fuzz.h"

static void feed(struct http_reply *reply, const char *text, size_t len)
{
    for (size_t at = 0; at < len;) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t n = end ? (size_t)(end - text) + 1 - at : len - at;
        char *line = malloc(n); /* of that size, so that ASan sees a read behind it */

        FUZZ_CHECK(line);
        memcpy(line, text + at, n);
        http_reply_line(reply, line, n, 1600000000);
        free(line);
        at += n;
    }
}

static void check_fields(const struct http_reply *reply)
{
    FUZZ_CHECK(memchr(reply->etag, '\0', sizeof(reply->etag)));
    FUZZ_CHECK(memchr(reply->encoding, '\0', sizeof(reply->encoding)));
    FUZZ_CHECK(memchr(reply->location, '\0', sizeof(reply->location)));
    fuzz_saw(&reply->retry_ms, sizeof(reply->retry_ms));
    fuzz_saw(reply->location, strnlen(reply->location, sizeof(reply->location)));
    FUZZ_CHECK(reply->retry_ms <= HTTP_RETRY_MOST_MS);
    FUZZ_CHECK(reply->contradicts || !reply->has_range || reply->first <= reply->last);
    FUZZ_CHECK(!http_reply_redirects(reply) || reply->location[0]);
}

/* part: bytes 10 to 109 of 1000 were asked for. */
static void check_judged(const struct http_reply *reply, bool part)
{
    const struct remote_version version = {.size = 1000, .etag = "\"v\"", .whole_only = !part};
    const struct http_want want = {
        .version = &version, .off = part ? 10 : 0, .len = part ? 100 : 1000, .part = part};
    struct diag d = DIAG_INIT;
    enum transfer_end how = http_reply_judge(reply, &want, "u", &d);

    FUZZ_CHECK(how == TRANSFER_DONE || d.set);
    fuzz_saw(&how, sizeof(how));
    if (how != TRANSFER_DONE)
        return;
    FUZZ_CHECK(!reply->contradicts && (!reply->encoding[0]));
    FUZZ_CHECK(reply->status == 200 || reply->status == 206);
    if (reply->status == 206)
        FUZZ_CHECK(reply->has_range && reply->first == want.off &&
                   reply->last >= want.off + want.len - 1);
    else
        FUZZ_CHECK(!part || want.off == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct http_reply reply = {0};
    char code[64];

    feed(&reply, (const char *)data, len);
    check_fields(&reply);
    for (int part = 0; part < 2; part++) {
        struct remote_version version = {0};
        struct diag d = DIAG_INIT;
        int r = http_reply_version(&reply, part, "u", &version, &d);

        FUZZ_CHECK(r == 0 || r == -EAGAIN || d.set);
        fuzz_saw(&r, sizeof(r));
        fuzz_saw(&version.size, sizeof(version.size));
        fuzz_saw(version.etag, strnlen(version.etag, sizeof(version.etag)));
        FUZZ_CHECK(r < 0 || memchr(version.etag, '\0', sizeof(version.etag)));
        check_judged(&reply, part);
    }
    http_error_code((const char *)data, len, code);
    fuzz_saw(code, strnlen(code, sizeof(code)));
    FUZZ_CHECK(memchr(code, '\0', sizeof(code)));
    return 0;
}
