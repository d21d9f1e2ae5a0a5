#include "cache/source/source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/checked.h"
#include "cache/disk/quota.h"
#include "cache/http/credentials.h"
#include "cache/pack/unpack.h"
#include "cache/source/remote.h"
#include "cache/source/shared_table.h"

#define WHOLE_MOST (UINT64_C(256) << 10) /* fetched whole: many small files at once */

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

void source_add_kinds(struct text *ret, const char *joint)
{
    for (size_t i = 0, n = 0; i < n_remotes; i++)
        if (remotes[i]->help)
            text_add(ret, "%s%s", n++ ? joint : "", remotes[i]->help);
}

static bool takes(const struct remote *remote, const char *spec)
{
    return remote->takes ? remote->takes(spec)
                         : !strncasecmp(spec, remote->scheme, strlen(remote->scheme));
}

static int source_refuse_scheme(const char *spec, struct diag *d)
{
    AUTO_TEXT struct text kinds = {0};

    source_add_kinds(&kinds, ", ");
    if (kinds.failed)
        return -ENOMEM;
    return diag_set(d, -EPROTONOSUPPORT, "%.500s: expected a path, or one of file://, %s", spec,
                    kinds.data);
}

int source_open(const char *spec, const struct source_options *options, struct source **ret,
                struct diag *d)
{
    AUTO_SOURCE struct source *source = calloc(1, sizeof(*source));
    size_t i = 0;
    int r;

    if (!source)
        return -ENOMEM;
    while (!takes(remotes[i], spec)) /* the last entry takes all */
        i++;
    if (i + 1 == n_remotes && strstr(spec, "://"))
        return source_refuse_scheme(spec, d);
    source->remote = remotes[i];
    source->within = (struct within){&source->roots, options->allow_outside, options->for_others};
    source->indexes = options->indexes;
    r = cache_folder_copy(options->cache, &source->cache);
    source->cache.quota = NULL; /* it has its own */
    if (r < 0)
        return r;
    r = remotes[i]->make(source, spec + strlen(remotes[i]->scheme), options, d);
    if (r == 0 && !source->stage && options->limits_all)
        r = quota_open(&source->cache, options->stage.limit, options->stage.limit_percent,
                       options->stage.clock, &source->quota, d);
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
    credentials_free(source->credentials); /* http, which used them, is gone */
    free(source->impl);
    known_release(&source->known);
    text_release(&source->note);
    text_release(&source->whole);
    if (source->shared)
        shared_table_release(source->shared);
    free(source->shared);
    free(source->shared_list);
    free(source->root);
    free(source->only_file);
    free(source->revision);
    free(source->commit);
    free(source->command);
    free(source->base);
    free(source->named);
    free(source->listing);
    texts_release(&source->roots);
    beside_free(source->beside);
    cache_folder_release(&source->cache);
    free(source);
}

const char *source_note(const struct source *source)
{
    return source->note.data ? source->note.data : "";
}

char *source_name(const struct source *source)
{
    const char *file = source->only_file ? source->only_file : "";
    const char *joint = *file && source->root[strlen(source->root) - 1] != '/' ? "/" : "";
    char *ret;

    text_print(&ret, "%s%s%s", source->root, joint, file);
    return ret;
}

void source_access(const struct source *source, const char *path, struct access *ret)
{
    *ret = (struct access){.uid = geteuid(), .gid = getegid(), .mode = 0555};
    if (source->within.for_others && source->remote->access)
        source->remote->access(source, path, ret);
}

int source_list(const struct source *source, const char *const *sides, struct source_list *ret,
                struct diag *d)
{
    int r =
        (source->remote->list ? source->remote->list : remote_list_known)(source, sides, ret, d);

    if (r < 0)
        source_list_release(ret);
    else if (!source->remote->ordered)
        source_list_sort(ret);
    return r;
}

int source_blob_packed(const struct source *source, const struct source_entry *entry,
                       struct blob **ret_blob, struct diag *d)
{
    if (entry->error)
        return diag_set(d, entry->failure, "%s", entry->error);
    return (source->remote->open ? source->remote->open : remote_open)(source, entry, ret_blob, d);
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
    if (entry->sha256 && !source->remote->pinned) /* it is compared before a reader gets bytes */
        whole = max_u64(whole, WHOLE_MOST);
    blob_fetch(blob, 0, blob->size <= whole ? blob->size : len, NULL);
}

void source_fetch_only(const struct source *source, const struct cache_folder *cache, uint64_t len,
                       uint64_t whole)
{
    AUTO_SOURCE_ENTRY struct source_entry entry = {0};

    if (source_only(source, &entry) == 0)
        source_fetch_head(source, &entry, cache, len, whole);
}

int source_only(const struct source *source, struct source_entry *ret)
{
    const struct known *known = &source->known;

    if (!source->only_file || known->files.n + known->failed.n != 1)
        return -ENOENT;
    return known->files.n ? known_entry(source, known, 0, ret)
                          : source_entry_copy(&known->failed.entry[0], ret);
}
