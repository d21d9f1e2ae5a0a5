/* A reader does not wait for bytes that it did not ask for. If a long background run stalls, or is
 * slow, far before a block that a reader waits for, the stage stops that run and no other. The test
 * turns the clock. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/lock.h"
#include "base/missing_ranges.h"
#include "cache/stage/stage.h"
#include "tests/support/fake_transport.h"
#include "tests/support/temp_folder.h"
#include "tests/support/unit.h"

#define BLOCK  4096
#define FIRST  256           /* blocks of the first run of the background */
#define BLOCKS (FIRST + 100) /* of the file: the second run has the others */
#define COMES  3             /* blocks of a run that arrive before it stalls */
#define SECOND ((uint64_t)FIRST * BLOCK)

#define NS_PER_S 1000000000L
#define LATE_NS  100000000L /* enough to be examined */

static uint8_t content[BLOCKS * BLOCK];
static _Atomic long turned_ns; /* nanoseconds that the clock is ahead */

int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
    int r = __real_clock_gettime(clock, ret);

    ret->tv_nsec += atomic_load(&turned_ns);
    ret->tv_sec += ret->tv_nsec / NS_PER_S;
    ret->tv_nsec %= NS_PER_S;
    return r;
}

/* A stage with two background runs, both of which stall. */
struct fixture {
    struct cache_folder cache;
    struct fake *fake;
    struct stage *stage;
    struct blob *blob;
    uint64_t second_comes;        /* bytes of the second run, before it stalls */
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
                                                     : (uint64_t)COMES * BLOCK,
                                .stalls = number < 2,
                                .goes_on = true};
}

static void open_fixture(struct fixture *f, const char *folder, uint64_t second_comes)
{
    const struct stage_options options = {
        .limit_percent = 100, .block = BLOCK, .jobs = 4, .retry_limit_s = 30, .background = true};
    const struct remote_version version = {.size = sizeof(content), .etag = "\"1\""};
    const struct stage_file file = {.url = "fake://file",
                                    .key = "fake://file",
                                    .name = "file",
                                    .version = &version,
                                    .mode = 0444};
    struct diag d = DIAG_INIT;

    *f = (struct fixture){.second_comes = second_comes};
    for (size_t i = 0; i < sizeof(content); i++)
        content[i] = (uint8_t)(i * 7 + i / BLOCK);
    assert_int_equal(cache_folder_init(&f->cache, folder), 0);
    assert_int_equal(fake_new(content, sizeof(content), 16, &f->fake), 0);
    fake_set_script(f->fake, first_two_stall, f);
    if (stage_new(&options, &f->cache, fake_transport(f->fake), &f->stage, &d) < 0 ||
        stage_add(f->stage, &file, &f->blob, &d) < 0)
        fail_msg("%s", d.text);
    stage_begin(f->stage);
    fake_wait_stalled(f->fake, 2);
    assert_int_equal(fake_started(f->fake), 2);
}

/* Everything arrives in the end, each byte once, without a failure. */
static void close_fixture(struct fixture *f)
{
    struct stage_counters *counters = stage_counters(f->stage);
    struct diag d = DIAG_INIT;
    int r;

    fake_release(f->fake);
    while ((r = stage_wait(f->stage, 1000, &d)) == 0)
        continue;
    if (r < 0)
        fail_msg("stage_wait: %d %s", r, d.text);
    assert_int_equal(stage_verify(f->stage, NULL, NULL, &d), 0);
    assert_int_equal(fake_given(f->fake), sizeof(content));
    assert_int_equal(counters->retries, 0);
    assert_int_equal(counters->errors, 0);
    stage_free(f->stage);
    cache_folder_release(&f->cache);
}

static void expect_block(const struct fixture *f, uint64_t block)
{
    struct diag d = DIAG_INIT;
    uint8_t buf[BLOCK];
    int r = blob_read(f->blob, buf, sizeof(buf), block * BLOCK, &d);

    if (r < 0)
        fail_msg("block %llu: %d %s", (unsigned long long)block, r, d.text);
    assert_memory_equal(buf, content + block * BLOCK, BLOCK);
}

/* ---- a reader that waits on ---- */

struct event {
    struct waiter waiter;
    struct lock lock;
    pthread_cond_t changed;
    bool over;
};

static void event_done(struct waiter *waiter)
{
    struct event *event = (struct event *)waiter;
    LOCK_SCOPE(&event->lock);

    event->over = true;
    pthread_cond_signal(&event->changed);
}

static void begin_wait(const struct fixture *f, uint64_t block, struct event *event)
{
    *event = (struct event){.waiter.done = event_done};
    lock_init(&event->lock);
    pthread_cond_init(&event->changed, NULL);
    blob_fetch(f->blob, block * BLOCK, BLOCK, &event->waiter);
}

static void end_wait(struct event *event)
{
    lock_take(&event->lock);
    while (!event->over)
        lock_wait(&event->lock, &event->changed);
    lock_drop(&event->lock);
    pthread_cond_destroy(&event->changed);
    lock_release(&event->lock);
    assert_int_equal(atomic_load(&event->waiter.error), 0);
}

/* ---- tests ---- */

static void test_late__far_behind_what_stalls__comes_by_itself(void **state)
{
    struct fixture f;

    open_fixture(&f, *state, BLOCK);
    expect_block(&f, FIRST - 10);
    assert_true(f.first_again > 0);
    assert_int_equal(f.second_again, 0); /* no reader waits for it */
    close_fixture(&f);
}

/* The stage examines both runs together, and stops only the first. */
static void expect_second_goes_on(struct fixture *f, uint64_t block)
{
    struct event event;

    begin_wait(f, block, &event);
    atomic_fetch_add(&turned_ns, LATE_NS);
    expect_block(f, FIRST - 10);
    assert_int_equal(f->second_again, 0);
    fake_release(f->fake);
    end_wait(&event);
    assert_int_equal(f->second_again, 0);
    close_fixture(f);
}

static void test_late__what_comes_next__goes_on(void **state)
{
    struct fixture f;

    open_fixture(&f, *state, BLOCK);
    expect_second_goes_on(&f, FIRST + 1);
}

/* A new transfer would wait for its first byte, too. */
static void test_late__nothing_came_yet__goes_on(void **state)
{
    struct fixture f;

    open_fixture(&f, *state, 0);
    expect_second_goes_on(&f, BLOCKS - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_late__far_behind_what_stalls__comes_by_itself,
                                        temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(test_late__what_comes_next__goes_on, temp_setup,
                                        temp_teardown),
        cmocka_unit_test_setup_teardown(test_late__nothing_came_yet__goes_on, temp_setup,
                                        temp_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
