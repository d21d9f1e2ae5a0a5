/* A path is opened in two steps: its folder, without following a link, then the name in it. The
 * folder above is the cache folder, whose path has no links (cache_folder_init()). */
#include "cache/disk/group_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/scope.h"
#include "cache/disk/local_file.h"

#define MARKER_PART                                                                                \
    "EPOCHFS." /* how names begin that a marker and folders have while they are made */
#define FOLDER_MODE 02770
#define FILE_MODE   0660
#define FILE_NEEDS  0060
#define OURS        (O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

static bool is_shared(const struct cache_group *group)
{
    return group && group->is_shared;
}

bool group_shares(const struct stat *st, struct cache_group *ret)
{
    *ret = (struct cache_group){0};
    if (!S_ISDIR(st->st_mode) || (st->st_mode & 03077) != (FOLDER_MODE & 03077))
        return false;
    *ret = (struct cache_group){.is_shared = true, .gid = st->st_gid};
    return true;
}

bool group_has_me(gid_t gid)
{
    int n = getgroups(0, NULL);
    AUTO_FREE gid_t *groups = n > 0 ? malloc((size_t)n * sizeof(*groups)) : NULL;

    if (gid == getegid())
        return true;
    if (!groups)
        return false;
    n = getgroups(n, groups);
    for (int i = 0; i < n; i++)
        if (groups[i] == gid)
            return true;
    return false;
}

/* ---- rights ---- */

static int say_folder(const char *path, size_t len, const struct cache_group *group,
                      const struct stat *st, struct diag *d)
{
    return diag_set(d, -EPERM,
                    "cache folder: %.*s: expected a folder of group %u with mode %04o, got %s of "
                    "user %u and group %u with mode %04o; its owner may `chmod %04o` it, or choose "
                    "another cache folder with -o cache_dir=DIR",
                    (int)len, path, (unsigned)group->gid, FOLDER_MODE,
                    S_ISDIR(st->st_mode)   ? "one"
                    : S_ISLNK(st->st_mode) ? "a link"
                                           : "something else",
                    (unsigned)st->st_uid, (unsigned)st->st_gid, (unsigned)st->st_mode & 07777,
                    FOLDER_MODE);
}

static int say_file(const char *path, const struct cache_group *group, const struct stat *st,
                    struct diag *d)
{
    return diag_set(
        d, -EPERM,
        "cache folder: %s: expected a file that group %u may read and write, got one of "
        "user %u and group %u with mode %04o; its owner may `chmod g+rw` it, or any "
        "member may remove it",
        path, (unsigned)group->gid, (unsigned)st->st_uid, (unsigned)st->st_gid,
        (unsigned)st->st_mode & 07777);
}

static bool has_rights(const struct cache_group *group, const struct stat *st)
{
    return st->st_gid == group->gid && (st->st_mode & FILE_NEEDS) == FILE_NEEDS;
}

static int check_folder(int fd, const char *path, size_t len, const struct cache_group *group,
                        struct diag *d)
{
    struct cache_group found;
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    return group_shares(&st, &found) && found.gid == group->gid
               ? 0
               : say_folder(path, len, group, &st, d);
}

/* ---- paths ---- */

int group_folder(const struct cache_group *group, const char *path, const char **ret_name,
                 struct diag *d)
{
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;
    AUTO_FREE char *folder = strndup(path, len);
    int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (is_shared(group) ? O_NOFOLLOW : 0);
    AUTO_CLOSE int fd = folder ? open(folder, flags) : -1;
    struct stat st;
    int r = folder ? fd < 0 ? -errno : 0 : -ENOMEM;

    if (r == 0 && is_shared(group))
        r = check_folder(fd, path, len, group, d);
    else if (folder && is_shared(group) && lstat(folder, &st) == 0)
        r = say_folder(path, len, group, &st, d);
    if (r < 0)
        return r;
    *ret_name = slash ? slash + 1 : path;
    return TAKE_FD(fd);
}

/* What is open as fd (or -errno): has it the rights? */
static int check_file(int folder, const char *name, const char *path, int fd,
                      const struct cache_group *group, struct diag *d)
{
    int r = fd < 0 ? fd : 0;
    struct stat st;

    if (!is_shared(group))
        return r;
    if (fd >= 0 && fstat(fd, &st) < 0)
        return -errno;
    if (fd < 0 && (r != -EACCES || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0))
        return r;
    if (!S_ISREG(st.st_mode))
        return fd < 0 ? -ELOOP : 0; /* no file of ours, whatever its rights are */
    return has_rights(group, &st) ? r : say_file(path, group, &st, d);
}

/* The folder of a path and the name in it; of a private folder the path itself. 0 or -errno. */
static int group_name_at(const struct cache_group *group, const char *path, int *ret_folder,
                         const char **ret_name, struct diag *d)
{
    *ret_name = path;
    *ret_folder = is_shared(group) ? group_folder(group, path, ret_name, d) : AT_FDCWD;
    return is_shared(group) && *ret_folder < 0 ? *ret_folder : 0;
}

int group_open(const struct cache_group *group, const char *path, int flags, struct diag *d)
{
    AUTO_CLOSE int folder = -1, fd = -1;
    const char *name;
    int r = group_name_at(group, path, &folder, &name, d);

    if (r < 0)
        return r;
    fd = file_openat(folder, name, flags | OURS);
    r = check_file(folder, name, path, fd, group, d);
    return r < 0 ? r : TAKE_FD(fd);
}

int group_open_to_look(const struct cache_group *group, const char *path, int flags)
{
    int fd = group_open(group, path, flags | O_NOATIME, NULL);

    return fd == -EPERM ? group_open(group, path, flags, NULL) : fd;
}

/* A file without a name gets its mode before it gets its name. On file systems that have no such
 * files there is a moment in which the umask counts. */
static int group_make_in(int folder, const char *name)
{
    AUTO_CLOSE int fd = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, FILE_MODE);
    bool has_name = fd < 0;
    char self[64];

    if (fd < 0)
        fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | OURS, FILE_MODE);
    if (fd < 0 || fchmod(fd, FILE_MODE) < 0)
        return -errno;
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    if (!has_name && linkat(AT_FDCWD, self, folder, name, AT_SYMLINK_FOLLOW) < 0)
        return -errno;
    return TAKE_FD(fd);
}

static int group_make(const struct cache_group *group, const char *path, struct diag *d)
{
    AUTO_CLOSE int folder = -1, fd = -1;
    const char *name;
    int r = group_name_at(group, path, &folder, &name, d);

    if (r < 0)
        return r;
    if (is_shared(group))
        fd = group_make_in(folder, name);
    else if ((fd = open(path, O_RDWR | O_CREAT | O_EXCL | OURS, 0600)) < 0)
        fd = -errno;
    r = check_file(folder, name, path, fd, group, d); /* the folder may have lost its bit */
    return r < 0 ? r : TAKE_FD(fd);
}

int group_open_or_make(const struct cache_group *group, const char *path, struct diag *d)
{
    int fd;

    do {
        fd = group_open(group, path, O_RDWR, d);
        if (fd == -ENOENT)
            fd = group_make(group, path, d);
    } while (fd == -EEXIST); /* another process was faster */
    return fd;
}

int group_stat(const struct cache_group *group, const char *path, struct stat *ret)
{
    AUTO_CLOSE int folder = -1;
    const char *name;
    int r = group_name_at(group, path, &folder, &name, NULL);

    return r == 0 && fstatat(folder, name, ret, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : r;
}

bool group_names(const struct cache_group *group, const char *path, int fd)
{
    struct stat ours, there;

    return fstat(fd, &ours) == 0 && group_stat(group, path, &there) == 0 &&
           ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

int group_unlink(const struct cache_group *group, const char *path)
{
    AUTO_CLOSE int folder = -1;
    const char *name;
    int r = group_name_at(group, path, &folder, &name, NULL);

    return r == 0 && unlinkat(folder, name, 0) < 0 ? -errno : r;
}

int group_rename(const struct cache_group *group, const char *from, const char *to)
{
    const char *name, *slash = is_shared(group) ? strrchr(to, '/') : NULL;
    AUTO_CLOSE int folder = -1;
    int r = group_name_at(group, from, &folder, &name, NULL);

    return r == 0 && renameat(folder, name, folder, slash ? slash + 1 : to) < 0 ? -errno : r;
}

/* Give a folder that was just made its mode. */
static int open_up(int above, const char *name)
{
    AUTO_CLOSE int fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    return st.st_uid != geteuid() ? -EPERM : fchmod(fd, FOLDER_MODE) < 0 ? -errno : 0;
}

/* A folder gets its mode before it gets its name as well. */
static int make_folder_in(int above, const char *name)
{
    char part[64];
    uint64_t random;
    int r;

    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        return -errno;
    snprintf(part, sizeof(part), MARKER_PART "%016llx", (unsigned long long)random);
    if (mkdirat(above, part, 0770) < 0)
        return -errno;
    r = open_up(above, part);
    if (r == 0 && renameat2(above, part, above, name, RENAME_NOREPLACE) < 0)
        r = -errno;
    if (r < 0)
        unlinkat(above, part, AT_REMOVEDIR);
    if (r == -EINVAL) /* a file system that cannot do that */
        r = mkdirat(above, name, 0770) < 0 ? -errno : open_up(above, name);
    return r == -EEXIST ? 0 : r;
}

int group_make_folder(const struct cache_group *group, const char *path, struct diag *d)
{
    const char *name;
    AUTO_CLOSE int above = -1, fd = -1;
    AUTO_FREE char *inside = NULL;
    struct stat st;
    int r;

    above = group_folder(group, path, &name, d);
    r = above < 0 ? above : 0;
    if (r == 0 && fstatat(above, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        r = errno == ENOENT ? make_folder_in(above, name) : -errno;
    if (r < 0)
        return diag_set(d, r, "cache folder %s: %s", path, strerror(-r));
    if (asprintf(&inside, "%s/", path) < 0) {
        inside = NULL;
        return -ENOMEM;
    }
    fd = group_folder(group, inside, &name, d); /* checks */
    return fd < 0 ? diag_set(d, fd, "cache folder %s: %s", path, strerror(-fd)) : 0;
}
