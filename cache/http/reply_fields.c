/* Values of headers that have a grammar of their own. */
#include "cache/http/reply_fields.h"

#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/number.h"
#include "cache/http/reply.h"

/* The next c that is not in quotes, or the end. */
static const char *reply_fields_find_plain(const char *at, char c)
{
    bool quoted = false;

    for (; *at && (quoted || *at != c); at++)
        quoted ^= *at == '"';
    return at;
}

/* Is there rel=next, or a list of words with next, in quotes? */
static bool reply_fields_has_next(const char *at, const char *end)
{
    for (; at < end; at = reply_fields_find_plain(at, ';')) {
        at += strspn(at, "; \t");
        if (strncasecmp(at, "rel=", 4) != 0)
            continue;
        at += 4 + (at[4] == '"');
        for (size_t word; *at && !strchr("\";,", *at); at += word + (at[word] == ' ')) {
            word = strcspn(at, " \";,");
            if (word == 4 && !strncasecmp(at, "next", 4))
                return true;
        }
        at += *at == '"';
    }
    return false;
}

bool http_link_next(const char *value, char *ret, size_t capacity)
{
    *ret = '\0';
    while ((value = strchr(value, '<'))) {
        const char *url = ++value, *end = strchr(url, '>'), *params;

        if (!end)
            return false;
        params = end + 1;
        value = reply_fields_find_plain(params, ',');
        if (!reply_fields_has_next(params, value))
            continue;
        if (end == url || (size_t)(end - url) >= capacity)
            return false;
        for (const char *c = url; c < end; c++)
            if (*c <= ' ' || *c > '~')
                return false;
        memcpy(ret, url, (size_t)(end - url));
        ret[end - url] = '\0';
        return true;
    }
    return false;
}

/* The value of a parameter ";name=number". */
static bool reply_fields_parameter(const char *value, char name, uint64_t *ret)
{
    for (const char *at = value; (at = strchr(at, ';')); at++) {
        const char *text = at + 1 + strspn(at + 1, " ");

        if (text[0] == name && text[1] == '=')
            return number_parse(text + 2, strlen(text + 2), HTTP_RETRY_MOST_MS, ret) > 0;
    }
    return false;
}

uint64_t http_limit_parse(const char *value)
{
    uint64_t left, seconds;

    if (!reply_fields_parameter(value, 'r', &left) || left ||
        !reply_fields_parameter(value, 't', &seconds))
        return 0;
    return min_u64((seconds + 1) * 1000, HTTP_RETRY_MOST_MS);
}

void http_encoding_parse(const char *value, char *ret, size_t capacity)
{
    size_t n = 0;

    for (; *value; value += strspn(value, ", \t")) {
        size_t len = strcspn(value, ", \t");
        bool counts = !(len == 11 && !strncasecmp(value, "aws-chunked", 11)) &&
                      !(len == 8 && !strncasecmp(value, "identity", 8));

        for (size_t i = 0; i < len && counts; i++) {
            if (!i && n && n + 1 < capacity)
                ret[n++] = ',';
            if (n + 1 < capacity)
                ret[n++] = value[i] < ' ' || value[i] > '~' ? '?' : value[i];
        }
        value += len;
    }
    ret[n] = '\0';
}
