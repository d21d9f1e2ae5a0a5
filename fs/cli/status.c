/* epochfs status: shows what a mount is doing.
 *
 * A file of a mount whose daemon hangs cannot be read, and a process that tries may be impossible
 * to kill. So a watched child reads, and is left behind if it takes too long. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "fs/cli/commands.h"
#include "fs/cli/python.h"
#include "fs/cli/status_mounts.h"
#include "fs/cli/status_show.h"
#include "fs/cli/status_values.h"
#include "fs/life/mounts.h"
#include "fs/life/watched_child.h"

#define ANSWER_MS  5000 /* time limit for the daemon's answer */
#define WATCH_MS   1000
#define READ_BYTES (1 << 18)

struct status_call {
    bool json, watch;
    const char *html;       /* NULL, or the file to write */
    const char *mountpoint; /* as the user gave it */
    char path[PATH_MAX];    /* the real one */
    /* For --watch: */
    bool rewrites;  /* on a terminal */
    unsigned lines; /* lines on the screen */
    struct status_look last;
    struct status_lines shown; /* not on a terminal */
};

/* Ctrl-C: a watch ends. */
static volatile sig_atomic_t cli_status_caught;

static void cli_status_on_signal(int number)
{
    cli_status_caught = number;
}

/* In a child. Reads the file at once, because a second read would find that the time of the file
 * has changed. */
static int copy_file(const void *path, int out)
{
    static char bytes[READ_BYTES];
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return errno;
    while ((n = read(fd, bytes, sizeof(bytes))) > 0)
        if (write(out, bytes, (size_t)n) != n)
            return EPIPE;
    return n < 0 ? errno : 0;
}

/* Read a live text of the mount, which must have that member. */
static int read_live(const struct status_call *call, const char *name, const char *member,
                     struct text *ret)
{
    AUTO_JSON json_t *json = NULL;
    char path[PATH_MAX + 32];
    const struct watched_child_work work = {
        .work = copy_file, .ctx = path, .ms = ANSWER_MS, .cancelled = &cli_status_caught};
    int r;

    snprintf(path, sizeof(path), "%s/.epochfs/%s", call->path, name);
    r = watched_child_do(&work, ret);
    json = r == 0 ? status_parse(ret->data) : NULL;
    if (status_value(json, member))
        return EXIT_DONE;
    if (r == -EINTR)
        return EXIT_DONE; /* the watch must end */
    if (r == -ETIMEDOUT)
        return fail(EXIT_MOUNT, "%s: the daemon has not answered for %d s", call->mountpoint,
                    ANSWER_MS / 1000);
    if (r == -ENOTCONN || r == -ECONNABORTED)
        return fail(EXIT_MOUNT, "%s: its daemon has died; `epochfs umount` it", call->mountpoint);
    return fail(EXIT_MOUNT, "%s: %s", path,
                r ? strerror(-r) : "expected its status, got other text");
}

static int read_status(const struct status_call *call, struct text *ret)
{
    return read_live(call, "status.json", "pid", ret);
}

/* How many lines of the terminal may be used; a longer page is cut. */
static unsigned terminal_lines(void)
{
    struct winsize size;

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 1 ? size.ws_row - 1u
                                                                           : UINT_MAX;
}

/* Draw the page over the one before. Lines that are too long for the terminal are cut; wrapped,
 * they would be several lines. */
static void draw(struct status_call *call, const char *page)
{
    unsigned lines = 0, most = terminal_lines();
    const char *end = page;

    for (; *end && lines < most; end++)
        lines += *end == '\n';
    if (call->lines)
        printf("\033[%uA\033[J", call->lines); /* move up to the first line and clear below */
    printf("\033[?7l%.*s\033[?7h", (int)(end - page), page);
    call->lines = lines;
}

static void show_json(struct status_call *call, const char *json)
{
    AUTO_TEXT struct text t = {0};
    int64_t now = monotonic_ns();

    if (call->json) {
        fputs(json, stdout);
    } else if (call->watch && !call->rewrites) {
        status_show_lines(json, &call->last, now, now_ns(), &call->shown, &t);
        fputs(t.data ? t.data : "", stdout);
    } else {
        status_show_page(json, &call->last, now, &t);
        if (call->rewrites)
            draw(call, t.data ? t.data : "");
        else
            fputs(t.data ? t.data : "", stdout);
    }
    status_look_init(&call->last, json, now);
}

static int show_once(struct status_call *call)
{
    AUTO_TEXT struct text t = {0};
    int code = read_status(call, &t);

    if (code == EXIT_DONE && t.data && !cli_status_caught)
        show_json(call, t.data);
    fflush(stdout);
    return code;
}

static int say_gone(const struct status_call *call)
{
    AUTO_TEXT struct text event = {0};
    AUTO_TEXT struct text t = {0};

    text_add(&event, "%s: unmounted", call->path);
    if (call->json || event.failed)
        return EXIT_DONE;
    if (call->rewrites)
        text_add(&t, "%s\n", event.data);
    else
        status_show_event(now_ns(), event.data, &t);
    fputs(t.data ? t.data : "", stdout);
    return EXIT_DONE;
}

/* Write all of it to fd, which is closed. */
static int cli_status_write_all(int fd, const struct text *t)
{
    FILE *out = fdopen(fd, "w");
    bool good;

    if (!out) {
        close(fd);
        return -ENOMEM;
    }
    errno = 0;
    good = fwrite(t->data, 1, t->len, out) == t->len;
    good = fclose(out) == 0 && good;
    return good ? 0 : errno ? -errno : -EIO;
}

/* Permissions of a new file, as open() would give it. */
static mode_t usual_mode(void)
{
    mode_t mask = umask(0);

    umask(mask);
    return 0666 & ~mask;
}

/* Write a file under a name of its own first, which is new, and to which no user can put a link, so
 * that a browser never sees a part of it, and a file that was there stays if the new one cannot be
 * written. It keeps that file's permissions. */
static int write_anew(const char *name, mode_t mode, const struct text *t)
{
    char path[PATH_MAX];
    int fd, r;

    if (snprintf(path, sizeof(path), "%s.XXXXXX", name) >= (int)sizeof(path))
        return -ENAMETOOLONG;
    fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    r = fchmod(fd, mode) < 0 ? -errno : 0;
    if (r < 0)
        close(fd);
    else
        r = cli_status_write_all(fd, t);
    if (r == 0 && rename(path, name) < 0)
        r = -errno;
    if (r < 0)
        unlink(path);
    return r;
}

/* What is no file, as a link, a pipe or a device, stays what it is, and is written to. */
static int cli_status_write_file(const char *name, const struct text *t)
{
    struct stat st;
    bool is_there;
    int fd;

    if (!strcmp(name, "-"))
        return fwrite(t->data, 1, t->len, stdout) == t->len && fflush(stdout) == 0 ? 0 : -errno;
    is_there = lstat(name, &st) == 0;
    if (!is_there || S_ISREG(st.st_mode))
        return write_anew(name, is_there ? st.st_mode & 0777 : usual_mode(), t);
    fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return fd < 0 ? -errno : cli_status_write_all(fd, t);
}

/* Where each plan is, in words. */
static void status_add_places(const char *status, struct text *t)
{
    AUTO_JSON json_t *json = status_parse(status);
    const json_t *plans = status_value(json, "plans");

    for (size_t i = 0; i < json_array_size(plans); i++) {
        AUTO_TEXT struct text place = {0};

        status_show_place(json_array_get(plans, i), &place);
        text_add(t, i ? ", " : "");
        text_add_json(t, place.data);
    }
}

static int show_html(struct status_call *call)
{
    AUTO_TEXT struct text about = {0};
    AUTO_TEXT struct text json = {0};
    AUTO_TEXT struct text history = {0};
    AUTO_TEXT struct text page = {0};
    int code = read_status(call, &json), r;

    if (code == EXIT_DONE)
        code = read_live(call, "history.json", "samples", &history);
    if (code != EXIT_DONE)
        return code;
    text_add(&about, "{\"now\": %lld, \"status\": %s, \"history\": %s, \"places\": [",
             (long long)(now_ns() / 1000000000), json.data, history.data);
    status_add_places(json.data, &about);
    text_add(&about, "]}");
    code = python_run("status", &about, &page);
    if (code != EXIT_DONE)
        return code;
    r = cli_status_write_file(call->html, &page);
    return r < 0 ? fail(EXIT_MOUNT, "%s: %s", call->html, strerror(-r)) : EXIT_DONE;
}

static void cli_status_catch_signals(void)
{
    struct sigaction action = {.sa_handler = cli_status_on_signal};

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* The kernel reports changes of the table of mounts, so the end of a mount is noticed at once. */
static int cli_status_watch(struct status_call *call)
{
    AUTO_CLOSE int table = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    struct pollfd p = {.fd = table, .events = POLLPRI};
    int code = EXIT_DONE;

    cli_status_catch_signals();
    call->rewrites = isatty(STDOUT_FILENO) && !call->json;
    while (code == EXIT_DONE && !cli_status_caught && mounts_find(call->path, NULL)) {
        int64_t next = monotonic_ns() + WATCH_MS * INT64_C(1000000), left;

        code = show_once(call);
        while (code == EXIT_DONE && !cli_status_caught &&
               (left = (next - monotonic_ns()) / 1000000) > 0)
            if (poll(&p, 1, (int)left) > 0 && !mounts_find(call->path, NULL))
                return say_gone(call);
    }
    if (cli_status_caught)
        return EXIT_DONE;
    return mounts_find(call->path, NULL) ? code : say_gone(call);
}

static int cli_status_run(int argc, char **argv)
{
    struct status_call call = {0};
    const struct command_line line = {
        .name = "status",
        .word = "[MOUNTPOINT]",
        .usage = command_status.usage,
        .about = "Shows the progress of a mount: datasets, reads, staged bytes, errors. Without "
                 "MOUNTPOINT it lists the mounts of this user, with their sources and whether they "
                 "answer; for root, those of all users.",
        .example = "status --watch ~/mnt",
        .flag = {
            {"json", .set = &call.json,
             .help = "print everything as JSON, for programs: MOUNTPOINT/.epochfs/status.json"},
            {"watch", .set = &call.watch,
             .help = "repeat every second, with rates, until Ctrl-C or until it is unmounted. "
                     "A terminal is redrawn; elsewhere a line with the time is printed for "
                     "each plan that has advanced"},
            {"html", "=FILE", .text = &call.html,
             .help = "write a page for a browser, with charts of the last hour; '-' is the "
                     "standard output"}}};
    int code = parse_command(argc, argv, &line, &call.mountpoint), r;
    char above[PATH_MAX];

    if (code >= 0)
        return code;
    if (!call.mountpoint && (call.watch || call.html))
        return fail(EXIT_USAGE, "status: --%s: expected a MOUNTPOINT; `epochfs status` lists them",
                    call.watch ? "watch" : "html");
    if (!call.mountpoint)
        return status_mounts(call.json);
    r = mounts_real_path(call.mountpoint, call.path);
    if (r < 0)
        return fail(EXIT_MOUNT, "%s: %s", call.mountpoint, strerror(-r));
    if (mounts_find_above(call.path, above))
        return fail(EXIT_MOUNT,
                    "%s: expected the folder on which an epochfs is mounted, which is %s",
                    call.mountpoint, above);
    if (!mounts_find(call.path, NULL))
        return fail(EXIT_MOUNT, "%s: expected an epochfs that is mounted there, got none",
                    call.mountpoint);
    if (call.html && (call.json || call.watch))
        return fail(EXIT_USAGE, "status: expected --html alone, got it with --json or --watch");
    code = call.html ? show_html(&call) : call.watch ? cli_status_watch(&call) : show_once(&call);
    status_lines_release(&call.shown);
    return code;
}

const struct command command_status = {"status", cli_status_run,
                                       "status [--json] [--watch] [--html=FILE] [MOUNTPOINT]"};
