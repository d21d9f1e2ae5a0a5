#include "cache/named/opener.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cache/pack/unpack.h"
#include "cache/source/remote.h"

/* ---- which file a path in a file of SOURCE means ---- */

struct resolved {
    char path[PATH_MAX];      /* what to open: absolute, normalised */
    char in_source[PATH_MAX]; /* relative to the root; "": outside of SOURCE */
};

struct search {
    const struct cache_opener *opener;
    const char *wanted;
    struct resolved *found;
    char outside[PATH_MAX]; /* the first match that is outside of SOURCE; "": none */
};

/* Does the candidate lie in SOURCE? Its name there goes to in_source. */
static bool lies_in_source(const struct texts *roots, struct resolved *candidate)
{
    const char *named = roots_inside(roots, candidate->path), *inside = NULL;
    char real[PATH_MAX];

    if (realpath(candidate->path, real))
        inside = roots_inside(roots, real);
    named = named ? named : inside;
    snprintf(candidate->in_source, sizeof(candidate->in_source), "%s", named ? named : "");
    return inside != NULL;
}

/* Is the wanted file at that path? 1: it is; 0: no; or -errno. */
static int search_visit(void *user, const char *path)
{
    struct search *s = user;
    struct resolved *candidate = s->found;
    struct stat st;

    snprintf(candidate->path, sizeof(candidate->path), "%s", path);
    if (stat(candidate->path, &st) < 0) {
        if (errno == ENOENT || errno == ENOTDIR)
            return 0;
        return s->opener->opener.reads_outside ||
                       roots_inside(&s->opener->source->roots, candidate->path)
                   ? -errno
                   : 0;
    }
    if (lies_in_source(&s->opener->source->roots, candidate) || s->opener->opener.reads_outside)
        return 1;
    if (!*s->outside)
        snprintf(s->outside, sizeof(s->outside), "%s", candidate->path);
    return 0;
}

static int search(struct search *s, const char *folder)
{
    const struct texts *roots = &s->opener->source->roots;
    const char *cwd = *s->wanted == '/' ? "" : s->opener->cwd;
    char path[PATH_MAX];
    int r = 0;

    if (cwd && path_join(cwd, strlen(cwd), s->wanted, path) == 0)
        r = search_visit(s, path);
    for (size_t i = 0; *s->wanted != '/' && i < roots->n && r == 0; i++)
        r = path_upwards(roots->text[i], folder, s->wanted, search_visit, s);
    return r;
}

/* Find what a file in folder (relative to SOURCE) calls path. An absolute path is taken as it is. A
 * relative one is searched in cwd, as Kaldi does, then in folder and each folder above it up to
 * '/', so that a corpus can be moved. The nearest match counts; without allow_outside, the nearest
 * one in SOURCE.
 *
 * A file lies in SOURCE if its real path is below a root: links that leave SOURCE are not followed.
 * The caller must check this again when it opens the file (cache/source/within.h).
 *
 * 0; -ENOENT; -EACCES: found outside of SOURCE only; or -errno, with the reason in d. The result
 * need not be a regular file. */
static int resolve(const struct cache_opener *opener, const char *folder, const char *path,
                   struct resolved *ret, struct diag *d)
{
    struct search s = {.opener = opener, .wanted = path, .found = ret, .outside = ""};
    int r;

    if (!*path || strchr(path, '\n'))
        return diag_set(d, -EINVAL, "'%.500s': expected a path, got %s", path,
                        *path ? "a line end in it" : "nothing");
    r = search(&s, folder);
    if (r > 0)
        return 0;
    if (r < 0)
        return diag_set(d, r, "%.500s: %s", ret->path, strerror(-r));
    if (*s.outside)
        return diag_set(d, -EACCES,
                        "%.500s: lies outside of SOURCE; mount with -o allow_outside to read files "
                        "outside of SOURCE",
                        s.outside);
    return diag_set(d, -ENOENT, "%.500s: expected a file, got none%s", path,
                    *path == '/' ? ""
                                 : " where the mount was started, nor in the folder that names it "
                                   "or above");
}

/* ---- the opener ---- */

static struct cache_opener *cache_opener_of(const struct opener *opener)
{
    return (struct cache_opener *)(uintptr_t)opener; /* its head is constant, the rest has locks */
}

/* Open a local file: in place, or through the stage of a local source. */
static int open_local(struct cache_opener *opener, const char *folder, const char *path,
                      struct blob **ret, struct diag *d)
{
    struct stage *stage = opener->source->remote->far ? NULL : opener->source->stage;
    const struct within within = {&opener->source->roots, opener->opener.reads_outside,
                                  opener->source->within.for_others};
    struct resolved found;
    int r = resolve(opener, folder, path, &found, d);

    return r < 0 ? r
                 : local_blob_open(stage, &opener->pool, &within, found.path,
                                   *found.in_source ? found.in_source : found.path, ret, d);
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

static int cache_opener_unpack_file(const struct opener *opener, struct blob **blob, struct diag *d)
{
    const struct cache_opener *cache_opener = cache_opener_of(opener);

    return unpack_blob(blob, cache_opener->commands.cache, cache_opener->source->watch, d);
}

static const struct opener_ops cache_opener_ops = {
    cache_opener_file, cache_opener_kept,   cache_opener_start,      commands_poll,
    commands_stop,     cache_opener_unpack, cache_opener_unpack_file};

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
    };
    lazy_pool_init(&ret->pool);
    commands_init(&ret->commands, cache, &ret->pool, ret->cwd, options->allow_commands,
                  options->command_timeout, options->clock);
    return 0;
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
