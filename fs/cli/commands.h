/* The commands of epochfs, and what they share. fs/cli/main.c lists them. */
#ifndef EPOCHFS_FS_CLI_COMMANDS_H
#define EPOCHFS_FS_CLI_COMMANDS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "fs/engine/opened.h"
#include "fs/options/options.h"

/* `epochfs --help` says what each means; mount.epochfs has others, see mount_helper_code(). */
enum exit_code {
    EXIT_DONE,
    EXIT_USAGE,
    EXIT_SOURCE,
    EXIT_MOUNT,
    EXIT_CACHE,
    EXIT_AUDIT,
    EXIT_SYSTEM
};

struct command {
    const char *name;
    /* Takes its arguments, beginning with its own name. Returns the exit code of the program. */
    int (*run)(int argc, char **argv);
    const char *usage; /* for the help: one line */
};

extern const struct command command_mount, command_umount, command_info, command_plan,
    command_stage, command_index, command_status, command_audit, command_cache, command_cat,
    command_export;

/* The help of --progress. */
#define COMMAND_PROGRESS "show the progress even if stderr is not a terminal: a line per second"

int command_mount_helper(int argc, char **argv); /* mount.epochfs: called by mount(8) */

/* What a command takes besides --help: flags, with or without values, -o, and one to three words.
 */
struct command_line {
    const char *name;    /* of the command */
    const char *word;    /* "SOURCE": what its one word is; or more: "MOUNTPOINT PLAN"; or none or
                          * one: "[SOURCE]" */
    const char *usage;   /* that of struct command */
    const char *about;   /* for the help: what it does; \n between paragraphs */
    const char *example; /* what to type after "epochfs" */
    struct options *options;   /* set by -o; NULL: the command has no -o */
    struct text *option_words; /* NULL, or where all texts of -o go, joined by commas */
    struct {
        const char *name; /* without "--" */
        const char
            *form; /* of the value, with '=' or ' ' before it: "=FILE"; NULL: it takes none */
        const char *help;     /* what it does */
        bool *set;            /* it has no value; or: */
        const char **text;    /* its value; or: */
        uint64_t *number;     /* its value, from least to most; here is the default */
        uint64_t least, most; /* also for the help of a text; most 0: there are no limits to show */
        const char *old;      /* another name, which is taken silently */
        const char **typed;   /* NULL, or where the name that was typed goes, without "--" */
    } flag[12];               /* unused ones are last */
};

/* Parse the arguments of a command; argv[0] is its name. -1 and its words, which stay as they
 * are where it may have none; or the exit code of the program: the error, or the help, has been
 * printed. */
int parse_command(int argc, char **argv, const struct command_line *line, const char **ret_word);

/* Open SOURCE. EXIT_DONE, or the exit code of the program with the reason in d. */
int open_source(const char *spec, const struct options *options, struct opened *opened,
                struct diag *d);

/* The same, and open the catalog of its datasets. */
int open_catalog(const char *spec, const struct options *options, struct opened *opened,
                 struct diag *d);
/* Log what was unusual about SOURCE when it was opened. */
void log_source_note(const struct source *source);

/* Has the remote failed for so long that something is missing? Then say why, and return
 * EXIT_SOURCE; otherwise EXIT_DONE. least: so many files must have failed. */
int check_remote(const char *spec, const struct opened *opened, unsigned least);

/* Print "epochfs: <what>" to stderr. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The code after a function returned r < 0: EXIT_SYSTEM if memory ran out, otherwise code. */
int code_for(int r, int code);

/* Print "epochfs: <reason>" to stderr and return code. */
int fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
