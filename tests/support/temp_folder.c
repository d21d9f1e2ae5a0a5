#include "support/temp_folder.h"

#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static void must(int good, const char *what)
{
    if (good)
        return;
    perror(what);
    abort();
}

/* In memory, where that has room: thousands of files on a disk take twenty times as long. */
static bool is_roomy(const char *folder)
{
    struct statvfs fs;

    return statvfs(folder, &fs) == 0 && access(folder, W_OK) == 0 &&
           (uint64_t)fs.f_bavail * fs.f_frsize > (uint64_t)2 << 30;
}

int temp_setup(void **state)
{
    char *path =
        strdup(is_roomy("/dev/shm") ? "/dev/shm/epochfs-test-XXXXXX" : "/tmp/epochfs-test-XXXXXX");

    must(path && mkdtemp(path), "mkdtemp");
    *state = path;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void temp_remove(const char *folder)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int temp_teardown(void **state)
{
    temp_remove(*state);
    free(*state);
    return 0;
}

void temp_path(const char *folder, const char *name, char ret[static PATH_MAX])
{
    must(snprintf(ret, PATH_MAX, "%s/%s", folder, name) < PATH_MAX, name);
}

void temp_write(const char *folder, const char *name, const void *bytes, size_t len)
{
    char path[PATH_MAX];
    int fd;

    temp_path(folder, name, path);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    must(fd >= 0 && write(fd, bytes, len) == (ssize_t)len, path);
    close(fd);
}

void temp_folder(const char *folder, const char *name)
{
    char path[PATH_MAX];

    temp_path(folder, name, path);
    must(mkdir(path, 0700) == 0, path);
}

bool temp_mount(const char *folder, const char *name, const char *size, char ret[static PATH_MAX])
{
    char options[64];

    temp_folder(folder, name);
    temp_path(folder, name, ret);
    snprintf(options, sizeof(options), "size=%s,mode=0700", size);
    return geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
           mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", ret, "tmpfs", 0, options) == 0;
}
