/* A pool of helper threads for work that can be divided. */
#ifndef EPOCHFS_BASE_POOL_H
#define EPOCHFS_BASE_POOL_H

#include "base/scope.h"

struct pool;

/* Threads are started with the first work, so a process can fork before that. 0 or -ENOMEM. */
int pool_new(struct pool **ret);
void pool_free(struct pool *pool); /* takes NULL; no work may be under way */

/* Call work(ctx, i) for each i below n, in the calling thread and in idle helpers, in any order;
 * returns when all calls are done. pool NULL: in the calling thread alone. Any thread; the caller
 * may hold no lock that work takes. */
void pool_run(struct pool *pool, unsigned n, void (*work)(void *ctx, unsigned i), void *ctx);

#endif
