/* Several files as one dataset: preparing step by step, the file of a record, shares. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/lock.h"
#include "format/records/shards.h"
#include "support/random.h"
#include "support/test_clock.h"
#include "support/unit.h"

#define FILES 100000

/* A file of records of 10 bytes each. */
struct file {
    struct record_file base;
    struct blob blob;
    uint64_t rows;
    unsigned steps; /* until it is ready */
    bool is_bad;    /* it fails at once */
    int error;
};

static unsigned long prepares;
static struct file *file[FILES];

/* The rows of a file that is ready. */
static int add_rows(struct file *f)
{
    for (uint64_t i = 0; i < f->rows; i++) {
        uint64_t number = 10 * i;

        assert_int_equal(index_add(f->base.prepared.builder, NULL, 0, &number), 0);
    }
    f->base.prepared.end[0] = 10 * f->rows;
    return 1;
}

static int file_step(void *p, struct diag *d)
{
    struct file *f = p;

    prepares++;
    if (f->error)
        return diag_set(d, f->error, "file of %llu", (unsigned long long)f->rows);
    return !f->steps || !--f->steps ? add_rows(f) : 0;
}

/* A record that contains the cut belongs before it, and one that begins there. */
static uint64_t file_cut(const void *p, uint64_t off)
{
    return off ? min_u64(off / 10 + 1, ((const struct file *)p)->rows) : 0;
}

static void file_release(void *p)
{
    ((struct file *)p)->base.blob = NULL; /* it is in the struct */
}

#define FILE_OPS(by)                                                                               \
    .size = sizeof(struct file), .index = {.version = "test", .step = (by)},                       \
    .shape = {.columns = 1, .rising = 1}, .cut = file_cut, .release = file_release

static const struct record_file_ops ops = {FILE_OPS(file_step)};

static int setup(void **state)
{
    static const struct format_setup none;
    static struct blob blob;
    uint64_t rng = RANDOM_SEED;

    (void)state;
    prepares = 0;
    for (unsigned i = 0; i < FILES; i++) {
        struct file *f;

        assert_int_equal(record_file_new(&ops, &blob, &none, &f), 0);
        file[i] = f;
        f->rows = random_below(&rng, 5); /* some have none */
        f->blob.size = f->rows * 10;
        f->base.blob = &f->blob;
        f->base.prepared.blob = NULL; /* no identity */
        f->base.prepared.is_cheap = true;
        f->base.prepared.size = f->blob.size;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (unsigned i = 0; i < FILES; i++)
        record_file_drop(&file[i]->base);
    return 0;
}

/* The first n files, each prepared by those functions. */
static void open_shards(struct shards *ret, const struct record_file_ops *by, unsigned n)
{
    assert_int_equal(shards_init(ret, n), 0);
    for (unsigned i = 0; i < n; i++) {
        file[i]->base.ops = by;
        file[i]->base.prepared.ops = &by->index;
        record_file_share(&file[i]->base);
        shards_add(ret, &file[i]->base);
    }
}

UNIT_TEST_WITH(test_shards__very_many_files__each_prepared_once, setup, teardown)
{
    struct diag d = DIAG_INIT;
    struct shards s = {0};
    uint64_t done, total, record = 0;
    unsigned steps = 0;
    int r;

    for (unsigned i = 0; i < FILES; i += 1000)
        file[i]->steps = 3;
    open_shards(&s, &ops, FILES);
    while ((r = shards_prepare(&s, &d)) == 0)
        steps++;
    assert_int_equal(r, 1);
    assert_int_equal(steps, 2 * FILES / 1000);
    assert_int_equal(prepares, FILES + steps); /* it does not ask again a file that is ready */
    shards_progress(&(struct dataset){.impl = &s}, &done, &total);
    assert_int_equal(done, total);
    for (unsigned i = 0; i < FILES; i++) {
        for (uint64_t k = 0; k < file[i]->rows; k++, record++) {
            uint64_t own;

            assert_int_equal(shards_find(&s, record, &own), i);
            assert_int_equal(own, k);
        }
    }
    assert_int_equal(record, s.first[FILES]);
    shards_release(&s);
    for (unsigned i = 0; i < FILES; i++)
        assert_int_equal(file[i]->base.users, 1);
}

UNIT_TEST_WITH(test_shards__file_fails__goes_on_there, setup, teardown)
{
    struct diag d = DIAG_INIT;
    struct shards s = {0};

    file[2]->error = -EREMOTEIO;
    open_shards(&s, &ops, 5);
    assert_int_equal(shards_prepare(&s, &d), -EREMOTEIO);
    assert_diag_has(&d, "file of");
    file[2]->error = 0;
    assert_int_equal(shards_prepare(&s, &d), 1);
    assert_int_equal(prepares, 2 + 1 + 3);
    shards_release(&s);
}

/* The shares are neighbours, have every record once, and follow the bytes. */
UNIT_TEST_WITH(test_shards__shares__all_records_once, setup, teardown)
{
    static const uint64_t parts[] = {1, 2, 3, 7, 64, 1000, UINT64_MAX};
    struct shards s = {0};
    const struct dataset ds = {.impl = &s};
    uint64_t rng = RANDOM_SEED;

    open_shards(&s, &ops, 50);
    assert_int_equal(shards_prepare(&s, NULL), 1);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        uint64_t next = 0, start, length;

        for (uint64_t part = 0; part < min_u64(parts[i], 2000); part++) {
            shards_share(&ds, part, parts[i], &start, &length);
            assert_int_equal(start, next);
            next += length;
        }
        assert_int_equal(next, s.first[50]);
        shards_share(&ds, parts[i] - 1 - random_below(&rng, parts[i] / 2 + 1), parts[i], &start,
                     &length);
        assert_true(start <= s.first[50] && length <= s.first[50] - start);
    }
    shards_release(&s);
}

/* ---- side by side ---- */

/* Files of which each waits for others. */
static struct {
    struct lock lock;
    pthread_cond_t more;
    unsigned inside;         /* files that were prepared at all */
    struct test_clock clock; /* stands, so that a step ends when the test says so */
    bool bad_seen;           /* the bad file was among them */
    unsigned steps;          /* of the shards so far */
} meet;

static int meet_setup(void **state)
{
    meet.inside = 0;
    meet.bad_seen = false;
    test_clock_init(&meet.clock);
    lock_init(&meet.lock);
    pthread_cond_init(&meet.more, NULL);
    return setup(state);
}

static int meet_teardown(void **state)
{
    pthread_cond_destroy(&meet.more);
    lock_release(&meet.lock);
    test_clock_release(&meet.clock);
    return teardown(state);
}

static void far_fetch(const struct blob *blob, uint64_t off, uint64_t len, struct waiter *waiter)
{
    (void)blob, (void)off, (void)len, (void)waiter;
}

static const struct blob_ops far_ops = {.fetch = far_fetch};

/* Ready once SHARDS_FAR files are under way. */
static int step_together(void *p, struct diag *d)
{
    (void)d;
    lock_take(&meet.lock);
    meet.inside++;
    pthread_cond_broadcast(&meet.more);
    while (meet.inside < SHARDS_FAR)
        lock_wait(&meet.lock, &meet.more);
    lock_drop(&meet.lock);
    return add_rows(p);
}

static const struct record_file_ops together_ops = {FILE_OPS(step_together), .side_by_side = true};

UNIT_TEST_WITH(test_shards__far_files__wait_side_by_side, meet_setup, meet_teardown)
{
    struct shards s = {0};
    uint64_t records = 0;
    int r;

    for (unsigned i = 0; i < 3 * SHARDS_FAR; i++)
        file[i]->blob.ops = &far_ops;
    open_shards(&s, &together_ops, 3 * SHARDS_FAR);
    s.clock = &meet.clock.clock;
    while ((r = shards_prepare(&s, NULL)) == 0)
        ;
    assert_int_equal(r, 1);
    assert_int_equal(meet.inside, 3 * SHARDS_FAR);
    for (unsigned i = 0; i < 3 * SHARDS_FAR; i++) {
        assert_int_equal(s.first[i], records);
        records += file[i]->rows;
    }
    assert_int_equal(s.first[3 * SHARDS_FAR], records);
    shards_release(&s);
}

/* A later file fails at once; an earlier one only in the next step. */
static int step_bad(void *p, struct diag *d)
{
    struct file *f = p;
    int r = 1;

    LOCK_SCOPE(&meet.lock);
    if (f->is_bad) { /* the later one */
        meet.bad_seen = true;
        pthread_cond_broadcast(&meet.more);
        return diag_set(d, -EBADMSG, "the later one");
    }
    while (f->error && !meet.bad_seen)
        lock_wait(&meet.lock, &meet.more);
    if (f->steps)
        r = !--f->steps;
    if (f->error && meet.steps < 2) {
        test_clock_turn(&meet.clock, TEST_S); /* the step is over */
        return 0;
    }
    if (f->error)
        return diag_set(d, f->error, "the earlier one");
    return r ? add_rows(f) : 0;
}

static const struct record_file_ops bad_ops = {FILE_OPS(step_bad), .side_by_side = true};

static void prepare_two_bad(int earlier, int want, const char *text)
{
    struct diag d = DIAG_INIT;
    struct shards s = {0};
    int r;

    teardown(NULL); /* a file that has failed stays so */
    setup(NULL);
    meet.bad_seen = false;
    meet.steps = 0;
    file[3]->error = earlier;
    file[5]->is_bad = true;
    for (unsigned i = 0; i < SHARDS_FAR; i++) {
        file[i]->blob.ops = &far_ops;
        file[i]->steps = i % 3 * 100;
    }
    open_shards(&s, &bad_ops, SHARDS_FAR);
    s.clock = &meet.clock.clock;
    do
        meet.steps++;
    while ((r = shards_prepare(&s, &d)) == 0);
    assert_int_equal(r, want);
    assert_diag_has(&d, text);
    d = DIAG_INIT;
    r = shards_prepare(&s, &d); /* a call after the error */
    assert_int_equal(r, want);
    shards_release(&s);
}

UNIT_TEST_WITH(test_shards__two_bad_files__error_of_the_earlier, meet_setup, meet_teardown)
{
    prepare_two_bad(-EIO, -EIO, "the earlier one");
    prepare_two_bad(-EREMOTEIO, -EREMOTEIO, "the earlier one");
    prepare_two_bad(0, -EBADMSG, "the later one");
}
