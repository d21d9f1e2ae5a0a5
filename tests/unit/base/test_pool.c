/* The pool does every part of every job once, and all before pool_run() returns, even if many
 * threads call it at once, or jobs do. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/pool.h"
#include "support/unit.h"

#define PARTS_MAX 1000

struct job {
    struct pool *pool;
    unsigned n, inner;
    _Atomic unsigned done[PARTS_MAX];
};

static void count(void *ctx, unsigned i)
{
    struct job *job = ctx;

    atomic_fetch_add_explicit(&job->done[i], 1, memory_order_relaxed);
}

static void check_done(const struct job *job)
{
    for (unsigned i = 0; i < PARTS_MAX; i++)
        if (job->done[i] != (i < job->n))
            fail_msg("part %u of %u: done %u times", i, job->n, job->done[i]);
}

UNIT_TEST(test_pool__any_number__each_part_once)
{
    static const unsigned numbers[] = {0, 1, 2, 3, 8, 9, 100, PARTS_MAX};

    for (unsigned with = 0; with < 2; with++) {
        struct pool *pool = NULL;

        if (with)
            assert_int_equal(pool_new(&pool), 0);
        for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
            for (unsigned round = 0; round < 20; round++) {
                struct job job = {.n = numbers[i]};

                pool_run(pool, job.n, count, &job);
                check_done(&job);
            }
        }
        pool_free(pool);
    }
}

UNIT_TEST(test_pool__never_used__freed)
{
    struct pool *pool = NULL;

    assert_int_equal(pool_new(&pool), 0);
    pool_free(pool);
}

static void run_inner(void *ctx, unsigned i)
{
    struct job *outer = ctx, inner = {.pool = outer->pool, .n = outer->inner};

    pool_run(outer->pool, inner.n, count, &inner);
    check_done(&inner);
    count(outer, i);
}

/* Two levels of jobs within jobs. */
static void run_nested(void *ctx, unsigned i)
{
    struct job *outer = ctx, middle = {.pool = outer->pool, .n = 5, .inner = outer->inner};

    pool_run(outer->pool, middle.n, run_inner, &middle);
    check_done(&middle);
    count(outer, i);
}

static void *call_often(void *arg)
{
    for (unsigned round = 0; round < 30; round++) {
        struct job flat = {.n = round * 7}, nested = {.pool = arg, .n = 3, .inner = round % 5};

        pool_run(arg, flat.n, count, &flat);
        check_done(&flat);
        pool_run(arg, nested.n, run_nested, &nested);
        check_done(&nested);
    }
    return NULL;
}

UNIT_TEST(test_pool__many_callers__each_part_once)
{
    struct pool *pool = NULL;
    pthread_t id[8];

    assert_int_equal(pool_new(&pool), 0);
    for (size_t i = 0; i < ARRAY_LEN(id); i++)
        assert_int_equal(pthread_create(&id[i], NULL, call_often, pool), 0);
    for (size_t i = 0; i < ARRAY_LEN(id); i++)
        assert_int_equal(pthread_join(id[i], NULL), 0);
    pool_free(pool);
}
