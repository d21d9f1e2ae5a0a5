/* epochfs export: the batches of an epoch as files of a folder, without a mount.
 *
 * Each file is written under another name and then gets its own, so a file that has its name is
 * whole. A command that was interrupted goes on: it writes the files that are missing, or have
 * another size. The folder says of which export its files are: those of another seed have the same
 * names, and the same sizes. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/pool.h"
#include "fs/cli/by_library.h"
#include "fs/cli/commands.h"
#include "fs/plan/plan.h"

#define MARK ".epochfs-export"

#define AT_A_TIME 1024 /* files that are given to the pool at once */

struct exporting {
    /* Set before files are written: */
    const char *source, *options, *plan, *folder, *encoding, *dataset;
    uint64_t epoch;
    struct epochfs *fs;
    struct text from; /* the folder of the batches */
    size_t n;
    char **name;  /* [n] of files; owned */
    size_t start; /* of those that are written now */

    _Atomic uint64_t kept;
    _Atomic int code; /* of the program */
    struct lock lock; /* of the message of a failure: the first one is printed */
};

static void exporting_fail(struct exporting *e, int code, const char *what, const char *reason)
{
    LOCK_SCOPE(&e->lock);

    if (atomic_exchange(&e->code, code) == EXIT_DONE)
        fail(code, "%s%s%s", what, *what ? ": " : "", reason);
}

/* Has the folder the whole file already? */
static bool cli_export_has(struct exporting *e, const char *path, const char *place)
{
    struct epochfs_stat whole = {.size = sizeof(whole)};
    struct stat st;

    return stat(place, &st) == 0 && epochfs_stat(e->fs, path, &whole, NULL) == 0 &&
           (uint64_t)st.st_size == whole.bytes;
}

/* Write a file under another name, then give it its own. */
static void cli_export_write(struct exporting *e, const char *path, const char *place)
{
    struct epochfs_error error = {.size = sizeof(error)};
    AUTO_FREE char *partial = NULL;
    AUTO_CLOSE int fd = -1;
    int r;

    if (asprintf(&partial, "%s.partial", place) < 0) {
        partial = NULL;
        exporting_fail(e, EXIT_SYSTEM, "", strerror(ENOMEM));
        return;
    }
    fd = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    r = fd < 0 ? -errno : by_library_copy(e->fs, path, fd, &error);
    if (r == 0 && rename(partial, place) < 0)
        r = -errno;
    if (r == 0)
        return;
    if (error.code)
        exporting_fail(e, EXIT_SOURCE, "", error.message);
    else
        exporting_fail(e, EXIT_SYSTEM, place, strerror(-r));
    unlink(partial);
}

static void cli_export_one(void *ctx, unsigned i)
{
    struct exporting *e = ctx;
    const char *name = e->name[e->start + i];
    AUTO_FREE char *path = NULL, *place = NULL;

    if (atomic_load(&e->code) != EXIT_DONE)
        return;
    if (asprintf(&path, "%s/%s", e->from.data, name) < 0)
        path = NULL;
    if (asprintf(&place, "%s/%s", e->folder, name) < 0)
        place = NULL;
    if (!path || !place)
        exporting_fail(e, EXIT_SYSTEM, "", strerror(ENOMEM));
    else if (cli_export_has(e, path, place))
        atomic_fetch_add(&e->kept, 1);
    else
        cli_export_write(e, path, place);
}

static int cli_export_all(struct exporting *e)
{
    struct pool *pool;

    if (pool_new(&pool) < 0)
        return fail(EXIT_SYSTEM, "%s", strerror(ENOMEM));
    for (e->start = 0; e->start < e->n && atomic_load(&e->code) == EXIT_DONE;
         e->start += AT_A_TIME) {
        unsigned n = (unsigned)(e->n - e->start < AT_A_TIME ? e->n - e->start : AT_A_TIME);

        pool_run(pool, n, cli_export_one, e);
    }
    pool_free(pool);
    if (atomic_load(&e->code) == EXIT_DONE)
        printf("%s: %zu files, %llu of them existed\n", e->folder, e->n,
               (unsigned long long)atomic_load(&e->kept));
    return atomic_load(&e->code);
}

/* ---- whose files the folder has ---- */

/* What decides about the bytes: no query of a URL, which may be a secret. */
static int cli_export_describe(struct exporting *e, struct text *ret)
{
    AUTO_FREE char *local = realpath(e->source, NULL);
    const char *source = local ? local : e->source;
    struct epochfs_stat st = {.size = sizeof(st)};
    struct epochfs_error error = {.size = sizeof(error)};
    AUTO_TEXT struct text first = {0};

    text_add(&first, "%s/%s", e->from.data, e->n ? e->name[0] : "");
    if (first.failed)
        return -ENOMEM;
    if (epochfs_stat(e->fs, first.data, &st, &error) < 0) {
        exporting_fail(e, EXIT_SOURCE, "", error.message);
        return -EIO;
    }
    text_add(ret, "%.*s\n%s\n%s\n%lld\n", (int)(local ? strlen(source) : strcspn(source, "?")),
             source, e->options ? e->options : "", e->from.data, (long long)st.mtime_ns);
    return ret->failed ? -ENOMEM : 0;
}

/* Is one of the files there? */
static bool cli_export_has_any(const struct exporting *e, int folder)
{
    for (size_t i = 0; i < e->n; i++)
        if (faccessat(folder, e->name[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
    return false;
}

/* Is the folder marked? 0: by this export; -EEXIST: by another one; -ENOENT: no; or -errno. */
static int cli_export_find_mark(int folder, const struct text *mark)
{
    AUTO_CLOSE int fd = openat(folder, MARK, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    AUTO_FREE char *found = fd < 0 ? NULL : malloc(mark->len + 1);

    if (fd < 0)
        return -errno;
    if (!found)
        return -ENOMEM;
    return read(fd, found, mark->len + 1) == (ssize_t)mark->len &&
                   !memcmp(found, mark->data, mark->len)
               ? 0
               : -EEXIST;
}

/* Mark it, whole or not at all. Results as above. */
static int cli_export_mark(int folder, const struct text *mark)
{
    AUTO_CLOSE int fd = -1;
    char name[64];
    ssize_t n;
    int r;

    snprintf(name, sizeof(name), MARK ".%ld", (long)getpid());
    fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return -errno;
    n = write(fd, mark->data, mark->len);
    r = n < 0 ? -errno : n < (ssize_t)mark->len ? -ENOSPC : 0;
    if (r == 0 && linkat(folder, name, folder, MARK, 0) < 0)
        r = -errno;
    if (r == -EPERM || r == -EOPNOTSUPP) /* a file system without hard links */
        return renameat(folder, name, folder, MARK) < 0 ? -errno : 0;
    unlinkat(folder, name, 0);
    return r == -EEXIST ? cli_export_find_mark(folder, mark) : r;
}

/* Begin a folder, or go on in one of the same export. 0; -EEXIST: it has files of another one. */
static int cli_export_begin(struct exporting *e)
{
    AUTO_CLOSE int folder = open(e->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO_TEXT struct text mark = {0};
    int r = folder < 0 ? -errno : cli_export_describe(e, &mark);

    if (r == 0)
        r = cli_export_find_mark(folder, &mark);
    if (r != -ENOENT)
        return r;
    return cli_export_has_any(e, folder) ? -EEXIST : cli_export_mark(folder, &mark);
}

/* ---- what there is ---- */

static int cli_export_add_name(void *ctx, const char *name)
{
    struct exporting *e = ctx;
    char **more;

    if (!(e->n & (e->n - 1))) { /* it is full: it has a power of two */
        more = realloc(e->name, (e->n ? 2 * e->n : 1) * sizeof(*more));
        if (!more) {
            atomic_store(&e->code, EXIT_SYSTEM);
            return 1;
        }
        e->name = more;
    }
    e->name[e->n] = strdup(name);
    if (!e->name[e->n]) {
        atomic_store(&e->code, EXIT_SYSTEM);
        return 1;
    }
    e->n++;
    return 0;
}

static void exporting_release(struct exporting *e)
{
    while (e->n)
        free(e->name[--e->n]);
    free(e->name);
    text_release(&e->from);
    lock_release(&e->lock);
    if (e->fs)
        epochfs_close(e->fs, NULL);
}

/* The datasets that lie at the root: *ctx is their names. */
struct cli_export_datasets {
    struct epochfs *fs;
    struct text names;
    unsigned n;
};

static int cli_export_add_dataset(void *ctx, const char *name)
{
    struct cli_export_datasets *found = ctx;
    struct epochfs_stat st = {.size = sizeof(st)};
    AUTO_TEXT struct text page = {0};

    text_add(&page, "%s/dataset.json", name);
    if (page.failed || epochfs_stat(found->fs, page.data, &st, NULL) < 0)
        return 0;
    text_add(&found->names, "%s%s", found->n++ ? ", " : "", name);
    return 0;
}

/* The dataset, if the user names none: there must be one alone. EXIT_DONE or the exit code. */
static int cli_export_find_dataset(struct exporting *e, struct cli_export_datasets *found)
{
    struct epochfs_error error = {.size = sizeof(error)};

    found->fs = e->fs;
    if (epochfs_list(e->fs, "", cli_export_add_dataset, found, &error) < 0)
        return by_library_fail(&error);
    if (found->names.failed)
        return fail(EXIT_SYSTEM, "%s", strerror(ENOMEM));
    if (found->n != 1)
        return fail(EXIT_USAGE, "expected --dataset=NAME%s%s", found->n ? ", one of " : "",
                    found->n ? found->names.data : "");
    e->dataset = found->names.data;
    return EXIT_DONE;
}

static int cli_export_epoch(struct exporting *e)
{
    struct epochfs_error error = {.size = sizeof(error)};
    struct diag d = DIAG_INIT;
    struct plan plan;
    int r;

    if (plan_parse(e->plan, strlen(e->plan), ',', &plan, &d) < 0)
        return fail(EXIT_USAGE, "%s", diag_text(&d, -EINVAL));
    text_add(&e->from, "%s/batches/%s/", e->dataset, e->plan);
    if (plan.seeded)
        text_add(&e->from, "epoch=%llu/", (unsigned long long)e->epoch);
    text_add(&e->from, "%s", e->encoding);
    if (e->from.failed)
        return fail(EXIT_SYSTEM, "%s", strerror(ENOMEM));
    if (epochfs_list(e->fs, e->from.data, cli_export_add_name, e, &error) < 0)
        return by_library_fail(&error);
    if (atomic_load(&e->code) != EXIT_DONE)
        return fail(EXIT_SYSTEM, "%s", strerror(ENOMEM));
    if (mkdir(e->folder, 0777) < 0 && errno != EEXIST)
        return fail(EXIT_SYSTEM, "%s: %s", e->folder, strerror(errno));
    r = cli_export_begin(e);
    if (atomic_load(&e->code) != EXIT_DONE)
        return atomic_load(&e->code);
    if (r == -EEXIST)
        return fail(
            EXIT_USAGE,
            "%s: has files of another export: expected the source, its version, the "
            "options, plan and epoch of .epochfs-export in it, got others or no such file. Use "
            "another directory",
            e->folder);
    return r < 0 ? fail(EXIT_SYSTEM, "%s: %s", e->folder, strerror(-r)) : cli_export_all(e);
}

static int cli_export_source(struct exporting *e, const char *source, const struct text *words)
{
    struct cli_export_datasets found = {0};
    int code = EXIT_DONE;

    e->fs = by_library_open(source, words, &code);
    if (e->fs && !e->dataset)
        code = cli_export_find_dataset(e, &found);
    if (e->fs && code == EXIT_DONE)
        code = cli_export_epoch(e);
    text_release(&found.names);
    return code;
}

static int cli_export_run(int argc, char **argv)
{
    AUTO_OPTIONS struct options options;
    AUTO_TEXT struct text words = {0};
    struct exporting e = {.encoding = "npz"};
    const struct command_line line = {
        .name = "export",
        .word = "SOURCE PLAN DIR",
        .usage = command_export.usage,
        .about = "Writes the batches of an epoch as files of the directory DIR, in parallel, "
                 "without a mount. PLAN is the name of a directory in batches/. An interrupted "
                 "command continues where it stopped: files of the right size are not written "
                 "again. DIR has the files of one export: another one is refused.",
        .example = "export --encoding=tar ~/images batch=1000,seed=7 /scratch/shards",
        .options = &options,
        .option_words = &words,
        .flag = {
            {"dataset", "=NAME", .text = &e.dataset,
             .help = "export this dataset; needed if SOURCE has several"},
            {"epoch", "=E", .number = &e.epoch, .most = UINT64_MAX, .help = "export this epoch"},
            {"encoding", "=NAME", .text = &e.encoding,
             .help = "write files of this encoding, such as npz, npy or tar; without it, npz"},
        }};
    const char *word[3];
    int code;

    options_init(&options);
    code = parse_command(argc, argv, &line, word);
    if (code >= 0)
        return code;
    e.source = word[0];
    e.options = words.data;
    e.plan = word[1];
    e.folder = word[2];
    lock_init(&e.lock);
    code = cli_export_source(&e, word[0], &words);
    exporting_release(&e);
    return code;
}

const struct command command_export = {
    "export", cli_export_run,
    "export [--dataset=NAME] [--epoch=E] [--encoding=NAME] [-o OPTIONS] SOURCE PLAN "
    "DIR"};
