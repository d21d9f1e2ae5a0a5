/* epochfs mount, and the same as a helper of mount(8).
 *
 * The source is opened and the file system mounted before the process forks, so that every error
 * reaches the caller's terminal and the exit code. The child serves; the parent waits until the
 * child reports and the mount answers. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/processors.h"
#include "cache/disk/quota.h"
#include "fs/cli/commands.h"
#include "fs/life/beacon.h"
#include "fs/life/daemon.h"
#include "fs/life/detach.h"
#include "fs/life/mounts.h"
#include "fs/life/notify.h"
#include "fs/life/passed.h"
#include "fs/life/privileges.h"
#include "fs/life/watched_child.h"
#include "fs/log/log.h"
#include "fs/options/help.h"
#include "fs/serve/server.h"
#include "fs/tree/splits.h"

#define LOCK_NS    INT64_C(5000000000) /* wait for another mount that begins there */
#define ANSWER_MS  5000 /* how long a mount that is already there may take to answer */
#define PREPARE_NS INT64_C(300000000) /* how long a mount waits for datasets to be ready */

struct mount_call {
    const char *source;
    const char *mountpoint;
    int passed; /* the descriptor that mountpoint names; -1: it is a folder */
    bool foreground;
    bool fake;   /* mount -f: do all but mount */
    bool helper; /* of mount(8) */
};

/* The exit codes of mount(8): a bit mask. */
static int mount_helper_code(int code)
{
    return code == EXIT_DONE ? 0 : code == EXIT_USAGE ? 1 : code == EXIT_SYSTEM ? 2 : 32;
}

static void print_mount_help(bool all)
{
    AUTO_TEXT struct text help = {0};

    text_add(&help,
             "usage: epochfs mount [-f] [-o OPTIONS] SOURCE MOUNTPOINT\n\n"
             "Mounts SOURCE on the directory MOUNTPOINT, and returns when the mount answers.\n\n");
    text_add(&help, "MOUNTPOINT may be /dev/fd/N: a descriptor of /dev/fuse that another program\n"
                    "has mounted.\n\n");
    help_add_entry(&help, "-f", "stay in the foreground, and print messages on the terminal");
    help_add_entry(&help, "-o OPTIONS", "set options, which commas separate");
    text_add(&help, "\nOPTIONS, joined by commas:\n");
    options_help(&help, all);
    text_add(&help,
             "\nA SIZE is a number of bytes, or has K, M, G or T after it (powers of 1024).\n\n"
             "example: epochfs mount -o image_size=224x224,cache_size=100G \\\n"
             "             s3://bucket/images ~/mnt\n"
             "in /etc/fstab: /data/mnist /mnt/mnist epochfs ro,plan=batch=128 0 0\n");
    fputs(help.data && !help.failed ? help.data : "", stdout);
}

static int fail_hanging(const char *path, const char *real, const struct mount_entry *mount)
{
    char process[40] = "";
    AUTO_CLOSE int fd = -1;
    pid_t pid;

    fd = beacon_find(real, mount, &pid);
    if (fd >= 0)
        snprintf(process, sizeof(process), ", process %ld,", (long)pid);
    return fail(EXIT_MOUNT,
                "mountpoint %s: an epochfs is mounted there, and its daemon%s has not answered for "
                "%d s; `epochfs umount` it",
                path, process, ANSWER_MS / 1000);
}

/* An epochfs is mounted on path already: go on only if its daemon is dead. path: as the user gave
 * it. */
static int take_dead_away(const char *path, const char *real, const struct mount_entry *mount)
{
    int asked = mounts_ask(real, mount, ANSWER_MS), r;
    struct diag d = DIAG_INIT;

    if (asked == -ETIMEDOUT)
        return fail_hanging(path, real, mount);
    if (asked != -ENOTCONN)
        return fail(EXIT_MOUNT, "mountpoint %s: an epochfs is mounted there; `epochfs umount` it",
                    path);
    r = detach(real, DETACH_LAZILY, &d);
    if (r < 0 && !mounts_is_gone(real, mount)) /* it may have succeeded late */
        return fail(EXIT_MOUNT, "mountpoint %s: an epochfs whose daemon has died: %s", path,
                    diag_text(&d, r));
    say("mountpoint %s: removed a stale mount left by a dead daemon", path);
    return EXIT_DONE;
}

/* Check that path is a folder; if it is not empty, write a byte to out. In a child. Returns an
 * errno. */
static int look_at_folder(const void *path, int out)
{
    struct dirent *entry;
    struct stat st;
    ssize_t n;
    DIR *dir;

    if (stat(path, &st) < 0)
        return errno;
    if (!S_ISDIR(st.st_mode))
        return ENOTDIR;
    dir = opendir(path);
    while (dir && (entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            n = write(out, "x", 1);
            (void)n;
            break;
        }
    if (dir)
        closedir(dir);
    return 0;
}

/* What is mounted there, or along the path, may hang. */
static int check_mountpoint(const char *path, char ret_real[static PATH_MAX])
{
    const struct watched_child_work check = {
        .work = look_at_folder, .ctx = ret_real, .ms = ANSWER_MS};
    AUTO_TEXT struct text content = {0};
    struct mount_entry mount;
    int code, r = mounts_real_path(path, ret_real);

    while (r == 0 && mounts_find(ret_real, &mount)) {
        code = take_dead_away(path, ret_real, &mount);
        if (code != EXIT_DONE)
            return code;
    }
    if (r == 0)
        r = watched_child_do(&check, &content);
    if (r == -ENOENT)
        return fail(EXIT_MOUNT, "mountpoint %s: expected a folder, got none; make it: mkdir -p %s",
                    path, path);
    if (r == -ENOTDIR)
        return fail(EXIT_MOUNT, "mountpoint %s: expected a folder", path);
    if (r == -ETIMEDOUT)
        return fail(EXIT_MOUNT, "mountpoint %s: the file system there does not answer", path);
    if (r < 0)
        return fail(EXIT_MOUNT, "mountpoint %s: %s", path, strerror(-r));
    if (content.len)
        log_warning("mountpoint %s: the folder is not empty; its files are hidden until epochfs is "
                    "unmounted",
                    path);
    return EXIT_DONE;
}

/* Another program has mounted. */
static int cli_mount_check_passed(const struct mount_call *call, const struct options *options,
                                  char ret_real[static PATH_MAX])
{
    struct diag d = DIAG_INIT;
    int r = 0;

    if (options->for_fuse.len)
        r = diag_set(&d, -EINVAL,
                     "option %.*s: means nothing with mountpoint %s, which another program has "
                     "mounted; set it there",
                     (int)strcspn(options->for_fuse.data, "=,"), options->for_fuse.data,
                     call->mountpoint);
    if (r == 0)
        r = passed_check(call->passed, ret_real, &d);
    return r < 0 ? fail(EXIT_USAGE, "%s", diag_text(&d, r)) : EXIT_DONE;
}

static void cli_mount_note(void *ctx, enum log_level level, const char *text)
{
    (void)ctx;
    log_line(level, "%s", text);
}

/* What the serving process does once it has answered the kernel for the first time. */
struct readiness {
    int pipe;    /* to the parent; -1: in the foreground */
    bool helper; /* of mount(8), which is the parent */
    const char *mountpoint;
};

static void say_ready(void *ctx)
{
    struct readiness *ready = ctx;
    ssize_t n;

    notify_ready();
    if (ready->pipe < 0 && isatty(STDERR_FILENO))
        say("mounted on %s until Ctrl-C, or `epochfs umount`", ready->mountpoint);
    if (ready->pipe < 0)
        return;
    log_to_syslog(ready->mountpoint);
    daemon_leave_files();
    n = write(ready->pipe, "r", 1);
    (void)n;
    close(ready->pipe);
    ready->pipe = -1;
}

/* The parent: wait for the child's report, then for the mount's answer. */
static int wait_for_mount(int pipe_fd, pid_t child, const char *mountpoint)
{
    struct stat st;
    ssize_t n;
    char word;

    do
        n = read(pipe_fd, &word, 1);
    while (n < 0 && errno == EINTR);
    if (n != 1) {
        int status = 0;

        waitpid(child, &status, 0);
        return fail(EXIT_MOUNT, "mount on %s: the daemon ended before it served (%s %d)",
                    mountpoint, WIFSIGNALED(status) ? "signal" : "exit code",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    if (*mountpoint && stat(mountpoint, &st) < 0)
        return fail(EXIT_MOUNT, "mount on %s does not answer: %s", mountpoint, strerror(errno));
    return EXIT_DONE;
}

static int serve_here(struct server *server, struct source *source)
{
    int r;

    stage_rest(source->stage); /* running threads would keep their privileges */
    privileges_spare_from_oom();
    r = privileges_reduce();
    if (r < 0)
        log_warning("privileges that are not needed could not be dropped: %s", strerror(-r));
    log_begin();
    r = server_run(server);
    server_free(server);
    log_end();
    return r < 0 ? fail(EXIT_MOUNT, "serving ended: %s", strerror(-r)) : EXIT_DONE;
}

/* opened: what is served; the child releases it. */
static int serve_in_background(struct server *server, struct readiness *ready,
                               const char *mountpoint, struct opened *opened)
{
    int ends[2], code;
    pid_t child;

    if (pipe2(ends, O_CLOEXEC) < 0) {
        server_free(server);
        return fail(EXIT_SYSTEM, "pipe: %s", strerror(errno));
    }
    child = fork();
    if (child < 0) {
        server_free(server);
        return fail(EXIT_SYSTEM, "fork: %s", strerror(errno));
    }
    if (child > 0) {
        close(ends[1]);
        /* The server now belongs to the child; freeing it here would unmount it. Leave it, because
         * if the child ends, processes that wait for an answer get an error only once no process
         * has the connection open. */
        server_leave(server);
        code = wait_for_mount(ends[0], child, mountpoint);
        _exit(ready->helper ? mount_helper_code(code) : code);
    }
    close(ends[0]);
    ready->pipe = ends[1];
    if (daemon_leave_session() < 0)
        _exit(EXIT_MOUNT);
    code = serve_here(server, opened->source);
    opened_release(opened);
    _exit(code);
}

/* Let mounts that begin at the same moment take turns. Returns a descriptor; -1: the folder cannot
 * be opened, so no other mount can begin there either. */
static int lock_mountpoint(const char *mountpoint)
{
    AUTO_CLOSE int fd = open(mountpoint, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    int64_t until = monotonic_ns() + LOCK_NS;

    while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && monotonic_ns() < until)
        poll(NULL, 0, 10);
    return TAKE_FD(fd);
}

/* Mount, but not while another mount begins there. */
static int cli_mount_alone(const struct server_setup *setup, struct server **ret, struct diag *d)
{
    AUTO_CLOSE int lock = lock_mountpoint(setup->mountpoint);

    if (mounts_find(setup->mountpoint, NULL))
        return diag_set(d, -EBUSY, "mountpoint %s: another epochfs was mounted there just now",
                        setup->mountpoint);
    return server_mount(setup, ret, d);
}

static int mount_opened(const struct mount_call *call, const struct options *options,
                        struct opened *opened, const char *source, const char *mountpoint)
{
    struct readiness ready = {.pipe = -1,
                              .helper = call->helper,
                              .mountpoint = *mountpoint ? mountpoint : call->mountpoint};
    char passed[PASSED_SIZE];
    const struct server_setup setup = {
        .catalog = &opened->catalog,
        .options = options,
        .source = source,
        .mountpoint = mountpoint,
        .passed = call->passed < 0 ? NULL : passed,
        .stage = opened->source->stage,
        .from = opened->source,
        .ready = say_ready,
        .ctx = &ready,
    };
    struct diag d = DIAG_INIT;
    struct server *server;
    int r;

    snprintf(passed, sizeof(passed), "/dev/fd/%d", call->passed);
    r = setup.passed ? server_mount(&setup, &server, &d) : cli_mount_alone(&setup, &server, &d);
    if (r < 0)
        return fail(EXIT_MOUNT, "%s", diag_text(&d, r));
    if (call->foreground)
        return serve_here(server, opened->source);
    stage_rest(opened->source->stage); /* a forked child has no other threads */
    return serve_in_background(server, &ready, mountpoint, opened);
}

/* Say it if the cache cannot hold the source. */
static void report_space(struct stage *stage, const struct options *options)
{
    AUTO_TEXT struct text note = {0};
    struct stage_space space;

    if (!stage || !options->source.stage.background)
        return;
    stage_space(stage, &space);
    status_space(&space, UINT64_MAX, &note);
    if (!note.len && space.total + space.others > space.limit) { /* now look closely */
        stage_count(stage);
        stage_space(stage, &space);
        status_space(&space, quota_could_free(stage_quota(stage)), &note);
    }
    if (note.data)
        log_warning("%s", note.data);
}

/* Prepare small files before the first request; the others are prepared while we serve. Commands
 * wait for the daemon: started here, they would not be its children. */
static void prepare_small(struct catalog *catalog)
{
    catalog->tools->opener.commands.paused = true;
    catalog_prepare(catalog, false, monotonic_ns() + PREPARE_NS);
    catalog->tools->opener.commands.paused = false;
    splits_note_all(catalog);
}

static int mount_source(const struct mount_call *call, const struct options *options)
{
    AUTO_OPENED struct opened opened = {0};
    AUTO_FREE char *name = NULL;
    char mountpoint[PATH_MAX];
    struct diag d = DIAG_INIT;
    int code;

    daemon_close_inherited(call->passed);
    log_set_level(options->log_level);
    code = call->passed < 0 ? check_mountpoint(call->mountpoint, mountpoint)
                            : cli_mount_check_passed(call, options, mountpoint);
    if (code != EXIT_DONE)
        return code;
    code = open_catalog(call->source, options, &opened, &d);
    if (code != EXIT_DONE)
        return fail(code, "%s", diag_text(&d, -ENOMEM));
    if (!call->fake)
        prepare_small(&opened.catalog);
    /* Some files may be missing behind a server that works: each has its ERROR.txt. */
    code = check_remote(call->source, &opened, UINT_MAX);
    if (code != EXIT_DONE)
        return code;
    opened_report(&opened, &(struct opened_reports){.note = cli_mount_note});
    report_space(opened.source->stage, options);
    name = source_name(opened.source);
    if (!name)
        return fail(EXIT_SYSTEM, "%s", strerror(ENOMEM));
    return call->fake ? EXIT_DONE : mount_opened(call, options, &opened, name, mountpoint);
}

static int parse_call(int argc, char **argv, const char *letters, struct mount_call *call,
                      struct options *options)
{
    static const struct option long_options[] = {{"help", no_argument, NULL, 'h'}, {0}};
    struct diag d = DIAG_INIT;
    int c, r;

    optind = 1;
    opterr = 0;
    while ((c = getopt_long(argc, argv, letters, long_options, NULL)) != -1) {
        switch (c) {
        case 'f':
            *(call->helper ? &call->fake : &call->foreground) = true;
            break;
        case 'o':
            r = options_parse(options, optarg, &d);
            if (r < 0)
                return fail(code_for(r, EXIT_USAGE), "%s", diag_text(&d, r));
            break;
        case 'h':
            print_mount_help(optind < argc && !strcmp(argv[optind], "all"));
            exit(EXIT_DONE);
        case 's':
        case 'n':
        case 'v':
        case 'N':
        case 't':
            break; /* for mount(8) itself */
        default:
            return fail(EXIT_USAGE, "cannot make sense of '%s'; see `epochfs mount --help`",
                        argv[optind - 1]);
        }
    }
    if (argc - optind != 2)
        return fail(EXIT_USAGE,
                    "expected SOURCE and MOUNTPOINT, got %d argument%s; see `epochfs mount --help`",
                    argc - optind, argc - optind == 1 ? "" : "s");
    call->source = argv[optind];
    call->mountpoint = argv[optind + 1];
    r = options_take_specifier(options, &call->source, &d);
    if (r < 0)
        return fail(code_for(r, EXIT_USAGE), "%s", diag_text(&d, r));
    if (passed_names(call->mountpoint))
        call->passed = passed_parse(call->mountpoint, &d);
    return d.set ? fail(EXIT_USAGE, "%s", d.text) : EXIT_DONE;
}

static int run_mount(int argc, char **argv, const char *letters, bool helper)
{
    AUTO_OPTIONS struct options options;
    struct mount_call call = {.passed = -1, .helper = helper};
    int code;

    options_init(&options);
    code = parse_call(argc, argv, letters, &call, &options);
    options.source.stage.idle_ns = processors_idle_ns; /* because a job computes next to a mount */
    return code == EXIT_DONE ? mount_source(&call, &options) : code;
}

static int cli_mount_run(int argc, char **argv)
{
    return run_mount(argc, argv, "fho:", false);
}

const struct command command_mount = {"mount", cli_mount_run,
                                      "mount [-f] [-o OPTIONS] SOURCE MOUNTPOINT"};

int command_mount_helper(int argc, char **argv)
{
    return mount_helper_code(run_mount(argc, argv, "sfnvho:N:t:", true));
}
