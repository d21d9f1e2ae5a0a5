/* Credentials of S3, and tokens.
 *
 * A secret is loaded when it is first needed, and kept while it is valid: until 5 minutes before it
 * expires, or until the server refuses it. http_signing_get() lets one thread at a time ask
 * (cache/http/sign.c), so no other loads meanwhile. Secrets from files count as expiring as well: a
 * tool may renew them there. */
#include "cache/http/credentials.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/http/credentials_parts.h"

#define BEFORE      (300 * SECOND) /* how long before it expires it is loaded again */
#define AGAIN_AFTER (10 * SECOND)  /* next load after a failure, while the old secret is valid */

/* Is the kept secret good now? */
static bool is_good(struct credentials *c)
{
    int64_t now = clock_wall(c->clock);
    LOCK_SCOPE(&c->lock);

    return *c->kept.origin && now < c->kept.expires &&
           (now < c->kept.expires - BEFORE || now < c->not_before);
}

/* r: of credentials_load(). If it failed, the old secret stays in use while it is valid. */
static int publish_locked(struct credentials *c, int r, struct loaded *loaded)
{
    int64_t now = clock_wall(c->clock);

    lock_assert_held(&c->lock);
    c->not_before = now + AGAIN_AFTER;
    if (r == 0) {
        credentials_loaded_release(&c->kept);
        c->kept = *loaded;
        *loaded = (struct loaded){0};
    } else if (*c->kept.origin && now < c->kept.expires) {
        r = 0;
    }
    return r;
}

/* Copy the secret to *ret. */
static int copy_locked(struct credentials *c, struct http_secret *ret)
{
    struct loaded copy = {0};

    lock_assert_held(&c->lock);
    if (!c->kept.secret.key_id && !c->kept.secret.token)
        return 1;
    if (text_copy(c->kept.secret.key_id, &copy.secret.key_id) < 0 ||
        text_copy(c->kept.secret.key, &copy.secret.key) < 0 ||
        text_copy(c->kept.secret.token, &copy.secret.token) < 0) {
        credentials_loaded_release(&copy);
        return -ENOMEM;
    }
    *ret = copy.secret;
    return 0;
}

static int credentials_secret(struct http_signer *signer, struct http_secret *ret, struct diag *d)
{
    struct credentials *c = (struct credentials *)signer; /* its first member */
    AUTO(credentials_loaded_release) struct loaded loaded = {0};
    struct diag why = DIAG_INIT;
    bool loads = !is_good(c);
    int r = loads ? credentials_load(c, &loaded, &why) : 0;
    LOCK_SCOPE(&c->lock);

    if (loads)
        r = publish_locked(c, r, &loaded);
    if (r == 0)
        r = copy_locked(c, ret);
    return r < 0 ? diag_set(d, r, "%s", diag_text(&why, r)) : r;
}

/* Load it again when it is next asked for: soon for files, which are cheap to read. */
static void credentials_refused(struct http_signer *signer)
{
    struct credentials *c = (struct credentials *)signer;
    int64_t now = clock_wall(c->clock);
    LOCK_SCOPE(&c->lock);

    if (c->find_token ||
        now >= c->not_before - AGAIN_AFTER + (c->kept.was_asked ? AGAIN_AFTER : SECOND))
        c->kept.expires = now;
}

/* ---- made and freed ---- */

static bool is_region(const char *region)
{
    size_t len = strlen(region);

    return len && len < sizeof(((struct http_signer *)0)->region) &&
           strspn(region, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") ==
               len;
}

static int find_region(struct credentials *c, const char *named, struct diag *d)
{
    AUTO_FREE char *of_profile = NULL;
    const char *region = named ? named : environment("AWS_REGION");
    int r;

    if (!region)
        region = environment("AWS_DEFAULT_REGION");
    if (!region) {
        r = credentials_of_either(c, "region", &of_profile, d);
        if (r < 0)
            return r;
        region = r > 0 ? of_profile : "us-east-1";
    }
    if (!is_region(region))
        return diag_set(d, -EINVAL, "region %.100s: expected a name such as us-east-1", region);
    snprintf(c->signer.region, sizeof(c->signer.region), "%s", region);
    return 0;
}

/* A named profile must exist. */
static int check_profile(const struct credentials *c, struct diag *d)
{
    const struct shared_file credentials = credentials_file(false), config = credentials_file(true);
    int r = c->profile_is_named ? credentials_of_either(c, NULL, NULL, d) : 1;

    return r == 0 ? diag_set(d, -ENOENT, "profile %.100s: is in neither %s nor %s", c->profile,
                             credentials.shown, config.shown)
                  : r;
}

int credentials_new(const struct credentials_options *options, struct credentials **ret,
                    struct diag *d)
{
    struct credentials *c = calloc(1, sizeof(*c));
    const char *profile = options->profile ? options->profile : environment("AWS_PROFILE");
    int r;

    if (!c)
        return -ENOMEM;
    if (!profile)
        profile = environment("AWS_DEFAULT_PROFILE");
    lock_init(&c->lock);
    c->signer.secret = credentials_secret;
    c->signer.refused = credentials_refused;
    c->anonymous = options->anonymous;
    c->google = options->google;
    c->find_token = options->find_token;
    c->clock = clock_or_real(options->clock);
    c->skip_environment = options->profile != NULL;
    c->profile_is_named = profile != NULL;
    r = text_copy(profile ? profile : "default", &c->profile);
    if (r == 0)
        r = text_copy(options->header, &c->header);
    c->signer.header = c->header;
    if (r == 0 && !c->anonymous && !c->find_token)
        r = check_profile(c, d);
    if (r >= 0 && !c->find_token)
        r = find_region(c, options->region, d);
    if (r < 0) {
        credentials_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

void credentials_free(struct credentials *c)
{
    if (!c)
        return;
    credentials_loaded_release(&c->kept);
    lock_release(&c->lock);
    free(c->profile);
    free(c->header);
    free(c);
}

void credentials_set_http(struct credentials *c, struct http *http)
{
    c->http = http;
}

struct http_signer *credentials_signer(struct credentials *c)
{
    return c->anonymous ? NULL : &c->signer;
}

const char *credentials_region(const struct credentials *c)
{
    return c->signer.region;
}

void credentials_set_region(struct credentials *c, const char *region)
{
    if (is_region(region))
        snprintf(c->signer.region, sizeof(c->signer.region), "%s", region);
}

int credentials_endpoint(const struct credentials *c, char **ret)
{
    return credentials_of_profile(c, true, "endpoint_url", ret, NULL);
}

void credentials_origin(struct credentials *c, char *ret, size_t capacity)
{
    lock_take(&c->lock);
    snprintf(ret, capacity, "%s", c->anonymous ? "anonymous" : c->kept.origin);
    lock_drop(&c->lock);
}
