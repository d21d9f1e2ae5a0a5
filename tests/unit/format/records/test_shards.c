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
    struct blob blob;
    struct prepared prepared;
    unsigned steps; /* of prepare() until it is ready */
    unsigned drops;
    int error;
};

static unsigned long prepares;

static int file_prepare(void *p, struct diag *d)
{
    struct file *file = p;

    prepares++;
    if (file->error)
        return diag_set(d, file->error, "file of %llu",
                        (unsigned long long)file->prepared.index.rows);
    return file->steps ? !--file->steps : 1;
}

/* A record that contains the cut belongs before it, and one that begins there. */
static uint64_t file_cut(const void *p, uint64_t off)
{
    return off ? min_u64(off / 10 + 1, ((const struct file *)p)->prepared.index.rows) : 0;
}

static void file_drop(void *p)
{
    ((struct file *)p)->drops++;
}

static const struct shard_ops ops = {.prepare = file_prepare, .cut = file_cut, .drop = file_drop};

static struct file *file; /* [FILES] */

static void open_shards(struct shards *ret, unsigned n)
{
    assert_int_equal(shards_init(ret, &ops, n), 0);
    for (unsigned i = 0; i < n; i++)
        shards_add(ret, &(struct shard){&file[i], &file[i].blob, &file[i].prepared});
}

static int setup(void **state)
{
    uint64_t rng = RANDOM_SEED;

    (void)state;
    prepares = 0;
    file = calloc(FILES, sizeof(*file));
    for (unsigned i = 0; i < FILES; i++) {
        file[i].prepared.index.rows = random_below(&rng, 5); /* some have none */
        file[i].blob.size = file[i].prepared.index.rows * 10;
        atomic_store(&file[i].prepared.seen, file[i].blob.size);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(file);
    return 0;
}

static void test_shards__very_many_files__each_prepared_once(void **state)
{
    struct diag d = DIAG_INIT;
    struct shards s = {0};
    uint64_t done, total, record = 0;
    unsigned steps = 0;
    int r;

    (void)state;
    for (unsigned i = 0; i < FILES; i += 1000)
        file[i].steps = 3;
    open_shards(&s, FILES);
    while ((r = shards_prepare(&s, &d)) == 0)
        steps++;
    assert_int_equal(r, 1);
    assert_int_equal(steps, 2 * FILES / 1000);
    assert_int_equal(prepares, FILES + steps); /* it does not ask again a file that is ready */
    shards_progress(&s, &done, &total);
    assert_int_equal(done, total);
    for (unsigned i = 0; i < FILES; i++) {
        for (uint64_t k = 0; k < file[i].prepared.index.rows; k++, record++) {
            uint64_t own;

            assert_int_equal(shards_find(&s, record, &own), i);
            assert_int_equal(own, k);
        }
    }
    assert_int_equal(record, s.first[FILES]);
    shards_release(&s);
    for (unsigned i = 0; i < FILES; i++)
        assert_int_equal(file[i].drops, 1);
}

static void test_shards__file_fails__goes_on_there(void **state)
{
    struct diag d = DIAG_INIT;
    struct shards s = {0};

    (void)state;
    file[2].error = -EREMOTEIO;
    open_shards(&s, 5);
    assert_int_equal(shards_prepare(&s, &d), -EREMOTEIO);
    assert_diag_has(&d, "file of");
    file[2].error = 0;
    assert_int_equal(shards_prepare(&s, &d), 1);
    assert_int_equal(prepares, 2 + 1 + 3);
    shards_release(&s);
}

/* The shares are neighbours, have every record once, and follow the bytes. */
static void test_shards__shares__all_records_once(void **state)
{
    static const uint64_t parts[] = {1, 2, 3, 7, 64, 1000, UINT64_MAX};
    struct shards s = {0};
    uint64_t rng = RANDOM_SEED;

    (void)state;
    open_shards(&s, 50);
    assert_int_equal(shards_prepare(&s, NULL), 1);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        uint64_t next = 0, start, length;

        for (uint64_t part = 0; part < min_u64(parts[i], 2000); part++) {
            shards_share(&s, part, parts[i], &start, &length);
            assert_int_equal(start, next);
            next += length;
        }
        assert_int_equal(next, s.first[50]);
        shards_share(&s, parts[i] - 1 - random_below(&rng, parts[i] / 2 + 1), parts[i], &start,
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
static int prepare_together(void *p, struct diag *d)
{
    (void)p, (void)d;
    lock_take(&meet.lock);
    meet.inside++;
    pthread_cond_broadcast(&meet.more);
    while (meet.inside < SHARDS_FAR)
        lock_wait(&meet.lock, &meet.more);
    lock_drop(&meet.lock);
    return 1;
}

static const struct shard_ops together_ops = {
    .prepare = prepare_together, .drop = file_drop, .side_by_side = true};

static void test_shards__far_files__wait_side_by_side(void **state)
{
    struct shards s = {0};
    uint64_t records = 0;
    int r;

    (void)state;
    assert_int_equal(shards_init(&s, &together_ops, 3 * SHARDS_FAR), 0);
    s.clock = &meet.clock.clock;
    for (unsigned i = 0; i < 3 * SHARDS_FAR; i++) {
        file[i].blob.ops = &far_ops;
        shards_add(&s, &(struct shard){&file[i], &file[i].blob, &file[i].prepared});
    }
    while ((r = shards_prepare(&s, NULL)) == 0)
        ;
    assert_int_equal(r, 1);
    assert_int_equal(meet.inside, 3 * SHARDS_FAR);
    for (unsigned i = 0; i < 3 * SHARDS_FAR; i++) {
        assert_int_equal(s.first[i], records);
        records += file[i].prepared.index.rows;
    }
    assert_int_equal(s.first[3 * SHARDS_FAR], records);
    shards_release(&s);
}

/* A later file fails at once; an earlier one only in the next step. */
static int prepare_bad(void *p, struct diag *d)
{
    struct file *f = p;
    int r = 1;

    LOCK_SCOPE(&meet.lock);
    if (f->drops == 7) { /* the later one */
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
    return r;
}

static const struct shard_ops bad_ops = {
    .prepare = prepare_bad, .drop = file_drop, .side_by_side = true};

static void prepare_two_bad(int earlier, int want, const char *text)
{
    struct diag d = DIAG_INIT;
    struct shards s = {0};
    int r;

    meet.bad_seen = false;
    meet.steps = 0;
    file[3].error = earlier;
    file[5].drops = 7;
    assert_int_equal(shards_init(&s, &bad_ops, SHARDS_FAR), 0);
    s.clock = &meet.clock.clock;
    for (unsigned i = 0; i < SHARDS_FAR; i++) {
        file[i].blob.ops = &far_ops;
        file[i].steps = i % 3 * 100;
        shards_add(&s, &(struct shard){&file[i], &file[i].blob, &file[i].prepared});
    }
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

static void test_shards__two_bad_files__error_of_the_earlier(void **state)
{
    (void)state;
    prepare_two_bad(-ESTALE, -ESTALE, "the earlier one");
    prepare_two_bad(-EREMOTEIO, -EREMOTEIO, "the earlier one");
    prepare_two_bad(0, -EBADMSG, "the later one");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_shards__very_many_files__each_prepared_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_shards__file_fails__goes_on_there, setup, teardown),
        cmocka_unit_test_setup_teardown(test_shards__shares__all_records_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_shards__far_files__wait_side_by_side, meet_setup,
                                        meet_teardown),
        cmocka_unit_test_setup_teardown(test_shards__two_bad_files__error_of_the_earlier,
                                        meet_setup, meet_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
