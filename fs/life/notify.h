/* Tells a service manager (systemd, Type=notify) that the mount answers. */
#ifndef EPOCHFS_FS_LIFE_NOTIFY_H
#define EPOCHFS_FS_LIFE_NOTIFY_H

/* Report it to $NOTIFY_SOCKET, if there is one. Any thread; does not block; failures are not
 * reported. */
void notify_ready(void);

#endif
