/* The stage's work for n waiting readers is proportional to n, not n * n; and the retry limit
 * counts from the last progress of what a reader waits for. The test turns the clock, and measures
 * no time. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/lock.h"
#include "base/read_context.h"
/* Whole, because the test looks at their private structs: */
#include "cache/stage/background.c"
#include "cache/stage/keep.c"
#include "cache/stage/run.h"
static _Atomic uint64_t looks; /* at runs, for waits */
#define runs_progress_locked(...) (atomic_fetch_add(&looks, 1), runs_progress_locked(__VA_ARGS__))
#include "cache/stage/needs.c"
#include "cache/stage/speed.c"
#include "tests/support/fake_transport.h"
#include "tests/support/stage_fixture.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_clock.h"
#include "tests/support/unit.h"

#define BLOCK STAGE_FIXTURE_BLOCK
#define MOST  2000 /* readers that wait */
#define SIZE  (2 * MOST * BLOCK)
#define JOBS  2

static uint8_t content[SIZE];

/* A stage with one file; its remote lets transfers pass one by one, as the test allows. */
struct fixture {
    struct stage_fixture s;
    struct test_clock clock;
    struct lock lock;
    pthread_cond_t changed;
    unsigned may_pass; /* transfers, by their numbers */
    unsigned over;     /* waits */
    unsigned failed;
    unsigned failures; /* reported */
};

struct waiting {
    struct waiter waiter;
    struct fixture *f;
};

static struct fake_answer in_turn(void *ctx, const struct transfer *transfer, unsigned number)
{
    struct fixture *f = ctx;

    (void)transfer;
    lock_take(&f->lock);
    while (f->may_pass <= number)
        lock_wait(&f->lock, &f->changed);
    lock_drop(&f->lock);
    return (struct fake_answer){.end = TRANSFER_DONE, .bytes = UINT64_MAX};
}

static void let_pass(struct fixture *f, unsigned n)
{
    LOCK_SCOPE(&f->lock);

    f->may_pass = n;
    pthread_cond_broadcast(&f->changed);
}

static void waiting_done(struct waiter *waiter)
{
    struct fixture *f = ((struct waiting *)waiter)->f;
    LOCK_SCOPE(&f->lock);

    f->over++;
    f->failed += atomic_load(&waiter->error) < 0;
    pthread_cond_broadcast(&f->changed);
}

static void wait_over(struct fixture *f, unsigned n)
{
    lock_take(&f->lock);
    while (f->over < n)
        lock_wait(&f->lock, &f->changed);
    lock_drop(&f->lock);
}

/* limit: bytes that the cache may take; 0: no limit. */
static void open_limited(struct fixture *f, const char *folder, unsigned retry_limit_s,
                         bool background, uint64_t limit)
{
    struct stage_options options = stage_fixture_options();
    const struct stage_fixture_remote remote = {
        .content = content, .size = SIZE, .threads = JOBS, .script = in_turn, .ctx = f};

    options.jobs = JOBS;
    options.retry_limit_s = retry_limit_s;
    options.background = background;
    options.clock = &f->clock.clock;
    if (limit) { /* and a connection for look-ahead */
        options.limit = limit;
        options.limit_percent = 0;
        options.jobs = JOBS + 1;
    }
    *f = (struct fixture){0};
    test_clock_init(&f->clock);
    lock_init(&f->lock);
    condition_init(&f->changed);
    stage_fixture_open(&f->s, folder, &options, &remote);
}

static void open_fixture(struct fixture *f, const char *folder, unsigned retry_limit_s,
                         bool background)
{
    open_limited(f, folder, retry_limit_s, background, 0);
}

static void close_fixture(struct fixture *f)
{
    let_pass(f, UINT32_MAX);
    stage_fixture_close(&f->s);
    pthread_cond_destroy(&f->changed);
    lock_release(&f->lock);
    test_clock_release(&f->clock);
}

/* Start a reader that waits for a block of a file. */
static void ask_of(struct fixture *f, struct waiting *waiting, const struct blob *blob,
                   uint64_t block)
{
    waiting->f = f;
    waiting->waiter.done = waiting_done;
    atomic_store(&waiting->waiter.pending, 1);
    blob_fetch(blob, block * BLOCK, BLOCK, &waiting->waiter);
    waiter_done(&waiting->waiter, 0, NULL);
}

static void ask_one(struct fixture *f, struct waiting *waiting, uint64_t block)
{
    ask_of(f, waiting, f->s.blob, block);
}

/* Start n readers that each wait for a block, in random order; no two blocks are neighbours. */
static struct waiting *ask(struct fixture *f, unsigned n)
{
    struct waiting *waiting = calloc(n, sizeof(*waiting));

    for (unsigned i = 0; i < n; i++)
        ask_one(f, &waiting[i], i * UINT64_C(1201) % MOST * 2);
    return waiting;
}

static uint64_t work_of(struct stage *stage)
{
    LOCK_SCOPE(&stage->lock);
    uint64_t work = stage->needs->quiet.steps + stage->runs->alarms[RUN_DEMAND].steps + looks;

    for (const struct file *file = stage->files; file; file = file->next)
        work += file->needs->waits.steps + file->runs->runs.steps;
    return work;
}

/* The work of the stage's thread at each event, if it keeps up. */
static void look(struct stage *stage)
{
    struct wait *over = NULL;
    LOCK_SCOPE(&stage->lock);

    waits_give_up_locked(stage, stage_now(stage), &over);
    runs_stop_late_locked(stage, stage_now(stage));
    runs_next_alarm_locked(stage, stage_now(stage));
    assert_null(over);
}

static uint64_t work_for(const char *folder, unsigned n)
{
    struct waiting *waiting;
    struct fixture f;
    uint64_t work;

    looks = 0;
    open_fixture(&f, folder, 60, false);
    waiting = ask(&f, n); /* all wait before the first block comes */
    for (unsigned i = 1; i <= n; i++) {
        let_pass(&f, i);
        wait_over(&f, i);
        look(f.s.stage);
    }
    work = work_of(f.s.stage);
    assert_int_equal(f.failed, 0);
    assert_true(work > n);
    close_fixture(&f);
    free(waiting);
    return work;
}

static void test_waits__ten_times_as_many__little_more_each(void **state)
{
    char few_in[PATH_MAX], many_in[PATH_MAX];
    uint64_t few, many;

    temp_folder(*state, "few");
    temp_folder(*state, "many");
    temp_path(*state, "few", few_in);
    temp_path(*state, "many", many_in);
    few = work_for(few_in, MOST / 10);
    many = work_for(many_in, MOST);
    if (many > few * 20) /* a deeper tree costs a little more; n * n would be 100 times */
        fail_msg("%u: %llu steps, %u: %llu", MOST / 10, (unsigned long long)few, MOST,
                 (unsigned long long)many);
}

/* Each reader gets its turn, though the last turn comes after many times the retry limit. */
static void test_patience__the_queue_moves__nobody_fails(void **state)
{
    const unsigned n = 30;
    struct waiting *waiting;
    struct fixture f;

    open_fixture(&f, *state, 30, false);
    waiting = ask(&f, n);
    for (unsigned i = 1; i <= n; i++) {
        fake_wait_started(f.s.fake, (unsigned)min_u64(i - 1 + JOBS, n));
        test_clock_turn(&f.clock, 10 * TEST_S); /* two of them are under way at a time */
        let_pass(&f, i);
        wait_over(&f, i);
    }
    assert_int_equal(f.failed, 0);
    close_fixture(&f);
    free(waiting);
}

/* Nothing comes: the stage gives up the transfers under way and those queued after them. */
static void test_patience__nothing_moves__all_fail(void **state)
{
    const unsigned n = 30;
    struct waiting *waiting;
    struct fixture f;

    open_fixture(&f, *state, 30, false);
    waiting = ask(&f, n);
    fake_wait_started(f.s.fake, JOBS);
    test_clock_turn(&f.clock, 31 * TEST_S);
    wait_over(&f, n);
    assert_int_equal(f.failed, n);
    let_pass(&f, UINT32_MAX);
    close_fixture(&f);
    free(waiting);
}

/* Transfers of one file fail; the others never end. */
static struct fake_answer fail_or_stall(void *ctx, const struct transfer *transfer, unsigned number)
{
    (void)ctx;
    (void)number;
    return strcmp(transfer->url, "fake://file") == 0
               ? (struct fake_answer){.end = TRANSFER_AGAIN}
               : (struct fake_answer){.end = TRANSFER_DONE, .stalls = true};
}

static void note_failed(void *ctx, int error, const char *reason)
{
    struct fixture *f = ctx;
    LOCK_SCOPE(&f->lock);

    (void)error;
    (void)reason;
    f->failures++;
    pthread_cond_broadcast(&f->changed);
}

/* A reader that gives up is told what happened to its own file. */
static void test_patience__another_file_failed__its_reason_is_not_ours(void **state)
{
    struct waiting waiting[2] = {0};
    struct fixture f;
    const struct stage_listener listener = {.failed = note_failed, .ctx = &f};

    open_fixture(&f, *state, 30, false);
    fake_set_script(f.s.fake, fail_or_stall, NULL);
    stage_set_listener(f.s.stage, &listener);
    ask_one(&f, &waiting[0], 0);
    ask_of(&f, &waiting[1], stage_fixture_add(&f.s, "fake://other"), 0);
    lock_take(&f.lock);
    while (!f.failures)
        lock_wait(&f.lock, &f.changed);
    lock_drop(&f.lock);
    fake_wait_started(f.s.fake, 2);
    test_clock_turn(&f.clock, 31 * TEST_S);
    wait_over(&f, 2);
    assert_string_equal(waiting[0].waiter.reason.text, "fake://file: the fake fails; waited 30 s");
    assert_string_equal(waiting[1].waiter.reason.text,
                        "fake://other: the remote sends nothing; another request failed: "
                        "fake://file: the fake fails; waited 30 s");
    close_fixture(&f);
}

static bool is_ahead_queued(struct fixture *f)
{
    LOCK_SCOPE(&f->s.stage->lock);

    return ((const struct file *)f->s.blob)->needs->ahead.is_queued;
}

/* What a reader in sequence will want is queued, not fetched, while readers that wait have all
 * connections. It is not fetched at all if the reader moves before that. */
static void test_ahead__reader_moves__what_was_queued_is_not_fetched(void **state)
{
    const uint64_t block[] = {0, 1, 2, 3000};
    struct waiting waiting[ARRAY_LEN(block)] = {0};
    struct fixture f;

    open_fixture(&f, *state, 30, false);
    for (unsigned i = 0; i < ARRAY_LEN(block); i++) {
        assert_int_equal(is_ahead_queued(&f), i == 3);
        ask_one(&f, &waiting[i], block[i]);
    }
    let_pass(&f, UINT32_MAX);
    wait_over(&f, ARRAY_LEN(block));
    stage_rest(f.s.stage); /* until nothing is under way */
    assert_int_equal(f.failed, 0);
    assert_int_equal(fake_given(f.s.fake), ARRAY_LEN(block) * BLOCK);
    close_fixture(&f);
}

/* In place of the stage's thread: starts no run. */
static void *idle_main(void *arg)
{
    struct stage *stage = arg;
    LOCK_SCOPE(&stage->lock);

    while (!stage->ending && !stage->resting)
        lock_wait(&stage->lock, &stage->wake);
    return NULL;
}

/* Look-ahead for which there is no space is given up. A thread that starts runs does not ask for
 * the same blocks again and again, until another thread finds them coming and passes them over. */
static void test_ahead__no_space__is_given_up(void **state)
{
    struct waiting waiting[3] = {0};
    struct fixture f;

    open_limited(&f, *state, 30, false, 1);
    f.s.stage->main = idle_main;
    let_pass(&f, 2);
    ask_one(&f, &waiting[0], 0);
    ask_one(&f, &waiting[1], 1);
    wait_over(&f, 2);
    stage_rest(f.s.stage); /* the runs have also ended: their connections are free */
    ask_one(&f, &waiting[2], 2);
    assert_false(is_ahead_queued(&f));
    let_pass(&f, UINT32_MAX);
    wait_over(&f, 3);
    assert_int_equal(f.failed, 0);
    assert_int_equal(fake_given(f.s.fake), 3 * BLOCK);
    close_fixture(&f);
}

/* An empty forecast of needs that counts its calls. */
struct counting {
    struct stage_needs needs;
    struct lock lock;
    pthread_cond_t was_asked;
    unsigned asked; /* guarded by lock */
};

static size_t count_next(void *ctx, struct stage_need *ret, size_t capacity)
{
    struct counting *counting = ctx;
    LOCK_SCOPE(&counting->lock);

    (void)ret;
    (void)capacity;
    counting->asked++;
    pthread_cond_broadcast(&counting->was_asked);
    return 0;
}

static uint64_t never(void *ctx, const struct blob *blob, uint64_t off, uint64_t len)
{
    (void)ctx;
    (void)blob;
    (void)off;
    (void)len;
    return STAGE_NEVER;
}

static unsigned asked(struct counting *counting)
{
    LOCK_SCOPE(&counting->lock);

    return counting->asked;
}

static void wait_asked(struct counting *counting, unsigned n)
{
    LOCK_SCOPE(&counting->lock);

    while (counting->asked < n)
        lock_wait(&counting->lock, &counting->was_asked);
}

static bool may_be_asked(struct fixture *f)
{
    LOCK_SCOPE(&f->s.stage->lock);

    return forecast_may_locked(f->s.stage, stage_now(f->s.stage));
}

static void forget_block(struct fixture *f)
{
    LOCK_SCOPE(&f->s.stage->lock);

    file_set_locked((struct file *)f->s.blob, 0, BLOCK_ABSENT);
}

/* Each reader that begins is a jump, after which the forecast would walk over all needs: in vain if
 * nothing is missing. */
static void test_guide__all_is_here__is_not_asked(void **state)
{
    /* static: if a check fails, the stage's threads go on while the program ends */
    static struct counting counting = {
        .needs = {.next = count_next, .when = never, .ctx = &counting}};
    static struct fixture f;
    unsigned before;

    lock_init(&counting.lock);
    condition_init(&counting.was_asked);
    open_fixture(&f, *state, 30, true);
    let_pass(&f, UINT32_MAX);
    stage_set_needs(f.s.stage, &counting.needs);
    stage_fixture_stage_all(&f.s);
    before = asked(&counting);
    assert_true(before > 0);
    for (unsigned i = 0; i < 1000; i++)
        stage_needs_changed(f.s.stage, true);
    assert_false(may_be_asked(&f));
    assert_int_equal(asked(&counting), before);
    forget_block(&f);
    stage_needs_changed(f.s.stage, false);
    wait_asked(&counting, before + 1);
    close_fixture(&f);
    pthread_cond_destroy(&counting.was_asked);
    lock_release(&counting.lock);
}

/* A request to a near remote is worth the bytes of 16 blocks; to a far one, a round trip that
 * others share. queued: all waits were mostly for our own processor. n_small: requests before. */
static void check_neighbours(const char *folder, bool far, bool queued, bool limited,
                             uint64_t n_small)
{
    const struct stage_fixture_remote remote = {.content = content, .size = SIZE, .threads = JOBS};
    struct stage_options options = stage_fixture_options();
    bool grows = !limited && (!far || n_small >= 4096);
    struct stage_fixture s;

    options.background = true;
    options.far_ms = 2;
    options.rate = limited ? UINT64_C(1) << 30 : 0;
    stage_fixture_open(&s, folder, &options, &remote);
    lock_take(&s.stage->lock);
    s.stage->begun = true;
    s.stage->speed->budget_ns = INT64_MAX; /* the background itself has its turn later */
    s.stage->keeping->holds_all = true;
    s.stage->speed->wait_least = far || queued ? 10e6 : 1e5;
    s.stage->speed->wait_ns = far ? 10e6 : 1e5;
    s.stage->speed->byte_least = 1e6 / (16 * BLOCK);
    ((struct file *)s.blob)->runs->n_small = n_small;
    lock_drop(&s.stage->lock);
    stage_fixture_read(&s, 100 * BLOCK + 5, 10);
    fake_wait_idle(s.fake);
    assert_int_equal(fake_started(s.fake), 1);
    assert_int_equal(fake_given(s.fake), (grows ? 16 : 1) * BLOCK);
    assert_int_equal(fake_given_at(s.fake, 96 * BLOCK), grows);
    assert_int_equal(fake_given_at(s.fake, 111 * BLOCK), grows);
    s.stage->speed->byte_least = 1e6 / (16 * BLOCK); /* it is idle */
    if (!far && !limited) {                          /* the first block brings its piece, no more */
        stage_fixture_read(&s, 144 * BLOCK - 5, 10);
        fake_wait_idle(s.fake);
        assert_int_equal(fake_given(s.fake), (16 + 17) * BLOCK);
    }
    stage_fixture_close(&s);
}

static void test_cost__near_remote__a_request_brings_neighbours(void **state)
{
    check_neighbours(*state, false, false, false, 0);
}

static void test_cost__near_remote_and_queue__a_request_brings_neighbours(void **state)
{
    check_neighbours(*state, false, true, false, 0);
}

/* A limited way gives some bytes at once. */
static void test_cost__near_remote_and_burst__usual_speed_counts(void **state)
{
    const struct stage_fixture_remote remote = {.content = content, .size = SIZE, .threads = JOBS};
    struct stage_options options = stage_fixture_options();
    struct stage_fixture s;

    options.far_ms = 2;
    stage_fixture_open(&s, *state, &options, &remote);
    lock_take(&s.stage->lock);
    s.stage->speed->wait_least = s.stage->speed->wait_ns = 1e5;
    s.stage->speed->byte_least = 1;
    s.stage->speed->byte_ns = 200;
    assert_int_equal(speed_near_worth_locked(s.stage, false), 20000);
    s.stage->speed->byte_ns = 3;
    assert_int_equal(speed_near_worth_locked(s.stage, false), 1000000);
    lock_drop(&s.stage->lock);
    stage_fixture_close(&s);
}

/* The transport was busy all the time. */
static void test_cost__own_queue__is_no_wait(void **state)
{
    static const _Atomic int64_t busy = INT64_C(1) << 40;
    const struct stage_fixture_remote remote = {.content = content, .size = SIZE, .threads = JOBS};
    struct stage_options options = stage_fixture_options();
    struct stage_fixture s;

    stage_fixture_open(&s, *state, &options, &remote);
    s.stage->transport->waited = &busy;
    s.stage->speed->wait_ns = 10e6;
    stage_fixture_read(&s, 5, 10);
    fake_wait_idle(s.fake);
    lock_take(&s.stage->lock);
    assert_true(s.stage->speed->wait_ns < 9e6);
    lock_drop(&s.stage->lock);
    stage_fixture_close(&s);
}

static void test_cost__far_remote__a_request_brings_what_is_read(void **state)
{
    check_neighbours(*state, true, false, false, 0);
}

static void test_cost__many_small_requests__they_bring_neighbours(void **state)
{
    check_neighbours(*state, true, false, false, 4096);
}

static void test_cost__bwlimit__a_request_brings_what_is_read(void **state)
{
    check_neighbours(*state, false, false, true, 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_waits__ten_times_as_many__little_more_each, temp_setup,
                                        temp_teardown),
        cmocka_unit_test_setup_teardown(test_patience__the_queue_moves__nobody_fails, temp_setup,
                                        temp_teardown),
        cmocka_unit_test_setup_teardown(test_patience__nothing_moves__all_fail, temp_setup,
                                        temp_teardown),
        cmocka_unit_test_setup_teardown(test_patience__another_file_failed__its_reason_is_not_ours,
                                        temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(test_ahead__reader_moves__what_was_queued_is_not_fetched,
                                        temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(test_ahead__no_space__is_given_up, temp_setup,
                                        temp_teardown),
        cmocka_unit_test_setup_teardown(test_guide__all_is_here__is_not_asked, temp_setup,
                                        temp_teardown),
        cmocka_unit_test_setup_teardown(test_cost__near_remote__a_request_brings_neighbours,
                                        temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(test_cost__many_small_requests__they_bring_neighbours,
                                        temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(
            test_cost__near_remote_and_queue__a_request_brings_neighbours, temp_setup,
            temp_teardown),
        cmocka_unit_test_setup_teardown(test_cost__near_remote_and_burst__usual_speed_counts,
                                        temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(test_cost__own_queue__is_no_wait, temp_setup,
                                        temp_teardown),
        cmocka_unit_test_setup_teardown(test_cost__far_remote__a_request_brings_what_is_read,
                                        temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(test_cost__bwlimit__a_request_brings_what_is_read,
                                        temp_setup, temp_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
