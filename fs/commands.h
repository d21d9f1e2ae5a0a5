/* The commands of epochfs. Each takes its arguments from its own name on and returns the exit
 * code of the program. */
#ifndef EPOCHFS_FS_COMMANDS_H
#define EPOCHFS_FS_COMMANDS_H

#include "base/diag.h"

enum exit_code { EXIT_DONE, EXIT_USAGE, EXIT_SOURCE, EXIT_MOUNT, EXIT_CACHE };

int command_mount(int argc, char **argv);
int command_mount_helper(int argc, char **argv); /* mount.epochfs: called by mount(8) */
int command_umount(int argc, char **argv);
int command_info(int argc, char **argv);
int command_stage(int argc, char **argv);
int command_status(int argc, char **argv);
int command_cache(int argc, char **argv);

struct catalog;
struct options;
struct source;

/* Open SOURCE and what is in it, for any command. EXIT_DONE, or the exit code of the program with
 * the reason in d. */
int open_catalog(const char *spec, const struct options *options, struct source **ret_source,
                 struct catalog *ret_catalog, struct diag *d);

/* Say "epochfs: <reason>" and return code. */
int fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
