/* What the places of credentials read: the environment, the shared files of AWS's tools and files
 * of tokens. Texts are wiped when they are released. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cache/disk/folder.h"
#include "cache/disk/local_file.h"
#include "cache/http/credentials_parse.h"
#include "cache/http/credentials_parts.h"

#define FILE_MOST (1u << 20)

void credentials_loaded_release(struct loaded *loaded)
{
    http_secret_release(&loaded->secret);
    *loaded = (struct loaded){0};
}

int credentials_copy(const char *text, char **ret)
{
    *ret = text ? strdup(text) : NULL;
    return text && !*ret ? -ENOMEM : 0;
}

struct shared_file credentials_file(bool is_config)
{
    const char *path = environment(is_config ? "AWS_CONFIG_FILE" : "AWS_SHARED_CREDENTIALS_FILE");
    const char *name = is_config ? "/.aws/config" : "/.aws/credentials";
    struct shared_file ret = {.is_config = is_config};

    if (path) {
        snprintf(ret.path, sizeof(ret.path), "%s", path);
        snprintf(ret.shown, sizeof(ret.shown), "%s", path);
    } else {
        if (!home_path(name, ret.path, sizeof(ret.path)))
            snprintf(ret.path, sizeof(ret.path), "%s", name);
        snprintf(ret.shown, sizeof(ret.shown), "~%s", name);
    }
    return ret;
}

/* Read all of a small file. 1; 0: it is missing; or -errno with the reason in d. */
static int read_small(const char *path, const char *shown, struct text *ret, struct diag *d)
{
    struct stat st;
    int r = file_read_whole(path, FILE_MOST, ret, &st);

    if (r == -ENOENT || r == -ENOTDIR)
        return 0;
    return r < 0 ? diag_set(d, r, "%s: %s", shown, strerror(-r)) : 1;
}

int credentials_read_token(const char *path, const char *what, struct text *ret, struct diag *d)
{
    int r = read_small(path, what, ret, d);

    if (r <= 0)
        return r < 0 ? r : diag_set(d, -ENOENT, "%s: expected a file, got none", what);
    while (ret->len && strchr("\r\n \t", ret->data[ret->len - 1]))
        ret->data[--ret->len] = '\0';
    return 0;
}

/* Get a value of the profile in one of the files; key NULL: is the profile there? */
int credentials_of_profile(const struct credentials *c, bool in_config, const char *key, char **ret,
                           struct diag *d)
{
    const struct shared_file file = credentials_file(in_config);
    AUTO_SECRET struct text text = {0};
    int r = read_small(file.path, file.shown, &text, d);

    return r > 0 ? profile_get(text.data, text.len, c->profile, in_config, key, ret) : r;
}

/* ---- parsers ---- */

/* Parsers of what holds credentials. The callers wipe the texts. */

/* Bytes of a text. */
struct span {
    const char *at;
    size_t len;
};

static bool credentials_read_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct span trim(struct span s)
{
    while (s.len && credentials_read_is_blank(s.at[0])) {
        s.at++;
        s.len--;
    }
    while (s.len && credentials_read_is_blank(s.at[s.len - 1]))
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
    if (in_config && name.len > 8 && !memcmp(name.at, "profile", 7) &&
        credentials_read_is_blank(name.at[7]))
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
        if ((value.at[i] == '#' || value.at[i] == ';') &&
            credentials_read_is_blank(value.at[i - 1]))
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
        if (!inside || !key ||
            credentials_read_is_blank(*raw.at)) /* indented lines belong to another key */
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

int json_member(const char *json, size_t len, const char *key, char **ret)
{
    json_t *object = NULL;
    const char *value;
    int r;

    json_wipe(true);
    r = json_read(json, len, "", json_budget(len), &object, NULL);
    if (r == 0 && json_is_object(object)) {
        value = json_string_value(json_object_get(object, key));
        *ret = value ? strdup(value) : NULL;
        r = value ? *ret ? 1 : -ENOMEM : 0;
    } else if (r != -ENOMEM) {
        r = -EBADMSG;
    }
    json_free(&object);
    json_wipe(false);
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
