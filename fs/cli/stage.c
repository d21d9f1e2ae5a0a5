/* epochfs stage: fills the cache before a mount needs it.
 *
 * The stage gets all files as they are stored, whether or not a format takes them, and fetches
 * them. Then packed files are unpacked from the staged bytes, and everything is compared with its
 * checksums, because what was in the cache before may be damaged. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/array.h"
#include "base/checked.h"
#include "base/clock.h"
#include "cache/pack/unpack.h"
#include "fs/cli/commands.h"
#include "fs/cli/progress.h"
#include "fs/log/log.h"
#include "fs/tree/collections.h"

#define WAIT_MS    200
#define READ_BYTES (1 << 20)

struct stage_call {
    bool check, progress;
    const char *source;
};

struct staging {
    struct collections_user user; /* adds collections to blob */
    const struct stage_call *call;
    const struct format_options *formats;
    struct opened opened;
    struct blob **blob; /* [n_blobs] NULL: it cannot be opened */
    size_t n_blobs;
    size_t n_joined; /* the first ones: collections, which no packer has packed */
    size_t n_files;  /* in all of them */
    size_t unreadable;
    char shown[PATH_MAX]; /* SOURCE */
    struct progress progress;
};

static const char resumable[] = "what is staged is kept, and the same command continues from there";

/* The signal that ends the command. */
static volatile sig_atomic_t cli_stage_caught;
static volatile sig_atomic_t is_looked_at; /* else the handler ends us */

static void cli_stage_on_signal(int number)
{
    cli_stage_caught = number;
    if (!is_looked_at) {
        ssize_t n = write(STDERR_FILENO, "\nepochfs: ended; ", 17);

        n = n < 0 ? n : write(STDERR_FILENO, resumable, sizeof(resumable) - 1);
        n = n < 0 ? n : write(STDERR_FILENO, "\n", 1);
        _exit(128 + number);
    }
}

static void cli_stage_catch_signals(void)
{
    struct sigaction action = {.sa_handler = cli_stage_on_signal};

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static void staging_release(struct staging *s)
{
    for (size_t i = 0; i < s->n_blobs; i++)
        blob_free(s->blob[i]);
    free(s->blob);
    opened_release(&s->opened);
}

/* Takes blob over. */
static int cli_stage_add_blob(struct staging *s, struct blob *blob, size_t n_files)
{
    if (array_capacity(&s->blob, s->n_blobs, sizeof(struct blob *)) < 0) {
        blob_free(blob);
        return -ENOMEM;
    }
    s->blob[s->n_blobs++] = blob;
    s->n_files += n_files;
    return 0;
}

static int add_collection(struct collections_user *user, const struct format *format,
                          struct collection *c, struct blob *blob, const char *error)
{
    struct staging *s = (struct staging *)user;

    (void)format;
    if (error) {
        s->unreadable++;
        fail(EXIT_SOURCE, "%s", error);
    }
    return cli_stage_add_blob(s, blob, c->n);
}

static int cli_stage_add_file(struct staging *s, const struct source_entry *entry)
{
    struct diag reason = DIAG_INIT;
    struct blob *blob = NULL;
    int r = source_blob_packed(s->opened.source, entry, &blob, &reason);

    if (r == 0) { /* what was unpacked before need not be fetched again */
        r = unpack_find(&blob, &s->opened.cache, &reason);
        r = r == -ENOENT ? 0 : r;
    }
    if (r == -ENOMEM) {
        blob_free(blob);
        return r;
    }
    if (r < 0) {
        s->unreadable++;
        fail(EXIT_SOURCE, "%s", diag_text(&reason, r));
    }
    return cli_stage_add_blob(s, blob, 1);
}

/* Open all files through the stage. */
static int cli_stage_open_files(struct staging *s, struct diag *d)
{
    AUTO_SOURCE_LIST struct source_list list = {0};
    int r;

    s->user.add = add_collection;
    r = collections_each(s->opened.source, s->formats, &s->user, &list, d);
    s->n_joined = s->n_blobs;
    if (r == -EOPNOTSUPP)
        r = catalog_list(s->opened.source, &list, d);
    for (size_t i = 0; i < list.n && r == 0; i++)
        r = cli_stage_add_file(s, &list.entry[i]);
    if (r == 0 && !s->n_blobs)
        return diag_set(d, -ENODATA, "%s: no files found", s->shown);
    return r;
}

static uint64_t cli_stage_load(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Let what is under way be staged first, and count what other processes have staged: nothing was
 * counted if there was no space from the start. */
static int say_no_space(const struct staging *s)
{
    struct stage *stage = s->opened.source->stage;
    const struct stage_counters *c = stage_counters(stage);
    uint64_t staged, total;
    char needed[HUMAN_SIZE], have[HUMAN_SIZE], all[HUMAN_SIZE], limit[HUMAN_SIZE], used[HUMAN_SIZE];
    char left[HUMAN_SIZE] = "?";
    struct statvfs fs;

    stage_rest(stage);
    stage_count(stage);
    staged = cli_stage_load(&c->staged_bytes);
    total = cli_stage_load(&c->total_bytes);
    if (statvfs(s->opened.cache.path, &fs) == 0)
        human_bytes((uint64_t)fs.f_bavail * fs.f_frsize, left);
    return fail(
        EXIT_CACHE,
        "%s: the cache %s is full: expected %s more (%s of %s are staged), got %s in use of "
        "%s, and %s free on its disk; see cache_size= and `epochfs cache prune`",
        s->shown, s->opened.cache.path, human_bytes(total > staged ? total - staged : 0, needed),
        human_bytes(staged, have), human_bytes(total, all),
        human_bytes(quota_used(stage_quota(stage)), used),
        human_bytes(quota_limit(stage_quota(stage)), limit), left);
}

static int say_failed(const struct staging *s, int r, const struct diag *d)
{
    if (r == -ENOSPC)
        return say_no_space(s);
    return fail(is_cache_error(r) ? EXIT_CACHE : EXIT_SOURCE, "%s: %s", s->shown, diag_text(d, r));
}

/* Wait until all is staged. EXIT_DONE or the exit code of the program. */
static int bring(struct staging *s)
{
    struct stage *stage = s->opened.source->stage;
    const struct stage_counters *c = stage_counters(stage);
    struct diag d = DIAG_INIT;
    int r;

    progress_init(&s->progress, "staged", s->call->progress);
    is_looked_at = 1;
    while ((r = stage_wait(stage, WAIT_MS, &d)) == 0 && !cli_stage_caught)
        progress_show(&s->progress, cli_stage_load(&c->staged_bytes),
                      cli_stage_load(&c->total_bytes));
    progress_end(&s->progress, cli_stage_load(&c->staged_bytes), cli_stage_load(&c->total_bytes));
    is_looked_at = 0;
    if (r == 0) {
        stage_end(stage);
        return fail(128 + cli_stage_caught, "%s: ended; %s", s->shown, resumable);
    }
    return r < 0 ? say_failed(s, r, &d) : EXIT_DONE;
}

static void show_checked(void *ctx, uint64_t bytes)
{
    struct staging *s = ctx;

    progress_show(&s->progress, bytes,
                  cli_stage_load(&stage_counters(s->opened.source->stage)->total_bytes));
}

/* 0 or the error of stage_verify(). */
static int cli_stage_verify(struct staging *s, struct diag *d)
{
    struct stage *stage = s->opened.source->stage;
    uint64_t total = cli_stage_load(&stage_counters(stage)->total_bytes);
    int64_t quiet_until = s->call->check ? 0 : monotonic_ns();
    int r;

    progress_init(&s->progress, "checked", s->call->progress);
    s->progress.last_ns = quiet_until; /* usually verified already, so quick */
    r = stage_verify(stage, show_checked, s, d);
    if (r == 0 && (s->call->check || s->progress.last_ns != quiet_until))
        progress_end(&s->progress, total, total);
    else if (s->progress.line_is_open)
        fputc('\n', stderr);
    return r;
}

/* Unpack packed files, now that they are staged. */
static int unpack_all(struct staging *s)
{
    for (size_t i = s->n_joined; i < s->n_blobs; i++) {
        struct diag d = DIAG_INIT;
        int r = s->blob[i] ? unpack_blob(&s->blob[i], &s->opened.cache, NULL, &d) : 0;

        if (r < 0 && is_cache_error(r))
            return fail(EXIT_CACHE, "%s", diag_text(&d, r));
        if (r < 0) {
            s->unreadable++;
            fail(EXIT_SOURCE, "%s", diag_text(&d, r));
        }
    }
    return EXIT_DONE;
}

static int say_done(const struct staging *s)
{
    char all[HUMAN_SIZE];
    uint64_t bytes = 0;

    for (size_t i = 0; i < s->n_blobs; i++)
        bytes += s->blob[i] ? s->blob[i]->size : 0;
    if (s->unreadable)
        return fail(EXIT_SOURCE, "%s: %zu of %zu files could not be read", s->shown, s->unreadable,
                    s->n_files);
    printf("%s: %zu file%s, %s: complete and correct, in %s\n", s->shown, s->n_files,
           s->n_files == 1 ? "" : "s", human_bytes(bytes, all), s->opened.cache.path);
    return EXIT_DONE;
}

/* Read everything: the stage fetches wrong blocks again when a reader waits for them. */
static int cli_stage_read_all(const struct staging *s, struct diag *d)
{
    AUTO_FREE uint8_t *buf = malloc(READ_BYTES);
    int r = buf ? 0 : -ENOMEM;

    for (size_t i = 0; i < s->n_blobs; i++)
        for (uint64_t at = 0; r == 0 && s->blob[i] && at < s->blob[i]->size; at += READ_BYTES)
            r = blob_read(READ_WAITS, s->blob[i], buf,
                          (size_t)min_u64(READ_BYTES, s->blob[i]->size - at), at, d);
    return r;
}

static int cli_stage_fill(struct staging *s)
{
    struct diag d = DIAG_INIT;
    int r, code;

    stage_begin(s->opened.source->stage);
    code = bring(s);
    if (code ==
        EXIT_DONE) /* before cli_stage_verify(): other processes may have unpacked files already */
        code = unpack_all(s);
    if (code != EXIT_DONE)
        return code;
    r = cli_stage_verify(s, &d);
    if (r == -ENODATA) { /* damaged on disk */
        d = DIAG_INIT;
        r = cli_stage_read_all(s, &d);
        if (r == 0)
            r = cli_stage_verify(s, &d);
    }
    if (r < 0)
        return r == -ENODATA ? fail(EXIT_CACHE, "%s", diag_text(&d, r)) : say_failed(s, r, &d);
    return say_done(s);
}

static int cli_stage_check(struct staging *s)
{
    struct diag d = DIAG_INIT;
    int r = cli_stage_verify(s, &d);

    return r < 0 ? fail(EXIT_CACHE, "%s", diag_text(&d, r)) : say_done(s);
}

static int stage_source(const struct stage_call *call, struct options *options)
{
    AUTO(staging_release) struct staging s = {.call = call, .formats = &options->format};
    struct diag d = DIAG_INIT;
    int code, r;

    options->stages_local = true;
    options->source.stage.background = !call->check;
    shown_source(call->source, s.shown);
    log_set_level(options->log_level);
    cli_stage_catch_signals();
    code = open_source(call->source, options, &s.opened, &d);
    if (code != EXIT_DONE)
        return fail(code, "%s", diag_text(&d, -ENOMEM));
    if (!s.opened.source->stage)
        return fail(EXIT_SOURCE, "%s: expected a source that can be staged, got one that is not",
                    s.shown);
    log_source_note(s.opened.source);
    r = cli_stage_open_files(&s, &d);
    if (r < 0)
        return fail(is_cache_error(r) ? EXIT_CACHE : EXIT_SOURCE, "%s", diag_text(&d, r));
    return call->check ? cli_stage_check(&s) : cli_stage_fill(&s);
}

static int cli_stage_run(int argc, char **argv)
{
    AUTO_OPTIONS struct options options;
    struct stage_call call = {0};
    const struct command_line line = {
        .name = "stage",
        .word = "SOURCE",
        .usage = command_stage.usage,
        .about = "Fetches all of SOURCE into the cache, even if it is local. An interrupted "
                 "command continues where it stopped. The exit code is 0 if every byte is in the "
                 "cache and correct. It is 2 if the remote or one of its files cannot be read, "
                 "and 4 if the cache is full (cache_size=).",
        .example = "stage -o cache_size=200G s3://bucket/images",
        .options = &options,
        .flag = {{"verify", .set = &call.check, .old = "check",
                  .help = "fetch nothing, and read what is in the cache; the exit code is 4 if "
                          "anything is missing or wrong"},
                 {"progress", .set = &call.progress, .help = COMMAND_PROGRESS}}};
    int code;

    options_init(&options);
    code = parse_command(argc, argv, &line, &call.source);
    return code >= 0 ? code : stage_source(&call, &options);
}

const struct command command_stage = {"stage", cli_stage_run,
                                      "stage [--verify] [--progress] [-o OPTIONS] SOURCE"};
