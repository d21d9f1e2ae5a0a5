/* Secrets of a role, for which a token file is shown to AWS's security token service: what
 * Kubernetes (IRSA) and CI services give their jobs. The token is rotated, so its file is read for
 * each request, and neither the token nor a secret is in a message. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cache/http/credentials_parse.h"
#include "cache/http/credentials_parts.h"
#include "cache/http/reply.h"
#include "cache/http/xml.h"

#define TOKEN_MOST 20000
#define TRIES      3

struct role {
    char *arn, *token_file, *session;
};

static void role_release(struct role *role)
{
    free(role->arn);
    free(role->token_file);
    free(role->session);
}

/* 1, 0: no role is named; or -errno. */
static int role_of_environment(struct role *ret)
{
    const char *arn = environment("AWS_ROLE_ARN");
    const char *file = environment("AWS_WEB_IDENTITY_TOKEN_FILE");

    if (!arn || !file)
        return 0;
    return text_copy(arn, &ret->arn) < 0 || text_copy(file, &ret->token_file) < 0 ||
                   text_copy(environment("AWS_ROLE_SESSION_NAME"), &ret->session) < 0
               ? -ENOMEM
               : 1;
}

static int role_of_profile(const struct credentials *c, struct role *ret, struct diag *d)
{
    int r = credentials_of_profile(c, true, "web_identity_token_file", &ret->token_file, d);

    if (r > 0)
        r = credentials_of_profile(c, true, "role_arn", &ret->arn, d);
    if (r > 0 && credentials_of_profile(c, true, "role_session_name", &ret->session, d) == -ENOMEM)
        r = -ENOMEM;
    return r;
}

static bool is_session(const char *name)
{
    size_t len = strlen(name);

    return len >= 2 && len <= 64 &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+=,.@-") ==
               len;
}

/* The URL of the service; the caller frees *ret. */
static int role_endpoint(const struct credentials *c, char **ret, struct diag *d)
{
    const char *url = environment("AWS_ENDPOINT_URL_STS"), *region = c->signer.region;
    const char *style = environment("AWS_STS_REGIONAL_ENDPOINTS");
    const char *fips = environment("AWS_USE_FIPS_ENDPOINT");

    if (!url)
        url = environment("AWS_ENDPOINT_URL");
    if (url && (strchr(url, '@') || (strncasecmp(url, "https://", 8) != 0 &&
                                     strncasecmp(url, "http://127.0.0.1:", 17) != 0 &&
                                     strncasecmp(url, "http://localhost:", 17) != 0)))
        return diag_set(d, -EINVAL,
                        "$AWS_ENDPOINT_URL_STS: expected a URL with https://, got another");
    if (url)
        return text_print(ret, "%s%s", url, url[strlen(url) - 1] == '/' ? "" : "/");
    if ((style && !strcasecmp(style, "legacy")) || !strcmp(region, "auto"))
        return text_print(ret, "https://sts.amazonaws.com/");
    return text_print(ret, "https://sts%s.%s.amazonaws.com%s/",
                      fips && !strcasecmp(fips, "true") ? "-fips" : "", region,
                      strncmp(region, "cn-", 3) != 0 ? "" : ".cn");
}

static int role_form(const struct role *role, const char *token, struct text *ret, struct diag *d)
{
    char session[64];
    const char *const fields[][2] = {{"RoleArn", role->arn},
                                     {"RoleSessionName", role->session ? role->session : session},
                                     {"WebIdentityToken", token}};

    snprintf(session, sizeof(session), "epochfs-%ld", (long)getpid());
    if (role->session && !is_session(role->session))
        return diag_set(d, -EINVAL,
                        "$AWS_ROLE_SESSION_NAME: expected 2 to 64 letters, digits or "
                        "+=,.@-_, got another text");
    text_add(ret, "Action=AssumeRoleWithWebIdentity&Version=2011-06-15");
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        text_add(ret, "&%s=", fields[i][0]);
        http_encode(ret, fields[i][1], false);
    }
    return ret->failed ? -ENOMEM : 0;
}

struct role_answer {
    struct loaded *loaded;
    char *expires;
};

/* Keep the text of an element that counts. */
static int role_take(void *user, struct xml_element *element)
{
    struct role_answer *answer = user;
    struct http_secret *secret = &answer->loaded->secret;
    const struct {
        const char *name;
        char **text;
    } wanted[] = {{"AccessKeyId", &secret->key_id},
                  {"SecretAccessKey", &secret->key},
                  {"SessionToken", &secret->token},
                  {"Expiration", &answer->expires}};

    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        if (!*wanted[i].text && element->text && !strcmp(element->name, wanted[i].name))
            *wanted[i].text = TAKE_PTR(element->text);
    return 0;
}

static int role_parse(const struct text *text, struct loaded *loaded, struct diag *d)
{
    struct role_answer answer = {loaded, NULL};
    const struct http_secret *secret = &loaded->secret;
    size_t unused;
    int r = text->data ? xml_read(text->data, text->len, role_take, &answer, &unused) : -EBADMSG;

    if (r == 0 && (!secret->key_id || !secret->key || !secret->token || !answer.expires ||
                   !credentials_set_expiry(loaded, answer.expires)))
        r = -EBADMSG;
    secret_free(&answer.expires);
    return r == -EBADMSG
               ? diag_set(d, r,
                          "security token service: expected XML with keys, a token and a time, "
                          "got something else")
               : r;
}

/* Ask the service. Where it cannot reach the issuer of the token it is asked again. */
static int role_ask(const struct credentials *c, const char *url, const struct text *form,
                    const char *token, struct text *ret, struct diag *d)
{
    static const char *const headers[] = {"Content-Type: application/x-www-form-urlencoded", NULL};
    const struct http_call call = {.url = url,
                                   .method = "POST",
                                   .headers = headers,
                                   .post = form->data,
                                   .most = ANSWER_MOST,
                                   .timeout_s = 10,
                                   .no_sign = true};
    struct diag why = DIAG_INIT;
    char code[64] = "IDPCommunicationError";
    char begin[17]; /* of the token: texts of errors are cut, so none has all of it */
    int r = 0;

    snprintf(begin, sizeof(begin), "%s", token);
    for (unsigned i = 0; i < TRIES && !strcmp(code, "IDPCommunicationError"); i++) {
        why = DIAG_INIT;
        text_release(ret);
        r = http_get(c->http, &call, ret, &why);
        *code = '\0';
        if (r < 0 && ret->data)
            http_error_code(ret->data, ret->len, code);
    }
    if (r < 0)
        return diag_set(d, *code ? -EACCES : r, "security token service: %s",
                        strstr(code, begin)                 ? "its error repeats the token"
                        : strstr(diag_text(&why, r), begin) ? code
                                                            : diag_text(&why, r));
    return 0;
}

static int role_load(const struct credentials *c, const struct role *role, struct loaded *loaded,
                     struct diag *d)
{
    AUTO_SECRET struct text token = {0}, form = {0}, answer = {0};
    AUTO_FREE char *url = NULL;
    int r = credentials_read_token(role->token_file, "$AWS_WEB_IDENTITY_TOKEN_FILE", &token, d);

    if (r == 0 && (!token.len || token.len > TOKEN_MOST))
        r = diag_set(d, -EINVAL, "%s: expected a token of at most %d bytes, got %zu",
                     role->token_file, TOKEN_MOST, token.len);
    if (r == 0)
        r = role_endpoint(c, &url, d);
    if (r == 0)
        r = role_form(role, token.data, &form, d);
    if (r == 0)
        r = role_ask(c, url, &form, token.data, &answer, d);
    if (r == 0)
        r = role_parse(&answer, loaded, d);
    snprintf(loaded->origin, sizeof(loaded->origin), "role %.200s", role->arn);
    return r < 0 ? r : 1;
}

int credentials_load_role(const struct credentials *c, bool of_profile, struct loaded *loaded,
                          struct diag *d)
{
    AUTO(role_release) struct role role = {0};
    int r = of_profile ? role_of_profile(c, &role, d) : role_of_environment(&role);

    if (r <= 0 || !c->http)
        return r < 0 ? r : 0;
    return role_load(c, &role, loaded, d);
}
