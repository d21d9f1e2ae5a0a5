/* JSON token by token, in one pass: a file of any size takes the memory of a window and of its
 * longest text that is kept. RFC 8259, read strictly: no NaN, no comments, no comma before a
 * closing bracket, each string is UTF-8. A byte order mark at the start is skipped.
 *
 * One thread. */
#ifndef EPOCHFS_FORMAT_ANNOTATIONS_JSON_STREAM_H
#define EPOCHFS_FORMAT_ANNOTATIONS_JSON_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/blob.h"
#include "base/diag.h"
#include "format/index/pass_window.h"

#define JSON_STREAM_DEPTH  1024u      /* objects and lists within each other, at most */
#define JSON_STREAM_TEXT   (1u << 20) /* bytes of a string that is kept, at most */
#define JSON_STREAM_NUMBER 512u       /* characters of a number that is kept, at most */

enum json_token {
    JSON_TOKEN_END, /* of the text */
    JSON_TOKEN_OBJECT,
    JSON_TOKEN_OBJECT_END,
    JSON_TOKEN_LIST,
    JSON_TOKEN_LIST_END,
    JSON_TOKEN_NAME, /* of a member; its value follows */
    JSON_TOKEN_STRING,
    JSON_TOKEN_NUMBER,
    JSON_TOKEN_TRUE,
    JSON_TOKEN_FALSE,
    JSON_TOKEN_NULL,
};

struct json_stream {
    enum json_token token; /* the last one; JSON_TOKEN_END before the first */
    uint64_t at;           /* its first byte, counted from the start of the text */
    const char *text;      /* of a name, string or number: decoded, NUL-ended, without other NULs;
                            * valid until the next call. After a number DECIMAL_PAD bytes follow. */
    size_t len;            /* bytes of it */
    struct diag *d;        /* for messages; may be NULL */

    /* Private: */
    const char *name;
    const struct blob *blob;
    struct pass_window window;
    const uint8_t *p, *last; /* bytes that were read and not used yet */
    uint64_t last_at;        /* the place of `last`, counted from the start of the text */
    int error;               /* of a read; 0: none */
    bool skips;              /* nothing is kept */
    unsigned depth;
    uint8_t lists[JSON_STREAM_DEPTH / 8]; /* bit i: level i is a list */
    char *kept;                           /* [capacity] */
    size_t capacity;
};

/* Begin with the text that a blob has, which must outlive the stream. name: for messages; not
 * copied. */
void json_stream_init(struct json_stream *s, const struct blob *blob, const char *name,
                      struct diag *d);

/* Begin with a text in memory. */
void json_stream_init_bytes(struct json_stream *s, const void *bytes, size_t len);

/* Read the next token. 0; -EBADMSG: no JSON, or over a limit, with file and byte in d; -ENOMEM; or
 * as blob_read(). After an error only json_stream_release() may follow. */
int json_stream_next(struct json_stream *s);

/* Skip the value that follows a name, or that is next in a list that has one more. Nothing of it is
 * kept, so its strings and numbers have any length, and U+0000. *ret_first, which may be NULL: its
 * first token. Returns as json_stream_next(). */
int json_stream_skip(struct json_stream *s, enum json_token *ret_first);

/* The byte after the last token, counted from the start of the text. */
static inline uint64_t json_stream_place(const struct json_stream *s)
{
    return s->last_at - (uint64_t)(s->last - s->p);
}

/* Is every byte used? After an error: it may be that the text just ends too early. */
static inline bool json_stream_is_cut(const struct json_stream *s)
{
    return s->p == s->last;
}

/* Read the name of the next member of an object: 1; 0: the object ends; or an error. */
int json_stream_member(struct json_stream *s);

/* Read the first token of the next value of a list: 1; 0: the list ends; or an error. */
int json_stream_item(struct json_stream *s);

/* What the last token is, for messages: "a string". */
const char *json_stream_found(const struct json_stream *s);

/* The text is bad: "FILE: byte AT: " and the message in d. Returns -EBADMSG. */
int json_stream_bad(const struct json_stream *s, uint64_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void json_stream_release(struct json_stream *s); /* of one that was begun, or is {0} */
#define AUTO_JSON_STREAM AUTO(json_stream_release)

#endif
