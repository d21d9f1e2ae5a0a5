#include "cache/named/opener.h"

#include <errno.h>
#include <string.h>

#include "cache/disk/local_file.h"
#include "cache/pack/part.h"
#include "cache/source/remote.h"

static struct cache_opener *cache_opener_of(const struct opener *opener)
{
    return (struct cache_opener *)(uintptr_t)opener; /* its head is constant, the rest has locks */
}

/* Open a local file: in place, or through the stage of a local source. */
static int open_local(struct cache_opener *opener, const char *folder, const char *path,
                      struct blob **ret, struct diag *d)
{
    struct stage *stage = opener->source->remote->far ? NULL : opener->source->stage;
    const struct within within = {opener->resolver.roots, opener->resolver.allow_outside,
                                  opener->source->within.for_others};
    struct resolved found;
    const char *name;
    unsigned mode = 0;
    struct stat st;
    int fd = -1, r = resolve(&opener->resolver, folder, path, &found, d);

    if (r < 0)
        return r;
    name = *found.in_source ? found.in_source : found.path;
    if (stage)
        return local_blob_open(stage, &within, found.path, name, ret, d);
    r = file_open(found.path, &fd, &st);
    if (r == 0) {
        r = within_check(&within, fd, found.path, name, d);
        if (r < 0) {
            close(fd);
            return r;
        }
        mode = within_mode(&within, fd, found.path, NULL, &st);
    }
    if (r == 0)
        r = lazy_blob_new(&opener->pool, fd, found.path, name, UINT64_MAX, false, ret);
    if (r == 0)
        (*ret)->mode &= mode;
    return r < 0 ? diag_set(d, r, "%.500s: %s", found.path,
                            r == -EINVAL ? "expected a regular file" : strerror(-r))
                 : 0;
}

static int cache_opener_file(const struct opener *opener, const char *folder, const char *path,
                             struct blob **ret, struct diag *d)
{
    struct cache_opener *cache_opener = cache_opener_of(opener);
    const struct source *source = cache_opener->source;
    AUTO_SOURCE_ENTRY struct source_entry entry = {0};
    int r;

    if (!source->remote->far || (*path == '/' && opener->reads_outside))
        return open_local(cache_opener, folder, path, ret, d);
    r = remote_find(source, folder, path, &entry, d);
    return r < 0 ? r : source_blob_packed(source, &entry, ret, d);
}

static int cache_opener_kept(const struct opener *opener, const char *command, struct blob **ret)
{
    return commands_kept(&cache_opener_of(opener)->commands, command, ret);
}

static int cache_opener_start(const struct opener *opener, const char *command,
                              struct opener_run **ret, struct diag *d)
{
    return commands_start(&cache_opener_of(opener)->commands, command, ret, d);
}

static int cache_opener_unpack(const struct opener *opener, const struct blob *blob,
                               const struct packed_part *part, struct blob **ret, struct diag *d)
{
    const struct cache_opener *cache_opener = cache_opener_of(opener);

    return unpack_part(blob, part, cache_opener->commands.cache, cache_opener->source->watch, ret,
                       d);
}

static const struct opener_ops cache_opener_ops = {cache_opener_file,  cache_opener_kept,
                                                   cache_opener_start, commands_poll,
                                                   commands_stop,      cache_opener_unpack};

int cache_opener_init(struct cache_opener *ret, const struct source *source,
                      const struct cache_folder *cache, const struct cache_opener_options *options)
{
    AUTO_FREE char *cwd = options->cwd ? strdup(options->cwd) : NULL;

    if (options->cwd && !cwd)
        return -ENOMEM;
    *ret = (struct cache_opener){
        .opener = {&cache_opener_ops, options->allow_commands, options->allow_outside},
        .source = source,
        .cwd = TAKE_PTR(cwd),
        .resolver = {.roots = &source->roots, .allow_outside = options->allow_outside},
    };
    ret->resolver.cwd = ret->cwd;
    lazy_pool_init(&ret->pool);
    commands_init(&ret->commands, cache, &ret->pool, ret->cwd, options->allow_commands,
                  options->command_timeout, options->clock);
    return 0;
}

void cache_opener_pause(struct cache_opener *opener, bool paused)
{
    opener->commands.paused = paused;
}

void cache_opener_release(struct cache_opener *opener)
{
    if (!opener->opener.ops)
        return;
    commands_release(&opener->commands);
    lazy_pool_release(&opener->pool);
    free(opener->cwd);
    opener->opener.ops = NULL;
}
