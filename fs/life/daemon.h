/* A process that serves for long: what it has of whoever started it, and what not. */
#ifndef EPOCHFS_FS_LIFE_DAEMON_H
#define EPOCHFS_FS_LIFE_DAEMON_H

/* Close what was inherited but standard input, output and error; those of them that are closed
 * become /dev/null. Before anything of ours is open. */
void daemon_close_inherited(void);

/* In the child that is to serve: leave the caller's session with its terminal, and its folder.
 * 0 or -errno. */
int daemon_leave_session(void);

/* Let go of the caller's standard files, too. */
void daemon_leave_files(void);

#endif
