#include "fs/engine/opened.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cache/disk/folder_disk.h"
#include "cache/disk/inventory.h"
#include "cache/pack/unpack.h"
#include "fs/life/mounts.h"
#include "fs/life/privileges.h"
#include "fs/log/log.h"

/* EIO counts, because remotes fail with other errors. */
bool is_cache_error(int r)
{
    return r == -ENOSPC || r == -EDQUOT || r == -EPROTO || r == -EROFS || r == -EIO ||
           r == -EBUSY || r == -EISDIR;
}

const char *shown_source(const char *spec, char ret[static PATH_MAX])
{
    bool is_url = !strncasecmp(spec, "http://", 7) || !strncasecmp(spec, "https://", 8);

    snprintf(ret, PATH_MAX, "%.*s", (int)(is_url ? strcspn(spec, "?") : strlen(spec)), spec);
    return ret;
}

/* Every source file keeps a descriptor open. */
static void raise_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

void opened_release(struct opened *opened)
{
    catalog_release(&opened->catalog);
    source_free(opened->source);
    cache_folder_release(&opened->cache);
    *opened = (struct opened){0};
}

static bool is_far(const char *spec)
{
    return strstr(spec, "://") && strncasecmp(spec, "file://", 7) != 0;
}

/* A slip: there are a million files in a mount. Or the daemon of a mount does not answer. */
static enum opened_failure check_mounts(const char *spec, int *ret_error, struct diag *d)
{
    const char *path = strncasecmp(spec, "file://", 7) == 0 ? spec + 7 : spec;
    bool is_mountpoint;

    if (is_far(spec))
        return OPENED_ALL;
    *ret_error = mounts_check(path, &is_mountpoint, d);
    if (*ret_error < 0)
        return OPENED_NO_MOUNT;
    if (!is_mountpoint)
        return OPENED_ALL;
    *ret_error =
        diag_set(d, -EINVAL,
                 "%s: expected a source, got the mountpoint of an epochfs; `epochfs status` names "
                 "its source",
                 spec);
    return OPENED_NO_SOURCE;
}

/* If files are certain to be put into the cache folder, make it now, so that its errors are
 * reported as such. */
static int make_cache_folder(const char *spec, const struct options *options,
                             const struct cache_folder *cache, struct diag *d)
{
    static const char *const subs[] = {"unpacked", "staged"};
    char path[PATH_MAX];
    int r = 0;

    if (!options->cache && !options->stages_local && !is_far(spec))
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(subs) && r == 0; i++) {
        r = cache_folder_sub(cache, subs[i], path, sizeof(path), d);
        if (r == 0 && access(path, R_OK | W_OK | X_OK) < 0)
            r = diag_set(d, -errno,
                         "cache folder %s: %s cannot be written: %s; choose another with "
                         "-o cache_dir=DIR",
                         cache->path, subs[i], strerror(errno));
    }
    return r;
}

/* Say it once if the default folder is a poor place for what is fetched. */
static void warn_of_disk(const char *spec, const struct cache_folder *cache,
                         void (*warn)(const char *text))
{
    char text[FOLDER_DISK_SIZE];

    if (warn && is_far(spec) && folder_disk_warning(cache, &disk_probe_system, text, sizeof(text)))
        warn(text);
}

/* This version does not use the files of the cache folder that versions with other ids made. */
static void remove_older(const struct cache_folder *cache, const struct opened_for *whom)
{
    uint64_t bytes, n = inventory_remove_older(cache, &bytes);

    if (n && whom->removed)
        whom->removed(cache->path, n, bytes);
}

enum opened_failure opened_source(const char *spec, const struct options *options,
                                  const struct opened_for *whom, struct opened *opened,
                                  int *ret_error, struct diag *d)
{
    struct source_options how;
    char shown[PATH_MAX];
    enum opened_failure failure = check_mounts(spec, ret_error, d);
    int r;

    if (failure != OPENED_ALL)
        return failure;
    r = cache_folder_init(&opened->cache, options->cache);
    if (r == 0)
        r = make_cache_folder(spec, options, &opened->cache, d);
    *ret_error = r;
    if (r < 0)
        return OPENED_NO_CACHE;
    warn_of_disk(spec, &opened->cache, whom->warn);
    remove_older(&opened->cache, whom);
    if (whom->owns_process) {
        raise_file_limit();
        if (is_far(spec)) /* it may need credentials */
            privileges_hide_memory();
    }
    options_source(options, &opened->cache, &how);
    r = source_open(spec, &how, &opened->source, d);
    *ret_error = r;
    if (r < 0) {
        diag_set(d, r, "%s: %s", shown_source(spec, shown), strerror(-r));
        return is_cache_error(r) ? OPENED_NO_CACHE : OPENED_NO_SOURCE;
    }
    if (whom->via)
        source_listen_via(opened->source, whom->via);
    opened->cache.quota = opened->source->cache.quota;
    return OPENED_ALL;
}

static void opened_log(void *ctx, const char *text)
{
    (void)ctx;
    log_warning("%s", text);
}

enum opened_failure opened_catalog(const char *spec, const struct options *options,
                                   const struct opened_for *whom, struct opened *opened,
                                   int *ret_error, struct diag *d)
{
    enum opened_failure failure = opened_source(spec, options, whom, opened, ret_error, d);
    char shown[PATH_MAX];
    int r;

    if (failure != OPENED_ALL)
        return failure;
    opened->source->watch = whom->watch;
    opened->source->notices =
        whom->notices.say ? whom->notices : (struct notices){opened_log, NULL};
    r = catalog_open(opened->source, options, &opened->catalog, d);
    opened->source->watch = NULL;
    *ret_error = r;
    if (r == 0)
        return OPENED_ALL;
    diag_set(d, r, "%s: %s", shown_source(spec, shown), strerror(-r));
    /* The cache folder may have become unusable meanwhile, and no file usable without it. */
    return make_cache_folder(spec, options, &opened->cache, &(struct diag){0}) < 0
               ? OPENED_NO_CACHE
               : OPENED_NO_SOURCE;
}
