/* SHA256SUMS.
 *
 * A line: 64 hexadecimal digits, a space, a space or '*', a name. If the line begins with '\', the
 * name has "\\", "\n" and "\r" in it for these bytes. "./" before a name means nothing. A server
 * may send anything under the name SHA256SUMS: lines of another form are reported and omitted. */
#include "cache/source/sha256sums.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "cache/disk/sha256.h"
#include "cache/http/url.h"

const uint8_t *sum_at(const uint8_t *sums, size_t i)
{
    static const uint8_t unknown[SHA256_LEN];

    return sums && memcmp(sums + i * SHA256_LEN, unknown, SHA256_LEN) != 0 ? sums + i * SHA256_LEN
                                                                           : NULL;
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
    if (end - line < 2 * SHA256_LEN + 3 || !hex_parse(line, SHA256_LEN, ret->sha256) ||
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
