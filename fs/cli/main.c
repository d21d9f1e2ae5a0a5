/* epochfs: the command line. */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "base/values.h"
#include "fs/cli/arguments.h"
#include "fs/cli/commands.h"
#include "fs/engine/opened.h"
#include "fs/options/help.h"

static const struct command *const commands[] = {
    &command_mount, &command_umount, &command_info,   &command_plan,
    &command_stage, &command_index,  &command_status, &command_audit,
    &command_cat,   &command_export, &command_cache,
};

static const char *const exit_codes[] = {
    [EXIT_DONE] = "done",
    [EXIT_USAGE] = "usage: the command line or an option is wrong",
    [EXIT_SOURCE] = "source: SOURCE, or one of its files, cannot be read",
    [EXIT_MOUNT] = "mount: it cannot be mounted or unmounted, or its daemon does not answer",
    [EXIT_CACHE] = "cache: its directory cannot be used or is full, or data in it is damaged",
    [EXIT_AUDIT] = "audit: the epoch is not what the plan says",
    [EXIT_SYSTEM] = "system: out of memory, no standard output, or no Python for a command",
};

static void cli_main_print_help(FILE *out)
{
    AUTO_TEXT struct text usage = {0}, kinds = {0};

    fputs("epochfs mounts machine-learning datasets as files: one per sample, one per\n"
          "batch, in a reproducible shuffled order that is part of the path.\n\n",
          out);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        help_add_usage(&usage, i ? "       " : "usage: ", commands[i]->usage);
    fputs(usage.data && !usage.failed ? usage.data : "", out);
    fputs("       epochfs --help | --version; epochfs COMMAND --help\n\n"
          "SOURCE is a folder, a file, a list 'a.txt;b.txt', or a URL:\n    ",
          out);
    source_add_kinds(&kinds, "\n    ");
    fputs(kinds.data && !kinds.failed ? kinds.data : "", out);
    fputs("\nIt holds pictures or sounds in folders or zip archives, WebDataset shards,\n"
          "TFRecord, RecordIO, MindRecord, Parquet, MDS, tokens, JSON lines, CSV, arrays\n"
          "(npy, npz, safetensors), IDX (MNIST and its relatives), CIFAR, libsvm or LibFM\n"
          "text, XGBoost's DMatrix, or Kaldi tables; also packed (gzip, xz, zstd, bzip2).\n"
          "Read MOUNTPOINT/README.txt next.\n\n"
          "exit codes:\n",
          out);
    for (size_t i = 0; i < ARRAY_LEN(exit_codes); i++)
        fprintf(out, "    %zu  %s\n", i, exit_codes[i]);
    fputs("`epochfs stage`, ended by a signal, returns 128 plus the signal's number.\n"
          "mount.epochfs returns those of mount(8): 0, 1 usage, 2 system, 32 mount failure.\n",
          out);
}

/* Words of other programs for the same commands; the help does not mention them. */
static const struct synonym {
    const char *word, *name;
} synonyms[] = {
    {"unmount", "umount"}, {"estimate", "plan"}, {"version", "--version"}, {"-v", "--version"},
    {"-V", "--version"},   {"help", "--help"},   {"-h", "--help"},
};

static const char *cli_main_name_of(const char *word)
{
    for (size_t i = 0; i < ARRAY_LEN(synonyms); i++)
        if (!strcmp(word, synonyms[i].word))
            return synonyms[i].name;
    return word;
}

static int cli_main_fail_unknown(const char *word)
{
    struct guess guess;

    guess_init(&guess, word);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        guess_at(&guess, commands[i]->name);
    for (size_t i = 0; i < ARRAY_LEN(synonyms); i++)
        guess_at(&guess, synonyms[i].word);
    guess_at(&guess, "--help");
    guess_at(&guess, "--version");
    return fail(EXIT_USAGE, "'%s' is not a command%s%s%s; `epochfs --help` lists them", word,
                guess.name ? " (is it '" : "", guess.name ? guess.name : "",
                guess.name ? "'?)" : "");
}

static int run_command(int argc, char **argv, const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (!strcmp(name, commands[i]->name))
            return commands[i]->run(argc, argv);
    return cli_main_fail_unknown(name);
}

/* epochfs help [COMMAND] */
static int help(int argc, char **argv)
{
    static char flag[] = "--help";

    if (argc > 1) {
        char *words[] = {argv[1], flag, NULL};

        return run_command(2, words, cli_main_name_of(argv[1]));
    }
    cli_main_print_help(stdout);
    return EXIT_DONE;
}

static int cli_main_run(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/'), *name;

    if (!strcmp(slash ? slash + 1 : argv[0], "mount.epochfs"))
        return command_mount_helper(argc, argv);
    if (argc < 2) {
        cli_main_print_help(stderr);
        return EXIT_USAGE;
    }
    name = cli_main_name_of(argv[1]);
    if (!strcmp(name, "--help"))
        return help(argc - 1, argv + 1);
    if (!strcmp(name, "--version")) {
        printf("epochfs %s\n", EPOCHFS_VERSION);
        return EXIT_DONE;
    }
    return run_command(argc - 1, argv + 1, name);
}

int main(int argc, char **argv)
{
    int code;

    if (arguments_hide(argc, argv) < 0)
        return fail(EXIT_SYSTEM, "%s", strerror(ENOMEM));
    signal(SIGCHLD, SIG_DFL); /* some callers ignore it, and we could not wait for children */
    /* The daemon has many threads: return large blocks, as those of transfers, to the system when
     * they are freed. Those of a record or a picture come again and again: new memory costs a page
     * fault for each 4 KiB. */
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    mallopt(M_TRIM_THRESHOLD, 4 << 20);
    mallopt(M_ARENA_MAX, 2);

    code = cli_main_run(argc, argv);
    if (code == EXIT_DONE && (fflush(stdout) != 0 || ferror(stdout)))
        return fail(EXIT_SYSTEM, "standard output: %s", strerror(errno));
    return code;
}
