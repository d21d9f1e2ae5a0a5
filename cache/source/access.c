#include "cache/source/access.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

unsigned access_bits(const char *path, const struct stat *st)
{
    bool has_acl = getxattr(path, "system.posix_acl_access", NULL, 0) > 0;

    return st->st_mode & (has_acl ? 0700 : 0777);
}

/* The same, for the folders from the first root_len bytes of path on. */
static unsigned on_way(const char *path, size_t root_len, unsigned uid, unsigned gid)
{
    const char *slash = strrchr(path, '/');
    size_t last = slash ? (size_t)(slash - path) : 0;
    unsigned ret = 0444;

    for (size_t len = root_len; ret && slash && len <= last; len++) {
        char folder[PATH_MAX];
        struct stat st;

        if (len && path[len] != '/')
            continue;
        if (len >= sizeof(folder))
            return 0;
        memcpy(folder, path, len);
        folder[len] = '\0';
        if (!len)
            memcpy(folder, "/", 2);
        if (stat(folder, &st) < 0)
            return 0;
        ret &= access_classes(uid, gid, st.st_uid, st.st_gid, access_bits(folder, &st), 1);
    }
    return ret;
}

/* Length of the root that path lies in; 0: it lies in none. */
static size_t root_of(const struct roots *roots, const char *path)
{
    const char *inside = roots_inside(roots, path);
    size_t len = inside ? (size_t)(inside - path) : 0;

    return len && path[len - 1] == '/' ? len - 1 : len;
}

unsigned access_on_way(const struct roots *roots, const char *path, const char *real, unsigned uid,
                       unsigned gid)
{
    unsigned ret = on_way(real, root_of(roots, real), uid, gid);

    if (strcmp(path, real) != 0 && roots_inside(roots, path))
        ret &= on_way(path, root_of(roots, path), uid, gid);
    return ret;
}

void access_of(const struct roots *roots, const char *path, struct access *ret)
{
    char real[PATH_MAX];
    struct stat st;
    unsigned bits, left;

    *ret = (struct access){0};
    if (!realpath(path, real) || stat(real, &st) < 0)
        return;
    bits = access_bits(real, &st);
    left = access_on_way(roots, path, real, st.st_uid, st.st_gid);
    if (S_ISDIR(st.st_mode))
        left |= left >> 2;
    *ret = (struct access){.uid = st.st_uid, .gid = st.st_gid, .mode = bits & left};
}
