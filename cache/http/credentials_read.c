/* What the places of credentials read: the environment, the shared files of AWS's tools and files
 * of tokens. Texts are wiped when they are released. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cache/disk/folder.h"
#include "cache/disk/local_file.h"
#include "cache/http/credentials_parse.h"
#include "cache/http/credentials_parts.h"
#include "cache/http/url.h"
#include "cache/http/xml.h"

#define FILE_MOST (1u << 20)

void http_secret_release(struct http_secret *secret)
{
    secret_free(&secret->key_id);
    secret_free(&secret->key);
    secret_free(&secret->token);
}

void credentials_loaded_release(struct loaded *loaded)
{
    http_secret_release(&loaded->secret);
    *loaded = (struct loaded){0};
}

bool credentials_set_expiry(struct loaded *loaded, const char *expires)
{
    time_t at = INT64_MAX / SECOND;
    bool good = !expires || iso_time_parse(expires, &at);

    loaded->expires = at < INT64_MAX / SECOND ? (int64_t)at * SECOND : INT64_MAX;
    loaded->was_asked = true;
    return good;
}

struct shared_file credentials_file(bool is_config)
{
    const char *path = environment(is_config ? "AWS_CONFIG_FILE" : "AWS_SHARED_CREDENTIALS_FILE");
    const char *name = is_config ? "/.aws/config" : "/.aws/credentials";
    struct shared_file ret;

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
    if (ret->data) {
        const size_t len = ret->len;

        text_trim(ret->data);
        ret->len = strlen(ret->data);
        explicit_bzero(ret->data + ret->len, len - ret->len); /* what it was moved from */
    }
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

int credentials_of_either(const struct credentials *c, const char *key, char **ret, struct diag *d)
{
    int r = credentials_of_profile(c, true, key, ret, d);

    return r == 0 ? credentials_of_profile(c, false, key, ret, d) : r;
}

/* ---- parsers ---- */

/* Parsers of what holds credentials. The callers wipe the texts. */

/* Is a line "[...]" the section of profile? */
static bool is_section(char *line, const char *profile, bool in_config)
{
    char *name = line + 1, *end = strchr(name, ']');
    size_t len;

    name[end ? end - name : 0] = '\0';
    text_trim(name);
    if (in_config && !strncmp(name, "profile", 7) && isspace((unsigned char)name[7]))
        text_trim(name += 8);
    else if (in_config && strcmp(profile, "default") != 0)
        return false;
    len = strlen(name);
    if (len >= 2 && strchr("\"'", *name) && name[len - 1] == *name) {
        name[len - 1] = '\0';
        name++;
    }
    return !strcmp(name, profile);
}

/* The value of a line "key = value"; NULL: not such a line, or no value. */
static char *value_of(char *line, const char *key)
{
    char *equals = strchr(line, '='), *value;

    if (!equals)
        return NULL;
    *equals = '\0';
    text_trim(line);
    text_trim(value = equals + 1);
    if (strcmp(line, key) != 0 || !*value)
        return NULL;
    for (char *c = value + 1; *c; c++)
        if ((*c == '#' || *c == ';') && isspace((unsigned char)c[-1])) {
            *c = '\0';
            break;
        }
    text_trim(value);
    return value;
}

int profile_get(const char *text, size_t len, const char *profile, bool in_config, const char *key,
                char **ret)
{
    AUTO_SECRET struct text copy = {0};
    const char *found = NULL;
    bool inside = false, section = false;

    text_add_bytes(&copy, text, len);
    if (copy.failed)
        return -ENOMEM;
    for (char *at = copy.data, *end; at && at < copy.data + len; at = end + 1) {
        bool indented = isspace((unsigned char)*at), whole;
        char *value;

        end = memchr(at, '\n', len - (size_t)(at - copy.data));
        end = end ? end : copy.data + len;
        *end = '\0';
        whole = strlen(at) == (size_t)(end - at);
        text_trim(at);
        if (*at == '[') {
            inside = whole && is_section(at, profile, in_config);
            section = section || inside;
        } else if (inside && whole && key && !strchr("#;", *at) &&
                   !indented) { /* indented lines belong to another key */
            value = value_of(at, key);
            found = value ? value : found;
        }
    }
    if (!key)
        return section;
    if (!found)
        return 0;
    *ret = strdup(found);
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

bool container_url_is_good(const char *url)
{
    static const char *const named[] = {"localhost", "[::1]", "[fd00:ec2::23]"};
    struct in_addr at;
    char host[64];

    if (strpbrk(url, "\r\n@"))
        return false;
    if (!strncmp(url, "https://", 8))
        return url[8];
    if (strncmp(url, "http://", 7) != 0)
        return false;
    url_host(url, host, sizeof(host));
    for (size_t i = 0; i < ARRAY_LEN(named); i++)
        if (!strcmp(host, named[i]))
            return true;
    return inet_pton(AF_INET, host, &at) == 1 &&
           (ntohl(at.s_addr) >> 24 == 127 || ntohl(at.s_addr) >> 8 == 0xa9feaa); /* 169.254.170. */
}
