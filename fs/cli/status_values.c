#include "fs/cli/status_values.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const char *status_values_skip_blanks(const char *s)
{
    return s + strspn(s, " \t\r\n");
}

/* The end of the string that starts at s; NULL: it does not end. */
static const char *skip_string(const char *s)
{
    for (s++; *s && *s != '"'; s++)
        if (*s == '\\' && !*++s)
            return NULL;
    return *s ? s + 1 : NULL;
}

/* The end of the value that starts at s; NULL: it does not end. */
static const char *skip_value(const char *s)
{
    size_t depth = 0;

    do {
        s = status_values_skip_blanks(s);
        if (*s == '"') {
            s = skip_string(s);
        } else if (*s == '{' || *s == '[') {
            depth++;
            s++;
        } else if (depth && (*s == '}' || *s == ']')) {
            depth--;
            s++;
        } else if (depth && (*s == ',' || *s == ':')) {
            s++;
        } else {
            size_t n = strcspn(s, ",:{}[]\" \t\r\n");

            s = n ? s + n : NULL;
        }
    } while (s && depth);
    return s;
}

/* The value of a member of the object at s. Names are compared without decoding escapes. */
static const char *status_values_find_member(const char *s, const char *name, size_t len)
{
    if (*s != '{')
        return NULL;
    s = status_values_skip_blanks(s + 1);
    while (*s == '"') {
        const char *key = s + 1, *end = skip_string(s);

        s = end ? status_values_skip_blanks(end) : "";
        if (*s != ':')
            return NULL;
        s = status_values_skip_blanks(s + 1);
        if ((size_t)(end - 1 - key) == len && !memcmp(key, name, len))
            return s;
        s = skip_value(s);
        s = s ? status_values_skip_blanks(s) : "";
        if (*s != ',')
            return NULL;
        s = status_values_skip_blanks(s + 1);
    }
    return NULL;
}

const char *status_value(const char *json, const char *path)
{
    const char *at = status_values_skip_blanks(json);

    for (;;) {
        size_t len = strcspn(path, ".");

        at = status_values_find_member(at, path, len);
        if (!at || !path[len])
            return at;
        path += len + 1;
    }
}

/* The element that begins after s; NULL: the list ends there, or it is not a list. */
static const char *element(const char *s)
{
    s = status_values_skip_blanks(s + 1);
    return *s && *s != ']' && *s != ',' ? s : NULL;
}

const char *status_first(const char *json, const char *path)
{
    const char *at = status_value(json, path);

    return at && *at == '[' ? element(at) : NULL;
}

const char *status_next(const char *at)
{
    at = skip_value(at);
    at = at ? status_values_skip_blanks(at) : "";
    return *at == ',' ? element(at) : NULL;
}

uint64_t status_number(const char *json, const char *path)
{
    const char *at = status_value(json, path);

    return at && *at >= '0' && *at <= '9' ? strtoull(at, NULL, 10) : 0;
}

double status_real(const char *json, const char *path)
{
    const char *at = status_value(json, path);

    return at && *at >= '0' && *at <= '9' ? strtod(at, NULL) : 0;
}

/* Four hexadecimal digits; 0: they are not there. */
static unsigned hex4(const char *s)
{
    char digits[5] = "", *end;
    unsigned long v;

    memcpy(digits, s, strnlen(s, 4));
    v = strtoul(digits, &end, 16);
    return end == digits + 4 ? (unsigned)v : 0;
}

static size_t put_utf8(unsigned code, char *ret)
{
    if (code < 0x80) {
        ret[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        ret[0] = (char)(0xc0 | code >> 6);
        ret[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    ret[0] = (char)(0xe0 | code >> 12);
    ret[1] = (char)(0x80 | (code >> 6 & 0x3f));
    ret[2] = (char)(0x80 | (code & 0x3f));
    return 3;
}

/* Write the character at *s, escaped or not, to ret, and move *s past it. Returns its bytes; 0:
 * none. We write no surrogates. */
static size_t take_character(const char **s, char ret[static 3])
{
    static const char escaped[] = "nrtbf\"\\/", plain[] = "\n\r\t\b\f\"\\/";
    const char *which;
    unsigned code;

    if (**s != '\\') {
        *ret = *(*s)++;
        return 1;
    }
    if ((*s)[1] == 'u') {
        code = hex4(*s + 2);
        *s += 6;
        return code ? put_utf8(code, ret) : 0;
    }
    which = (*s)[1] ? strchr(escaped, (*s)[1]) : NULL;
    *s += 2;
    if (which)
        *ret = plain[which - escaped];
    return which != NULL;
}

/* How many of the len bytes are left without a part of a character at their end. */
static size_t whole_characters(const char *s, size_t len)
{
    size_t last = len; /* begins in front of it */

    while (last && ((unsigned char)s[last - 1] & 0xc0) == 0x80)
        last--;
    if (!last || text_character(s + last - 1, len - last + 1) == len - last + 1)
        return len;
    return last - 1;
}

bool status_string(const char *json, const char *path, char *ret, size_t capacity)
{
    const char *at = status_value(json, path), *end;
    size_t len = 0;

    *ret = '\0';
    if (!at || *at != '"' || !(end = skip_string(at)))
        return false;
    for (at++; at < end - 1;) {
        char character[3];
        size_t n = take_character(&at, character);

        if (!n || len + n >= capacity) {
            len = whole_characters(ret, len);
            break;
        }
        memcpy(ret + len, character, n);
        len += n;
    }
    ret[len] = '\0';
    return true;
}
