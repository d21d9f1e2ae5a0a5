/* S3: s3://bucket/prefix, at AWS or any server that speaks its protocol. Remotes with a scheme of
 * their own for that protocol have a dialect (cache/source/s3.h).
 *
 * One listing (ListObjectsV2, cache/source/s3_walk.h) gives each object's key, size and ETag, so
 * objects need no requests of their own. SOURCE is the folder prefix/ if keys begin with that,
 * otherwise the object called prefix. Keys are any bytes: those that cannot be paths of files are
 * listed with an error. Some tools make a key that ends with '/' for a folder; it is omitted.
 *
 * Requests go to endpoint/bucket/key, or to AWS's own endpoint as https://bucket.s3.region... If
 * the server answers that the bucket is in another region, it is listed again there. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cache/http/credentials.h"
#include "cache/http/url.h"
#include "cache/source/joined.h"
#include "cache/source/kept_list.h"
#include "cache/source/listing.h"
#include "cache/source/remote.h"
#include "cache/source/s3.h"
#include "cache/source/s3_walk.h"
#include "cache/source/shared_list.h"

#define OBJECTS_MOST 4000000
#define BESIDE_MOST  20000 /* objects to list if SOURCE is one of them */

static const struct s3_dialect aws = {
    .payer = "x-amz-request-payer",
    .denied = "may not be listed (s3:ListBucket is needed, and s3:GetObject)"};

/* SOURCE while it is being opened. */
struct s3 {
    struct source *source;
    const struct source_options *options;
    const struct s3_dialect *dialect;
    char *bucket;
    const char *prefix; /* points into SOURCE's text */
    char *endpoint;     /* a URL without '/' at its end; NULL: AWS's own */
    char *url;          /* of the bucket, without '/' at its end */
    size_t most;        /* objects to list */
    bool keeps;         /* the list is kept between mounts */
    char shown[512];    /* s3://bucket/prefix, or with another scheme */
    char region[64];    /* where the server says the bucket is; "": it did not say */
};

static void s3_release(struct s3 *s3)
{
    free(s3->bucket);
    free(s3->endpoint);
    free(s3->url);
}

/* ---- where the bucket is ---- */

static int s3_split(struct s3 *s3, const char *spec, struct diag *d)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    const char *scheme = s3->source->remote->scheme;
    size_t len = strspn(spec, good), at = strlen(scheme);

    name_show(spec, s3->shown + at, sizeof(s3->shown) - at);
    memcpy(s3->shown, scheme, at);
    if (!len || *spec == '.' || (spec[len] && spec[len] != '/'))
        return diag_set(d, -EINVAL, "%s: expected %sbucket/prefix, got no name of a bucket",
                        s3->shown, scheme);
    s3->bucket = strndup(spec, len);
    s3->prefix = spec + len + (spec[len] == '/');
    return s3->bucket ? 0 : -ENOMEM;
}

/* Copy the endpoint in the options, the environment, or the profile. 0, and *ret may be NULL; or
 * -errno. */
static int choose_endpoint(const struct s3 *s3, char **ret)
{
    const char *names[] = {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"},
               *chosen = s3->options->endpoint ? s3->options->endpoint : s3->dialect->endpoint;
    int r;

    for (size_t i = 0; i < ARRAY_LEN(names) && !chosen; i++)
        chosen = environment(names[i]);
    if (!chosen && !s3->options->anonymous) {
        r = credentials_endpoint(s3->source->credentials, ret);
        return r < 0 ? r : 0;
    }
    return text_copy(chosen, ret);
}

static int find_endpoint(struct s3 *s3, struct diag *d)
{
    AUTO_FREE char *named = NULL;
    int r = choose_endpoint(s3, &named);

    if (r < 0 || !named)
        return r;
    if (strncasecmp(named, "http://", 7) != 0 && strncasecmp(named, "https://", 8) != 0)
        return diag_set(d, -EINVAL, "endpoint: expected a URL with http:// or https://");
    return url_endpoint(named, "endpoint", &s3->endpoint, d);
}

/* The URL of the bucket at AWS. Bucket names with dots do not match AWS's certificates as host
 * names. */
static int make_aws_url(const struct s3 *s3, const char *region, char **ret)
{
    const char *domain = strncmp(region, "cn-", 3) != 0 ? "amazonaws.com" : "amazonaws.com.cn";

    return strchr(s3->bucket, '.') && !s3->options->virtual_host
               ? text_print(ret, "https://s3.%s.%s/%s", region, domain, s3->bucket)
               : text_print(ret, "https://%s.s3.%s.%s", s3->bucket, region, domain);
}

static int make_url(struct s3 *s3)
{
    int r;

    free(s3->url);
    free(s3->source->base);
    s3->source->base = NULL;
    if (!s3->endpoint) {
        r = make_aws_url(s3, credentials_region(s3->source->credentials), &s3->url);
    } else if (s3->options->virtual_host) {
        size_t host = (size_t)(strstr(s3->endpoint, "://") + 3 - s3->endpoint);

        r = text_print(&s3->url, "%.*s%s.%s", (int)host, s3->endpoint, s3->bucket,
                       s3->endpoint + host);
    } else {
        r = text_print(&s3->url, "%s/%s", s3->endpoint, s3->bucket);
    }
    free(s3->source->listing);
    s3->source->listing = NULL;
    /* If the bucket is in the host's name, the path is "/". */
    return r < 0 ? r
                 : text_print(&s3->source->listing, "%s%s", s3->url,
                              s3->endpoint && !s3->options->virtual_host ? "" : "/");
}

/* ---- the listing ---- */

static int walk_use(struct s3_walk *walk, const struct s3_object *object, size_t n, struct diag *d)
{
    const struct s3 *s3 = walk->user;
    const struct known *known = &s3->source->known;
    size_t len = strlen(walk->prefix);
    int r = 0;

    for (size_t i = 0; i < n && r == 0; i++) {
        const char *path = object[i].key + len;

        if (*path && path[strlen(path) - 1] != '/')
            r = remote_add(s3->source, path, &object[i].version);
    }
    if (r == 0 && known->files.n + known->failed.n > s3->most)
        return diag_set(d, -E2BIG,
                        "%s: expected at most %zu objects, got more; name a longer prefix",
                        s3->shown, s3->most);
    return r == -E2BIG
               ? diag_set(d, r, "%s: too many files, or too large, for one mount", s3->shown)
               : r;
}

/* Advice for common errors; %s: where the credentials come from. */
static const struct known_error {
    const char *code;
    int error;
    const char *text; /* NULL: that of the dialect */
} known_errors[] = {
    {"NoSuchBucket", -ENOENT, "expected a bucket of that name, got none"},
    {"AccessDenied", -EACCES, NULL},
    {"AllAccessDisabled", -EACCES, "access is disabled for this bucket"},
    {"InvalidAccessKeyId", -EACCES, "the server does not know the access key"},
    {"SignatureDoesNotMatch", -EACCES, "the secret key is not that of the access key"},
    {"ExpiredToken", -EACCES, "the credentials have expired"},
    {"InvalidToken", -EACCES, "the session token is not valid"},
    {"RequestTimeTooSkewed", -EACCES, "the clock of this machine is wrong"},
};

/* The region in an endpoint of AWS: bucket.s3.REGION.amazonaws.com, bucket.s3-REGION... */
static void region_of_endpoint(const char *endpoint, char *ret, size_t capacity)
{
    const char *domain = strstr(endpoint, ".amazonaws.com"), *start = domain;

    while (start && start > endpoint && start[-1] != '.' &&
           !(start - endpoint >= 3 && !memcmp(start - 3, "s3-", 3)))
        start--;
    if (start && domain > start)
        snprintf(ret, capacity, "%.*s", (int)(domain - start), start);
}

/* Say why a request has failed, in words that help: answer is the error's body. Sets s3->region if
 * the server says that the bucket is in another one. */
static int walk_failed(struct s3_walk *walk, int r, const struct text *answer,
                       const struct diag *why, struct diag *d)
{
    struct s3 *s3 = walk->user;
    const char *region = credentials_region(s3->source->credentials),
               *at = s3->endpoint ? s3->endpoint : "AWS";
    struct s3_error e = {.code = ""};
    char origin[400];

    credentials_origin(s3->source->credentials, origin, sizeof(origin));
    if (!answer->data || !s3_error_parse(answer->data, answer->len, &e))
        return diag_set(d, r, "%s: %s%s%s", s3->shown, diag_text(why, r),
                        r == -EACCES ? "; credentials: " : "", r == -EACCES ? origin : "");
    if (!*e.region && *e.endpoint)
        region_of_endpoint(e.endpoint, e.region, sizeof(e.region));
    if (*e.region && strcmp(e.region, region) != 0) {
        snprintf(s3->region, sizeof(s3->region), "%s", e.region);
        return diag_set(d, -EREMOTEIO, "%s: is in region %s, not %s; mount with -o region=%s",
                        s3->shown, e.region, region, e.region);
    }
    for (size_t i = 0; i < ARRAY_LEN(known_errors); i++) {
        const struct known_error *known = &known_errors[i];
        bool denied = known->error == -EACCES;

        if (!strcmp(known->code, e.code))
            return diag_set(d, known->error, "%s: %s (%s at %.290s, region %s%s%s)%s%.200s%s",
                            s3->shown, known->text ? known->text : s3->dialect->denied, e.code, at,
                            region, denied ? "; credentials: " : "", denied ? origin : "",
                            *e.message ? ": " : "", e.message,
                            !known->text && !(s3->options && s3->options->requester_pays)
                                ? ". If the bucket's requesters pay for it: -o requester_pays"
                                : "");
    }
    return diag_set(d, r, "%s: %.290s says %s: %s", s3->shown, at, e.code, e.message);
}

/* Has the list the files of this mount's first page, in their versions? */
static bool list_fits(const struct known *list, const struct known *so_far)
{
    const struct members *files = &so_far->files;

    for (size_t i = 0; i < files->n; i++) {
        const char *folder = members_folder_of(files, i);
        size_t k = members_lookup(&list->files, folder, strlen(folder), members_name(files, i));
        struct remote_version then, now;

        if (k == list->files.n || !joined_version_get(&list->files, k, &then) ||
            !joined_version_get(files, i, &now) || then.size != now.size ||
            strcmp(then.etag, now.etag) != 0)
            return false;
    }
    return list->n_pages > 1;
}

/* The first page has other keys: those of .epochfs/ itself. */
static int list_page_url(const void *ctx, const char *text, char **ret)
{
    const struct s3_walk *walk = ctx;

    return *text ? s3_walk_url(walk, &(struct s3_question){.prefix = walk->prefix, .after = text},
                               ret)
                 : -ENOENT;
}

/* The list of many objects that lies next to them, if some pages of the bucket's are as they were.
 */
static int walk_is_long(struct s3_walk *walk)
{
    return shared_list_use(
        ((struct s3 *)walk->user)->source,
        &(struct shared_check){
            .fits = list_fits, .page_url = list_page_url, .page_hash = s3_page_hash, .ctx = walk});
}

static void walk_init(struct s3_walk *ret, struct s3 *s3, const char *prefix)
{
    *ret = (struct s3_walk){.http = s3->source->http,
                            .listing = s3->source->listing,
                            .prefix = prefix,
                            .shown = s3->shown,
                            .use = walk_use,
                            .failed = walk_failed,
                            .is_long = s3->keeps ? walk_is_long : NULL,
                            .user = s3,
                            .known = &s3->source->known,
                            .one_range = !s3->keeps};
}

/* Add the kept files of the pages that are as they were. */
static int use_kept(struct source *source, const struct s3_walk *walk, struct known *kept)
{
    const struct members *files = &kept->files;
    char key[2 * PATH_MAX];
    size_t len = strlen(walk->prefix);
    int r = 0;

    if (walk->n_same == kept->n_pages) { /* all: there is nothing to add */
        known_replace(&source->known, kept);
        return 0;
    }
    if (len > PATH_MAX)
        return -ENAMETOOLONG;
    memcpy(key, walk->prefix, len);
    for (size_t i = 0; i < files->n && r == 0; i++) {
        struct remote_version version;

        if (members_path(files, i, key + len, sizeof(key) - len) == 0 &&
            walk->same[s3_walk_page_of(kept, key)] && joined_version_get(files, i, &version))
            r = remote_add(source, key + len, &version);
    }
    return r;
}

/* List all objects below the folder prefix, "" or with '/' at its end. *any: there are keys. */
static int list_folder(struct s3 *s3, const char *prefix, bool *any, struct diag *d)
{
    AUTO_KNOWN struct known kept = {0};
    AUTO(s3_walk_release) struct s3_walk walk;
    struct known *known = &s3->source->known;
    size_t n_kept;
    int r;

    *any = false;
    walk_init(&walk, s3, prefix);
    if (s3->keeps && kept_list_load(s3->source, NULL, &kept) == 0)
        walk.kept = &kept;
    r = s3_walk(&walk, d);
    *any = walk.any;
    n_kept = walk.kept ? kept.n_pages : 0;
    if (r < 0 || walk.ended)
        return r;
    if (walk.n_same)
        r = use_kept(s3->source, &walk, &kept);
    if (r == 0)
        r = known_sort(known);
    if (r == 0 && s3->keeps && walk.sorted && !known->failed.n && known->files.n >= LISTING_KEPT &&
        (!n_kept || walk.n_same < n_kept))
        kept_list_save(s3->source, known);
    if (r == 0 && s3->keeps && walk.sorted)
        r = shared_list_note(s3->source);
    return r;
}

/* Who may list a bucket may perhaps not read its objects. */
static int ask_all(struct source *source, struct diag *d)
{
    bool asked;

    return source_asks_all(source) ? remote_stat(source, &asked, d) : 0;
}

/* SOURCE is an object: list the folder that it is in, if that is not too large. */
int s3_list_beside(struct source *source)
{
    struct s3 s3 = {.source = source, .dialect = &aws, .most = BESIDE_MOST};
    /* "s3://bucket/folder/" */
    const char *slash = strchr(source->root + strlen(source->remote->scheme), '/');
    bool any;
    int r = list_folder(&s3, slash ? slash + 1 : "", &any, NULL);

    if (r == 0)
        r = ask_all(source, NULL);
    return r < 0 ? r : 1;
}

static int s3_object_url(const struct s3 *s3, const char *key, char **ret)
{
    AUTO_TEXT struct text url = {0};

    text_add(&url, "%s/", s3->url);
    http_encode(&url, key, true);
    return text_finish(&url, ret, NULL);
}

/* SOURCE is an object: set its folder. */
static int set_folder(struct s3 *s3, const char *prefix, size_t len)
{
    AUTO_FREE char *folder = strndup(prefix, len);
    struct source *source = s3->source;

    free(source->base);
    free(source->root);
    source->base = source->root = NULL;
    return !folder || s3_object_url(s3, folder, &source->base) < 0
               ? -ENOMEM
               : text_print(&source->root, "%s%s/%s", source->remote->scheme, s3->bucket, folder);
}

/* Get the version of the object that SOURCE names. A user without the right to list may still read
 * it. */
static int stat_object(struct s3 *s3, bool listed, struct remote_version *ret, struct diag *d)
{
    AUTO_S3_PAGE struct s3_page page = {0};
    AUTO_FREE char *url = NULL;
    struct http_file file;
    struct s3_walk walk;
    int r = 0;

    walk_init(&walk, s3, s3->prefix);
    if (listed)
        r = s3_walk_get(&walk, &(struct s3_question){.prefix = s3->prefix, .most = 1}, &page, d);
    if (r < 0)
        return r;
    if (page.n && !strcmp(page.object[0].key, s3->prefix)) {
        *ret = page.object[0].version;
        return 0;
    }
    if (listed)
        return diag_set(d, -ENOENT, "%s: expected keys that begin with this, got none", s3->shown);
    r = s3_object_url(s3, s3->prefix, &url);
    if (r < 0)
        return r;
    file = (struct http_file){.url = url};
    http_stat(s3->source->http, 1, &file);
    *ret = file.version;
    return file.error < 0
               ? diag_set(d, file.error, "%s: %s", s3->shown, diag_text(&file.why, file.error))
               : 0;
}

static int open_object(struct s3 *s3, bool listed, struct diag *d)
{
    struct remote_version version = {0};
    const char *name = path_name(s3->prefix), *wrong = name_wrong(name);
    int r = stat_object(s3, listed, &version, d);

    if (r == 0 && wrong)
        return diag_set(d, -EINVAL, "%s: expected a name that a file can have, got %s", s3->shown,
                        wrong);
    if (r == 0)
        r = set_folder(s3, s3->prefix, (size_t)(name - s3->prefix));
    return r < 0 ? r : remote_set_file(s3->source, name, NULL, &version);
}

/* Use a SHA256SUMS in the folder. */
static int use_sums(struct s3 *s3)
{
    AUTO_TEXT struct text sums = {0};
    struct diag why = DIAG_INIT;
    size_t n;
    int r;

    if (known_index(&s3->source->known, "SHA256SUMS") == s3->source->known.files.n)
        return 0;
    r = http_ahead_take(remote_ask(s3->source, "SHA256SUMS"), &sums, NULL, &why);
    if (r == 0)
        return sums.len ? remote_use_sums(s3->source, &sums, false, &n) : 0;
    remote_note(s3->source, "SHA256SUMS: not used: %s", diag_text(&why, r));
    return r == -ENOMEM ? r : 0;
}

/* ---- opening ---- */

/* Open SOURCE as a folder, otherwise as an object. */
static int s3_open_any(struct s3 *s3, struct diag *d)
{
    size_t len = strlen(s3->prefix);
    bool is_folder = !len || s3->prefix[len - 1] == '/', any = false;
    struct diag why = DIAG_INIT;
    AUTO_FREE char *folder = NULL;
    int r;

    if (text_print(&folder, "%s%s", s3->prefix, is_folder ? "" : "/") < 0)
        return -ENOMEM;
    r = set_folder(s3, folder, strlen(folder));
    if (r == 0)
        r = list_folder(s3, folder, &any, &why);
    if (!is_folder && !any && (r == 0 || (r == -EACCES && open_object(s3, false, NULL) == 0)))
        return r == 0 ? open_object(s3, true, d) : 0;
    if (r < 0)
        return diag_set(d, r, "%s", diag_text(&why, r));
    if (!any)
        return diag_set(d, -ENOENT, "%s: expected keys that begin with this, got none", s3->shown);
    return use_sums(s3);
}

static int connect_and_open(struct s3 *s3, struct diag *d)
{
    struct source *source = s3->source;
    int r = make_url(s3);

    known_release(&source->known);
    if (r == 0)
        r = remote_connect(source, s3->options, credentials_signer(source->credentials), d);
    if (r < 0)
        return r;
    if (!s3->dialect->endpoint) /* roles of AWS's machines mean nothing to others */
        credentials_set_http(source->credentials, source->http);
    r = s3_open_any(s3, d);
    return r < 0 ? r : ask_all(source, d);
}

static int make_credentials(const struct s3 *s3, struct diag *d)
{
    const struct source_options *options = s3->options;
    AUTO_FREE char *payer = NULL;
    const char *region = options->region ? options->region : s3->dialect->region;
    const char *variable = s3->dialect->payer_variable,
               *value = variable ? environment(variable) : "requester";

    if (options->requester_pays && options->anonymous)
        return diag_set(d, -EINVAL,
                        "%s: expected signed requests with requester_pays, got "
                        "no_sign_request: only those can be charged",
                        s3->shown);
    if (options->requester_pays && !value)
        return diag_set(d, -EINVAL,
                        "requester_pays: expected the project to charge in $%s, got none",
                        variable);
    if (options->requester_pays && text_print(&payer, "%s: %s", s3->dialect->payer, value) < 0)
        return -ENOMEM;
    return credentials_new(&(struct credentials_options){.profile = options->profile,
                                                         .region = region,
                                                         .header = payer,
                                                         .google = s3->dialect->google,
                                                         .anonymous = options->anonymous},
                           &s3->source->credentials, d);
}

int s3_make_as(struct source *source, const char *spec, const struct source_options *options,
               const struct s3_dialect *dialect, struct diag *d)
{
    AUTO(s3_release)
    struct s3 s3 = {.source = source,
                    .options = options,
                    .dialect = dialect,
                    .most = OBJECTS_MOST,
                    .keeps = true};
    struct diag why = DIAG_INIT;
    int r = s3_split(&s3, spec, d);

    if (r == 0)
        r = make_credentials(&s3, d);
    if (r == 0)
        r = find_endpoint(&s3, d);
    if (r < 0)
        return r;
    r = connect_and_open(&s3, &why);
    if (r < 0 && *s3.region) {
        remote_note(source, "%s: is in region %s", s3.shown, s3.region);
        credentials_set_region(source->credentials, s3.region);
        why = DIAG_INIT;
        r = connect_and_open(&s3, &why);
    }
    return r < 0 ? diag_set(d, r, "%s", diag_text(&why, r)) : 0;
}

static int s3_make(struct source *source, const char *spec, const struct source_options *options,
                   struct diag *d)
{
    return s3_make_as(source, spec, options, &aws, d);
}

const struct remote remote_s3 = {.scheme = "s3://",
                                 .help = "s3://BUCKET/PREFIX",
                                 .make = s3_make,
                                 .list_beside = s3_list_beside,
                                 .far = true,
                                 .etag_suffices = true,
                                 .paths_decoded = true};
