/* epochfs cache: maintains a cache folder. All of it works while mounts use the folder. */
#include <errno.h>
#include <getopt.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/values.h"
#include "cache/disk/inventory.h"
#include "cache/disk/local_file.h"
#include "cache/disk/quota.h"
#include "fs/cli/commands.h"
#include "fs/cli/progress.h"
#include "fs/options/help.h"
#include "fs/options/options.h"

#define DAY 86400

struct cache_call {
    const struct verb *verb;
    const char *folder; /* NULL: the default one */
    bool json, progress, all, dry_run;
    uint64_t older_than; /* days; UINT64_MAX: not given */
    uint64_t to;         /* bytes; UINT64_MAX: not given */
};

#define DAYS_MOST 36500

struct verb {
    const char *name;
    const char *options; /* letters of the options it takes, see long_options */
    int (*run)(const struct cache_call *call, const struct cache_folder *cache,
               const struct inventory *inventory);
};

static void cli_cache_print_help(void)
{
    static const struct {
        unsigned most;           /* of its number; 0: it has none */
        const char *name, *help; /* name NULL: a title */
    } lines[] = {
        {0, NULL, "list: prints what is in the cache, the least recently used first"},
        {0, "--json", "print JSON, for programs"},
        {0, NULL,
         "verify: reads everything, and removes damaged data; the exit code is 4 if it "
         "found any"},
        {0, "--progress", COMMAND_PROGRESS},
        {0, NULL,
         "prune: removes files that no process uses: damaged ones, those that dead "
         "processes left, and older versions of a file"},
        {DAYS_MOST, "--older-than DAYS", "also remove files that were not used for that many days"},
        {0, "--max-size SIZE",
         "also remove the least recently used files until SIZE (such as 200G) "
         "or less is left"},
        {0, "--all",
         "remove everything; mount a source with allow_commands again afterwards, "
         "because its commands must run again"},
        {0, "--dry-run", "remove nothing, and print what would be removed"},
    };
    AUTO_TEXT struct text help = {0};

    help_add_usage(&help, "usage: ", "cache list [--json] [DIR]");
    help_add_usage(&help, "       ", "cache verify [--progress] [DIR]");
    help_add_usage(&help, "       ",
                   "cache prune [--older-than DAYS] [--max-size SIZE] [--all] [--dry-run] [DIR]");
    help_add_paragraph(&help, "DIR is a cache directory (default: that of `epochfs mount`, see "
                              "cache_dir=). Mounts may keep using it.");
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        AUTO_TEXT struct text words = {0};

        text_add(&words, "%s", lines[i].help);
        if (lines[i].most)
            text_add(&words, " (range: 0 to %u)", lines[i].most);
        if (lines[i].name)
            help_add_entry(&help, lines[i].name, words.data ? words.data : "");
        else
            help_add_paragraph(&help, lines[i].help);
    }
    text_add(&help, "\nexample: epochfs cache prune --older-than 30 --max-size 200G\n");
    fputs(help.data && !help.failed ? help.data : "", stdout);
}

/* What a file is, for people. */
#define TITLE_SIZE (ENTRY_SOURCE_MAX + 128)
static const char *title(const struct inventory_file *file, char *ret, size_t capacity)
{
    if (file->is_staged && file->source)
        snprintf(ret, capacity, "%s", file->source);
    else
        snprintf(ret, capacity, "%s/%s%s%s%s", file->folder, file->id, file->is_part ? ".part" : "",
                 file->source ? " of " : "", file->source ? file->source : "");
    text_plain(ret, "");
    return ret;
}

/* The user of a file: his name, or his number where he has none. */
#define USER_SIZE 64
static const char *user_of(const struct inventory_file *file, char ret[static USER_SIZE])
{
    const struct passwd *user = getpwuid(file->uid);

    if (user)
        snprintf(ret, USER_SIZE, "%s", user->pw_name);
    else
        snprintf(ret, USER_SIZE, "%u", (unsigned)file->uid);
    text_plain(ret, "");
    return ret;
}

static uint64_t age_of(const struct inventory_file *file)
{
    time_t now = now_ns() / 1000000000;

    return now > file->used ? (uint64_t)(now - file->used) : 0;
}

/* What a mount takes at most without cache_size=. */
static uint64_t default_limit(const struct inventory *inventory)
{
    AUTO_OPTIONS struct options defaults;
    struct statvfs fs;

    options_init(&defaults);
    if (statvfs(inventory->path, &fs) < 0)
        return 0;
    return (uint64_t)fs.f_blocks * fs.f_frsize / 100 * defaults.source.stage.limit_percent;
}

/* ---- list ---- */

static void list_json(const struct inventory *inventory, struct text *t)
{
    char user[USER_SIZE];

    text_add(t, "{\n");
    json_add_text(t, "  ", "folder", inventory->path);
    text_add(t, "  \"files\": [");
    for (size_t i = 0; i < inventory->n; i++) {
        const struct inventory_file *f = &inventory->file[i];

        text_add(t, "%s\n    {", i ? "," : "");
        json_add_text(t, NULL, "kind", f->folder);
        json_add_text(t, NULL, "id", f->id);
        json_add_text(t, NULL, "url", f->is_staged ? f->source : NULL);
        json_add_text(t, NULL, "source", f->source);
        json_add_text(t, NULL, "user", user_of(f, user));
        json_add_number(t, NULL, "size", f->size);
        json_add(t, NULL, "staged", f->is_sparse ? "%llu" : "null", (unsigned long long)f->present);
        text_add(t,
                 ", \"disk\": %llu, \"age_seconds\": %llu, \"in_use\": %s, \"damaged\": %s, "
                 "\"part\": %s, \"superseded\": %s}",
                 (unsigned long long)f->disk, (unsigned long long)age_of(f),
                 f->in_use ? "true" : "false", f->is_damaged ? "true" : "false",
                 f->is_part ? "true" : "false", f->is_superseded ? "true" : "false");
    }
    text_add(t, "%s],\n  \"disk_bytes\": %llu,\n  \"default_limit_bytes\": %llu\n}\n",
             inventory->n ? "\n  " : "", (unsigned long long)inventory->disk,
             (unsigned long long)default_limit(inventory));
}

static void list_people(const struct inventory *inventory, struct text *t)
{
    char a[HUMAN_SIZE], b[HUMAN_SIZE], name[TITLE_SIZE], staged[16], user[USER_SIZE];

    if (inventory->n)
        text_add(t, "%10s %10s %7s %12s  %-10s %s\n", "disk", "size", "staged", "last used", "user",
                 "file");
    for (size_t i = 0; i < inventory->n; i++) {
        const struct inventory_file *f = &inventory->file[i];

        snprintf(staged, sizeof(staged), f->is_sparse && !f->is_damaged ? "%u %%" : "-",
                 percent_of(f->present, f->size));
        text_add(t, "%10s %10s %7s", human_bytes(f->disk, a), human_bytes(f->size, b), staged);
        text_add(t, " %12s  %-10s %s%s%s%s%s\n", human_seconds(age_of(f), a), user_of(f, user),
                 title(f, name, sizeof(name)), f->in_use ? ", in use" : "",
                 f->is_damaged ? ", damaged" : "",
                 f->is_part && !f->in_use ? ", left by a process that died" : "",
                 f->is_superseded ? ", an older version" : "");
    }
    text_add(t, "%s: %zu file%s, %s", inventory->path, inventory->n, inventory->n == 1 ? "" : "s",
             human_bytes(inventory->disk, a));
    text_add(t, " of the %s that a mount takes without cache_size=\n",
             human_bytes(default_limit(inventory), a));
}

static int list(const struct cache_call *call, const struct cache_folder *cache,
                const struct inventory *inventory)
{
    AUTO_TEXT struct text t = {0};

    (void)cache;
    if (call->json)
        list_json(inventory, &t);
    else
        list_people(inventory, &t);
    if (t.failed)
        return fail(EXIT_CACHE, "%s", strerror(ENOMEM));
    fputs(t.data, stdout);
    return EXIT_DONE;
}

/* Why a file could not be changed. */
static const char *cli_cache_why_not(int r)
{
    return r == -EISDIR ? "expected a file, got a folder that is not empty; remove it"
                        : file_error(r);
}

/* ---- verify ---- */

/* The result for all files. */
struct verified {
    size_t bad;  /* damaged or unreadable */
    size_t left; /* of them, those damaged that could not be changed */
};

static void verify_one(const struct inventory *inventory, const struct inventory_file *file,
                       struct progress *progress, struct verified *all)
{
    uint64_t good = 0, bad = 0;
    int r = inventory_verify(inventory, file, &good, &bad);
    char name[TITLE_SIZE];

    if (r == -ENOENT || (r == 0 && !bad))
        return;
    all->bad++;
    all->left += r < 0 && bad;
    if (progress->line_is_open)
        fputc('\n', stderr);
    progress->line_is_open = false;
    title(file, name, sizeof(name));
    if (r < 0)
        fail(EXIT_CACHE, "%s/%s/%s: %s: %s: %s", inventory->path, file->folder, file->id, name,
             bad ? "is damaged, and cannot be removed" : "cannot be read", cli_cache_why_not(r));
    else if (good)
        fail(EXIT_CACHE, "%s/%s/%s: %s: %llu of %llu blocks were wrong and have been dropped",
             inventory->path, file->folder, file->id, name, (unsigned long long)bad,
             (unsigned long long)(good + bad));
    else
        fail(EXIT_CACHE, "%s/%s/%s: %s: damaged, and removed or emptied", inventory->path,
             file->folder, file->id, name);
}

static int cli_cache_verify(const struct cache_call *call, const struct cache_folder *cache,
                            const struct inventory *inventory)
{
    struct progress progress;
    uint64_t done = 0;
    struct verified found = {0};
    char all[HUMAN_SIZE];

    (void)cache;
    progress_init(&progress, "checked", call->progress);
    for (size_t i = 0; i < inventory->n; i++) {
        progress_show(&progress, done, inventory->disk);
        verify_one(inventory, &inventory->file[i], &progress, &found);
        done += inventory->file[i].disk;
    }
    progress_end(&progress, done, inventory->disk);
    if (found.left)
        return fail(EXIT_CACHE,
                    "%s: %zu of %zu files are damaged, or cannot be read; %zu could not be dropped",
                    inventory->path, found.bad, inventory->n, found.left);
    if (found.bad)
        return fail(EXIT_CACHE,
                    "%s: %zu of %zu files are damaged, or cannot be read; what is damaged was "
                    "dropped",
                    inventory->path, found.bad, inventory->n);
    printf("%s: %zu file%s, %s: no damage\n", inventory->path, inventory->n,
           inventory->n == 1 ? "" : "s", human_bytes(inventory->disk, all));
    return EXIT_DONE;
}

/* ---- prune ---- */

/* Why a file is removed; NULL: it remains. left: bytes that all files take now. */
static const char *why_remove(const struct cache_call *call, const struct inventory_file *file,
                              uint64_t left)
{
    if (file->in_use)
        return NULL;
    if (file->is_damaged)
        return "damaged";
    if (file->is_part)
        return "left by a process that died";
    if (file->is_superseded)
        return "an older version";
    if (call->all)
        return "not in use";
    if (call->older_than != UINT64_MAX && age_of(file) / DAY >= call->older_than)
        return "not used for long";
    if (left > call->to)
        return "the least recently used";
    return NULL;
}

/* Remove files in two rounds, the oldest first: the first round removes only files that no mount
 * can use. Returns how many files could not be removed. */
static size_t prune_all(const struct cache_call *call, const struct inventory *inventory,
                        size_t *ret_removed, uint64_t *ret_bytes)
{
    AUTO_FREE bool *gone = calloc(inventory->n + 1, sizeof(*gone));
    const struct cache_call no_good = {.older_than = UINT64_MAX, .to = UINT64_MAX};
    size_t failed = 0;

    for (unsigned round = 0; gone && round < 2; round++) {
        for (size_t i = 0; i < inventory->n; i++) {
            const struct inventory_file *file = &inventory->file[i];
            const char *why =
                why_remove(round ? call : &no_good, file, inventory->disk - *ret_bytes);
            char name[TITLE_SIZE], bytes[HUMAN_SIZE];
            int r;

            if (gone[i] || !why)
                continue;
            gone[i] = true;
            r = call->dry_run ? 0 : inventory_remove(inventory, file);
            if (r == -EBUSY || r == -ENOENT)
                continue;
            title(file, name, sizeof(name));
            if (r < 0) {
                fail(EXIT_CACHE, "%s/%s/%s: %s", inventory->path, file->folder, file->id,
                     cli_cache_why_not(r));
                failed++;
                continue;
            }
            printf("%s %s (%s, %s)\n", call->dry_run ? "would remove" : "removed", name,
                   human_bytes(file->disk, bytes), why);
            ++*ret_removed;
            *ret_bytes += file->disk;
        }
    }
    return failed;
}

/* Recount, so that mounts that use the folder learn of the freed space. */
static void recount(const struct cache_folder *cache)
{
    struct quota *quota;

    if (quota_open(cache, UINT64_MAX, 0, NULL, &quota, NULL) < 0)
        return;
    quota_recount(quota);
    quota_close(quota);
}

static int prune(const struct cache_call *call, const struct cache_folder *cache,
                 const struct inventory *inventory)
{
    size_t removed = 0, in_use = 0, failed;
    uint64_t bytes = 0;
    char freed[HUMAN_SIZE], left[HUMAN_SIZE];

    failed = prune_all(call, inventory, &removed, &bytes);
    if (removed && !call->dry_run)
        recount(cache);
    for (size_t i = 0; i < inventory->n; i++)
        in_use += inventory->file[i].in_use;
    printf("%s: %zu file%s %s, %s; %s left, %zu file%s in use\n", inventory->path, removed,
           removed == 1 ? "" : "s", call->dry_run ? "to remove" : "removed",
           human_bytes(bytes, freed), human_bytes(inventory->disk - bytes, left), in_use,
           in_use == 1 ? "" : "s");
    return failed ? EXIT_CACHE : EXIT_DONE;
}

/* ---- the command line ---- */

static const struct verb verbs[] = {
    {"list", "j", list},
    {"verify", "p", cli_cache_verify},
    {"prune", "otan", prune},
};

static int run_verb(const struct cache_call *call)
{
    AUTO(cache_folder_release) struct cache_folder cache = {0};
    AUTO_INVENTORY struct inventory inventory = {0};
    struct diag d = DIAG_INIT;
    int r = cache_folder_init(&cache, call->folder);

    if (r == 0)
        r = inventory_take(&cache, &inventory, &d);
    if (r == -ENOENT && !call->folder && !call->json) {
        printf("%s: there is no cache folder yet\n", cache.path);
        return EXIT_DONE;
    }
    return r < 0 ? fail(EXIT_CACHE, "%s", diag_text(&d, r))
                 : call->verb->run(call, &cache, &inventory);
}

/* name: of the flag, without "--" */
static int take_option(struct cache_call *call, int letter, const char *word, const char *name)
{
    struct diag d = DIAG_INIT;
    char flag[32];
    int r = 0;

    snprintf(flag, sizeof(flag), "--%s", name);
    if (letter == '?' || letter == ':' || !strchr(call->verb->options, letter))
        return fail(EXIT_USAGE, "cache %s: cannot make sense of '%s'; see `epochfs cache --help`",
                    call->verb->name, word);
    if (letter == 'j')
        call->json = true;
    else if (letter == 'p')
        call->progress = true;
    else if (letter == 'a')
        call->all = true;
    else if (letter == 'n')
        call->dry_run = true;
    else if (letter == 'o')
        r = value_count(flag, optarg, 0, DAYS_MOST, &call->older_than, &d);
    else
        r = value_size(flag, optarg, &call->to, &d);
    return r < 0 ? fail(EXIT_USAGE, "%s", diag_text(&d, r)) : EXIT_DONE;
}

static int parse_options(int argc, char **argv, struct cache_call *call)
{
    static const struct option long_options[] = {{"json", no_argument, NULL, 'j'},
                                                 {"progress", no_argument, NULL, 'p'},
                                                 {"older-than", required_argument, NULL, 'o'},
                                                 {"max-size", required_argument, NULL, 't'},
                                                 {"to", required_argument, NULL, 't'}, /* old */
                                                 {"all", no_argument, NULL, 'a'},
                                                 {"dry-run", no_argument, NULL, 'n'},
                                                 {"help", no_argument, NULL, 'h'},
                                                 {0}};
    int c, at = 0;

    optind = 1;
    opterr = 0;
    while ((c = getopt_long(argc, argv, "h", long_options, &at)) != -1) {
        int code;

        if (c == 'h') {
            cli_cache_print_help();
            exit(EXIT_DONE);
        }
        code = take_option(call, c, argv[optind - 1], long_options[at].name);
        if (code != EXIT_DONE)
            return code;
    }
    if (argc - optind > 1)
        return fail(EXIT_USAGE, "expected one DIR, got %d; see `epochfs cache --help`",
                    argc - optind);
    call->folder = argv[optind];
    return EXIT_DONE;
}

static int cli_cache_fail_unknown(const char *word)
{
    struct guess guess;

    guess_init(&guess, word);
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        guess_at(&guess, verbs[i].name);
    return fail(EXIT_USAGE, "expected list, verify or prune%s%s%s%s%s; see `epochfs cache --help`",
                *word ? ", got " : "", word, guess.name ? " (is it '" : "",
                guess.name ? guess.name : "", guess.name ? "'?)" : "");
}

static int cli_cache_run(int argc, char **argv)
{
    struct cache_call call = {.older_than = UINT64_MAX, .to = UINT64_MAX};
    int code;

    if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        cli_cache_print_help();
        return EXIT_DONE;
    }
    for (size_t i = 0; argc > 1 && i < ARRAY_LEN(verbs); i++)
        if (!strcmp(argv[1], verbs[i].name))
            call.verb = &verbs[i];
    if (!call.verb)
        return cli_cache_fail_unknown(argc > 1 ? argv[1] : "");
    code = parse_options(argc - 1, argv + 1, &call);
    return code == EXIT_DONE ? run_verb(&call) : code;
}

const struct command command_cache = {"cache", cli_cache_run, "cache list|verify|prune [DIR]"};
