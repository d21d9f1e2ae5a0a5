/* A job is in the pool's list while it has parts that no thread has taken. Its caller also takes
 * parts, and then waits for those that helpers still work on; so a job always ends, even if every
 * helper is busy, or none could be started. */
#include "base/pool.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/thread.h"

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
static unsigned pool_take_locked(struct pool *pool, struct job *job)
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

/* Work on a part of the job, which has been taken. The job may be gone afterwards. */
static void work_on(struct pool *pool, struct job *job, unsigned part)
{
    job->work(job->ctx, part);
    LOCK_SCOPE(&pool->lock);
    if (++job->done == job->n)
        pthread_cond_broadcast(&pool->done);
}

/* Wait for a part of any job, and take it. NULL: the pool ends. */
static struct job *await_part(struct pool *pool, unsigned *ret_part)
{
    LOCK_SCOPE(&pool->lock);
    struct job *job = NULL;

    while (!pool->ending && !(job = pool->first))
        lock_wait(&pool->lock, &pool->wake);
    if (pool->ending)
        return NULL;
    *ret_part = pool_take_locked(pool, job);
    return job;
}

/* Take a part of the job. false: all are taken. */
static bool take_part(struct pool *pool, struct job *job, unsigned *ret_part)
{
    LOCK_SCOPE(&pool->lock);

    if (job->taken == job->n)
        return false;
    *ret_part = pool_take_locked(pool, job);
    return true;
}

static void *helper_main(void *arg)
{
    struct pool *pool = arg;
    struct job *job;
    unsigned part;

    while ((job = await_part(pool, &part)))
        work_on(pool, job, part);
    return NULL;
}

static void start_locked(struct pool *pool)
{
    lock_assert_held(&pool->lock);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    pool->started = true;
    while (pool->helpers < HELPERS_MAX && (long)pool->helpers + 1 < processors &&
           thread_start(&pool->helper[pool->helpers], helper_main, pool) == 0)
        pool->helpers++;
}

void pool_run(struct pool *pool, unsigned n, void (*work)(void *ctx, unsigned i), void *ctx)
{
    struct job job = {.n = n, .work = work, .ctx = ctx};
    unsigned part;

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
    lock_drop(&pool->lock);
    while (take_part(pool, &job, &part))
        work_on(pool, &job, part);
    lock_take(&pool->lock);
    while (job.done < n)
        lock_wait(&pool->lock, &pool->done);
    lock_drop(&pool->lock);
}
