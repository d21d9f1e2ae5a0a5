#include "cache/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *environment(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

/* The value of a variable that names a folder which is there. */
static const char *environment_folder(const char *name)
{
    const char *value = environment(name);
    struct stat st;

    return value && stat(value, &st) == 0 && S_ISDIR(st.st_mode) ? value : NULL;
}

static void default_path(char *ret, size_t room)
{
    const char *base;

    if ((base = environment("EPOCHFS_CACHE")))
        snprintf(ret, room, "%s", base);
    else if ((base = environment_folder("SLURM_TMPDIR")) || (base = environment_folder("TMPDIR")))
        snprintf(ret, room, "%s/epochfs-%u", base, (unsigned)geteuid());
    else if ((base = environment("XDG_CACHE_HOME")))
        snprintf(ret, room, "%s/epochfs", base);
    else if ((base = environment_folder("HOME")))
        snprintf(ret, room, "%s/.cache/epochfs", base);
    else
        snprintf(ret, room, "/var/cache/epochfs");
}

int cache_folder_init(struct cache_folder *ret, const char *path)
{
    char text[PATH_MAX];

    if (!path)
        default_path(text, sizeof(text));
    ret->is_default = !path && !environment("EPOCHFS_CACHE");
    ret->path = strdup(path ? path : text);
    return ret->path ? 0 : -ENOMEM;
}

void cache_folder_release(struct cache_folder *folder)
{
    free(folder->path);
    folder->path = NULL;
}

/* mkdir -p with mode 0700 for what is new. */
static int make_folders(char *path)
{
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

static int check_owner(const char *path, struct diag *d)
{
    struct stat st;

    if (lstat(path, &st) < 0)
        return diag_set(d, -errno, "cache folder %s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
        return diag_set(d, -EPERM,
                        "cache folder %s: want a folder of user %u, found one of user %u; choose "
                        "another with -o cache=DIR",
                        path, (unsigned)geteuid(), (unsigned)st.st_uid);
    return 0;
}

int cache_folder_sub(const struct cache_folder *folder, const char *sub, char *ret, size_t room,
                     struct diag *d)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/%s", folder->path, sub), r;

    if (n >= (int)sizeof(path) || (size_t)n >= room)
        return diag_set(d, -ENAMETOOLONG, "cache folder %s: path too long", folder->path);
    r = make_folders(path);
    if (r < 0)
        return diag_set(d, r, "cache folder %s: %s; choose another with -o cache=DIR", folder->path,
                        strerror(-r));
    if (folder->is_default) {
        r = check_owner(folder->path, d);
        if (r < 0)
            return r;
    }
    snprintf(ret, room, "%s", path);
    return 0;
}
