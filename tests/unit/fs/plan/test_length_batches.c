/* Batches by length: vectors of the reference in Python; and of each of their plans all batches,
 * the line of elements, the way back, and the same numbers however they were counted. */
#include "fs/plan/length_batches.h"
#include "support/test_lists.h"
#include "support/unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/mix64.h"
#include "base/scope.h"
#include "fs/plan/schedule.h"

#define SHOWN_MOST 1024

/* ---- a plan of the vectors ---- */

static void get_lengths(const struct plan_lengths *lengths, size_t count, const uint64_t *sample,
                        uint32_t *ret)
{
    (void)lengths;
    for (size_t i = 0; i < count; i++)
        ret[i] = (uint32_t)(1 + mix64(sample[i]) % 40);
}

static const struct plan_lengths_ops lengths_ops = {.get = get_lengths};
static const struct plan_lengths lengths = {.ops = &lengths_ops, .word = "tokens"};

struct made {
    struct plan plan;
    struct plan_list some, kept;
    struct length_batches *cuts;
    struct schedule s;
};

/* As fs/tree/ does. */
static void keep_lengths(struct made *m, struct plan_data *data)
{
    struct plan before = m->plan;
    uint32_t *kept = memory_array(SHOWN_MOST, sizeof(*kept)), length;
    uint64_t n = 0, sample;
    struct schedule s;

    before.ranges = false;
    before.splits = 0;
    before.parts = 1;
    before.part = 0;
    schedule_init_data(&s, &before, data);
    for (uint64_t i = 0; i < s.length; i++) {
        schedule_list(&s, i, 1, &sample);
        get_lengths(&lengths, 1, &sample, &length);
        if (length >= m->plan.length_from / 1000000 && length < m->plan.length_to / 1000000)
            kept[n++] = (uint32_t)sample;
    }
    assert_int_equal(list_make(kept, n, true, &m->kept), 0);
    data->only = &m->kept;
}

static void made_new(const char *name, uint64_t n, const struct plan_lengths *of, struct made *ret)
{
    struct plan_data data = {.samples = n, .lengths = of};
    struct diag d = DIAG_INIT;
    uint32_t some[34];

    *ret = (struct made){0};
    if (plan_parse(name, strlen(name), ',', &ret->plan, &d) < 0)
        fail_msg("%s: %s", name, d.text);
    for (uint32_t i = 0; i < ARRAY_LEN(some); i++)
        some[i] = 3 * i;
    ret->some = test_list(some, ARRAY_LEN(some));
    data.only = ret->plan.only[0] ? &ret->some : NULL;
    if (ret->plan.ranges)
        keep_lengths(ret, &data);
    if (length_batches_new(&ret->plan, &data, NULL, &ret->cuts, &d) < 0)
        fail_msg("%s: %s", name, d.text);
    data.cuts = length_batches_cuts(ret->cuts);
    schedule_init_data(&ret->s, &ret->plan, &data);
    assert_int_equal(schedule_check(&ret->s, &d), 0);
}

static void made_release(struct made *m)
{
    length_batches_free(m->cuts);
    list_release(&m->some);
    list_release(&m->kept);
}

static uint64_t batch_samples(const struct schedule *s, const struct epoch_order *order, uint64_t k,
                              uint64_t *ret)
{
    struct schedule_batch batch;
    uint64_t count;

    assert_int_equal(schedule_batch_init(s, order->epoch, k, &batch), 0);
    assert_in_range(batch.count, 1, SHOWN_MOST);
    schedule_samples(s, order, &batch, 0, batch.count, ret);
    count = batch.count;
    schedule_batch_release(&batch);
    return count;
}

/* ---- what holds of every plan ---- */

/* The elements of a batch follow one another, from where it begins. */
static void check_elements(const struct schedule *s, const struct epoch_order *order, uint64_t k,
                           uint64_t count, const uint64_t *sample)
{
    uint64_t begin = schedule_begin(s, order->epoch, k), got[SHOWN_MOST];

    assert_true(begin + count <= s->elements);
    schedule_elements(s, order, begin, count, got);
    assert_memory_equal(got, sample, count * sizeof(*got));
    for (uint64_t i = 0; i < count && s->order.ops == &order_permutation; i++) {
        uint64_t last = schedule_last(s, order, sample[i], sample[i]);

        /* Exact in the window of `from`; the start of the window before it. */
        assert_true(schedule_find(s, order, sample[i], sample[i], 0) <= begin + i);
        if (!s->only)
            assert_int_equal(schedule_find(s, order, sample[i], sample[i], begin), begin + i);
        assert_true(last >= begin + i && last < s->elements);
    }
}

static uint64_t check_all(const struct made *m, uint64_t epoch, uint64_t n)
{
    const struct schedule *s = &m->s;
    uint64_t batches = 0, sample[SHOWN_MOST], wraps = m->plan.tail == TAIL_WRAP, all = 0;
    unsigned shown[SHOWN_MOST] = {0};
    struct epoch_order order;

    schedule_order(s, epoch, &order);
    while (schedule_has(s, epoch, batches) == 0) {
        uint64_t count = batch_samples(s, &order, batches, sample);

        for (uint64_t i = 0; i < count; i++)
            shown[sample[i]]++;
        if (!wraps || m->plan.ranks == 1)
            check_elements(s, &order, batches, count, sample);
        batches++;
        all += count;
    }
    for (uint64_t i = 0; i < n && !m->plan.draw; i++)
        assert_in_range(shown[i], 0, wraps && m->plan.ranks > 1 ? m->plan.ranks : 1);
    if (m->plan.ranks == 1 && (m->plan.budget || m->plan.tail != TAIL_DROP))
        assert_int_equal(all, s->positions);
    return batches;
}

/* A line `N plan epoch batches batch: samples`. */
static void check_vector(char *line)
{
    unsigned long long n, epoch, batches, k;
    char name[PLAN_NAME_SIZE], *at = strstr(line, ": ") + 1;
    uint64_t got[SHOWN_MOST], count, found;
    struct epoch_order order;
    AUTO(made_release) struct made m;

    assert_int_equal(sscanf(line, "%llu %255s %llu %llu %llu", &n, name, &epoch, &batches, &k), 5);
    made_new(name, n, &lengths, &m);
    schedule_order(&m.s, epoch, &order);
    count = batch_samples(&m.s, &order, k, got);
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(got[i], strtoull(at, &at, 10));
    assert_string_equal(at, "\n");
    if (n < SHOWN_MOST)
        assert_int_equal(check_all(&m, epoch, n), batches);
    while (m.s.cuts->ops->ask(m.s.cuts, epoch))
        assert_in_range(length_batches_step(m.cuts), 0, 1);
    assert_true(schedule_batches(&m.s, epoch, &found));
    assert_int_equal(found, batches);
    assert_int_equal(schedule_has(&m.s, epoch, batches - 1), 0);
    assert_int_equal(schedule_has(&m.s, epoch, batches), -ENOENT);
}

UNIT_TEST(test_length_batches__vectors__right)
{
    FILE *file = fopen(VECTORS, "re");
    char line[4096];
    unsigned lines = 0;

    assert_non_null(file);
    for (; fgets(line, sizeof(line), file); lines++)
        check_vector(line);
    fclose(file);
    assert_true(lines >= 300);
}

/* ---- words ---- */

UNIT_TEST(test_length_batches__canonical_names)
{
    static const struct {
        const char *name, *want;
    } rows[] = {
        {"seed=7,batch=tokens:120,bucket=8192", "batch=tokens:120,seed=7"},
        {"group=1,batch=tokens:120:4,bucket=32", "batch=tokens:120:4,bucket=32"},
        {"batch=seconds:12.500,quad=0.000001", "batch=seconds:12.5,quad=0.000001"},
        {"batch=4,bucket=16,seed=7", "batch=4,bucket=16,seed=7"},
        {"batch=4,length=0:2.50", "batch=4,length=0:2.5"},
        {"length=1:3:n,batch=bytes:4", "batch=bytes:4,length=1:3:n"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char name[PLAN_NAME_SIZE];
        struct diag d = DIAG_INIT;
        struct plan p;

        assert_int_equal(plan_parse(rows[i].name, strlen(rows[i].name), ',', &p, &d), 0);
        plan_name(&p, name);
        assert_string_equal(name, rows[i].want);
    }
}

UNIT_TEST(test_length_batches__words_that_do_not_hold__refused)
{
    static const struct {
        const char *name, *why;
    } rows[] = {
        {"batch=tokens:0", "expected a number of samples"},
        {"batch=tokens:9:0", "expected a number of samples"},
        {"batch=tokens:1.0000001", "expected a number of samples"},
        {"batch=tokens:1.", "expected a number of samples"},
        {"batch=:5", "expected a number of samples"},
        {"batch=tokens:5,bucket=0", "from 1 to 2^20"},
        {"batch=tokens:5,bucket=1048577", "from 1 to 2^20"},
        {"batch=tokens:5,quad=0", "above 0"},
        {"batch=tokens:5,group=0", "from 1 to 2^20"},
        {"batch=4,length=3:3", "with A below B"},
        {"batch=4,length=3", "with A below B"},
        {"batch=4,length=1:3:", "with A below B"},
        {"batch=4,group=2", "batches by length"},
        {"batch=4,quad=2", "batches by length"},
        {"batch=4,bucket=8,quad=2", "quad= is for batches by length with a budget"},
        {"batch=4,bucket=6", "a multiple of batch=4, got 6"},
        {"batch=all,bucket=6", "got batch=all"},
        {"batch=tokens:6,classes=2x3", "or batches by length"},
        {"batch=6,bucket=6,classes=2x3", "or batches by length"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct diag d = DIAG_INIT;
        struct plan p;

        assert_int_equal(plan_parse(rows[i].name, strlen(rows[i].name), ',', &p, &d), -EINVAL);
        if (!strstr(d.text, rows[i].why))
            fail_msg("%s: %s", rows[i].name, d.text);
    }
}

UNIT_TEST(test_length_batches__a_fraction_of_tokens__refused)
{
    const struct plan_data data = {.samples = 9, .lengths = &lengths};
    struct length_batches *cuts;
    struct diag d = DIAG_INIT;
    struct plan p;

    assert_int_equal(plan_parse("batch=tokens:9.5", 16, ',', &p, NULL), 0);
    assert_int_equal(length_batches_new(&p, &data, NULL, &cuts, &d), -EINVAL);
    assert_string_equal(d.text, "batch: expected a whole number of tokens, got a fraction");
}

/* ---- sums ---- */

struct kept {
    uint32_t sums[SHOWN_MOST];
    uint64_t epoch;
    size_t n, loads, saves, removed;
};

static int load(void *ctx, uint64_t epoch, size_t n, uint32_t *ret)
{
    struct kept *kept = ctx;

    kept->loads++;
    if (n != kept->n || epoch != kept->epoch)
        return -ENOENT;
    memcpy(ret, kept->sums, n * sizeof(*ret));
    return 0;
}

static void save(void *ctx, uint64_t epoch, size_t n, const uint32_t *sums)
{
    struct kept *kept = ctx;

    kept->saves++;
    kept->epoch = epoch;
    kept->n = n;
    memcpy(kept->sums, sums, n * sizeof(*sums));
}

static void remove_kept(void *ctx, uint64_t epoch)
{
    struct kept *kept = ctx;

    assert_int_equal(epoch, kept->epoch);
    kept->removed++;
}

static _Atomic uint64_t asked;

static void count_lengths(const struct plan_lengths *of, size_t count, const uint64_t *sample,
                          uint32_t *ret)
{
    asked += count;
    get_lengths(of, count, sample, ret);
}

/* A batch takes one window, once the sums are known, and a lookup near the start as few. */
UNIT_TEST(test_length_batches__kept_sums__one_window)
{
    static const struct plan_lengths_ops ops = {.get = count_lengths};
    static const struct plan_lengths counted = {.ops = &ops, .word = "tokens"};
    struct kept kept = {0};
    const struct length_keeper keeper = {load, save, remove_kept, &kept};
    uint64_t first, sample[SHOWN_MOST];
    struct epoch_order order;
    struct made m;

    made_new("batch=tokens:400,seed=7,bucket=1000", 500000, &counted, &m);
    length_batches_keep(m.cuts, &keeper);
    schedule_order(&m.s, 3, &order);
    asked = 0;
    assert_int_equal(schedule_has(&m.s, 3, 0), 0);
    assert_int_equal(asked, 1000);
    assert_int_equal(schedule_has(&m.s, 3, 10000), -EAGAIN);
    assert_true(asked <= 34000);
    assert_true(length_batches_wants(m.cuts));
    while (length_batches_wants(m.cuts))
        assert_in_range(length_batches_step(m.cuts), 0, 1);
    assert_int_equal(asked, 500000);
    assert_int_equal(schedule_has(&m.s, 3, 10000), 0);
    assert_int_equal(kept.saves, 1);
    first = batch_samples(&m.s, &order, 10000, sample);
    made_release(&m);

    made_new("batch=tokens:400,seed=7,bucket=1000", 500000, &counted, &m);
    length_batches_keep(m.cuts, &keeper);
    asked = 0;
    assert_int_equal(schedule_has(&m.s, 3, 10000), 0);
    assert_int_equal(batch_samples(&m.s, &order, 10000, sample), first);
    assert_int_equal(asked, 1000);
    assert_true(length_batches_held(m.cuts).bytes < 100000);
    made_release(&m);
}

/* Sums of other lengths, too small or too large: a window says so, and they are removed. */
UNIT_TEST(test_length_batches__wrong_sums__refused)
{
    const char *name = "batch=tokens:90,seed=7,bucket=100";
    struct kept kept = {0};
    const struct length_keeper keeper = {load, save, remove_kept, &kept};
    uint64_t got[100];
    struct made m;

    for (int wrong = -1; wrong <= 1; wrong += 2) {
        struct schedule_batch batch;
        struct epoch_order order;

        made_new(name, 1000, &lengths, &m);
        length_batches_keep(m.cuts, &keeper);
        assert_true(m.s.cuts->ops->ask(m.s.cuts, 3));
        while (length_batches_wants(m.cuts))
            assert_in_range(length_batches_step(m.cuts), 0, 1);
        made_release(&m);
        for (size_t w = 1; w < kept.n; w++)
            kept.sums[w] += (uint32_t)wrong;
        kept.removed = 0;

        made_new(name, 1000, &lengths, &m);
        length_batches_keep(m.cuts, &keeper);
        schedule_order(&m.s, 3, &order);
        schedule_elements(&m.s, &order, 0, ARRAY_LEN(got), got);
        assert_int_equal(got[0], UINT64_MAX);
        assert_int_equal(kept.removed, 1);
        assert_int_equal(schedule_batch_init(&m.s, 3, 0, &batch), -EIO);
        made_release(&m);
        kept.n = 0;
    }
}

UNIT_TEST(test_length_batches__many_epochs__few_are_held)
{
    uint64_t sample[SHOWN_MOST], again[SHOWN_MOST], count = 0;
    struct epoch_order order;
    struct made m;

    made_new("batch=tokens:90,seed=7,bucket=100", 1000, &lengths, &m);
    for (uint64_t epoch = 0; epoch < 200; epoch++) {
        schedule_order(&m.s, epoch, &order);
        if (!epoch)
            count = batch_samples(&m.s, &order, 9, sample);
        else
            batch_samples(&m.s, &order, 9, again);
        assert_true(length_batches_held(m.cuts).bytes < 1000000);
    }
    schedule_order(&m.s, 0, &order);
    assert_int_equal(batch_samples(&m.s, &order, 9, again), count);
    assert_memory_equal(sample, again, count * sizeof(*sample));
    made_release(&m);
    made_new("batch=tokens:90,seed=7,bucket=512", UINT64_C(4000000000), &lengths, &m);
    assert_in_range(length_batches_held(m.cuts).limit, 32 << 20, 100 << 20);
    made_release(&m);
}

/* ---- how well they are filled ---- */

static void lognormal(const struct plan_lengths *of, size_t count, const uint64_t *sample,
                      uint32_t *ret)
{
    (void)of;
    for (size_t i = 0; i < count; i++) {
        double sum = 0; /* of 12 uniform numbers: about normal */

        for (unsigned k = 0; k < 12; k++)
            sum += (double)(mix64(sample[i] * 12 + k) >> 11) * 0x1p-53;
        ret[i] = (uint32_t)(400 * exp(0.6 * (sum - 6)) + 1);
    }
}

UNIT_TEST(test_length_batches__padding__small)
{
    static const struct plan_lengths_ops ops = {.get = lognormal};
    static const struct plan_lengths of = {.ops = &ops, .word = "tokens"};
    struct length_fill fill;
    AUTO(made_release) struct made m;

    made_new("batch=tokens:15400,seed=7", 200000, &of, &m);
    assert_int_equal(length_batches_fill(m.cuts, 0, &fill), 0);
    assert_int_equal(fill.samples, 200000);
    assert_true(fill.used <= fill.area && 1 - fill.used / fill.area <= 0.008);
    assert_true(fill.used / ((double)fill.batches * 15400) > 0.96);
    assert_int_equal(fill.alone, 0);
}
