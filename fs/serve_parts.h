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

#define SLOW_THREADS 2

struct slow_thread {
    pthread_t id;
    struct server *server;
    unsigned number;
};

/* Reads that take long, see serve_slow.c. */
struct slow {
    struct slow_thread thread[SLOW_THREADS];
    unsigned n_threads; /* that run */

    pthread_mutex_t lock;
    pthread_cond_t wake;
    /* Guarded by lock: */
    struct parked *first;
    fuse_ino_t busy[SLOW_THREADS]; /* the file that each thread reads; 0: none */
    _Atomic bool ending;           /* read without the lock by reads under way */
};

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
    struct slow slow;
    struct status status;
    _Atomic unsigned *told;  /* [catalog->n] kinds of failed reads that were logged */
    _Atomic int64_t changed; /* when a listing last grew, ns since 1970 */
};

extern const struct fuse_lowlevel_ops serve_operations;

/* Answer a read, or park it if it still streams for a checksum at that time (monotonic_ns()). */
void serve_read_now(struct server *s, fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                    int64_t until);

/* Finish the read on a slow thread; takes req over. */
void slow_park(struct server *s, fuse_req_t req, fuse_ino_t ino, size_t size, off_t off);

/* The slow threads run from start to stop; stop makes reads under way end, with EINTR. start: 0 or
 * -errno, stop it then, too. */
int slow_start(struct server *s);
void slow_stop(struct server *s);

/* Nanoseconds of a clock that nobody sets, for time limits. */
static inline int64_t monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Nanoseconds since 1970. */
static inline int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

#endif
