/* Commands that files of SOURCE name, and their outputs, kept in the cache folder. */
#ifndef EPOCHFS_CACHE_NAMED_COMMANDS_H
#define EPOCHFS_CACHE_NAMED_COMMANDS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/lock.h"
#include "base/opener.h"
#include "cache/disk/folder.h"
#include "cache/disk/local_blob.h"

/* Runs belong to the process that started them: a forked child has none. */
struct commands {
    /* Set by commands_init(), then constant: */
    const struct cache_folder *cache;
    struct lazy_pool *pool; /* for the descriptors of outputs */
    const char *cwd;        /* where commands run */
    bool allowed;
    _Atomic bool paused; /* no new runs for now (they get -EAGAIN): the process is about to fork,
                            and a forked child has no runs. Its owner sets it */
    unsigned limit_s;    /* time limit of a run; > 0 */
    const struct clock *clock;
    unsigned most; /* runs at a time: twice the cores */
    struct lock lock;
    pthread_cond_t freed; /* a place */
    /* Guarded by lock: */
    struct opener_run *first; /* runs in progress, or waiting for those of another process */
    unsigned n;
};

/* cache, pool and cwd must outlive ret. cwd NULL: '/'. clock NULL: the real one. */
void commands_init(struct commands *ret, const struct cache_folder *cache, struct lazy_pool *pool,
                   const char *cwd, bool allowed, unsigned limit_s, const struct clock *clock);

/* Ends all runs and frees them. */
void commands_release(struct commands *commands);

/* See opener_kept(), opener_start(), opener_poll() and opener_stop().
 *
 * The output of a command is kept under its text, the folder it runs in, and the versions of the
 * files among its words; the command is then not run again. While another process makes the same
 * output, a run waits for it. A run that is not stopped holds one of the `most` places from its
 * start to its end; the time limit is checked in commands_poll(). When the shell has ended, the
 * processes left in its group are killed. The blob of an output opens its file when it is read:
 * -ESTALE if that file was removed meanwhile. */
int commands_kept(struct commands *commands, const char *command, struct blob **ret);
int commands_start(struct commands *commands, const char *command, struct opener_run **ret,
                   struct diag *d);
int commands_poll(struct opener_run *run, int wait_ms, struct blob **ret, struct diag *d);
void commands_stop(struct opener_run *run);

#endif
