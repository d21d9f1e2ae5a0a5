/* URLs and the names of files in them.
 *
 * All that users type and servers send passes through here before it is used: no name that comes
 * out leads out of its folder, and no message shows what only the server may see. */
#include "cache/http/url.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "cache/disk/sha256.h"

/* Must the byte be encoded everywhere in a URL? */
static bool must_encode(unsigned char c)
{
    return c <= 0x20 || c >= 0x7f || strchr("\"<>\\^`{|}", c);
}

static bool has_control(const char *text)
{
    for (; *text; text++)
        if (iscntrl((unsigned char)*text))
            return true;
    return false;
}

/* Find the parts of a URL. false: it has no host. */
static bool find_parts(const char *url, struct url_parts *ret)
{
    const char *host = strstr(url, "://");

    if (!host)
        return false;
    host += 3;
    ret->host = (size_t)(host - url);
    ret->path = ret->host + strcspn(host, "/?");
    ret->query = ret->path + strcspn(url + ret->path, "?");
    return ret->path > ret->host;
}

/* Is what follows the last ':' of the host a port? If not it may be a piece of a password. */
static bool has_good_port(const char *url, const struct url_parts *at)
{
    const char *end = url + at->path, *colon = memrchr(url + at->host, ':', at->path - at->host);

    if (!colon || memchr(colon, ']', (size_t)(end - colon)))
        return true;
    return strspn(colon + 1, "0123456789") >= (size_t)(end - colon - 1);
}

int url_clean(const char *url, char **ret, struct url_parts *parts, struct diag *d)
{
    struct url_parts at;
    AUTO_FREE char *clean = malloc(3 * strlen(url) + 2);
    char *to = clean;

    if (!clean)
        return -ENOMEM;
    if (has_control(url) || !find_parts(url, &at))
        return diag_set(d, -EINVAL, "SOURCE: expected a URL such as http://host/folder/, got %s",
                        has_control(url) ? "control characters in it" : "no host in it");
    if (memchr(url + at.host, '@', at.path - at.host)) {
        const char *host = memrchr(url + at.host, '@', at.path - at.host);

        return diag_set(
            d, -EINVAL,
            "%.*s...%.*s: expected a URL without user and password, because everybody on "
            "this machine can see them there; put them into ~/.netrc",
            (int)at.host, url, (int)(at.query - (size_t)(host - url)), host);
    }
    if (!has_good_port(url, &at))
        return diag_set(
            d, -EINVAL,
            "SOURCE: expected a URL such as http://host:port/folder/, got a port that is "
            "not a number");
    if (strchr(url, '#'))
        return diag_set(d, -EINVAL,
                        "%.*s: expected a URL without '#'; in a name it is written %%23",
                        (int)at.query, url);
    for (const char *from = url; *from; from++) {
        if ((size_t)(from - url) == at.path && *from == '?')
            *to++ = '/';
        to += must_encode((unsigned char)*from)
                  ? snprintf(to, 4, "%%%02X", (unsigned)(unsigned char)*from)
                  : (*to = *from, 1);
    }
    if (!url[at.path])
        *to++ = '/';
    *to = '\0';
    find_parts(clean, parts);
    *ret = TAKE_PTR(clean);
    return 0;
}

int url_endpoint(const char *url, const char *what, char **ret, struct diag *d)
{
    AUTO_FREE char *clean = NULL;
    struct url_parts at;
    int r = url_clean(url, &clean, &at, d);

    if (r < 0)
        return r;
    if (clean[at.query])
        return diag_set(d, -EINVAL, "%s: expected a URL without a query", what);
    for (size_t len = at.query; len > at.path && clean[len - 1] == '/'; len--)
        clean[len - 1] = '\0';
    *ret = TAKE_PTR(clean);
    return 0;
}

void url_host(const char *url, char *ret, size_t capacity)
{
    const char *host = strstr(url, "://") + 3;
    size_t len = *host == '[' ? strcspn(host, "]/?#") + 1 : strcspn(host, ":/?#");

    snprintf(ret, capacity, "%.*s", (int)len, host);
}

bool url_decode(const char *text, size_t len, char *ret)
{
    for (size_t i = 0; i < len; i++) {
        uint8_t byte;

        if (text[i] != '%') {
            *ret++ = text[i];
            continue;
        }
        if (len - i <= 2 || !hex_parse(text + i + 1, 1, &byte) || !byte)
            return false;
        *ret++ = (char)byte;
        i += 2;
    }
    *ret = '\0';
    return true;
}

const char *name_wrong(const char *path)
{
    if (strlen(path) >= PATH_MAX / 2)
        return "a path that is too long";
    if (has_control(path))
        return "control characters";
    if (*path == '/')
        return "an absolute path";
    for (;;) {
        size_t len = strcspn(path, "/");

        if (!len)
            return "an empty name";
        if (len > NAME_MAX)
            return "a name of more than 255 bytes";
        if (path[0] == '.' && (len == 1 || (len == 2 && path[1] == '.')))
            return len == 1 ? "the name '.'" : "the name '..'";
        if (!path[len])
            return NULL;
        path += len + 1;
    }
}

bool name_hidden(const char *path)
{
    return *path == '.' || strstr(path, "/.");
}

void name_show(const char *text, char *ret, size_t capacity)
{
    size_t n = 0;

    for (; *text && n + 1 < capacity; text++)
        ret[n++] = iscntrl((unsigned char)*text) ? '?' : *text;
    ret[n] = '\0';
}
