/* A stage's background transfers while no processor is idle: one piece per rest, and everything
 * arrives. */
#include <stdatomic.h>

#include "cache/stage/stage.h"
#include "tests/support/fake_transport.h"
#include "tests/support/stage_fixture.h"
#include "tests/support/temp_folder.h"
#include "tests/support/unit.h"

#define SIZE     1200000
#define N_FILES  3
#define STALLING 3 /* jobs, except the one for readers */

static uint8_t content[SIZE];
static _Atomic unsigned looks;

static uint64_t never_idle(void)
{
    atomic_fetch_add(&looks, 1);
    return 0;
}

struct watched {
    struct stage_counters *counters;
    _Atomic unsigned after,
        unrested; /* transfers after those that stall; those without a rest before */
};

static struct fake_answer watch(void *ctx, const struct transfer *transfer, unsigned number)
{
    struct watched *w = ctx;
    bool stalls = number < STALLING;

    (void)transfer;
    if (!stalls && atomic_load(&w->counters->rests) < 1 + atomic_fetch_add(&w->after, 1))
        atomic_fetch_add(&w->unrested, 1);
    return (struct fake_answer){
        .end = TRANSFER_DONE, .bytes = UINT64_MAX, .stalls = stalls, .goes_on = true};
}

UNIT_TEST_WITH(test_background__no_processor_idle__a_rest_before_each_piece, temp_setup,
               temp_teardown)
{
    struct stage_options options = stage_fixture_options();
    struct watched watched = {0};
    const struct stage_fixture_remote remote = {
        .content = content, .size = SIZE, .threads = 8, .script = watch, .ctx = &watched};
    struct diag d = DIAG_INIT;
    struct test_clock clock;
    struct stage_fixture f;

    test_clock_init(&clock);
    options.clock = &clock.clock;
    options.jobs = STALLING + 1;
    options.background = true;
    options.idle_ns = never_idle;
    stage_fixture_open(&f, *state, &options, &remote);
    watched.counters = f.counters;
    stage_fixture_add(&f, "fake://b");
    stage_fixture_add(&f, "fake://c");
    stage_begin(f.stage);
    fake_wait_stalled(f.fake, STALLING);
    test_clock_run(&clock, TEST_S);
    while (atomic_load(&looks) < 2) /* the second finds that nothing was idle */
        assert_int_equal(stage_wait(f.stage, 10, &d), 0);
    test_clock_stand(&clock);
    fake_release(f.fake);
    stage_fixture_stage_all(&f);
    assert_int_equal(watched.counters->staged_bytes, N_FILES * SIZE);
    assert_true(watched.after > 0);
    assert_int_equal(watched.unrested, 0);
    stage_fixture_close(&f);
    test_clock_release(&clock);
}

int unit_setup(void **state)
{
    (void)state;
    stage_fixture_content(content, sizeof(content));
    return 0;
}
