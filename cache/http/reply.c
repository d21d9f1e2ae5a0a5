/* Heads of HTTP replies. Lines come one by one; each that matters is parsed at once and kept in
 * fields of fixed size. A line that cannot be read, or that is repeated with another value, is
 * never guessed at: it marks the reply as contradictory, and no byte of its body counts.
 *
 * A body counts only if the head proves that it is the wanted part of the wanted version. So an
 * error of a server, a proxy or a cache costs time, but never gives a wrong byte. */
#include "cache/http/reply.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/checked.h"
#include "base/number.h"
#include "base/scope.h"
#include "cache/http/reply_fields.h"

/* ---- dates ---- */

bool http_date_parse(const char *text, int64_t *ret)
{
    static const char *const forms[] = {"%a, %d %b %Y %H:%M:%S GMT", "%a, %d-%b-%y %H:%M:%S GMT",
                                        "%a %b %d %H:%M:%S %Y"};

    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        struct tm tm = {0}, made;
        const char *end = strptime(text, forms[i], &tm);
        time_t at;

        if (!end || *end || tm.tm_year < 70)
            continue;
        made = tm;
        at = timegm(&made);
        if (made.tm_mon != tm.tm_mon && tm.tm_sec < 60) /* the 30th of February */
            return false;
        *ret = at;
        return true;
    }
    return false;
}

uint64_t http_retry_parse(const char *text, int64_t now_s)
{
    size_t digits = strspn(text, "0123456789");
    uint64_t seconds;
    int64_t at;

    if (digits > 0 && text[digits] == '\0') {
        if (number_parse(text, digits, HTTP_RETRY_MOST_MS / 1000, &seconds) != digits)
            return text[strspn(text, "0")] ? HTTP_RETRY_MOST_MS : 0;
        return seconds * 1000;
    }
    if (!http_date_parse(text, &at) || at <= now_s)
        return 0;
    return (uint64_t)(at - now_s) >= HTTP_RETRY_MOST_MS / 1000 ? HTTP_RETRY_MOST_MS
                                                               : (uint64_t)(at - now_s) * 1000;
}

/* ---- lines ---- */

/* Read a number; *text is after it afterwards. */
static bool number_take(const char **text, uint64_t *ret)
{
    size_t n = number_parse(*text, strlen(*text), INT64_MAX - 1, ret);

    *text += n;
    return n > 0;
}

static bool range_parse(const char *text, struct http_reply *ret)
{
    if (strncasecmp(text, "bytes", 5) != 0 || (text[5] != ' ' && text[5] != '='))
        return false;
    text += 6;
    text += strspn(text, " ");
    if (*text == '*') {
        text++;
    } else {
        if (!number_take(&text, &ret->first) || *text++ != '-' || !number_take(&text, &ret->last) ||
            ret->last < ret->first)
            return false;
        ret->has_range = true;
    }
    if (*text++ != '/')
        return false;
    if (strcmp(text, "*") == 0)
        return ret->has_range;
    if (!number_take(&text, &ret->total) || *text)
        return false;
    ret->has_total = true;
    return !ret->has_range || ret->last < ret->total;
}

static void take_range(struct http_reply *reply, const char *value)
{
    struct http_reply found = {0};

    if (!range_parse(value, &found)) {
        reply->contradicts = true;
        return;
    }
    if ((reply->has_range || reply->has_total) &&
        (reply->has_range != found.has_range || reply->has_total != found.has_total ||
         reply->first != found.first || reply->last != found.last || reply->total != found.total))
        reply->contradicts = true;
    reply->has_range = found.has_range;
    reply->has_total = found.has_total;
    reply->first = found.first;
    reply->last = found.last;
    reply->total = found.total;
}

static void take_length(struct http_reply *reply, const char *value)
{
    uint64_t length;

    if (!number_take(&value, &length) || *value || (reply->has_length && reply->length != length)) {
        reply->contradicts = true;
        return;
    }
    reply->has_length = true;
    reply->length = length;
}

/* Keep a text; drop one that is too long or has other than printable ASCII. */
static void take_text(const char *value, char *ret, size_t capacity)
{
    size_t len = strlen(value);

    *ret = '\0';
    for (size_t i = 0; i < len; i++)
        if (value[i] < ' ' || value[i] > '~')
            return;
    if (len < capacity)
        memcpy(ret, value, len + 1);
}

/* "HTTP/1.1 206 Partial Content" */
static void take_status(struct http_reply *reply, const char *line)
{
    const char *at = strchr(line, ' ');
    unsigned status = 0;

    *reply = (struct http_reply){.status = 0};
    if (at && at[1] >= '1' && at[1] <= '9' && strspn(at + 1, "0123456789") == 3)
        status =
            (unsigned)(at[1] - '0') * 100 + (unsigned)(at[2] - '0') * 10 + (unsigned)(at[3] - '0');
    reply->status = status;
}

static void take_header(struct http_reply *reply, const char *name, const char *value,
                        int64_t now_s)
{
    const struct {
        const char *name;
        char *to;
        size_t capacity;
    } texts[] = {{"ETag", reply->etag, sizeof(reply->etag)},
                 {"Location", reply->location, sizeof(reply->location)},
                 {"X-Epochfs-Peers", reply->peers, sizeof(reply->peers)},
                 {"X-Error-Code", reply->said_code, sizeof(reply->said_code)},
                 {"X-Error-Message", reply->said, sizeof(reply->said)}};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (!strcasecmp(name, texts[i].name))
            take_text(value, texts[i].to, texts[i].capacity);
    if (!strcasecmp(name, "Content-Length"))
        take_length(reply, value);
    else if (!strcasecmp(name, "Content-Range"))
        take_range(reply, value);
    else if (!strcasecmp(name, "Content-Encoding"))
        http_encoding_parse(value, reply->encoding, sizeof(reply->encoding));
    else if (!strcasecmp(name, "Last-Modified"))
        reply->has_modified = http_date_parse(value, &reply->modified);
    else if (!strcasecmp(name, "Accept-Ranges"))
        reply->no_ranges = !strcasecmp(value, "none");
    else if (!strcasecmp(name, "Link") && !reply->next[0])
        http_link_next(value, reply->next, sizeof(reply->next));
    else if (!strcasecmp(name, "RateLimit"))
        reply->limited_ms = max_u64(reply->limited_ms, http_limit_parse(value));
    else if (!strcasecmp(name, "Retry-After"))
        reply->retry_ms = http_retry_parse(value, now_s);
    else if (!strcasecmp(name,
                         "X-Epochfs-Member")) /* those that were tried: the last one answers */
        take_text(strrchr(value, ' ') ? strrchr(value, ' ') + 1 : value, reply->member,
                  sizeof(reply->member));
}

void http_reply_line(struct http_reply *reply, const char *line, size_t len, int64_t now_s)
{
    char text[sizeof(reply->location) + 64], *value;

    while (len > 0 && strchr("\r\n \t", line[len - 1]) && line[len - 1])
        len--;
    if (len >= 5 && memcmp(line, "HTTP/", 5) == 0) {
        if (len >= sizeof(text))
            len = sizeof(text) - 1;
        memcpy(text, line, len);
        text[len] = '\0';
        take_status(reply, text);
        return;
    }
    if (reply->complete)
        return;
    if (len == 0) {
        reply->complete = true;
        if (reply->status == 429 && reply->limited_ms)
            reply->retry_ms = reply->limited_ms;
        return;
    }
    if (len >= sizeof(text) || memchr(line, '\0', len)) /* no line that matters is so long */
        return;
    memcpy(text, line, len);
    text[len] = '\0';
    value = strchr(text, ':');
    if (!value)
        return;
    *value++ = '\0';
    take_header(reply, text, value + strspn(value, " \t"), now_s);
}

bool http_reply_redirects(const struct http_reply *reply)
{
    unsigned status = reply->status;

    return ((status >= 301 && status <= 303) || status == 307 || status == 308) &&
           reply->location[0];
}

/* ---- what it means ---- */

bool http_etag_is_strong(const char *etag)
{
    size_t len = strlen(etag);

    return len > 2 && etag[0] == '"' && strchr(etag + 1, '"') == etag + len - 1;
}

/* Is the body what is stored, in spite of its Content-Encoding? So it is where a gzip file is
 * stored with that header: its length and its ETag are those of any file. A server that packs what
 * it sends tells no length, or a weak ETag. */
static bool http_reply_is_stored(const struct http_reply *reply)
{
    return !reply->encoding[0] ||
           ((!strcasecmp(reply->encoding, "gzip") || !strcasecmp(reply->encoding, "x-gzip")) &&
            reply->has_length && http_etag_is_strong(reply->etag));
}

enum transfer_end http_status_end(unsigned status)
{
    switch (status) {
    case 404: /* it existed when the version was found */
    case 410:
    case 412:
    case 416:
        return TRANSFER_CHANGED;
    case 408:
    case 425:
    case 429:
        return TRANSFER_AGAIN;
    default:
        return status >= 500 || status < 200 ? TRANSFER_AGAIN : TRANSFER_REFUSED;
    }
}

static enum transfer_end ended(enum transfer_end how, struct diag *d, const char *name,
                               const char *wanted, const char *found)
{
    diag_set(d, 0, "%s: expected %s, got %s", name, wanted, found);
    return how;
}

static enum transfer_end differs(struct diag *d, const char *name, const char *what,
                                 uint64_t wanted, uint64_t found)
{
    diag_set(d, 0, "%s: has changed: %s was %" PRIu64 ", is %" PRIu64, name, what, wanted, found);
    return TRANSFER_CHANGED;
}

static bool is_by_etag(const struct http_want *wanted)
{
    const struct remote_version *version = wanted->version;

    return version->etag[0] && !wanted->by_url && !http_is_by_time(version, wanted->by_time);
}

static enum transfer_end judge_etag(const struct http_reply *reply,
                                    const struct remote_version *version, const char *name,
                                    struct diag *d)
{
    bool same_time =
        version->mtime.tv_sec && reply->has_modified && reply->modified == version->mtime.tv_sec;

    if (strcmp(version->etag, reply->etag) == 0) {
        if (!version->time_counts || !reply->has_modified || same_time)
            return TRANSFER_DONE;
        diag_set(d, 0,
                 "%s: has changed: its time (seconds since 1970) was %" PRIu64 ", is %" PRIu64
                 ", and its ETag is still %s. If several machines answer by this name, mount with "
                 "-o version=etag",
                 name, (uint64_t)version->mtime.tv_sec, (uint64_t)reply->modified, reply->etag);
        return TRANSFER_CHANGED;
    }
    diag_set(d, 0, "%s: has changed: its ETag was %s, is %s%s", name, version->etag, reply->etag,
             same_time ? ". Its size and time are the same: if several machines answer by this "
                         "name, mount with -o version=time"
                       : "");
    return TRANSFER_CHANGED;
}

/* Is it another version, as far as size, ETag and time tell? */
static enum transfer_end judge_version(const struct http_reply *reply,
                                       const struct http_want *wanted, const char *name,
                                       struct diag *d)
{
    const struct remote_version *version = wanted->version;
    bool part = reply->status == 206;
    uint64_t size = part ? reply->total : reply->length;

    if ((part ? reply->has_total : reply->has_length) && size != version->size)
        return differs(d, name, "its size", version->size, size);
    if (is_by_etag(wanted) && reply->etag[0])
        return judge_etag(reply, version, name, d);
    if (version->mtime.tv_sec && reply->has_modified && reply->modified != version->mtime.tv_sec)
        return differs(d, name, "its time (seconds since 1970)", (uint64_t)version->mtime.tv_sec,
                       (uint64_t)reply->modified);
    return TRANSFER_DONE;
}

/* Does it have an ETag, or else a time, though the file was found to have none? Then it may be of
 * another version. */
static enum transfer_end judge_news(const struct http_reply *reply, const struct http_want *wanted,
                                    const char *name, struct diag *d)
{
    const struct remote_version *version = wanted->version;
    bool has_time = version->mtime.tv_sec;

    if (!version->etag[0] && reply->etag[0] && !http_is_by_time(version, wanted->by_time))
        diag_set(d, 0, "%s: has changed: it had no ETag, has %s%s", name, reply->etag,
                 has_time ? ". If only some replies have one, mount with -o version=time" : "");
    else if (!version->etag[0] && !has_time && reply->has_modified)
        diag_set(d, 0, "%s: has changed: it had no Last-Modified, has one", name);
    else
        return TRANSFER_DONE;
    return TRANSFER_CHANGED;
}

/* Does it say what the file is known by? Otherwise its bytes may be of any version. */
static enum transfer_end judge_known(const struct http_reply *reply, const struct http_want *wanted,
                                     const char *name, struct diag *d)
{
    bool by_etag = is_by_etag(wanted), has_time = wanted->version->mtime.tv_sec;

    if (by_etag ? reply->etag[0] != '\0' : !has_time || reply->has_modified)
        return judge_news(reply, wanted, name, d);
    diag_set(d, 0, "%s: a reply has no %s, by which this file is known%s", name,
             by_etag ? "ETag" : "Last-Modified",
             by_etag && has_time ? ". If none has one, mount with -o version=time" : "");
    return TRANSFER_AGAIN;
}

/* Is the body of a 206 exactly the part that was asked for? */
static enum transfer_end judge_part(const struct http_reply *reply, const struct http_want *wanted,
                                    const char *name, struct diag *d)
{
    char range[64], found[128];

    snprintf(range, sizeof(range), "bytes %" PRIu64 "-%" PRIu64, wanted->off,
             wanted->off + wanted->len - 1);
    if (!wanted->part)
        return ended(TRANSFER_AGAIN, d, name, "the whole file", "status 206, a part");
    if (!reply->has_range)
        return ended(TRANSFER_AGAIN, d, name, range, "status 206 without a Content-Range");
    if (reply->first != wanted->off || reply->last != wanted->off + wanted->len - 1) {
        snprintf(found, sizeof(found), "bytes %" PRIu64 "-%" PRIu64, reply->first, reply->last);
        return ended(TRANSFER_AGAIN, d, name, range, found);
    }
    if (!reply->has_total && (!reply->etag[0] || !wanted->version->etag[0]))
        return ended(TRANSFER_AGAIN, d, name, range, "neither the size of the file nor its ETag");
    if (reply->has_length && reply->length != wanted->len) {
        snprintf(found, sizeof(found), "Content-Length %" PRIu64, reply->length);
        return ended(TRANSFER_AGAIN, d, name, range, found);
    }
    return TRANSFER_DONE;
}

enum transfer_end http_reply_judge(const struct http_reply *reply, const struct http_want *wanted,
                                   const char *name, struct diag *d)
{
    enum transfer_end how;
    char found[64];

    if (reply->status != 200 && reply->status != 206) {
        snprintf(found, sizeof(found), "status %u", reply->status);
        return ended(reply->status / 100 == 2 ? TRANSFER_AGAIN : http_status_end(reply->status), d,
                     name, wanted->part ? "status 206" : "status 200", found);
    }
    if (!http_reply_is_stored(reply)) {
        snprintf(found, sizeof(found), "Content-Encoding: %s", reply->encoding);
        return ended(TRANSFER_REFUSED, d, name, "the bytes as they are", found);
    }
    if (reply->contradicts)
        return ended(TRANSFER_AGAIN, d, name, "one Content-Length and one Content-Range",
                     "what cannot be read, or two that differ");
    how = judge_version(reply, wanted, name, d);
    if (how != TRANSFER_DONE)
        return how;
    if (reply->status == 206)
        how = judge_part(reply, wanted, name, d);
    else if (wanted->part && (wanted->len != wanted->version->size || !reply->has_length))
        how = ended(TRANSFER_WHOLE, d, name, "a part", "the whole file (status 200)");
    return how == TRANSFER_DONE ? judge_known(reply, wanted, name, d) : how;
}

int http_reply_version(const struct http_reply *reply, bool part, const char *name,
                       struct remote_version *ret, struct diag *d)
{
    struct remote_version found = {0};

    if (!http_reply_is_stored(reply))
        return diag_set(d, -EREMOTEIO,
                        "%s: expected the bytes as they are, got Content-Encoding: %s", name,
                        reply->encoding);
    if (reply->contradicts)
        return diag_set(d, -EREMOTEIO,
                        "%s: its Content-Length or Content-Range cannot be read, or there are two "
                        "that differ",
                        name);
    if (reply->status == 206 || reply->status == 416) {
        if (!reply->has_total || (reply->status == 416 && reply->total != 0))
            return -EAGAIN;
        found.size = reply->total;
    } else {
        if (!reply->has_length)
            return -EAGAIN;
        found.size = reply->length;
        found.whole_only = part;
    }
    if (reply->no_ranges)
        found.whole_only = true;
    if (reply->has_modified)
        found.mtime.tv_sec = reply->modified;
    memcpy(found.etag, reply->etag, sizeof(found.etag));
    *ret = found;
    return 0;
}

void http_error_code(const char *body, size_t len, char ret[static 64])
{
    static const char open[] = "<Code>";
    const char *at = memmem(body, len, open, strlen(open));
    size_t n = 0;

    ret[0] = '\0';
    if (!at)
        return;
    at += strlen(open);
    while (at + n < body + len && n < 63 && at[n] > ' ' && at[n] <= '~' && at[n] != '<')
        n++;
    memcpy(ret, at, n);
    ret[n] = '\0';
}

void http_url_name(const char *url, char *ret, size_t capacity)
{
    const char *host = strstr(url, "://"), *user;
    size_t scheme;

    host = host ? host + 3 : url;
    scheme = (size_t)(host - url);
    user = memrchr(host, '@', strcspn(host, "/?#"));
    host = user ? user + 1 : host;
    snprintf(ret, capacity, "%.*s%.*s", (int)(scheme < 16 ? scheme : 0), url,
             (int)min_u64(strcspn(host, "?#"), 4096), host);
    for (char *c = ret; *c; c++)
        if (*c < ' ' || *c == 0x7f)
            *c = '?';
}
