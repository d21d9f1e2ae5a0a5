#include "cache/source/within.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/scope.h"
#include "cache/disk/local_file.h"

/* Find where the open file or folder lies: absolute, without links. Without /proc, path as it was
 * opened is resolved instead. 0 or -errno. */
static int within_real_path(int fd, const char *path, char ret[static PATH_MAX])
{
    char link[40];
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, ret, PATH_MAX);
    if (n >= PATH_MAX)
        return -ENAMETOOLONG;
    if (n < 0)
        return realpath(path, ret) ? 0 : -errno;
    ret[n] = '\0';
    return 0;
}

int within_check_real(const struct within *within, const char *real, const char *name,
                      struct diag *d)
{
    if (within->allow_outside || roots_inside(within->roots, real))
        return 0;
    return diag_set(d, -EXDEV,
                    "%.500s: a link to %.500s, which lies outside of SOURCE; mount with -o "
                    "allow_outside to follow links that leave SOURCE",
                    name, real);
}

int within_check(const struct within *within, int fd, const char *path, const char *name,
                 struct diag *d)
{
    char real[PATH_MAX];
    int r;

    if (within->allow_outside)
        return 0;
    r = within_real_path(fd, path, real);
    return r < 0 ? diag_set(d, r, "%.500s: %s", name, strerror(-r))
                 : within_check_real(within, real, name, d);
}

/* The permission bits of a file or folder. If it has an ACL, only those of its owner: with an ACL
 * the other bits mean something else. */
static unsigned access_bits(const char *path, const struct stat *st)
{
    bool has_acl = getxattr(path, "system.posix_acl_access", NULL, 0) > 0;

    return st->st_mode & (has_acl ? 0700 : 0777);
}

unsigned within_mode(const struct within *within, int fd, const char *path, const char *real,
                     const struct stat *st)
{
    unsigned mode = st->st_mode & 0777, left;
    char found[PATH_MAX];

    if (!within->for_others)
        return mode;
    if (!real && within_real_path(fd, path, found) < 0)
        return 0;
    real = real ? real : found;
    mode = access_bits(real, st);
    left = access_on_way(within->roots, path, real, st->st_uid, st->st_gid);
    return mode & (left | left >> 1 | left >> 2);
}

int within_openat2(int folder, const char *path, unsigned resolve)
{
    const struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
                                 .resolve = resolve};
    int fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof(how));

    return fd < 0 ? -errno : fd;
}

int within_open_real(const char *real, int *ret_fd, struct stat *ret_st)
{
    AUTO_CLOSE int fd = within_openat2(AT_FDCWD, real, RESOLVE_NO_SYMLINKS);
    char found[PATH_MAX];
    int r;

    if (fd < 0 && fd != -ENOSYS && fd != -EPERM)
        return fd;
    if (fd < 0) {
        r = file_open(real, &fd, ret_st);
        if (r == 0)
            r = within_real_path(fd, real, found);
        if (r < 0)
            return r;
        if (strcmp(real, found) != 0)
            return -ELOOP;
    }
    if (fstat(fd, ret_st) < 0)
        return -errno;
    if (!S_ISREG(ret_st->st_mode))
        return -EINVAL;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* ---- roots ---- */

/* Remove "", "." and ".." from an absolute path, in place. */
static void path_normalise(char *path)
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

int path_upwards(const char *root, const char *folder, const char *path,
                 int (*visit)(void *user, const char *path), void *user)
{
    char base[PATH_MAX], whole[PATH_MAX];
    size_t len;
    int r = 0;

    if (path_join(root, strlen(root), folder, base) < 0)
        return 0;
    len = base[1] ? strlen(base) : 0; /* of '/' nothing is left */
    for (;;) {
        if (path_join(base, len, path, whole) == 0)
            r = visit(user, whole);
        if (r || !len)
            return r;
        while (base[--len] != '/')
            continue;
    }
}

int path_below(const char *a, const char *b, char ret[static PATH_MAX])
{
    int n = snprintf(ret, PATH_MAX, "%s%s%s", a, *a && *b ? "/" : "", b);

    return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int roots_add_path(struct texts *roots, const char *path)
{
    for (size_t i = 0; i < roots->n; i++)
        if (!strcmp(roots->text[i], path))
            return 0;
    return texts_add(roots, path);
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

int roots_add(struct texts *roots, const char *path)
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

const char *roots_inside(const struct texts *roots, const char *path)
{
    for (size_t i = 0; i < roots->n; i++) {
        size_t len = strlen(roots->text[i]);

        if (len == 1)
            return path + 1; /* the root is '/' */
        if (!strncmp(path, roots->text[i], len) && (!path[len] || path[len] == '/'))
            return path + len + (path[len] == '/');
    }
    return NULL;
}

/* ---- access ---- */

/* access_on_way() for the folders from the first root_len bytes of path on. */
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
static size_t root_of(const struct texts *roots, const char *path)
{
    const char *inside = roots_inside(roots, path);
    size_t len = inside ? (size_t)(inside - path) : 0;

    return len && path[len - 1] == '/' ? len - 1 : len;
}

unsigned access_on_way(const struct texts *roots, const char *path, const char *real, unsigned uid,
                       unsigned gid)
{
    unsigned ret = on_way(real, root_of(roots, real), uid, gid);

    if (strcmp(path, real) != 0 && roots_inside(roots, path))
        ret &= on_way(path, root_of(roots, path), uid, gid);
    return ret;
}

void access_of(const struct texts *roots, const char *path, struct access *ret)
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
