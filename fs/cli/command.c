/* What the commands share. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/values.h"
#include "cache/disk/folder_disk.h"
#include "cache/disk/inventory.h"
#include "cache/http/url.h"
#include "cache/pack/unpack.h"
#include "fs/cli/commands.h"
#include "fs/cli/progress.h"
#include "fs/life/mounts.h"
#include "fs/life/privileges.h"
#include "fs/log/log.h"
#include "fs/options/help.h"

#define QUIET_NS                                                                                   \
    INT64_C(600000000) /* before unpacking is shown, in addition to the time between two lines */

#define FLAGS_MOST ARRAY_LEN(((struct command_line *)NULL)->flag)

static void print_line(const char *format, va_list args)
{
    fputs("epochfs: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
}

void say(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_line(format, args);
    va_end(args);
}

int fail(int code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_line(format, args);
    va_end(args);
    return code;
}

int code_for(int r, int code)
{
    return r == -ENOMEM ? EXIT_SYSTEM : code;
}

/* EIO counts, because remotes fail with other errors. */
bool is_cache_error(int r)
{
    return r == -ENOSPC || r == -EDQUOT || r == -EPROTO || r == -EROFS || r == -EIO ||
           r == -EBUSY || r == -EISDIR;
}

int check_remote(const char *spec, const struct opened *opened, unsigned least)
{
    char shown[PATH_MAX];
    struct diag d = DIAG_INIT;

    for (size_t i = 0; least < 2 && i < opened->catalog.n; i++) { /* a mount shows each reason */
        const struct dataset *ds = opened->catalog.item[i].ds;

        if (ds && dataset_state(ds) == DATASET_FAILED && ds->failed == -EREMOTEIO)
            diag_set(&d, ds->failed, "%s", ds->reason.text);
    }
    if (!d.set && source_silent(opened->source, &d) < least)
        return EXIT_DONE;
    return fail(EXIT_SOURCE, "%s: %s", shown_source(spec, shown), d.text);
}

/* The flag that was probably meant; NULL: none is similar. */
static const char *guess_flag(const struct command_line *line, const char *word)
{
    struct guess guess;

    guess_init(&guess, word);
    for (size_t i = 0; i < FLAGS_MOST && line->flag[i].name; i++) {
        const char *before = guess.name;

        guess_at(&guess, line->flag[i].name);
        if (line->flag[i].old)
            guess_at(&guess, line->flag[i].old);
        if (guess.name != before)
            guess.name = line->flag[i].name;
    }
    return guess.name;
}

static int say_unknown(const struct command_line *line, const char *word)
{
    const char *guess = !strncmp(word, "--", 2) ? guess_flag(line, word + 2) : NULL;

    if (line->options && !strcmp(word, "-o"))
        return fail(EXIT_USAGE,
                    "expected -o OPTIONS, got nothing after -o; see `epochfs %s --help`",
                    line->name);
    return fail(EXIT_USAGE, "%s: cannot make sense of '%s'%s%s%s; see `epochfs %s --help`",
                line->name, word, guess ? " (is it '--" : "", guess ? guess : "",
                guess ? "'?)" : "", line->name);
}

/* What getopt_long() returns for --help, and for the first flag: above all letters. */
#define HELP_FLAG  1000
#define FIRST_FLAG 1001

/* All names of the flags, for getopt_long(). */
static void list_flags(const struct command_line *line, struct option *ret)
{
    *ret++ = (struct option){"help", no_argument, NULL, HELP_FLAG};
    for (size_t i = 0; i < FLAGS_MOST && line->flag[i].name; i++) {
        int argument = line->flag[i].set ? no_argument : required_argument;

        *ret++ = (struct option){line->flag[i].name, argument, NULL, FIRST_FLAG + (int)i};
        if (line->flag[i].old)
            *ret++ = (struct option){line->flag[i].old, argument, NULL, FIRST_FLAG + (int)i};
    }
    *ret = (struct option){0};
}

static void cli_command_print_help(const struct command_line *line)
{
    AUTO_TEXT struct text help = {0};
    char paragraph[1024];

    help_add_usage(&help, "usage: ", line->usage);
    for (const char *about = line->about; about; about = strchr(about, '\n')) {
        about += *about == '\n';
        snprintf(paragraph, sizeof(paragraph), "%.*s", (int)strcspn(about, "\n"), about);
        help_add_paragraph(&help, paragraph);
    }
    text_add(&help, "\n");
    for (size_t i = 0; i < FLAGS_MOST && line->flag[i].name; i++) {
        uint64_t least = line->flag[i].least, most = line->flag[i].most;
        AUTO_TEXT struct text words = {0};
        char name[64];

        snprintf(name, sizeof(name), "--%s%s", line->flag[i].name,
                 line->flag[i].form ? line->flag[i].form : "");
        text_add(&words, "%s", line->flag[i].help);
        if (line->flag[i].number && *line->flag[i].number != UINT64_MAX)
            text_add(&words, " (default: %llu%s", (unsigned long long)*line->flag[i].number,
                     most == UINT64_MAX ? ")" : "; ");
        else if (most)
            text_add(&words, " (");
        if (most && most != UINT64_MAX)
            text_add(&words, "range: %llu to %llu)", (unsigned long long)least,
                     (unsigned long long)most);
        help_add_entry(&help, name, words.data ? words.data : "");
    }
    if (line->options)
        help_add_entry(&help, "-o OPTIONS",
                       "set options, which commas separate; `epochfs mount --help all` lists them");
    text_add(&help, "%sexample: epochfs %s\n", line->flag[0].name ? "\n" : "", line->example);
    fputs(help.data && !help.failed ? help.data : "", stdout);
}

/* Take the value of flag i. EXIT_DONE or EXIT_USAGE. */
static int take_flag(const struct command_line *line, size_t i, const char *typed)
{
    struct diag d = DIAG_INIT;
    char name[40];

    if (line->flag[i].typed)
        *line->flag[i].typed = typed;
    if (line->flag[i].set) {
        *line->flag[i].set = true;
    } else if (line->flag[i].text) {
        *line->flag[i].text = optarg;
    } else {
        snprintf(name, sizeof(name), "--%s", typed);
        if (value_count(name, optarg, line->flag[i].least, line->flag[i].most, line->flag[i].number,
                        &d) < 0)
            return fail(EXIT_USAGE, "%s", d.text);
    }
    return EXIT_DONE;
}

int parse_command(int argc, char **argv, const struct command_line *line, const char **ret_word)
{
    struct option known[2 * FLAGS_MOST + 2];
    const int words = strchr(line->word, ' ') ? 2 : 1;
    const bool may_be_none = line->word[0] == '[';
    struct diag d = DIAG_INIT;
    int c, at = 0, r;

    list_flags(line, known);
    optind = 1;
    opterr = 0;
    while ((c = getopt_long(argc, argv, line->options ? "ho:" : "h", known, &at)) != -1) {
        if (c >= FIRST_FLAG) {
            if (take_flag(line, (size_t)(c - FIRST_FLAG), known[at].name) != EXIT_DONE)
                return EXIT_USAGE;
        } else if (c == '?' && optopt >= FIRST_FLAG && !line->flag[optopt - FIRST_FLAG].set) {
            return fail(EXIT_USAGE, "%s: expected --%s=VALUE; see `epochfs %s --help`", line->name,
                        line->flag[optopt - FIRST_FLAG].name, line->name);
        } else if (c == 'h' || c == HELP_FLAG) {
            cli_command_print_help(line);
            return EXIT_DONE;
        } else if (c != 'o') {
            const char letter[] = {'-', (char)optopt, '\0'};
            bool is_letter = optopt > 0 && optopt < HELP_FLAG; /* perhaps one of many in a word */

            return say_unknown(line, is_letter ? letter : argv[optind - 1]);
        } else if ((r = options_parse(line->options, optarg, &d)) < 0) {
            return fail(code_for(r, EXIT_USAGE), "%s", diag_text(&d, r));
        }
    }
    if (may_be_none && argc == optind)
        return -1;
    if (argc - optind != words)
        return fail(EXIT_USAGE, "expected %s%s, got %d argument%s; see `epochfs %s --help`",
                    words == 1 && !may_be_none ? "one " : "", line->word, argc - optind,
                    argc - optind == 1 ? "" : "s", line->name);
    for (int i = 0; i < words; i++)
        ret_word[i] = argv[optind + i];
    return -1;
}

const char *shown_source(const char *spec, char ret[static PATH_MAX])
{
    bool is_url = !strncasecmp(spec, "http://", 7) || !strncasecmp(spec, "https://", 8);

    snprintf(ret, PATH_MAX, "%.*s", (int)(is_url ? strcspn(spec, "?") : strlen(spec)), spec);
    return ret;
}

void log_source_note(const struct source *source)
{
    log_lines(LOG_LEVEL_WARNING, source_note(source));
}

/* Every source file keeps a descriptor open. */
static void raise_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

void opened_release(struct opened *opened)
{
    catalog_release(&opened->catalog);
    source_free(opened->source);
    cache_folder_release(&opened->cache);
    *opened = (struct opened){0};
}

static bool is_far(const char *spec)
{
    return strstr(spec, "://") && strncasecmp(spec, "file://", 7) != 0;
}

#define ANSWER_MS 5000

int command_check_mount(const char *path, bool *ret_is_mountpoint, struct diag *d)
{
    struct mount_entry mount;
    char real[PATH_MAX];
    int r = mounts_real_path(path, real);

    *ret_is_mountpoint = r == 0 && mounts_find(real, &mount);
    if (*ret_is_mountpoint)
        r = mounts_ask(real, &mount, ANSWER_MS);
    return r == -ETIMEDOUT
               ? diag_set(d, r, "%s: the daemon has not answered for %d s", path, ANSWER_MS / 1000)
               : 0;
}

/* A slip: there are a million files in a mount. Or the daemon of a mount does not answer. 0, or the
 * exit code with the reason in d. */
static int check_mounts(const char *spec, struct diag *d)
{
    const char *path = strncasecmp(spec, "file://", 7) == 0 ? spec + 7 : spec;
    bool is_mountpoint;

    if (is_far(spec))
        return 0;
    if (command_check_mount(path, &is_mountpoint, d) < 0)
        return EXIT_MOUNT;
    if (is_mountpoint)
        diag_set(d, -EINVAL,
                 "%s: expected a source, got the mountpoint of an epochfs; `epochfs status` names "
                 "its source",
                 spec);
    return is_mountpoint ? EXIT_SOURCE : 0;
}

/* If files are certain to be put into the cache folder, make it now, so that its errors are
 * reported as such. */
static int make_cache_folder(const char *spec, const struct options *options,
                             const struct cache_folder *cache, struct diag *d)
{
    static const char *const subs[] = {"unpacked", "staged"};
    char path[PATH_MAX];
    int r = 0;

    if (!options->cache && !options->stages_local && !is_far(spec))
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(subs) && r == 0; i++) {
        r = cache_folder_sub(cache, subs[i], path, sizeof(path), d);
        if (r == 0 && access(path, R_OK | W_OK | X_OK) < 0)
            r = diag_set(d, -errno,
                         "cache folder %s: %s cannot be written: %s; choose another with "
                         "-o cache_dir=DIR",
                         cache->path, subs[i], strerror(errno));
    }
    return r;
}

/* Say it once if the default folder is a poor place for what is fetched. */
static void warn_of_disk(const char *spec, const struct cache_folder *cache)
{
    char text[FOLDER_DISK_SIZE];

    if (is_far(spec) && folder_disk_warning(cache, &disk_probe_system, text, sizeof(text)))
        log_warning("%s", text);
}

/* This version does not use the files of the cache folder that versions with other ids made. */
static void remove_older(const struct cache_folder *cache)
{
    char size[HUMAN_SIZE];
    uint64_t bytes, n = inventory_remove_older(cache, &bytes);

    if (n)
        log_warning("cache folder %s: removed %llu files (%s) that an earlier version of epochfs "
                    "made and this version does not use",
                    cache->path, (unsigned long long)n, human_bytes(bytes, size));
}

/* The front of peers fails, or works again. */
static void log_of_via(bool answers, const char *text)
{
    log_line(answers ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, "%s", text);
}

int open_source(const char *spec, const struct options *options, struct opened *opened,
                struct diag *d)
{
    struct source_options how;
    char shown[PATH_MAX];
    int r;

    r = check_mounts(spec, d);
    if (r)
        return r;
    if (cache_folder_init(&opened->cache, options->cache) < 0 ||
        make_cache_folder(spec, options, &opened->cache, d) < 0)
        return EXIT_CACHE;
    warn_of_disk(spec, &opened->cache);
    remove_older(&opened->cache);
    raise_file_limit();
    if (is_far(spec)) /* it may need credentials */
        privileges_hide_memory();
    options_source(options, &opened->cache, &how);
    r = source_open(spec, &how, &opened->source, d);
    if (r == 0)
        source_listen_via(opened->source, log_of_via);
    if (r < 0)
        diag_set(d, r, "%s: %s", shown_source(spec, shown), strerror(-r));
    else
        opened->cache.quota = opened->source->cache.quota;
    return r == 0 ? EXIT_DONE : is_cache_error(r) ? EXIT_CACHE : EXIT_SOURCE;
}

/* Unpacking on a terminal: a line for each file that takes longer than a second. */
struct unpack_display {
    struct unpack_watch watch; /* must be first */
    struct progress progress;
    char what[80];
};

/* End a line that was begun, before other messages come. */
static void end_display(struct unpack_display *display)
{
    if (display->progress.line_is_open)
        fputc('\n', stderr);
    display->progress.line_is_open = false;
}

static void show_unpacking(struct unpack_watch *watch, const struct blob *packed, uint64_t bytes)
{
    struct unpack_display *display = (struct unpack_display *)watch;
    struct progress *p = &display->progress;
    char name[61];

    if (!bytes) {
        end_display(display);
        name_show(blob_name(packed), name, sizeof(name));
        snprintf(display->what, sizeof(display->what), "unpacked of %s:", name);
        progress_init(p, display->what, false);
        p->last_ns = monotonic_ns() + QUIET_NS;
    }
    progress_show(p, bytes, packed->size);
    if (bytes == packed->size && p->line_is_open)
        progress_end(p, bytes, packed->size);
}

int open_catalog(const char *spec, const struct options *options, struct opened *opened,
                 struct diag *d)
{
    struct unpack_display display = {.watch = {show_unpacking}};
    int code = open_source(spec, options, opened, d), r;
    char shown[PATH_MAX];

    if (code != EXIT_DONE)
        return code;
    opened->source->watch = &display.watch;
    r = catalog_open(opened->source, options, &opened->catalog, d);
    opened->source->watch = NULL;
    end_display(&display);
    if (r < 0)
        diag_set(d, r, "%s: %s", shown_source(spec, shown), strerror(-r));
    return r < 0 ? EXIT_SOURCE : EXIT_DONE;
}
