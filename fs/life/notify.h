/* Tells a service manager (systemd, Type=notify) that the mount answers. */
#ifndef EPOCHFS_FS_LIFE_NOTIFY_H
#define EPOCHFS_FS_LIFE_NOTIFY_H

/* Say so to $NOTIFY_SOCKET, if there is one. Any thread; does not block; nobody is told if it
 * fails. */
void notify_ready(void);

#endif
