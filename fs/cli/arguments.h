/* The command line, which every user of the machine can read (/proc/PID/cmdline, ps). */
#ifndef EPOCHFS_FS_CLI_ARGUMENTS_H
#define EPOCHFS_FS_CLI_ARGUMENTS_H

/* Make argv point to copies, and replace the queries of URLs in what the system shows by "...".
 * Call it once, before all else: until then other users can read all arguments. 0, or -ENOMEM and
 * nothing has changed. */
int arguments_hide(int argc, char **argv);

#endif
