/* A pool of threads that help whoever has work that can be divided. */
#ifndef EPOCHFS_BASE_POOL_H
#define EPOCHFS_BASE_POOL_H

#include "base/scope.h"

struct pool;

/* Threads are started when there is work for the first time, so not before a fork(). 0 or
 * -ENOMEM. */
int pool_new(struct pool **ret);
void pool_free(struct pool *pool); /* takes NULL; no work may be under way */

/* Call work(ctx, i) for each i below n, by the caller and by helpers that have nothing else to do,
 * in any order; returns when all are done. pool NULL: by the caller alone. Any thread; no lock may
 * be held that work takes. */
void pool_run(struct pool *pool, unsigned n, void (*work)(void *ctx, unsigned i), void *ctx);

#endif
