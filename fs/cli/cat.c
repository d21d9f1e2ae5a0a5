/* epochfs cat: a file of the mount, without a mount. */
#include <string.h>
#include <unistd.h>

#include "fs/cli/by_library.h"
#include "fs/cli/commands.h"

static int cli_cat_run(int argc, char **argv)
{
    AUTO_OPTIONS struct options options;
    AUTO_TEXT struct text words = {0};
    struct epochfs_error error = {.size = sizeof(error)};
    const struct command_line line = {
        .name = "cat",
        .word = "SOURCE PATH",
        .usage = command_cat.usage,
        .about = "Prints a file that a mount of SOURCE would have, without a mount. PATH is its "
                 "path below the mountpoint.",
        .example = "cat ~/mnist train/batches/batch=128,seed=7/epoch=0/npz/000000.npz > first.npz",
        .options = &options,
        .option_words = &words};
    const char *word[2];
    struct epochfs *fs;
    int code, r;

    options_init(&options);
    code = parse_command(argc, argv, &line, word);
    fs = code < 0 ? by_library_open(word[0], &words, &code) : NULL;
    if (!fs)
        return code;
    r = by_library_copy(fs, word[1], STDOUT_FILENO, &error);
    code = r == 0       ? EXIT_DONE
           : error.code ? by_library_fail(&error)
                        : fail(EXIT_SYSTEM, "standard output: %s", strerror(-r));
    epochfs_close(fs, NULL);
    return code;
}

const struct command command_cat = {"cat", cli_cat_run, "cat [-o OPTIONS] SOURCE PATH"};
