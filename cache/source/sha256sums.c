/* SHA256SUMS.
 *
 * A line: 64 hexadecimal digits, a space, a space or '*', a name. If the line begins with '\', the
 * name has "\\", "\n" and "\r" in it for these bytes. "./" before a name means nothing. A server
 * may send anything under the name SHA256SUMS: lines of another form are reported and omitted. */
#include "cache/source/sha256sums.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "cache/http/url.h"

static int sha256sums_hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool parse_hash(const char *text, uint8_t ret[static SHA256_LEN])
{
    for (size_t i = 0; i < SHA256_LEN; i++) {
        int high = sha256sums_hex_value(text[2 * i]), low = sha256sums_hex_value(text[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        ret[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* Write the decoded name to ret. NULL, or what is wrong. */
static const char *sha256sums_parse_name(const char *name, size_t len, bool escaped,
                                         char ret[static PATH_MAX])
{
    size_t n = 0;

    if (len >= PATH_MAX)
        return "a path that is too long";
    if (memchr(name, '\0', len))
        return "a NUL byte";
    for (size_t i = 0; i < len; i++) {
        if (escaped && name[i] == '\\') {
            if (++i == len || !strchr("\\nr", name[i]))
                return "an unknown escape";
            ret[n++] = name[i] == 'n' ? '\n' : name[i] == 'r' ? '\r' : '\\';
        } else {
            ret[n++] = name[i];
        }
    }
    ret[n] = '\0';
    for (n = 0; ret[n] == '.' && ret[n + 1] == '/'; n += 2)
        continue;
    memmove(ret, ret + n, strlen(ret + n) + 1);
    return name_wrong(ret);
}

int sums_next(const char *text, size_t len, size_t *at, struct sum *ret, const char **ret_why)
{
    const char *line = text + *at, *end, *why;
    bool escaped;

    if (*at >= len)
        return 0;
    end = memchr(line, '\n', len - *at);
    if (!end)
        end = text + len;
    *at = (size_t)(end - text) + 1;
    if (end > line && end[-1] == '\r')
        end--;
    if (end == line || *line == '#')
        return -ENODATA;
    escaped = *line == '\\';
    line += escaped;
    if (end - line < 2 * SHA256_LEN + 3 || !parse_hash(line, ret->sha256) ||
        line[2 * SHA256_LEN] != ' ' || !strchr(" *", line[2 * SHA256_LEN + 1])) {
        *ret_why = "no line of sha256sum";
        return -EINVAL;
    }
    line += 2 * SHA256_LEN + 2;
    why = sha256sums_parse_name(line, (size_t)(end - line), escaped, ret->path);
    if (why) {
        *ret_why = why;
        return -EINVAL;
    }
    return name_hidden(ret->path) ? -ENODATA : 1;
}
