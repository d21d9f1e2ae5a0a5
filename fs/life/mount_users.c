#include "fs/life/mount_users.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fs/life/watched_child.h"

#define NAMED 8 /* processes that are named */

struct search {
    const char *path;
    dev_t device;
};

/* Does that link in /proc lead into the mount? The kernel writes its text from names alone, without
 * asking the mount. */
static bool leads_there(const struct search *search, int folder, const char *link)
{
    size_t len = strlen(search->path);
    char target[PATH_MAX];
    ssize_t n = readlinkat(folder, link, target, sizeof(target) - 1);

    if (n < (ssize_t)len)
        return false;
    target[n] = '\0';
    return !strncmp(target, search->path, len) && (target[len] == '/' || target[len] == '\0');
}

static bool has_it_open(const struct search *search, int process)
{
    int fd = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    bool found = false;

    if (!dir) {
        scope_close(&fd);
        return false;
    }
    while (!found && (entry = readdir(dir)))
        found = leads_there(search, dirfd(dir), entry->d_name);
    closedir(dir);
    return found;
}

static FILE *open_in(int process, const char *name)
{
    int fd = openat(process, name, O_RDONLY | O_CLOEXEC);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

    if (!f)
        scope_close(&fd);
    return f;
}

static bool has_it_mapped(const struct search *search, int process)
{
    FILE *maps = open_in(process, "maps");
    bool found = false;
    char *line = NULL;
    size_t capacity = 0;
    unsigned major, minor;

    while (!found && maps && getline(&line, &capacity, maps) > 0)
        found = sscanf(line, "%*s %*s %*s %x:%x", &major, &minor) == 2 &&
                makedev(major, minor) == search->device;
    free(line);
    if (maps)
        fclose(maps);
    return found;
}

static bool uses_it(const struct search *search, int process)
{
    static const char *const links[] = {"cwd", "root", "exe"};

    for (size_t i = 0; i < ARRAY_LEN(links); i++)
        if (leads_there(search, process, links[i]))
            return true;
    return has_it_open(search, process) || has_it_mapped(search, process);
}

/* "1234 (bash)" */
static void write_process(int process, const char *number, bool is_first, int out)
{
    FILE *f = open_in(process, "comm");
    char name[64] = "?";

    if (f && fgets(name, sizeof(name), f))
        name[strcspn(name, "\n")] = '\0';
    if (f)
        fclose(f);
    dprintf(out, "%s%s (%s)", is_first ? "" : ", ", number, name);
}

static bool mount_users_is_ours(const char *number)
{
    long pid = strtol(number, NULL, 10);

    return pid == getpid() || pid == getppid();
}

/* In a child, because reading the table of a hung process may hang as well; processes found before
 * that are reported. */
static int mount_users_search(const void *what, int out)
{
    DIR *processes = opendir("/proc");
    const struct dirent *entry;
    unsigned n = 0;

    while (processes && (entry = readdir(processes))) {
        AUTO_CLOSE int process = -1;

        if (strspn(entry->d_name, "0123456789") != strlen(entry->d_name) ||
            mount_users_is_ours(entry->d_name))
            continue;
        process = openat(dirfd(processes), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (process < 0 || !uses_it(what, process))
            continue;
        if (n < NAMED)
            write_process(process, entry->d_name, n == 0, out);
        n++;
    }
    if (processes)
        closedir(processes);
    if (n > NAMED)
        dprintf(out, " and %u more", n - NAMED);
    return 0;
}

void mount_users(const char *path, const struct mount_entry *mount, int ms, struct text *ret)
{
    const struct search what = {path, makedev(mount->device_major, mount->device_minor)};
    const struct watched_child_work work = {.work = mount_users_search, .ctx = &what, .ms = ms};

    watched_child_do(&work, ret);
}
