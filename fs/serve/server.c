/* The life of a mount: made, mounted, served, unmounted.
 *
 * The end: a store into the page cache may wait for a page that a read has locked, so the push must
 * be over while reads are still answered. Therefore signals do not end the loop of libfuse, but
 * wake the shutdown thread. It lets readers go that wait for the remote, ends the push, and then
 * the loop. */
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/scope.h"
#include "base/thread.h"
#include "fs/life/beacon.h"
#include "fs/life/mounts.h"
#include "fs/log/log.h"
#include "fs/serve/parts.h"

#define READAHEAD_KB 1024

#define LOOK_MS      1000 /* between two looks at free memory, and at users that are left */
#define DARK_MS      20   /* between two tries to light the beacon, */
#define DARK_MOST    50   /* of which there are so many; then LOOK_MS */
#define LEFT_RETRY_S 5    /* retry limit for readers of what was unmounted */

/* libfuse's messages go where ours go; below a warning they are many, so they are logged for
 * debugging. */
static void log_libfuse(enum fuse_log_level level, const char *format, va_list args)
{
    char text[1024];

    vsnprintf(text, sizeof(text), format, args);
    text[strcspn(text, "\n")] = '\0';
    log_line(level <= FUSE_LOG_ERR       ? LOG_LEVEL_ERROR
             : level <= FUSE_LOG_WARNING ? LOG_LEVEL_WARNING
                                         : LOG_LEVEL_DEBUG,
             "%s", text);
}

/* ---- what the remote does ---- */

static void say_of_remote(void *ctx, const char *text)
{
    (void)ctx;
    log_warning("%s", text);
}

static void remote_failed(void *ctx, int error, const char *reason)
{
    struct server *s = ctx;

    remote_log_failed(&s->remote_log, reason, error == -EREMOTEIO, monotonic_ns());
}

static void remote_answered(void *ctx)
{
    struct server *s = ctx;

    remote_log_answered(&s->remote_log, monotonic_ns());
}

static void listen_to_stage(struct server *s)
{
    remote_log_init(&s->remote_log, say_of_remote, NULL);
    s->listener = (struct stage_listener){remote_failed, remote_answered, s};
    if (s->setup.stage)
        stage_set_listener(s->setup.stage, &s->listener);
}

/* ---- what the engine reports ---- */

static void server_note(void *ctx, enum log_level level, const char *text)
{
    (void)ctx;
    if (level == LOG_LEVEL_ERROR)
        log_error("%s", text); /* a reason, which may have anything in it */
    else
        log_lines(level, text);
}

/* Have the kernel drop its copy of the listing. */
static void server_grown(void *ctx, uint64_t ino)
{
    fuse_lowlevel_notify_inval_inode(((struct server *)ctx)->session, ino, 0, 0);
}

static void server_answer(void *ctx, const struct catalog_item *item, int error,
                          const struct diag *reason)
{
    slow_answer(ctx, item, error, reason);
    push_kick(((struct server *)ctx)->push); /* its plans may be announced now */
}

static int server_make_engine(struct server *s, struct diag *d)
{
    const struct server_setup *setup = &s->setup;
    const struct engine_setup engine = {
        .catalog = setup->catalog,
        .options = setup->options,
        .source = setup->source,
        .mountpoint = setup->mountpoint,
        .stage = setup->stage,
        .clock = &real_clock,
    };

    s->engine_events = (struct engine_events){
        .note = server_note, .grown = server_grown, .answer = server_answer, .ctx = s};
    return engine_init(&s->engine, &engine, &s->engine_events, d);
}

/* ---- making ---- */

/* "-o fsname=...,subtype=epochfs,..." with commas in values escaped. */
static int mount_options(const struct server_setup *setup, char **ret)
{
    AUTO_TEXT struct text t = {0};

    text_add(&t, "ro,default_permissions,nosuid,nodev,subtype=epochfs");
    if (!setup->options->for_fuse.data || !strstr(setup->options->for_fuse.data, "fsname=")) {
        text_add(&t, ",fsname=");
        for (const char *c = setup->source; *c; c++)
            text_add(&t, "%s%c", *c == ',' || *c == '\\' ? "\\" : "", *c);
    }
    if (setup->options->for_fuse.len)
        text_add(&t, ",%s", setup->options->for_fuse.data);
    return text_finish(&t, ret, NULL);
}

static int make_session(struct server *s, struct diag *d)
{
    AUTO_FREE char *options = NULL;
    int r = mount_options(&s->setup, &options);
    char *argv[] = {(char *)"epochfs", (char *)"-o", options, NULL};
    struct fuse_args args = FUSE_ARGS_INIT(3, argv);

    if (r < 0)
        return r;
    fuse_set_log_func(log_libfuse);
    s->session = fuse_session_new(&args, &serve_operations, sizeof(serve_operations), s);
    fuse_opt_free_args(&args);
    return s->session ? 0 : diag_set(d, -EINVAL, "libfuse refused the options %s", options);
}

/* Larger reads for large files: only root can raise the kernel's default of 128 KiB, and only from
 * outside of FUSE. Without it everything works, a little slower. */
static void raise_readahead(const struct mount_entry *entry)
{
    char path[64];
    FILE *setting;

    snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u/read_ahead_kb", entry->device_major,
             entry->device_minor);
    setting = fopen(path, "we");
    if (!setting)
        return;
    fprintf(setting, "%d\n", READAHEAD_KB);
    fclose(setting);
}

/* ---- signals ---- */

static const int end_signals[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP};
static int signal_events = -1; /* the eventfd of the server */

static void note_signal(int number)
{
    const uint64_t one = 1;
    int error = errno;

    (void)number;
    if (write(signal_events, &one, sizeof(one)) < 0) {
        /* It is full: an event is pending already. */
    }
    errno = error;
}

/* Not SIG_IGN, because commands that we run would inherit it. */
static void ignore_signal(int number)
{
    (void)number;
}

/* Signals that are sent to a whole job, for its programs to save their work, say, are not for
 * us. */
static const int others_signals[] = {SIGUSR1, SIGUSR2, SIGALRM, SIGPIPE};

/* nohup(1) has SIGHUP ignored, and it stays ignored. */
static void handle_signals(bool on)
{
    struct sigaction action = {.sa_handler = on ? note_signal : SIG_DFL}, before;
    const struct sigaction ignored = {.sa_handler = on ? ignore_signal : SIG_DFL};

    for (size_t i = 0; i < ARRAY_LEN(others_signals); i++)
        sigaction(others_signals[i], &ignored, NULL);
    for (size_t i = 0; i < ARRAY_LEN(end_signals); i++) {
        sigaction(end_signals[i], NULL, &before);
        if (end_signals[i] != SIGHUP || before.sa_handler != SIG_IGN)
            sigaction(end_signals[i], &action, NULL);
    }
}

/* Signals are handled from before the mount until the unmount, so that none leaves a mount behind.
 * A signal that comes before the shutdown thread listens is noted. A process that forks shares the
 * eventfd with the child that serves, so a signal to either ends the mount. */
static int take_signals(struct server *s)
{
    s->events = eventfd(0, EFD_CLOEXEC);
    if (s->events < 0)
        return -errno;
    signal_events = s->events;
    s->signals = true;
    handle_signals(true);
    return 0;
}

/* ---- mounting ---- */

/* What to do if a mount has failed because of the device, a right or the folder; "": all of them
 * are right. */
/* As libfuse looks for it. */
static bool has_fusermount(void)
{
    const char *path = getenv("PATH");
    AUTO_FREE char *copy = strdup(path ? path : "");
    char *next = copy, *folder, file[PATH_MAX];
    bool found = access("/usr/bin/fusermount3", X_OK) == 0;

    while (!found && (folder = strsep(&next, ":"))) {
        snprintf(file, sizeof(file), "%s/fusermount3", folder);
        found = access(file, X_OK) == 0;
    }
    return found;
}

static const char *mount_advice(const char *mountpoint)
{
    AUTO_CLOSE int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

    if (geteuid() != 0 && !has_fusermount())
        return ": fusermount3 cannot be run. Users mount with it; install it: sudo apt install "
               "fuse3 (Fedora: sudo dnf install fuse3)";
    if (fd >= 0 && geteuid() != 0 && access(mountpoint, W_OK) < 0)
        return ": you need write permission on the mountpoint. Use a folder that you own, such as "
               "~/mnt";
    if (fd >= 0 && (geteuid() != 0 || pass_has_right()))
        return "";
    if (fd >= 0)
        return ": root has no right to mount here, which is CAP_SYS_ADMIN; start the container "
               "with it "
               "(--cap-add SYS_ADMIN)";
    if (errno == ENOENT || errno == ENODEV || errno == ENXIO)
        return ": there is no /dev/fuse; load the module (modprobe fuse), or start the container "
               "with it (--device /dev/fuse --cap-add SYS_ADMIN)";
    return ": /dev/fuse cannot be opened; let its users read and write it (chmod 666 /dev/fuse), "
           "or "
           "start the container with it (--device /dev/fuse --cap-add SYS_ADMIN)";
}

int server_mount(const struct server_setup *setup, struct server **ret, struct diag *d)
{
    struct server *s = calloc(1, sizeof(*s));
    int r;

    if (!s)
        return -ENOMEM;
    s->setup = *setup;
    s->beacon = -1;
    lock_init(&s->slow.lock);
    condition_init(&s->slow.wake);
    kernel_pass_init(s);
    listen_to_stage(s);
    s->reported = calloc(setup->catalog->n, sizeof(*s->reported));
    r = s->reported ? server_make_engine(s, d) : -ENOMEM;
    pass_init(&s->pass, setup->options->open, setup->catalog, &s->engine.status.open);
    if (r == 0)
        r = promises_new(setup->options->reads_once, setup->options->reads_sorted, &s->promises);
    if (r == 0)
        serve_show_memory(s);
    if (r == 0)
        r = make_session(s, d);
    if (r == 0) {
        s->has_buffers = pthread_key_create(&s->buffer, free) == 0;
        r = s->has_buffers ? 0 : -ENOMEM;
    }
    if (r == 0)
        r = take_signals(s);
    if (r == 0 &&
        fuse_session_mount(s->session, setup->passed ? setup->passed : setup->mountpoint) != 0)
        r = diag_set(d, -EIO, "cannot mount on %s%s", setup->mountpoint,
                     mount_advice(setup->mountpoint));
    s->mounted = r == 0;
    if (r == 0)
        r = kernel_pass_start(s);
    if (r < 0) {
        server_free(s);
        return r;
    }
    *ret = s;
    return 0;
}

void server_leave(const struct server *s)
{
    close(fuse_session_fd(s->session));
}

/* ---- threads and the end ---- */

/* The main thread waits in the loop of libfuse; a signal makes it check whether the loop is
 * over. */
static void end_loop(struct server *s)
{
    const struct timespec a_while = {.tv_nsec = 5000000};

    fuse_session_exit(s->session);
    while (!atomic_load(&s->has_ended)) {
        pthread_kill(s->main, SIGTERM);
        nanosleep(&a_while, NULL);
    }
}

static void light_beacon(struct server *s)
{
    struct mount_entry mount;

    if (!s->device && mounts_find_mine(s->setup.mountpoint, &mount))
        s->device = makedev(mount.device_major, mount.device_minor);
    mount =
        (struct mount_entry){.device_major = major(s->device), .device_minor = minor(s->device)};
    s->beacon = s->device ? beacon_light(s->setup.mountpoint, &mount) : -1;
}

/* The mount was unmounted and still has users (umount -l). They may go on. But the end of the last
 * one would wait for a store, the store for a page that a read has locked, and the read for the
 * remote. That must not take long. */
static void serve_the_rest(struct server *s)
{
    log_info("unmounted while in use; it ends when its users close their files");
    push_quit(s->push);
    if (s->setup.stage)
        stage_limit_retry(s->setup.stage, LEFT_RETRY_S);
}

/* Wait until a signal has come, or the loop is over. */
static void server_wait_for_event(struct server *s)
{
    AUTO_CLOSE int watch = s->device ? mounts_watch() : -1;
    struct pollfd p[] = {
        {.fd = s->events, .events = POLLIN}, {.fd = watch, .events = POLLPRI}, {.events = POLLIN}};
    bool all_answered = true, is_gone = false;
    unsigned dark = 0;

    while (!p[0].revents) {
        if (s->beacon < 0)
            light_beacon(s);
        status_note(&s->engine.status);
        p[2].fd = all_answered ? s->beacon : -1; /* else only after LOOK_MS: no busy loop */
        p[1].revents = p[2].revents = 0;
        if (poll(p, ARRAY_LEN(p), s->beacon < 0 && dark++ < DARK_MOST ? DARK_MS : LOOK_MS) == 0) {
            serve_let_memory_go(s);
            if (is_gone) /* it has been gone for LOOK_MS */
                serve_the_rest(s);
            is_gone = false;
        }
        all_answered = !p[2].revents || beacon_answer(s->beacon);
        if (p[1].revents && !mounts_has_device(s->device)) {
            is_gone = true;
            p[1].fd = -1;
        }
    }
}

static void *shutdown_main(void *arg)
{
    struct server *s = arg;

    server_wait_for_event(s);
    if (atomic_load(&s->has_ended))
        return NULL;
    slow_stop(s);
    push_stop(s->push);
    end_loop(s);
    return NULL;
}

static int start_threads(struct server *s)
{
    const struct push_setup push = {
        .open_files = s->engine.open_files,
        .active_plans = s->engine.active_plans,
        .stage = s->setup.stage,
        .needs = s->setup.stage ? NULL : s->engine.needs,
        .ahead = s->setup.options->ahead,
        .options = &s->setup.options->source.stage,
        .session = s->session,
        .mountpoint = s->setup.mountpoint,
        .device = s->device,
        .passes = &s->engine.status.open.passes,
        .clock = &real_clock,
    };
    bool may_push = s->setup.options->ahead && *s->setup.mountpoint;
    int r, pushes = may_push || !s->setup.options->ahead ? 0 : -ENOTSUP;

    /* First: a fork() copies locks as they are, and other threads might hold some. */
    if (may_push)
        pushes = supervisor_start(fuse_session_fd(s->session), &s->supervisor);
    if (may_push && pushes == 0)
        pushes = push_start(&push, &s->push);
    r = slow_start(s, &serve_parked); /* its threads kick the push */
    if (r == 0 && pushes < 0)
        log_info("nothing is read ahead into the page cache: %s",
                 pushes == -ENOTSUP ? "Linux does not say where another program has mounted"
                                    : strerror(-pushes));
    return r;
}

/* libfuse ends its threads by pthread_cancel(). Its first call makes glibc open a library, and
 * abort if no descriptor is left by then. So open it now. */
static void load_unwinder(void)
{
    void *frame;

    backtrace(&frame, 1);
}

/* Start the threads, run the loop, end them. */
static int server_serve(struct server *s, struct fuse_loop_config *config)
{
    const uint64_t one = 1;
    int r = start_threads(s);
    bool has_shutdown_thread;

    stage_begin(s->setup.stage);
    /* Last: an earlier signal is noted, and all that it is to end exists by now. */
    has_shutdown_thread = r == 0 && thread_start(&s->shutdown_thread, shutdown_main, s) == 0;
    if (r == 0)
        r = has_shutdown_thread ? fuse_session_loop_mt(s->session, config) : -EAGAIN;
    atomic_store(&s->has_ended, true);
    if (has_shutdown_thread) {
        if (write(s->events, &one, sizeof(one)) < 0)
            log_error("eventfd: %s", strerror(errno));
        pthread_join(s->shutdown_thread, NULL);
    }
    slow_stop(s);
    push_stop(s->push);
    scope_close(&s->beacon); /* from now on the next mount may get this one's device number */
    s->beacon = -1;
    supervisor_stop(&s->supervisor);
    return r < 0 && r != -ECONNABORTED ? r : 0; /* -ECONNABORTED: others have unmounted */
}

int server_run(struct server *s)
{
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    struct mount_entry entry;
    int r = -ENOMEM;

    s->main = pthread_self();
    if (config) {
        fuse_loop_cfg_set_max_threads(config, SERVING_THREADS);
        fuse_loop_cfg_set_idle_threads(config, SERVING_THREADS);
        fuse_loop_cfg_set_clone_fd(config, 0);
        if (mounts_find_mine(s->setup.mountpoint, &entry)) {
            s->device = makedev(entry.device_major, entry.device_minor);
            raise_readahead(&entry);
            light_beacon(s);
        }
        load_unwinder();
        r = server_serve(s, config);
        fuse_loop_cfg_destroy(config);
    }
    return r;
}

void server_free(struct server *s)
{
    if (!s)
        return;
    if (s->mounted)
        fuse_session_unmount(s->session);
    if (s->signals) {
        handle_signals(false);
        close(s->events);
    }
    if (s->session)
        fuse_session_destroy(s->session);
    if (s->has_buffers)
        pthread_key_delete(s->buffer);
    if (s->setup.stage) { /* the stage is freed later, and calls these until then */
        stage_rest(s->setup.stage);
        stage_set_listener(s->setup.stage, NULL);
    }
    if (s->setup.from)
        source_listen_via(s->setup.from, NULL);
    remote_log_end(&s->remote_log);
    scope_close(&s->beacon);
    push_free(s->push);
    promises_free(s->promises);
    pass_release(&s->pass);
    engine_release(&s->engine);
    pthread_cond_destroy(&s->slow.wake);
    lock_release(&s->slow.lock);
    free(s->reported);
    free(s);
}
