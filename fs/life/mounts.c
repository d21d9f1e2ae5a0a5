#include "fs/life/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"
#include "fs/life/beacon.h"
#include "fs/life/watched_child.h"

#define PATH_MS    3000                /* time limit to find a path */
#define CHECK_MS   5000                /* time limit of mounts_check() */
#define DYING_NS   INT64_C(1000000000) /* how long a dying daemon may answer EIO */
#define DYING_LOOK 10                  /* ms between two checks */

static int find_real_path(const char *path, char ret[static PATH_MAX])
{
    AUTO_FREE char *for_dir = strdup(path);
    AUTO_FREE char *for_base = strdup(path);
    char folder[PATH_MAX];
    const char *base;

    if (realpath(path, ret))
        return 0;
    if (errno != ENOTCONN || !for_dir || !for_base)
        return -errno;
    base = basename(for_base);
    if (!strcmp(base, ".") || !strcmp(base, "..") || !strcmp(base, "/"))
        return -ENOTCONN;
    if (!realpath(dirname(for_dir), folder))
        return -errno;
    if (snprintf(ret, PATH_MAX, "%s/%s", strcmp(folder, "/") ? folder : "", base) >= PATH_MAX)
        return -ENAMETOOLONG;
    return 0;
}

/* In a child. */
static int write_real_path(const void *path, int out)
{
    char real[PATH_MAX];
    int r = find_real_path(path, real);
    ssize_t len = r < 0 ? 0 : (ssize_t)strlen(real);

    return r < 0 ? -r : write(out, real, (size_t)len) == len ? 0 : EPIPE;
}

/* "M/" counts as M: with the slash, the kernel would ask the mount whether it is a folder. */
int mounts_real_path(const char *path, char ret[static PATH_MAX])
{
    AUTO_FREE char *bare = strdup(path);
    const struct watched_child_work work = {.work = write_real_path, .ctx = bare, .ms = PATH_MS};
    AUTO_TEXT struct text real = {0};
    int r = bare ? 0 : -ENOMEM;

    for (size_t len = strlen(path); r == 0 && len > 1 && bare[len - 1] == '/'; len--)
        bare[len - 1] = '\0';
    if (r == 0)
        r = watched_child_do(&work, &real);
    if (r == 0)
        snprintf(ret, PATH_MAX, "%s", real.data);
    return r;
}

struct question {
    const char *path;
    const struct mount_entry *mount;
};

/* Become the owner: the kernel itself refuses other users, even root, without asking the daemon. */
static int be_owner(const struct mount_entry *mount)
{
    if (geteuid() != 0 || mount->is_for_all || !mount->owner)
        return 0;
    return setresgid(mount->group, mount->group, mount->group) < 0 ||
                   setresuid(mount->owner, mount->owner, mount->owner) < 0
               ? -errno
               : 0;
}

/* In a child. If a thread of the daemon is killed while it takes over a request, the answer is EIO.
 */
static int mounts_query(const void *ctx, int out)
{
    const struct question *question = ctx;
    int64_t until = monotonic_ns() + DYING_NS;
    struct statfs fs;
    int fd;

    (void)out;
    fd = open(question->path, O_PATH | O_CLOEXEC); /* only root may be able to reach it */
    if (fd < 0)
        return errno;
    if (be_owner(question->mount) < 0)
        return 0;
    while (fstatfs(fd, &fs) < 0) {
        if (errno == ECONNABORTED)
            return ENOTCONN;
        if (errno != EIO || monotonic_ns() > until)
            return errno;
        poll(NULL, 0, DYING_LOOK);
    }
    return 0;
}

int mounts_ask(const char *path, const struct mount_entry *mount, int ms)
{
    const struct question question = {path, mount};
    const struct watched_child_work work = {.work = mounts_query, .ctx = &question, .ms = ms};
    AUTO_TEXT struct text nothing = {0};

    return watched_child_do(&work, &nothing);
}

/* "\040" in mountinfo is a space. */
static void unescape(char *s)
{
    char *to = s;

    for (; *s; s++) {
        if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] && s[3]) {
            *to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
            s += 3;
        } else {
            *to++ = *s;
        }
    }
    *to = '\0';
}

/* Which user mounted it, and for which users: from the options of the file system, the last word of
 * the line. */
static void read_users(const char *type, struct mount_entry *ret)
{
    const char *last = strrchr(type, ' '), *owner = strstr(last, "user_id="),
               *group = strstr(last, "group_id=");

    ret->owner = owner ? (uid_t)strtoul(owner + strlen("user_id="), NULL, 10) : 0;
    ret->group = group ? (gid_t)strtoul(group + strlen("group_id="), NULL, 10) : 0;
    ret->is_for_all = strstr(last, "allow_other") != NULL;
}

bool mounts_has_device(dev_t device)
{
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    unsigned major, minor;
    char *line = NULL;
    size_t capacity = 0;
    bool found = !mounts;

    while (!found && getline(&line, &capacity, mounts) > 0)
        found =
            sscanf(line, "%*s %*s %u:%u", &major, &minor) == 2 && makedev(major, minor) == device;
    free(line);
    if (mounts)
        fclose(mounts);
    return found;
}

int mounts_watch(void)
{
    int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

void mounts_each(void (*each)(void *ctx, const struct mount_entry *entry, const char *path,
                              const char *type, const char *source),
                 void *ctx)
{
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    char *line = NULL;
    size_t capacity = 0;

    while (mounts && getline(&line, &capacity, mounts) > 0) {
        const char *tail = strstr(line, " - ");
        struct mount_entry entry;
        char path[PATH_MAX], type[64], source[PATH_MAX] = "";

        if (!tail || sscanf(line, "%*s %*s %u:%u %*s %4095s", &entry.device_major,
                            &entry.device_minor, path) != 3)
            continue;
        if (sscanf(tail, " - %63[^ ] %4095[^ \n]", type, source) < 1)
            continue;
        unescape(path);
        unescape(source);
        read_users(tail, &entry);
        each(ctx, &entry, path, type, source);
    }
    free(line);
    if (mounts)
        fclose(mounts);
}

bool mounts_is_fuse(const char *type)
{
    return !strcmp(type, MOUNTS_TYPE) || !strcmp(type, "fuse");
}

struct find {
    const char *path;
    struct mount_entry *ret;
    bool found;
    bool is_plain; /* its type is "fuse" */
};

static void mounts_search(void *ctx, const struct mount_entry *entry, const char *path,
                          const char *type, const char *source)
{
    struct find *f = ctx;

    (void)source;
    if (strcmp(path, f->path) != 0)
        return;
    f->found = mounts_is_fuse(type); /* later mounts cover earlier ones */
    f->is_plain = strcmp(type, MOUNTS_TYPE) != 0;
    if (f->found)
        *f->ret = *entry;
}

bool mounts_find_mine(const char *path, struct mount_entry *ret)
{
    struct find f = {.path = path, .ret = ret};

    mounts_each(mounts_search, &f);
    return f.found;
}

bool mounts_find(const char *path, struct mount_entry *ret)
{
    struct mount_entry entry;
    struct find f = {.path = path, .ret = &entry};
    AUTO_CLOSE int daemon = -1;
    pid_t pid;

    mounts_each(mounts_search, &f);
    if (f.found && f.is_plain) {
        daemon = beacon_find(path, &entry, &pid);
        f.found = daemon >= 0;
    }
    if (f.found && ret)
        *ret = entry;
    return f.found;
}

bool mounts_find_above(const char *path, char ret[static PATH_MAX])
{
    char *slash;

    if (snprintf(ret, PATH_MAX, "%s", path) >= PATH_MAX || mounts_find(path, NULL))
        return false;
    while ((slash = strrchr(ret, '/')) && slash != ret) {
        *slash = '\0';
        if (mounts_find(ret, NULL))
            return true;
    }
    return false;
}

bool mounts_is_gone(const char *path, const struct mount_entry *mount)
{
    struct mount_entry now;

    return !mounts_find(path, &now) || now.device_minor != mount->device_minor;
}

int mounts_check(const char *path, bool *ret_is_mountpoint, struct diag *d)
{
    struct mount_entry mount;
    char real[PATH_MAX];
    int r = mounts_real_path(path, real);

    *ret_is_mountpoint = r == 0 && mounts_find(real, &mount);
    if (*ret_is_mountpoint)
        r = mounts_ask(real, &mount, CHECK_MS);
    return r == -ETIMEDOUT
               ? diag_set(d, r, "%s: the daemon has not answered for %d s", path, CHECK_MS / 1000)
               : 0;
}
