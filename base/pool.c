/* A job is in the pool's list while it has parts that no thread has taken. Its caller takes parts,
 * too, and then waits for those that helpers still work on; so a job always ends, even if every
 * helper is busy, or none could be started. */
#include "base/pool.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/lock.h"

#define HELPERS_MAX 8

struct job {
    struct job *next;
    unsigned n, taken, done; /* parts */
    void (*work)(void *ctx, unsigned i);
    void *ctx;
};

struct pool {
    struct lock lock;
    pthread_cond_t wake, done;
    /* Guarded by lock: */
    struct job *first;
    pthread_t helper[HELPERS_MAX];
    unsigned helpers;
    bool started, ending;
};

int pool_new(struct pool **ret)
{
    struct pool *pool = calloc(1, sizeof(*pool));

    if (!pool)
        return -ENOMEM;
    lock_init(&pool->lock);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->done, NULL);
    *ret = pool;
    return 0;
}

void pool_free(struct pool *pool)
{
    if (!pool)
        return;
    lock_take(&pool->lock);
    pool->ending = true;
    pthread_cond_broadcast(&pool->wake);
    lock_drop(&pool->lock);
    for (unsigned i = 0; i < pool->helpers; i++)
        pthread_join(pool->helper[i], NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_cond_destroy(&pool->done);
    lock_release(&pool->lock);
    free(pool);
}

/* Take the next part of the job. The last part removes the job from the list. */
static unsigned take_locked(struct pool *pool, struct job *job)
{
    unsigned i = job->taken++;
    struct job **at = &pool->first;

    lock_assert_held(&pool->lock);
    if (job->taken == job->n) {
        while (*at != job)
            at = &(*at)->next;
        *at = job->next;
    }
    return i;
}

/* Work on one part; the lock is dropped meanwhile. */
static void work_locked(struct pool *pool, struct job *job)
{
    unsigned i = take_locked(pool, job);

    lock_assert_held(&pool->lock);
    lock_drop(&pool->lock);
    job->work(job->ctx, i);
    lock_take(&pool->lock);
    if (++job->done == job->n)
        pthread_cond_broadcast(&pool->done);
}

static void *helper_main(void *arg)
{
    struct pool *pool = arg;

    lock_take(&pool->lock);
    while (!pool->ending) {
        if (pool->first)
            work_locked(pool, pool->first);
        else
            lock_wait(&pool->lock, &pool->wake);
    }
    lock_drop(&pool->lock);
    return NULL;
}

static void start_locked(struct pool *pool)
{
    lock_assert_held(&pool->lock);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    pool->started = true;
    while (pool->helpers < HELPERS_MAX && (long)pool->helpers + 1 < processors &&
           pthread_create(&pool->helper[pool->helpers], NULL, helper_main, pool) == 0)
        pool->helpers++;
}

void pool_run(struct pool *pool, unsigned n, void (*work)(void *ctx, unsigned i), void *ctx)
{
    struct job job = {.n = n, .work = work, .ctx = ctx};

    if (!pool || n < 2) {
        for (unsigned i = 0; i < n; i++)
            work(ctx, i);
        return;
    }
    lock_take(&pool->lock);
    if (!pool->started)
        start_locked(pool);
    job.next = pool->first;
    pool->first = &job;
    pthread_cond_broadcast(&pool->wake);
    while (job.taken < n)
        work_locked(pool, &job);
    while (job.done < n)
        lock_wait(&pool->lock, &pool->done);
    lock_drop(&pool->lock);
}
