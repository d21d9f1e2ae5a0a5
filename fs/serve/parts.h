/* Shared by the files that serve a mount. Only these and those of fs/push/ know libfuse. Each file
 * calls only files below it:
 *
 *     server.c       life: mounts, serves, ends
 *     requests.c     what libfuse calls
 *     answers.c      the answers that may take long, and failures
 *     slow.c         requests that wait, and their threads
 *     refused.c attributes.c promises.c memory.c
 *     kernel_pass.c  the first reply, and opens with a backing file
 *     pass.c         which files have one */
#ifndef EPOCHFS_FS_SERVE_PARTS_H
#define EPOCHFS_FS_SERVE_PARTS_H

#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/read_context.h"
#include "fs/engine/engine.h"
#include "fs/life/supervisor.h"
#include "fs/log/remote.h"
#include "fs/push/push.h"
#include "fs/serve/pass.h"
#include "fs/serve/promises.h"
#include "fs/serve/server.h"

#define READ_MAX (UINT64_C(1) << 20) /* bytes of a reply */

#define SERVING_THREADS 10
#define SLOW_THREADS    8
#define ANSWER_NS       INT64_C(20000000) /* for one request, by a serving thread */
#define FOREVER         1e9               /* seconds that the kernel keeps a reply */

/* A request that may take long, or may have to wait. */
enum call_type {
    CALL_LOOKUP,
    CALL_GETATTR,
    CALL_READ,
    CALL_LIST,
    CALL_LIST_PLUS,
    CALL_GETXATTR,
    CALL_OPEN,
    N_CALLS
};

struct call {
    enum call_type type;
    fuse_ino_t ino;
    size_t size;
    off_t off;
    const char *name; /* of lookup and getxattr; otherwise NULL */
    unsigned rounds;  /* how often the request has waited for bytes */
};

/* After so many rounds a request reads on a slow worker that waits for each piece. So it ends even
 * if blocks are dropped as fast as they come. */
#define ROUNDS_MOST  6
#define WAITING_MOST (SLOW_THREADS / 2) /* slow workers that may do that at the same time */

struct slow_thread {
    pthread_t id;
    struct server *server;
    unsigned number;
};

/* How the slow workers end a request that was parked. */
struct slow_ends {
    /* Answer it, or park it again: see serve_call(). */
    void (*answer)(struct server *s, fuse_req_t req, const struct call *call, int64_t until);
    /* The bytes that it has waited for cannot be had: see serve_failed(). */
    void (*fail)(struct server *s, fuse_req_t req, const struct call *call, int error,
                 const struct diag *reason);
};

/* Requests that are parked, see fs/serve/slow.c. */
struct slow {
    const struct slow_ends *ends; /* set by slow_start() */
    struct slow_thread thread[SLOW_THREADS];
    unsigned n_threads; /* threads that run */

    struct lock lock;
    pthread_cond_t wake;
    /* Guarded by lock: */
    struct parked *first, *last;
    unsigned waiting;              /* requests that wait for bytes */
    unsigned n_blocked;            /* slow workers that wait for bytes, see ROUNDS_MOST */
    fuse_ino_t busy[SLOW_THREADS]; /* the file that each thread reads; 0: none */
    _Atomic bool ending;           /* read without the lock by requests under way */
};

struct server {
    struct server_setup setup;
    struct engine_events engine_events;
    struct engine engine;
    struct promises *promises; /* NULL: nothing was promised */
    struct push *push;         /* NULL: nothing is pushed */
    struct supervisor supervisor;
    dev_t device; /* of the mount, as stat() reports it; 0: unknown */
    struct fuse_session *session;
    bool mounted;
    bool has_buffers;                /* the key of buffer exists */
    bool signals;                    /* handlers of signals are set */
    pthread_t main, shutdown_thread; /* see server.c */
    int events;                      /* wakes the shutdown thread */
    int beacon;                      /* see beacon.h; -1: none */
    _Atomic bool has_ended;          /* the loop of libfuse is over */
    struct pass pass;
    bool no_open; /* the kernel works without open requests */
    bool no_opendir;
    bool parallel;            /* the kernel may send several requests for one folder at a time */
    atomic_bool init_replied; /* notifications of other threads go the same way */
    uint32_t init_flags2;     /* that the kernel offers */
    bool is_ready;
    pthread_key_t buffer; /* READ_MAX bytes of each serving thread */
    _Atomic unsigned n_buffers;
    struct slow slow;
    struct remote_log remote_log;
    struct stage_listener listener;  /* reports to remote_log */
    _Atomic bool said_zeros;         /* that pictures are shown as zeros */
    _Atomic unsigned (*reported)[2]; /* [catalog->n] failed reads: [1] of bad samples, [0] others */
};

/* ---- fs/serve/requests.c ---- */

extern const struct fuse_lowlevel_ops serve_operations;

static inline struct server *server_of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

/* ---- fs/serve/answers.c ---- */

/* Answer a request, or park it: if it is not finished by that time (monotonic_ns()), or its dataset
 * is not ready. */
void serve_call(struct server *s, fuse_req_t req, const struct call *call, int64_t until);

/* Report the error that kept bytes of a request from coming, and reply with it. */
void serve_failed(struct server *s, fuse_req_t req, const struct call *call, int error,
                  const struct diag *reason);

/* These two functions, for slow_start(). */
extern const struct slow_ends serve_parked;

/* ---- fs/serve/attributes.c ---- */

/* The error number for the kernel: one that makes sense to a reader of files, otherwise EIO. */
int serve_errno(int r);

/* Seconds that the kernel may keep what it knows of a node. */
double serve_timeout(const struct node *node);

/* 0, or the error to reply, with the reason in d. rc: how long it may take. */
int serve_entry(struct read_context *rc, struct server *s, const struct node *node,
                struct fuse_entry_param *ret, struct diag *d);

/* The two-step protocol of getxattr and listxattr: size 0 asks for the length. */
void serve_reply_attribute(fuse_req_t req, const struct text *t, size_t size);

/* ---- fs/serve/refused.c ---- */

/* Report a name in batches/ or in a plan that does not exist (error -ENOENT), or that is one too
 * many, and why. False: programs look for such names, no user means a plan by it. */
bool refused_name(struct server *s, const struct node *parent, const char *name, int error,
                  const struct diag *reason);

/* ---- fs/serve/memory.c ---- */

/* Have the live texts show all memory that is kept; once all that keeps some is made. */
void serve_show_memory(struct server *s);

/* Called every second: free some of it while the machine is short of memory. */
void serve_let_memory_go(const struct server *s);

/* ---- fs/serve/kernel_pass.c ---- */

/* Set the calls of passthrough; before the mount. */
void kernel_pass_init(struct server *s);

/* Complete what libfuse negotiates; 0 or -errno. After the mount, before the first request. */
int kernel_pass_start(struct server *s);

/* In answer to INIT: ask for passthrough, if the mount wants it. */
void kernel_pass_negotiate(struct server *s, struct fuse_conn_info *conn);

/* Reply to an open: backing as of pass_opened(), 0: none. counts: serve_release() will see it. 0
 * or the error of fuse_reply_buf(). */
int kernel_pass_reply(fuse_req_t req, int backing, bool counts, bool is_live);

/* ---- fs/serve/slow.c ---- */

/* Finish the request later; takes req over. waits_for: the item that must be open first; NULL: as
 * soon as a slow worker is free. */
void slow_park(struct server *s, fuse_req_t req, const struct call *call,
               const struct catalog_item *waits_for);

/* The same, as soon as the missing bytes are present. */
void slow_wait(struct server *s, fuse_req_t req, const struct call *call, struct read_context *rc);

/* Answer the requests that wait for the item now, or (error < 0) fail them for that reason. */
void slow_answer(struct server *s, const struct catalog_item *item, int error,
                 const struct diag *reason);

/* The threads run from start to stop: slow workers, which finish parked requests, and the thread
 * that prepares datasets. start: 0 or -errno; call stop after an error as well. stop ends requests
 * under way with EINTR, and refuses later ones that would have to wait. stop may be called again,
 * by one thread at a time. ends must live as long as the threads run. */
int slow_start(struct server *s, const struct slow_ends *ends);
void slow_stop(struct server *s);

#endif
