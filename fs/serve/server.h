/* The server: a mounted file system that answers the kernel from the tree and the view. */
#ifndef EPOCHFS_FS_SERVE_SERVER_H
#define EPOCHFS_FS_SERVE_SERVER_H

#include "base/diag.h"
#include "fs/options/options.h"
#include "fs/status/status.h"
#include "fs/tree/catalog.h"

struct server;

/* What is served. All of it must outlive the server. */
struct server_setup {
    const struct catalog *catalog;
    const struct options *options;
    const char *source;        /* as shown in mount tables and texts */
    const char *mountpoint;    /* absolute; "": it is not known, see passed */
    const char *passed;        /* "/dev/fd/N" if another program has mounted; NULL: mount */
    struct stage *stage;       /* of the source; NULL: it is read in place */
    const struct source *from; /* the source */
    /* Called once, by a serving thread, at the kernel's first request. May be NULL. */
    void (*ready)(void *ctx);
    void *ctx;
};

/* Make the file system and mount it. 0, or -errno with the reason in d. Starts no thread. */
int server_mount(const struct server_setup *setup, struct server **ret, struct diag *d);

/* For a process that has forked and whose child serves: drop the mount here, so that it ends with
 * the child. Neither use nor free server after that. */
void server_leave(const struct server *server);

/* Serve until it is unmounted, or SIGTERM, SIGINT, SIGQUIT or SIGHUP comes. 0 or -errno.
 * server_free() then unmounts. */
int server_run(struct server *server);

/* Unmount, if it is still mounted, and free. Takes NULL. */
void server_free(struct server *server);

#endif
