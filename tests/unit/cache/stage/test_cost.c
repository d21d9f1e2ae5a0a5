/* The stage's work for n waiting readers is proportional to n, not n * n; and the retry limit
 * counts from the last progress of what a reader waits for. The test turns the clock, and measures
 * no time. */
#include <errno.h>
#include <sched.h>
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
#define KIB   UINT64_C(1024)
#define MIB   (KIB * KIB)
#define MS    INT64_C(1000000)

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

UNIT_TEST_WITH(test_waits__ten_times_as_many__little_more_each, temp_setup, temp_teardown)
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
UNIT_TEST_WITH(test_patience__the_queue_moves__nobody_fails, temp_setup, temp_teardown)
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
UNIT_TEST_WITH(test_patience__nothing_moves__all_fail, temp_setup, temp_teardown)
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
UNIT_TEST_WITH(test_patience__another_file_failed__its_reason_is_not_ours, temp_setup,
               temp_teardown)
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

/* The error that a wait for the whole source gets. */
UNIT_TEST_WITH(test_wait__for_all__by_what_is_wrong, temp_setup, temp_teardown)
{
    const int64_t limit = 30 * TEST_S;
    static const struct {
        int full, untold, trouble, failed; /* errors */
        bool has_reason, is_staged;
        int64_t silent; /* ns more than the retry limit */
        int want;
        const char *text;
    } cases[] = {
        {.silent = 0},
        {.silent = 1},
        {.is_staged = true, .want = 1},
        {.full = -EAGAIN, .silent = 0},
        {.full = -EAGAIN, .silent = 1, .want = -EBUSY, .text = "another process drops blocks"},
        {.full = -ENOSPC, .want = -ENOSPC, .text = " is full: 7 of 16384000 bytes of the source"},
        {.full = -EDQUOT, .want = -ENOSPC, .text = " is full: 7 of 16384000 bytes of the source"},
        {.full = -EROFS, .want = -EROFS, .text = "a staged file cannot be written: Read-only"},
        {.full = -ENOSPC, .untold = -EBUSY, .want = -EBUSY, .text = "it is locked"},
        {.full = -EROFS, .untold = -EBUSY, .want = -EROFS, .text = "cannot be written"},
        {.full = -ENOSPC, .is_staged = true, .want = 1},
        {.trouble = -EREMOTEIO, .silent = 0},
        {.trouble = -EREMOTEIO, .silent = 1, .want = -EREMOTEIO, .text = "no way; waited 30 s"},
        {.trouble = -EACCES, .silent = 1, .want = -EACCES, .text = "no way; waited 30 s"},
        {.failed = -ESTALE, .want = -ESTALE, .text = "file: it was changed or removed"},
        {.failed = -ESTALE, .has_reason = true, .want = -ESTALE, .text = "or removed: gone"},
        {.failed = -ESTALE, .is_staged = true, .want = -ESTALE, .text = "it was changed"},
        {.failed = -EBADMSG, .want = -EBADMSG, .text = "is not what SHA256SUMS says"},
    };
    struct fixture f;
    struct stage *stage;
    struct file *file;

    open_fixture(&f, *state, 30, false);
    stage = f.s.stage;
    file = (struct file *)f.s.blob;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct diag d = DIAG_INIT;

        lock_take(&stage->lock);
        stage->full_error = cases[i].full;
        stage->untold_error = cases[i].untold;
        diag_set(&stage->untold, cases[i].untold, "it is locked");
        stage->trouble_error = cases[i].trouble;
        diag_set(&stage->trouble, cases[i].trouble, "no way");
        stage->background->all_staged = cases[i].is_staged;
        atomic_store(&file->failed, cases[i].failed);
        file_set_trouble_locked(file, cases[i].has_reason ? "gone" : NULL);
        atomic_store(&stage->counters.staged_bytes, 7);
        atomic_store(&stage->progress, stage_now(stage) - limit - cases[i].silent);
        lock_drop(&stage->lock);
        if (stage_wait(stage, 0, &d) != cases[i].want)
            fail_msg("case %zu: %s", i, d.text);
        if (cases[i].text)
            assert_diag_has(&d, cases[i].text);
    }
    lock_take(&stage->lock);
    stage->full_error = stage->untold_error = stage->trouble_error = 0;
    stage->background->all_staged = false;
    atomic_store(&file->failed, 0);
    atomic_store(&stage->counters.staged_bytes, 0);
    lock_drop(&stage->lock);
    close_fixture(&f);
}

static bool is_ahead_queued(struct fixture *f)
{
    LOCK_SCOPE(&f->s.stage->lock);

    return ((const struct file *)f->s.blob)->needs->ahead.is_queued;
}

/* What a reader in sequence will want is queued, not fetched, while readers that wait have all
 * connections. It is not fetched at all if the reader moves before that. */
UNIT_TEST_WITH(test_ahead__reader_moves__what_was_queued_is_not_fetched, temp_setup, temp_teardown)
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

static struct fake_answer stall_within_block(void *ctx, const struct transfer *transfer,
                                             unsigned number)
{
    (void)ctx;
    (void)transfer;
    return (struct fake_answer){
        .end = TRANSFER_DONE, .bytes = number ? BLOCK : BLOCK / 2, .stalls = !number};
}

/* Before a fork, a late run does not go on with its block: if that failed, no thread would try it
 * again, or end it. */
UNIT_TEST_WITH(test_rest__late_run__does_not_go_on, temp_setup, temp_teardown)
{
    struct waiting waiting = {0};
    const struct file *file;
    struct fixture f;

    open_fixture(&f, *state, 30, false);
    fake_set_script(f.s.fake, stall_within_block, NULL);
    ask_one(&f, &waiting, 0);
    fake_wait_stalled(f.s.fake, 1);
    file = (const struct file *)f.s.blob;
    lock_take(&f.s.stage->lock);
    TAILQ_FIRST(&f.s.stage->runs->active)->is_late = true;
    lock_drop(&f.s.stage->lock);
    test_clock_run(&f.clock, 10000 * MS);
    stage_rest(f.s.stage);
    test_clock_stand(&f.clock);
    assert_int_equal(f.failed, 1);
    assert_int_equal(file->runs->runs.n, 0);
    assert_int_equal(fake_started(f.s.fake), 1);
    close_fixture(&f);
}

/* The window ahead of a reader in sequence, after each of its reads. */
UNIT_TEST_WITH(test_ahead__reads_in_sequence__a_window_that_doubles, temp_setup, temp_teardown)
{
    static const struct {
        uint64_t off, len;    /* read */
        unsigned in_sequence; /* afterwards */
        uint64_t window, end; /* bytes of the window; byte where it ends */
        uint64_t at;          /* byte from which on the next read looks again; 0: none */
        uint64_t from, to;    /* blocks that are queued; 0: as before */
    } reads[] = {
        {0, BLOCK, 0, 0, 0, 0, 0, 0},
        {BLOCK, BLOCK, 1, 0, 0, 0, 0, 0},
        {2 * BLOCK, BLOCK, 2, 256 * KIB, 12 * KIB + 256 * KIB, 12 * KIB + 128 * KIB, 3, 67},
        {3 * BLOCK, BLOCK, 3, 512 * KIB, 16 * KIB + 512 * KIB, 16 * KIB + 256 * KIB, 3, 132},
        {4 * BLOCK, BLOCK, 4, MIB, 20 * KIB + MIB, 20 * KIB + 512 * KIB, 3, 261},
        {5 * BLOCK, BLOCK, 5, MIB, 20 * KIB + MIB, 20 * KIB + 512 * KIB, 3, 261}, /* enough is */
        {5 * BLOCK, BLOCK, 5, MIB, 20 * KIB + MIB, 20 * KIB + 512 * KIB, 3, 261}, /* the same */
        {20 * KIB + 1, BLOCK, 6, 2 * MIB, 24 * KIB + 1 + 2 * MIB, 24 * KIB + 1 + MIB, 3, 519},
        /* as far out of order as it may be: 4 MiB */
        {4 * MIB + 24 * KIB + 1, BLOCK, 7, 4 * MIB, 8 * MIB + 28 * KIB + 1, 6 * MIB + 28 * KIB + 1,
         3, 2056},
        {24 * KIB, 4 * KIB + 1, 7, 4 * MIB, 8 * MIB + 28 * KIB + 1, 6 * MIB + 28 * KIB + 1, 3,
         2056},
        {24 * KIB, 4 * KIB, 0, 0, 0, 0, 0, 0}, /* and further */
        /* not known to be in sequence: no further away than one more read */
        {36 * KIB, 8 * KIB, 1, 0, 0, 0, 0, 0},
        {52 * KIB + 1, 8 * KIB, 0, 0, 0, 0, 0, 0},
        {40 * KIB, 6 * KIB, 0, 0, 0, 0, 0, 0},
        {46 * KIB, 2 * KIB, 1, 0, 0, 0, 0, 0},
        {52 * KIB, 2 * KIB, 2, 256 * KIB, 54 * KIB + 256 * KIB, 54 * KIB + 128 * KIB, 13, 78},
        {SIZE - 64 * KIB, BLOCK, 0, 0, 0, 0, 0, 0},
        {SIZE - 60 * KIB, BLOCK, 1, 0, 0, 0, 0, 0},
        {SIZE - 56 * KIB, BLOCK, 2, 256 * KIB, SIZE, 0, SIZE / BLOCK - 13, SIZE / BLOCK},
        {SIZE - 52 * KIB, BLOCK, 3, 512 * KIB, SIZE, 0, SIZE / BLOCK - 13, SIZE / BLOCK},
    };
    struct fixture f;
    struct file *file;
    const struct file_needs *n;

    open_fixture(&f, *state, 30, false);
    file = (struct file *)f.s.blob;
    n = file->needs;
    lock_take(&f.s.stage->lock);
    for (size_t i = 0; i < ARRAY_LEN(reads); i++) {
        needs_ahead_locked(file, reads[i].off, reads[i].len);
        if (n->in_sequence != reads[i].in_sequence || n->ahead_bytes != reads[i].window ||
            n->ahead_end != reads[i].end ||
            atomic_load(&file->ahead_at) != (reads[i].at ? reads[i].at : UINT64_MAX) ||
            n->ahead.is_queued != (reads[i].to > 0) ||
            (reads[i].to && (n->ahead.at != reads[i].from || n->ahead.end != reads[i].to)))
            fail_msg("read %zu: %u, %llu, %llu, %llu, %llu to %llu", i, n->in_sequence,
                     (unsigned long long)n->ahead_bytes, (unsigned long long)n->ahead_end,
                     (unsigned long long)atomic_load(&file->ahead_at),
                     (unsigned long long)n->ahead.at, (unsigned long long)n->ahead.end);
    }
    needs_ahead_ended_locked(file, 5, 15, true); /* again, from there on */
    assert_int_equal(n->ahead.at, 5);
    needs_ahead_ended_locked(file, 5, 15, false); /* behind it */
    assert_int_equal(n->ahead.at, 15);
    needs_ahead_ended_locked(file, 5, 15, false); /* it is not in there */
    needs_ahead_ended_locked(file, 16, 26, false);
    needs_ahead_ended_locked(file, SIZE / BLOCK, SIZE, true);
    assert_int_equal(n->ahead.at, 15);
    needs_ahead_ended_locked(file, 15, SIZE, false);
    assert_int_equal(n->ahead.at, SIZE / BLOCK);
    f.s.stage->options.no_ahead = true;
    needs_ahead_locked(file, 0, BLOCK);
    assert_int_equal(n->in_sequence, 3);
    lock_drop(&f.s.stage->lock);
    close_fixture(&f);
}

/* What readers wait for among some blocks. The transfers stand still. */
UNIT_TEST_WITH(test_needs__among_blocks__of_waits_only, temp_setup, temp_teardown)
{
    static const struct {
        uint64_t first, end, pieces, unwanted; /* blocks */
        uint64_t from, to;                     /* bytes that are waited for; both 0: none */
    } cases[] = {
        {0, 100, 2, 13, 10 * BLOCK + 7, 16 * BLOCK},
        {10, 100, 1, 3, 10 * BLOCK + 7, 16 * BLOCK},
        {0, 10, 0, 0, 0, 0},
        {0, 11, 1, 10, 10 * BLOCK + 7, 11 * BLOCK},
        {11, 16, 1, 3, 11 * BLOCK, 16 * BLOCK},
        {11, 13, 0, 0, 11 * BLOCK, 11 * BLOCK + 9},
        {13, 14, 0, 0, 13 * BLOCK, 14 * BLOCK}, /* ahead */
        {12, 13, 0, 0, 0, 0},
        {16, SIZE / BLOCK, 0, 0, 0, 0},
    };
    struct waiting waiting[3] = {0};
    struct fixture f;
    struct file *file;

    open_fixture(&f, *state, 30, false);
    file = (struct file *)f.s.blob;
    waiting[1].waiter.ahead = true;
    for (unsigned i = 0; i < 3; i++) {
        waiting[i].f = &f;
        waiting[i].waiter.done = waiting_done;
        atomic_store(&waiting[i].waiter.pending, 1);
    }
    blob_fetch(f.s.blob, 10 * BLOCK + 7, BLOCK + 2, &waiting[0].waiter);
    blob_fetch(f.s.blob, 13 * BLOCK, BLOCK, &waiting[1].waiter);
    blob_fetch(f.s.blob, 15 * BLOCK, BLOCK, &waiting[2].waiter);
    for (unsigned i = 0; i < 3; i++)
        waiter_done(&waiting[i].waiter, 0, NULL);
    lock_take(&f.s.stage->lock);
    assert_int_equal(needs_waits_locked(f.s.stage), 3);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t first = cases[i].first, end = cases[i].end, unwanted, from, to;
        uint64_t pieces = needs_unwanted_locked(file, first, end, &unwanted);

        needs_bytes_locked(file, first, end, &from, &to);
        if (pieces != cases[i].pieces || unwanted != cases[i].unwanted * BLOCK ||
            needs_wait_locked(file, first, end) != (cases[i].to > 0) ||
            (cases[i].to ? from != cases[i].from || to != cases[i].to : from <= to))
            fail_msg("case %zu: %llu, %llu, %llu to %llu", i, (unsigned long long)pieces,
                     (unsigned long long)unwanted, (unsigned long long)from,
                     (unsigned long long)to);
    }
    assert_true(needs_end_a_wait_locked(file, 10, 12) && needs_end_a_wait_locked(file, 0, 14));
    assert_true(!needs_end_a_wait_locked(file, 10, 11) && !needs_end_a_wait_locked(file, 11, 13));
    assert_true(needs_end_a_wait_locked(file, 11, 14)); /* the second one */
    lock_drop(&f.s.stage->lock);
    let_pass(&f, UINT32_MAX);
    wait_over(&f, 3);
    close_fixture(&f);
}

/* The second read of what was just given up fails at once, unless something has come since. */
UNIT_TEST_WITH(test_needs__given_up__for_a_second, temp_setup, temp_teardown)
{
    static const struct {
        uint64_t first, end;
        int64_t later, came; /* ns after it was given up: the read; bytes of any run */
        bool want;
    } cases[] = {{4, 5, 1, -1, false},
                 {4, 6, 1, -1, true},
                 {6, 9, 1, -1, true},
                 {7, 8, 1, -1, false},
                 {5, 7, 1000 * MS - 1, -1, true},
                 {5, 7, 1000 * MS, -1, false},
                 {5, 7, 1, 0, false},
                 {5, 7, 1, 1, false}};
    struct fixture f;
    struct file *file;
    int64_t now;

    open_fixture(&f, *state, 30, false);
    file = (struct file *)f.s.blob;
    now = stage_now(f.s.stage);
    file->needs->gave_up_first = 5;
    file->needs->gave_up_end = 7;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wait w = {.blocks = {.first = cases[i].first, .end = cases[i].end},
                         .need = {.file = file}};

        file->needs->gave_up = now - cases[i].later;
        atomic_store(&f.s.stage->progress, file->needs->gave_up + cases[i].came);
        assert_int_equal(has_given_up(&w), cases[i].want);
    }
    file->needs->gave_up = 0;
    assert_int_equal(file_take(file, NULL), 0);
    look_at_blocks(file, 2, 4); /* what was looked at is known to be absent */
    assert_int_equal(file_state(file, 1), BLOCK_UNKNOWN);
    assert_int_equal(file_state(file, 2), BLOCK_ABSENT);
    assert_int_equal(file_state(file, 3), BLOCK_ABSENT);
    file_put(file);
    close_fixture(&f);
}

/* ---- runs ---- */

/* The run of a file that comes whole has all that is missing, up to what others bring. */
UNIT_TEST_WITH(test_run__whole__widened, temp_setup, temp_teardown)
{
    struct wait *over = NULL;
    struct fixture f;
    struct stage *stage;
    struct file *file;
    struct run *run;

    open_fixture(&f, *state, 30, false);
    stage = f.s.stage;
    file = (struct file *)f.s.blob;
    lock_take(&stage->lock);
    file->version.whole_only = true;
    file_set_locked(file, 5, BLOCK_ELSEWHERE);
    file_set_locked(file, 8, BLOCK_HERE);
    file_flag_locked(file, 9, BLOCK_PASSED, true);
    file_set_locked(file, 12, BLOCK_HERE);
    file_set_locked(file, 20, BLOCK_COMING);
    run = run_make_locked(file, 10, 1, RUN_DEMAND, stage_now(stage));
    assert_true(run->blocks.first == 6 && run->blocks.end == 20 && run->at == 6);
    for (uint64_t b = 6; b < 20; b++)
        assert_int_equal(file_state(file, b) == BLOCK_COMING, b != 8 && b != 9 && b != 12);
    assert_true(run_must_wait_locked(file) && !file_may_run_locked(file, stage_now(stage)));
    run_sleep_locked(run, stage_now(stage) + 5);
    assert_int_equal(runs_next_alarm_locked(stage, stage_now(stage) + 4), stage_now(stage) + 5);
    assert_int_equal(runs_next_alarm_locked(stage, stage_now(stage) + 5), INT64_MAX);
    run_leave_locked(run, 0, &over);
    assert_int_equal(file_state(file, 6), BLOCK_ABSENT);
    assert_int_equal(file_state(file, 8), BLOCK_HERE);
    file_set_locked(file, 5, BLOCK_UNKNOWN);
    file_set_locked(file, 20, BLOCK_UNKNOWN);
    lock_drop(&stage->lock);
    assert_null(over);
    runs_free_dead(stage);
    close_fixture(&f);
}

/* While a reader waits, one run of the background goes on, and the others pause. */
UNIT_TEST_WITH(test_run__of_a_reader__the_background_shares, temp_setup, temp_teardown)
{
    struct stage_options options = stage_fixture_options();
    struct waiting waiting = {0};
    struct fixture f = {0};
    const struct stage_fixture_remote remote = {
        .content = content, .size = SIZE, .threads = 8, .script = in_turn, .ctx = &f};
    unsigned n[2];
    const struct run *run;

    test_clock_init(&f.clock);
    lock_init(&f.lock);
    condition_init(&f.changed);
    options.background = true;
    options.clock = &f.clock.clock;
    stage_fixture_open(&f.s, *state, &options, &remote);
    stage_begin(f.s.stage);
    fake_wait_started(f.s.fake, 3); /* one of four places is for readers */
    ask_one(&f, &waiting, SIZE / BLOCK - 1);
    fake_wait_started(f.s.fake, 4);
    do { /* the stage's thread pauses them after it has started the reader's */
        sched_yield();
        n[0] = n[1] = 0;
        lock_take(&f.s.stage->lock);
        TAILQ_FOREACH (run, &f.s.stage->runs->active, link) {
            assert_true(!run->paused || (run->why == RUN_BACKGROUND && run->was_paused));
            n[run->paused] += run->why == RUN_BACKGROUND;
        }
        lock_drop(&f.s.stage->lock);
        assert_true(n[0] + n[1] == 3);
    } while (n[1] < 2);
    assert_int_equal(n[0], 1);
    let_pass(&f, UINT32_MAX);
    wait_over(&f, 1);
    close_fixture(&f);
}

/* Small transfers of the background have half of the connections. */
UNIT_TEST_WITH(test_jobs__background__half_of_all, temp_setup, temp_teardown)
{
    const struct stage_fixture_remote remote = {.content = content, .size = SIZE, .threads = JOBS};
    struct stage_options options = stage_fixture_options();
    struct stage_fixture s;

    options.small_jobs = 48;
    stage_fixture_open(&s, *state, &options, &remote);
    lock_take(&s.stage->lock);
    for (unsigned active = 21; active < 25; active++) {
        s.stage->runs->n_active = active; /* none of which is large */
        assert_int_equal(runs_have_place_locked(s.stage), active < 23);
    }
    s.stage->runs->n_active = 0;
    lock_drop(&s.stage->lock);
    stage_fixture_close(&s);
}

/* ---- how fast the remote is ---- */

static bool is_about(double x, double want)
{
    return x > want * 0.999999 && x < want * 1.000001;
}

UNIT_TEST_WITH(test_speed__measured__adapts, temp_setup, temp_teardown)
{
    static const struct {
        uint64_t first_bytes, bytes;
        int64_t first_at, waited, end; /* ms after it began */
        bool crowded, paused;
        uint64_t run_bytes; /* afterwards */
        double wait_ns, byte_ns, wait_least, byte_least;
    } cases[] = {
        /* 1 MiB in 100 ms: 2 MiB in 200 */
        {0, MIB, 10, 10, 100, false, false, (3 * MIB + 2 * MIB) / 4, 10e6,
         50 + (90e6 / MIB - 50) / 4, 10e6, 90e6 / MIB},
        /* as much as a connection may have, and as little */
        {MIB, MIB, 10, 0, 11, false, false, (3 * MIB + 8 * MIB) / 4, 1, 50, 10e6, 0},
        {0, BLOCK, 10, 10, 1000000, false, false, (3 * MIB + 2 * BLOCK) / 4, 10e6, 50, 10e6, 0},
        {0, BLOCK - 1, 10, 10, 100, false, false, MIB, 10e6, 50, 10e6, 0},
        {0, 0, 0, 0, 100, false, false, MIB, 0, 50, 0, 0},
        {0, MIB, 10, 10, 0, false, false, MIB, 10e6, 50, 10e6, 0},
        /* fewer bytes than give a speed, and enough */
        {BLOCK, 64 * KIB + BLOCK - 1, 10, 10, 100, false, false,
         (3 * MIB + (64 * KIB + BLOCK - 1) * 2) / 4, 10e6, 50, 10e6, 0},
        {BLOCK, 64 * KIB + BLOCK, 10, 10, 100, false, false, (3 * MIB + (64 * KIB + BLOCK) * 2) / 4,
         10e6, 50 + (90e6 / (64 * KIB) - 50) / 4, 10e6, 90e6 / (64 * KIB)},
        /* not while others are under way, or it was paused */
        {0, MIB, 10, 10, 100, true, false, (3 * MIB + 2 * MIB) / 4, 0, 50, 10e6, 90e6 / MIB},
        {0, MIB, 10, 10, 100, false, true, (3 * MIB + 2 * MIB) / 4, 0, 50, 0, 0},
        {0, MIB, -1, 10, 100, false, false, (3 * MIB + 2 * MIB) / 4, 0, 50, 0, 0},
    };
    struct stage_fixture s;
    struct speed *speed;
    const struct stage_fixture_remote remote = {.content = content, .size = SIZE, .threads = JOBS};
    struct stage_options options = stage_fixture_options();

    options.far_ms = 5;
    stage_fixture_open(&s, *state, &options, &remote);
    speed = s.stage->speed;
    lock_take(&s.stage->lock);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct run run = {.file = (struct file *)s.blob,
                          .first_bytes = cases[i].first_bytes,
                          .bytes = cases[i].bytes,
                          .first_at = 5 * MS + cases[i].first_at * MS,
                          .began = 5 * MS,
                          .waited = cases[i].waited * MS,
                          .crowded = cases[i].crowded,
                          .was_paused = cases[i].paused};

        *speed = (struct speed){.run_bytes = MIB, .byte_ns = 50};
        speed_measure_locked(s.stage, &run, 5 * MS + cases[i].end * MS);
        if (speed->run_bytes + 1 < cases[i].run_bytes || /* a double is rounded */
            speed->run_bytes > cases[i].run_bytes ||
            !(speed->wait_ns == cases[i].wait_ns || is_about(speed->wait_ns, cases[i].wait_ns)) ||
            !is_about(speed->byte_ns, cases[i].byte_ns) ||
            speed->wait_least != cases[i].wait_least ||
            !(speed->byte_least == cases[i].byte_least ||
              is_about(speed->byte_least, cases[i].byte_least)))
            fail_msg("case %zu: %llu, %f, %f, %f, %f", i, (unsigned long long)speed->run_bytes,
                     speed->wait_ns, speed->byte_ns, speed->wait_least, speed->byte_least);
    }
    /* Later ones count an eighth, or a quarter; of a crowd only those that waited less. */
    for (unsigned i = 0; i < 4; i++) {
        struct run run = {.file = (struct file *)s.blob,
                          .bytes = MIB,
                          .first_at = 20 * MS,
                          .waited = i % 2 ? 4 * MS : 20 * MS,
                          .crowded = i >= 2};

        *speed =
            (struct speed){.wait_ns = 12e6, .byte_ns = 50, .wait_least = 30e6, .byte_least = 1};
        speed_measure_locked(s.stage, &run, 120 * MS);
        assert_true(is_about(speed->wait_ns, i == 0 ? 13e6 : i == 2 ? 12e6 : 11e6));
        assert_true(is_about(speed->byte_ns, i < 2 ? 50 + (100e6 / MIB - 50) / 4 : 50));
        assert_true(speed->wait_least == 20e6 && is_about(speed->byte_least, 1 + 1.0 / 8192));
    }
    /* How many bytes are worth a transfer, and which are few. */
    *speed = (struct speed){.wait_ns = 5e6, .byte_ns = 50, .run_bytes = 3 * MIB};
    assert_int_equal(runs_worth_locked(s.stage), 100000);
    assert_true(speed_is_small_locked(s.stage, RUN_DEMAND, 100000));
    assert_false(speed_is_small_locked(s.stage, RUN_AHEAD, 100001));
    assert_true(speed_is_small_locked(s.stage, RUN_BACKGROUND, 12500));
    assert_false(speed_is_small_locked(s.stage, RUN_BACKGROUND, 12501));
    speed->wait_ns = 4.9e6; /* it is near */
    assert_false(speed_is_small_locked(s.stage, RUN_DEMAND, 1));
    speed->wait_ns = 50e6;
    assert_true(speed_is_small_locked(s.stage, RUN_DEMAND, 256 * KIB));
    assert_false(speed_is_small_locked(s.stage, RUN_DEMAND, 256 * KIB + 1));
    assert_int_equal(run_bytes_locked(s.stage, false), 3 * MIB);
    assert_int_equal(run_bytes_locked(s.stage, true), MIB);
    s.stage->options.rate = 2 * MIB;
    assert_int_equal(run_bytes_locked(s.stage, false), MIB / 2);
    speed_spend_locked(s.stage, 100 * NS_PER_S, MIB); /* half a second, since at most one ago */
    assert_int_equal(speed_budget_locked(s.stage), 99 * NS_PER_S + NS_PER_S / 2);
    speed_spend_locked(s.stage, 100 * NS_PER_S, 2 * MIB);
    assert_int_equal(speed_budget_locked(s.stage), 100 * NS_PER_S + NS_PER_S / 2);
    lock_drop(&s.stage->lock);
    stage_fixture_close(&s);
}

/* A request to a near remote brings what comes in a millisecond. */
UNIT_TEST_WITH(test_speed__near__worth_of_a_request, temp_setup, temp_teardown)
{
    static const struct {
        double wait_least, wait_ns, byte_least;
        uint64_t near, far; /* bytes, of a near remote and of any */
    } cases[] = {
        {0, 0, 0, 0, 0},
        {0, 1e6, 10, 0, 0}, /* not measured */
        {1e6, 1e6, 10, 100000, 100000},
        {1e6, 1e6, 0, 128 * KIB, 128 * KIB},
        {4.9e6, 9e6, 10, 100000, 100000},
        {9e6, 4.9e6, 10, 100000, 100000},
        {5e6, 5e6, 10, 0, 100000},
    };
    struct stage_fixture s;
    const struct stage_fixture_remote remote = {.content = content, .size = SIZE, .threads = JOBS};
    struct stage_options options = stage_fixture_options();

    options.far_ms = 5;
    stage_fixture_open(&s, *state, &options, &remote);
    lock_take(&s.stage->lock);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        *s.stage->speed = (struct speed){.wait_ns = cases[i].wait_ns,
                                         .wait_least = cases[i].wait_least,
                                         .byte_least = cases[i].byte_least};
        assert_int_equal(speed_near_worth_locked(s.stage, false), cases[i].near);
        assert_int_equal(speed_near_worth_locked(s.stage, true), cases[i].far);
    }
    lock_drop(&s.stage->lock);
    stage_fixture_close(&s);
}

/* ---- which blocks are needed last ---- */

/* A forecast with a time for each block. */
struct timed {
    struct stage_needs needs;
    uint64_t time[SIZE / BLOCK];
    unsigned asked;
};

static void timed_when(void *ctx, size_t n, struct stage_need *need)
{
    struct timed *timed = ctx;

    timed->asked += (unsigned)n;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(need[i].len, BLOCK);
        need[i].when = timed->time[need[i].off / BLOCK];
    }
}

static struct timed timed = {.needs = {.next = NULL, .when = timed_when, .ctx = &timed}};

static void open_keeping(struct stage_fixture *s, const char *folder, uint64_t limit)
{
    const struct stage_fixture_remote remote = {.content = content, .size = SIZE, .threads = JOBS};
    struct stage_options options = stage_fixture_options();

    options.keep = STAGE_PLAN;
    options.jobs = JOBS;
    options.limit = limit;
    options.limit_percent = 0;
    options.own_limit = limit / 2;
    stage_fixture_open(s, folder, &options, &remote);
    stage_set_needs(s->stage, &timed.needs);
}

/* The latest ones are those of the times [last - n + 1, last], and that many were asked for. */
static void expect_latest(struct stage *stage, size_t remembered, size_t capacity, size_t n,
                          uint64_t last, unsigned least, unsigned most)
{
    AUTO_FREE struct victim *list = calloc(2 * capacity, sizeof(*list));

    timed.asked = 0;
    assert_int_equal(latest_find(stage, &timed.needs, remembered, list, capacity), n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(list[i].when, last - i);
        assert_int_equal(timed.time[list[i].block], last - i);
        assert_int_equal(list[i].in_memory, list[i].block >= 1000);
    }
    assert_in_range(timed.asked, least, most);
}

UNIT_TEST_WITH(test_keep__needed_sooner_than_listed__no_victims, temp_setup, temp_teardown)
{
    struct victim group[GROUP] = {{NULL}};
    struct stage_fixture s;

    open_keeping(&s, *state, UINT64_C(1) << 30);
    timed.asked = 0;
    for (uint64_t b = 0; b < TOGETHER + 9; b++) {
        group[b] = (struct victim){.file = (struct file *)s.blob, .block = b, .when = 7};
        timed.time[b] = 6 + b % 3;
    }
    assert_int_equal(check_again(&timed.needs, group, TOGETHER + 9), 48);
    assert_int_equal(timed.asked, TOGETHER + 9);
    for (uint64_t i = 0; i < 48; i++)
        assert_int_equal(group[i].block, i / 2 * 3 + i % 2 + 1);
    stage_fixture_close(&s);
}

UNIT_TEST_WITH(test_keep__latest__found_with_few_questions, temp_setup, temp_teardown)
{
    struct stage_fixture s;
    struct file *file;

    open_keeping(&s, *state, UINT64_C(1) << 30);
    file = (struct file *)s.blob;
    lock_take(&s.stage->lock);
    for (uint64_t b = 0; b < 1000; b++) {
        file_set_locked(file, b, BLOCK_HERE);
        timed.time[b] = 1 + b * 617 % 1000; /* each of 1 to 1000 once */
    }
    lock_drop(&s.stage->lock);
    expect_latest(s.stage, 0, 16, 16, 1000, 1000, 1000);
    expect_latest(s.stage, 0, 2000, 1000, 1000, 1000, 1000);
    expect_latest(s.stage, 1000, 16, 16, 1000, 1, 20); /* nothing has passed */
    for (uint64_t b = 0; b < 1000; b++) /* half of them were read, and are needed again */
        timed.time[b] += timed.time[b] <= 500 ? 1000 : 0;
    expect_latest(s.stage, 1000, 16, 16, 1500, 500, 530);
    for (uint64_t b = 1000; b < 1003; b++) { /* three in memory */
        timed.time[b] = b + 501;
        overflow_add(s.stage->overflow, file, b, content, 0, BLOCK, false);
    }
    expect_latest(s.stage, 1000, 16, 16, 1503, 3, 23);
    expect_latest(s.stage, 0, 1, 1, 1503, 1003, 1003);
    for (uint64_t b = 0; b < 1003; b++) /* all has passed */
        timed.time[b] += 2000;
    expect_latest(s.stage, 1000, 3, 3, 3503, 1003, 1020);
    stage_fixture_close(&s);
}

/* All times are asked for by the first list, by each after a jump, and by every 256th. */
UNIT_TEST_WITH(test_keep__lists__ask_for_all_now_and_then, temp_setup, temp_teardown)
{
    struct stage_fixture s;

    open_keeping(&s, *state, UINT64_C(1) << 30);
    lock_take(&s.stage->lock);
    for (uint64_t b = 0; b < 1000; b++) {
        file_set_locked((struct file *)s.blob, b, BLOCK_HERE);
        timed.time[b] = 1 + b * 617 % 1000;
    }
    lock_drop(&s.stage->lock);
    for (unsigned i = 0; i < 260; i++) {
        bool jumps = i == 2, all = i == 4;

        timed.asked = 0;
        s.stage->jumps += jumps;
        list_victims(s.stage, &timed.needs, all);
        if (i == 0 || jumps || all || i == 258) /* 2 and 4 are none of the 256 */
            assert_in_range(timed.asked, 1000, 1020);
        else
            assert_in_range(timed.asked, 1, 20);
        assert_int_equal(s.stage->keeping->n, LIST_LEAST);
        assert_int_equal(s.stage->keeping->victim[0].when, 1000);
        assert_int_equal(s.stage->keeping->at, 0);
    }
    stage_fixture_close(&s);
}

/* All is needed now while it is not known when: some are listed, and not asked for again. */
UNIT_TEST_WITH(test_keep__all_is_needed_now__some_are_listed, temp_setup, temp_teardown)
{
    struct stage_fixture s;

    open_keeping(&s, *state, UINT64_C(1) << 30);
    lock_take(&s.stage->lock);
    for (uint64_t b = 0; b < 1000; b++) {
        file_set_locked((struct file *)s.blob, b, BLOCK_HERE);
        timed.time[b] = 0;
    }
    lock_drop(&s.stage->lock);
    list_victims(s.stage, &timed.needs, true);
    assert_int_equal(s.stage->keeping->n, LIST_LEAST);
    assert_int_equal(s.stage->keeping->victim[0].when, 0);
    stage_fixture_close(&s);
}

/* A new list is made before the old one is used up, and only where blocks are dropped. */
UNIT_TEST_WITH(test_keep__few_are_listed__listed_again, temp_setup, temp_teardown)
{
    static const struct {
        bool is_full, cannot, jumps;
        size_t at;
        bool want;
    } cases[] = {{true, false, false, 3, false},
                 {true, false, false, 4, true},
                 {false, false, false, 4, false},
                 {true, true, false, 4, false},
                 {true, false, true, 0, true}};
    struct stage_fixture s;
    struct keeping *k;

    open_keeping(&s, *state, UINT64_C(1) << 30);
    k = s.stage->keeping;
    lock_take(&s.stage->lock);
    for (uint64_t b = 0; b < 100; b++) {
        file_set_locked((struct file *)s.blob, b, BLOCK_HERE);
        timed.time[b] = 1 + b;
    }
    lock_drop(&s.stage->lock);
    list_victims(s.stage, &timed.needs, true);
    assert_int_equal(k->n, 4);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        unsigned passes = k->passes;

        k->is_full = cases[i].is_full;
        k->cannot = cases[i].cannot;
        k->at = cases[i].at;
        s.stage->jumps += cases[i].jumps;
        keep_prepare(s.stage);
        assert_int_equal(k->at, cases[i].want ? 0 : cases[i].at);
        assert_int_equal(k->passes > passes || k->jumps > 0, cases[i].want);
    }
    stage_fixture_close(&s);
}

/* Blocks 0, 3 and 6 of two files are dropped, and those between were looked at. */
UNIT_TEST_WITH(test_drops__blocks_between__each_one, temp_setup, temp_teardown)
{
    struct stage_fixture s;
    struct file *file[2];
    uint8_t byte;

    open_keeping(&s, *state, UINT64_C(1) << 30);
    file[0] = (struct file *)s.blob;
    file[1] = (struct file *)stage_fixture_add(&s, "fake://other");
    for (unsigned again = 0; again < 2; again++) {
        struct victim group[6];

        for (unsigned i = 0; i < 6; i++) {
            group[i] = (struct victim){.file = file[i % 2], .block = i / 2 * 3};
            assert_int_equal(
                blob_read(READ_WAITS, &file[i % 2]->blob, &byte, 1, i / 2 * 3 * BLOCK, NULL), 0);
        }
        fake_wait_idle(s.fake);
        for (unsigned k = 0; k < 2 && !again; k++) {
            assert_int_equal(file_take(file[k], NULL), 0);
            look_at_blocks(file[k], 0, 7);
            assert_int_equal(file_drop_ranges(file[k], &(struct staged_range){0, 7}, 1), 0);
            file_put(file[k]);
        }
        if (again)
            drop_group(s.stage, group, 6);
        for (unsigned i = 0; i < 6; i++)
            assert_int_equal(file_state(file[i % 2], i / 2 * 3), BLOCK_ABSENT);
        assert_int_equal(s.counters->evictions, again ? 12 : 6);
        assert_int_equal(s.counters->staged_bytes, 0);
    }
    stage_fixture_close(&s);
}

/* Ranges of stale bytes that touch are one, if they have one error. */
UNIT_TEST_WITH(test_stale__ranges_that_touch__count_once, temp_setup, temp_teardown)
{
    static const struct {
        uint64_t off, n;
        int error, result;
        uint64_t bytes; /* of block 0, afterwards */
        int first;      /* the error of byte 0 */
    } adds[] = {{5, 15, -ESTALE, 1, 15, 0},
                {0, 10, -ESTALE, 1, 20, -ESTALE},
                {3, 4, -EACCES, 0, 20, -ESTALE},
                {20, 10, -EACCES, 1, 30, -ESTALE},
                {30, 5, -EACCES, 1, 35, -ESTALE},
                {18, 4, -EACCES, 1, 35, -EACCES},
                {BLOCK - 1, 2, -ESTALE, 1, 36, -EACCES}};
    struct stage_fixture s;
    struct file *file;

    open_keeping(&s, *state, UINT64_C(1) << 30);
    file = (struct file *)s.blob;
    for (size_t i = 0; i < ARRAY_LEN(adds); i++) {
        assert_int_equal(file_add_stale(file, adds[i].off, adds[i].n, adds[i].error, NULL),
                         adds[i].result);
        lock_take(&s.stage->lock);
        assert_int_equal(file_stale_bytes_locked(file, 0), adds[i].bytes);
        lock_drop(&s.stage->lock);
        assert_int_equal(file_stale_error(file, 0, 1), adds[i].first);
    }
    stage_fixture_close(&s);
}

/* How much look-ahead may displace: a 32nd of what is cached, or what two rounds of transfers
 * bring, but no more than an eighth. */
UNIT_TEST_WITH(test_keep__ahead__displaces_little, temp_setup, temp_teardown)
{
    static const struct {
        bool is_full;
        uint64_t staged;
        double wait_ns; /* byte_ns is 10 */
        uint64_t ahead; /* bytes that it has displaced */
        uint64_t left;
    } cases[] = {
        {false, 32 * MIB, 0, 0, UINT64_MAX}, {true, 32 * MIB, 0, 0, MIB},
        {true, 32 * MIB, 2e6, 0, MIB},       {true, 32 * MIB, 5e6, 0, 2000000},
        {true, 32 * MIB, 5e6, 1999999, 1},   {true, 32 * MIB, 5e6, 2000000, 0},
        {true, 32 * MIB, 1e9, 0, 4 * MIB},   {true, 7, 1e9, 0, 1},
        {true, 32 * MIB, 0, MIB + 1, 0},
    };
    struct stage_need need = {.len = BLOCK};
    struct stage_fixture s;
    struct keeping *k;

    open_keeping(&s, *state, UINT64_C(1) << 30);
    k = s.stage->keeping;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        k->is_full = cases[i].is_full;
        k->ahead_bytes = cases[i].ahead;
        atomic_store(&s.counters->staged_bytes, cases[i].staged);
        s.stage->speed->wait_ns = cases[i].wait_ns;
        s.stage->speed->byte_ns = 10;
        assert_int_equal(keep_ahead_left(s.stage), cases[i].left);
    }
    k->ahead_bytes = 5 * MIB; /* of before a jump: nothing is known of it any more */
    s.stage->jumps = 1;
    assert_int_equal(keep_ahead_left(s.stage), MIB);
    assert_int_equal(k->ahead_bytes, 0);
    k->ahead_bytes = MIB / 2; /* and of after it */
    assert_int_equal(keep_ahead_left(s.stage), MIB / 2);
    need.blob = s.blob;
    assert_int_equal(keep_take_ahead(s.stage, &need, BLOCK), 0); /* no run begins with it */
    assert_int_equal(keep_ahead_left(s.stage), MIB / 2);
    keep_note_ahead(s.stage, BLOCK);
    assert_int_equal(keep_ahead_left(s.stage), MIB / 2 - BLOCK);
    timed.time[0]++; /* its reader passes */
    assert_int_equal(keep_ahead_left(s.stage), MIB / 2);
    assert_int_equal(keep_take_ahead(s.stage, &need, BLOCK), 0);
    timed.time[0]++; /* before its run is noted */
    keep_note_ahead(s.stage, BLOCK);
    assert_int_equal(keep_ahead_left(s.stage), MIB / 2);
    timed.time[0] -= 2;
    quota_give_back(s.stage->quota, UINT64_C(2) * BLOCK);
    atomic_store(&s.counters->staged_bytes, 0);
    stage_fixture_close(&s);
}

/* Can the cache hold all, a 32nd more for its records, and what else is in the folder? */
UNIT_TEST_WITH(test_keep__holds_all__by_sizes, temp_setup, temp_teardown)
{
    const uint64_t limit = 128 * MIB;
    struct stage_fixture s;
    uint64_t others, total;

    open_keeping(&s, *state, limit);
    others = quota_used(s.stage->quota);
    for (unsigned i = 0; i < 4; i++) { /* its own limit, then that of the folder */
        total = (i < 2 ? limit / 2 : limit - others) / 33 * 32 + i % 2 * 32;
        s.stage->options.own_limit = i < 2 ? limit / 2 : 0;
        atomic_store(&s.counters->total_bytes, total);
        s.stage->keeping->holds_at = 0;
        keep_look(s.stage, 5 * NS_PER_S);
        assert_int_equal(keep_holds_all(s.stage), i % 2 == 0);
    }
    atomic_store(&s.counters->total_bytes, 0);
    keep_look(s.stage, 6 * NS_PER_S - 1); /* not again within a second */
    assert_false(keep_holds_all(s.stage));
    keep_look(s.stage, 6 * NS_PER_S);
    assert_true(keep_holds_all(s.stage));
    stage_fixture_close(&s);
}

/* ---- when the background works ---- */

UNIT_TEST_WITH(test_background__when__by_what_it_waits_for, temp_setup, temp_teardown)
{
    struct fixture f;
    struct stage *stage;
    struct background *b;

    open_fixture(&f, *state, 30, true);
    stage = f.s.stage;
    b = stage->background;
    lock_take(&stage->lock);
    b->look_until = 150;
    assert_int_equal(background_next_look_locked(stage, 100), INT64_MAX); /* it has not begun */
    stage->begun = true;
    assert_int_equal(background_next_look_locked(stage, 100), 150);
    b->hold_until = 140;
    assert_int_equal(background_next_look_locked(stage, 100), 140);
    stage->speed->budget_ns = 130;
    assert_int_equal(background_next_look_locked(stage, 100), 130);
    stage->full_until = 120;
    assert_int_equal(background_next_look_locked(stage, 100), 130); /* it is not full */
    stage->full_error = -ENOSPC;
    assert_int_equal(background_next_look_locked(stage, 100), 120);
    assert_int_equal(background_next_look_locked(stage, 120), 130);
    assert_int_equal(background_next_look_locked(stage, 150), INT64_MAX);
    stage->options.background = false;
    assert_int_equal(background_next_look_locked(stage, 100), INT64_MAX);
    stage->options.background = true;

    /* a turn through the files */
    assert_true(!may_turn_locked(stage, 149) && may_turn_locked(stage, 150));
    stage->full_until = 160;
    assert_true(!may_turn_locked(stage, 159) && may_turn_locked(stage, 160));
    stage->keeping->is_full = true;
    assert_false(may_turn_locked(stage, 160));
    stage->keeping->holds_all = true;
    assert_true(may_turn_locked(stage, 160));

    /* needs of the forecast */
    assert_false(forecast_may_locked(stage, 200)); /* there is none */
    stage_set_needs(stage, &timed.needs);
    assert_true(forecast_may_locked(stage, 200));
    assert_true(!forecast_may_locked(stage, 159) && forecast_may_locked(stage, 160));
    stage->options.keep = STAGE_PLAN; /* what it needs displaces others */
    assert_true(!forecast_may_locked(stage, 139) && forecast_may_locked(stage, 140));
    b->dry = true;
    assert_false(forecast_may_locked(stage, 200));
    b->n = 1;
    assert_true(forecast_may_locked(stage, 200));
    b->jumps_seen = 1; /* those that are left are of before the jump */
    assert_false(forecast_may_locked(stage, 200));
    b->dry = false;
    assert_true(forecast_may_locked(stage, 200));
    b->all_here = true;
    b->missed_at = stage->missed;
    assert_false(forecast_may_locked(stage, 200));
    stage->options.keep = STAGE_ONCE;
    assert_true(forecast_may_locked(stage, 200));
    stage->options.keep = STAGE_PLAN;
    b->missed_at++;
    assert_true(forecast_may_locked(stage, 200));
    lock_drop(&stage->lock);

    /* no space for a need; the end of a turn */
    b->hold_until = 0;
    assert_true(hold(stage, 5) == STEP_HELD && b->hold_until == 5 + 20 * MS);
    b->changes_seen = 1;
    assert_true(hold(stage, 7) == STEP_HELD && b->hold_until == 5 + 20 * MS);
    for (unsigned i = 0; i < 4; i++) { /* something is missing, of many files; added meanwhile */
        b->saw_missing = i < 2;
        b->added = i == 2;
        stage->n_files = i == 1 ? 1000 : 999;
        end_turn(stage, 5);
        assert_int_equal(b->look_until, i == 3 ? INT64_MAX : 5 + (i == 1 ? 2000 : 100) * MS);
        assert_true(b->all_staged == (i == 3) && b->all_here == (i == 3) && !b->saw_missing);
    }
    stage->n_files = 1;
    stage->options.keep = STAGE_PIN;
    stage_set_needs(stage, NULL);
    close_fixture(&f);
}

/* ---- the blocks of a run of the background ---- */

UNIT_TEST_WITH(test_blocks__of_a_run__of_needs_and_neighbours, temp_setup, temp_teardown)
{
    const struct stage_fixture_remote remote = {.content = content, .size = SIZE, .threads = JOBS};
    struct stage_options options = stage_fixture_options();
    struct background b = {.n = 5};
    struct stage_fixture s;
    const struct file *file;
    struct blocks found;

    stage_fixture_open(&s, *state, &options, &remote);
    file = (const struct file *)s.blob;
    for (unsigned i = 0; i < 5; i++) { /* blocks 10; 11; 90; 9 and 10; 13 */
        static const uint64_t first[] = {10, 11, 90, 9, 13}, n[] = {1, 1, 1, 2, 1};

        b.need[i] = (struct stage_need){s.blob, first[i] * BLOCK, n[i] * BLOCK, i};
    }
    static const struct {
        uint64_t most, between;
        struct blocks want;
    } cases[] = {{100, 0, {10, 12}},   {100, BLOCK - 1, {10, 12}}, {100, BLOCK, {9, 12}},
                 {1, BLOCK, {10, 11}}, {2, BLOCK, {10, 12}},       {100, 9 * BLOCK, {9, 12}}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        found = with_neighbours(&b, run_blocks_of(&b.need[0]), cases[i].most, cases[i].between);
        assert_int_equal(found.first, cases[i].want.first);
        assert_int_equal(found.end, cases[i].want.end);
    }
    b.at = 4; /* nothing follows it */
    found = with_neighbours(&b, run_blocks_of(&b.need[4]), 100, UINT64_MAX);
    assert_true(found.first == 13 && found.end == 14);
    /* A need of some bytes; at the end of the file; behind it. */
    found = run_blocks_of(&(struct stage_need){s.blob, BLOCK + 5, BLOCK, 0});
    assert_true(found.first == 1 && found.end == 3);
    found = run_blocks_of(&(struct stage_need){s.blob, SIZE - 1, BLOCK, 0});
    assert_true(found.first == SIZE / BLOCK - 1 && found.end == SIZE / BLOCK);
    found = run_blocks_of(&(struct stage_need){s.blob, UINT64_MAX, UINT64_MAX, 0});
    assert_true(found.first == found.end);
    /* Pieces that are worth a transfer tile the file. */
    assert_int_equal(file_tile(file, 0), 1);
    assert_int_equal(file_tile(file, 2 * BLOCK - 1), 1);
    assert_int_equal(file_tile(file, 2 * BLOCK), 2);
    assert_int_equal(file_tile(file, 16 * BLOCK - 1), 8);
    found = with_worth(file, (struct blocks){10, 11}, 8 * BLOCK);
    assert_true(found.first == 8 && found.end == 16);
    found = with_worth(file, (struct blocks){15, 17}, 8 * BLOCK);
    assert_true(found.first == 8 && found.end == 24);
    found = with_worth(file, (struct blocks){SIZE / BLOCK - 1, SIZE / BLOCK}, 64 * BLOCK);
    assert_true(found.first == SIZE / BLOCK / 64 * 64 && found.end == SIZE / BLOCK);
    /* At most so many, with a certain one among them. */
    found = no_more_than((struct blocks){10, 20}, 15, 10);
    assert_true(found.first == 10 && found.end == 20);
    found = no_more_than((struct blocks){10, 20}, 15, 5);
    assert_true(found.first == 15 && found.end == 20);
    found = no_more_than((struct blocks){10, 20}, 16, 5);
    assert_true(found.first == 15 && found.end == 20);
    found = no_more_than((struct blocks){10, 20}, 12, 5);
    assert_true(found.first == 12 && found.end == 17);
    stage_fixture_close(&s);
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

static void note_over(struct waiter *waiter)
{
    (void)waiter;
}

/* A block that another process has claimed is looked at now and then, more often if a reader waits
 * for it, until the claim has ended. */
UNIT_TEST_WITH(test_others__their_blocks__looked_at, temp_setup, temp_teardown)
{
    struct waiter waiter = {.done = note_over};
    struct stage_fixture s[2];
    struct file *file, *other;
    int64_t now;

    for (unsigned i = 0; i < 2; i++)
        open_keeping(&s[i], *state, UINT64_C(1) << 30);
    s[0].stage->main = idle_main;
    file = (struct file *)s[0].blob;
    other = (struct file *)s[1].blob;
    assert_int_equal(file_take(file, NULL), 0);
    assert_int_equal(file_take(other, NULL), 0);
    assert_int_equal(staged_claim(file_staged(other), 5, 1), 1);
    lock_take(&s[0].stage->lock);
    file_set_locked(file, 5, BLOCK_COMING);
    file_leave_to_others_locked(file, 5, 6);
    lock_drop(&s[0].stage->lock);
    now = stage_now(s[0].stage);
    assert_int_equal(look_at_others(s[0].stage, now), now + 50 * MS);
    atomic_store(&waiter.pending, 1);
    blob_fetch(&file->blob, 5 * BLOCK, BLOCK, &waiter);
    waiter_done(&waiter, 0, NULL);
    assert_int_equal(look_at_others(s[0].stage, now), now + 5 * MS);
    assert_int_equal(fake_started(s[0].fake), 0);
    staged_unclaim(file_staged(other), 5, 1);
    assert_int_equal(look_at_others(s[0].stage, now), INT64_MAX);
    runs_start(s[0].stage);
    fake_wait_idle(s[0].fake);
    assert_int_equal(file_state(file, 5), BLOCK_HERE);
    assert_int_equal(look_at_others(s[0].stage, now), INT64_MAX);
    stage_limit_retry(s[0].stage, 31);
    assert_int_equal(s[0].stage->options.retry_limit_s, 30);
    stage_limit_retry(s[0].stage, 7);
    assert_int_equal(s[0].stage->options.retry_limit_s, 7);
    stage_read_no_ahead(s[0].stage);
    assert_true(s[0].stage->options.no_ahead);
    file_put(file);
    file_put(other);
    stage_fixture_close(&s[1]);
    stage_fixture_close(&s[0]);
}

/* Look-ahead for which there is no space is given up. A thread that starts runs does not ask for
 * the same blocks again and again, until another thread finds them coming and passes them over. */
UNIT_TEST_WITH(test_ahead__no_space__is_given_up, temp_setup, temp_teardown)
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

static void never(void *ctx, size_t n, struct stage_need *need)
{
    (void)ctx;
    for (size_t i = 0; i < n; i++)
        need[i].when = STAGE_NEVER;
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
UNIT_TEST_WITH(test_guide__all_is_here__is_not_asked, temp_setup, temp_teardown)
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
    s.stage->speed->byte_least = 1e6 / (16 * BLOCK); /* the machine may be busy */
    s.stage->speed->byte_ns = BYTE_NS;
    s.stage->speed->wait_ns = far ? 10e6 : 1e5;
    if (!far && !limited) { /* the first block brings its piece, no more */
        stage_fixture_read(&s, 144 * BLOCK - 5, 10);
        fake_wait_idle(s.fake);
        assert_int_equal(fake_given(s.fake), (16 + 17) * BLOCK);
        lock_take(&s.stage->lock);
        s.stage->speed->byte_least = 1e6 / (16 * BLOCK);
        s.stage->speed->byte_ns = BYTE_NS;
        lock_drop(&s.stage->lock);
        stage_fixture_read(&s, 200 * BLOCK, 16 * BLOCK); /* worth a request as it is */
        fake_wait_idle(s.fake);
        assert_int_equal(fake_given(s.fake), (16 + 17 + 16) * BLOCK);
    }
    stage_fixture_close(&s);
}

UNIT_TEST_WITH(test_cost__near_remote__a_request_brings_neighbours, temp_setup, temp_teardown)
{
    check_neighbours(*state, false, false, false, 0);
}

UNIT_TEST_WITH(test_cost__near_remote_and_queue__a_request_brings_neighbours, temp_setup,
               temp_teardown)
{
    check_neighbours(*state, false, true, false, 0);
}

/* A limited way gives some bytes at once. */
UNIT_TEST_WITH(test_cost__near_remote_and_burst__usual_speed_counts, temp_setup, temp_teardown)
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
UNIT_TEST_WITH(test_cost__own_queue__is_no_wait, temp_setup, temp_teardown)
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

UNIT_TEST_WITH(test_cost__far_remote__a_request_brings_what_is_read, temp_setup, temp_teardown)
{
    check_neighbours(*state, true, false, false, 0);
}

UNIT_TEST_WITH(test_cost__many_small_requests__they_bring_neighbours, temp_setup, temp_teardown)
{
    check_neighbours(*state, true, false, false, 4096);
}

UNIT_TEST_WITH(test_cost__bwlimit__a_request_brings_what_is_read, temp_setup, temp_teardown)
{
    check_neighbours(*state, false, false, true, 4096);
}
