#include "cache/source/source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/array.h"
#include "base/checked.h"
#include "cache/disk/quota.h"
#include "cache/http/credentials.h"
#include "cache/http/netrc.h"
#include "cache/pack/unpack.h"
#include "cache/source/beside.h"

#define WHOLE_MOST (UINT64_C(256) << 10) /* of many files at once */

extern const struct remote remote_list, remote_file, remote_local, remote_http, remote_https,
    remote_s3;

/* The first that takes SOURCE has it. */
static const struct remote *const remotes[] = {&remote_http, &remote_https, &remote_s3,
                                               &remote_list, &remote_file,  &remote_local};

void source_options_init(struct source_options *ret, const struct cache_folder *cache)
{
    *ret = (struct source_options){
        .cache = cache,
        .stage = {.keep = STAGE_PIN,
                  .limit_percent = 80,
                  .jobs = 8,
                  .small_jobs = 128,
                  .far_ms = 2,
                  .retry_limit_s = 60,
                  .background = true,
                  .is_done = unpack_is_done},
        .timeout_s = 20,
    };
}

static bool takes(const struct remote *remote, const char *spec)
{
    return remote->takes ? remote->takes(spec)
                         : !strncasecmp(spec, remote->scheme, strlen(remote->scheme));
}

int source_open(const char *spec, const struct source_options *options, struct source **ret,
                struct diag *d)
{
    AUTO_SOURCE struct source *source = calloc(1, sizeof(*source));
    size_t i = 0;
    int r;

    if (!source)
        return -ENOMEM;
    while (!takes(remotes[i], spec)) /* the last one takes all */
        i++;
    source->remote = remotes[i];
    source->within = (struct within){&source->roots, options->allow_outside, options->for_others};
    source->cache.is_default = options->cache->is_default;
    source->cache.path = strdup(options->cache->path);
    if (!source->cache.path)
        return -ENOMEM;
    r = remotes[i]->make(source, spec + strlen(remotes[i]->scheme), options, d);
    if (r == 0 && !source->stage && options->limits_all)
        r = quota_open(&source->cache, options->stage.limit, options->stage.limit_percent,
                       &source->quota, d);
    if (r < 0)
        return r;
    source->cache.quota = source->stage ? stage_quota(source->stage) : source->quota;
    *ret = TAKE_PTR(source);
    return 0;
}

void source_free(struct source *source)
{
    if (!source)
        return;
    stage_free(source->stage);
    quota_close(source->quota);
    credentials_free(source->credentials); /* whose requests http has made */
    source_list_release(&source->known);
    text_release(&source->note);
    free(source->root);
    free(source->spelled);
    free(source->only_file);
    free(source->base);
    free(source->listing);
    roots_release(&source->roots);
    beside_free(source->beside);
    cache_folder_release(&source->cache);
    free(source);
}

const char *source_note(const struct source *source)
{
    return source->note.data ? source->note.data : "";
}

/* The host of a URL that url_clean() has made, without its port. */
static void host_of(const char *url, char *ret, size_t capacity)
{
    const char *host = strstr(url, "://") + 3;
    size_t len = strcspn(host, "/?");

    for (size_t at = len; at-- > 0 && host[at] != ']';)
        if (host[at] == ':')
            len = at;
    snprintf(ret, capacity, "%.*s", (int)min_u64(len, 255), host);
}

void source_credentials(const struct source *source, char *ret, size_t capacity)
{
    char host[256];

    *ret = '\0';
    if (source->credentials) {
        credentials_origin(source->credentials, ret, capacity);
    } else if (source->remote->far) {
        host_of(source->root, host, sizeof(host));
        if (netrc_file_names(host))
            snprintf(ret, capacity, "machine %s of ~/.netrc", host);
    }
}

char *source_name(const struct source *source)
{
    const char *file = source->only_file ? source->only_file : "";
    const char *joint = *file && source->root[strlen(source->root) - 1] != '/' ? "/" : "";
    char *ret;

    return asprintf(&ret, "%s%s%s", source->root, joint, file) < 0 ? NULL : ret;
}

void source_access(const struct source *source, const char *path, struct access *ret)
{
    *ret = (struct access){.uid = geteuid(), .gid = getegid(), .mode = 0555};
    if (source->within.for_others && source->remote->access)
        source->remote->access(source, path, ret);
}

static int compare_entries(const void *a, const void *b)
{
    const struct source_entry *x = a, *y = b;
    int by_folder = strcmp(x->folder, y->folder);

    return by_folder ? by_folder : strcmp(x->name, y->name);
}

void source_list_sort(struct source_list *list)
{
    if (list->n)
        qsort(list->entry, list->n, sizeof(list->entry[0]), compare_entries);
}

/* Is the entry before the file called name in a folder whose path has folder_len bytes? As
 * strcmp(). */
static int compare_to(const struct source_entry *entry, const char *folder, size_t folder_len,
                      const char *name)
{
    int by_folder = strncmp(entry->folder, folder, folder_len);

    if (!by_folder && entry->folder[folder_len])
        by_folder = 1;
    return by_folder ? by_folder : strcmp(entry->name, name);
}

struct source_entry *source_list_find(const struct source_list *list, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t folder_len = slash ? (size_t)(slash - path) : 0, low = 0, high = list->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_to(&list->entry[middle], path, folder_len, name);

        if (!order)
            return &list->entry[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

int source_list(const struct source *source, const char *const *sides, struct source_list *ret,
                struct diag *d)
{
    AUTO_SOURCE_LIST struct source_list list = {0};
    int r = source->remote->list(source, sides, &list, d);

    if (r < 0)
        return r;
    if (!source->remote->ordered)
        source_list_sort(&list);
    *ret = list;
    list = (struct source_list){0};
    return 0;
}

int source_list_add(struct source_list *list, const char *folder, const char *name,
                    const char *path, const char *error)
{
    struct source_entry *entry;

    if (array_capacity(&list->entry, list->n, sizeof(*entry)) < 0)
        return -ENOMEM;
    entry = &list->entry[list->n++];
    *entry = (struct source_entry){0};
    entry->folder = strdup(folder);
    entry->name = strdup(name);
    entry->path = path ? strdup(path) : NULL;
    entry->error = error ? strdup(error) : NULL;
    entry->failure = error ? -EINVAL : 0;
    return entry->folder && entry->name && (!path || entry->path) && (!error || entry->error)
               ? 0
               : -ENOMEM;
}

void source_entry_release(struct source_entry *entry)
{
    free(entry->folder);
    free(entry->name);
    free(entry->path);
    free(entry->error);
    free(entry->url);
    free(entry->version);
    free(entry->sha256);
    *entry = (struct source_entry){0};
}

void source_list_release(struct source_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        source_entry_release(&list->entry[i]);
    free(list->entry);
    *list = (struct source_list){0};
}

int source_blob_packed(const struct source *source, const struct source_entry *entry,
                       struct blob **ret_blob, struct diag *d)
{
    if (entry->error)
        return diag_set(d, entry->failure, "%s", entry->error);
    return source->remote->open(source, entry, ret_blob, d);
}

int source_blob(const struct source *source, const struct source_entry *entry,
                struct cache_folder *cache, struct blob **ret_blob, struct diag *d)
{
    AUTO_BLOB struct blob *blob = NULL;
    int r = source_blob_packed(source, entry, &blob, d);

    if (r < 0)
        return r;
    r = unpack_blob(&blob, cache, source->watch, d);
    if (r < 0)
        return r;
    *ret_blob = TAKE_PTR(blob);
    return 0;
}

void source_fetch_head(const struct source *source, const struct source_entry *entry,
                       const struct cache_folder *cache, uint64_t len, uint64_t whole)
{
    AUTO_BLOB struct blob *blob = NULL;

    if (!source->stage || source_blob_packed(source, entry, &blob, NULL) < 0 ||
        unpack_find(&blob, cache, NULL) != -ENOENT)
        return;
    if (entry->sha256) /* it is compared before anything of it is read */
        whole = max_u64(whole, WHOLE_MOST);
    blob_fetch(blob, 0, blob->size <= whole ? blob->size : len, NULL);
}

void source_fetch_only(const struct source *source, const struct cache_folder *cache, uint64_t len,
                       uint64_t whole)
{
    if (source->only_file && source->known.n == 1)
        source_fetch_head(source, &source->known.entry[0], cache, len, whole);
}
