/* Who listens on a port of this machine: /proc/net/tcp and tcp6. */
#ifndef EPOCHFS_CACHE_HTTP_LISTENER_H
#define EPOCHFS_CACHE_HTTP_LISTENER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Is a line of such a table a socket that listens on the address, or on all addresses, and on its
 * port? *ret_uid: whose it is. Pure; any text may come. */
bool listener_line(const char *line, const struct sockaddr *address, uid_t *ret_uid);

/* Do only these users listen there? false also if nobody does. *ret_uid: another user who does;
 * unchanged if there is none. True where the tables cannot be read. */
bool listener_is_of(const struct sockaddr *address, const uid_t *users, size_t n, uid_t *ret_uid);

#endif
