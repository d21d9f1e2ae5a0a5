/* A run: its states, and the function behind each transition:
 *
 *   WAITING -> RUNNING  begin()       it has the lock of the entry and started the child
 *   WAITING -> DONE     begin()       another process has made the entry
 *   RUNNING -> DONE     publish()     the child has ended well, the entry is whole
 *   DONE    -> ENDED    commands_poll() has returned the output
 *   any     -> ENDED    end_run()     on any error: the child is killed, the .part removed
 *
 * Runs that are WAITING or RUNNING hold a place in struct commands; the others hold none. */
#include "cache/named/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/text.h"
#include "cache/disk/entry.h"
#include "cache/disk/local_file.h"
#include "cache/disk/quota.h"
#include "cache/named/child.h"
#include "cache/source/within.h"

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S  INT64_C(1000000000)
/* Bytes of quota for an output. AHEAD_MOST: taken at a time at most; LITTLE: if no more is left,
 * all is taken; LOW: when less is unused, more is taken. */
#define QUOTA_AHEAD_MAX (UINT64_C(1) << 30)
#define QUOTA_LITTLE    (UINT64_C(32) << 20)
#define QUOTA_LOW       (UINT64_C(64) << 10)
#define QUOTA_LOOK_MS   4  /* between two checks of an output that has a limit */
#define LOOK_MS         20 /* between two checks of a place, or of a lock of another process */

enum run_state { RUN_WAITING, RUN_RUNNING, RUN_DONE, RUN_ENDED };

struct opener_run {
    struct commands *commands;
    struct opener_run *next; /* guarded by commands->lock */
    enum run_state state;
    bool has_place;
    struct entry entry;
    int part_fd; /* RUNNING: the entry in the making; otherwise -1 */
    struct child child;
    bool has_status; /* the child has ended, with: */
    int status;
    struct child writer;        /* copies its output to the entry */
    struct allowance allowance; /* quota of that output */
    int64_t deadline;           /* of the current state */
    struct blob *output;        /* DONE */
    char command[];
};

void commands_init(struct commands *ret, const struct cache_folder *cache, struct lazy_pool *pool,
                   const char *cwd, bool allowed, unsigned limit_s, const struct clock *clock)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    *ret = (struct commands){
        .cache = cache,
        .pool = pool,
        .cwd = cwd ? cwd : "/",
        .allowed = allowed,
        .limit_s = limit_s,
        .clock = clock_or_real(clock),
        .most = cores > 0 ? 2 * (unsigned)cores : 2,
    };
    lock_init(&ret->lock);
    condition_init(&ret->freed);
}

void commands_release(struct commands *commands)
{
    while (commands->first)
        commands_stop(commands->first);
    pthread_cond_destroy(&commands->freed);
    lock_release(&commands->lock);
}

static int take_place(struct opener_run *run)
{
    struct commands *commands = run->commands;
    LOCK_SCOPE(&commands->lock);

    if (commands->n >= commands->most)
        return -EAGAIN;
    commands->n++;
    run->next = commands->first;
    commands->first = run;
    run->has_place = true;
    return 0;
}

static void give_place_back(struct opener_run *run)
{
    struct opener_run **at = &run->commands->first;
    LOCK_SCOPE(&run->commands->lock);

    if (!run->has_place)
        return;
    while (*at != run)
        at = &(*at)->next;
    *at = run->next;
    run->commands->n--;
    run->has_place = false;
    pthread_cond_broadcast(&run->commands->freed);
}

/* Wait a little: until a place is free, or LOOK_MS have passed, or it is `until`. */
static void pause_until(struct commands *commands, int64_t until)
{
    int64_t next_look = clock_monotonic(commands->clock) + LOOK_MS * NS_PER_MS;
    LOCK_SCOPE(&commands->lock);

    clock_wait(commands->clock, &commands->lock, &commands->freed,
               next_look < until ? next_look : until);
}

static void end_run(struct opener_run *run)
{
    child_release(&run->child);
    child_release(&run->writer);
    if (run->part_fd >= 0) {
        entry_abandon(&run->entry, run->part_fd, &run->allowance);
        close(TAKE_FD(run->part_fd));
    }
    give_place_back(run);
    run->state = RUN_ENDED;
}

/* Set the reason of err: what happened to the command. Returns err. */
static int command_error(const struct opener_run *run, int err, const char *what, struct diag *d)
{
    return diag_set(d, err, "command '%.400s': %s", run->command, what);
}

/* If a word names a file, add the version of that file. */
static int add_word(struct text *t, const char *cwd, const char *word, size_t len)
{
    char name[PATH_MAX], path[PATH_MAX];
    AUTO_FREE char *text = NULL;
    struct file_version version;
    struct stat st;
    int r;

    if (len >= sizeof(name))
        return 0;
    memcpy(name, word, len);
    name[len] = '\0';
    if (path_join(cwd, *word == '/' ? 0 : strlen(cwd), name, path) < 0 || stat(path, &st) < 0 ||
        !S_ISREG(st.st_mode))
        return 0;
    version = file_version_of(&st);
    r = file_version_text(&version, &text);
    if (r == 0)
        text_add(t, "%s\n", text);
    return r;
}

/* What determines the output, as far as it can be known. */
static int make_identity(const struct commands *commands, const char *command, char **ret)
{
    static const char white_space[] = " \t";
    AUTO_TEXT struct text t = {0};
    const char *at = command + strspn(command, white_space);
    const char *cwd = commands->cwd;
    int r = 0;

    text_add(&t, "command 1\n%zu %s\n%zu %s\n", strlen(cwd), cwd, strlen(command), command);
    if (commands->cache->group.is_shared) /* what it prints depends on the rights of its user */
        text_add(&t, "user %u\n", (unsigned)geteuid());
    while (*at && r == 0) {
        size_t len = strcspn(at, white_space);

        r = add_word(&t, cwd, at, len);
        at += len;
        at += strspn(at, white_space);
    }
    return r < 0 ? r : text_finish(&t, ret, NULL);
}

/* Make the whole entry, open as fd, the output of the run. */
static int take_output(struct opener_run *run, int fd, uint64_t size)
{
    AUTO_FREE char *name = NULL;
    char path[PATH_MAX];
    int r = text_print(&name, "%s |", run->command);

    entry_path(&run->entry, "", path);
    if (r < 0) {
        close(fd);
        return r;
    }
    r = lazy_blob_new(run->commands->pool, fd, path, name, size, true, &run->output);
    if (r == 0) {
        give_place_back(run);
        run->state = RUN_DONE;
    }
    return r;
}

/* How much quota to take at a time: a part of the remaining quota, because other commands and
 * staged blocks need some as well. */
static uint64_t quota_ahead(const struct opener_run *run)
{
    uint64_t limit = quota_limit(run->allowance.quota), used = quota_used(run->allowance.quota);

    if (limit <= used)
        return 0;
    /* If little is left, take all: an output that grows between two checks must not fail because of
     * them. */
    return limit - used <= QUOTA_LITTLE ? limit - used
                                        : min_u64((limit - used) / 4, QUOTA_AHEAD_MAX);
}

/* Limit the writer's file to the quota that was taken; the kernel enforces it. 0 or -errno. */
static int limit_writer(const struct opener_run *run)
{
    struct rlimit limit = {0};

    if (!run->allowance.quota)
        return 0;
    if (getrlimit(RLIMIT_FSIZE, &limit) < 0) /* the limit that we inherited */
        return -errno;
    limit.rlim_cur = min_u64(run->allowance.taken - entry_tail(&run->entry), limit.rlim_cur);
    return prlimit(run->writer.pid, RLIMIT_FSIZE, &limit, NULL) < 0 ? -errno : 0;
}

/* Take more quota before the writer has used up what it has. If the writer is faster, or no quota
 * is left, the kernel sends it a signal. */
static void follow_output(struct opener_run *run)
{
    struct allowance *a = &run->allowance;
    uint64_t ahead;
    struct stat st;

    if (!a->quota || fstat(run->part_fd, &st) < 0)
        return;
    allowance_written(a, (uint64_t)st.st_size);
    ahead = quota_ahead(run);
    if (a->taken - min_u64(a->taken, (uint64_t)st.st_size) >= max_u64(ahead / 2, QUOTA_LOW))
        return;
    if (run->writer.pid && allowance_raise(a, a->taken + 1, ahead) == 0)
        limit_writer(run);
}

/* child_wait(), while taking quota for the output as it grows. */
static int wait_for(struct opener_run *run, struct child *child, int64_t until, int *ret_status)
{
    const struct clock *clock = run->commands->clock;

    for (;;) {
        int64_t now = clock_monotonic(clock), next_look = now + QUOTA_LOOK_MS * NS_PER_MS;
        int r;

        follow_output(run);
        r = child_wait(child, clock, run->allowance.quota && next_look < until ? next_look : until,
                       ret_status);
        if (r != 0 || now >= until)
            return r;
    }
}

/* The output goes through a second process, which reports if it cannot write all of it: a command
 * can succeed even though its own writes have failed. */
static int start_child(struct opener_run *run)
{
    AUTO_CLOSE int read_end = -1, write_end = -1;
    int ends[2], r;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    read_end = ends[0];
    write_end = ends[1];
    r = child_start(&run->writer, "exec cat", "/", read_end, run->part_fd);
    if (r == 0)
        r = limit_writer(run); /* nothing is written yet */
    return r < 0 ? r : child_start(&run->child, run->command, run->commands->cwd, -1, write_end);
}

static int no_space(struct opener_run *run, struct diag *d)
{
    struct allowance *a = &run->allowance;
    struct diag why = DIAG_INIT;

    a->wanted = max_u64(a->wanted, a->taken + 1);
    allowance_refused(a, run->entry.folder, &why);
    return diag_set(d, -ENOSPC, "command '%.400s': its output cannot be kept: %s", run->command,
                    why.text);
}

/* Start the command, unless another process runs it, or has run it. 0 or -errno. */
static int begin(struct opener_run *run, struct diag *d)
{
    uint64_t size = 0;
    struct diag reason = DIAG_INIT;
    int fd = -1, r = entry_begin(&run->entry, false, &fd, &size, &reason);

    if (r == -EAGAIN)
        return 0;
    if (r > 0)
        return take_output(run, fd, size);
    if (r < 0)
        return diag_set(d, r, "command '%.400s': its output in %.400s: %s", run->command,
                        run->entry.folder, diag_text(&reason, r));
    run->part_fd = fd;
    run->allowance = (struct allowance){.quota = run->entry.quota};
    r = run->entry.quota
            ? allowance_raise(&run->allowance, entry_tail(&run->entry), quota_ahead(run))
            : 0;
    if (r == -ENOSPC)
        return no_space(run, d);
    if (r == 0)
        r = start_child(run);
    if (r < 0)
        return diag_set(d, r == -EAGAIN ? -EIO : r, "command '%.400s': cannot start in %.400s: %s",
                        run->command, run->commands->cwd, strerror(-r));
    run->deadline = clock_monotonic(run->commands->clock) + run->commands->limit_s * NS_PER_S;
    run->state = RUN_RUNNING;
    return 0;
}

/* Find the entry and the output in it. 0 or -errno. */
static int find_output(struct opener_run *run, struct diag *d)
{
    const struct commands *commands = run->commands;
    AUTO_FREE char *identity = NULL;
    struct diag reason = DIAG_INIT;
    uint64_t size = 0;
    int fd = -1, r = make_identity(commands, run->command, &identity);

    if (r == 0)
        r = entry_init(&run->entry, commands->cache, "commands", identity, run->command, &reason);
    if (r == 0)
        r = entry_open_checked(&run->entry, &fd, &size);
    if (r == 0)
        return take_output(run, fd, size);
    return r == -ENOENT && !reason.set ? 0 : command_error(run, r, diag_text(&reason, r), d);
}

static struct opener_run *new_run(struct commands *commands, const char *command)
{
    size_t len = strlen(command);
    struct opener_run *run = malloc(sizeof(*run) + len + 1);

    if (!run)
        return NULL;
    *run = (struct opener_run){
        .commands = commands,
        .state = RUN_WAITING,
        .part_fd = -1,
        .child = CHILD_NONE,
        .writer = CHILD_NONE,
        .deadline = clock_monotonic(commands->clock) + commands->limit_s * NS_PER_S,
    };
    memcpy(run->command, command, len + 1);
    return run;
}

int commands_kept(struct commands *commands, const char *command, struct blob **ret)
{
    struct opener_run *run = commands->allowed ? new_run(commands, command) : NULL;
    int r = run ? find_output(run, NULL) : commands->allowed ? -ENOMEM : -EACCES;

    if (r == 0 && run->state != RUN_DONE)
        r = -ENOENT;
    if (r == 0)
        *ret = TAKE_PTR(run->output);
    if (run)
        commands_stop(run);
    return r;
}

int commands_start(struct commands *commands, const char *command, struct opener_run **ret,
                   struct diag *d)
{
    struct opener_run *run;
    int r;

    if (!commands->allowed)
        return diag_set(d, -EACCES,
                        "%.500s |: expected a file, got a command; mount with -o allow_commands to "
                        "run it",
                        command);
    run = new_run(commands, command);
    if (!run)
        return -ENOMEM;
    r = find_output(run, d);
    if (r == 0 && run->state == RUN_WAITING)
        r = commands->paused ? -EAGAIN : take_place(run);
    if (r == -EAGAIN)
        pause_until(commands, CLOCK_NEVER); /* the caller tries again */
    if (r == 0 && run->state == RUN_WAITING)
        r = begin(run, d);
    if (r < 0) {
        commands_stop(run);
        return r;
    }
    *ret = run;
    return 0;
}

/* The child has succeeded: publish what it wrote as the entry. */
static int commands_publish(struct opener_run *run, struct diag *d)
{
    uint64_t size = 0;
    int part_fd = TAKE_FD(run->part_fd), fd = -1;
    int r = entry_commit(&run->entry, part_fd, true, &run->allowance, &size);

    close(part_fd);
    if (r == 0) /* the current size: a process outside the group may have gone on writing */
        r = entry_open(&run->entry, &fd, &size);
    if (r == 0)
        r = take_output(run, fd, size);
    return r < 0
               ? diag_set(d, r == -ENOENT ? -EIO : r, "command '%.400s': its output in %.400s: %s",
                          run->command, run->entry.folder, strerror(-r))
               : 0;
}

/* The error for a status other than 0. of: "", or what was not done. */
static int bad_status(struct opener_run *run, const char *part, struct child *child, int status,
                      struct diag *d)
{
    const char *messages = child_messages(child), *colon = *messages ? ": " : "";
    char what[CHILD_MESSAGES + 512];

    if (WIFEXITED(status))
        snprintf(what, sizeof(what), "%sexit status %d%s%s", part, WEXITSTATUS(status), colon,
                 messages);
    else
        snprintf(what, sizeof(what), "%skilled by signal %d (%s)%s%s", part, WTERMSIG(status),
                 strsignal(WTERMSIG(status)), colon, messages);
    return command_error(run, -EIO, what, d);
}

static int too_long(struct opener_run *run, struct diag *d)
{
    char what[CHILD_MESSAGES + 256];
    const char *messages = child_messages(&run->child);

    snprintf(what, sizeof(what),
             "%s %u s; if it may take longer, mount with a larger command_timeout=%s%s",
             run->state == RUN_RUNNING ? "killed after"
                                       : "another process has been running the same command for",
             run->commands->limit_s, *messages ? ": " : "", messages);
    return command_error(run, -ETIMEDOUT, what, d);
}

/* 0 or -errno; the state may have changed. */
static int poll_child(struct opener_run *run, int64_t until, struct diag *d)
{
    int written = 0, r = 1;

    if (!run->has_status) {
        r = wait_for(run, &run->child, until < run->deadline ? until : run->deadline, &run->status);
        run->has_status = r == 1;
        if (r == 1) /* from now on, wait for the rest of the pipe */
            run->deadline =
                clock_monotonic(run->commands->clock) + run->commands->limit_s * NS_PER_S;
    }
    if (r == 1)
        r = wait_for(run, &run->writer, until < run->deadline ? until : run->deadline, &written);
    if (r < 0)
        return command_error(run, r, strerror(-r), d);
    if (r == 0)
        return clock_monotonic(run->commands->clock) < run->deadline ? 0 : too_long(run, d);
    if (written && WIFSIGNALED(written) && WTERMSIG(written) == SIGXFSZ && run->allowance.quota)
        return no_space(run, d);
    if (written)
        return bad_status(run, "its output cannot be written into the cache folder: ", &run->writer,
                          written, d);
    return run->status ? bad_status(run, "", &run->child, run->status, d)
                       : commands_publish(run, d);
}

/* The same while another process runs the command. We poll, since nothing reports when it drops its
 * lock. */
static int poll_turn(struct opener_run *run, int64_t until, struct diag *d)
{
    const struct clock *clock = run->commands->clock;
    int r;

    while ((r = begin(run, d)) == 0 && run->state == RUN_WAITING) {
        int64_t now = clock_monotonic(clock);

        if (now >= run->deadline)
            return too_long(run, d);
        if (now >= until)
            return 0;
        pause_until(run->commands, until);
    }
    return r;
}

int commands_poll(struct opener_run *run, int wait_ms, struct blob **ret, struct diag *d)
{
    int64_t until = clock_monotonic(run->commands->clock) + (wait_ms > 0 ? wait_ms : 0) * NS_PER_MS;
    int r = run->state == RUN_ENDED ? -EINVAL : 0;

    if (run->state == RUN_WAITING)
        r = poll_turn(run, until, d);
    if (r == 0 && run->state == RUN_RUNNING)
        r = poll_child(run, until, d);
    if (r < 0) {
        end_run(run);
        return r;
    }
    if (run->state != RUN_DONE)
        return 0;
    *ret = TAKE_PTR(run->output);
    run->state = RUN_ENDED;
    return 1;
}

void commands_stop(struct opener_run *run)
{
    end_run(run);
    blob_free(run->output);
    free(run);
}
