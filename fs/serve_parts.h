/* What fs/serve.c (requests) and fs/server.c (life) share; the only files that know libfuse. */
#ifndef EPOCHFS_FS_SERVE_PARTS_H
#define EPOCHFS_FS_SERVE_PARTS_H

#define FUSE_USE_VERSION FUSE_MAKE_VERSION(3, 12)

#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "fs/server.h"
#include "fs/tree.h"
#include "fs/view.h"

#define READ_MAX (UINT64_C(1) << 20) /* bytes of a reply */

struct server {
    struct server_setup setup;
    struct tree *tree;
    struct view *view;
    struct fuse_session *session;
    bool mounted;
    bool has_buffers; /* the key is made */
    bool signals;     /* handlers are set */
    bool no_open;     /* the kernel can do without open requests */
    bool is_ready;
    pthread_key_t buffer; /* READ_MAX bytes of each serving thread */
    struct status status;
    _Atomic unsigned *told;  /* [catalog->n] kinds of failed reads that were logged */
    _Atomic int64_t changed; /* when a listing last grew, ns since 1970 */
};

extern const struct fuse_lowlevel_ops serve_operations;

/* Nanoseconds since 1970. */
static inline int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

#endif
