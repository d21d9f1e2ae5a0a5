/* Local sources: a path, with or without file:// before it. Files are read in place, with pread()
 * and never by mapping: a file that shrinks under a mapping kills its reader. Or they are staged:
 * for a path on a parallel file system that pays. */
#include "cache/source/source.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/disk/local_blob.h"
#include "cache/disk/local_file.h"
#include "cache/pack/unpack.h"
#include "cache/source/hf_local.h"
#include "cache/source/joined_transport.h"
#include "cache/source/listing.h"
#include "cache/source/path_transport.h"
#include "cache/source/within.h"

/* Is name in the list already? A list may name side files itself. */
static bool is_listed(const struct source_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (!strcmp(list->entry[i].name, name))
            return true;
    return false;
}

int local_add_sides(const char *folder, const char *name, const char *const *sides, bool list_paths,
                    struct source_list *ret)
{
    const char *packed;

    for (size_t i = 0; sides[i]; i++) {
        for (size_t k = 0; (packed = packed_suffix(k)); k++) {
            char side[NAME_MAX + 1], path[PATH_MAX];
            struct stat st;
            int r;

            if (snprintf(side, sizeof(side), "%.*s%s%s", (int)unpacked_name_len(name), name,
                         sides[i], packed) >= (int)sizeof(side) ||
                path_below(folder, side, path) < 0 || stat(path, &st) < 0 || !S_ISREG(st.st_mode) ||
                is_listed(ret, side))
                continue;
            r = source_list_add(ret, side, list_paths ? path : NULL, NULL, 0);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

static int local_list(const struct source *source, const char *const *sides,
                      struct source_list *ret, struct diag *d)
{
    AUTO_KNOWN struct known listing = {0};
    int r;

    if (source->only_file) {
        r = source_list_add(ret, source->only_file, NULL, NULL, 0);

        return r < 0 ? r : local_add_sides(source->root, source->only_file, sides, false, ret);
    }
    r = listing_scan(source, &listing, d);
    return r < 0 ? r : known_list(source, &listing, NULL, ret);
}

int local_stage_new(struct source *source, const struct source_options *options, struct diag *d)
{
    struct stage_options stage = options->stage;
    struct transport *transport;
    int r;

    if (!options->stages_local)
        return 0;
    stage.small_jobs = 0; /* each transfer is a thread */
    r = path_transport_new(stage.jobs, &transport);
    if (r == 0)
        r = joined_transport_new(transport, stage.jobs, &source->joins);
    if (r == 0)
        r = stage_new(&stage, &source->cache, source->joins, &source->stage, d);
    if (r < 0)
        source->joins = NULL;
    return r;
}

/* Stage the file with its real path as URL: so it is staged once, whatever it is called, and it is
 * not opened if that path has links by then. */
static int stage_path(struct stage *stage, const struct within *within, const char *path,
                      const char *name, struct blob **ret, struct diag *d)
{
    struct remote_version version = {0};
    struct file_version local;
    AUTO_CLOSE int fd = -1;
    char real[PATH_MAX];
    struct stat st;
    int r;

    if (!realpath(path, real) || stat(real, &st) < 0)
        return diag_set(d, -errno, "%s: %s", name, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return diag_set(d, -EINVAL, "%s: expected a regular file", name);
    r = within_check_real(within, real, name, d);
    if (r < 0)
        return r;
    if (stage_is_shared(stage)) /* others may have staged a file that this user may not read */
        r = file_open(real, &fd, &st);
    if (r < 0)
        return diag_set(d, r, "%s: %s", name, strerror(-r));
    local = file_version_of(&st);
    version.size = local.size;
    version.mtime = local.mtime;
    file_version_print(&local, version.etag);
    return stage_add(stage,
                     &(struct stage_file){.url = real,
                                          .key = real,
                                          .name = name,
                                          .version = &version,
                                          .mode = within_mode(within, -1, path, real, &st),
                                          .uid = st.st_uid,
                                          .gid = st.st_gid},
                     ret, d);
}

int local_blob_open(struct stage *stage, struct lazy_pool *pool, const struct within *within,
                    const char *path, const char *name, struct blob **ret, struct diag *d)
{
    const char *shown = pool ? path : name;
    AUTO_CLOSE int fd = -1;
    struct stat st;
    const char *hash;
    unsigned mode;
    int r;

    if (stage)
        return stage_path(stage, within, path, name, ret, d);
    r = file_open(path, &fd, &st);
    if (r < 0)
        return diag_set(d, r, "%.500s: %s", shown,
                        r == -EINVAL ? "expected a regular file" : strerror(-r));
    r = within_check(within, fd, path, name, d);
    if (r < 0)
        return r;
    mode = within_mode(within, fd, path, NULL, &st);
    r = pool ? lazy_blob_new(pool, TAKE_FD(fd), path, name, UINT64_MAX, false, ret)
             : local_blob_new(TAKE_FD(fd), name, UINT64_MAX, false, ret);
    if (r < 0)
        return diag_set(d, r, "%.500s: %s", shown, strerror(-r));
    (*ret)->mode &= mode;
    if (pool)
        return 0;
    (*ret)->source = realpath(path, NULL); /* NULL: the name must do */
    /* Only the user's own files are believed to have the name that their bytes give them. */
    hash = (*ret)->source && st.st_uid == geteuid() ? hf_cache_hash((*ret)->source) : NULL;
    (*ret)->etag = hash ? strdup(hash) : NULL;
    return 0;
}

static int local_open(const struct source *source, const struct source_entry *entry,
                      struct blob **ret_blob, struct diag *d)
{
    char relative[PATH_MAX], path[PATH_MAX];

    if (path_below(entry->folder, entry->name, relative) < 0 ||
        path_below(source->root, relative, path) < 0)
        return diag_set(d, -ENAMETOOLONG, "%s/%s: path too long", entry->folder, entry->name);
    return local_blob_open(source->stage, NULL, &source->within, path, relative, ret_blob, d);
}

/* There is no such file. XGBoost takes FILE?format=libsvm and FILE#CACHE, for which FILE is meant.
 */
static int local_is_missing(const char *spec, int error, struct diag *d)
{
    const char *end = strstr(spec, "?format=");
    char plain[PATH_MAX];

    end = end ? end : strrchr(spec, '#');
    snprintf(plain, sizeof(plain), "%.*s", end ? (int)(end - spec) : 0, spec);
    return access(plain, F_OK)
               ? diag_set(d, -error, "%s: %s", spec, strerror(error))
               : diag_set(d, -error,
                          "%s: %s; expected the path alone: the format is found by content, -o "
                          "index_base= says where indexes start, and -o cache= where a cache is. "
                          "Give %.200s",
                          spec, strerror(error), plain);
}

static int local_make(struct source *source, const char *spec, const struct source_options *options,
                      struct diag *d)
{
    char blobs[PATH_MAX], commit[41], *slash;
    struct stat st;
    int r;

    source->root = realpath(spec, NULL);
    if (!source->root || stat(source->root, &st) < 0)
        return local_is_missing(spec, errno, d);
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return diag_set(d, -EINVAL, "%s: expected a folder or a file", spec);
    if (S_ISREG(st.st_mode)) {
        slash = strrchr(source->root, '/');
        source->only_file = strdup(slash + 1);
        if (!source->only_file)
            return -ENOMEM;
        slash[slash == source->root] = '\0';
    }
    r = roots_add(&source->roots, source->root);
    if (r == 0)
        r = roots_add(&source->roots, spec);
    if (r == 0 && hf_cache_of_path(source->root, commit, blobs) && !access(blobs, F_OK)) {
        if (!source->commit)
            source->commit = strdup(commit);
        /* Links of a snapshot lead to its own files. A link in the place of that folder does not
         * count: what it leads to may be anything. */
        r = roots_add_path(&source->roots, blobs);
    }
    if (r < 0)
        return diag_set(d, r, "%s: %s", spec, strerror(-r));
    return local_stage_new(source, options, d);
}

/* If SOURCE is one file, no user needs to list its folder. */
static void local_access(const struct source *source, const char *path, struct access *ret)
{
    char whole[PATH_MAX], below[PATH_MAX];
    struct stat st;

    if (path_below(source->root, path, whole) < 0) {
        ret->mode = 0;
        return;
    }
    access_of(&source->roots, whole, ret);
    if (*path || !source->only_file || stat(whole, &st) < 0)
        return;
    *ret = (struct access){.uid = st.st_uid, .gid = st.st_gid};
    if (path_below(whole, source->only_file, below) == 0)
        ret->mode = access_on_way(&source->roots, below, below, st.st_uid, st.st_gid);
    ret->mode |= ret->mode >> 2;
}

/* file:///path, file://localhost/path. */
static int file_make(struct source *source, const char *spec, const struct source_options *options,
                     struct diag *d)
{
    static const char here[] = "localhost/";

    if (!strncasecmp(spec, here, sizeof(here) - 1))
        spec += sizeof(here) - 2;
    if (*spec != '/')
        return diag_set(
            d, -EINVAL,
            "file://%.500s: expected file:// and an absolute path, as file:///data, got "
            "the host or folder '%.*s'; mount a path of this machine",
            spec, (int)strcspn(spec, "/"), spec);
    return local_make(source, spec, options, d);
}

#define LOCAL_REMOTE(prefix, maker)                                                                \
    {                                                                                              \
        .scheme = prefix, .make = maker, .list = local_list, .open = local_open,                   \
        .access = local_access                                                                     \
    }

const struct remote remote_file = LOCAL_REMOTE("file://", file_make);
const struct remote remote_local = LOCAL_REMOTE("", local_make);
