/* Commands that a file of SOURCE names, and their output, which is kept in the cache folder. */
#ifndef EPOCHFS_CACHE_NAMED_COMMANDS_H
#define EPOCHFS_CACHE_NAMED_COMMANDS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/lock.h"
#include "base/opener.h"
#include "cache/disk/folder.h"
#include "cache/named/lazy.h"

/* Runs belong to the process that started them: fork() takes none along. */
struct commands {
    /* Set by commands_init(), then constant: */
    const struct cache_folder *cache;
    struct lazy_pool *pool; /* of the outputs' descriptors */
    const char *cwd;        /* where commands run */
    bool allowed;
    _Atomic bool paused; /* no new ones for now: a process that is to fork */
    unsigned limit_s;    /* for each; > 0 */
    unsigned most;       /* that run at once: twice the cores */
    struct lock lock;
    /* Guarded by lock: */
    struct opener_run *first; /* those that run, or wait for another process that does */
    unsigned n;
};

/* All that is pointed to must outlive it. cwd NULL: '/'. */
void commands_init(struct commands *ret, const struct cache_folder *cache, struct lazy_pool *pool,
                   const char *cwd, bool allowed, unsigned limit_s);

/* Ends all runs and frees them. */
void commands_release(struct commands *commands);

/* See opener_kept(), opener_start(), opener_poll() and opener_stop().
 *
 * What a command puts out is kept under its text, the folder it runs in, and the versions of the
 * files that are words of it; then it is not run again. While another process makes the same, a run
 * waits for that. A run holds one of the places, which are for those not stopped, from its start
 * until it has ended; the time limit goes by the looks of commands_poll(). When the shell has ended
 * what it left in its process group is killed. The output's blob opens its file when it is needed:
 * who removes that file meanwhile gets -ESTALE. */
int commands_kept(struct commands *commands, const char *command, struct blob **ret);
int commands_start(struct commands *commands, const char *command, struct opener_run **ret,
                   struct diag *d);
int commands_poll(struct opener_run *run, int wait_ms, struct blob **ret, struct diag *d);
void commands_stop(struct opener_run *run);

#endif
