/* epochfs status: what a mount is doing.
 *
 * A file of a mount whose daemon hangs cannot be read, and who tries may not even be killed. So a
 * child reads, and is left alone if it takes too long. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/text.h"
#include "fs/commands.h"
#include "fs/json.h"
#include "fs/mounts.h"
#include "fs/progress.h"

#define ANSWER_MS 5000 /* that the daemon may take */
#define WATCH_MS  1000

struct status_call {
    bool json, watch;
    const char *mountpoint; /* as the user gave it */
    char path[PATH_MAX];    /* the real one */
    /* For --watch: */
    bool rewrites; /* on a terminal */
    unsigned lines;
    int64_t last_ns;
    uint64_t last_served, last_fetched;
};

static void print_help(void)
{
    printf("usage: epochfs status [--json] [--watch] MOUNTPOINT\n\n"
           "Says how far a mount has come: datasets, reads, what is staged, errors. --json: all\n"
           "that is known, for programs (MOUNTPOINT/.epochfs/status.json). --watch: again each\n"
           "second, with rates, until Ctrl-C or until it is unmounted.\n");
}

/* The child: the file into the pipe; the exit code is an errno. */
static void read_and_exit(const char *path, int pipe_fd)
{
    char bytes[4096];
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        _exit(errno);
    while ((n = read(fd, bytes, sizeof(bytes))) > 0)
        if (write(pipe_fd, bytes, (size_t)n) != n)
            _exit(EPIPE);
    _exit(n < 0 ? errno : 0);
}

/* All that comes from the pipe. 0, -ETIMEDOUT, or -errno. */
static int collect(int pipe_fd, struct text *ret)
{
    int64_t until = monotonic_ns() + ANSWER_MS * INT64_C(1000000);
    struct pollfd p = {.fd = pipe_fd, .events = POLLIN};
    char bytes[4096];

    for (;;) {
        int64_t left = (until - monotonic_ns()) / 1000000;
        ssize_t n;

        if (left <= 0 || poll(&p, 1, (int)left) == 0)
            return -ETIMEDOUT;
        n = read(pipe_fd, bytes, sizeof(bytes));
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            return ret->failed ? -ENOMEM : 0;
        if (n > 0)
            text_add_bytes(ret, bytes, (size_t)n);
    }
}

static int read_patiently(const char *path, struct text *ret)
{
    int ends[2], r, code = 0;
    pid_t child;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    child = fork();
    if (child == 0)
        read_and_exit(path, ends[1]);
    close(ends[1]);
    r = child < 0 ? -EAGAIN : collect(ends[0], ret);
    close(ends[0]);
    if (r < 0 && child > 0)
        kill(child, SIGKILL);
    if (r < 0)
        return r;
    waitpid(child, &code, 0);
    return WIFEXITED(code) ? -WEXITSTATUS(code) : -EIO;
}

static int read_status(const struct status_call *call, struct text *ret)
{
    char path[PATH_MAX + 32];
    int r;

    snprintf(path, sizeof(path), "%s/.epochfs/status.json", call->path);
    r = read_patiently(path, ret);
    if (r == 0 && json_find(ret->data ? ret->data : "", "pid"))
        return EXIT_DONE;
    if (r == -ETIMEDOUT)
        return fail(EXIT_MOUNT, "%s: the daemon has not answered for %d s", call->mountpoint,
                    ANSWER_MS / 1000);
    if (r == -ENOTCONN || r == -ECONNABORTED)
        return fail(EXIT_MOUNT, "%s: its daemon has died; `epochfs umount` it", call->mountpoint);
    return fail(EXIT_MOUNT, "%s: %s", path, r ? strerror(-r) : "want its status, found other text");
}

static void add_mount(const char *json, struct text *t)
{
    int64_t since = now_ns() / 1000000000 - (int64_t)json_number(json, "started");
    char source[PATH_MAX], where[PATH_MAX], ago[HUMAN_ROOM];

    json_text(json, "source", source, sizeof(source));
    json_text(json, "mountpoint", where, sizeof(where));
    text_add(t, "source    %s\nmounted   on %s, %s ago, pid %llu\n", source, where,
             human_seconds(since > 0 ? (uint64_t)since : 0, ago),
             (unsigned long long)json_number(json, "pid"));
}

static void add_datasets(const char *json, struct text *t)
{
    uint64_t unusable = json_number(json, "unusable_files");
    uint64_t done = json_number(json, "index_bytes_done");
    uint64_t total = json_number(json, "index_bytes_total");

    text_add(t, "datasets  %llu of %llu ready",
             (unsigned long long)json_number(json, "datasets_ready"),
             (unsigned long long)json_number(json, "datasets"));
    if (done < total)
        text_add(t, ", %u %% indexed", percent_of(done, total));
    if (unusable)
        text_add(t, "; %llu file%s not usable", (unsigned long long)unusable,
                 unusable > 1 ? "s" : "");
    text_add(t, "\n");
}

/* " (12 MiB/s)", if the time is known that it took. */
static void add_rate(uint64_t now, uint64_t before, int64_t ns, struct text *t)
{
    char rate[HUMAN_ROOM];

    if (ns > 0 && now >= before)
        text_add(t, " (%s/s)",
                 human_bytes((uint64_t)((double)(now - before) / (double)ns * 1e9), rate));
}

static void add_error(const char *json, const char *path, const char *label, struct text *t)
{
    char reason[4096];

    if (json_text(json, path, reason, sizeof(reason)) && *reason)
        text_add(t, "%-9s %s\n", label, reason);
}

static void add_reads(const char *json, const struct status_call *call, int64_t ns, struct text *t)
{
    uint64_t served = json_number(json, "bytes_served");
    uint64_t errors = json_number(json, "read_errors");
    char bytes[HUMAN_ROOM];

    text_add(t, "reads     %s", human_bytes(served, bytes));
    add_rate(served, call->last_served, ns, t);
    text_add(t, ", %llu failed\n", (unsigned long long)errors);
    if (errors)
        add_error(json, "last_read_error", "  last", t);
    add_error(json, "last_broken_promise", "promise", t);
}

static uint64_t fetched_bytes(const char *json)
{
    return json_number(json, "remote.demand_bytes") + json_number(json, "remote.background_bytes");
}

static void add_fetched(const char *json, const struct status_call *call, int64_t ns,
                        struct text *t)
{
    uint64_t staged = json_number(json, "remote.staged_bytes");
    uint64_t total = json_number(json, "remote.total_bytes");
    uint64_t fetched = fetched_bytes(json), distinct = json_number(json, "remote.distinct_bytes");
    char a[HUMAN_ROOM], b[HUMAN_ROOM];

    text_add(t, "staged    %s of %s (%u %%)\n", human_bytes(staged, a), human_bytes(total, b),
             percent_of(staged, total));
    text_add(t, "fetched   %s", human_bytes(fetched, a));
    add_rate(fetched, call->last_fetched, ns, t);
    text_add(t, ", %s of it because a read waited",
             human_bytes(json_number(json, "remote.demand_bytes"), a));
    if (distinct)
        text_add(t, "; each byte %.2f times", (double)fetched / (double)distinct);
    text_add(t, "\n");
}

static void add_remote(const char *json, const struct status_call *call, int64_t ns, struct text *t)
{
    uint64_t hits = json_number(json, "remote.hits"), misses = json_number(json, "remote.misses");
    uint64_t limit = json_number(json, "remote.cache_limit_bytes");
    uint64_t refused = json_number(json, "remote.refused_inserts");
    char used[HUMAN_ROOM], most[HUMAN_ROOM];

    add_fetched(json, call, ns, t);
    if (hits + misses)
        text_add(t, "hits      %u %% of %llu reads\n", percent_of(hits, hits + misses),
                 (unsigned long long)(hits + misses));
    text_add(t, "waits     %llu, %.1f s in all\n",
             (unsigned long long)json_number(json, "remote.waits"),
             json_real(json, "remote.wait_seconds"));
    text_add(t, "errors    %llu, after %llu retries; %llu bad blocks, %llu bad files\n",
             (unsigned long long)json_number(json, "remote.errors"),
             (unsigned long long)json_number(json, "remote.retries"),
             (unsigned long long)json_number(json, "remote.bad_blocks"),
             (unsigned long long)json_number(json, "remote.bad_files"));
    text_add(t, "cache     %s", human_bytes(json_number(json, "remote.cache_used_bytes"), used));
    if (limit)
        text_add(t, " of %s", human_bytes(limit, most));
    if (refused)
        text_add(t, "; full: %llu blocks were not kept", (unsigned long long)refused);
    text_add(t, "\n");
    add_error(json, "remote.last_error", "trouble", t);
}

static void show_summary(const char *json, struct status_call *call)
{
    AUTO_TEXT struct text t = {0};
    int64_t now = monotonic_ns(), ns = call->last_ns ? now - call->last_ns : 0;
    unsigned lines = 0;

    add_mount(json, &t);
    add_datasets(json, &t);
    add_reads(json, call, ns, &t);
    if (json_find(json, "remote"))
        add_remote(json, call, ns, &t);
    for (const char *c = t.data; c && *c; c++)
        lines += *c == '\n';
    if (call->rewrites && call->lines)
        printf("\033[%uA\033[J", call->lines); /* so many lines up, and clear what is below */
    else if (call->watch && call->last_ns)
        putchar('\n');
    /* Lines that are too long for the terminal are cut, else there were more of them. */
    printf("%s%s%s", call->rewrites ? "\033[?7l" : "", t.data ? t.data : "",
           call->rewrites ? "\033[?7h" : "");
    call->lines = lines;
    call->last_ns = now;
    call->last_served = json_number(json, "bytes_served");
    call->last_fetched = fetched_bytes(json);
}

static int show_once(struct status_call *call)
{
    AUTO_TEXT struct text t = {0};
    int code = read_status(call, &t);

    if (code != EXIT_DONE)
        return code;
    if (call->json)
        fputs(t.data, stdout);
    else
        show_summary(t.data, call);
    fflush(stdout);
    return EXIT_DONE;
}

/* The kernel tells when the table of mounts changes, so the end of a mount is seen at once. */
static int watch(struct status_call *call)
{
    AUTO_CLOSE int table = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    struct pollfd p = {.fd = table, .events = POLLPRI};
    int code = EXIT_DONE;

    call->rewrites = isatty(STDOUT_FILENO) && !call->json;
    while (code == EXIT_DONE && mounts_find(call->path, NULL)) {
        int64_t next = monotonic_ns() + WATCH_MS * INT64_C(1000000), left;

        code = show_once(call);
        while (code == EXIT_DONE && (left = (next - monotonic_ns()) / 1000000) > 0)
            if (poll(&p, 1, (int)left) > 0 && !mounts_find(call->path, NULL))
                return EXIT_DONE;
    }
    return mounts_find(call->path, NULL) ? code : EXIT_DONE;
}

int command_status(int argc, char **argv)
{
    struct status_call call = {0};
    const struct command_line line = {
        "status", "MOUNTPOINT", print_help, NULL, {{"json", &call.json}, {"watch", &call.watch}}};
    int code = parse_command(argc, argv, &line, &call.mountpoint), r;

    if (code >= 0)
        return code;
    r = mounts_real_path(call.mountpoint, call.path);
    if (r < 0)
        return fail(EXIT_MOUNT, "%s: %s", call.mountpoint, strerror(-r));
    if (!mounts_find(call.path, NULL))
        return fail(EXIT_MOUNT, "%s: want an epochfs that is mounted there, found none",
                    call.mountpoint);
    return call.watch ? watch(&call) : show_once(&call);
}
