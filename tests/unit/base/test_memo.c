/* The memo: what it keeps and for how long, makers that fail, and many threads at once. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/memo.h"
#include "base/read_context.h"
#include "support/random.h"
#include "support/test_clock.h"
#include "support/unit.h"

static struct memo_key key_of(uint64_t number)
{
    return (struct memo_key){{1, number, 3, number / 3, 0, number << 32}};
}

/* Makes size bytes, the first of which is the number; fails where the test wants it to. */
struct maker {
    uint64_t number;
    size_t size;
    int fail;
    _Atomic unsigned made;
};

static int make(void *ctx, void **ret, size_t *ret_size)
{
    struct maker *maker = ctx;
    uint64_t *bytes = malloc(sizeof(*bytes));

    atomic_fetch_add(&maker->made, 1);
    if (maker->fail || !bytes) {
        free(bytes);
        return maker->fail ? maker->fail : -ENOMEM;
    }
    *bytes = maker->number;
    *ret = bytes;
    *ret_size = maker->size;
    return 0;
}

static int get_by(struct memo *memo, const struct memo_key *key, struct maker *maker,
                  struct memo_thing **ret)
{
    const struct memo_maker by = {.make = make, .ctx = maker};

    return memo_get(memo, key, &by, ret);
}

/* Get a number and check it; true: it had to be made. */
static bool get(struct memo *memo, uint64_t number, size_t size, struct memo_thing **ret)
{
    struct maker maker = {.number = number, .size = size};
    struct memo_key key = key_of(number);

    assert_int_equal(get_by(memo, &key, &maker, ret), 0);
    assert_int_equal(*(const uint64_t *)memo_bytes(*ret), number);
    return maker.made;
}

static bool has(struct memo *memo, uint64_t number)
{
    struct memo_key key = key_of(number);

    return memo_has(memo, &key);
}

/* Get and let go. */
static bool touch(struct memo *memo, uint64_t number, size_t size)
{
    AUTO_MEMO struct memo_thing *thing = NULL;

    return get(memo, number, size, &thing);
}

UNIT_TEST(test_memo__within_the_limit__made_once)
{
    struct memo *memo = NULL;

    assert_int_equal(memo_new(5000 * (1 + MEMO_OWN), &memo), 0);
    assert_false(has(memo, 1));
    for (uint64_t round = 0; round < 3; round++)
        for (uint64_t i = 0; i < 5000; i++)
            assert_int_equal(touch(memo, i, 1), round == 0);
    memo_free(memo);
    memo_free(NULL);
    memo_let_go(NULL);
}

UNIT_TEST(test_memo__above_the_limit__least_recently_used_goes)
{
    struct memo *memo = NULL;

    assert_int_equal(memo_new(30 + 3 * MEMO_OWN, &memo), 0);
    for (uint64_t i = 0; i < 3; i++)
        assert_true(touch(memo, i, 10));
    assert_false(touch(memo, 0, 10));
    assert_true(touch(memo, 3, 10)); /* 1 goes */
    assert_true(has(memo, 0) && !has(memo, 1) && has(memo, 2) && has(memo, 3));
    assert_true(touch(memo, 4, 20)); /* 2 and 0 go */
    assert_true(!has(memo, 0) && !has(memo, 2) && has(memo, 3) && has(memo, 4));
    assert_true(touch(memo, 5, 1000)); /* all others go */
    for (uint64_t i = 0; i <= 4; i++)
        assert_false(has(memo, i));
    assert_true(has(memo, 5)); /* used last, it is kept, and is not made again */
    assert_false(touch(memo, 5, 1000));
    assert_true(touch(memo, 6, 1));
    assert_true(!has(memo, 5) && has(memo, 6));
    memo_free(memo);
}

UNIT_TEST(test_memo__halved__what_is_in_use_stays)
{
    struct memo_thing *used = NULL;
    struct memo *memo = NULL;

    assert_int_equal(memo_new(1 << 20, &memo), 0);
    assert_false(memo_halve(memo));
    assert_true(get(memo, 0, 1000, &used));
    for (uint64_t i = 1; i < 8; i++)
        assert_true(touch(memo, i, 1000));
    assert_true(memo_halve(memo));
    assert_true(has(memo, 0) && !has(memo, 4) && has(memo, 5) && has(memo, 7));
    while (memo_halve(memo))
        continue;
    assert_true(has(memo, 0) && !has(memo, 7));
    memo_let_go(used);
    assert_true(memo_halve(memo));
    assert_false(has(memo, 0));
    memo_free(memo);
}

UNIT_TEST(test_memo__in_use__stays)
{
    struct memo_thing *first = NULL, *second = NULL, *again = NULL;
    struct memo *memo = NULL;

    assert_int_equal(memo_new(30 + 2 * MEMO_OWN, &memo), 0);
    assert_true(get(memo, 1, 20, &first));
    assert_true(get(memo, 2, 20, &second)); /* both are in use: above the limit */
    assert_true(touch(memo, 3, 5));
    assert_true(has(memo, 3)); /* used last */
    assert_false(get(memo, 1, 20, &again));
    assert_true(touch(memo, 4, 5));
    assert_false(has(memo, 3));
    assert_ptr_equal(memo_bytes(again), memo_bytes(first));
    memo_let_go(first);
    assert_true(has(memo, 1)); /* used again */
    memo_let_go(second);
    assert_false(has(memo, 2));
    memo_let_go(again);
    assert_true(has(memo, 1)); /* alone it fits */
    memo_free(memo);
}

UNIT_TEST(test_memo__maker_fails__not_remembered)
{
    struct maker maker = {.fail = -EIO};
    struct memo_key key = key_of(7);
    struct memo_thing *thing = NULL;
    struct memo *memo = NULL;

    assert_int_equal(memo_new(100, &memo), 0);
    for (unsigned i = 1; i <= 2; i++) {
        assert_int_equal(get_by(memo, &key, &maker, &thing), -EIO);
        assert_null(thing);
        assert_int_equal(maker.made, i);
        assert_false(memo_has(memo, &key));
    }
    assert_true(touch(memo, 7, 1));
    memo_free(memo);
}

/* ---- threads ---- */

#define THREADS 8

static struct memo *shared;
static pthread_barrier_t together;

static void run_threads(void *(*run)(void *arg), void *arg)
{
    pthread_t id[THREADS];

    assert_int_equal(pthread_barrier_init(&together, NULL, THREADS), 0);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&id[i], NULL, run, arg), 0);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(id[i], NULL), 0);
    pthread_barrier_destroy(&together);
}

static void *get_same(void *arg)
{
    struct memo_key key = key_of(1);
    AUTO_MEMO struct memo_thing *thing = NULL;

    pthread_barrier_wait(&together);
    assert_int_equal(get_by(shared, &key, arg, &thing), 0);
    assert_int_equal(*(const uint64_t *)memo_bytes(thing), 1);
    return NULL;
}

UNIT_TEST(test_memo__same_key_at_once__made_once)
{
    for (unsigned i = 0; i < 200; i++) {
        struct maker maker = {.number = 1, .size = 1};

        assert_int_equal(memo_new(100, &shared), 0);
        run_threads(get_same, &maker);
        assert_int_equal(maker.made, 1);
        memo_free(shared);
    }
}

static void *get_failing(void *arg)
{
    struct memo_key key = key_of(1);
    struct memo_thing *thing = NULL;

    pthread_barrier_wait(&together);
    assert_int_equal(get_by(shared, &key, arg, &thing), -EBADMSG);
    return NULL;
}

/* Each caller gets the error from its own maker. */
UNIT_TEST(test_memo__same_key_fails_at_once__each_tries)
{
    for (unsigned i = 0; i < 200; i++) {
        struct maker maker = {.fail = -EBADMSG};

        assert_int_equal(memo_new(100, &shared), 0);
        run_threads(get_failing, &maker);
        assert_int_equal(maker.made, THREADS);
        memo_free(shared);
    }
}

/* Waits in make() until it may go on. */
struct slow {
    pthread_barrier_t begun, end;
    _Atomic unsigned asked;
};

static int make_slowly(void *ctx, void **ret, size_t *ret_size)
{
    struct slow *slow = ctx;

    pthread_barrier_wait(&slow->begun);
    pthread_barrier_wait(&slow->end);
    *ret = calloc(1, 8);
    *ret_size = 8;
    return *ret ? 0 : -ENOMEM;
}

static void *get_slowly(void *arg)
{
    const struct memo_maker by = {.make = make_slowly, .ctx = arg};
    struct memo_key key = key_of(1);
    AUTO_MEMO struct memo_thing *thing = NULL;

    assert_int_equal(memo_get(shared, &key, &by, &thing), 0);
    return NULL;
}

/* False the first time, true from then on. */
static bool is_cancelled(void *ctx)
{
    return atomic_fetch_add(&((struct slow *)ctx)->asked, 1) == 2;
}

UNIT_TEST(test_memo__wait_cancelled__eintr)
{
    struct memo_thing *thing = NULL;
    struct memo_key key = key_of(1);
    struct slow slow = {.asked = 0};
    AUTO(test_clock_release) struct test_clock clock;
    const struct read_context rc = {.cancelled = is_cancelled, .ctx = &slow, .clock = &clock.clock};
    const struct memo_maker by = {.make = make_slowly, .ctx = &slow, .rc = &rc};
    pthread_t id;

    test_clock_init(&clock);
    assert_int_equal(memo_new(100, &shared), 0);
    pthread_barrier_init(&slow.begun, NULL, 2);
    pthread_barrier_init(&slow.end, NULL, 2);
    assert_int_equal(pthread_create(&id, NULL, get_slowly, &slow), 0);
    pthread_barrier_wait(&slow.begun);
    assert_true(memo_has(shared, &key));
    test_clock_run(&clock, 10 * TEST_MS);
    assert_int_equal(memo_get(shared, &key, &by, &thing), -EINTR);
    test_clock_stand(&clock);
    assert_int_equal(clock_monotonic(&clock.clock), TEST_CLOCK_START + 20 * TEST_MS);
    assert_null(thing);
    assert_int_equal(slow.asked, 3);
    pthread_barrier_wait(&slow.end);
    assert_int_equal(pthread_join(id, NULL), 0);
    assert_int_equal(memo_get(shared, &key, &by, &thing), 0); /* it exists: no waiting */
    memo_let_go(thing);
    memo_free(shared);
    pthread_barrier_destroy(&slow.begun);
    pthread_barrier_destroy(&slow.end);
}

static void *get_many(void *arg)
{
    uint64_t rng = RANDOM_SEED + (uintptr_t)&rng;

    (void)arg;
    pthread_barrier_wait(&together);
    for (unsigned i = 0; i < 5000; i++) {
        struct maker maker = {.size = 1 + random_below(&rng, 5),
                              .fail = random_below(&rng, 20) ? 0 : -EIO};
        AUTO_MEMO struct memo_thing *thing = NULL, *other = NULL;
        struct memo_key key;
        int r;

        maker.number = random_below(&rng, 40);
        key = key_of(maker.number);
        r = get_by(shared, &key, &maker, &thing);
        assert_true(r == 0 || r == maker.fail);
        if (r == 0)
            assert_int_equal(*(const uint64_t *)memo_bytes(thing), maker.number);
        get(shared, (maker.number + 1) % 40, 3, &other);
        has(shared, maker.number);
    }
    return NULL;
}

UNIT_TEST(test_memo__many_threads__right_things)
{
    assert_int_equal(memo_new(50, &shared), 0);
    run_threads(get_many, NULL);
    memo_free(shared);
}

UNIT_TEST(test_memo_held__things__their_bytes)
{
    struct memo_thing *thing;
    struct memo *memo;

    assert_int_equal(memo_new(5 * (1000 + MEMO_OWN), &memo), 0);
    for (uint64_t number = 0; number < 20; number++) {
        get(memo, number, 1000, &thing);
        memo_let_go(thing);
        assert_int_equal(memo_held(memo).bytes, min_u64(number + 1, 5) * (1000 + MEMO_OWN));
    }
    assert_int_equal(memo_held(memo).limit, 5 * (1000 + MEMO_OWN));
    memo_free(memo);
}
