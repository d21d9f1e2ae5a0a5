#include "cache/source/roots.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "cache/source/source.h"

void path_normalise(char *path)
{
    const char *from = path;
    char *to = path; /* path .. to: normal, without a '/' at its end */

    while (*from) {
        size_t len = strcspn(++from, "/");

        if (len == 2 && !memcmp(from, "..", 2)) {
            while (to > path && *--to != '/')
                continue;
        } else if (len && !(len == 1 && *from == '.')) {
            *to++ = '/';
            memmove(to, from, len);
            to += len;
        }
        from += len;
    }
    if (to == path)
        *to++ = '/';
    *to = '\0';
}

int path_join(const char *a, size_t a_len, const char *b, char ret[static PATH_MAX])
{
    if (snprintf(ret, PATH_MAX, "%.*s/%s", (int)a_len, a, b) >= PATH_MAX)
        return -ENAMETOOLONG;
    path_normalise(ret);
    return 0;
}

void roots_release(struct roots *roots)
{
    for (size_t i = 0; i < roots->n; i++)
        free(roots->path[i]);
    free(roots->path);
    *roots = (struct roots){0};
}

int roots_add_path(struct roots *roots, const char *path)
{
    for (size_t i = 0; i < roots->n; i++)
        if (!strcmp(roots->path[i], path))
            return 0;
    if (array_capacity(&roots->path, roots->n, sizeof(*roots->path)) < 0)
        return -ENOMEM;
    roots->path[roots->n] = strdup(path);
    return roots->path[roots->n] ? (roots->n++, 0) : -ENOMEM;
}

/* Write the folder at path, or the folder that has path's last name. */
static void folder_of(const char *path, char ret[static PATH_MAX])
{
    struct stat st;
    char *slash;

    snprintf(ret, PATH_MAX, "%s", path);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return;
    slash = strrchr(ret, '/');
    if (slash)
        slash[slash == ret] = '\0';
    else
        snprintf(ret, PATH_MAX, ".");
}

int roots_add(struct roots *roots, const char *path)
{
    char here[PATH_MAX] = "", folder[PATH_MAX], spelled[PATH_MAX], real[PATH_MAX], same[PATH_MAX];
    int r;

    folder_of(path, folder);
    if (!realpath(folder, real))
        return errno == ENOENT ? 0 : -errno; /* a missing path has no files */
    if (*folder != '/' && !getcwd(here, sizeof(here)))
        return -errno;
    r = roots_add_path(roots, real);
    /* link/.. without its ".." is another folder, outside SOURCE. */
    if (r == 0 && path_join(here, strlen(here), folder, spelled) == 0 && realpath(spelled, same) &&
        !strcmp(real, same))
        r = roots_add_path(roots, spelled);
    return r;
}

int roots_init(struct roots *ret, const struct source *source)
{
    AUTO_ROOTS struct roots roots = {0};
    int r = source->remote->roots ? source->remote->roots(source, &roots) : 0;

    if (r < 0)
        return r;
    *ret = roots;
    roots = (struct roots){0};
    return 0;
}

const char *roots_inside(const struct roots *roots, const char *path)
{
    for (size_t i = 0; i < roots->n; i++) {
        size_t len = strlen(roots->path[i]);

        if (len == 1)
            return path + 1; /* the root is '/' */
        if (!strncmp(path, roots->path[i], len) && (!path[len] || path[len] == '/'))
            return path + len + (path[len] == '/');
    }
    return NULL;
}
