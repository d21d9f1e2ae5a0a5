/* What the commands share. */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/values.h"
#include "cache/http/url.h"
#include "cache/pack/unpack.h"
#include "fs/cli/commands.h"
#include "fs/cli/progress.h"
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

static int count_words(const char *text)
{
    int n = 1;

    for (const char *space = strchr(text, ' '); space; space = strchr(space + 1, ' '))
        n++;
    return n;
}

int parse_command(int argc, char **argv, const struct command_line *line, const char **ret_word)
{
    struct option known[2 * FLAGS_MOST + 2];
    const int words = count_words(line->word);
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
        } else if (line->option_words) {
            text_add(line->option_words, "%s%s", line->option_words->len ? "," : "", optarg);
        }
    }
    if (line->option_words && line->option_words->failed)
        return fail(EXIT_SYSTEM, "%s", strerror(ENOMEM));
    if (may_be_none && argc == optind)
        return -1;
    if (argc - optind != words)
        return fail(EXIT_USAGE, "expected %s%s, got %d argument%s; see `epochfs %s --help`",
                    words == 1 && !may_be_none ? "one " : "", line->word, argc - optind,
                    argc - optind == 1 ? "" : "s", line->name);
    for (int i = 0; i < words; i++)
        ret_word[i] = argv[optind + i];
    if (line->options && words && !strncmp(line->word, "SOURCE", strlen("SOURCE"))) {
        r = options_take_specifier(line->options, &ret_word[0], &d);
        if (r < 0)
            return fail(code_for(r, EXIT_USAGE), "%s", diag_text(&d, r));
    }
    return -1;
}

void log_source_note(const struct source *source)
{
    log_lines(LOG_LEVEL_WARNING, source_note(source));
}

/* The front of peers fails, or works again. */
static void log_of_via(bool answers, const char *text)
{
    log_line(answers ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, "%s", text);
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

static void cli_command_warn(const char *text)
{
    log_warning("%s", text);
}

static void cli_command_removed(const char *folder, uint64_t n, uint64_t bytes)
{
    char size[HUMAN_SIZE];

    log_warning("cache folder %s: removed %llu files (%s) that an earlier version of epochfs made "
                "and this version does not use",
                folder, (unsigned long long)n, human_bytes(bytes, size));
}

static int code_of(enum opened_failure failure)
{
    static const int codes[] = {[OPENED_ALL] = EXIT_DONE,
                                [OPENED_NO_MOUNT] = EXIT_MOUNT,
                                [OPENED_NO_CACHE] = EXIT_CACHE,
                                [OPENED_NO_SOURCE] = EXIT_SOURCE};

    return codes[failure];
}

int open_source(const char *spec, const struct options *options, struct opened *opened,
                struct diag *d)
{
    const struct opened_for whom = {.owns_process = true,
                                    .warn = cli_command_warn,
                                    .removed = cli_command_removed,
                                    .via = log_of_via};
    int error = 0;

    return code_of(opened_source(spec, options, &whom, opened, &error, d));
}

int open_catalog(const char *spec, const struct options *options, struct opened *opened,
                 struct diag *d)
{
    struct unpack_display display = {.watch = {show_unpacking}};
    const struct opened_for whom = {.owns_process = true,
                                    .warn = cli_command_warn,
                                    .removed = cli_command_removed,
                                    .via = log_of_via,
                                    .watch = &display.watch};
    int error = 0, code = code_of(opened_catalog(spec, options, &whom, opened, &error, d));

    end_display(&display);
    return code;
}
