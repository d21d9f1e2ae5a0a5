/* Stale bytes: some of a file have changed on the remote, or are gone. Readers of these get
 * -ESTALE, all others the right bytes, and no other process ever takes what is in their place for
 * good. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/blob.h"
#include "base/checked.h"
#include "tests/support/stage_fixture.h"
#include "tests/support/temp_folder.h"
#include "tests/support/unit.h"

#define BLOCK STAGE_FIXTURE_BLOCK
#define SIZE  (300 * BLOCK + 1234)

/* From within block 10 to within block 12. */
#define STALE     (10 * BLOCK + 100)
#define STALE_END (12 * BLOCK + 200)

static uint8_t content[SIZE];

static void open_fixture(struct stage_fixture *f, const char *folder,
                         const struct stage_options *options)
{
    const struct stage_fixture_remote remote = {.content = content, .size = SIZE, .threads = 64};

    stage_fixture_open(f, folder, options, &remote);
}

static void open_stale(struct stage_fixture *f, const char *folder)
{
    const struct stage_options options = stage_fixture_options();

    open_fixture(f, folder, &options);
    fake_set_stale(f->fake, STALE, STALE_END - STALE);
}

static int read_error(const struct stage_fixture *f, uint64_t off, size_t len)
{
    uint8_t *buf = malloc(len);
    int r = blob_read(READ_WAITS, f->blob, buf, len, off, NULL);

    assert_non_null(buf);
    free(buf);
    return r;
}

UNIT_TEST_WITH(test_read__stale__estale_for_these_bytes_only, temp_setup, temp_teardown)
{
    struct stage_fixture f;

    open_stale(&f, *state);
    stage_fixture_read(&f, 0, STALE);
    stage_fixture_read(&f, STALE_END, SIZE - STALE_END);
    assert_int_equal(read_error(&f, STALE, 1), -ESTALE);
    assert_int_equal(read_error(&f, STALE_END - 1, 1), -ESTALE);
    assert_int_equal(read_error(&f, STALE - 1, 2), -ESTALE);
    assert_int_equal(read_error(&f, STALE_END - 1, 2), -ESTALE);
    assert_int_equal(read_error(&f, 0, SIZE), -ESTALE);
    stage_fixture_read(&f, STALE - 5, 5);
    stage_fixture_read(&f, STALE_END, 5);
    stage_fixture_close(&f);
}

UNIT_TEST_WITH(test_read__stale_first__estale, temp_setup, temp_teardown)
{
    struct stage_fixture f;

    open_stale(&f, *state);
    assert_int_equal(read_error(&f, STALE + 10, 5000), -ESTALE);
    assert_int_equal(read_error(&f, STALE + 10, 5000), -ESTALE);
    stage_fixture_read(&f, STALE_END, 5);
    stage_fixture_close(&f);
}

/* What another mount finds in the cache folder. */
UNIT_TEST_WITH(test_read__next_stage__has_no_stale_block, temp_setup, temp_teardown)
{
    const struct stage_options options = stage_fixture_options();
    struct stage_fixture f;

    open_stale(&f, *state);
    stage_fixture_read(&f, 0, STALE);
    stage_fixture_read(&f, STALE_END, SIZE - STALE_END);
    stage_fixture_close(&f);
    open_fixture(&f, *state, &options);
    stage_fixture_read(&f, 0, SIZE);
    assert_int_equal(fake_given(f.fake), 3 * BLOCK);
    stage_fixture_close(&f);
}

/* Another process, at the same time, that gets the bytes. */
UNIT_TEST_WITH(test_read__two_stages__each_finds_out, temp_setup, temp_teardown)
{
    const struct stage_options options = stage_fixture_options();
    struct stage_fixture f, other;

    open_stale(&f, *state);
    open_fixture(&other, *state, &options);
    assert_int_equal(read_error(&f, STALE, BLOCK), -ESTALE);
    stage_fixture_read(&other, STALE, BLOCK);
    stage_fixture_read(&other, STALE_END, BLOCK);
    assert_int_equal(read_error(&f, STALE, BLOCK), -ESTALE); /* what a mount has found is final */
    stage_fixture_read(&f, STALE_END, BLOCK);
    stage_fixture_close(&other);
    stage_fixture_close(&f);
}

/* With one block in memory, neighbours of stale bytes are fetched again and again, and are right.
 */
UNIT_TEST_WITH(test_read__no_memory_for_neighbours__fetched_again, temp_setup, temp_teardown)
{
    struct stage_options options = stage_fixture_options();
    struct stage_fixture f;

    options.memory = BLOCK;
    open_fixture(&f, *state, &options);
    fake_set_stale(f.fake, STALE, STALE_END - STALE);
    for (unsigned i = 0; i < 3; i++) {
        stage_fixture_read(&f, STALE - 50, 50);
        stage_fixture_read(&f, STALE_END, 50);
        assert_int_equal(read_error(&f, STALE, 50), -ESTALE);
    }
    stage_fixture_close(&f);
}

/* reads: a reader has found the stale bytes before. */
static void check_staging(void **state, bool reads)
{
    struct stage_options options = stage_fixture_options();
    struct diag d = DIAG_INIT;
    struct test_clock clock;
    struct stage_fixture f;
    int r;

    test_clock_init(&clock);
    options.clock = &clock.clock;
    options.background = true;
    open_fixture(&f, *state, &options);
    fake_set_stale(f.fake, STALE, STALE_END - STALE);
    if (reads)
        assert_int_equal(read_error(&f, STALE, STALE_END - STALE), -ESTALE);
    test_clock_run(&clock, 3 * TEST_S);
    stage_begin(f.stage);
    while ((r = stage_wait(f.stage, 60000, &d)) == 0)
        continue;
    test_clock_stand(&clock);
    assert_int_equal(r, -ESTALE);
    assert_diag_has(&d, "has changed");
    assert_int_equal(fake_given(f.fake), SIZE - (STALE_END - STALE));
    assert_int_equal(f.counters->background_bytes + f.counters->demand_bytes,
                     SIZE - (STALE_END - STALE));
    assert_int_equal(f.counters->distinct_bytes, SIZE - (STALE_END - STALE));
    assert_int_equal(f.counters->staged_bytes, SIZE - 3 * BLOCK);
    stage_fixture_read(&f, STALE_END, SIZE - STALE_END);
    assert_int_equal(fake_given(f.fake), SIZE - (STALE_END - STALE)); /* memory has the rest */
    stage_fixture_close(&f);
    test_clock_release(&clock);
}

UNIT_TEST_WITH(test_stage_wait__stale__the_rest_is_staged_once, temp_setup, temp_teardown)
{
    check_staging(state, false);
}

UNIT_TEST_WITH(test_stage_wait__found_by_a_reader__the_rest_is_staged_once, temp_setup,
               temp_teardown)
{
    check_staging(state, true);
}

struct heard {
    _Atomic unsigned n; /* threads of two transfers may report at the same time */
    _Atomic int error;
};

static void hear(void *ctx, int error, const char *reason)
{
    struct heard *heard = ctx;

    assert_non_null(strstr(reason, "has changed"));
    heard->n++;
    heard->error = error;
}

static void hear_answer(void *ctx)
{
    (void)ctx;
}

UNIT_TEST_WITH(test_listener__stale__told_once, temp_setup, temp_teardown)
{
    struct heard heard = {.n = 0};
    const struct stage_listener listener = {hear, hear_answer, &heard};
    struct stage_options options = stage_fixture_options();
    struct stage_fixture f;

    options.memory = BLOCK;
    open_fixture(&f, *state, &options);
    fake_set_stale(f.fake, 11 * BLOCK - 10, 20);
    stage_set_listener(f.stage, &listener);
    for (unsigned i = 0; i < 3; i++) { /* memory has space for one of the two blocks */
        stage_fixture_read(&f, 10 * BLOCK, 10);
        stage_fixture_read(&f, 11 * BLOCK + 10, 10);
    }
    assert_true(fake_given(f.fake) > 4 * BLOCK);
    stage_rest(f.stage); /* a reader may have its error before the report has ended */
    assert_int_equal(heard.n, 2);
    assert_int_equal(heard.error, -ESTALE);
    stage_fixture_close(&f);
}

int unit_setup(void **state)
{
    (void)state;
    stage_fixture_content(content, SIZE);
    return 0;
}
