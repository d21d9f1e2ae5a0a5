/* A stage's background transfers while no processor is idle: one piece per rest, and everything
 * arrives. */
#include <stdatomic.h>
#include <stdlib.h>

#include "cache/stage/stage.h"
#include "tests/support/fake_transport.h"
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

static void add(struct stage *stage, const char *name)
{
    struct remote_version version = {.size = SIZE, .etag = "\"1\""};
    const struct stage_file file = {
        .url = name, .key = name, .name = name, .version = &version, .mode = 0444};
    struct diag d = DIAG_INIT;
    struct blob *blob;

    assert_int_equal(stage_add(stage, &file, &blob, &d), 0);
}

static void test_background__no_processor_idle__a_rest_before_each_piece(void **state)
{
    static const char *const names[N_FILES] = {"fake://a", "fake://b", "fake://c"};
    const struct stage_options options = {.limit_percent = 100,
                                          .block = 4096,
                                          .jobs = STALLING + 1,
                                          .retry_limit_s = 30,
                                          .background = true,
                                          .idle_ns = never_idle};
    struct watched watched = {0};
    struct diag d = DIAG_INIT;
    struct cache_folder cache;
    struct stage *stage;
    struct fake *fake;
    int r;

    assert_int_equal(cache_folder_init(&cache, *state), 0);
    assert_int_equal(fake_new(content, SIZE, 8, &fake), 0);
    fake_set_script(fake, watch, &watched);
    assert_int_equal(stage_new(&options, &cache, fake_transport(fake), &stage, &d), 0);
    watched.counters = stage_counters(stage);
    for (unsigned i = 0; i < N_FILES; i++)
        add(stage, names[i]);
    stage_begin(stage);
    fake_wait_stalled(fake, STALLING);
    while (atomic_load(&looks) < 2) /* the second finds that nothing was idle */
        assert_int_equal(stage_wait(stage, 10, &d), 0);
    fake_release(fake);
    while ((r = stage_wait(stage, 1000, &d)) == 0)
        continue;
    assert_int_equal(r, 1);
    assert_int_equal(watched.counters->staged_bytes, N_FILES * SIZE);
    assert_true(watched.after > 0);
    assert_int_equal(watched.unrested, 0);
    stage_free(stage);
    cache_folder_release(&cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(
        test_background__no_processor_idle__a_rest_before_each_piece, temp_setup, temp_teardown)};

    for (size_t i = 0; i < SIZE; i++)
        content[i] = (uint8_t)(i * 2654435761U >> 13);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
