/* Parsers of what holds credentials. The callers wipe the texts. */
#include "cache/http/credentials_parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a text. */
struct span {
    const char *at;
    size_t len;
};

void wipe_text(char **text)
{
    if (*text)
        explicit_bzero(*text, strlen(*text));
    free(*text);
    *text = NULL;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct span trim(struct span s)
{
    while (s.len && is_blank(s.at[0])) {
        s.at++;
        s.len--;
    }
    while (s.len && is_blank(s.at[s.len - 1]))
        s.len--;
    return s;
}

static bool is_text(struct span s, const char *text)
{
    return s.len == strlen(text) && !memcmp(s.at, text, s.len);
}

/* Is a line "[...]" the section of profile? line: trimmed, begins with '['. */
static bool is_section(struct span line, const char *profile, bool in_config)
{
    const char *end = memchr(line.at, ']', line.len);
    struct span name = {line.at + 1, end ? (size_t)(end - line.at - 1) : 0};

    name = trim(name);
    if (in_config && name.len > 8 && !memcmp(name.at, "profile", 7) && is_blank(name.at[7]))
        name = trim((struct span){name.at + 8, name.len - 8});
    else if (in_config && strcmp(profile, "default") != 0)
        return false;
    if (name.len >= 2 && (name.at[0] == '"' || name.at[0] == '\'') &&
        name.at[name.len - 1] == name.at[0])
        name = (struct span){name.at + 1, name.len - 2};
    return is_text(name, profile);
}

/* The value of a line "key = value"; len 0: not such a line, or no value. */
static struct span value_of(struct span line, const char *key)
{
    const char *equals = memchr(line.at, '=', line.len);
    struct span value = {line.at, 0};

    if (!equals || !is_text(trim((struct span){line.at, (size_t)(equals - line.at)}), key))
        return value;
    value = trim((struct span){equals + 1, (size_t)(line.at + line.len - equals - 1)});
    for (size_t i = 1; i < value.len; i++)
        if ((value.at[i] == '#' || value.at[i] == ';') && is_blank(value.at[i - 1]))
            return trim((struct span){value.at, i});
    return value;
}

int profile_get(const char *text, size_t len, const char *profile, bool in_config, const char *key,
                char **ret)
{
    struct span found = {NULL, 0};
    bool inside = false, section = false;

    for (size_t at = 0; at < len;) {
        const char *end = memchr(text + at, '\n', len - at);
        struct span raw = {text + at, end ? (size_t)(end - text) - at : len - at};
        struct span line = trim(raw), value;

        at += raw.len + 1;
        if (!line.len || *line.at == '#' || *line.at == ';')
            continue;
        if (*line.at == '[') {
            inside = is_section(line, profile, in_config);
            section = section || inside;
            continue;
        }
        if (!inside || !key || is_blank(*raw.at)) /* indented lines belong to another key */
            continue;
        value = value_of(line, key);
        if (value.len && !memchr(value.at, '\0', value.len))
            found = value;
    }
    if (!key)
        return section;
    if (!found.len)
        return 0;
    *ret = strndup(found.at, found.len);
    return *ret ? 1 : -ENOMEM;
}

/* ---- JSON ---- */

struct json {
    const char *at, *end;
};

static void skip_blanks(struct json *json)
{
    while (json->at < json->end && (is_blank(*json->at) || *json->at == '\n'))
        json->at++;
}

/* Skip c if it is next. Was it? */
static bool take(struct json *json, char c)
{
    skip_blanks(json);
    if (json->at == json->end || *json->at != c)
        return false;
    json->at++;
    return true;
}

/* One character of a text behind a '\'. -1: one that credentials do not have. */
static int escaped(struct json *json)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *known;
    int v = 0;

    if (json->at == json->end || !*json->at)
        return -1;
    known = strchr(from, *json->at);
    if (known) {
        json->at++;
        return to[known - from];
    }
    if (*json->at != 'u' || json->end - json->at < 5)
        return -1;
    for (unsigned i = 1; i < 5; i++) {
        char c = json->at[i], low = (char)(c | 0x20);

        if (!(c >= '0' && c <= '9') && !(low >= 'a' && low <= 'f'))
            return -1;
        v = v * 16 + (c <= '9' ? c - '0' : low - 'a' + 10);
    }
    json->at += 5;
    return v > 0 && v < 0x80 ? v : -1;
}

/* Read the text that begins here; the caller wipes and frees it. */
static int read_text(struct json *json, char **ret)
{
    char *text, *to;

    if (!take(json, '"'))
        return -EBADMSG;
    text = to = malloc((size_t)(json->end - json->at) + 1);
    if (!text)
        return -ENOMEM;
    while (json->at < json->end && *json->at != '"' && (unsigned char)*json->at >= 0x20) {
        int c = (unsigned char)*json->at++;

        if (c == '\\')
            c = escaped(json);
        if (c < 0)
            break;
        *to++ = (char)c;
    }
    *to = '\0';
    if (take(json, '"')) {
        *ret = text;
        return 0;
    }
    wipe_text(&text);
    return -EBADMSG;
}

/* Skip a number, true, false or null. */
static bool skip_word(struct json *json)
{
    const char *start;

    skip_blanks(json);
    start = json->at;
    while (json->at < json->end &&
           ((*json->at >= '0' && *json->at <= '9') || (*json->at >= 'a' && *json->at <= 'z') ||
            *json->at == '.' || *json->at == '-' || *json->at == '+' || *json->at == 'E'))
        json->at++;
    return json->at > start;
}

/* Read one member; its value goes to *ret if its name is key. */
static int read_member(struct json *json, const char *key, char **ret)
{
    char *name = NULL, *value = NULL;
    bool wanted;
    int r = read_text(json, &name);

    if (r < 0)
        return r;
    wanted = !strcmp(name, key);
    wipe_text(&name);
    if (!take(json, ':'))
        return -EBADMSG;
    skip_blanks(json);
    if (json->at == json->end || *json->at != '"')
        return skip_word(json) ? 0 : -EBADMSG;
    r = read_text(json, &value);
    if (r == 0 && wanted) {
        wipe_text(ret);
        *ret = value;
    } else {
        wipe_text(&value);
    }
    return r;
}

int json_member(const char *json, size_t len, const char *key, char **ret)
{
    struct json at = {json, json + len};
    char *found = NULL;
    int r = take(&at, '{') ? 0 : -EBADMSG;

    if (r == 0 && !take(&at, '}')) {
        do
            r = read_member(&at, key, &found);
        while (r == 0 && take(&at, ','));
        if (r == 0 && !take(&at, '}'))
            r = -EBADMSG;
    }
    if (r == 0 && found) {
        *ret = found;
        return 1;
    }
    wipe_text(&found);
    return r;
}

/* ---- endpoints ---- */

/* Is host, of len bytes, an IPv4 address that begins with start? */
static bool is_address_in(const char *host, size_t len, const char *start)
{
    unsigned dots = 0;

    for (size_t i = 0; i < len; i++) {
        if (host[i] != '.' && (host[i] < '0' || host[i] > '9'))
            return false;
        dots += host[i] == '.';
    }
    return dots == 3 && len > strlen(start) && !memcmp(host, start, strlen(start));
}

bool container_url_is_good(const char *url)
{
    static const char *const named[] = {"localhost", "[::1]", "[fd00:ec2::23]"};
    const char *host;
    size_t len;

    if (!strncmp(url, "https://", 8))
        return url[8] && !strpbrk(url, "\r\n@");
    if (strncmp(url, "http://", 7) != 0 || strpbrk(url, "\r\n@"))
        return false;
    host = url + 7;
    len = *host == '[' ? strcspn(host, "]/?#") + 1 : strcspn(host, ":/?#");
    for (size_t i = 0; i < 3; i++)
        if (len == strlen(named[i]) && !memcmp(host, named[i], len))
            return true;
    return is_address_in(host, len, "127.") || is_address_in(host, len, "169.254.170.");
}
