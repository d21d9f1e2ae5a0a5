/* epochfs umount: by umount2(2) where we may, else by fusermount3. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "fs/commands.h"
#include "fs/mounts.h"

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
    if (WEXITSTATUS(status))
        return fail(EXIT_MOUNT, "%s: fusermount3 did not unmount it; is it another user's mount?",
                    path);
    return EXIT_DONE;
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

static void print_help(void)
{
    puts("usage: epochfs umount MOUNTPOINT");
}

int command_umount(int argc, char **argv)
{
    const struct command_line line = {.name = "umount", .word = "MOUNTPOINT", .help = print_help};
    const char *mountpoint = NULL;
    char path[PATH_MAX];
    int code = parse_command(argc, argv, &line, &mountpoint), r;

    if (code >= 0)
        return code;
    r = mounts_real_path(mountpoint, path);
    if (r < 0)
        return fail(EXIT_MOUNT, "%s: %s", mountpoint, strerror(-r));
    if (!mounts_find(path, NULL))
        return fail(EXIT_MOUNT, "%s: no epochfs is mounted there", argv[1]);
    return unmount(path);
}
