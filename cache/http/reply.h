/* The head of an HTTP reply, and whether the reply is what was asked for. Knows nothing of
 * connections. All of this is hostile input: any number, any length. */
#ifndef EPOCHFS_CACHE_HTTP_REPLY_H
#define EPOCHFS_CACHE_HTTP_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "cache/stage/transport.h"

#define HTTP_RETRY_MOST_MS (UINT64_C(10) * 60 * 1000)

struct http_reply {
    unsigned status; /* 0: there is no reply yet */
    bool complete;   /* all lines of the head are present */
    /* Content-Length */
    bool has_length;
    uint64_t length;
    /* Content-Range: bytes FIRST-LAST/TOTAL, or bytes * /TOTAL */
    bool has_range, has_total;
    uint64_t first, last, total;
    /* A Content-Length or Content-Range is malformed, or is repeated with another value. */
    bool contradicts;
    bool has_modified;
    int64_t modified; /* Last-Modified, seconds since 1970 */
    uint64_t
        retry_ms; /* Retry-After, or when a rate limit ends, at most HTTP_RETRY_MOST_MS; 0: none */
    uint64_t limited_ms; /* RateLimit: nothing is left for so long; 0: it does not say so */
    bool no_ranges;      /* Accept-Ranges: none */
    char etag[160];      /* "": none, or one that cannot be kept */
    char encoding[32];   /* Content-Encoding, "": identity */
    char next[2048];     /* Link with rel="next"; "": none */
    char said_code[48], said[240]; /* X-Error-Code, X-Error-Message; "": none */
    char peers[32];  /* X-Epochfs-Peers: the ring of caches made this reply, and why; "": not */
    char member[64]; /* X-Epochfs-Member: the one of the ring that gave it; "": not known */
    char location[4096];
};

/* Parse one line of a head, with or without its line end; a line "HTTP/..." begins a head again.
 * Lines behind the empty one that ends a head (trailers) are ignored. now_s: since 1970. */
void http_reply_line(struct http_reply *reply, const char *line, size_t len, int64_t now_s);

/* Is it a redirect with a target? */
bool http_reply_redirects(const struct http_reply *reply);

/* What was asked for: len bytes at off of a version. */
struct http_want {
    const struct remote_version *version;
    uint64_t off, len;
    bool part;    /* a Range was sent */
    bool by_time; /* see http_is_by_time() */
    bool by_url;  /* the URL names the version: only the size is compared */
};

/* May the caller use the body? TRANSFER_DONE: yes, its first len bytes are what is wanted;
 * otherwise how the transfer ends, with the reason in d. name: the URL in messages. */
enum transfer_end http_reply_judge(const struct http_reply *reply, const struct http_want *wanted,
                                   const char *name, struct diag *d);

/* Does an ETag distinguish versions byte for byte, so that If-Match may use it? */
bool http_etag_is_strong(const char *etag);

/* How a transfer ends after a status that is not 2xx. */
enum transfer_end http_status_end(unsigned status);

/* Read a file's version from the reply to HEAD, or to GET with Range: bytes=0-0 (part). 0; -EAGAIN:
 * the reply does not say its size; or -errno with the reason in d. */
int http_reply_version(const struct http_reply *reply, bool part, const char *name,
                       struct remote_version *ret, struct diag *d);

/* The code of an S3 error document: "ExpiredToken"; "": not such a document. */
void http_error_code(const char *body, size_t len, char ret[static 64]);

/* What the body of an error says, for a message: " CODE: MESSAGE", where each part may be missing.
 * Nothing of the query of url is in it. */
#define HTTP_ERROR_SIZE 320
void http_error_text(const char *body, size_t len, const char *url,
                     char ret[static HTTP_ERROR_SIZE]);

/* Is the version known by its size and time, whatever its ETag is (`version=time`)? */
static inline bool http_is_by_time(const struct remote_version *version, bool by_time)
{
    return by_time && version->mtime.tv_sec;
}

/* Parse a date of HTTP, in one of its three forms, as seconds since 1970. */
bool http_date_parse(const char *text, int64_t *ret);

/* Parse Retry-After as ms, at most HTTP_RETRY_MOST_MS; 0: it cannot be read. */
uint64_t http_retry_parse(const char *text, int64_t now_s);

/* The URL without what messages must not show: user info, query, fragment. Cut to capacity. */
void http_url_name(const char *url, char *ret, size_t capacity);

#endif
