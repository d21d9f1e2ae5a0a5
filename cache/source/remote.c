/* What the remotes reached by HTTP share: their connections, and the functions of their tables that
 * use the known files. */
#include "cache/source/remote.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/array.h"
#include "base/checked.h"
#include "cache/http/credentials.h"
#include "cache/http/url.h"
#include "cache/pack/unpack.h"
#include "cache/source/joined.h"
#include "cache/source/joined_transport.h"
#include "cache/source/sha256sums.h"
#include "cache/source/shared_list.h"

/* Connections take descriptors: small transfers may use an eighth of these. Returns how many. */
static unsigned fit_descriptors(struct stage_options *options)
{
    struct rlimit files = {.rlim_cur = 64};

    getrlimit(RLIMIT_NOFILE, &files);
    options->small_jobs = (unsigned)min_u64(options->small_jobs, files.rlim_cur / 8);
    return options->small_jobs;
}

void source_forget(void *user)
{
    struct source *source = user;

    if (!atomic_exchange(&source->forgotten, true)) {
        kept_list_forget(source);
        shared_list_forget(source);
    }
}

int remote_connect(struct source *source, const struct source_options *options,
                   struct http_signer *signer, struct diag *d)
{
    const unsigned jobs = (unsigned)max_u64(options->stage.jobs, 2);
    struct stage_options stage = options->stage;
    const struct http_options how = {.jobs = jobs,
                                     .most = fit_descriptors(&stage),
                                     .timeout_s = options->timeout_s,
                                     .retry_limit_s = options->stage.retry_limit_s,
                                     .by_time = options->version == VERSION_TIME,
                                     .by_url = source->remote && source->remote->pinned,
                                     .accepts_gzip = source->remote && source->remote->accepts_gzip,
                                     .ca = options->ca,
                                     .via = options->via,
                                     .via_secret = options->via_secret,
                                     .asks_by_reading = source_asks_all(source),
                                     .signer = signer};
    int r;

    stage_free(source->stage);
    source->stage = NULL;
    source->joins = NULL;
    source->http = NULL;
    source->etag_suffices =
        options->version == VERSION_ETAG || (source->remote && source->remote->etag_suffices);
    r = http_new(&how, &source->http, d);
    if (r < 0)
        return r;
    http_transport(source->http)->changed = source_forget;
    http_transport(source->http)->changed_user = source;
    r = joined_transport_new(http_transport(source->http), jobs, &source->joins);
    if (r == 0)
        r = stage_new(&stage, &source->cache, source->joins, &source->stage, d);
    if (r < 0) { /* freed with its transport */
        source->joins = NULL;
        source->http = NULL;
    }
    return r;
}

int remote_set_file(struct source *source, const char *name, const char *url,
                    const struct remote_version *version)
{
    int r = text_copy(name, &source->only_file);

    if (r == 0)
        r = text_copy(url, &source->known.only_url);
    /* A query belongs to this one file. A hub counts names that are guessed. */
    if (r == 0 && !source->remote->pinned && (!url || !strchr(url, '?')))
        r = beside_new(&source->beside);
    return r < 0 ? r : known_add(&source->known, name, version);
}

/* List the names that side files of the one file may have. */
static int add_side_names(const struct source *source, const char *const *sides,
                          struct source_list *ret)
{
    const char *name = source->only_file, *packed;

    for (size_t i = 0; sides && sides[i]; i++) {
        for (size_t k = 0; (packed = packed_suffix(k)); k++) {
            char side[NAME_MAX + 1];
            int r;

            if (snprintf(side, sizeof(side), "%.*s%s%s", (int)unpacked_name_len(name), name,
                         sides[i], packed) >= (int)sizeof(side))
                continue;
            r = source_list_add(ret, side, NULL, NULL, 0);
            if (r == 0)
                r = remote_url(source, side, &ret->entry[ret->n - 1].url);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

/* Add the side files that exist. */
static int remote_add_sides(const struct source *source, const char *const *sides,
                            struct source_list *ret)
{
    AUTO_SOURCE_LIST struct source_list found = {0};
    int r = add_side_names(source, sides, &found);

    if (r == 0)
        r = remote_stat_list(source, &found);
    for (size_t i = 0; i < found.n && r == 0; i++)
        if (found.entry[i].version || found.entry[i].failure == -EREMOTEIO)
            r = source_list_take(ret, &found.entry[i]);
    return r;
}

int remote_list_known(const struct source *source, const char *const *sides,
                      struct source_list *ret, struct diag *d)
{
    int r = known_list(source, &source->known, NULL, ret);

    (void)d;
    if (r == 0 && source->beside)
        r = remote_add_sides(source, sides, ret);
    return r;
}

int remote_open(const struct source *source, const struct source_entry *entry,
                struct blob **ret_blob, struct diag *d)
{
    AUTO_FREE char *name = NULL, *key = NULL;
    struct remote_version version = *entry->version;
    size_t len = strcspn(entry->url, "?"), moved = source->named ? strlen(source->base) : 0;

    if (moved > len || strncmp(entry->url, source->base, moved) != 0)
        moved = 0;
    if (text_print(&key, "%s%.*s", moved ? source->named : "", (int)(len - moved),
                   entry->url + moved) < 0 ||
        text_print(&name, "%s%s%s", entry->folder, *entry->folder ? "/" : "", entry->name) < 0)
        return -ENOMEM;
    version.time_counts = !source->etag_suffices && joined_version_needs_time(&version);
    return stage_add(
        source->stage,
        &(struct stage_file){.url = entry->url,
                             .key = key,
                             .name = name,
                             .sha256 = entry->sha256,
                             /* What unpacks it needs all of it, and keeps what it finds. */
                             .trusted = source->remote->pinned &&
                                        !entry->name[unpacked_name_len(entry->name)],
                             .version = &version,
                             .mode = 0444,
                             .uid = getuid(),
                             .gid = getgid()},
        ret_blob, d);
}

void source_credentials(const struct source *source, char *ret, size_t capacity)
{
    char host[256];

    *ret = '\0';
    if (source->credentials) {
        credentials_origin(source->credentials, ret, capacity);
    } else if (source->http && http_sends_user(source->http)) {
        url_host(source->root, host, sizeof(host));
        snprintf(ret, capacity, "machine %s of ~/.netrc", host);
    }
}

const char *remote_advice(const struct source *source, int r, char ret[static REMOTE_ADVICE_SIZE])
{
    char origin[300];

    source_credentials(source, origin, sizeof(origin));
    *ret = '\0';
    if (r == -EPERM || r == -EACCES)
        snprintf(ret, REMOTE_ADVICE_SIZE, *origin ? "; it was asked as %s%s" : "; %s%s",
                 *origin       ? origin
                 : r == -EPERM ? "it expects a user"
                               : "if it expects a user",
                 *origin ? "" : ": put one into ~/.netrc");
    return ret;
}

void source_listen_via(const struct source *source, void (*changed)(bool answers, const char *text))
{
    if (source->http)
        http_via_listen(source->http, changed);
}

unsigned source_silent(const struct source *source, struct diag *d)
{
    if (source->http && http_is_silent(source->http, d))
        return UINT_MAX;
    return source->stage ? stage_silent(source->stage, d) : 0;
}
