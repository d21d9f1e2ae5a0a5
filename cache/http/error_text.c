/* What a server says of an error, in its own words: the code and message of an S3 error document,
 * the title of a page, the message of a JSON object, or the first line of a plain text.
 *
 * All of it is hostile: it is cut, made safe for a terminal, and omitted if it repeats a part of
 * the query of the URL, which may be a secret. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/scope.h"
#include "base/text.h"
#include "cache/http/credentials_parse.h"
#include "cache/http/reply.h"
#include "cache/http/url.h"

#define SECRET_LEAST 6 /* characters of a value of a query that is looked for */
#define SHOWN_MOST   200

/* Copy [from, end) as one line: white space is one blank, tags are none. */
static void copy_line(const char *from, const char *end, char *ret, size_t capacity)
{
    bool in_tag = false, blank = false;
    size_t n = 0;

    for (; from < end && n + 2 < capacity; from++) {
        in_tag = in_tag || *from == '<';
        if (in_tag || (unsigned char)*from <= ' ') {
            in_tag = in_tag && *from != '>';
            blank = n > 0;
            continue;
        }
        if (blank)
            ret[n++] = ' ';
        blank = false;
        ret[n++] = *from;
    }
    ret[n] = '\0';
    text_plain(ret, "");
}

/* The content of the first element of that name. false: there is none, or it is cut off. */
static bool find_element(const char *body, const char *end, const char *name, const char **ret,
                         const char **ret_end)
{
    size_t len = strlen(name);

    for (; end - body > (ptrdiff_t)len + 2; body++)
        if (*body == '<' && !strncasecmp(body + 1, name, len) && body[len + 1] == '>') {
            *ret = body + len + 2;
            *ret_end = memchr(*ret, '<', (size_t)(end - *ret));
            return *ret_end;
        }
    return false;
}

static bool find_json(const char *body, size_t len, char *ret, size_t capacity)
{
    static const char *const names[] = {"message", "error", "detail"};
    char *found = NULL;

    for (size_t i = 0; i < ARRAY_LEN(names) && !found; i++)
        if (json_member(body, len, names[i], &found) != 1)
            found = NULL;
    if (found)
        copy_line(found, found + strlen(found), ret, capacity);
    free(found);
    return *ret;
}

/* Does the text have a part of the query of the URL? */
static bool repeats_query(const char *text, const char *url)
{
    const char *at = strchr(url, '?');

    while (at && *at) {
        size_t len = strcspn(++at, "&=#");
        AUTO_FREE char *raw = strndup(at, len), *plain = malloc(len + 1);

        if (!raw || !plain ||
            (len >= SECRET_LEAST &&
             (strstr(text, raw) || (url_decode(at, len, plain) && strstr(text, plain)))))
            return true;
        at += len;
    }
    return false;
}

void http_error_text(const char *body, size_t len, const char *url,
                     char ret[static HTTP_ERROR_SIZE])
{
    char code[64], said[SHOWN_MOST] = "";
    const char *from = body, *end = body + len;

    http_error_code(body, len, code);
    while (from < end && (unsigned char)*from <= ' ')
        from++;
    if (from < end && *from == '<') {
        if (find_element(from, end, "Message", &from, &end) ||
            find_element(from, end, "title", &from, &end))
            copy_line(from, end, said, sizeof(said));
    } else if (from < end && *from == '{') {
        find_json(from, (size_t)(end - from), said, sizeof(said));
    } else if (from < end && !memchr(from, '\0', (size_t)(end - from))) {
        const char *line = memchr(from, '\n', (size_t)(end - from));

        copy_line(from, line ? line : end, said, sizeof(said));
    }
    if (strchr(said, '?') || repeats_query(said, url) || strspn(said, "0123456789") == 3)
        said[0] = '\0'; /* a title "404 Not Found" repeats the status */
    snprintf(ret, HTTP_ERROR_SIZE, "%s%s%s%s", *code ? " " : "", code, *said ? ": " : "", said);
}
