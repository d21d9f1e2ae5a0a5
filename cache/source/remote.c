/* What the remotes that are reached by HTTP share.
 *
 * source->known is filled while the source is opened, by one thread, and then constant: it is the
 * snapshot that a mount is. Every name in it passed name_wrong(), so nothing that a server sends
 * leads out of SOURCE, in the tree of a mount or in URLs. */
#include "cache/source/remote.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/array.h"
#include "base/checked.h"
#include "cache/http/url.h"
#include "cache/pack/unpack.h"
#include "cache/source/beside.h"
#include "cache/source/sha256sums.h"

#define STAT_AT_ONCE 1024
#define NOTE_MOST    4096 /* bytes of notes */

/* Connections are descriptors: small transfers have an eighth of those at most. Returns how many.
 */
static unsigned fit_descriptors(struct stage_options *options)
{
    struct rlimit files = {.rlim_cur = 64};

    getrlimit(RLIMIT_NOFILE, &files);
    options->small_jobs = (unsigned)min_u64(options->small_jobs, files.rlim_cur / 8);
    return options->small_jobs;
}

int remote_connect(struct source *source, const struct source_options *options,
                   struct http_signer *signer, struct diag *d)
{
    const unsigned jobs = (unsigned)max_u64(options->stage.jobs, 2);
    struct stage_options stage = options->stage;
    const struct http_options how = {.jobs = (unsigned)max_u64(jobs, fit_descriptors(&stage)),
                                     .sure_jobs = jobs,
                                     .timeout_s = options->timeout_s,
                                     .ca = options->ca,
                                     .signer = signer};
    int r;

    stage_free(source->stage);
    source->stage = NULL;
    source->http = NULL;
    r = http_new(&how, &source->http, d);
    if (r < 0)
        return r;
    r = stage_new(&stage, &source->cache, http_transport(source->http), &source->stage, d);
    if (r < 0)
        source->http = NULL; /* freed with its transport */
    return r;
}

void remote_note(struct source *source, const char *format, ...)
{
    va_list args;
    char line[512];

    if (source->note.len > NOTE_MOST)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    text_plain(line, "");
    text_add(&source->note, "%s\n", line);
    if (source->note.len > NOTE_MOST)
        text_add(&source->note, "...\n");
}

int remote_url(const struct source *source, const char *path, char **ret)
{
    AUTO_FREE char *encoded = NULL;
    int r = http_encode(path, true, &encoded);

    if (r < 0)
        return r;
    if (asprintf(ret, "%s%s", source->base, encoded) < 0) {
        *ret = NULL;
        return -ENOMEM;
    }
    return 0;
}

int remote_add(struct source *source, const char *path, const char *url,
               const struct remote_version *version, const char *error)
{
    struct source_list *list = &source->known;
    const char *slash = strrchr(path, '/');
    AUTO_FREE char *folder = strndup(path, slash ? (size_t)(slash - path) : 0);
    struct source_entry *entry;
    int r = folder ? source_list_add(list, folder, slash ? slash + 1 : path, NULL, error) : -ENOMEM;

    if (r < 0)
        return r;
    entry = &list->entry[list->n - 1];
    if (version) {
        entry->version = malloc(sizeof(*version));
        if (!entry->version)
            return -ENOMEM;
        *entry->version = *version;
    }
    if (!url)
        return remote_url(source, path, &entry->url);
    entry->url = strdup(url);
    return entry->url ? 0 : -ENOMEM;
}

int remote_add_wrong(struct source *source, const char *path, const char *wrong)
{
    char name[128], shown[256], error[512];

    name_show(path, shown, sizeof(shown));
    name_show(path, name, sizeof(name));
    for (char *c = name; *c; c++)
        if (*c == '/')
            *c = '_';
    if (*name == '.')
        *name = '_';
    snprintf(error, sizeof(error), "%s: want names that files can have, found %s", shown, wrong);
    return source_list_add(&source->known, "", *name ? name : "_", NULL, error);
}

static bool is_same(const struct source_entry *a, const struct source_entry *b)
{
    return !strcmp(a->folder, b->folder) && !strcmp(a->name, b->name);
}

void remote_sort(struct source *source)
{
    struct source_list *list = &source->known;
    size_t kept = 0;

    source_list_sort(list);
    for (size_t i = 0; i < list->n; i++) {
        if (kept && is_same(&list->entry[kept - 1], &list->entry[i]))
            source_entry_release(&list->entry[i]);
        else
            list->entry[kept++] = list->entry[i];
    }
    list->n = kept;
}

int remote_use_sums(struct source *source, const struct text *sums, bool lists, size_t *ret_files)
{
    size_t at = 0, n = 0, left_out = 0, line = 0;
    const char *why = "", *first_why = "";
    struct sum sum;
    int r;

    while ((r = sums_next(sums->data, sums->len, &at, &sum, &why)) != 0) {
        line++;
        if (r == -EINVAL && !left_out++)
            first_why = why;
        if (r < 0)
            continue;
        n++;
        r = lists ? remote_add(source, sum.path, NULL, NULL, NULL) : 0;
        if (r < 0)
            return r;
    }
    if (n && left_out)
        remote_note(source, "SHA256SUMS: %zu of %zu lines left out: %s", left_out, line, first_why);
    *ret_files = n;
    if (lists)
        remote_sort(source);
    for (at = 0; (r = sums_next(sums->data, sums->len, &at, &sum, &why)) != 0;) {
        struct source_entry *entry = r > 0 ? source_list_find(&source->known, sum.path) : NULL;

        if (!entry || entry->sha256)
            continue;
        entry->sha256 = malloc(SHA256_LEN);
        if (!entry->sha256)
            return -ENOMEM;
        memcpy(entry->sha256, sum.sha256, SHA256_LEN);
    }
    return 0;
}

/* What http_stat() fills. */
struct stats {
    const char *url[STAT_AT_ONCE];
    struct source_entry *entry[STAT_AT_ONCE];
    struct remote_version version[STAT_AT_ONCE];
    int error[STAT_AT_ONCE];
    struct diag why[STAT_AT_ONCE];
    size_t n;
};

static int use_stats(struct stats *stats)
{
    for (size_t i = 0; i < stats->n; i++) {
        struct source_entry *entry = stats->entry[i];

        if (stats->error[i] < 0) {
            entry->error = strdup(diag_text(&stats->why[i], stats->error[i]));
            entry->failure = stats->error[i];
            if (!entry->error)
                return -ENOMEM;
            continue;
        }
        entry->version = malloc(sizeof(*entry->version));
        if (!entry->version)
            return -ENOMEM;
        *entry->version = stats->version[i];
    }
    return 0;
}

/* Of the entries of list from *at on. */
static int stat_some(const struct source *source, struct source_list *list, size_t *at)
{
    AUTO_FREE struct stats *stats = calloc(1, sizeof(*stats));

    if (!stats)
        return -ENOMEM;
    for (; *at < list->n && stats->n < STAT_AT_ONCE; ++*at) {
        struct source_entry *entry = &list->entry[*at];

        if (entry->version || entry->error)
            continue;
        stats->entry[stats->n] = entry;
        stats->url[stats->n++] = entry->url;
    }
    if (stats->n)
        http_stat(source->http, stats->n, stats->url, stats->version, stats->error, stats->why);
    return use_stats(stats);
}

static int stat_all(const struct source *source, struct source_list *list)
{
    int r = 0;

    for (size_t at = 0; at < list->n && r == 0;)
        r = stat_some(source, list, &at);
    return r;
}

int remote_stat(struct source *source)
{
    return stat_all(source, &source->known);
}

int remote_set_file(struct source *source, const char *name, const char *url,
                    const struct remote_version *version)
{
    source->only_file = strdup(name);
    if (!source->only_file)
        return -ENOMEM;
    if (!url || !strchr(url, '?')) { /* a query is for this one file */
        int r = beside_new(&source->beside);

        if (r < 0)
            return r;
    }
    return remote_add(source, name, url, version, NULL);
}

static int copy_entry(const struct source_entry *from, struct source_list *ret)
{
    struct source_entry *to;
    int r = source_list_add(ret, from->folder, from->name, NULL, from->error);

    if (r < 0)
        return r;
    to = &ret->entry[ret->n - 1];
    to->failure = from->failure;
    to->url = from->url ? strdup(from->url) : NULL;
    to->version = from->version ? malloc(sizeof(*to->version)) : NULL;
    to->sha256 = from->sha256 ? malloc(SHA256_LEN) : NULL;
    if ((from->url && !to->url) || (from->version && !to->version) || (from->sha256 && !to->sha256))
        return -ENOMEM;
    if (to->version)
        *to->version = *from->version;
    if (to->sha256)
        memcpy(to->sha256, from->sha256, SHA256_LEN);
    return 0;
}

/* Names that side files of the one file may have. */
static int add_side_names(const struct source *source, const char *const *sides,
                          struct source_list *ret)
{
    static const char *const packed[] = {"", ".gz", ".xz"};
    const char *name = source->only_file;

    for (size_t i = 0; sides && sides[i]; i++) {
        for (size_t k = 0; k < ARRAY_LEN(packed); k++) {
            char side[NAME_MAX + 1];
            int r;

            if (snprintf(side, sizeof(side), "%.*s%s%s", (int)unpacked_name_len(name), name,
                         sides[i], packed[k]) >= (int)sizeof(side))
                continue;
            r = source_list_add(ret, "", side, NULL, NULL);
            if (r == 0)
                r = remote_url(source, side, &ret->entry[ret->n - 1].url);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

/* Add those of the side files that are there. */
static int add_sides(const struct source *source, const char *const *sides, struct source_list *ret)
{
    AUTO_SOURCE_LIST struct source_list found = {0};
    int r = add_side_names(source, sides, &found);

    if (r == 0)
        r = stat_all(source, &found);
    for (size_t i = 0; i < found.n && r == 0; i++)
        if (found.entry[i].version)
            r = copy_entry(&found.entry[i], ret);
    return r;
}

int remote_list_known(const struct source *source, const char *const *sides,
                      struct source_list *ret, struct diag *d)
{
    int r = 0;

    (void)d;
    for (size_t i = 0; i < source->known.n && r == 0; i++)
        r = copy_entry(&source->known.entry[i], ret);
    if (r == 0 && source->beside)
        r = add_sides(source, sides, ret);
    return r;
}

int remote_open(const struct source *source, const struct source_entry *entry,
                struct blob **ret_blob, struct diag *d)
{
    AUTO_FREE char *name = NULL, *key = strndup(entry->url, strcspn(entry->url, "?"));

    if (!key ||
        asprintf(&name, "%s%s%s", entry->folder, *entry->folder ? "/" : "", entry->name) < 0) {
        name = NULL;
        return -ENOMEM;
    }
    return stage_add(source->stage,
                     &(struct stage_file){.url = entry->url,
                                          .key = key,
                                          .name = name,
                                          .sha256 = entry->sha256,
                                          .version = entry->version,
                                          .mode = 0444,
                                          .uid = getuid(),
                                          .gid = getgid()},
                     ret_blob, d);
}
