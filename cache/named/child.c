/* We first wait with WNOWAIT: until the child is reaped no other process gets its number, so the
 * signal that ends its group cannot reach an unrelated process. */
#include "cache/named/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/scope.h"

#define LOOK_MS      10 /* between two checks of a process without a pid_fd */
#define MESSAGE_READ 4096

/* Only 0, 1 and 2 are open in the child. Returns errno. */
static int set_files(posix_spawn_file_actions_t *files, const char *cwd, int in, int out,
                     int messages)
{
    int err = in < 0 ? posix_spawn_file_actions_addopen(files, 0, "/dev/null", O_RDONLY, 0)
                     : posix_spawn_file_actions_adddup2(files, in, 0);

    if (!err)
        err = posix_spawn_file_actions_adddup2(files, out, 1);
    if (!err)
        err = posix_spawn_file_actions_adddup2(files, messages, 2);
#ifdef __GLIBC_PREREQ
#if __GLIBC_PREREQ(2, 34)
    if (!err) /* our descriptors are O_CLOEXEC, inherited ones are not */
        err = posix_spawn_file_actions_addclosefrom_np(files, 3);
#endif
#endif
    return err ? err : posix_spawn_file_actions_addchdir_np(files, cwd);
}

/* Our threads block signals, and our parent may have set some to be ignored. Returns errno. */
static int set_signals(posix_spawnattr_t *how)
{
    sigset_t all, none;
    int err;

    sigfillset(&all);
    sigemptyset(&none);
    err = posix_spawnattr_setsigdefault(how, &all);
    if (!err)
        err = posix_spawnattr_setsigmask(how, &none);
    if (!err)
        err = posix_spawnattr_setpgroup(how, 0);
    return err ? err
               : posix_spawnattr_setflags(how, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
                                                   POSIX_SPAWN_SETPGROUP);
}

/* 0 or -errno. */
static int spawn(const char *command, const char *cwd, int in, int out, int messages, pid_t *ret)
{
    const char *const words[] = {"sh", "-c", command, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    int err = posix_spawn_file_actions_init(&files);

    if (err)
        return -err;
    err = posix_spawnattr_init(&how);
    if (!err) {
        err = set_files(&files, cwd, in, out, messages);
        if (!err)
            err = set_signals(&how);
        if (!err)
            err = posix_spawn(ret, "/bin/sh", &files, &how, (char *const *)words, environ);
        posix_spawnattr_destroy(&how);
    }
    posix_spawn_file_actions_destroy(&files);
    return -err;
}

/* Move fd above 0, 1 and 2, so that dup2() in the child overwrites no other descriptor. */
static int behind_standard(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

/* The kernel may spare the daemon when memory is short (fs/life/privileges.h); it must not spare
 * the commands. */
static void take_part_in_oom(pid_t pid)
{
    static const char no_favour[] = "0";
    char path[40], score[8] = "";
    AUTO_CLOSE int ours = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC), theirs = -1;

    if (ours < 0 || read(ours, score, sizeof(score)) <= 0 || *score != '-')
        return;
    snprintf(path, sizeof(path), "/proc/%ld/oom_score_adj", (long)pid);
    theirs = open(path, O_WRONLY | O_CLOEXEC);
    if (theirs < 0 || write(theirs, no_favour, 1) < 0)
        return; /* it is then spared as well */
}

int child_start(struct child *ret, const char *command, const char *cwd, int in_fd, int out_fd)
{
    AUTO_CLOSE int in = in_fd < 0 ? -1 : behind_standard(in_fd), out = behind_standard(out_fd);
    AUTO_CLOSE int ours = -1, theirs = -1, high = -1;
    int ends[2], r;
    pid_t pid;

    if (out < 0 || (in_fd >= 0 && in < 0) || pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    ours = ends[0];
    theirs = ends[1];
    high = behind_standard(theirs);
    if (high < 0 || fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
        return -errno;
    r = spawn(command, cwd, in, out, high, &pid);
    if (r < 0)
        return r;
    take_part_in_oom(pid);
    *ret = (struct child){
        .pid = pid, .pid_fd = (int)syscall(SYS_pidfd_open, pid, 0), .messages_fd = TAKE_FD(ours)};
    return 0;
}

/* Read some of its messages. False: there are no more for now. */
static bool read_messages(struct child *child)
{
    char bytes[MESSAGE_READ];
    ssize_t n = child->messages_fd < 0 ? 0 : read(child->messages_fd, bytes, sizeof(bytes));
    size_t fresh, kept;

    if (n < 0)
        return errno == EINTR;
    if (n == 0) { /* no writer is left; poll() would report this again and again */
        scope_close(&child->messages_fd);
        child->messages_fd = -1;
        return false;
    }
    fresh = (size_t)min_u64((uint64_t)n, CHILD_MESSAGES);
    kept = (size_t)min_u64(child->messages_len, CHILD_MESSAGES - fresh);
    memmove(child->messages, child->messages + child->messages_len - kept, kept);
    memcpy(child->messages + kept, bytes + (size_t)n - fresh, fresh);
    child->messages_len = kept + fresh;
    return true;
}

/* 1: it waits to be reaped; 0: it is running; or -errno. */
static int has_ended(const struct child *child)
{
    siginfo_t info = {.si_pid = 0};

    if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
        return -errno;
    return info.si_pid == child->pid;
}

/* Kill what is left of the group, and reap the child, which has ended or is killed with it. */
static int reap(struct child *child)
{
    int status = -1;

    kill(-child->pid, SIGKILL);
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    child->pid = 0;
    return status;
}

static void wait_for_event(struct child *child, const struct clock *clock, int64_t until)
{
    struct pollfd fds[] = {{.fd = child->pid_fd, .events = POLLIN},
                           {.fd = child->messages_fd, .events = POLLIN}};
    int ms = clock_poll_ms(clock, until);

    if (child->pid_fd < 0 && ms > LOOK_MS)
        ms = LOOK_MS;
    if (poll(fds, ARRAY_LEN(fds), ms) > 0 && fds[1].revents)
        read_messages(child);
}

int child_wait(struct child *child, const struct clock *clock, int64_t until, int *ret_status)
{
    int r;

    while ((r = has_ended(child)) == 0) {
        if (clock_monotonic(clock) >= until)
            return 0;
        wait_for_event(child, clock, until);
    }
    if (r < 0) {
        child->pid = 0; /* no longer ours: something else reaped it */
        return r;
    }
    *ret_status = reap(child);
    for (unsigned i = 0; i < 32 && read_messages(child); i++)
        continue; /* a pipe holds 64 KiB; a process outside the group may go on writing */
    return 1;
}

const char *child_messages(struct child *child)
{
    while (child->messages_len && child->messages[child->messages_len - 1] == '\n')
        child->messages_len--;
    for (size_t i = 0; i < child->messages_len; i++)
        if ((unsigned char)child->messages[i] < ' ')
            child->messages[i] = ' ';
    child->messages[child->messages_len] = '\0';
    return child->messages;
}

void child_release(struct child *child)
{
    if (child->pid)
        reap(child);
    scope_close(&child->pid_fd);
    scope_close(&child->messages_fd);
    *child = CHILD_NONE;
}
