/* A list of local files, as dmlc takes it: elements with ';' between them.
 *
 * An element is a path, with or without file:// before it: a file; a folder, which means the files
 * in it, sorted, without folders below and hidden files; or, if nothing has that name, a regular
 * expression for whole names of files in its folder. Empty files are omitted. dmlc:
 * src/io/input_split_base.cc, ConvertToURIs(). */
#include <errno.h>
#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/folder.h"
#include "cache/source/source.h"
#include "cache/source/within.h"

static const char *without_scheme(const char *element)
{
    return strncmp(element, "file://", 7) != 0 ? element : element + 7;
}

/* An existing file with a ';' in its name is not a list. */
static bool list_takes(const char *spec)
{
    struct stat st;

    if (stat(without_scheme(spec), &st) == 0)
        return false;
    /* A single element may be a regular expression, but is hardly a mistyped path. */
    return strchr(spec, ';') || (strpbrk(spec, "*+[]()|$") && !strstr(spec, "://"));
}

/* Call use() for each element; its result other than 0 ends that. 0, the result, or -ENOMEM. */
static int list_each(const char *list, int (*use)(void *user, const char *element, struct diag *d),
                     void *user, struct diag *d)
{
    AUTO_FREE char *elements = strdup(list);
    char *at = elements, *element;
    int r = elements ? 0 : -ENOMEM;

    while (r == 0 && (element = strsep(&at, ";")))
        r = *element ? use(user, element, d) : 0;
    return r;
}

static int list_add_root(void *roots, const char *element, struct diag *d)
{
    (void)d;
    return roots_add(roots, without_scheme(element));
}

/* A file that the list names may be read wherever it lies: its own path is a root. */
static int list_add_link(void *roots, const char *element, struct diag *d)
{
    char real[PATH_MAX];

    (void)d;
    return realpath(without_scheme(element), real) && !roots_inside(roots, real)
               ? roots_add_path(roots, real)
               : 0;
}

static int list_make(struct source *source, const char *spec, const struct source_options *options,
                     struct diag *d)
{
    int r;

    source->root = strdup(spec);
    r = source->root ? list_each(spec, list_add_root, &source->roots, d) : -ENOMEM;
    if (r == 0)
        r = list_each(spec, list_add_link, &source->roots, d);
    return r < 0 ? diag_set(d, r, "%s: %s", spec, strerror(-r))
                 : local_stage_new(source, options, d);
}

static int list_add_file(struct source_list *list, const char *path, const struct stat *st)
{
    return st->st_size ? source_list_add(list, path_name(path), path, NULL, 0) : 0;
}

/* Add the files of a folder except hidden ones: all, or those that match the pattern. */
static int list_add_folder(struct source_list *list, const char *folder, const regex_t *pattern,
                           struct diag *d)
{
    AUTO_DIR DIR *dir = opendir(folder);
    const char *name;
    size_t first = list->n;

    if (!dir)
        return diag_set(d, -errno, "%s: %s", folder, strerror(errno));
    while ((name = folder_next(dir))) {
        char path[PATH_MAX];
        struct stat st;
        int r;

        if (*name == '.' || (pattern && regexec(pattern, name, 0, NULL, 0)) ||
            snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path) ||
            stat(path, &st) < 0 || !S_ISREG(st.st_mode))
            continue;
        r = list_add_file(list, path, &st);
        if (r < 0)
            return r;
    }
    if (list->n > first)
        source_list_sort(&(struct source_list){list->n - first, list->entry + first});
    return 0;
}

/* Add the matches of an element that is neither a file nor a folder. */
static int add_pattern(struct source_list *list, const char *element, struct diag *d)
{
    const char *slash = strrchr(element, '/');
    size_t first = list->n;
    char folder[PATH_MAX] = ".", whole[PATH_MAX + 8];
    regex_t pattern;
    int r;

    if (slash)
        snprintf(folder, sizeof(folder), "%.*s", (int)(slash > element ? slash - element : 1),
                 element);
    snprintf(whole, sizeof(whole), "^(%s)$", path_name(element));
    if (regcomp(&pattern, whole, REG_EXTENDED | REG_NOSUB) != 0)
        return diag_set(d, -ENOENT, "%s: expected a file, a folder, or a regular expression",
                        element);
    r = list_add_folder(list, folder, &pattern, d);
    regfree(&pattern);
    return r == 0 && list->n == first
               ? diag_set(d, -ENOENT,
                          "%s: no file has that name, or matches it as a regular expression",
                          element)
               : r;
}

static int add_element(void *user, const char *element, struct diag *d)
{
    struct source_list *list = user;
    const char *path = without_scheme(element);
    struct stat st;

    if (strstr(path, "://"))
        return diag_set(d, -EPROTONOSUPPORT, "%s: a list takes paths and file:// only", element);
    if (stat(path, &st) < 0)
        return add_pattern(list, path, d);
    return S_ISDIR(st.st_mode) ? list_add_folder(list, path, NULL, d)
                               : list_add_file(list, path, &st);
}

/* Add the side files of all files that the elements name. */
static int list_add_sides(const char *const *sides, struct source_list *list)
{
    size_t n = list->n;
    int r = 0;

    for (size_t i = 0; i < n && r == 0; i++) {
        const char *path = list->entry[i].path, *slash = strrchr(path, '/');
        AUTO_FREE char *folder = slash ? strndup(path, (size_t)(slash - path)) : strdup(".");

        if (!folder)
            return -ENOMEM;
        r = local_add_sides(slash == path ? "/" : folder, list->entry[i].name, sides, true, list);
    }
    return r;
}

static int list_list(const struct source *source, const char *const *sides, struct source_list *ret,
                     struct diag *d)
{
    int r = list_each(source->root, add_element, ret, d);

    return r < 0 ? r : list_add_sides(sides, ret);
}

static int list_open(const struct source *source, const struct source_entry *entry,
                     struct blob **ret_blob, struct diag *d)
{
    return local_blob_open(source->stage, NULL, &source->within, entry->path, entry->path, ret_blob,
                           d);
}

/* Where an unreadable file lies is unknown: only the user that mounts may know why. */
static void list_access(const struct source *source, const char *path, struct access *ret)
{
    (void)source;
    if (*path)
        ret->mode = 0400;
}

const struct remote remote_list = {
    .scheme = "",
    .takes = list_takes,
    .ordered = true,
    .make = list_make,
    .list = list_list,
    .open = list_open,
    .access = list_access,
};
