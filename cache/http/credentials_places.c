/* Looks for secrets of S3, in this order: the environment, the shared files of AWS's tools, the
 * container's endpoint, the instance's. Keeps nothing. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cache/http/credentials_parse.h"
#include "cache/http/credentials_parts.h"

#define FILES_GOOD (600 * SECOND)
#define NONE_GOOD  (600 * SECOND)

/* ---- the environment ---- */

/* 1 and *loaded; 0: nothing there; or -errno. All load_...() return this; the caller releases
 * *loaded in each case. */
static int load_environment(struct loaded *loaded, struct diag *d)
{
    const char *id = environment("AWS_ACCESS_KEY_ID"), *key = environment("AWS_SECRET_ACCESS_KEY");

    if (!id && !key)
        return 0;
    if (!id || !key)
        return diag_set(d, -EINVAL,
                        "environment: expected AWS_ACCESS_KEY_ID and "
                        "AWS_SECRET_ACCESS_KEY, got only one of them");
    loaded->expires = INT64_MAX;
    snprintf(loaded->origin, sizeof(loaded->origin), "environment");
    if (text_copy(id, &loaded->secret.key_id) < 0 || text_copy(key, &loaded->secret.key) < 0 ||
        text_copy(environment("AWS_SESSION_TOKEN"), &loaded->secret.token) < 0)
        return -ENOMEM;
    return 1;
}

/* ---- the shared files ---- */

/* Refuse ways to get credentials that other tools support and we do not. */
static int refuse_others(const struct credentials *c, struct diag *d)
{
    static const char *const others[] = {"credential_process", "sso_session", "sso_start_url",
                                         "role_arn"};

    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        char *value = NULL;
        int r = credentials_of_either(c, others[i], &value, d);

        secret_free(&value);
        if (r < 0)
            return r;
        if (r > 0)
            return diag_set(
                d, -EOPNOTSUPP,
                "profile %.100s: expected access keys in it, got %s; let AWS's tool get "
                "them: eval \"$(aws configure export-credentials --format env "
                "--profile %.100s)\"",
                c->profile, others[i], c->profile);
    }
    return 0;
}

static int credentials_places_load_shared(const struct credentials *c, struct loaded *loaded,
                                          struct diag *d)
{
    int r;

    for (int in_config = 0; in_config < 2; in_config++) {
        const struct shared_file file = credentials_file(in_config);

        r = credentials_of_profile(c, in_config, "aws_access_key_id", &loaded->secret.key_id, d);
        if (r > 0)
            r = credentials_of_profile(c, in_config, "aws_secret_access_key", &loaded->secret.key,
                                       d);
        else if (r == 0)
            continue;
        if (r == 0)
            return diag_set(d, -EINVAL,
                            "profile %.100s of %s: expected aws_secret_access_key with "
                            "aws_access_key_id, got none",
                            c->profile, file.shown);
        if (r > 0)
            r = credentials_of_profile(c, in_config, "aws_session_token", &loaded->secret.token, d);
        loaded->expires = clock_wall(c->clock) + FILES_GOOD;
        snprintf(loaded->origin, sizeof(loaded->origin), "profile %.60s of %s", c->profile,
                 file.shown);
        return r < 0 ? r : 1;
    }
    r = credentials_load_role(c, true, loaded, d);
    return r == 0 ? refuse_others(c, d) : r;
}

/* ---- endpoints ---- */

/* Ask one, at most `tries` times of timeout_s. line: a header of the request, NULL: none. */
static int ask(const struct credentials *c, const char *url, const char *method, const char *line,
               unsigned timeout_s, unsigned tries, struct text *ret, struct diag *d)
{
    const char *const headers[] = {line, NULL};

    return http_get(c->http,
                    &(struct http_call){.url = url,
                                        .method = method,
                                        .headers = headers,
                                        .most = ANSWER_MOST,
                                        .timeout_s = timeout_s,
                                        .tries = tries,
                                        .plain = true},
                    ret, d);
}

/* "Name: value"; the caller wipes and frees it. NULL: no memory, or the value does not fit in a
 * header. */
static char *header(const char *name, const char *value)
{
    char *ret;

    for (const char *c = value; *c; c++)
        if ((unsigned char)*c < 0x20)
            return NULL;
    text_print(&ret, "%s: %s", name, value);
    return ret;
}

static int read_answer(const struct text *answer, const char *what, struct loaded *loaded,
                       struct diag *d)
{
    struct http_secret *secret = &loaded->secret;
    char *expires = NULL;
    const struct {
        const char *name;
        char **text;
    } members[] = {{"AccessKeyId", &secret->key_id},
                   {"SecretAccessKey", &secret->key},
                   {"Token", &secret->token},
                   {"Expiration", &expires}};
    int r = answer->data ? 0 : -EBADMSG;

    for (size_t i = 0; i < ARRAY_LEN(members) && r >= 0; i++)
        r = json_member(answer->data, answer->len, members[i].name, members[i].text);
    if (r >= 0 && (!secret->key_id || !secret->key || !credentials_set_expiry(loaded, expires)))
        r = -EBADMSG;
    secret_free(&expires);
    if (r == -EBADMSG)
        return diag_set(d, r,
                        "%s: expected JSON with AccessKeyId, SecretAccessKey and Expiration, got "
                        "something else",
                        what);
    snprintf(loaded->origin, sizeof(loaded->origin), "%s", what);
    return r < 0 ? r : 1;
}

/* The container's endpoint may want a token. */
static int ask_container(const struct credentials *c, const char *url, struct loaded *loaded,
                         struct diag *d)
{
    const char *file = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    const char *named = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    AUTO_SECRET struct text answer = {0}, token = {0};
    char *authorization = NULL;
    int r = 0;

    if (file)
        r = credentials_read_token(file, "$AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", &token, d);
    else if (named)
        text_add(&token, "%s", named);
    if (r == 0 && token.len)
        authorization = header("Authorization", token.data);
    if (r == 0 && (token.failed || (token.len && !authorization)))
        r = diag_set(d, -EINVAL, "container endpoint: its token is not text");
    if (r == 0)
        r = ask(c, url, NULL, authorization, 5, 2, &answer, d);
    secret_free(&authorization);
    return r < 0 ? r : read_answer(&answer, "container endpoint", loaded, d);
}

static int load_container(const struct credentials *c, struct loaded *loaded, struct diag *d)
{
    const char *relative = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *full = environment("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    AUTO_FREE char *url = NULL;

    if (!c->http || (!relative && !full))
        return 0;
    if (relative && *relative == '/')
        text_print(&url, "http://169.254.170.2%s", relative);
    else if (!relative && full)
        url = strdup(full);
    if (!url || !container_url_is_good(url))
        return diag_set(d, -EINVAL, "$AWS_CONTAINER_CREDENTIALS_%s: expected a %s",
                        relative ? "RELATIVE_URI" : "FULL_URI",
                        relative ? "path" : "URL with https, or one of this machine");
    return ask_container(c, url, loaded, d);
}

/* Ask the instance's endpoint once: it answers at once or is not there. */
static int ask_instance(const struct credentials *c, const char *method, const char *path,
                        const char *header_line, struct text *ret)
{
    const char *base = environment("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    AUTO_FREE char *url = NULL;
    size_t len;

    if (!base)
        base = "http://169.254.169.254";
    for (len = strlen(base); len && base[len - 1] == '/';)
        len--;
    if (text_print(&url, "%.*s%s", (int)len, base, path) < 0)
        return -ENOMEM;
    return ask(c, url, method, header_line, 1, 1, ret, NULL);
}

/* A machine without a role, or that is not an instance, has none: no error. */
static int load_instance(const struct credentials *c, struct loaded *loaded, struct diag *d)
{
    static const char path[] = "/latest/meta-data/iam/security-credentials/";
    const char *disabled = environment("AWS_EC2_METADATA_DISABLED");
    AUTO_SECRET struct text token = {0}, role = {0}, answer = {0};
    AUTO_FREE char *role_path = NULL;
    char *token_header = NULL;
    int r;

    if (!c->http || (disabled && !strcasecmp(disabled, "true")))
        return 0;
    r = ask_instance(c, "PUT", "/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds: 300",
                     &token);
    if (r < 0 || !token.len)
        return r == -ENOMEM ? r : 0;
    token_header = header("X-aws-ec2-metadata-token", token.data);
    r = token_header ? ask_instance(c, NULL, path, token_header, &role) : -EBADMSG;
    if (r == 0 && role.len) {
        role.data[strcspn(role.data, "\r\n")] = '\0';
        r = text_print(&role_path, "%s%s", path, role.data);
        if (r == 0)
            r = ask_instance(c, NULL, role_path, token_header, &answer);
        if (r == 0)
            r = read_answer(&answer, "instance endpoint", loaded, d);
    }
    secret_free(&token_header);
    if (r < 0 && r != -ENOENT)
        return diag_set(d, r, "instance endpoint: %s", strerror(-r));
    return r == -ENOENT ? 0 : r;
}

/* ---- tokens ---- */

/* A token is good for 5 minutes at least when its endpoint gives it, and asked for again after
 * that, 5 minutes before what this says. */
#define TOKEN_GOOD (600 * SECOND)

/* 1, or -EINVAL: it is no word that a header may have. */
static int check_token(const struct loaded *loaded, const char *what, struct diag *d)
{
    for (const char *c = loaded->secret.token; *c; c++)
        if (*c <= ' ' || *c > '~')
            return diag_set(d, -EINVAL, "%s: expected one word of ASCII", what);
    return 1;
}

static int load_token(const struct credentials *c, struct loaded *loaded, struct diag *d)
{
    int r = c->find_token(&loaded->secret.token, loaded->origin, sizeof(loaded->origin), d);

    loaded->expires = INT64_MAX;
    if (r < 0 || loaded->secret.token)
        return r < 0 ? r : check_token(loaded, loaded->origin, d);
    snprintf(loaded->origin, sizeof(loaded->origin), "anonymous: no token was found");
    return 1;
}

/* The token of the service account of this machine or pod, from the endpoint that Google's
 * libraries ask; only the environment says that there is one. */
static int load_google(const struct credentials *c, struct loaded *loaded, struct diag *d)
{
    const char *token = environment("CLOUDSDK_AUTH_ACCESS_TOKEN"),
               *host = environment("GCE_METADATA_HOST");
    AUTO_SECRET struct text answer = {0};
    AUTO_FREE char *url = NULL;
    int r;

    loaded->expires = INT64_MAX;
    snprintf(loaded->origin, sizeof(loaded->origin), "token of $CLOUDSDK_AUTH_ACCESS_TOKEN");
    if (token)
        return text_copy(token, &loaded->secret.token) < 0 ? -ENOMEM
                                                           : check_token(loaded, loaded->origin, d);
    if (!host || !c->http)
        return 0;
    if (strpbrk(host, "/@?#\r\n"))
        return diag_set(d, -EINVAL, "$GCE_METADATA_HOST: expected HOST or HOST:PORT");
    if (text_print(&url, "http://%s/computeMetadata/v1/instance/service-accounts/default/token",
                   host) < 0)
        return -ENOMEM;
    r = ask(c, url, NULL, "Metadata-Flavor: Google", 5, 2, &answer, d);
    if (r == 0)
        r = answer.data
                ? json_member(answer.data, answer.len, "access_token", &loaded->secret.token)
                : -EBADMSG;
    if (r == 0 || r == -EBADMSG)
        return diag_set(d, -EBADMSG,
                        "$GCE_METADATA_HOST: expected JSON with access_token, got something else");
    loaded->expires = clock_wall(c->clock) + TOKEN_GOOD;
    loaded->was_asked = true;
    snprintf(loaded->origin, sizeof(loaded->origin), "service account of this machine");
    return r < 0 ? r : check_token(loaded, loaded->origin, d);
}

int credentials_load(const struct credentials *c, struct loaded *ret, struct diag *d)
{
    AUTO(credentials_loaded_release) struct loaded loaded = {0};
    int r = c->find_token                       ? load_token(c, &loaded, d)
            : c->google && !c->skip_environment ? load_google(c, &loaded, d)
                                                : 0;

    if (r == 0 && !c->skip_environment)
        r = load_environment(&loaded, d);
    if (r == 0 && !c->skip_environment)
        r = credentials_load_role(c, false, &loaded, d);
    if (r == 0)
        r = credentials_places_load_shared(c, &loaded, d);
    if (r == 0)
        r = load_container(c, &loaded, d);
    if (r == 0)
        r = load_instance(c, &loaded, d);
    if (r == 0) {
        loaded.expires = clock_wall(c->clock) + NONE_GOOD;
        snprintf(loaded.origin, sizeof(loaded.origin), "anonymous: no credentials were found");
    }
    if (r < 0)
        return r;
    *ret = loaded;
    loaded = (struct loaded){0};
    return 0;
}
