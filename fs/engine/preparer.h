/* The thread that prepares the datasets of a catalog, and makes the labels that plans need
 * (fs/tree/list_labels.h), in steps: first what a reader waits for. */
#ifndef EPOCHFS_FS_ENGINE_PREPARER_H
#define EPOCHFS_FS_ENGINE_PREPARER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/diag.h"
#include "base/lock.h"
#include "fs/log/filter.h"
#include "fs/tree/tree.h"

/* What the thread reports, in this thread; no lock is held. */
struct preparer_events {
    /* A line for people. */
    void (*note)(void *ctx, enum log_level level, const char *text);
    /* A dataset is ready and open, has failed, or has the labels that its plans waited for. */
    void (*opened)(void *ctx, const struct catalog_item *item);
    /* What waits for the item can go on; or (error < 0) can wait no longer, for that reason. */
    void (*answer)(void *ctx, const struct catalog_item *item, int error,
                   const struct diag *reason);
    void *ctx;
};

struct preparer {
    /* Set by preparer_init(), then constant: */
    const struct catalog *catalog;
    struct tree *tree;
    const struct preparer_events *events;
    _Atomic bool *wanted; /* [catalog->n] a reader waits until the dataset is ready */
    /* The caller's of preparer_start(): */
    pthread_t thread;
    bool runs;

    _Atomic bool ending;
    struct lock lock;
    pthread_cond_t wake;
    /* Guarded by lock: */
    bool asked; /* a reader has begun to wait */
};

/* All must outlive it. 0 or -ENOMEM. */
int preparer_init(struct preparer *p, const struct catalog *catalog, struct tree *tree,
                  const struct preparer_events *events);
void preparer_release(struct preparer *p); /* takes one that is {0} */

/* Start the thread. 0 or -EAGAIN. */
int preparer_start(struct preparer *p);

/* A reader waits for the item: it is prepared first, and answered. Any thread. */
void preparer_ask(struct preparer *p, const struct catalog_item *item);

/* Is all there that a reader waits for who asks for the item? Any thread. */
bool preparer_has(const struct preparer *p, const struct catalog_item *item);

/* Have the thread end; stop: and wait until it has. Both take one that is {0} and may be called
 * again, stop by one thread at a time. */
void preparer_end(struct preparer *p);
void preparer_stop(struct preparer *p);

#endif
