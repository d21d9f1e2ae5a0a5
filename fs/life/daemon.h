/* A long-lived process, and how it detaches from the process that started it. */
#ifndef EPOCHFS_FS_LIFE_DAEMON_H
#define EPOCHFS_FS_LIFE_DAEMON_H

/* Close all inherited descriptors but standard input, output and error, and keep, unless it is
 * negative; those of the three that are closed become /dev/null. Call it before opening
 * anything. */
void daemon_close_inherited(int keep);

/* In the serving child: leave the caller's session with its terminal, and its current folder. 0 or
 * -errno. */
int daemon_leave_session(void);

/* Close the caller's standard files as well. */
void daemon_leave_files(void);

#endif
