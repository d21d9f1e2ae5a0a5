#include "cache/named/resolve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct search {
    const struct resolver *resolver;
    const char *wanted;
    struct resolved *found;
    char outside[PATH_MAX]; /* the first match that is outside of SOURCE; "": none */
};

/* Does the candidate lie in SOURCE? Its name there goes to in_source. */
static bool lies_in_source(const struct roots *roots, struct resolved *candidate)
{
    const char *named = roots_inside(roots, candidate->path), *inside = NULL;
    char real[PATH_MAX];

    if (realpath(candidate->path, real))
        inside = roots_inside(roots, real);
    named = named ? named : inside;
    snprintf(candidate->in_source, sizeof(candidate->in_source), "%s", named ? named : "");
    return inside != NULL;
}

/* Is the wanted path there, relative to folder? 1: found; 0: no; or -errno. */
static int try_folder(struct search *s, const char *folder, size_t len)
{
    struct resolved *candidate = s->found;
    struct stat st;

    if (path_join(folder, len, s->wanted, candidate->path) < 0)
        return 0;
    if (stat(candidate->path, &st) < 0) {
        if (errno == ENOENT || errno == ENOTDIR)
            return 0;
        return s->resolver->allow_outside || roots_inside(s->resolver->roots, candidate->path)
                   ? -errno
                   : 0;
    }
    if (lies_in_source(s->resolver->roots, candidate) || s->resolver->allow_outside)
        return 1;
    if (!*s->outside)
        snprintf(s->outside, sizeof(s->outside), "%s", candidate->path);
    return 0;
}

/* The same relative to folder of the root, and to each folder above it. */
static int try_upwards(struct search *s, const char *root, const char *folder)
{
    char base[PATH_MAX];
    size_t len;
    int r;

    if (path_join(root, strlen(root), folder, base) < 0)
        return 0;
    len = base[1] ? strlen(base) : 0; /* of '/' nothing is left */
    while ((r = try_folder(s, base, len)) == 0 && len)
        while (base[--len] != '/')
            continue;
    return r;
}

static int search(struct search *s, const char *folder)
{
    const struct resolver *resolver = s->resolver;
    int r = 0;

    if (*s->wanted == '/')
        return try_folder(s, "", 0);
    if (resolver->cwd)
        r = try_folder(s, resolver->cwd, strlen(resolver->cwd));
    for (size_t i = 0; i < resolver->roots->n && r == 0; i++)
        r = try_upwards(s, resolver->roots->path[i], folder);
    return r;
}

int resolve(const struct resolver *resolver, const char *folder, const char *path,
            struct resolved *ret, struct diag *d)
{
    struct search s = {.resolver = resolver, .wanted = path, .found = ret, .outside = ""};
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
