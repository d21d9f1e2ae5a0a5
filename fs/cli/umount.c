/* epochfs umount: ends a mount in any state, within seconds.
 *
 *   no process uses it           it is unmounted
 *   its daemon is dead           the same, even if it is in use
 *   in use for BUSY_NS           its path is freed; the mount ends with its last user
 *   its daemon hangs             the same at once, and its readers get errors: it is aborted
 *
 * While it pushes, the daemon itself briefly lists folders of its mount now and then, even if the
 * readers have just ended; so do indexers and shells. So a mount that is in use is tried
 * again for a while. Only a watched child touches the mount itself. When the command succeeds, the
 * daemon has ended and released its cache. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "fs/cli/commands.h"
#include "fs/life/beacon.h"
#include "fs/life/detach.h"
#include "fs/life/mount_users.h"

#define BUSY_NS   INT64_C(2000000000)
#define PAUSE_MS  20   /* between two tries */
#define ASK_MS    2000 /* time limit for the daemon's answer */
#define USERS_MS  2000 /* time limit for the search for users */
#define ENDING_MS 5000 /* time limit for the daemon's end */
#define BEACON_NS INT64_C(1000000000)

struct daemon {
    int fd;    /* readable when it has ended; -1: not known, as is: */
    pid_t pid; /* 0 */
};

/* Unmount as soon as no process uses the mount. */
static int unmount_unused(const char *path, struct diag *d)
{
    int64_t until = monotonic_ns() + BUSY_NS;
    int r;

    for (;;) {
        struct diag reason = DIAG_INIT;

        r = detach(path, DETACH_UNUSED, &reason);
        if (r != -EBUSY || monotonic_ns() >= until)
            return r < 0 ? diag_set(d, r, "%s", reason.text) : 0;
        poll(NULL, 0, PAUSE_MS);
    }
}

/* The state of a process from /proc: 'T': stopped; '\0': not known. */
static char cli_umount_state_of(pid_t pid)
{
    char path[40], state = '\0';
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    f = fopen(path, "re");
    if (f) {
        if (fscanf(f, "%*[^)]) %c", &state) != 1)
            state = '\0';
        fclose(f);
    }
    return state;
}

static void say_left(const char *path, const struct daemon *daemon)
{
    bool is_stopped = cli_umount_state_of(daemon->pid) == 'T';

    say("%s: its daemon, process %ld, %s", path, (long)daemon->pid,
        is_stopped ? "is stopped and so cannot end; `kill -CONT` lets it"
                   : "has not ended yet: is it also mounted in a container?");
}

static void wait_for_end(const char *path, const struct daemon *daemon)
{
    struct pollfd p = {.fd = daemon->fd, .events = POLLIN};

    if (daemon->fd >= 0 && poll(&p, 1, ENDING_MS) == 0)
        say_left(path, daemon);
}

/* If a daemon hangs, the readers of its mount would hang with it: abort the connection. */
static void release_readers(const char *path, const struct mount_entry *mount,
                            const struct daemon *daemon)
{
    int r = detach_abort(mount);

    if (r == 0)
        say("%s: its daemon does not answer; its readers get an error now", path);
    else
        say("%s: its daemon does not answer, and its readers wait until it has ended: "
            "/sys/fs/fuse/connections/%u/abort: %s",
            path, mount->device_minor, strerror(-r));
    wait_for_end(path, daemon);
}

/* No user of the mount was found. Then the daemon itself uses it: it waits for a remote with a
 * folder of its mount open, and can be ended. But an ordinary user does not see the processes of
 * other users. */
static bool end_daemon(const struct mount_entry *mount, const struct daemon *daemon)
{
    return daemon->fd >= 0 && (geteuid() == 0 || !mount->is_for_all) &&
           syscall(SYS_pidfd_send_signal, daemon->fd, SIGTERM, NULL, 0) == 0;
}

/* hangs: the mount does not answer. */
static int unmount_lazily(const char *path, const struct mount_entry *mount,
                          const struct daemon *daemon, bool hangs)
{
    AUTO_TEXT struct text users = {0};
    struct diag d = DIAG_INIT;
    int r;

    mount_users(path, mount, USERS_MS, &users);
    r = detach(path, DETACH_LAZILY, &d);
    if (r == -ETIMEDOUT && detach_abort(mount) == 0)
        r = detach(path, DETACH_LAZILY, NULL);
    if (r < 0)
        return fail(EXIT_MOUNT, "%s", diag_text(&d, r));
    if (!hangs && !users.len && end_daemon(mount, daemon)) {
        wait_for_end(path, daemon);
        return EXIT_DONE;
    }
    say("%s: still in use by %s. Detached: new opens fail, and the mount ends when these processes "
        "close their files",
        path, users.len ? users.data : "processes that cannot be seen from here");
    if (hangs)
        release_readers(path, mount, daemon);
    return EXIT_DONE;
}

/* A daemon that answers has a beacon, or lights one soon. */
static struct daemon find_daemon(const char *path, const struct mount_entry *mount)
{
    int64_t until = monotonic_ns() + BEACON_NS;
    struct daemon daemon = {.fd = -1};

    daemon.fd = beacon_find(path, mount, &daemon.pid);
    if (daemon.fd >= 0 || mounts_ask(path, mount, ASK_MS) < 0)
        return daemon;
    while (daemon.fd < 0 && monotonic_ns() < until) {
        poll(NULL, 0, PAUSE_MS);
        daemon.fd = beacon_find(path, mount, &daemon.pid);
    }
    return daemon;
}

static int unmount(const char *path, const struct mount_entry *mount)
{
    struct daemon daemon = find_daemon(path, mount);
    struct diag d = DIAG_INIT;
    bool hangs = false;
    int r;

    r = detach(path, DETACH_UNUSED, &d);
    if (r == -EBUSY || (r == -ETIMEDOUT && !mounts_is_gone(path, mount))) { /* perhaps only slow */
        int asked = mounts_ask(path, mount, ASK_MS);

        hangs = asked == -ETIMEDOUT || cli_umount_state_of(daemon.pid) == 'T';
        d = DIAG_INIT;
        if (asked == -ENOTCONN)
            r = detach(path, DETACH_LAZILY, &d);
        else if (!hangs)
            r = unmount_unused(path, &d);
    }
    /* Unmounted, but the kernel waits for a page that the daemon stores while a read of it waits
     * for the remote: the daemon releases both when it gets the signal to end. */
    if (r == -ETIMEDOUT && mounts_is_gone(path, mount))
        r = end_daemon(mount, &daemon) ? 0 : detach_abort(mount);
    if (r == -EBUSY || r == -ETIMEDOUT)
        return unmount_lazily(path, mount, &daemon, hangs);
    if (r < 0 && !mounts_is_gone(path, mount)) {
        if (geteuid() != 0 && geteuid() != mount->owner)
            return fail(EXIT_MOUNT, "%s: user %u has mounted it; that user and root may unmount it",
                        path, (unsigned)mount->owner);
        return fail(EXIT_MOUNT, "%s", diag_text(&d, r));
    }
    wait_for_end(path, &daemon);
    return EXIT_DONE;
}

static int cli_umount_run(int argc, char **argv)
{
    const struct command_line line = {
        .name = "umount",
        .word = "MOUNTPOINT",
        .usage = command_umount.usage,
        .about =
            "Unmounts MOUNTPOINT, and returns when its daemon has ended. A mount that stays in use "
            "for two seconds is detached: it cannot be opened again, and it ends when the "
            "processes that use it close their files. The command then lists these processes, and "
            "the exit code is 0. A mount whose daemon is dead or hangs is unmounted also.",
        .example = "umount ~/mnt"};
    const char *mountpoint = NULL;
    struct mount_entry mount;
    char path[PATH_MAX], above[PATH_MAX];
    int code = parse_command(argc, argv, &line, &mountpoint), r;

    if (code >= 0)
        return code;
    r = mounts_real_path(mountpoint, path);
    if (r < 0)
        return fail(EXIT_MOUNT, "%s: %s", mountpoint, strerror(-r));
    if (mounts_find_above(path, above))
        return fail(EXIT_MOUNT,
                    "%s: expected the folder on which an epochfs is mounted, which is %s",
                    mountpoint, above);
    if (!mounts_find(path, &mount))
        return fail(EXIT_MOUNT, "%s: no epochfs is mounted there", mountpoint);
    r = chdir("/"); /* so that we do not use the mount ourselves */
    (void)r;
    return unmount(path, &mount);
}

const struct command command_umount = {"umount", cli_umount_run, "umount MOUNTPOINT"};
