/* epochfs index: writes what a mount would have to find out, for a folder next to the data. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "fs/cli/commands.h"
#include "fs/cli/progress.h"
#include "fs/log/log.h"

#define SHOW_NS 200000000

struct index_call {
    const char *source, *dir;
    bool progress;
};

static void cli_index_count(const struct catalog *catalog, uint64_t *ret_done, uint64_t *ret_total)
{
    *ret_done = *ret_total = 0;
    for (size_t i = 0; i < catalog->n; i++) {
        const struct dataset *ds = catalog->item[i].ds;
        uint64_t done, total;

        if (!ds || !ds->ops || !ds->ops->progress || ds->shares_blobs)
            continue;
        ds->ops->progress(ds, &done, &total);
        *ret_done += done;
        *ret_total += total;
    }
}

static void cli_index_prepare(const struct index_call *call, struct catalog *catalog)
{
    struct progress progress;
    uint64_t done, total;

    progress_init(&progress, "indexed", call->progress);
    while (!catalog_prepare(catalog, true, monotonic_ns() + SHOW_NS)) {
        cli_index_count(catalog, &done, &total);
        progress_show(&progress, done, total);
    }
    cli_index_count(catalog, &done, &total);
    if (total)
        progress_end(&progress, done, total);
}

/* Report what cannot be used. Returns how many. */
static size_t cli_index_report_bad(const struct catalog *catalog)
{
    size_t bad = 0;

    for (size_t i = 0; i < catalog->n; i++) {
        const struct catalog_item *item = &catalog->item[i];

        if (!item->ds)
            fail(EXIT_SOURCE, "%s", item->error);
        else if (dataset_state(item->ds) == DATASET_FAILED)
            fail(EXIT_SOURCE, "%s", item->ds->reason.text);
        else
            continue;
        bad++;
    }
    return bad;
}

static int cli_index_make(const struct index_call *call, struct options *options)
{
    AUTO_OPENED struct opened opened = {0};
    char shown[PATH_MAX];
    struct diag d = DIAG_INIT;
    bool has_list = false;
    size_t n = 0, bad;
    int r, code;

    options->makes_index = options->source.indexes = true;
    log_set_level(options->log_level);
    code = open_catalog(call->source, options, &opened, &d);
    if (code != EXIT_DONE)
        return fail(code, "%s", diag_text(&d, -ENOMEM));
    log_source_note(opened.source);
    cli_index_prepare(call, &opened.catalog);
    bad = cli_index_report_bad(&opened.catalog);
    r = shared_index_write(&opened.catalog.tools->shared, call->dir, &n, &has_list, &d);
    if (r == -ENODATA)
        return fail(EXIT_SOURCE, "%s: %s", shown_source(call->source, shown), diag_text(&d, r));
    if (r < 0)
        return fail(r == -EREMOTEIO || r == -ESTALE ? EXIT_SOURCE : EXIT_CACHE, "%s",
                    diag_text(&d, r));
    printf("%s: %zu index%s%s written; next to the data their folder is called %s\n", call->dir, n,
           n == 1 ? "" : "es", has_list ? " and the list of files" : "", SHARED_INDEX_FOLDER "/");
    return bad ? fail(EXIT_SOURCE, "%s: %zu of %zu datasets and files cannot be used",
                      shown_source(call->source, shown), bad, opened.catalog.n)
               : EXIT_DONE;
}

/* Without --output, take the first -o, which then is DIR, out of the arguments. Returns how many
 * are left. */
static int take_dir(int argc, char **argv, const char **ret)
{
    int n = 1;

    for (int i = 1; i < argc; i++)
        if (!strncmp(argv[i], "--o", 3)) /* getopt_long() takes abbreviations */
            return argc;
    for (int i = 1; i < argc; i++) {
        if (!*ret && !strcmp(argv[i], "-o") && i + 1 < argc)
            *ret = argv[++i];
        else
            argv[n++] = argv[i];
    }
    argv[n] = NULL;
    return n;
}

static int cli_index_run(int argc, char **argv)
{
    AUTO_OPTIONS struct options options;
    struct index_call call = {0};
    const struct command_line line = {
        .name = "index",
        .word = "SOURCE",
        .usage = command_index.usage,
        .about =
            "Finds out where the samples of archives, records, text and tables are, and which "
            "files a server or a bucket with 4,096 files or more has. Put DIR next to the data "
            "as the directory .epochfs/: every mount then fetches it instead of searching. "
            "The exit code is 2 if SOURCE has nothing to index. It is also 2 if a part of it "
            "cannot be used; the rest is then written. It is 4 if DIR or the cache cannot be "
            "written.",
        .example = "index /data/shards --output /data/shards/.epochfs",
        .options = &options,
        .flag = {{"output", " DIR", .text = &call.dir,
                  .help = "write to this directory, which is new, empty, or was made by this "
                          "command and is then replaced"},
                 {"progress", .set = &call.progress, .help = COMMAND_PROGRESS}}};
    int code;

    options_init(&options);
    argc = take_dir(argc, argv, &call.dir);
    code = parse_command(argc, argv, &line, &call.source);
    if (code >= 0)
        return code;
    if (!call.dir || !*call.dir || strchr(call.dir, '='))
        return fail(EXIT_USAGE,
                    "index: expected --output DIR, got %s%s%s; see "
                    "`epochfs index --help`",
                    call.dir ? "'" : "", call.dir ? call.dir : "none", call.dir ? "'" : "");
    return cli_index_make(&call, &options);
}

const struct command command_index = {"index", cli_index_run,
                                      "index SOURCE --output DIR [--progress] [-o OPTIONS]"};
