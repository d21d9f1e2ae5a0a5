/* Sums over the samples of selections of every size, against a plain model; what the memo keeps,
 * and what ends a walk. */
#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/read_context.h"
#include "format/core/prefix_sums.h"
#include "support/random.h"
#include "support/unit.h"

#define EVERY_MOST 65536 /* samples with every sum in the table: format/core/prefix_sums.c */

/* A selection, the numbers of its samples, and their sums. */
struct fixture {
    struct selection sel;
    struct read_context rc;
    struct memo *memo;
    uint64_t *size;           /* [count] of samples */
    struct sums_pair *before; /* [count + 1] of places */
    uint64_t most;
    uint64_t fails; /* the sample for which number() fails with -EBADMSG */
    uint64_t calls;
    uint64_t asked_samples;    /* calls of samples() */
    uint64_t asked, cancel_at; /* the call of cancelled() that returns true; 0: none */
};

/* The sample at a place: not the same number. */
static uint64_t sample_at(const struct selection *sel, uint64_t place)
{
    return sel->count - 1 - place;
}

static void samples(const struct selection *sel, uint64_t first, size_t n, uint64_t *ret)
{
    ((struct fixture *)(uintptr_t)sel)->asked_samples++;
    assert_true(first <= sel->count && n <= sel->count - first);
    for (size_t i = 0; i < n; i++)
        ret[i] = sample_at(sel, first + i);
}

static bool cancelled(void *ctx)
{
    struct fixture *f = ctx;

    return ++f->asked == f->cancel_at;
}

/* other depends on the sums before it, as in the lines of an scp file. */
static uint64_t other_of(uint64_t size, const struct sums_pair *before)
{
    return size + (before->other % 3 == 0) + (before->size > 100);
}

static int number(void *ctx, uint64_t sample, const struct sums_pair *before, struct sums_pair *ret)
{
    struct fixture *f = ctx;

    assert_true(sample < f->sel.count);
    f->calls++;
    if (sample == f->fails)
        return -EBADMSG;
    ret->size = f->size[sample];
    ret->other = other_of(ret->size, before);
    return 0;
}

static void count_up(struct fixture *f)
{
    struct sums_pair sum = {0};

    for (uint64_t place = 0; place < f->sel.count; place++) {
        uint64_t size = f->size[sample_at(&f->sel, place)];

        f->before[place] = sum;
        sum.other += other_of(size, &sum);
        sum.size += size;
        f->most = max_u64(f->most, size);
    }
    f->before[f->sel.count] = sum;
}

/* Sizes with single zeros between them, and zeros for more than a block. */
static struct fixture *fixture_new(uint64_t count)
{
    struct fixture *f = calloc(1, sizeof(*f));
    uint64_t rng = RANDOM_SEED + count;

    f->sel = (struct selection){.count = count, .samples = samples, .rc = &f->rc};
    read_context_init(&f->rc, false);
    f->rc.cancelled = cancelled;
    f->rc.ctx = f;
    f->size = calloc(count + 1, sizeof(*f->size));
    f->before = calloc(count + 1, sizeof(*f->before));
    f->fails = UINT64_MAX;
    assert_int_equal(memo_new(64 << 20, &f->memo), 0);
    for (uint64_t i = 0; i < count; i++)
        f->size[i] = random_below(&rng, 3) ? random_below(&rng, 1000) : 0;
    for (uint64_t place = 0; place < count && count > 2; place++)
        if (place < 3 || place % 5000 < 600 || place + 3 > count)
            f->size[sample_at(&f->sel, place)] = 0;
    count_up(f);
    return f;
}

static void fixture_free(struct fixture **f)
{
    read_context_release(&(*f)->rc);
    memo_free((*f)->memo);
    free((*f)->size);
    free((*f)->before);
    free(*f);
}
#define AUTO_FIXTURE AUTO(fixture_free)

static int open_sums(struct fixture *f, uint64_t key, struct sums *ret)
{
    return sums_open(ret, f->memo, &(struct memo_key){{key}}, &f->sel, number, false, f);
}

#define assert_pair(found, want)                                                                   \
    do {                                                                                           \
        assert_int_equal((found).size, (want).size);                                               \
        assert_int_equal((found).other, (want).other);                                             \
    } while (0)

/* ---- sums and places ---- */

static void check_find(const struct fixture *f, const struct sums *sums, uint64_t place,
                       uint64_t at)
{
    struct sums_pair before = {0};
    uint64_t found = UINT64_MAX;

    assert_int_equal(sums_find(sums, at, &found, &before), 0);
    assert_int_equal(found, place);
    assert_pair(before, f->before[place]);
}

static void check_sums(uint64_t count)
{
    AUTO_FIXTURE struct fixture *f = fixture_new(count);
    AUTO_SUMS struct sums sums = {0};

    assert_int_equal(open_sums(f, 1, &sums), 0);
    assert_int_equal(f->calls, count);
    assert_pair(sums_total(&sums), f->before[count]);
    assert_int_equal(sums_most(&sums), f->most);
    for (uint64_t place = 0; place <= count; place++) {
        uint64_t size = place < count ? f->size[sample_at(&f->sel, place)] : 0;
        struct sums_pair before = {77, 77};

        if (place % 256 < 2 || place % 256 == 255 || place % 17 == 0 || place + 5 > count) {
            assert_int_equal(sums_before(&sums, place, &before), 0);
            assert_pair(before, f->before[place]);
        }
        if (size) /* its first, its last, or one of its numbers */
            check_find(f, &sums, place,
                       f->before[place].size + (place % 3 == 0   ? 0
                                                : place % 3 == 1 ? size - 1
                                                                 : size / 2));
    }
    if (count <= EVERY_MOST) /* the table has all sums */
        assert_int_equal(f->calls, count);
}

UNIT_TEST(test_sums__of_so_many_samples__as_the_model)
{
    static const uint64_t counts[] = {0,    1,    2,     255,   256,   257,   4095,
                                      4096, 4097, 65535, 65536, 65537, 300000};

    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        check_sums(counts[i]);
}

/* All samples are empty but one, wherever that is. */
static void check_only(uint64_t count, uint64_t only)
{
    AUTO_FIXTURE struct fixture *f = fixture_new(count);
    AUTO_SUMS struct sums sums = {0};

    memset(f->size, 0, count * sizeof(*f->size));
    f->size[sample_at(&f->sel, only)] = 9;
    f->most = 0;
    count_up(f);
    assert_int_equal(open_sums(f, 1, &sums), 0);
    assert_int_equal(sums_total(&sums).size, 9);
    assert_int_equal(sums_most(&sums), 9);
    for (uint64_t at = 0; at < 9; at++)
        check_find(f, &sums, only, at);
}

UNIT_TEST(test_sums__one_that_is_not_empty__found)
{
    static const uint64_t large[] = {0, 1, 255, 256, 257, 65535, 65536};

    for (uint64_t count = 1; count < 12; count++)
        for (uint64_t only = 0; only < count; only++)
            check_only(count, only);
    for (size_t i = 0; i < ARRAY_LEN(large); i++)
        check_only(65537, large[i]);
}

/* One place of a shuffled order costs several times its share of many. */
UNIT_TEST(test_sums__places_one_after_another__samples_asked_for_together)
{
    AUTO_FIXTURE struct fixture *f = fixture_new(300000);
    AUTO_SUMS struct sums sums = {0};
    struct sums_pair before = {0}, after = {0};

    assert_int_equal(open_sums(f, 1, &sums), 0);
    f->asked_samples = 0;
    for (uint64_t place = 0; place < f->sel.count; place++, before = after) {
        assert_int_equal(sums_after(&sums, place, &before, &after), 0);
        assert_pair(after, f->before[place + 1]);
    }
    assert_in_range(f->asked_samples, 1, f->sel.count / 100);
}

/* ---- what the memo keeps ---- */

UNIT_TEST(test_sums__same_key__walked_once)
{
    AUTO_FIXTURE struct fixture *f = fixture_new(1000);

    for (unsigned i = 0; i < 3; i++) {
        AUTO_SUMS struct sums sums = {0};

        assert_int_equal(open_sums(f, 1, &sums), 0);
        assert_pair(sums_total(&sums), f->before[1000]);
    }
    assert_int_equal(f->calls, 1000);
}

/* Sums of few samples are made again, unless that is costly: then each sample may be the last. */
UNIT_TEST(test_sums__of_few_samples__kept_if_costly)
{
    for (unsigned costly = 0; costly < 2; costly++) {
        AUTO_FIXTURE struct fixture *f = fixture_new(20);
        const struct memo_key key = {{1}};

        for (unsigned i = 0; i < 3; i++) {
            AUTO_SUMS struct sums sums = {0};

            f->cancel_at = i ? 0 : 8;
            assert_int_equal(sums_open(&sums, f->memo, &key, &f->sel, number, costly, f),
                             costly && !i ? -EINTR : 0);
        }
        assert_int_equal(f->calls, costly ? 7 + 20 : 3 * 20);
    }
}

UNIT_TEST(test_sums__two_keys__each_its_own)
{
    AUTO_FIXTURE struct fixture *f = fixture_new(70000), *g = fixture_new(300);
    AUTO_SUMS struct sums a = {0}, b = {0};

    assert_int_equal(open_sums(f, 1, &a), 0);
    assert_int_equal(
        sums_open(&b, f->memo, &(struct memo_key){{1, 0, 0, 0, 0, 1}}, &g->sel, number, false, g),
        0);
    assert_pair(sums_total(&a), f->before[70000]);
    assert_pair(sums_total(&b), g->before[300]);
    assert_int_equal(f->calls, 70000);
    assert_int_equal(g->calls, 300);
}

/* A table that does not fit into the memo lives as long as it is used. */
UNIT_TEST(test_sums__larger_than_the_memo__usable)
{
    AUTO_FIXTURE struct fixture *f = fixture_new(5000);
    AUTO_SUMS struct sums a = {0}, b = {0};

    memo_free(f->memo);
    assert_int_equal(memo_new(1, &f->memo), 0);
    assert_int_equal(open_sums(f, 1, &a), 0);
    assert_int_equal(open_sums(f, 2, &b), 0);
    assert_pair(sums_total(&a), f->before[5000]);
    assert_pair(sums_total(&b), f->before[5000]);
}

/* ---- what ends a walk ---- */

UNIT_TEST(test_sums__cancelled__eintr_and_not_remembered)
{
    AUTO_FIXTURE struct fixture *f = fixture_new(EVERY_MOST);
    AUTO_SUMS struct sums sums = {0};
    uint64_t asks;

    assert_int_equal(open_sums(f, 1, &sums), 0);
    asks = f->asked;
    assert_true(asks > 8 && asks < 64);
    sums_close(&sums);
    for (uint64_t i = 1; i <= asks; i++) {
        f->asked = f->calls = 0;
        f->cancel_at = i;
        assert_int_equal(open_sums(f, 2, &sums), -EINTR);
        assert_true(f->calls < i * EVERY_MOST / 8);
        sums_close(&sums);
    }
    f->cancel_at = 0;
    assert_int_equal(open_sums(f, 2, &sums), 0);
    assert_pair(sums_total(&sums), f->before[EVERY_MOST]);
}

UNIT_TEST(test_sums__nobody_cancels__goes_on)
{
    AUTO_FIXTURE struct fixture *f = fixture_new(EVERY_MOST + 1);
    AUTO_SUMS struct sums sums = {0};

    f->sel.rc = NULL;
    assert_int_equal(open_sums(f, 1, &sums), 0);
    assert_pair(sums_total(&sums), f->before[EVERY_MOST + 1]);
}

UNIT_TEST(test_sums__number_fails__its_error_and_not_remembered)
{
    static const uint64_t counts[] = {1, 300, EVERY_MOST + 1};

    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        const uint64_t places[] = {0, counts[i] / 2, counts[i] - 1};

        for (size_t k = 0; k < ARRAY_LEN(places); k++) {
            AUTO_FIXTURE struct fixture *f = fixture_new(counts[i]);
            AUTO_SUMS struct sums sums = {0};

            f->fails = sample_at(&f->sel, places[k]);
            assert_int_equal(open_sums(f, 1, &sums), -EBADMSG);
            sums_close(&sums);
            f->fails = UINT64_MAX;
            assert_int_equal(open_sums(f, 1, &sums), 0);
            assert_pair(sums_total(&sums), f->before[counts[i]]);
        }
    }
}

/* Between two sums of the table number() is called again, which can fail too. */
UNIT_TEST(test_sums__number_fails_later__error_where_it_is_needed)
{
    AUTO_FIXTURE struct fixture *f = fixture_new(EVERY_MOST + 1);
    AUTO_SUMS struct sums sums = {0};
    const uint64_t place = 1024 + 700; /* of a block that begins at 1536 */
    struct sums_pair before;
    uint64_t found;

    f->size[sample_at(&f->sel, place)] = 5;
    f->size[sample_at(&f->sel, 1000)] = 5;
    count_up(f);
    assert_int_equal(open_sums(f, 1, &sums), 0);
    f->fails = sample_at(&f->sel, place);
    assert_int_equal(sums_before(&sums, place + 1, &before), -EBADMSG);
    assert_int_equal(sums_find(&sums, f->before[place + 1].size - 1, &found, &before), -EBADMSG);
    assert_int_equal(sums_before(&sums, place, &before), 0);
    assert_pair(before, f->before[place]);
    assert_int_equal(sums_before(&sums, 2048, &before), 0);
    assert_int_equal(sums_before(&sums, f->sel.count, &before), 0);
    check_find(f, &sums, 1000, f->before[1000].size);
}

/* ---- sums that are too large ---- */

struct large {
    struct sums_pair of[3]; /* by sample */
};

static int large_number(void *ctx, uint64_t sample, const struct sums_pair *before,
                        struct sums_pair *ret)
{
    const struct large *large = ctx;

    (void)before;
    *ret = large->of[sample];
    return 0;
}

static void one_after_another(const struct selection *sel, uint64_t first, size_t n, uint64_t *ret)
{
    (void)sel;
    for (size_t i = 0; i < n; i++)
        ret[i] = first + i;
}

UNIT_TEST(test_sums__past_2_63__efbig)
{
    static const struct {
        struct large large;
        int want;
    } cases[] = {
        {{{{INT64_MAX, 0}, {0, 0}, {0, 0}}}, 0},
        {{{{INT64_MAX - 1, 0}, {0, 0}, {1, 0}}}, 0},
        {{{{INT64_MAX, 0}, {0, 0}, {1, 0}}}, -EFBIG},
        {{{{INT64_MAX, 0}, {INT64_MAX, 0}, {2, 0}}}, -EFBIG}, /* 2^64 */
        {{{{UINT64_C(1) << 63, 0}, {0, 0}, {0, 0}}}, -EFBIG},
        {{{{0, 0}, {0, 0}, {UINT64_MAX, 0}}}, -EFBIG},
        {{{{1, 0}, {UINT64_MAX, 0}, {0, 0}}}, -EFBIG},
        {{{{1, 1}, {1, UINT64_MAX}, {1, 0}}}, -EFBIG},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct selection sel = {.count = 3, .samples = one_after_another};
        AUTO_FIXTURE struct fixture *f = fixture_new(0);
        AUTO_SUMS struct sums sums = {0};
        struct large large = cases[i].large;
        int r =
            sums_open(&sums, f->memo, &(struct memo_key){{1}}, &sel, large_number, false, &large);

        if (r != cases[i].want)
            fail_msg("case %zu: %d", i, r);
        if (r == 0)
            assert_int_equal(sums_total(&sums).size, INT64_MAX);
    }
}

/* ---- sums that the source knows ---- */

static int count_one(void *ctx, uint64_t sample, const struct sums_pair *before,
                     struct sums_pair *ret)
{
    (void)before;
    *ret = (struct sums_pair){((struct fixture *)ctx)->size[sample], 1};
    return 0;
}

static void known(void *ctx, uint64_t sample, struct sums_pair *ret)
{
    *ret = (struct sums_pair){.other = sample};
    for (uint64_t i = 0; i < sample; i++)
        ret->size += ((struct fixture *)ctx)->size[i];
}

UNIT_TEST(test_sums__known__as_a_walk_finds_them)
{
    AUTO_FIXTURE struct fixture *f = fixture_new(200);
    const struct selection sel = {.count = 150, .in_order = true, .first = 20};
    AUTO_SUMS struct sums of_source = {0}, of_walk = {0};
    struct sums_pair a = {0}, b = {0};
    uint64_t place = 0, same = 0;

    assert_int_equal(sums_open_known(&of_source, NULL, NULL, &sel, NULL, known, f), 0);
    assert_int_equal(
        sums_open(&of_walk, f->memo, &(struct memo_key){{1}}, &sel, count_one, false, f), 0);
    assert_pair(sums_total(&of_source), sums_total(&of_walk));
    for (uint64_t i = 0; i <= sel.count; i++) {
        assert_int_equal(sums_before(&of_source, i, &a) | sums_before(&of_walk, i, &b), 0);
        assert_pair(a, b);
        if (i == sel.count)
            break;
        assert_int_equal(sums_after(&of_source, i, &a, &a) | sums_after(&of_walk, i, &b, &b), 0);
        assert_pair(a, b);
    }
    for (uint64_t at = 0; at < sums_total(&of_walk).size; at += 13) {
        assert_int_equal(sums_find(&of_source, at, &place, &a), 0);
        assert_int_equal(sums_find(&of_walk, at, &same, &b), 0);
        assert_int_equal(place, same);
        assert_pair(a, b);
    }
}
