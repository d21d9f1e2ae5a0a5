/* epochfs umount: by umount2(2) where we may, else by fusermount3. */
#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "base/scope.h"
#include "fs/commands.h"

/* The real path of a mountpoint, also of one that does not answer any more: its own name is not
 * looked at, only the folder above. */
static bool real_mountpoint(const char *path, char ret[static PATH_MAX])
{
    AUTO_FREE char *for_dir = strdup(path);
    AUTO_FREE char *for_base = strdup(path);
    char folder[PATH_MAX];
    const char *base;

    if (!for_dir || !for_base)
        return false;
    base = basename(for_base);
    if (!strcmp(base, ".") || !strcmp(base, "..") || !strcmp(base, "/"))
        return realpath(path, ret) != NULL;
    if (!realpath(dirname(for_dir), folder))
        return false;
    return snprintf(ret, PATH_MAX, "%s/%s", strcmp(folder, "/") ? folder : "", base) < PATH_MAX;
}

/* "\040" in mountinfo is a blank. */
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

/* Is there an epochfs on path? The last mount there counts. */
static bool is_mounted(const char *path)
{
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    char *line = NULL;
    size_t room = 0;
    bool found = false;

    while (mounts && getline(&line, &room, mounts) > 0) {
        char where[PATH_MAX];
        const char *type = strstr(line, " - ");

        if (!type || sscanf(line, "%*s %*s %*s %*s %4095s", where) != 1)
            continue;
        unescape(where);
        if (!strcmp(where, path))
            found = !strncmp(type + 3, "fuse.epochfs ", 13);
    }
    free(line);
    if (mounts)
        fclose(mounts);
    return found;
}

static int run_fusermount(const char *path)
{
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        execlp("fusermount3", "fusermount3", "-u", path, (char *)NULL);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0 || !WIFEXITED(status))
        return fail(EXIT_MOUNT, "cannot run fusermount3: %s", strerror(errno));
    if (WEXITSTATUS(status) == 127)
        return fail(EXIT_MOUNT, "cannot run fusermount3; is the package fuse3 installed?");
    return WEXITSTATUS(status) ? EXIT_MOUNT : EXIT_DONE; /* it has said why */
}

static int unmount(const char *path)
{
    if (umount2(path, UMOUNT_NOFOLLOW) == 0)
        return EXIT_DONE;
    if (errno == EPERM)
        return run_fusermount(path);
    if (errno == EBUSY)
        return fail(EXIT_MOUNT, "%s is in use; `fuser -vm %s` shows by whom", path, path);
    return fail(EXIT_MOUNT, "%s: %s", path, strerror(errno));
}

int command_umount(int argc, char **argv)
{
    char path[PATH_MAX];

    if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        puts("usage: epochfs umount MOUNTPOINT");
        return EXIT_DONE;
    }
    if (argc != 2 || argv[1][0] == '-')
        return fail(EXIT_USAGE, "want one MOUNTPOINT: epochfs umount MOUNTPOINT");
    if (!real_mountpoint(argv[1], path))
        return fail(EXIT_MOUNT, "%s: %s", argv[1], strerror(errno));
    if (!is_mounted(path))
        return fail(EXIT_MOUNT, "%s: no epochfs is mounted there", argv[1]);
    return unmount(path);
}
