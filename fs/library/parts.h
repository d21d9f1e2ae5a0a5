/* Shared by the files of the library.
 *
 * A handle lives from epochfs_open() to epochfs_close(); its shell, which answers calls that come
 * too late, stays until it is the oldest of CLOSED_KEPT closed ones and no batches point to it. */
#ifndef EPOCHFS_FS_LIBRARY_PARTS_H
#define EPOCHFS_FS_LIBRARY_PARTS_H

#include <stdatomic.h>
#include <sys/types.h>

#include "base/lock.h"
#include "base/text.h"
#include "base/thread.h"
#include "fs/engine/engine.h"
#include "fs/engine/opened.h"
#include "fs/library/epochfs.h"

#define PUBLIC __attribute__((visibility("default")))

#define CLOSED_KEPT 64

/* What the preparing thread has last answered those that wait for an item. */
struct library_answer {
    uint64_t turn; /* how often it has answered */
    int error;
    struct diag reason;
};

struct epochfs {
    /* Set by epochfs_open(), then constant until it is closed: */
    pid_t pid; /* of the process that may use it */
    struct options options;
    struct opened opened;
    char *source; /* as texts show it */
    struct engine_events events;
    struct engine engine;

    _Atomic bool closing; /* read without the lock by reads under way */
    struct lock lock;
    pthread_cond_t wake;
    /* Guarded by lock: */
    bool has_preparer;
    bool is_closed; /* epochfs_close() has returned, in the thread `closer` */
    pthread_t closer;
    unsigned calls;                  /* that are under way */
    unsigned refs;                   /* the handle itself until it is closed, and batches */
    struct library_answer *answer;   /* [catalog.n] */
    struct text notes;               /* warnings, a line each */
    struct epochfs_batches *batches; /* those that are open: a list */
};

/* Fill error, which may be NULL; code: an errno. Returns -1. */
int library_fail(struct epochfs_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a result of ours, r < 0, whose reason is in d. what: the object; NULL: d names it.
 */
int library_fail_for(struct epochfs_error *error, int r, const struct diag *d, const char *what);

/* A call begins: 0, or -1 with the error: fs is NULL, closed, or of another process. Each that
 * begins ends. An assertion fails in the thread that has closed fs. */
int library_enter(struct epochfs *fs, struct epochfs_error *error);
void library_leave(struct epochfs *fs);

/* Must a read give up? ctx: the struct epochfs. */
bool library_is_closing(void *ctx);

/* A shell that nothing points to. Takes NULL. */
void handle_free(struct epochfs *fs);

/* Wait until the preparing thread answers those that wait for the item. 0 or its error. */
int handle_wait(struct epochfs *fs, const struct catalog_item *item, struct diag *d);

/* Find the node of a path, and wait until its dataset is ready. 0, or -errno with the reason in d.
 */
int library_find(struct epochfs *fs, const char *path, struct node *ret, struct diag *d);

/* One user of the shell less. */
void library_unref(struct epochfs *fs);

/* fs is closed: end the threads of its batches, and forget what they have made. */
void library_batches_end(struct epochfs *fs);

#endif
