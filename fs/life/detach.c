#include "fs/life/detach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/text.h"
#include "fs/life/watched_child.h"

#define STEP_MS        2000
#define NO_FUSERMOUNT3 127

struct step {
    const char *path;
    enum detach_how how;
};

/* In a child, which becomes fusermount3; its messages go to out. */
static int fusermount(const struct step *step, int out)
{
    const char *const lazily[] = {"fusermount3", "-u", "-z", step->path, NULL};
    const char *const unused[] = {"fusermount3", "-u", step->path, NULL};

    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    execvp("fusermount3", (char *const *)(step->how == DETACH_LAZILY ? lazily : unused));
    return NO_FUSERMOUNT3;
}

static int take_step(const void *ctx, int out)
{
    const struct step *step = ctx;

    if (umount2(step->path, UMOUNT_NOFOLLOW | (step->how == DETACH_LAZILY ? MNT_DETACH : 0)) == 0)
        return 0;
    return errno == EPERM ? fusermount(step, out) : errno;
}

/* "fusermount3: failed to unmount PATH: Device or resource busy" */
static bool says_busy(const char *said)
{
    const char *reason = strrchr(said, ':');

    return reason && strstr(reason, "busy");
}

int detach(const char *path, enum detach_how how, struct diag *d)
{
    const struct step step = {path, how};
    const struct watched_child_work work = {.work = take_step, .ctx = &step, .ms = STEP_MS};
    AUTO_TEXT struct text said = {0};
    int r = watched_child_do(&work, &said);

    if (r < 0 && said.len) {
        said.data[strcspn(said.data, "\n")] = '\0';
        return diag_set(d, says_busy(said.data) ? -EBUSY : -EPERM, "%s: %s", path, said.data);
    }
    if (r == -NO_FUSERMOUNT3)
        return diag_set(
            d, -ENOENT,
            "%s: fusermount3 cannot be run. Users unmount with it; install it: sudo apt "
            "install fuse3 (Fedora: sudo dnf install fuse3)",
            path);
    return r < 0 ? diag_set(d, r, "%s: %s", path, strerror(-r)) : 0;
}

int detach_abort(const struct mount_entry *mount)
{
    AUTO_CLOSE int fd = -1;
    char path[80];

    snprintf(path, sizeof(path), "/sys/fs/fuse/connections/%u/abort", mount->device_minor);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 || write(fd, "1", 1) < 0 ? -errno : 0;
}
