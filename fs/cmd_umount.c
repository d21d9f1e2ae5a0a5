/* epochfs umount: by umount2(2) where we may, else by fusermount3.
 *
 * The daemon itself lists folders of its mount for a moment now and then, as long as it reads ahead
 * of readers that may have just ended; indexers and shells do alike. So a mount that is in use is
 * tried again for a short while. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fs/commands.h"
#include "fs/mounts.h"

#define TRIES    15
#define PAUSE_NS 20000000 /* between them */

static void pause_shortly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

/* Its exit code, or -1. silent: what it says is nobody's concern. */
static int fusermount(const char *path, bool silent)
{
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        if (silent)
            dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
        execlp("fusermount3", "fusermount3", "-u", path, (char *)NULL);
        _exit(127);
    }
    return child < 0 || waitpid(child, &status, 0) < 0 || !WIFEXITED(status) ? -1
                                                                             : WEXITSTATUS(status);
}

static int run_fusermount(const char *path)
{
    int code = -1;

    for (unsigned i = 1; i <= TRIES; i++) {
        code = fusermount(path, i < TRIES);
        if (code <= 0 || code == 127)
            break;
        pause_shortly();
    }
    if (code < 0)
        return fail(EXIT_MOUNT, "cannot run fusermount3: %s", strerror(errno));
    if (code == 127)
        return fail(EXIT_MOUNT, "cannot run fusermount3; is the package fuse3 installed?");
    if (code)
        return fail(EXIT_MOUNT, "%s: fusermount3 did not unmount it; is it another user's mount?",
                    path);
    return EXIT_DONE;
}

static int unmount(const char *path)
{
    int r = umount2(path, UMOUNT_NOFOLLOW);

    for (unsigned i = 1; r < 0 && errno == EBUSY && i < TRIES; i++) {
        pause_shortly();
        r = umount2(path, UMOUNT_NOFOLLOW);
    }
    if (r == 0)
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
