/* A mutex that knows its holder, so that helpers named *_locked can assert it. */
#ifndef EPOCHFS_BASE_LOCK_H
#define EPOCHFS_BASE_LOCK_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "base/scope.h"

struct lock {
    pthread_mutex_t mutex;
    _Atomic(pthread_t) holder; /* meaningful to its holder only */
};

static inline void lock_init(struct lock *l)
{
    pthread_mutex_init(&l->mutex, NULL);
    atomic_store_explicit(&l->holder, (pthread_t)0, memory_order_relaxed);
}

static inline void lock_release(struct lock *l)
{
    pthread_mutex_destroy(&l->mutex);
}

static inline void lock_take(struct lock *l)
{
    pthread_mutex_lock(&l->mutex);
    atomic_store_explicit(&l->holder, pthread_self(), memory_order_relaxed);
}

static inline void lock_drop(struct lock *l)
{
    atomic_store_explicit(&l->holder, (pthread_t)0, memory_order_relaxed);
    pthread_mutex_unlock(&l->mutex);
}

/* Wait for the condition; the lock is dropped meanwhile. */
static inline void lock_wait(struct lock *l, pthread_cond_t *condition)
{
    atomic_store_explicit(&l->holder, (pthread_t)0, memory_order_relaxed);
    pthread_cond_wait(condition, &l->mutex);
    atomic_store_explicit(&l->holder, pthread_self(), memory_order_relaxed);
}

/* The same, at most until the monotonic clock reaches `until`, in nanoseconds. condition_init()
 * made the condition. Code that tests must turn the clock for uses clock_wait(). */
static inline void lock_wait_until(struct lock *l, pthread_cond_t *condition, int64_t until)
{
    const struct timespec at = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};

    atomic_store_explicit(&l->holder, (pthread_t)0, memory_order_relaxed);
    pthread_cond_timedwait(condition, &l->mutex, &at);
    atomic_store_explicit(&l->holder, pthread_self(), memory_order_relaxed);
}

static inline void condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

static inline void lock_assert_held(const struct lock *l)
{
    assert(pthread_equal(atomic_load_explicit(&l->holder, memory_order_relaxed), pthread_self()));
    (void)l;
}

static inline void lock_scope_end(struct lock *const *l)
{
    lock_drop(*l);
}

/* Take l until the end of the enclosing scope. */
#define LOCK_SCOPE(l)                                                                              \
    AUTO(lock_scope_end) struct lock *lock_in_scope_ = (l);                                        \
    lock_take(lock_in_scope_)

#endif
