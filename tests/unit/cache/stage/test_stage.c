/* The stage: every byte is right and fetched once, whatever the remote, the disk and other
 * processes do. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/read_context.h"
#include "base/scope.h"
#include "cache/disk/quota.h"
#include "cache/disk/sha256.h"
#include "cache/disk/staged_file.h"
#include "cache/stage/blocks.h"
#include "cache/stage/stage.h"
#include "tests/support/event.h"
#include "tests/support/fake_transport.h"
#include "tests/support/stage_fixture.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_clock.h"
#include "tests/support/unit.h"

#define BLOCK STAGE_FIXTURE_BLOCK
#define SIZE  (300 * BLOCK + 1234) /* of the file */

static uint8_t content[SIZE];

static _Atomic int punch_error;  /* of the disk; 0: it punches holes */
static _Atomic unsigned punches; /* that failed */

int __wrap_fallocate64(int fd, int mode, off_t off, off_t len);
int __real_fallocate64(int fd, int mode, off_t off, off_t len);

int __wrap_fallocate64(int fd, int mode, off_t off, off_t len)
{
    if (!atomic_load(&punch_error))
        return __real_fallocate64(fd, mode, off, len);
    errno = atomic_load(&punch_error);
    atomic_fetch_add(&punches, 1);
    return -1;
}

static _Atomic unsigned writes; /* of a block or more */

ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t len, off_t off);
ssize_t __real_pwrite64(int fd, const void *bytes, size_t len, off_t off);

ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t len, off_t off)
{
    atomic_fetch_add(&writes, len >= BLOCK);
    return __real_pwrite64(fd, bytes, len, off);
}

static void open_fixture(struct stage_fixture *f, const char *folder,
                         const struct stage_options *options, const char *etag,
                         const uint8_t *sha256)
{
    const struct stage_fixture_remote remote = {
        .content = content, .size = SIZE, .threads = 64, .etag = etag, .sha256 = sha256};

    stage_fixture_open(f, folder, options, &remote);
}

static void open_usual(struct stage_fixture *f, const char *folder)
{
    const struct stage_options options = stage_fixture_options();

    open_fixture(f, folder, &options, NULL, NULL);
}

/* Everything that pauses may take as long as it likes: the clock runs, and no reader gives up. */
static void open_in_no_time(struct stage_fixture *f, struct test_clock *clock, const char *folder,
                            bool background)
{
    struct stage_options options = stage_fixture_options();

    test_clock_init(clock);
    options.clock = &clock->clock;
    options.retry_limit_s = 1000000;
    options.background = background;
    open_fixture(f, folder, &options, NULL, NULL);
    test_clock_run(clock, 100 * TEST_S);
}

static void close_in_no_time(struct stage_fixture *f)
{
    test_clock_stand(f->clock);
    stage_fixture_close(f);
    test_clock_release(f->clock);
}

static int read_error(const struct blob *blob, uint64_t off, size_t len, struct diag *d)
{
    uint8_t *buf = malloc(len);
    int r = blob_read(READ_WAITS, blob, buf, len, off, d);

    if (r == 0)
        assert_memory_equal(buf, content + off, len);
    free(buf);
    return r;
}

/* Open the folder's staged file separately: for locks this is another process. */
static int open_staged(const char *folder)
{
    char pattern[PATH_MAX];
    glob_t found;
    int fd;

    temp_path(folder, "staged/*.content", pattern);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    fd = open(found.gl_pathv[0], O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    globfree(&found);
    return fd;
}

/* ---- reading ---- */

UNIT_TEST_WITH(test_read__in_sequence__each_byte_once, temp_setup, temp_teardown)
{
    struct stage_fixture f;

    open_usual(&f, *state);
    for (uint64_t at = 0; at < SIZE; at += 10000)
        stage_fixture_read(&f, at, (size_t)min_u64(10000, SIZE - at));
    assert_int_equal(fake_given(f.fake), SIZE);
    assert_int_equal(f.counters->distinct_bytes, SIZE);
    assert_int_equal(f.counters->demand_bytes + f.counters->background_bytes, SIZE);
    assert_true(fake_started(f.fake) < 40); /* of 301 blocks */
    stage_fixture_read(&f, 0, SIZE);
    assert_int_equal(fake_given(f.fake), SIZE);
    stage_fixture_close(&f);
}

UNIT_TEST_WITH(test_read__one_byte__one_block, temp_setup, temp_teardown)
{
    struct stage_fixture f;

    open_usual(&f, *state);
    stage_fixture_read(&f, 100 * BLOCK + 7, 1);
    assert_int_equal(fake_given(f.fake), BLOCK);
    stage_fixture_read(&f, 100 * BLOCK, BLOCK);
    assert_int_equal(fake_given(f.fake), BLOCK);
    stage_fixture_read(&f, SIZE - 1, 1);
    assert_int_equal(fake_given(f.fake), BLOCK + 1234);
    assert_int_equal(f.counters->hits, 1);
    assert_int_equal(f.counters->misses, 2);
    stage_fixture_close(&f);
}

UNIT_TEST_WITH(test_read__next_stage__nothing_fetched, temp_setup, temp_teardown)
{
    struct stage_fixture f;

    open_usual(&f, *state);
    stage_fixture_read(&f, 0, SIZE);
    stage_fixture_close(&f);
    open_usual(&f, *state);
    stage_fixture_read(&f, 0, BLOCK);
    assert_int_equal(f.counters->hits, 1);
    assert_int_equal(f.counters->served_bytes, BLOCK);
    stage_fixture_read(&f, 0, SIZE);
    assert_int_equal(fake_given(f.fake), 0);
    stage_fixture_close(&f);
}

UNIT_TEST_WITH(test_read__other_version__fetched_anew, temp_setup, temp_teardown)
{
    const struct stage_options options = stage_fixture_options();
    struct stage_fixture f;

    open_usual(&f, *state);
    stage_fixture_read(&f, 0, SIZE);
    stage_fixture_close(&f);
    open_fixture(&f, *state, &options, "\"2\"", NULL);
    stage_fixture_read(&f, 0, SIZE);
    assert_int_equal(fake_given(f.fake), SIZE);
    stage_fixture_close(&f);
}

/* ---- missing ranges ---- */

UNIT_TEST_WITH(test_wants__scattered_reads__one_round, temp_setup, temp_teardown)
{
    struct stage_fixture f;
    struct read_context rc;
    struct event event;
    uint8_t buf[100];

    open_usual(&f, *state);
    read_context_init(&rc, true);
    for (uint64_t i = 0; i < 300; i += 30)
        assert_int_equal(blob_pread(&rc, f.blob, buf, sizeof(buf), i * BLOCK + 50), -EAGAIN);
    event_init(&event);
    missing_fetch(&rc, &event.waiter);
    assert_int_equal(event_wait(&event), 0);
    for (uint64_t i = 0; i < 300; i += 30) {
        assert_int_equal(blob_pread(&rc, f.blob, buf, sizeof(buf), i * BLOCK + 50), 0);
        assert_memory_equal(buf, content + i * BLOCK + 50, sizeof(buf));
    }
    read_context_release(&rc);
    assert_int_equal(fake_given(f.fake), 10 * BLOCK);
    assert_int_equal(fake_most_at_once(f.fake) <= 4, true);
    stage_fixture_close(&f);
}

/* ---- how many at once ---- */

#define AWAY_MS 150
#define LOOK_MS 50 /* how often the stage looks while a reader waits */

/* A distant remote: its first answer takes AWAY_MS (timed: every answer; otherwise the others wait
 * for fake_release()). It refuses more than `most` requests at once. */
struct far {
    struct stage_fixture *f;
    struct test_clock clock;
    bool timed;
    _Atomic unsigned most, refused;
};

static struct fake_answer far_answer(void *ctx, const struct transfer *transfer, unsigned number)
{
    struct far *far = ctx;

    (void)transfer;
    if (far->most && fake_at_once(far->f->fake) > far->most) {
        atomic_fetch_add(&far->refused, 1);
        return (struct fake_answer){.end = TRANSFER_AGAIN, .retry_ms = 1000000000};
    }
    return (struct fake_answer){.end = TRANSFER_DONE,
                                .stalls = true,
                                .stall_ms = number == 0 || far->timed ? AWAY_MS : 0,
                                .goes_on = true};
}

/* One block, whose first byte takes AWAY_MS: now it is known how far the remote is. */
static void read_from_afar(const struct stage_fixture *f)
{
    struct event event;

    event_init(&event);
    blob_fetch(f->blob, SIZE - 1, 1, &event.waiter);
    fake_wait_stalled(f->fake, 1);
    for (int ms = 0; ms < AWAY_MS; ms += LOOK_MS)
        test_clock_pass(f->clock, LOOK_MS * TEST_MS);
    assert_int_equal(event_wait(&event), 0);
}

static void open_far(struct stage_fixture *f, struct far *far, const char *folder,
                     unsigned small_jobs, bool background)
{
    struct stage_options options = stage_fixture_options();

    *far = (struct far){.f = f, .timed = background};
    test_clock_init(&far->clock);
    options.clock = &far->clock.clock;
    options.small_jobs = small_jobs;
    options.background = background;
    options.retry_limit_s = 100000;
    open_fixture(f, folder, &options, NULL, NULL);
    fake_set_script(f->fake, far_answer, far);
    read_from_afar(f);
}

static void close_far(struct stage_fixture *f)
{
    stage_fixture_close(f);
    test_clock_release(f->clock);
}

/* n pieces of equally many blocks, each step blocks after the one before. */
struct pieces {
    uint64_t first;
    unsigned n;
    uint64_t blocks, step;
};

/* Request them at the same time. */
static struct event *ask_for(const struct stage_fixture *f, const struct pieces *p)
{
    struct event *event = calloc(p->n, sizeof(*event));

    for (unsigned i = 0; i < p->n; i++) {
        event_init(&event[i]);
        blob_fetch(f->blob, (p->first + i * p->step) * BLOCK, p->blocks * BLOCK, &event[i].waiter);
    }
    return event;
}

static void expect_pieces(const struct stage_fixture *f, const struct pieces *p,
                          struct event *event)
{
    for (unsigned i = 0; i < p->n; i++) {
        assert_int_equal(event_wait(&event[i]), 0);
        stage_fixture_read(f, (p->first + i * p->step) * BLOCK, p->blocks * BLOCK);
    }
    free(event);
}

/* The remote answers once it has that many requests at the same time, the most that the stage
 * makes. */
static void fetch_at_once(const struct stage_fixture *f, const struct pieces *p, unsigned most)
{
    struct event *event = ask_for(f, p);

    fake_wait_stalled(f->fake, most);
    fake_release(f->fake);
    expect_pieces(f, p, event);
    assert_int_equal(fake_most_at_once(f->fake), most);
}

UNIT_TEST_WITH(test_jobs__small_demands__many_at_once, temp_setup, temp_teardown)
{
    struct stage_fixture f;
    struct far far;

    open_far(&f, &far, *state, 48, false);
    fetch_at_once(&f, &(struct pieces){0, 60, 1, 5}, 48);
    assert_int_equal(fake_given(f.fake), 60 * BLOCK + 1234);
    close_far(&f);
}

UNIT_TEST_WITH(test_jobs__not_reported_of_small_ones__the_limit_of_all, temp_setup, temp_teardown)
{
    struct stage_fixture f;
    struct far far;

    open_far(&f, &far, *state, 0, false);
    fetch_at_once(&f, &(struct pieces){0, 20, 1, 5}, 4);
    close_far(&f);
}

/* Pieces for which another connection is of no use. */
UNIT_TEST_WITH(test_jobs__large_demands__no_more, temp_setup, temp_teardown)
{
    struct stage_options options = stage_fixture_options();
    struct stage_fixture f;
    struct far far = {.f = &f};

    test_clock_init(&far.clock);
    options.clock = &far.clock.clock;
    options.jobs = 2;
    options.small_jobs = 48;
    open_fixture(&f, *state, &options, NULL, NULL);
    fake_set_script(f.fake, far_answer, &far);
    read_from_afar(&f);
    /* backwards: no sequence */
    fetch_at_once(&f, &(struct pieces){225, 4, 70, (uint64_t)-75}, 2);
    close_far(&f);
}

/* On a near remote requests cost no time. */
UNIT_TEST_WITH(test_jobs__near__no_more, temp_setup, temp_teardown)
{
    const struct pieces p = {1, 25, 1, 10};
    struct stage_options options = stage_fixture_options();
    struct stage_fixture f;

    options.small_jobs = 48;
    options.far_ms = 60000; /* no load of the machine takes that long */
    open_fixture(&f, *state, &options, NULL, NULL);
    for (unsigned i = 0; i < 20; i++)
        stage_fixture_read(&f, (290 - 10 * i) * BLOCK, 1);
    expect_pieces(&f, &p, ask_for(&f, &p));
    assert_in_range(fake_most_at_once(f.fake), 1, 4);
    stage_fixture_close(&f);
}

/* The remote asks for a rest that is longer than the retry limit. */
UNIT_TEST_WITH(test_jobs__refused__fewer_and_nobody_fails, temp_setup, temp_teardown)
{
    const struct pieces few = {0, 4, 1, 5}, many = {20, 56, 1, 5}, later = {2, 59, 1, 5};
    struct event *few_come, *many_come;
    struct stage_fixture f;
    struct far far;
    unsigned refused;

    open_far(&f, &far, *state, 48, false);
    far.most = 10;
    few_come = ask_for(&f, &few);
    fake_wait_stalled(f.fake, 4); /* these are not refused: they are no more than jobs */
    many_come = ask_for(&f, &many);
    fake_wait_stalled(f.fake, 4);
    fake_release(f.fake);
    test_clock_run(f.clock, 100 * TEST_S);
    expect_pieces(&f, &few, few_come);
    expect_pieces(&f, &many, many_come);
    test_clock_stand(f.clock);
    refused = far.refused;
    assert_in_range(refused, 1, 60);
    assert_int_equal(f.counters->errors, 0);
    fake_hold(f.fake);
    fetch_at_once(&f, &later, 4);
    assert_int_equal(far.refused, refused);
    close_far(&f);
}

/* Transfers that no reader waits for get no further connections. */
UNIT_TEST_WITH(test_jobs__background__no_more, temp_setup, temp_teardown)
{
    struct diag d = DIAG_INIT;
    struct stage_fixture f;
    struct far far;

    open_far(&f, &far, *state, 48, true);
    stage_begin(f.stage);
    test_clock_run(f.clock, 10 * TEST_S);
    assert_int_equal(stage_wait(f.stage, 20000000, &d), 1);
    test_clock_stand(f.clock);
    assert_in_range(fake_most_at_once(f.fake), 1, 3);
    close_far(&f);
}

/* ---- the remote fails ---- */

/* The first n transfers fail like this. */
struct failing {
    unsigned n;
    struct fake_answer answer;
};

static struct fake_answer fail_first(void *ctx, const struct transfer *transfer, unsigned number)
{
    const struct failing *failing = ctx;

    (void)transfer;
    return number < failing->n ? failing->answer
                               : (struct fake_answer){.end = TRANSFER_DONE, .bytes = UINT64_MAX};
}

UNIT_TEST_WITH(test_failure__short_bodies__goes_on_at_the_byte, temp_setup, temp_teardown)
{
    struct failing failing = {3, {.end = TRANSFER_AGAIN, .bytes = 10001}};
    struct test_clock clock;
    struct stage_fixture f;

    open_in_no_time(&f, &clock, *state, false);
    fake_set_script(f.fake, fail_first, &failing);
    stage_fixture_read(&f, 0, 20 * BLOCK);
    assert_int_equal(fake_given(f.fake), 20 * BLOCK);
    assert_int_equal(f.counters->retries, 3);
    close_in_no_time(&f);
}

UNIT_TEST_WITH(test_failure__changed__stale_but_what_is_here, temp_setup, temp_teardown)
{
    struct failing failing = {UINT32_MAX, {.end = TRANSFER_CHANGED}};
    struct diag d = DIAG_INIT;
    struct stage_fixture f;

    open_usual(&f, *state);
    stage_fixture_read(&f, 5 * BLOCK, 2 * BLOCK);
    fake_set_script(f.fake, fail_first, &failing);
    assert_int_equal(read_error(f.blob, 100 * BLOCK, 10, &d), -ESTALE);
    stage_fixture_read(&f, 5 * BLOCK, 2 * BLOCK);
    assert_int_equal(read_error(f.blob, 5 * BLOCK, 3 * BLOCK, &d), -ESTALE);
    stage_fixture_close(&f);
}

UNIT_TEST_WITH(test_failure__refused__said_and_tried_again, temp_setup, temp_teardown)
{
    struct failing failing = {1, {.end = TRANSFER_REFUSED}};
    struct diag d = DIAG_INIT;
    struct stage_fixture f;

    open_usual(&f, *state);
    fake_set_script(f.fake, fail_first, &failing);
    assert_int_equal(read_error(f.blob, 0, 10, &d), -EREMOTEIO);
    assert_diag_has(&d, "the fake fails");
    stage_fixture_read(&f, 0, 10);
    stage_fixture_close(&f);
}

UNIT_TEST_WITH(test_failure__whole_only__once, temp_setup, temp_teardown)
{
    struct failing failing = {1, {.end = TRANSFER_WHOLE}};
    struct stage_fixture f;

    open_usual(&f, *state);
    fake_set_script(f.fake, fail_first, &failing);
    stage_fixture_read(&f, 200 * BLOCK, 10);
    stage_fixture_read(&f, 0, SIZE);
    assert_int_equal(fake_given(f.fake), SIZE);
    assert_int_equal(fake_started(f.fake), 2);
    stage_fixture_close(&f);
}

/* A reader waits for the first block as long as the retry limit, 30 s, and no longer. */
static void expect_to_give_up(const struct stage_fixture *f)
{
    struct event event;

    event_init(&event);
    blob_fetch(f->blob, 0, 10, &event.waiter);
    fake_wait_started(f->fake, 1);
    test_clock_turn(f->clock, 29 * TEST_S);
    assert_false(event_is_over(&event));
    test_clock_turn(f->clock, 2 * TEST_S);
    assert_int_equal(event_wait(&event), -EREMOTEIO);
}

UNIT_TEST_WITH(test_failure__dead__patience_ends, temp_setup, temp_teardown)
{
    struct failing failing = {UINT32_MAX, {.end = TRANSFER_AGAIN}};
    struct stage_options options = stage_fixture_options();
    struct diag d = DIAG_INIT;
    struct test_clock clock;
    struct stage_fixture f;

    test_clock_init(&clock);
    options.clock = &clock.clock;
    open_fixture(&f, *state, &options, NULL, NULL);
    fake_set_script(f.fake, fail_first, &failing);
    expect_to_give_up(&f);
    assert_int_equal(read_error(f.blob, 0, 10, &d), -EREMOTEIO); /* at once, this time */
    fake_set_script(f.fake, NULL, NULL);
    stage_fixture_read(&f, 50 * BLOCK, 10);
    stage_fixture_read(&f, 0, 10);
    stage_fixture_close(&f);
    test_clock_release(&clock);
}

UNIT_TEST_WITH(test_failure__stalled__patience_ends_and_others_go_on, temp_setup, temp_teardown)
{
    struct failing failing = {1, {.end = TRANSFER_AGAIN, .bytes = 100, .stalls = true}};
    struct stage_options options = stage_fixture_options();
    struct test_clock clock;
    struct stage_fixture f;

    test_clock_init(&clock);
    options.clock = &clock.clock;
    open_fixture(&f, *state, &options, NULL, NULL);
    fake_set_script(f.fake, fail_first, &failing);
    expect_to_give_up(&f);
    stage_fixture_read(&f, 50 * BLOCK, 10);
    stage_fixture_read(&f, 0, 10);
    stage_fixture_close(&f);
    test_clock_release(&clock);
}

/* Does a brief wait for that block, which has begun now, last `seconds` and no longer? */
static void expect_brief(const struct stage_fixture *f, uint64_t block, unsigned seconds)
{
    struct event event;

    event_init(&event);
    event.waiter.brief = true;
    blob_fetch(f->blob, block * BLOCK, 10, &event.waiter);
    if (seconds) {
        test_clock_turn(f->clock, (seconds - 1) * TEST_S);
        assert_false(event_is_over(&event));
        test_clock_turn(f->clock, 2 * TEST_S);
    }
    assert_int_equal(event_wait(&event), -EREMOTEIO);
    assert_diag_has(&event.waiter.reason, "waited 30 s");
}

/* A command waits for one file after another: for the first one as any reader, for others less, and
 * for none after a second limit; then the remote is tried again. */
UNIT_TEST_WITH(test_failure__silent__brief_waits_end_sooner, temp_setup, temp_teardown)
{
    struct failing failing = {UINT32_MAX, {.end = TRANSFER_AGAIN, .stalls = true}};
    struct stage_options options = stage_fixture_options();
    struct diag d = DIAG_INIT;
    struct test_clock clock;
    struct stage_fixture f;

    test_clock_init(&clock);
    options.clock = &clock.clock;
    open_fixture(&f, *state, &options, NULL, NULL);
    fake_set_script(f.fake, fail_first, &failing);
    assert_int_equal(stage_silent(f.stage, &d), 0);
    expect_brief(&f, 0, 30);
    assert_int_equal(stage_silent(f.stage, &d), 1);
    assert_diag_has(&d, "waited 30 s");
    expect_brief(&f, 50, 8);
    expect_brief(&f, 60, 8);
    assert_int_equal(stage_silent(f.stage, &d), 3);
    test_clock_turn(f.clock, 20 * TEST_S);
    expect_brief(&f, 70, 0);
    test_clock_turn(f.clock, 30 * TEST_S);
    expect_brief(&f, 80, 30);
    fake_release(f.fake);
    fake_set_script(f.fake, NULL, NULL);
    stage_fixture_read(&f, 90 * BLOCK, 10);
    assert_int_equal(stage_silent(f.stage, &d), 0);
    fake_hold(f.fake);
    fake_set_script(f.fake, fail_first, &failing);
    expect_brief(&f, 100, 30);
    fake_release(f.fake);
    stage_fixture_close(&f);
    test_clock_release(&clock);
}

UNIT_TEST_WITH(test_stage_wait__silent__ends, temp_setup, temp_teardown)
{
    struct failing failing = {UINT32_MAX, {.end = TRANSFER_AGAIN, .stalls = true}};
    struct stage_options options = stage_fixture_options();
    struct diag d = DIAG_INIT;
    struct test_clock clock;
    struct stage_fixture f;
    int r;

    test_clock_init(&clock);
    options.clock = &clock.clock;
    options.background = true;
    open_fixture(&f, *state, &options, NULL, NULL);
    fake_set_script(f.fake, fail_first, &failing);
    test_clock_turn(&clock, 100 * TEST_S); /* a long listing before it is no silence */
    stage_begin(f.stage);
    fake_wait_stalled(f.fake, 1);
    test_clock_turn(&clock, 29 * TEST_S);
    assert_int_equal(stage_wait(f.stage, 0, &d), 0);
    test_clock_turn(&clock, 2 * TEST_S);
    while ((r = stage_wait(f.stage, 0, &d)) == 0) { /* the stage may not know yet that it began */
    }
    assert_int_equal(r, -EREMOTEIO);
    assert_diag_has(&d, "waited 30 s");
    fake_release(f.fake);
    stage_fixture_close(&f);
    test_clock_release(&clock);
}

/* ---- what is reported ---- */

struct heard {
    _Atomic unsigned failed, answered;
    _Atomic int error;
};

static void hear_failed(void *ctx, int error, const char *reason)
{
    struct heard *heard = ctx;

    assert_non_null(strstr(reason, "the fake fails"));
    atomic_store(&heard->error, error);
    atomic_fetch_add(&heard->failed, 1);
}

static void hear_answered(void *ctx)
{
    atomic_fetch_add(&((struct heard *)ctx)->answered, 1);
}

/* Each failure, and once that the remote answers again. */
UNIT_TEST_WITH(test_listener__fails_and_answers__told, temp_setup, temp_teardown)
{
    struct failing breaks = {3, {.end = TRANSFER_AGAIN, .bytes = 100}},
                   refuses = {UINT32_MAX, {.end = TRANSFER_REFUSED}};
    struct heard heard = {0};
    const struct stage_listener listener = {hear_failed, hear_answered, &heard};
    struct test_clock clock;
    struct stage_fixture f;
    char text[200];

    open_in_no_time(&f, &clock, *state, false);
    stage_set_listener(f.stage, &listener);
    stage_fixture_read(&f, 200 * BLOCK, 10);
    stage_rest(f.stage);
    stage_trouble(f.stage, text, sizeof(text));
    assert_string_equal(text, "");
    assert_true(!heard.failed && !heard.answered);
    fake_set_script(f.fake, fail_first, &breaks); /* the second and the third */
    stage_fixture_read(&f, 0, 10);
    stage_fixture_read(&f, 100 * BLOCK, 10);
    stage_rest(f.stage);
    assert_int_equal(heard.failed, 2);
    assert_int_equal(heard.error, -EREMOTEIO);
    assert_int_equal(heard.answered, 1);
    stage_trouble(f.stage, text, sizeof(text));
    assert_string_equal(text, "");
    fake_set_script(f.fake, fail_first, &refuses);
    assert_int_equal(read_error(f.blob, 50 * BLOCK, 10, NULL), -EREMOTEIO);
    stage_rest(f.stage);
    assert_int_equal(heard.failed, 3);
    stage_trouble(f.stage, text, sizeof(text));
    assert_string_equal(text, "fake://file: the fake fails");
    stage_set_listener(f.stage, NULL);
    close_in_no_time(&f);
}

/* A wait is of the first class whose bound it does not pass. */
UNIT_TEST_WITH(test_counters__waits__by_class, temp_setup, temp_teardown)
{
    struct stage_fixture f;

    open_usual(&f, *state);
    for (unsigned i = 0; i < STAGE_WAIT_CLASSES; i++) {
        stage_waited(f.stage, stage_wait_ms[i] * INT64_C(1000000));
        assert_int_equal(f.counters->wait_class[i], i ? 2 : 1);
        stage_waited(f.stage, stage_wait_ms[i] * INT64_C(1000000) + 1);
        assert_int_equal(f.counters->wait_class[i + 1], 1);
    }
    assert_int_equal(f.counters->waits, 2 * STAGE_WAIT_CLASSES);
    assert_int_equal(f.counters->wait_ns, INT64_C(173376000000) + STAGE_WAIT_CLASSES);
    stage_fixture_close(&f);
}

static void sum_progress(void *ctx, uint64_t bytes)
{
    assert_true(bytes >= *(uint64_t *)ctx);
    *(uint64_t *)ctx = bytes;
}

/* What `epochfs verify` says of what is missing, damaged, or changed on the remote. */
UNIT_TEST_WITH(test_verify__missing_and_changed__named, temp_setup, temp_teardown)
{
    struct failing changed = {UINT32_MAX, {.end = TRANSFER_CHANGED}};
    struct stage_options options = stage_fixture_options();
    struct diag damaged = DIAG_INIT, last = DIAG_INIT, stale = DIAG_INIT;
    uint64_t bytes = 0;
    struct stage_fixture f, later;
    int fd, r;

    options.background = true;
    open_fixture(&f, *state, &options, NULL, NULL);
    stage_fixture_read(&f, 0, 300 * BLOCK);
    assert_int_equal(stage_verify(f.stage, sum_progress, &bytes, &last), -ENODATA);
    assert_diag_has(&last, "file: bytes 1228800 to 1230033 are not in the cache, or damaged");
    assert_int_equal(bytes, 300 * BLOCK);
    fd = open_staged(*state);
    assert_int_equal(pwrite(fd, "junk", 4, 64 * BLOCK), 4);
    close(fd);
    open_usual(&later, *state);
    bytes = 0;
    assert_int_equal(stage_verify(later.stage, sum_progress, &bytes, &damaged), -ENODATA);
    assert_diag_has(&damaged, "file: bytes 262144 to 266239 are not in the cache, or damaged");
    assert_int_equal(bytes, 64 * BLOCK);
    assert_int_equal(later.counters->bad_blocks, 1);
    stage_fixture_close(&later);
    fake_set_script(f.fake, fail_first, &changed);
    stage_begin(f.stage);
    while ((r = stage_wait(f.stage, 60000, &stale)) == 0)
        continue;
    assert_int_equal(r, -ESTALE);
    assert_diag_has(&stale, "file: it was changed or removed: ");
    stage_fixture_close(&f);
}

/* A file whose place in the cache folder is taken cannot be staged: said with its name. */
UNIT_TEST_WITH(test_stage_wait__no_place_for_a_file__named, temp_setup, temp_teardown)
{
    struct stage_options options = stage_fixture_options();
    const struct staged_key key = {.url = "fake://other",
                                   .version = "1230034 \"1\" 0.000000000",
                                   .size = SIZE,
                                   .block = BLOCK};
    struct diag d = DIAG_INIT;
    struct staged staged;
    struct stage_fixture f;
    char name[100];
    int r;

    options.background = true;
    open_fixture(&f, *state, &options, NULL, NULL);
    assert_int_equal(staged_open(&staged, &f.cache, &key, NULL), 0);
    staged_close(&staged);
    for (unsigned i = 0; i < 2; i++) { /* a folder that is not empty, in the place of the records */
        char path[PATH_MAX];

        snprintf(name, sizeof(name), "staged/%s%s", staged.id, i ? "/x" : "");
        temp_path(*state, name, path);
        assert_true(i || unlink(path) == 0);
        temp_folder(*state, name);
    }
    stage_fixture_add(&f, "fake://other");
    stage_begin(f.stage);
    while ((r = stage_wait(f.stage, 60000, &d)) == 0)
        continue;
    assert_int_equal(r, -EISDIR);
    assert_diag_has(&d, "fake://other: ");
    assert_diag_has(&d, "expected a file, got a folder that is not empty");
    stage_fixture_close(&f);
}

struct reader {
    const struct blob *blob;
    int result;
};

static void *read_one(void *arg)
{
    struct reader *reader = arg;
    uint8_t byte;

    reader->result = blob_pread(READ_WAITS, reader->blob, &byte, 1, 0);
    return NULL;
}

UNIT_TEST_WITH(test_end__stalled__reader_is_released, temp_setup, temp_teardown)
{
    struct failing failing = {UINT32_MAX, {.end = TRANSFER_DONE, .stalls = true}};
    struct stage_fixture f;
    struct reader reader;
    pthread_t thread;

    open_usual(&f, *state);
    fake_set_script(f.fake, fail_first, &failing);
    reader.blob = f.blob;
    pthread_create(&thread, NULL, read_one, &reader);
    fake_wait_started(f.fake, 1);
    stage_end(f.stage);
    pthread_join(thread, NULL);
    assert_int_equal(reader.result, -EINTR);
    stage_fixture_close(&f);
}

/* ---- the background ---- */

/* A server may lie about a size. */
UNIT_TEST_WITH(test_add__size_of_an_exabyte__says_so, temp_setup, temp_teardown)
{
    const struct remote_version version = {.size = UINT64_C(1) << 60, .etag = "\"v\""};
    const struct stage_file what = {.url = "u", .key = "u", .name = "big", .version = &version};
    struct diag d = DIAG_INIT;
    struct blob *blob = NULL;
    struct stage_fixture f;

    open_usual(&f, *state);
    assert_int_equal(stage_add(f.stage, &what, &blob, &d), -EFBIG);
    assert_diag_has(&d, "big: expected a file of less than ");
    assert_diag_has(&d, "got a size of 1152921504606846976 bytes");
    assert_null(blob);
    stage_fixture_close(&f);
}

/* The identity is a digest of both texts: a server may send any text as ETag. */
static void check_identity(const struct blob *blob, const char *key, const char *version)
{
    const struct iovec field[] = {{(char *)(uintptr_t)key, strlen(key)},
                                  {(char *)(uintptr_t)version, strlen(version)}};
    char want[DIGEST_TEXT_SIZE + 8] = "remote ";
    AUTO_FREE char *identity = NULL;
    uint8_t digest[DIGEST_BYTES];

    assert_int_equal(digest_fields(field, 2, digest), 0);
    digest_text(digest, want + strlen(want));
    assert_int_equal(blob_identity(blob, &identity), 0);
    assert_string_equal(identity, want);
}

/* What is staged is found again by the same text of the version, and by no other. */
UNIT_TEST_WITH(test_add__version__a_text_of_its_own, temp_setup, temp_teardown)
{
    static const struct {
        const char *etag;
        struct timespec mtime;
        bool time_counts, has_sum;
        const char *want;
    } cases[] = {
        {"\"e\"", {0, 0}, false, false, "5000 \"e\" 0.000000000"},
        {"\"e\"", {7, 8}, false, true, "5000 \"e\" 0.000000000"},
        {"\"e\"", {7, 8}, true, false, "5000 \"e\" 7.000000008"},
        {"", {7, 8}, false, true, "5000  7.000000008"},
        {"",
         {0, 0},
         false,
         true,
         "5000  0.000000000 sha256 "
         "0100000000000000000000000000000000000000000000000000000000000000"},
        {"", {0, 0}, false, false, NULL}, /* not known: of this stage alone */
    };
    const uint8_t sum[DIGEST_BYTES] = {1};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct remote_version version = {
            .size = 5000, .mtime = cases[i].mtime, .time_counts = cases[i].time_counts};
        struct stage_file what = {.url = "fake://x",
                                  .key = "key",
                                  .name = "x",
                                  .version = &version,
                                  .sha256 = cases[i].has_sum ? sum : NULL,
                                  .trusted = true,
                                  .parts = sum};
        char text[200], name[100], folder[PATH_MAX], path[PATH_MAX];
        struct staged_key key = {
            .url = "key", .version = text, .size = 5000, .block = STAGED_BLOCK_LEAST};
        struct blob *blob = NULL, *same = NULL;
        struct stage_fixture f;
        struct staged staged;
        uint64_t record[2];
        uint8_t byte;

        snprintf(name, sizeof(name), "%zu", i);
        temp_folder(*state, name);
        temp_path(*state, name, folder);
        open_usual(&f, folder);
        snprintf(version.etag, sizeof(version.etag), "%s", cases[i].etag);
        assert_int_equal(stage_add(f.stage, &what, &blob, NULL), 0);
        assert_int_equal(stage_add(f.stage, &what, &same, NULL), 0);
        assert_ptr_equal(blob, same);
        assert_int_equal(f.counters->total_bytes, SIZE + 5000);
        assert_int_equal(blob_read(READ_WAITS, blob, &byte, 1, 4096, NULL), 0);
        snprintf(text, sizeof(text), "5000  0.000000000 mount %016llx",
                 (unsigned long long)stage_own_number(f.stage));
        if (cases[i].want)
            snprintf(text, sizeof(text), "%s", cases[i].want);
        check_identity(blob, "key", text);
        assert_ptr_equal(stage_parts(blob), sum);
        assert_null(stage_parts(&(struct blob){0}));
        assert_int_equal(staged_open(&staged, &f.cache, &key, NULL), 0);
        staged_records(&staged, 0, 2, record);
        assert_true(!record[0] && record[1]);
        snprintf(name, sizeof(name), "staged/%s", staged.id);
        temp_path(folder, name, path);
        staged_close(&staged);
        stage_fixture_close(&f);
        assert_int_equal(access(path, F_OK), cases[i].want ? 0 : -1);
    }
}

/* An empty file has nothing to stage. */
UNIT_TEST_WITH(test_add__empty__no_file_for_it, temp_setup, temp_teardown)
{
    const struct stage_options options = stage_fixture_options();
    const struct stage_fixture_remote remote = {.content = content, .threads = 1};
    struct diag d = DIAG_INIT;
    struct stage_fixture f;
    char path[PATH_MAX];

    stage_fixture_open(&f, *state, &options, &remote);
    assert_int_equal(stage_verify(f.stage, NULL, NULL, &d), 0);
    stage_count(f.stage);
    temp_path(*state, "staged", path);
    assert_int_equal(access(path, F_OK), -1);
    stage_fixture_close(&f);
}

/* Many files of such sizes: the memory for their blocks is a part of the machine's, and is used
 * only when something is known of a block. */
UNIT_TEST_WITH(test_add__many_of_15_terabytes__bounded, temp_setup, temp_teardown)
{
    const struct remote_version version = {.size = UINT64_C(15) * 1000000000000, .etag = "\"v\""};
    struct stage_options options = stage_fixture_options();
    uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    struct stage_fixture f;

    options.block = 0;
    for (unsigned once = 0; once < 2; once++) {
        uint64_t each = version.size / STAGED_BLOCK_MOST * (once ? 17 : 9), n = 0; /* least bytes */
        struct diag d = DIAG_INIT;
        int r = 0;

        options.keep = once ? STAGE_ONCE : STAGE_PLAN;
        open_fixture(&f, *state, &options, NULL, NULL);
        for (; r == 0 && n * each < 2 * memory; n++) {
            char key[32];
            const struct stage_file what = {
                .url = key, .key = key, .name = key, .version = &version};
            struct blob *blob = NULL;

            snprintf(key, sizeof(key), "%u", (unsigned)n);
            r = stage_add(f.stage, &what, &blob, &d);
        }
        assert_int_equal(r, -EFBIG);
        assert_diag_has(&d, "a size of 15000000000000 bytes needs too much memory");
        assert_true((n - 1) * each <= memory / 4);
        stage_fixture_close(&f);
    }
}

UNIT_TEST_WITH(test_background__stages_all, temp_setup, temp_teardown)
{
    struct stage_options options = stage_fixture_options();
    struct diag d = DIAG_INIT;
    struct stage_fixture f;

    options.background = true;
    open_fixture(&f, *state, &options, NULL, NULL);
    stage_fixture_stage_all(&f);
    assert_int_equal(fake_given(f.fake), SIZE);
    assert_int_equal(f.counters->staged_bytes, SIZE);
    assert_int_equal(f.counters->background_bytes, SIZE);
    assert_true(fake_most_at_once(f.fake) < 4); /* one is for demands */
    assert_int_equal(stage_verify(f.stage, NULL, NULL, &d), 0);
    stage_fixture_read(&f, 0, SIZE);
    assert_int_equal(fake_given(f.fake), SIZE);
    stage_fixture_close(&f);
}

/* No reader waits and no time passes: blocks are written a megabyte at a time. */
UNIT_TEST_WITH(test_background__blocks__written_together, temp_setup, temp_teardown)
{
    struct stage_options options = stage_fixture_options();
    struct test_clock clock;
    struct stage_fixture f;

    test_clock_init(&clock);
    options.clock = &clock.clock;
    options.background = true;
    open_fixture(&f, *state, &options, NULL, NULL);
    atomic_store(&writes, 0);
    stage_fixture_stage_all(&f);
    assert_in_range(writes, 2, 8); /* of 301 blocks */
    stage_fixture_close(&f);
    test_clock_release(&clock);
}

UNIT_TEST_WITH(test_background__failing__goes_on, temp_setup, temp_teardown)
{
    struct failing failing = {2, {.end = TRANSFER_AGAIN, .bytes = 5000}};
    struct test_clock clock;
    struct stage_fixture f;

    open_in_no_time(&f, &clock, *state, true);
    fake_set_script(f.fake, fail_first, &failing);
    stage_begin(f.stage);
    assert_int_equal(stage_wait(f.stage, 1000000, NULL), 1);
    assert_int_equal(fake_given(f.fake), SIZE);
    close_in_no_time(&f);
}

UNIT_TEST_WITH(test_sha256__right__and_wrong, temp_setup, temp_teardown)
{
    struct stage_options options = stage_fixture_options();
    struct digest *digest;
    struct diag d = DIAG_INIT;
    uint8_t sum[DIGEST_BYTES];
    struct stage_fixture f;

    assert_int_equal(digest_new(&digest), 0);
    digest_add(digest, content, SIZE);
    digest_finish(digest, sum);
    digest_free(digest);
    open_fixture(&f, *state, &options, NULL, sum);
    stage_fixture_read(&f, 7, 1);
    assert_int_equal(fake_given(f.fake), SIZE); /* a small file is compared first */
    stage_fixture_close(&f);
    open_fixture(&f, *state, &options, NULL, sum);
    stage_fixture_read(&f, 7, 1); /* the mark says that it was compared */
    assert_int_equal(fake_given(f.fake), 0);
    assert_int_equal(f.counters->served_bytes, 1);
    stage_fixture_close(&f);

    sum[3] ^= 1;
    open_fixture(&f, *state, &options, "\"2\"", sum);
    assert_int_equal(read_error(f.blob, 7, 1, &d), -EBADMSG);
    assert_diag_has(&d, "SHA256SUMS");
    assert_int_equal(f.counters->bad_files, 1);
    assert_int_equal(f.counters->staged_bytes, 0);
    stage_fixture_close(&f);
}

/* ---- quota ---- */

UNIT_TEST_WITH(test_room__pin__the_rest_is_not_kept, temp_setup, temp_teardown)
{
    struct stage_options options = stage_fixture_options();
    struct stage_fixture f;
    uint64_t first;

    options.limit = SIZE / 2;
    options.limit_percent = 0;
    options.background = true;
    open_fixture(&f, *state, &options, NULL, NULL);
    for (unsigned epoch = 0; epoch < 3; epoch++)
        for (uint64_t i = 0; i < 300; i++)
            stage_fixture_read(&f, (i * 77 % 300) * BLOCK + i, 100);
    assert_true(quota_used(stage_quota(f.stage)) <= SIZE / 2);
    assert_true(f.counters->staged_bytes > SIZE / 4);
    assert_true(f.counters->refused > 0);
    assert_int_equal(f.counters->evictions, 0);
    first = f.counters->staged_bytes;
    stage_fixture_read(&f, 0, SIZE);
    assert_int_equal(f.counters->staged_bytes, first);
    stage_fixture_close(&f);
}

UNIT_TEST_WITH(test_room__own_limit__bounds_this_stage, temp_setup, temp_teardown)
{
    struct stage_options options = stage_fixture_options();
    struct stage_fixture f;

    options.own_limit = SIZE / 4;
    options.background = true;
    open_fixture(&f, *state, &options, NULL, NULL);
    for (uint64_t i = 0; i < 300; i++)
        stage_fixture_read(&f, (i * 77 % 300) * BLOCK + i, 100);
    assert_true(f.counters->staged_bytes <= SIZE / 4);
    assert_true(f.counters->staged_bytes > SIZE / 8);
    stage_fixture_close(&f);
}

/* The disk is full before the limit is reached. Writes that failed may have taken some of it, so
 * they stay counted until the files are counted. */
UNIT_TEST_WITH(test_room__disk_full__memory_has_the_rest, temp_setup, temp_teardown)
{
    struct stage_options options = stage_fixture_options();
    char path[PATH_MAX];
    struct stage_fixture f;
    uint64_t used;

    if (!temp_mount(*state, "tiny", "512k", path))
        skip();
    options.limit = UINT64_C(1) << 30;
    options.limit_percent = 0;
    open_fixture(&f, path, &options, NULL, NULL);
    for (uint64_t at = 0; at < SIZE; at += 30 * BLOCK)
        stage_fixture_read(&f, at, (size_t)min_u64(30 * BLOCK, SIZE - at));
    assert_in_range(f.counters->staged_bytes, 50 * BLOCK, 128 * BLOCK);
    assert_true(f.counters->refused > 0);
    stage_rest(f.stage);
    used = quota_used(stage_quota(f.stage));
    assert_int_equal(quota_recount(stage_quota(f.stage)), 0);
    assert_true(used >= quota_used(stage_quota(f.stage)));
    stage_fixture_close(&f);
    assert_int_equal(umount(path), 0);
}

/* What `epochfs stage` says of a cache that is too small. */
UNIT_TEST_WITH(test_room__none_for_all__said_with_its_numbers, temp_setup, temp_teardown)
{
    struct stage_options options = stage_fixture_options();
    struct diag d = DIAG_INIT, later = DIAG_INIT;
    struct stage_space space;
    struct stage_fixture f;
    char text[100];
    int r;

    options.limit = 270 * BLOCK; /* the first run of the background has 256 */
    options.limit_percent = 0;
    options.background = true;
    open_fixture(&f, *state, &options, NULL, NULL);
    stage_space(f.stage, &space);
    assert_int_equal(space.total, SIZE);
    assert_int_equal(space.limit, 270 * BLOCK);
    assert_true(space.keep == STAGE_PIN && !space.is_refused && !space.staged);
    assert_string_equal(space.folder, f.cache.path);
    stage_begin(f.stage);
    while ((r = stage_wait(f.stage, 60000, &d)) == 0)
        continue;
    assert_int_equal(r, -ENOSPC);
    stage_rest(f.stage);
    stage_space(f.stage, &space);
    assert_true(space.staged && space.staged == f.counters->staged_bytes);
    assert_int_equal(space.others, quota_used(stage_quota(f.stage)) - space.staged);
    assert_int_equal(stage_staged(f.blob), space.staged);
    snprintf(text, sizeof(text), "is full: %llu of %u bytes of the source are staged",
             (unsigned long long)space.staged, (unsigned)SIZE);
    assert_int_equal(stage_wait(f.stage, 0, &later), -ENOSPC);
    assert_diag_has(&later, text);
    stage_fixture_close(&f);
}

UNIT_TEST_WITH(test_room__none__what_memory_has_is_not_fetched_again, temp_setup, temp_teardown)
{
    struct stage_options options = stage_fixture_options();
    struct stage_fixture f;

    options.limit = 1;
    options.limit_percent = 0;
    open_fixture(&f, *state, &options, NULL, NULL);
    stage_fixture_read(&f, 100 * BLOCK, 8 * BLOCK);
    stage_fixture_read(&f, 100 * BLOCK + 50, 9 * BLOCK);
    assert_int_equal(fake_given(f.fake), 10 * BLOCK);
    assert_int_equal(f.counters->staged_bytes, 0);
    stage_fixture_close(&f);
}

/* ---- keep=once ---- */

/* A forecast that says which blocks readers have passed. The content's blocks fit. */
struct passing_needs {
    struct stage_needs needs;
    _Atomic bool passed[512];
    _Atomic uint64_t version;
};

static size_t passing_next(void *ctx, struct stage_need *ret, size_t capacity)
{
    (void)ctx;
    (void)ret;
    (void)capacity;
    return 0;
}

static void passing_when(void *ctx, size_t n, struct stage_need *need)
{
    (void)ctx;
    for (size_t i = 0; i < n; i++)
        need[i].when = STAGE_NEVER;
}

static uint64_t passing_last(void *ctx, const struct blob *blob, uint64_t off, uint64_t len)
{
    struct passing_needs *p = ctx;

    (void)blob;
    (void)len;
    return atomic_load(&p->passed[off / BLOCK]) ? 0 : 9;
}

static uint64_t passing_now(void *ctx, uint64_t *ret_version)
{
    struct passing_needs *p = ctx;

    *ret_version = atomic_load(&p->version) + 1;
    return 1;
}

static struct passing_needs passing = {.needs = {.next = passing_next,
                                                 .when = passing_when,
                                                 .last = passing_last,
                                                 .now = passing_now,
                                                 .ctx = &passing}};

/* A stage with keep=once and that forecast. */
static void open_once(struct stage_fixture *f, const char *folder, struct stage_options options)
{
    options.keep = STAGE_ONCE;
    for (size_t i = 0; i < ARRAY_LEN(passing.passed); i++)
        atomic_store(&passing.passed[i], false);
    open_fixture(f, folder, &options, NULL, NULL);
    stage_set_needs(f->stage, &passing.needs);
    stage_begin(f->stage);
}

/* Readers pass cached blocks, and the stage drops them. */
static void pass(const struct stage_fixture *f, uint64_t off, size_t len)
{
    uint64_t first = off / BLOCK, end = ceil_div(off + len, BLOCK),
             want = f->counters->evictions + end - first;

    for (uint64_t b = first; b < end; b++)
        atomic_store(&passing.passed[b], true);
    atomic_fetch_add(&passing.version, 1);
    stage_needs_changed(f->stage, false);
    while (f->counters->evictions < want)
        sched_yield();
    assert_int_equal(f->counters->evictions, want);
    for (uint64_t b = first; b < end; b++)
        atomic_store(&passing.passed[b], false);
}

/* Read and pass. */
static void use(const struct stage_fixture *f, uint64_t off, size_t len)
{
    stage_fixture_read(f, off, len);
    pass(f, off, len);
}

/* What could not be dropped is dropped the next time. */
UNIT_TEST_WITH(test_keep__once_drop_fails__tried_again, temp_setup, temp_teardown)
{
    struct stage_fixture f;

    open_once(&f, *state, stage_fixture_options());
    stage_fixture_read(&f, 0, 10 * BLOCK);
    atomic_store(&punch_error, EIO);
    for (unsigned b = 0; b < 10; b++)
        atomic_store(&passing.passed[b], true);
    atomic_fetch_add(&passing.version, 1);
    stage_needs_changed(f.stage, false);
    while (!atomic_load(&punches))
        sched_yield();
    atomic_store(&punch_error, 0);
    pass(&f, 0, 10 * BLOCK);
    assert_int_equal(f.counters->staged_bytes, 0);
    stage_fixture_close(&f);
}

UNIT_TEST_WITH(test_keep__once__drops_what_was_passed, temp_setup, temp_teardown)
{
    struct stage_fixture f;

    open_once(&f, *state, stage_fixture_options());
    for (uint64_t at = 0; at < SIZE; at += 1000)
        stage_fixture_read(&f, at, (size_t)min_u64(1000, SIZE - at));
    assert_int_equal(f.counters->evictions, 0);
    pass(&f, 0, SIZE);
    assert_int_equal(f.counters->staged_bytes, 0);
    assert_int_equal(f.counters->evictions, 301);
    assert_int_equal(fake_given(f.fake), SIZE);
    stage_fixture_read(&f, 0, SIZE);
    assert_int_equal(f.counters->evictions, 301);
    assert_int_equal(fake_given(f.fake), 2 * SIZE);
    assert_int_equal(f.counters->distinct_bytes, SIZE);
    stage_fixture_close(&f);
}

/* A forecast of the first two blocks of a file. */
static size_t give_two(void *ctx, struct stage_need *ret, size_t capacity)
{
    struct stage_need *need = ctx;
    bool gives = need->blob && capacity;

    if (gives)
        *ret = *need;
    need->blob = NULL;
    return gives;
}

/* When the file was opened there was no space for it: it was served from memory. Later there is,
 * and a need of the plan brings it to disk. */
UNIT_TEST_WITH(test_room__none_when_it_was_opened__on_disk_later, temp_setup, temp_teardown)
{
    struct stage_options options = stage_fixture_options();
    struct stage_need need = {.len = 2 * BLOCK, .when = 1};
    const struct stage_needs needs = {.next = give_two, .when = passing_when, .ctx = &need};
    struct test_clock clock;
    struct stage_fixture f;
    uint64_t left;
    uint8_t buf[10];

    test_clock_init(&clock);
    options.clock = &clock.clock;
    options.keep = STAGE_PLAN;
    options.background = true;
    options.limit = SIZE; /* two files are larger, so none is staged in its turn */
    options.limit_percent = 0;
    options.memory = BLOCK;
    open_fixture(&f, *state, &options, NULL, NULL);
    stage_set_needs(f.stage, &needs);
    f.cache.quota = stage_quota(f.stage);
    left = SIZE - quota_used(f.cache.quota);
    assert_int_equal(quota_take(f.cache.quota, left), 0);
    need.blob = stage_fixture_add(&f, "fake://other");
    assert_int_equal(blob_read(READ_WAITS, need.blob, buf, sizeof(buf), 5, NULL), 0);
    assert_memory_equal(buf, content + 5, sizeof(buf));
    stage_fixture_read(&f, 0, 1); /* the cache is full */
    assert_int_equal(f.counters->staged_bytes, 0);
    quota_give_back(f.cache.quota, left);
    test_clock_turn(&clock, 5 * TEST_S - 1);
    file_try_disk((struct file *)(uintptr_t)need.blob); /* not yet */
    assert_true(file_staged((const struct file *)need.blob)->fd >= 0);
    test_clock_turn(&clock, 1);
    stage_begin(f.stage);
    stage_fixture_await(&f, &f.counters->staged_bytes, BLOCK, SIZE);
    stage_fixture_close(&f);
    test_clock_release(&clock);
}

/* ---- others ---- */

struct sharing {
    const struct stage_fixture *f;
    unsigned seed;
};

static void *read_randomly(void *arg)
{
    struct sharing *s = arg;
    unsigned x = s->seed;

    for (unsigned i = 0; i < 3000; i++) {
        uint64_t off;

        x = x * 1664525 + 1013904223;
        off = (x >> 8) % (SIZE - 100);
        stage_fixture_read(s->f, off, 100);
    }
    return NULL;
}

/* Two stages see each other as two processes do: their claims are of two open files. */
UNIT_TEST_WITH(test_share__two_stages__each_block_once, temp_setup, temp_teardown)
{
    struct stage_options options = stage_fixture_options();
    struct stage_fixture f[2];
    struct sharing sharing[8];
    pthread_t thread[8];

    options.background = true;
    for (unsigned i = 0; i < 2; i++) {
        open_fixture(&f[i], *state, &options, NULL, NULL);
        stage_begin(f[i].stage);
    }
    for (unsigned i = 0; i < ARRAY_LEN(thread); i++) {
        sharing[i] = (struct sharing){&f[i % 2], i};
        pthread_create(&thread[i], NULL, read_randomly, &sharing[i]);
    }
    for (unsigned i = 0; i < ARRAY_LEN(thread); i++)
        pthread_join(thread[i], NULL);
    stage_fixture_stage_all(&f[0]);
    stage_fixture_stage_all(&f[1]);
    assert_int_equal(fake_given(f[0].fake) + fake_given(f[1].fake), SIZE);
    for (unsigned i = 0; i < 2; i++)
        stage_fixture_close(&f[i]);
}

UNIT_TEST_WITH(test_share__one_drops__the_other_sees_it, temp_setup, temp_teardown)
{
    struct stage_fixture a, b;

    open_usual(&a, *state);
    open_once(&b, *state, stage_fixture_options());
    stage_fixture_read(&a, 0, SIZE);
    use(&b, 0, SIZE);
    stage_fixture_read(&a, 0, SIZE);
    assert_int_equal(fake_given(a.fake), 2 * SIZE);
    stage_fixture_close(&a);
    stage_fixture_close(&b);
}

/* With one descriptor more each time: an error, until there are enough. */
static void check_out_of_descriptors(const struct blob *blob)
{
    struct rlimit limit, low;
    int next = dup(0), fd = -1, r = -EMFILE;
    unsigned failed = 0;

    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    for (low = limit, low.rlim_cur = (rlim_t)next; r == -EMFILE; low.rlim_cur++) {
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
        r = blob_open_file(blob, 0, SIZE, &fd, NULL);
        failed += r == -EMFILE;
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(r, 0);
    assert_true(failed > 0 && failed < 5);
    close(fd);
}

/* A file that readers read without the stage: it is opened only when all of it is cached, and
 * nothing of it is dropped until it is closed. Then it is. */
UNIT_TEST_WITH(test_sealed__open__held, temp_setup, temp_teardown)
{
    static uint8_t bytes[SIZE + 1];
    struct stage_fixture a, b;
    uint64_t held;
    int fd = -1;

    open_usual(&a, *state);
    stage_fixture_read(&a, 0, SIZE / 2);
    assert_int_equal(blob_open_file(a.blob, 0, SIZE, &fd, NULL), -EAGAIN);
    assert_int_equal(blob_open_file(a.blob, 0, SIZE - 1, &fd, NULL), -EOPNOTSUPP);
    assert_int_equal(blob_open_file(a.blob, 1, SIZE - 1, &fd, NULL), -EOPNOTSUPP);
    stage_fixture_read(&a, 0, SIZE);
    check_out_of_descriptors(a.blob);
    assert_int_equal(blob_open_file(a.blob, 0, SIZE, &fd, NULL), 0);
    assert_int_equal(pread(fd, bytes, SIZE + 1, 0), SIZE);
    assert_memory_equal(bytes, content, SIZE);
    open_once(&b, *state, stage_fixture_options());
    stage_fixture_read(&b, 0, SIZE);
    for (uint64_t block = 0; block < ceil_div(SIZE, BLOCK); block++)
        atomic_store(&passing.passed[block], true);
    for (unsigned i = 1; i <= 3; i++) {
        atomic_fetch_add(&passing.version, 1);
        stage_needs_changed(b.stage, false);
        while (b.counters->held < i)
            sched_yield();
    }
    assert_int_equal(b.counters->evictions, 0);
    stage_fixture_read(&b, 0, SIZE);
    stage_fixture_read(&a, 0, SIZE);
    assert_int_equal(pread(fd, bytes, SIZE + 1, 0), SIZE);
    assert_memory_equal(bytes, content, SIZE);
    close(fd);
    atomic_fetch_add(&passing.version, 1);
    stage_needs_changed(b.stage, false);
    while (b.counters->evictions < ceil_div(SIZE, BLOCK))
        sched_yield();
    held = b.counters->held;
    stage_fixture_read(&a, 0, SIZE);
    stage_fixture_read(&b, 0, SIZE);
    assert_int_equal(b.counters->held, held);
    stage_fixture_close(&b);
    stage_fixture_close(&a);
}

/* All of it is cached, but has another SHA-256: it is not opened, and dropped. */
UNIT_TEST_WITH(test_sealed__wrong_sha256__dropped, temp_setup, temp_teardown)
{
    const struct stage_options options = stage_fixture_options();
    const uint8_t sum[DIGEST_BYTES] = {1};
    struct diag d = DIAG_INIT;
    struct stage_fixture f;
    int fd = -1;

    open_usual(&f, *state);
    stage_fixture_read(&f, 0, SIZE);
    stage_fixture_close(&f);
    open_fixture(&f, *state, &options, NULL, sum);
    assert_int_equal(blob_open_file(f.blob, 0, SIZE, &fd, NULL), -EAGAIN);
    assert_int_equal(f.counters->bad_files, 1);
    assert_int_equal(f.counters->held, 0);
    assert_int_equal(f.counters->staged_bytes, 0);
    assert_int_equal(blob_open_file(f.blob, 0, SIZE, &fd, NULL), -EAGAIN);
    assert_int_equal(read_error(f.blob, 0, 10, &d), -EBADMSG);
    assert_int_equal(f.counters->bad_files, 1);
    stage_fixture_close(&f);
}

/* What was changed after it was compared: it is compared again, and mended. */
UNIT_TEST_WITH(test_sealed__content_changed__not_opened, temp_setup, temp_teardown)
{
    struct stage_fixture a;
    int fd = -1, file;

    open_usual(&a, *state);
    stage_fixture_read(&a, 0, SIZE);
    assert_int_equal(blob_open_file(a.blob, 0, SIZE, &fd, NULL), 0);
    close(fd);
    file = open_staged(*state);
    assert_int_equal(pwrite(file, "junk", 4, 100 * BLOCK), 4);
    assert_int_equal(blob_open_file(a.blob, 0, SIZE, &fd, NULL), -EAGAIN);
    assert_int_equal(a.counters->bad_blocks, 1);
    stage_fixture_read(&a, 0, SIZE);
    assert_int_equal(pwrite(file, "junk", 4, 200 * BLOCK), 4);
    stage_fixture_read(&a, 0, SIZE);
    assert_int_equal(blob_open_file(a.blob, 0, SIZE, &fd, NULL), 0);
    close(fd);
    close(file);
    stage_fixture_close(&a);
}

/* The staged file is truncated under stages that know its blocks to be good; fetching the last
 * block again makes it long. Each stage then fetches again what it reads later. */
UNIT_TEST_WITH(test_cut__and_long_again__no_wrong_byte, temp_setup, temp_teardown)
{
    const off_t cuts[] = {0, 1, 1536, 5000, 100000, 1000000};
    struct stage_fixture a, b;
    int fd;

    open_usual(&a, *state);
    open_usual(&b, *state);
    fd = open_staged(*state);
    for (size_t i = 0; i < ARRAY_LEN(cuts); i++) {
        stage_fixture_read(&a, 0, SIZE);
        stage_fixture_read(&b, 0, SIZE);
        assert_int_equal(ftruncate(fd, cuts[i]), 0);
        stage_fixture_read(&a, SIZE - 1, 1);
        for (uint64_t block = 300; block-- > 0;)
            stage_fixture_read(block % 2 ? &a : &b, block * BLOCK, BLOCK);
        for (uint64_t block = 0; block < 300; block++)
            stage_fixture_read(block % 2 ? &b : &a, block * BLOCK, BLOCK);
    }
    /* Bytes fetched meanwhile but not read: the stage notices before it writes them. */
    assert_int_equal(ftruncate(fd, 5000), 0);
    blob_fetch(a.blob, 7 * BLOCK, 1, NULL);
    stage_fixture_read(&b, 0, SIZE);
    stage_fixture_read(&a, 0, SIZE);
    close(fd);
    stage_fixture_close(&a);
    stage_fixture_close(&b);
}

#define LOCK_CLAIMS (INT64_C(1) << 61) /* docs/spec/cache-format.md */

static bool is_claimed(int fd, uint64_t first, uint64_t n)
{
    struct flock lock = {.l_type = F_WRLCK,
                         .l_whence = SEEK_SET,
                         .l_start = LOCK_CLAIMS + (off_t)first,
                         .l_len = (off_t)n};

    assert_int_equal(fcntl(fd, F_OFD_GETLK, &lock), 0);
    return lock.l_type != F_UNLCK;
}

static void claim(int fd, uint64_t block)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_CLAIMS + (off_t)block, .l_len = 1};

    assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
}

/* A bad block cannot be dropped because another process has claimed it. Then a count of drops that
 * grew by one means that another block is gone. */
UNIT_TEST_WITH(test_bad__claimed__drops_of_others_are_seen, temp_setup, temp_teardown)
{
    struct read_context rc;
    struct stage_fixture a, b;
    uint8_t byte = 0;
    int fd;

    open_usual(&a, *state);
    open_once(&b, *state, stage_fixture_options());
    stage_fixture_read(&a, 7 * BLOCK, BLOCK);
    stage_fixture_read(&b, 100 * BLOCK, BLOCK);
    fd = open_staged(*state);
    claim(fd, 100);
    assert_int_equal(pwrite(fd, "junk", 4, (off_t)(100 * BLOCK)), 4);
    use(&b, 7 * BLOCK, BLOCK);
    assert_int_equal(b.counters->evictions, 1);
    read_context_init(&rc, true);
    assert_int_equal(blob_pread(&rc, a.blob, &byte, 1, 100 * BLOCK), -EAGAIN);
    assert_int_equal(a.counters->bad_blocks, 1);
    read_context_release(&rc);
    stage_fixture_read(&a, 7 * BLOCK, BLOCK);
    close(fd);
    stage_fixture_read(&a, 100 * BLOCK, BLOCK);
    stage_fixture_close(&a);
    stage_fixture_close(&b);
}

/* Many pieces at once: none counts if any process has dropped blocks since they were known. */
UNIT_TEST_WITH(test_read_many__dropped_meanwhile__read_again, temp_setup, temp_teardown)
{
    struct blob_piece pieces[50];
    uint8_t buf[50][300];
    struct diag d = DIAG_INIT;
    struct stage_fixture a, b;

    for (size_t i = 0; i < ARRAY_LEN(pieces); i++)
        pieces[i] = (struct blob_piece){buf[i], sizeof(buf[i]), (i * 37 % 300) * BLOCK + 4000};
    open_usual(&a, *state);
    open_once(&b, *state, stage_fixture_options());
    stage_fixture_read(&a, 0, SIZE);
    stage_fixture_read(&b, 0, SIZE);
    for (unsigned round = 0; round < 3; round++) {
        uint64_t hits = a.counters->hits, served = a.counters->served_bytes;

        memset(buf, 0, sizeof(buf));
        if (round == 1)
            for (size_t i = 0; i < ARRAY_LEN(pieces); i += 7)
                use(&b, pieces[i].off / BLOCK * BLOCK, BLOCK);
        assert_int_equal(blob_read_many(READ_WAITS, a.blob, pieces, ARRAY_LEN(pieces), &d), 0);
        for (size_t i = 0; i < ARRAY_LEN(pieces); i++)
            assert_memory_equal(buf[i], content + pieces[i].off, sizeof(buf[i]));
        assert_int_equal(a.counters->served_bytes - served, sizeof(buf));
        if (round != 1)
            assert_int_equal(a.counters->hits - hits, ARRAY_LEN(pieces));
    }
    assert_true(b.counters->evictions > 0 && fake_given(a.fake) > SIZE);
    pieces[49].off = SIZE;
    assert_int_equal(blob_read_many(READ_WAITS, a.blob, pieces, ARRAY_LEN(pieces), &d), -EINVAL);
    stage_fixture_close(&b);
    stage_fixture_close(&a);
}

/* Another process drops blocks and stalls: the blocks that it has claimed cannot be written. */
static void lock_drops(int fd, short type)
{
    struct flock lock = {.l_type = type,
                         .l_whence = SEEK_SET,
                         .l_start = (off_t)((UINT64_C(1) << 62) + 2),
                         .l_len = 1};

    assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
}

static void expect_not_yet(struct stage_fixture *f, int ms)
{
    struct diag d = DIAG_INIT;
    int r = stage_wait(f->stage, ms, &d);

    if (r)
        fail_msg("stage_wait: %d %s", r, d.text);
}

UNIT_TEST_WITH(test_drops__excluded__tried_again, temp_setup, temp_teardown)
{
    struct stage_options options = stage_fixture_options();
    struct test_clock clock;
    struct stage_fixture f;
    int fd;

    test_clock_init(&clock);
    options.clock = &clock.clock;
    options.background = true;
    options.retry_limit_s = 1000000; /* the clock runs as fast as this machine lets it */
    open_fixture(&f, *state, &options, NULL, NULL);
    fd = open_staged(*state);
    claim(fd, 290);
    lock_drops(fd, F_WRLCK);
    stage_begin(f.stage);
    test_clock_run(&clock, 100 * TEST_S);
    stage_fixture_read(&f, 290 * BLOCK, 10); /* taken over, and only in memory */
    assert_true(f.counters->refused > 0);
    expect_not_yet(&f, 50);
    test_clock_stand(&clock);
    close(fd);
    stage_fixture_stage_all(&f);
    assert_int_equal(f.counters->staged_bytes, SIZE);
    stage_fixture_read(&f, 0, SIZE);
    stage_fixture_close(&f);
    test_clock_release(&clock);
}

UNIT_TEST_WITH(test_drops__excluded_for_long__nothing_is_fetched_in_vain, temp_setup, temp_teardown)
{
    struct stage_options options = stage_fixture_options();
    struct diag d = DIAG_INIT;
    struct test_clock clock;
    struct stage_fixture f;
    int fd, r;

    test_clock_init(&clock);
    options.clock = &clock.clock;
    options.background = true;
    options.retry_limit_s = 6;
    open_fixture(&f, *state, &options, NULL, NULL);
    fd = open_staged(*state);
    claim(fd, 100);
    lock_drops(fd, F_WRLCK);
    stage_begin(f.stage);
    test_clock_run(&clock, 100 * TEST_S);
    while ((r = stage_wait(f.stage, 1000000, &d)) == 0) /* until it tried to take the block over */
        continue;
    assert_int_equal(r, -EBUSY);
    assert_diag_has(&d, "another process drops blocks");
    assert_int_equal(fake_given_at(f.fake, 100 * BLOCK), 0);
    close(fd);
    while (stage_wait(f.stage, 100, NULL) != 1)
        continue;
    test_clock_stand(&clock);
    assert_int_equal(fake_given(f.fake), SIZE);
    stage_fixture_close(&f);
    test_clock_release(&clock);
}

/* ---- files that come whole ---- */

static void *read_block_0(void *arg)
{
    const struct stage_fixture *f = arg;

    stage_fixture_read(f, 0, BLOCK);
    return NULL;
}

static void drop_meanwhile(const char *folder, const struct fake_answer *answer)
{
    struct failing failing = {2, *answer};
    pthread_t thread;
    struct stage_fixture f;

    open_once(&f, folder, stage_fixture_options());
    fake_set_script(f.fake, fail_first, &failing);
    use(&f, 0, BLOCK);
    assert_int_equal(f.counters->evictions, 1);
    pthread_create(&thread, NULL, read_block_0, &f);
    while (!f.counters->misses || f.counters->misses < 2)
        sched_yield();
    fake_release(f.fake);
    pthread_join(thread, NULL);
    assert_int_equal(fake_given_at(f.fake, 0), 2);
    stage_fixture_close(&f);
}

/* A block that arrives and is dropped while the rest is on its way comes again. */
UNIT_TEST_WITH(test_whole__dropped_meanwhile__comes_again, temp_setup, temp_teardown)
{
    struct fake_answer answer = {
        .end = TRANSFER_DONE, .bytes = 10 * BLOCK, .stalls = true, .goes_on = true, .whole = true};

    drop_meanwhile(*state, &answer);
}

UNIT_TEST_WITH(test_whole__dropped_and_the_rest_fails__comes_again, temp_setup, temp_teardown)
{
    struct fake_answer answer = {
        .end = TRANSFER_REFUSED, .bytes = 10 * BLOCK, .stalls = true, .whole = true};

    drop_meanwhile(*state, &answer);
}

/* What has come is kept: the next transfer passes over it. */
UNIT_TEST_WITH(test_whole__breaks__goes_on_where_it_was, temp_setup, temp_teardown)
{
    struct failing failing = {2, {.end = TRANSFER_AGAIN, .bytes = 100 * BLOCK + 7, .whole = true}};
    struct stage_fixture f;

    open_usual(&f, *state);
    fake_set_script(f.fake, fail_first, &failing);
    stage_fixture_read(&f, 0, BLOCK);
    stage_fixture_read(&f, 0, SIZE);
    assert_int_equal(fake_started(f.fake), 3);
    assert_int_equal(fake_given(f.fake), SIZE);
    assert_int_equal(f.counters->demand_bytes, SIZE + 100 * BLOCK + 7);
    stage_fixture_close(&f);
}

static struct fake_answer whole_once_four_are_under_way(void *ctx, const struct transfer *transfer,
                                                        unsigned number)
{
    (void)transfer;
    if (number < 4)
        fake_wait_started(ctx, 4);
    return (struct fake_answer){.end = TRANSFER_DONE, .bytes = UINT64_MAX, .whole = true};
}

/* Many transfers are under way when the first finds it out: then one brings all. */
UNIT_TEST_WITH(test_whole__many_at_once__one_brings_all, temp_setup, temp_teardown)
{
    struct read_context rc;
    struct stage_fixture f;
    uint8_t buf[100];

    open_usual(&f, *state);
    fake_set_script(f.fake, whole_once_four_are_under_way, f.fake);
    read_context_init(&rc, true);
    for (uint64_t i = 30; i < 300; i += 30)
        assert_int_equal(blob_pread(&rc, f.blob, buf, sizeof(buf), i * BLOCK + 50), -EAGAIN);
    assert_int_equal(missing_wait(&rc, false, NULL), 0);
    read_context_release(&rc);
    stage_rest(f.stage); /* until bytes without a reader have also come */
    assert_int_equal(fake_given(f.fake), SIZE);
    assert_int_equal(f.counters->demand_bytes + f.counters->background_bytes, SIZE);
    assert_int_equal(fake_started(f.fake), 5);
    stage_fixture_close(&f);
}

UNIT_TEST_WITH(test_whole__larger_than_the_cache__takes_its_capacity, temp_setup, temp_teardown)
{
    struct failing failing = {UINT32_MAX,
                              {.end = TRANSFER_DONE, .bytes = UINT64_MAX, .whole = true}};
    struct stage_options options = stage_fixture_options();
    struct stage_fixture f;

    options.limit = 100 * BLOCK;
    options.limit_percent = 0;
    open_fixture(&f, *state, &options, NULL, NULL);
    fake_set_script(f.fake, fail_first, &failing);
    stage_fixture_read(&f, 0, BLOCK);
    stage_fixture_read(&f, 0, SIZE);
    assert_true(f.counters->staged_bytes > 20 * BLOCK && f.counters->staged_bytes <= options.limit);
    assert_true(quota_used(stage_quota(f.stage)) <= options.limit);
    stage_fixture_close(&f);
}

UNIT_TEST_WITH(test_whole__some_were_here__no_claim_is_left, temp_setup, temp_teardown)
{
    struct failing failing = {1, {.end = TRANSFER_DONE, .bytes = UINT64_MAX, .whole = true}};
    struct stage_fixture f, other;
    int fd;

    open_usual(&f, *state);
    stage_fixture_read(&f, 30 * BLOCK, BLOCK);
    fake_set_script(f.fake, fail_first, &(struct failing){2, failing.answer});
    stage_fixture_read(&f, 0, BLOCK);
    stage_fixture_read(&f, 0, SIZE);
    stage_rest(f.stage);
    fd = open_staged(*state);
    assert_false(is_claimed(fd, 0, 301));
    close(fd);
    open_usual(&other, *state);
    stage_fixture_read(&other, 0, SIZE);
    assert_int_equal(fake_given(other.fake), 0);
    stage_fixture_close(&other);
    stage_fixture_close(&f);
}

/* Some blocks came by themselves before it was found out: one transfer passes over them and brings
 * all others. */
UNIT_TEST_WITH(test_whole__holes__one_transfer_fills_all, temp_setup, temp_teardown)
{
    struct failing failing = {4, {.end = TRANSFER_DONE, .bytes = UINT64_MAX, .whole = true}};
    struct stage_fixture f;
    uint64_t used;

    open_usual(&f, *state);
    for (uint64_t i = 30; i < 300; i += 100)
        stage_fixture_read(&f, i * BLOCK, BLOCK);
    fake_set_script(f.fake, fail_first, &failing);
    stage_fixture_read(&f, 50 * BLOCK, BLOCK);
    stage_fixture_read(&f, 0, SIZE);
    assert_int_equal(fake_started(f.fake), 5);
    assert_int_equal(fake_given(f.fake), SIZE + 3 * BLOCK);
    assert_int_equal(f.counters->staged_bytes, SIZE);
    assert_int_equal(f.counters->distinct_bytes, SIZE);
    stage_rest(f.stage);
    used = quota_used(stage_quota(f.stage));
    assert_int_equal(quota_recount(stage_quota(f.stage)), 0);
    assert_true(used <= quota_used(stage_quota(f.stage)) + BLOCK); /* none was written again */
    stage_fixture_close(&f);
}

/* ---- the end ---- */

struct held {
    sem_t go;
};

/* The first transfer gives two blocks and fails when it is released; the second one waits. */
static struct fake_answer hold_second(void *ctx, const struct transfer *transfer, unsigned number)
{
    struct held *held = ctx;

    (void)transfer;
    if (!number)
        return (struct fake_answer){.end = TRANSFER_REFUSED, .bytes = 2 * BLOCK, .stalls = true};
    if (number == 1)
        sem_wait(&held->go);
    return (struct fake_answer){.end = TRANSFER_DONE, .bytes = UINT64_MAX};
}

/* A block that one run brought, and that was dropped since, belongs to another run when the first
 * ends. */
UNIT_TEST_WITH(test_run__fails_later__leaves_what_it_brought, temp_setup, temp_teardown)
{
    struct event first, second, third;
    struct held held;
    struct stage_fixture f;

    sem_init(&held.go, 0, 0);
    open_usual(&f, *state);
    fake_set_script(f.fake, hold_second, &held);
    event_init(&first);
    waiter_add(&first.waiter);
    blob_fetch(f.blob, 0, 10 * BLOCK, &first.waiter);
    waiter_done(&first.waiter, 0, NULL);
    stage_fixture_read(&f, 0, BLOCK);
    blob_done(f.blob); /* drops it, although a reader waits for it together with others */
    assert_int_equal(f.counters->staged_bytes, 0);
    event_init(&second);
    blob_fetch(f.blob, 0, BLOCK, &second.waiter);
    fake_wait_started(f.fake, 2);
    fake_release(f.fake);
    assert_int_equal(event_wait(&first), -EREMOTEIO);
    event_init(&third);
    blob_fetch(f.blob, 0, BLOCK, &third.waiter);
    sem_post(&held.go);
    assert_int_equal(event_wait(&second), 0);
    assert_int_equal(event_wait(&third), 0);
    assert_int_equal(fake_started(f.fake), 2);
    stage_fixture_read(&f, 0, BLOCK);
    stage_fixture_close(&f);
    sem_destroy(&held.go);
}

/* Whatever the thread is doing when the stage ends, every run is ended. */
UNIT_TEST_WITH(test_end__at_any_time__ends, temp_setup, temp_teardown)
{
    struct stage_options options = stage_fixture_options();
    struct stage_fixture f;

    options.background = true;
    for (unsigned i = 0; i < 200; i++) {
        open_fixture(&f, *state, &options, NULL, NULL);
        stage_begin(f.stage);
        for (volatile unsigned k = 0; k < i * 300; k++)
            continue;
        stage_fixture_close(&f);
    }
}

/* ---- fork ---- */

UNIT_TEST_WITH(test_rest__child_goes_on, temp_setup, temp_teardown)
{
    struct stage_fixture f;
    int status;
    pid_t child;

    open_usual(&f, *state);
    stage_fixture_read(&f, 0, 3 * BLOCK);
    stage_rest(f.stage);
    child = fork();
    if (!child) {
        uint8_t buf[100];
        int r = blob_pread(READ_WAITS, f.blob, buf, sizeof(buf), 100 * BLOCK);

        if (r == 0 && memcmp(buf, content + 100 * BLOCK, sizeof(buf)) == 0)
            r = blob_pread(READ_WAITS, f.blob, buf, sizeof(buf), 0);
        _exit(r != 0 || memcmp(buf, content, sizeof(buf)) != 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    stage_fixture_close(&f);
}

int unit_setup(void **state)
{
    (void)state;
    stage_fixture_content(content, sizeof(content));
    return 0;
}
