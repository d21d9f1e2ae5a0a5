/* The read context: each missing range is recorded once, up to a limit; threads record them at
 * once; a waiter is called once, with the first error. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/pool.h"
#include "base/read_context.h"
#include "support/absent_blob.h"
#include "support/memory_blob.h"
#include "support/random.h"
#include "support/test_clock.h"
#include "support/unit.h"

#define SIZE (UINT64_C(1) << 30)

struct fixture {
    struct absent absent;
    struct blob_faults faults;
    struct blob *blob[2];
    struct read_context rc;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    f->faults.absent = &f->absent;
    for (size_t i = 0; i < ARRAY_LEN(f->blob); i++)
        f->blob[i] = memory_blob_new("x", "", 0, SIZE, &f->faults);
    read_context_init(&f->rc, true);
    *state = f;
    return f->blob[0] && f->blob[1] ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    read_context_release(&f->rc);
    blob_free(f->blob[0]);
    blob_free(f->blob[1]);
    free(f);
    return 0;
}

static void check_want(const struct fixture *f, size_t i, unsigned blob, uint64_t off, uint64_t len)
{
    assert_true(i < f->rc.n);
    assert_ptr_equal(f->rc.range[i].blob, f->blob[blob]);
    assert_int_equal(f->rc.range[i].off, off);
    assert_int_equal(f->rc.range[i].len, len);
}

static void add(struct fixture *f, unsigned blob, uint64_t off, uint64_t len)
{
    assert_int_equal(missing_add(&f->rc, f->blob[blob], off, len), -EAGAIN);
}

/* ---- collecting ---- */

UNIT_TEST_WITH(test_wants__apart__each_noted, setup, teardown)
{
    struct fixture *f = *state;

    add(f, 0, 0, 10);
    add(f, 0, 10 + MISSING_GAP + 1, 20);
    add(f, 1, 0, 30);
    assert_int_equal(f->rc.n, 3);
    check_want(f, 0, 0, 0, 10);
    check_want(f, 1, 0, 10 + MISSING_GAP + 1, 20);
    check_want(f, 2, 1, 0, 30);
    assert_int_equal(f->rc.bytes, 60);
}

UNIT_TEST_WITH(test_wants__near__become_one, setup, teardown)
{
    struct fixture *f = *state;
    const uint64_t at = MISSING_GAP * 100 + 17;

    add(f, 0, at, 100);
    add(f, 0, at, 100);             /* the same */
    add(f, 0, at + 10, 10);         /* within */
    add(f, 0, at + 100, 50);        /* adjacent */
    add(f, 0, at - MISSING_GAP, 1); /* before */
    assert_int_equal(f->rc.n, 1);
    check_want(f, 0, 0, at - MISSING_GAP, MISSING_GAP + 150);
    add(f, 1, at, 100);
    assert_int_equal(f->rc.n, 2);
    add(f, 0, at + 150 + MISSING_GAP, 1); /* after */
    add(f, 1, at - 10, 200);              /* around */
    assert_int_equal(f->rc.n, 2);
    check_want(f, 0, 0, at - MISSING_GAP, 2 * MISSING_GAP + 151);
    check_want(f, 1, 1, at - 10, 200);
    assert_int_equal(f->rc.bytes, 2 * MISSING_GAP + 351);
}

/* However ranges are merged, they contain what was missing, and not much else. */
UNIT_TEST_WITH(test_wants__random__all_covered, setup, teardown)
{
    struct fixture *f = *state;
    uint64_t rng = RANDOM_SEED, off[2000];

    for (size_t i = 0; i < ARRAY_LEN(off); i++) {
        off[i] = random_below(&rng, UINT64_C(60) << 20);
        add(f, i % 2, off[i], 784);
    }
    assert_true(f->rc.n < ARRAY_LEN(off) * 3 / 4);
    assert_true(f->rc.bytes <= ARRAY_LEN(off) * (784 + MISSING_GAP));
    for (size_t i = 0; i < ARRAY_LEN(off); i++) {
        bool covered = false;

        for (size_t k = 0; k < f->rc.n; k++) {
            const struct missing_range *want = &f->rc.range[k];

            covered = covered || (want->blob == f->blob[i % 2] && want->off <= off[i] &&
                                  off[i] + 784 <= want->off + want->len);
        }
        assert_true(covered);
    }
}

/* A batch of tiny samples from anywhere in a small file is one range. */
UNIT_TEST_WITH(test_wants__tiny_samples__few_ranges, setup, teardown)
{
    struct fixture *f = *state;
    uint64_t rng = RANDOM_SEED;

    for (size_t i = 0; i < 100000; i++)
        add(f, 0, random_below(&rng, 60000), 1);
    assert_int_equal(f->rc.n, 1);
    assert_false(missing_full(&f->rc));
}

UNIT_TEST_WITH(test_wants__ranges_or_bytes__full, setup, teardown)
{
    struct fixture *f = *state;

    for (uint64_t i = 0; i < MISSING_MAX; i++) {
        assert_false(missing_full(&f->rc));
        add(f, 0, i * (MISSING_GAP + 2), 1);
    }
    assert_true(missing_full(&f->rc));
    add(f, 1, 0, 1);
    assert_int_equal(f->rc.n, MISSING_MAX);
    read_context_release(&f->rc);
    read_context_init(&f->rc, true);
    add(f, 0, 0, MISSING_BYTES - 1);
    assert_false(missing_full(&f->rc));
    add(f, 1, 0, 1);
    assert_true(missing_full(&f->rc));
}

UNIT_TEST_WITH(test_wants__loop__goes_on_until_full, setup, teardown)
{
    struct fixture *f = *state;
    int all = 0;

    assert_true(missing_go_on(READ_WAITS, 0, &all));
    assert_int_equal(all, 0);
    assert_false(missing_go_on(READ_WAITS, -EAGAIN, &all)); /* nothing collects */
    assert_int_equal(all, -EAGAIN);
    all = 0;
    assert_true(missing_go_on(&f->rc, -EAGAIN, &all));
    assert_true(missing_go_on(&f->rc, 0, &all));
    assert_int_equal(all, -EAGAIN);
    assert_false(missing_go_on(&f->rc, -EBADMSG, &all));
    assert_int_equal(all, -EBADMSG);
    add(f, 0, 0, MISSING_BYTES);
    all = 0;
    assert_false(missing_go_on(&f->rc, -EAGAIN, &all));
    assert_int_equal(all, -EAGAIN);
}

/* ---- helpers ---- */

static void want_one(void *ctx, unsigned i)
{
    struct fixture *f = ctx;
    uint8_t byte;

    assert_int_equal(blob_pread(&f->rc, f->blob[0], &byte, 1, i * (MISSING_GAP * 4)), -EAGAIN);
}

UNIT_TEST_WITH(test_wants__pool__helpers_note_in_one_context, setup, teardown)
{
    struct fixture *f = *state;
    struct pool *pool = NULL;

    assert_int_equal(pool_new(&pool), 0);
    for (unsigned round = 0; round < 20; round++) {
        pool_run(pool, 500, want_one, f);
        assert_int_equal(f->rc.n, 500);
        read_context_release(&f->rc);
        read_context_init(&f->rc, true);
    }
    pool_free(pool);
}

/* ---- waiters ---- */

struct counting {
    struct waiter waiter; /* first: done() finds the rest */
    _Atomic unsigned done;
};

static void count_done(struct waiter *waiter)
{
    atomic_fetch_add(&((struct counting *)waiter)->done, 1);
}

UNIT_TEST_WITH(test_waiter__fetch__done_once_and_all_here, setup, teardown)
{
    struct fixture *f = *state;
    struct counting c = {.waiter.done = count_done};
    uint8_t bytes[1000];

    assert_int_equal(blob_pread(&f->rc, f->blob[0], bytes, 1000, 12345), -EAGAIN);
    assert_int_equal(blob_pread(&f->rc, f->blob[1], bytes, 1000, 1 << 20), -EAGAIN);
    missing_fetch(&f->rc, &c.waiter);
    assert_int_equal(c.done, 1);
    assert_int_equal(c.waiter.error, 0);
    assert_int_equal(f->rc.n, 0);
    assert_int_equal(f->rc.bytes, 0);
    assert_int_equal(blob_pread(&f->rc, f->blob[0], bytes, 1000, 12345), 0);
    assert_int_equal(blob_pread(&f->rc, f->blob[1], bytes, 1000, 1 << 20), 0);
}

UNIT_TEST_WITH(test_waiter__nothing_wanted__done_at_once, setup, teardown)
{
    struct fixture *f = *state;
    struct counting c = {.waiter.done = count_done};
    struct blob *here = memory_blob_new("here", "x", 1, 1, NULL);

    missing_fetch(&f->rc, &c.waiter);
    assert_int_equal(c.done, 1);
    assert_int_equal(missing_add(&f->rc, here, 0, 1), -EAGAIN); /* a blob that fetches nothing */
    missing_fetch(&f->rc, &c.waiter);
    assert_int_equal(c.done, 2);
    assert_int_equal(c.waiter.error, 0);
    blob_free(here);
}

UNIT_TEST_WITH(test_waiter__first_error__wins, setup, teardown)
{
    struct counting c = {.waiter.done = count_done};
    struct diag first = DIAG_INIT, second = DIAG_INIT;

    diag_set(&first, 0, "the first");
    diag_set(&second, 0, "the second");
    for (unsigned i = 0; i < 4; i++)
        waiter_add(&c.waiter);
    waiter_done(&c.waiter, 0, NULL);
    waiter_done(&c.waiter, -EREMOTEIO, &first);
    waiter_done(&c.waiter, -ESTALE, &second);
    assert_int_equal(c.done, 0);
    waiter_done(&c.waiter, 0, NULL);
    assert_int_equal(c.done, 1);
    assert_int_equal(c.waiter.error, -EREMOTEIO);
    assert_string_equal(c.waiter.reason.text, "the first");
}

UNIT_TEST_WITH(test_waiter__fetch_again__error_is_gone, setup, teardown)
{
    struct fixture *f = *state;
    struct counting c = {.waiter.done = count_done};

    f->absent.fail_fetches = 1;
    add(f, 0, 0, 1);
    add(f, 1, 0, 1);
    missing_fetch(&f->rc, &c.waiter);
    assert_int_equal(c.done, 1);
    assert_int_equal(c.waiter.error, -EREMOTEIO);
    assert_diag_has(&c.waiter.reason, "the remote is gone");
    add(f, 0, 0, 1);
    missing_fetch(&f->rc, &c.waiter);
    assert_int_equal(c.done, 2);
    assert_int_equal(c.waiter.error, 0);
    assert_false(c.waiter.reason.set);
}

/* ---- waiting ---- */

UNIT_TEST_WITH(test_wait__missing__all_here, setup, teardown)
{
    struct fixture *f = *state;
    struct diag d = DIAG_INIT;
    uint8_t bytes[1000];

    assert_int_equal(blob_pread(&f->rc, f->blob[0], bytes, 1000, 12345), -EAGAIN);
    assert_int_equal(blob_pread(&f->rc, f->blob[1], bytes, 1000, 1 << 20), -EAGAIN);
    assert_int_equal(missing_wait(&f->rc, false, &d), 0);
    assert_int_equal(f->rc.n, 0);
    assert_int_equal(blob_pread(&f->rc, f->blob[0], bytes, 1000, 12345), 0);
    assert_int_equal(blob_wait(READ_WAITS, f->blob[1], 5 << 20, 10, &d), 0);
    assert_int_equal(blob_pread(&f->rc, f->blob[1], bytes, 10, 5 << 20), 0);
    assert_false(d.set);
}

UNIT_TEST_WITH(test_wait__cannot_be_fetched__the_reason, setup, teardown)
{
    struct fixture *f = *state;
    struct diag d = DIAG_INIT, again = DIAG_INIT;

    f->absent.fail_fetches = 2;
    add(f, 0, 0, 1);
    assert_int_equal(missing_wait(&f->rc, true, &d), -EREMOTEIO);
    assert_diag_has(&d, "the remote is gone");
    assert_int_equal(blob_wait(&f->rc, f->blob[0], 0, 1, &again), -EREMOTEIO);
    assert_diag_has(&again, "the remote is gone");
}

/* A blob whose bytes come when the test says so. */
struct late_blob {
    struct blob blob;
    struct waiter *waiter;
};

static void late_fetch(const struct blob *blob, uint64_t off, uint64_t len, struct waiter *waiter)
{
    (void)off;
    (void)len;
    waiter_add(waiter);
    ((struct late_blob *)(uintptr_t)blob)->waiter = waiter;
}

static bool at_once(void *ctx)
{
    ++*(unsigned *)ctx;
    return true;
}

UNIT_TEST_WITH(test_wait__cancelled__leaves_the_bytes_behind, setup, teardown)
{
    static const struct blob_ops ops = {.fetch = late_fetch};
    struct late_blob late = {.blob = {.ops = &ops, .size = 10}};
    struct fixture *f = *state;
    struct diag d = DIAG_INIT;
    unsigned looks = 0;

    f->rc.cancelled = at_once;
    f->rc.ctx = &looks;
    assert_int_equal(blob_wait(&f->rc, &late.blob, 0, 10, &d), -EINTR);
    assert_int_equal(looks, 1);
    assert_false(d.set);
    waiter_done(late.waiter, 0, NULL); /* they come later: this frees what waited */
    add(f, 0, 0, 1);
    assert_int_equal(missing_wait(&f->rc, false, &d), 0); /* all is cached: no request */
    assert_int_equal(looks, 1);
}

static bool at_third(void *ctx)
{
    return ++*(unsigned *)ctx == 3;
}

UNIT_TEST_WITH(test_wait__cancelled_later__noticed_in_50_ms, setup, teardown)
{
    static const struct blob_ops ops = {.fetch = late_fetch};
    struct late_blob late = {.blob = {.ops = &ops, .size = 10}};
    struct fixture *f = *state;
    AUTO(test_clock_release) struct test_clock clock;
    unsigned looks = 0;

    test_clock_init(&clock);
    f->rc.clock = &clock.clock;
    f->rc.cancelled = at_third;
    f->rc.ctx = &looks;
    test_clock_run(&clock, TEST_S);
    assert_int_equal(blob_wait(&f->rc, &late.blob, 0, 10, NULL), -EINTR);
    test_clock_stand(&clock);
    assert_int_equal(clock_monotonic(&clock.clock), TEST_CLOCK_START + 100 * TEST_MS);
    waiter_done(late.waiter, 0, NULL);
}

#define THREADS 8
#define EACH    2000

struct finisher {
    struct counting *c;
    unsigned number;
};

static void *finish_many(void *arg)
{
    const struct finisher *f = arg;
    struct diag reason = DIAG_INIT;

    diag_set(&reason, 0, "thread %u", f->number);
    for (unsigned i = 0; i < EACH; i++)
        waiter_done(&f->c->waiter, i == EACH / 2 ? -(int)(1000 + f->number) : 0, &reason);
    return NULL;
}

UNIT_TEST_WITH(test_waiter__threads__done_once_with_one_reason, setup, teardown)
{
    struct counting c = {.waiter.done = count_done};
    struct finisher finisher[THREADS];
    pthread_t id[THREADS];
    char want[32];

    waiter_add(&c.waiter);
    for (unsigned i = 0; i < THREADS * EACH; i++)
        waiter_add(&c.waiter);
    for (unsigned i = 0; i < THREADS; i++) {
        finisher[i] = (struct finisher){&c, i};
        assert_int_equal(pthread_create(&id[i], NULL, finish_many, &finisher[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(id[i], NULL);
    assert_int_equal(c.done, 0);
    waiter_done(&c.waiter, 0, NULL);
    assert_int_equal(c.done, 1);
    assert_true(c.waiter.error <= -1000 && c.waiter.error > -1000 - THREADS);
    snprintf(want, sizeof(want), "thread %d", -c.waiter.error - 1000);
    assert_string_equal(c.waiter.reason.text, want);
}
