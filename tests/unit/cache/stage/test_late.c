/* A reader does not wait for bytes that it did not ask for. If a long background run stalls, or is
 * slow, far before a block that a reader waits for, the stage stops that run and no other. The test
 * turns the clock. */
#include <stdatomic.h>

#include "cache/stage/stage.h"
#include "tests/support/event.h"
#include "tests/support/fake_transport.h"
#include "tests/support/stage_fixture.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_clock.h"
#include "tests/support/unit.h"

#define BLOCK  STAGE_FIXTURE_BLOCK
#define FIRST  256           /* blocks of the first run of the background */
#define BLOCKS (FIRST + 100) /* of the file: the second run has the others */
#define COMES  3             /* blocks of a run that arrive before it stalls */
#define SECOND ((uint64_t)FIRST * BLOCK)

#define LOOK_NS (50 * TEST_MS) /* how often the stage looks while a reader waits */

static uint8_t content[BLOCKS * BLOCK];

/* A stage with two background runs, both of which stall. */
struct fixture {
    struct stage_fixture s;
    struct test_clock clock;
    uint64_t first_comes;         /* bytes of the first run, before it stalls */
    uint64_t second_comes;        /* and of the second */
    _Atomic unsigned first_again; /* transfers from within the first run */
    _Atomic unsigned second_again;
};

static struct fake_answer first_two_stall(void *ctx, const struct transfer *transfer,
                                          unsigned number)
{
    struct fixture *f = ctx;
    bool second = transfer->off >= SECOND;

    if (number >= 2)
        atomic_fetch_add(second ? &f->second_again : &f->first_again, 1);
    return (struct fake_answer){.end = TRANSFER_DONE,
                                .bytes = number >= 2 ? UINT64_MAX
                                         : second    ? f->second_comes
                                                     : f->first_comes,
                                .stalls = number < 2,
                                .goes_on = true};
}

static void open_fixture(struct fixture *f, const char *folder, uint64_t first_comes,
                         uint64_t second_comes)
{
    struct stage_options options = stage_fixture_options();
    const struct stage_fixture_remote remote = {.content = content,
                                                .size = sizeof(content),
                                                .threads = 16,
                                                .script = first_two_stall,
                                                .ctx = f};

    *f = (struct fixture){.first_comes = first_comes, .second_comes = second_comes};
    test_clock_init(&f->clock);
    options.background = true;
    options.retry_limit_s = 100000; /* a clock that runs is faster than a busy machine */
    options.clock = &f->clock.clock;
    stage_fixture_open(&f->s, folder, &options, &remote);
    stage_begin(f->s.stage);
    fake_wait_stalled(f->s.fake, 2);
    assert_int_equal(fake_started(f->s.fake), 2);
}

/* Everything arrives in the end, each byte once, without a failure. */
static void close_fixture(struct fixture *f)
{
    struct diag d = DIAG_INIT;

    fake_release(f->s.fake);
    stage_fixture_stage_all(&f->s);
    assert_int_equal(stage_verify(f->s.stage, NULL, NULL, &d), 0);
    assert_int_equal(fake_given(f->s.fake), sizeof(content));
    assert_int_equal(f->s.counters->retries, 0);
    assert_int_equal(f->s.counters->errors, 0);
    stage_fixture_close(&f->s);
    test_clock_release(&f->clock);
}

/* A reader waits for the block, until the stage has looked for late runs. */
static void expect_block(struct fixture *f, uint64_t block)
{
    struct event event;

    event_init(&event);
    blob_fetch(f->s.blob, block * BLOCK, BLOCK, &event.waiter);
    test_clock_pass(&f->clock, LOOK_NS);
    assert_int_equal(event_wait(&event), 0);
    stage_fixture_read(&f->s, block * BLOCK, BLOCK);
}

/* ---- tests ---- */

UNIT_TEST_WITH(test_late__far_behind_what_stalls__comes_by_itself, temp_setup, temp_teardown)
{
    struct fixture f;

    open_fixture(&f, *state, COMES * BLOCK, BLOCK);
    expect_block(&f, FIRST - 10);
    assert_true(f.first_again > 0);
    assert_int_equal(f.second_again, 0); /* no reader waits for it */
    close_fixture(&f);
}

/* The run stops within a block, and goes on within it: close_fixture() counts the bytes. */
UNIT_TEST_WITH(test_late__within_a_block__no_byte_twice, temp_setup, temp_teardown)
{
    struct fixture f;

    open_fixture(&f, *state, COMES * BLOCK + BLOCK / 3, BLOCK);
    expect_block(&f, FIRST - 10);
    assert_true(f.first_again > 0);
    close_fixture(&f);
}

/* The stage examines both runs together, and stops only the first. */
static void expect_second_goes_on(struct fixture *f, uint64_t block)
{
    struct event event;

    event_init(&event);
    blob_fetch(f->s.blob, block * BLOCK, BLOCK, &event.waiter);
    expect_block(f, FIRST - 10);
    assert_int_equal(f->second_again, 0);
    fake_release(f->s.fake);
    assert_int_equal(event_wait(&event), 0);
    assert_int_equal(f->second_again, 0);
    close_fixture(f);
}

UNIT_TEST_WITH(test_late__what_comes_next__goes_on, temp_setup, temp_teardown)
{
    struct fixture f;

    open_fixture(&f, *state, COMES * BLOCK, BLOCK);
    expect_second_goes_on(&f, FIRST + 1);
}

/* A new transfer would also wait for its first byte. */
UNIT_TEST_WITH(test_late__nothing_came_yet__goes_on, temp_setup, temp_teardown)
{
    struct fixture f;

    open_fixture(&f, *state, COMES * BLOCK, 0);
    expect_second_goes_on(&f, BLOCKS - 1);
}

int unit_setup(void **state)
{
    (void)state;
    stage_fixture_content(content, sizeof(content));
    return 0;
}
