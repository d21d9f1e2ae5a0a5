/* Finds the file of a remote SOURCE that a path in one of its files means. No path leads out of the
 * folder of SOURCE: ".." is removed before any lookup, and the file is then found in a list, or
 * asked for below that folder. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "cache/http/url.h"
#include "cache/source/beside.h"
#include "cache/source/remote.h"

/* Find the file at path, relative to the folder of SOURCE. 0, -ENOENT, or -errno. */
static int find(const struct source *source, const char *path, struct source_entry *ret,
                struct diag *d)
{
    int r = known_find(source, path, ret);

    return r == -ENOENT && source->beside ? beside_find(source, path, ret, d) : r;
}

/* Write folder, of len bytes, and path without "", "." and "..". false: it leads above all folders,
 * or is too long. */
static bool join_inside(const char *folder, size_t len, const char *path, char ret[static PATH_MAX])
{
    size_t n = len;

    if (len >= PATH_MAX)
        return false;
    memcpy(ret, folder, len);
    while (*path) {
        size_t name = strcspn(path, "/");

        if (name == 2 && !memcmp(path, "..", 2)) {
            if (!n)
                return false;
            while (n && ret[--n] != '/')
                continue;
        } else if (name && !(name == 1 && *path == '.')) {
            if (n + name + 2 > PATH_MAX)
                return false;
            if (n)
                ret[n++] = '/';
            memcpy(ret + n, path, name);
            n += name;
        }
        path += name + (path[name] == '/');
    }
    ret[n] = '\0';
    return true;
}

/* Write the path of SOURCE on its server, decoded, without '/' at its ends. false: it is too
 * long. */
static bool root_path(const struct source *source, char ret[static PATH_MAX])
{
    const char *path = strstr(source->root, "://") + 3;
    bool encoded = !source->remote->paths_decoded;
    char decoded[PATH_MAX];

    if (encoded)
        path += strcspn(path, "/");
    if (strlen(path) >= PATH_MAX || (encoded && !url_decode(path, strlen(path), decoded)))
        return false;
    return join_inside("", 0, encoded ? decoded : path, ret);
}

/* Look for a relative path as on a disk, from folder up to the top of the server, because lists are
 * often made above SOURCE. Only files in SOURCE's folder are known. */
static int find_relative(const struct source *source, const char *folder, const char *path,
                         struct source_entry *ret, struct diag *d)
{
    char root[PATH_MAX], base[PATH_MAX], whole[PATH_MAX];
    size_t root_len, len;

    if (!root_path(source, root) || !join_inside(root, strlen(root), folder, base))
        return -ENOENT;
    root_len = strlen(root);
    for (len = strlen(base);;) {
        int r = -ENOENT;

        if (join_inside(base, len, path, whole) && !strncmp(whole, root, root_len) &&
            (!root_len || whole[root_len] == '/'))
            r = find(source, whole + root_len + (root_len > 0), ret, d);
        if (r != -ENOENT || !len)
            return r;
        while (len && base[--len] != '/')
            continue;
    }
}

/* Find what a path relative to SOURCE itself names. */
static int find_below(const struct source *source, const char *path, struct source_entry *ret,
                      struct diag *d)
{
    char whole[PATH_MAX];

    return join_inside("", 0, path, whole) ? find(source, whole, ret, d) : -ENOENT;
}

/* Find what a URL names. *ret_outside: it does not begin with SOURCE's URL. */
static int find_url(const struct source *source, const char *url, bool *outside,
                    struct source_entry *ret, struct diag *d)
{
    size_t len = strlen(source->root);
    char decoded[PATH_MAX];
    int r;

    *outside = strncmp(url, source->root, len) != 0;
    if (*outside)
        return -EACCES;
    url += len;
    r = find_below(source, url, ret, d);
    if (r == -ENOENT && strchr(url, '%') && strlen(url) < sizeof(decoded) &&
        url_decode(url, strlen(url), decoded))
        r = find_below(source, decoded, ret, d);
    return r;
}

int remote_find(const struct source *source, const char *folder, const char *path,
                struct source_entry *ret, struct diag *d)
{
    bool outside = *path == '/';
    int r = -ENOENT;
    char shown[512];

    name_show(path, shown, sizeof(shown));
    shown[strstr(shown, "://") ? strcspn(shown, "?") : strlen(shown)] = '\0';
    if (!*path)
        return diag_set(d, -EINVAL, "'': expected a path, got nothing");
    if (strstr(path, "://"))
        r = find_url(source, path, &outside, ret, d);
    else if (!outside)
        r = find_relative(source, folder, path, ret, d);
    if (outside)
        return diag_set(d, -EACCES, "%s: lies outside of SOURCE, %s%s", shown, source->root,
                        *path == '/' ? "; mount with -o allow_outside to read files of this machine"
                                     : "");
    if (r == -ENOENT)
        return diag_set(d, r,
                        "%s: expected a file of %s, got none of that path there, nor in the folder "
                        "that names it or above",
                        shown, source->root);
    return r;
}
