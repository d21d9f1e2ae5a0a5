/* The marker of a cache folder is written under another name and then linked, so it is whole or not
 * there; of several processes that make it at once, one wins. We put nothing into a folder before
 * its marker, so a folder with contents but no marker is not ours. */
#include "cache/disk/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/folder.h"
#include "cache/disk/local_file.h"

#define MARKER_NAME    "EPOCHFS"
#define MARKER_START   "epochfs cache folder, version "
#define MARKER_VERSION "2"
#define MARKER         MARKER_START MARKER_VERSION "\n"

#define USER_FIRST ((size_t)1 << 10)
#define USER_MOST  ((size_t)1 << 20) /* longer than any entry of a user */

static bool path_fits(const char *folder, const char *name, char *ret, size_t capacity)
{
    int n = snprintf(ret, capacity, "%s%s", folder, name);

    return n >= 0 && (size_t)n < capacity;
}

const char *environment(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

bool home_path(const char *name, char *ret, size_t capacity)
{
    const char *home = environment("HOME");

    if (home)
        return path_fits(home, name, ret, capacity);
    for (size_t size = USER_FIRST; size <= USER_MOST; size *= 4) {
        AUTO_FREE char *text = malloc(size);
        struct passwd entry, *found = NULL;
        int r = text ? getpwuid_r(geteuid(), &entry, text, size, &found) : ENOMEM;

        if (r != ERANGE)
            return r == 0 && found && *found->pw_dir &&
                   path_fits(found->pw_dir, name, ret, capacity);
    }
    return false;
}

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The value of an environment variable, if it names a folder that exists. */
static const char *environment_folder(const char *name)
{
    const char *value = environment(name);

    return value && is_folder(value) ? value : NULL;
}

static void default_path(char *ret, size_t capacity)
{
    char home[PATH_MAX];
    const char *base;

    if ((base = environment("EPOCHFS_CACHE")))
        snprintf(ret, capacity, "%s", base);
    else if ((base = environment_folder("SLURM_TMPDIR")) || (base = environment_folder("TMPDIR")))
        snprintf(ret, capacity, "%s/epochfs-%u", base, (unsigned)geteuid());
    else if ((base = environment("XDG_CACHE_HOME")))
        snprintf(ret, capacity, "%s/epochfs", base);
    else if (home_path("", home, sizeof(home)) && is_folder(home))
        snprintf(ret, capacity, "%s/.cache/epochfs", home);
    else
        snprintf(ret, capacity, "/var/cache/epochfs");
}

/* Does it serve a group? Files in such a folder are opened by its real path. */
static int find_group(struct cache_folder *folder)
{
    struct stat st;
    char *real;

    if (stat(folder->path, &st) < 0 || !group_shares(&st, &folder->group))
        return 0;
    real = realpath(folder->path, NULL);
    if (!real)
        return errno == ENOMEM ? -ENOMEM : 0;
    free(folder->path);
    folder->path = real;
    return 0;
}

int cache_folder_init(struct cache_folder *ret, const char *path)
{
    char text[PATH_MAX];

    if (!path)
        default_path(text, sizeof(text));
    ret->is_default = !path && !environment("EPOCHFS_CACHE");
    ret->quota = NULL;
    ret->group = (struct cache_group){0};
    ret->path = strdup(path ? path : text);
    return !ret->path ? -ENOMEM : ret->is_default ? 0 : find_group(ret);
}

int cache_folder_copy(const struct cache_folder *folder, struct cache_folder *ret)
{
    *ret = *folder;
    ret->path = strdup(folder->path);
    return ret->path ? 0 : -ENOMEM;
}

void cache_folder_release(struct cache_folder *folder)
{
    free(folder->path);
    folder->path = NULL;
}

/* mkdir -p; new folders have mode 0700. */
static int make_folders(char *path)
{
    if (mkdir(path, 0700) == 0 || errno == EEXIST) /* mostly those above it exist */
        return 0;
    for (char *at = path + 1;; at++) {
        char c = *at;
        int r;

        if (c && c != '/')
            continue;
        *at = '\0';
        r = mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
        *at = c;
        if (r < 0 && !(r == -EROFS || r == -EACCES))
            return r;
        if (!c)
            return r;
    }
}

/* The owner of the folder can forge what we read from it. Anybody can guess the name of a default
 * folder, so it must not be a link, either. */
static int check_owner(const char *path, bool is_default, struct diag *d)
{
    struct stat st;

    if ((is_default ? lstat(path, &st) : stat(path, &st)) < 0)
        return diag_set(d, -errno, "cache folder %s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
        return diag_set(d, -EPERM,
                        "cache folder %s: expected a folder of user %u, got one of user %u; choose "
                        "another with -o cache_dir=DIR",
                        path, (unsigned)geteuid(), (unsigned)st.st_uid);
    return 0;
}

/* The same of a folder below it. Nothing else may put files there, either; a sticky folder, as /tmp
 * is, keeps others from replacing ours. */
static int check_sub(const char *path, bool must_own, struct diag *d)
{
    struct stat st;

    if (lstat(path, &st) < 0)
        return diag_set(d, -errno, "cache folder %s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return diag_set(d, -EPERM,
                        "cache folder: %s: expected a folder, got a link; remove it, or choose "
                        "another cache folder with -o cache_dir=DIR",
                        path);
    if (must_own && st.st_uid != geteuid())
        return diag_set(
            d, -EPERM,
            "cache folder: %s: expected a folder of user %u, got one of user %u; remove "
            "it, or choose another cache folder with -o cache_dir=DIR",
            path, (unsigned)geteuid(), (unsigned)st.st_uid);
    if (st.st_mode & S_IWOTH && !(st.st_mode & S_ISVTX))
        return diag_set(d, -EPERM,
                        "cache folder: %s: expected a folder that others cannot write to, got mode "
                        "%04o; check what is in it and `chmod o-w` it, or choose another cache "
                        "folder with -o cache_dir=DIR",
                        path, (unsigned)st.st_mode & 07777);
    return 0;
}

#define CHOOSE "choose a new folder such as %s/epochfs with -o cache_dir="

/* 0: the folder has the marker of this version; -ENOENT: it has none; -EPROTO: another. */
static int read_marker(const char *folder, struct diag *d)
{
    char path[PATH_MAX], found[64];
    AUTO_CLOSE int fd = -1;
    ssize_t n;

    snprintf(path, sizeof(path), "%s/" MARKER_NAME, folder);
    fd = file_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd == -EBUSY)
        return diag_set(d, fd,
                        "cache folder %s: another process keeps its file " MARKER_NAME " locked",
                        folder);
    if (fd < 0 && fd != -ELOOP)
        return fd;
    n = fd < 0 ? 0 : read(fd, found, sizeof(found) - 1);
    found[n > 0 ? n : 0] = '\0';
    if (strcmp(found, MARKER) == 0)
        return 0;
    if (strncmp(found, MARKER_START, strlen(MARKER_START)) != 0)
        return diag_set(d, -EPROTO,
                        "cache folder %s: expected the marker of a cache folder of epochfs, got "
                        "another file " MARKER_NAME "; " CHOOSE,
                        folder, folder);
    if (strncmp(found, MARKER, strlen(MARKER)) == 0)
        return diag_set(d, -EPROTO,
                        "cache folder %s: expected %zu bytes in its file " MARKER_NAME
                        ", got more; " CHOOSE,
                        folder, strlen(MARKER), folder);
    found[strcspn(found, "\n")] = '\0';
    return diag_set(d, -EPROTO,
                    "cache folder %s: expected version " MARKER_VERSION ", got version %s; " CHOOSE,
                    folder, found + strlen(MARKER_START), folder);
}

/* The name of something in the folder that the making of a marker does not leave there; "": there
 * is none. 0 or -errno. */
static int find_foreign(const char *folder, char ret[static NAME_MAX + 1])
{
    AUTO_DIR DIR *dir = opendir(folder);
    const char *name;

    if (!dir)
        return -errno;
    *ret = '\0';
    while (!*ret && (name = folder_next(dir)))
        if (strcmp(name, "lost+found") != 0 && strncmp(name, MARKER_NAME, strlen(MARKER_NAME)) != 0)
            snprintf(ret, NAME_MAX + 1, "%s", name);
    return 0;
}

static int write_marker(int fd)
{
    ssize_t n = write(fd, MARKER, strlen(MARKER));

    if (n < 0)
        return -errno;
    if ((size_t)n < strlen(MARKER))
        return -ENOSPC;
    return fsync(fd) < 0 ? -errno : 0;
}

/* Not all file systems can. */
static void sync_names(const char *folder)
{
    AUTO_CLOSE int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int unused = fd < 0 ? -1 : fsync(fd);

    (void)unused;
}

/* 0, also where another process was first. */
static int make_marker(const char *folder, bool is_shared)
{
    char path[PATH_MAX], part[PATH_MAX];
    AUTO_CLOSE int fd = -1;
    int r;

    snprintf(path, sizeof(path), "%s/" MARKER_NAME, folder);
    snprintf(part, sizeof(part), "%s/" MARKER_NAME ".XXXXXX", folder);
    fd = mkostemp(part, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    r = is_shared && fchmod(fd, 0660) < 0 ? -errno : write_marker(fd);
    if (r == 0 && link(part, path) < 0 && errno != EEXIST)
        r = rename(part, path) < 0 ? -errno : 0; /* a file system without links */
    unlink(part);
    if (r == 0) /* what is made next must not outlive its name in a power failure */
        sync_names(folder);
    return r;
}

/* An empty folder becomes ours. A sticky one, such as /tmp, is shared on purpose. */
static void make_private(const char *folder)
{
    struct stat st;
    int unused = 0;

    if (stat(folder, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & S_ISVTX) &&
        (st.st_mode & 0777) != 0700)
        unused = chmod(folder, 0700);
    (void)unused;
}

/* Check that the folder is a cache folder; an empty one becomes one. */
static int check_marker(const char *folder, bool is_shared, struct diag *d)
{
    char foreign[NAME_MAX + 1] = "";
    int r = read_marker(folder, d);
    struct stat st;

    if (r == -ENOENT) {
        r = find_foreign(folder, foreign);
        if (r == 0 && *foreign && read_marker(folder, d) == -ENOENT) /* still has no marker */
            return diag_set(
                d, -EPROTO,
                "cache folder %s: expected an empty folder or a cache folder of epochfs, "
                "got %s in it; " CHOOSE,
                folder, foreign, folder);
        if (r == 0 && !*foreign) {
            if (!is_shared)
                make_private(folder);
            r = make_marker(folder, is_shared);
        }
        if (r == 0)
            r = read_marker(folder, d);
    }
    if (r == -EACCES && !is_shared && stat(folder, &st) == 0 && st.st_mode & S_IWGRP)
        return diag_set(d, r,
                        "cache folder %s: another user has it for himself; a folder that a group "
                        "shares has the mode 2770 before it is used, got %04o; choose another "
                        "with -o cache_dir=DIR",
                        folder, (unsigned)st.st_mode & 07777);
    if (r < 0)
        return diag_set(d, r, "cache folder %s: %s; choose another with -o cache_dir=DIR", folder,
                        strerror(-r));
    return 0;
}

/* mkdir -p of a path in the folder. ~ comes from $EPOCHFS_CACHE where no shell has replaced it. */
static int make_in_folder(const struct cache_folder *folder, const char *path, struct diag *d)
{
    char text[PATH_MAX];
    struct stat st;
    int r;

    if (folder->path[0] == '~' && (!folder->path[1] || folder->path[1] == '/'))
        return diag_set(d, -EINVAL,
                        "cache folder %s: ~ is not expanded here. Write $HOME or the whole path",
                        folder->path);
    snprintf(text, sizeof(text), "%s", path);
    r = make_folders(text);
    if (r == 0 && stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
        r = -ENOTDIR;
    if (r < 0)
        return diag_set(d, r, "cache folder %s%s%s: %s; choose another with -o cache_dir=DIR",
                        folder->path, path[strlen(folder->path)] ? ": " : "",
                        path[strlen(folder->path)] ? path : "", strerror(-r));
    return 0;
}

/* A folder of a group: who may use it? */
static int check_group(const struct cache_folder *folder, const char *sub, struct diag *d)
{
    struct cache_group now;
    struct stat st;

    if (stat(folder->path, &st) < 0)
        return diag_set(d, -errno, "cache folder %s: %s", folder->path, strerror(errno));
    if (!group_shares(&st, &now) || now.gid != folder->group.gid)
        return diag_set(
            d, -EPERM,
            "cache folder %s: expected mode 2770 and group %u, as it had, got mode %04o "
            "and group %u; mount again",
            folder->path, (unsigned)folder->group.gid, (unsigned)st.st_mode & 07777,
            (unsigned)st.st_gid);
    if (geteuid() == 0 && *sub)
        return diag_set(
            d, -EPERM,
            "cache folder %s: expected a folder that is root's alone, got one that group "
            "%u shares (mode 2770); choose another with -o cache_dir=DIR",
            folder->path, (unsigned)folder->group.gid);
    if (geteuid() != 0 && !group_has_me(folder->group.gid))
        return diag_set(
            d, -EPERM,
            "cache folder %s: expected a user in group %u, which shares it (mode 2770), "
            "got user %u; choose another with -o cache_dir=DIR",
            folder->path, (unsigned)folder->group.gid, (unsigned)geteuid());
    return 0;
}

static int sub_of_group(const struct cache_folder *folder, const char *path, const char *sub,
                        struct diag *d)
{
    int r = check_group(folder, sub, d);

    if (r == 0)
        r = check_marker(folder->path, true, d);
    return r == 0 && *sub ? group_make_folder(&folder->group, path, d) : r;
}

static int sub_of_own(const struct cache_folder *folder, const char *path, const char *sub,
                      struct diag *d)
{
    bool must_own = folder->is_default || geteuid() == 0; /* root trusts no one else */
    int r = make_in_folder(folder, folder->path, d);

    if (r == 0 && must_own)
        r = check_owner(folder->path, folder->is_default, d);
    if (r == 0)
        r = check_marker(folder->path, false, d);
    if (r == 0 && *sub)
        r = make_in_folder(folder, path, d);
    return r == 0 && *sub ? check_sub(path, must_own, d) : r;
}

int cache_folder_sub(const struct cache_folder *folder, const char *sub, char *ret, size_t capacity,
                     struct diag *d)
{
    size_t most = min_u64(capacity, PATH_MAX) - CACHE_NAME_MAX;
    char path[PATH_MAX];
    int r;

    if (strlen(folder->path) >= most)
        return diag_set(d, -ENAMETOOLONG,
                        "cache folder %.100s...: expected a path of less than %zu bytes, got %zu; "
                        "choose another with -o cache_dir=DIR",
                        folder->path, most, strlen(folder->path));
    snprintf(path, sizeof(path), "%s/%s", folder->path, sub);
    r = folder->group.is_shared ? sub_of_group(folder, path, sub, d)
                                : sub_of_own(folder, path, sub, d);
    if (r < 0)
        return r;
    snprintf(ret, capacity, "%s", *sub ? path : folder->path);
    return 0;
}
