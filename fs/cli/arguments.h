/* The command line, which everybody on the machine can read (/proc/PID/cmdline, ps). */
#ifndef EPOCHFS_FS_CLI_ARGUMENTS_H
#define EPOCHFS_FS_CLI_ARGUMENTS_H

/* Have argv point to copies, and replace the queries of URLs in what the system shows by "...".
 * Call it first, and once: until then all can be seen. 0 or -ENOMEM, and nothing has changed. */
int arguments_hide(int argc, char **argv);

#endif
