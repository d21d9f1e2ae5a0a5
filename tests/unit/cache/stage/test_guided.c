/* The stage with a forecast of needs: it fetches first what is needed first, and with keep=plan
 * drops first what is needed last, as well as Belady's rule does. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "cache/stage/stage.h"
#include "tests/support/event.h"
#include "tests/support/fake_transport.h"
#include "tests/support/random.h"
#include "tests/support/stage_fixture.h"
#include "tests/support/temp_folder.h"
#include "tests/support/unit.h"

#define BLOCK  STAGE_FIXTURE_BLOCK
#define BLOCKS 1024
#define SIZE   ((size_t)BLOCKS * BLOCK)
#define LIMIT  (SIZE / 2)
#define LOGGED 16384
#ifdef SLOW_BUILD
#define EPOCHS 3
#else
#define EPOCHS 5
#endif

static uint8_t content[SIZE];

/* ---- an order, and the forecast of needs that knows it ---- */

/* Samples are read one after another; sample s has bytes [s * sample, (s + 1) * sample) after the
 * header. */
struct order {
    struct stage_needs needs;
    const struct blob *blob;
    uint64_t header, sample; /* bytes */
    size_t n;                /* reads */
    uint32_t *read;          /* [n] samples */
    uint32_t *next;          /* [n] the next read in the same block; n: none */
    uint32_t *first;         /* [BLOCKS] the first read in the block */
    struct lock lock;
    /* Guarded by lock: */
    size_t now;   /* the next read */
    size_t given; /* next() has reported the reads before this one */
    size_t asked; /* times */
    bool tells;
    uint64_t version;  /* of the answers of order_last() */
    size_t from;       /* the first read since the last jump */
    uint32_t *soonest; /* [BLOCKS] as now says */
};

static uint64_t block_of(const struct order *o, size_t i)
{
    return o->read[i] * o->sample / BLOCK;
}

static size_t order_next(void *ctx, struct stage_need *ret, size_t capacity)
{
    struct order *o = ctx;
    size_t n = 0;
    LOCK_SCOPE(&o->lock);

    for (; o->tells && n < capacity && o->given < o->n; o->given++)
        ret[n++] = (struct stage_need){.blob = o->blob,
                                       .off = o->header + o->read[o->given] * o->sample,
                                       .len = o->sample,
                                       .when = o->given + 1};
    return n;
}

static void order_when(void *ctx, size_t n, struct stage_need *need)
{
    struct order *o = ctx;
    LOCK_SCOPE(&o->lock);

    o->asked += n;
    for (size_t i = 0; i < n; i++) {
        assert_ptr_equal(need[i].blob, o->blob);
        need[i].when = STAGE_NEVER;
        for (uint64_t b = need[i].off / BLOCK; b < ceil_div(need[i].off + need[i].len, BLOCK); b++)
            if (o->soonest[b] < o->n)
                need[i].when = min_u64(need[i].when, o->soonest[b] + 1);
    }
}

/* keep=once: the last read of the blocks, plus one; 0: it has ended. */
static uint64_t order_last(void *ctx, const struct blob *blob, uint64_t off, uint64_t len)
{
    uint64_t first = off / BLOCK, end = ceil_div(off + len, BLOCK);
    struct order *o = ctx;
    LOCK_SCOPE(&o->lock);

    (void)blob;
    for (size_t i = o->n; i-- > o->from;) {
        uint64_t from = o->header + o->read[i] * o->sample;

        if (from / BLOCK < end && first <= (from + o->sample - 1) / BLOCK)
            return i < o->now ? 0 : i + 2;
    }
    return STAGE_NEVER;
}

static uint64_t order_now(void *ctx, uint64_t *ret_version)
{
    struct order *o = ctx;
    LOCK_SCOPE(&o->lock);

    *ret_version = o->version + 1;
    return o->now + 1;
}

static size_t order_asked(struct order *o)
{
    LOCK_SCOPE(&o->lock);

    return o->asked;
}

/* Read i has ended. */
static void order_pass(struct order *o, size_t i)
{
    LOCK_SCOPE(&o->lock);

    o->now = i + 1;
    o->soonest[block_of(o, i)] = o->next[i];
}

static void order_index(struct order *o)
{
    for (size_t b = 0; b < BLOCKS; b++)
        o->first[b] = (uint32_t)o->n;
    for (size_t i = o->n; i--;) {
        o->next[i] = o->first[block_of(o, i)];
        o->first[block_of(o, i)] = (uint32_t)i;
    }
    memcpy(o->soonest, o->first, BLOCKS * sizeof(*o->soonest));
}

/* Epochs, each of all samples, shuffled. */
static void order_init(struct order *o, unsigned epochs, unsigned per_block, uint64_t seed)
{
    size_t samples = (size_t)BLOCKS * per_block;
    uint64_t x = RANDOM_SEED + seed * 7919;

    *o = (struct order){.sample = BLOCK / per_block, .n = samples * epochs, .tells = true};
    o->needs = (struct stage_needs){
        .next = order_next, .when = order_when, .last = order_last, .now = order_now, .ctx = o};
    o->read = calloc(o->n, sizeof(*o->read));
    o->next = calloc(o->n, sizeof(*o->next));
    o->first = calloc(BLOCKS, sizeof(*o->first));
    o->soonest = calloc(BLOCKS, sizeof(*o->soonest));
    lock_init(&o->lock);
    for (unsigned e = 0; e < epochs; e++) {
        uint32_t *read = o->read + e * samples;

        for (size_t i = 0; i < samples; i++) {
            size_t j = random_below(&x, i + 1);

            read[i] = read[j];
            read[j] = (uint32_t)i;
        }
    }
    order_index(o);
}

static void order_release(struct order *o)
{
    free(o->read);
    free(o->next);
    free(o->first);
    free(o->soonest);
    lock_release(&o->lock);
}

/* ---- the optimum ---- */

/* Hits of Belady's rule: a read block enters the cache, and the block needed last leaves it. */
static size_t simulate_plan(const struct order *o, size_t capacity)
{
    uint32_t *soonest = malloc(BLOCKS * sizeof(*soonest));
    bool here[BLOCKS] = {0};
    size_t hits = 0, n = 0;

    memcpy(soonest, o->first, BLOCKS * sizeof(*soonest));
    for (size_t i = 0; i < o->n; i++) {
        uint64_t block = block_of(o, i), last = BLOCKS;

        soonest[block] = o->next[i];
        hits += here[block];
        if (here[block])
            continue;
        for (uint64_t b = 0; n == capacity && b < BLOCKS; b++)
            if (here[b] && (last == BLOCKS || soonest[b] > soonest[last]))
                last = b;
        if (n == capacity)
            here[last] = false;
        else
            n++;
        here[block] = true;
    }
    free(soonest);
    return hits;
}

/* ---- a stage ---- */

/* It logs the transfers. */
struct fixture {
    struct stage_fixture s;
    struct test_clock clock;
    struct lock lock;
    pthread_cond_t more;
    /* Guarded by lock: the ranges of the transfers, in order. */
    uint64_t off[LOGGED], len[LOGGED];
    unsigned logged;
    unsigned stalls_from, stalls; /* the transfers from the one to before the other */
    int64_t latency;              /* before the first bytes of each */
    bool dead;
};

static struct fake_answer log_transfer(void *ctx, const struct transfer *transfer, unsigned number)
{
    struct fixture *f = ctx;
    struct fake_answer answer = {.end = TRANSFER_DONE, .bytes = UINT64_MAX};
    int64_t latency;

    lock_take(&f->lock);
    if (f->logged < LOGGED) {
        f->off[f->logged] = transfer->off;
        f->len[f->logged++] = transfer->len;
        pthread_cond_broadcast(&f->more);
    }
    if (number >= f->stalls_from && number < f->stalls)
        answer = (struct fake_answer){.end = TRANSFER_DONE, .stalls = true, .goes_on = true};
    if (f->dead)
        answer = (struct fake_answer){.end = TRANSFER_AGAIN};
    latency = f->latency;
    lock_drop(&f->lock);
    if (latency)
        test_clock_turn(&f->clock, latency);
    return answer;
}

static void wait_logged(struct fixture *f, unsigned n)
{
    LOCK_SCOPE(&f->lock);

    while (f->logged < n)
        lock_wait(&f->lock, &f->more);
}

static uint64_t logged_off(struct fixture *f, unsigned i)
{
    LOCK_SCOPE(&f->lock);

    return f->off[i];
}

static struct stage_options usual(enum stage_keep keep, bool background)
{
    struct stage_options options = stage_fixture_options();

    options.keep = keep;
    options.background = background;
    if (keep == STAGE_PLAN) {
        options.limit = LIMIT;
        options.limit_percent = 0;
        options.memory = BLOCK;
    }
    return options;
}

static struct fixture *open_fixture(const char *folder, const struct stage_options *options,
                                    struct order *order)
{
    struct fixture *f = calloc(1, sizeof(*f));
    const struct stage_fixture_remote remote = {
        .content = content, .size = SIZE, .threads = 16, .script = log_transfer, .ctx = f};
    struct stage_options clocked = *options;

    lock_init(&f->lock);
    condition_init(&f->more);
    test_clock_init(&f->clock);
    clocked.clock = &f->clock.clock;
    stage_fixture_open(&f->s, folder, &clocked, &remote);
    if (order) {
        order->blob = f->s.blob;
        stage_set_needs(f->s.stage, &order->needs);
    }
    return f;
}

static void close_fixture(struct fixture *f)
{
    stage_fixture_close(&f->s);
    test_clock_release(&f->clock);
    pthread_cond_destroy(&f->more);
    lock_release(&f->lock);
    free(f);
}

static unsigned count_logged(struct fixture *f)
{
    LOCK_SCOPE(&f->lock);

    return f->logged;
}

/* ---- the order of transfers ---- */

/* Each transfer from `from` on brings what is needed first of the missing bytes. */
static void expect_order(struct fixture *f, const struct order *o, unsigned from)
{
    bool came[BLOCKS] = {0};
    size_t at = 0;

    for (unsigned i = 0; i < f->logged; i++) {
        uint64_t first = f->off[i] / BLOCK, end = first + ceil_div(f->len[i], BLOCK);

        while (i >= from && at < o->n && came[block_of(o, at)])
            at++;
        if (i >= from && at < o->n && !(first <= block_of(o, at) && block_of(o, at) < end))
            fail_msg("transfer %u: blocks %llu to %llu, expected %llu, read %zu", i,
                     (unsigned long long)first, (unsigned long long)end,
                     (unsigned long long)block_of(o, at), at);
        for (uint64_t b = first; b < end; b++)
            came[b] = true;
    }
}

UNIT_TEST_WITH(test_guide__shuffled__comes_in_that_order, temp_setup, temp_teardown)
{
    struct stage_options options = usual(STAGE_PIN, true);
    struct order order;
    struct fixture *f;

    options.jobs = 2;                 /* one of them in the background */
    options.limit = SIZE + SIZE / 64; /* it only just fits, so no neighbours come along */
    options.limit_percent = 0;
    order_init(&order, 1, 1, 1);
    f = open_fixture(*state, &options, &order);
    stage_fixture_stage_all(&f->s);
    assert_int_equal(fake_given(f->s.fake), SIZE);
    assert_true(f->logged > BLOCKS / 2);
    expect_order(f, &order, 0);
    close_fixture(f);
    order_release(&order);
}

/* For a remote that answers slowly a transfer also brings neighbours. */
UNIT_TEST_WITH(test_guide__slow_remote__neighbours_come_along, temp_setup, temp_teardown)
{
    struct stage_options options = usual(STAGE_PIN, true);
    struct diag d = DIAG_INIT;
    struct order order;
    struct fixture *f;
    int r;

    options.jobs = 2; /* one of them in the background: no other is under way in that time */
    order_init(&order, 1, 1, 2);
    f = open_fixture(*state, &options, &order);
    f->latency = 20 * TEST_MS;
    stage_begin(f->s.stage);
    do { /* the clock stands: no time passes while bytes come, so that none counts as their speed */
        r = stage_wait(f->s.stage, 60000, &d);
    } while (r == 0);
    assert_int_equal(r, 1);
    assert_int_equal(fake_given(f->s.fake), SIZE);
    if (f->logged >= 30)
        fail_msg("%u transfers", f->logged); /* of 1024 blocks */
    close_fixture(f);
    order_release(&order);
}

/* Adjacent needs form one run, even if the cache cannot hold everything. */
UNIT_TEST_WITH(test_guide__in_sequence__comes_in_long_runs, temp_setup, temp_teardown)
{
    struct stage_options options = usual(STAGE_PLAN, true);
    struct order order;
    struct fixture *f;

    order_init(&order, 1, 4, 3);
    for (size_t i = 0; i < order.n; i++)
        order.read[i] = (uint32_t)i;
    order_index(&order);
    f = open_fixture(*state, &options, &order);
    stage_begin(f->s.stage);
    stage_fixture_await(&f->s, &f->s.counters->staged_bytes, LIMIT / 2, SIZE);
    assert_true(count_logged(f) < 50); /* of 256 blocks */
    close_fixture(f);
    order_release(&order);
}

/* A block next to it that is needed much later does not come with it: what is needed before that
 * would wait. */
UNIT_TEST_WITH(test_guide__neighbour_of_much_later__does_not_come_along, temp_setup, temp_teardown)
{
    struct stage_options options = usual(STAGE_PLAN, true);
    struct order order;
    struct fixture *f;

    options.jobs = 2; /* one of them in the background */
    order_init(&order, 1, 1, 2);
    for (uint32_t i = 0; i < BLOCKS; i++) /* 0, 512, 1, 513 ... */
        order.read[i] = i / 2 + i % 2 * (BLOCKS / 2);
    order_index(&order);
    f = open_fixture(*state, &options, &order);
    stage_begin(f->s.stage);
    wait_logged(f, 8);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(logged_off(f, i) / BLOCK, i / 2 + i % 2 * (BLOCKS / 2));
    close_fixture(f);
    order_release(&order);
}

static void jump(struct fixture *f, struct order *to, struct order *from)
{
    lock_take(&from->lock);
    for (size_t i = 0; i < to->n; i++)
        from->read[i] = to->read[i];
    from->given = from->now = from->from = 0;
    from->version++;
    order_index(from);
    lock_drop(&from->lock);
    stage_needs_changed(f->s.stage, true);
}

UNIT_TEST_WITH(test_guide__jump__the_next_run_is_of_the_new_order, temp_setup, temp_teardown)
{
    struct stage_options options = usual(STAGE_PIN, true);
    struct order order, other;
    unsigned before;
    struct fixture *f;

    order_init(&order, 1, 1, 4);
    order_init(&other, 1, 1, 5);
    options.jobs = 2;
    f = open_fixture(*state, &options, &order);
    f->stalls = 20;
    stage_begin(f->s.stage);
    wait_logged(f, 1);
    jump(f, &other, &order);
    before = count_logged(f);
    assert_int_equal(before, 1);
    fake_release(f->s.fake);
    stage_fixture_stage_all(&f->s);
    assert_int_equal(fake_given(f->s.fake), SIZE);
    expect_order(f, &order, before);
    close_fixture(f);
    order_release(&order);
    order_release(&other);
}

/* While planned transfers have all connections that they may have, a read of other bytes begins at
 * once. */
UNIT_TEST_WITH(test_guide__demand__goes_first, temp_setup, temp_teardown)
{
    struct stage_options options = usual(STAGE_PIN, true);
    struct order order;
    struct fixture *f;

    options.jobs = 3;
    order_init(&order, 1, 1, 6);
    f = open_fixture(*state, &options, &order);
    f->stalls = 2;
    stage_begin(f->s.stage);
    wait_logged(f, 2);
    for (unsigned i = 0; i < 20; i++) {
        uint64_t block = block_of(&order, order.n - 1 - 7 * i);

        stage_fixture_read(&f->s, block * BLOCK, 10);
        assert_int_equal(logged_off(f, 2 + i), block * BLOCK);
    }
    fake_release(f->s.fake);
    stage_fixture_stage_all(&f->s);
    assert_int_equal(fake_given(f->s.fake), SIZE);
    close_fixture(f);
    order_release(&order);
}

/* Wait until so many bytes are on disk. */
static void wait_staged(struct fixture *f, uint64_t bytes)
{
    stage_fixture_await(&f->s, &f->s.counters->staged_bytes, bytes, bytes);
}

/* The next transfer stalls until fake_release(). */
static void stall_next(struct fixture *f)
{
    fake_hold(f->s.fake);
    LOCK_SCOPE(&f->lock);

    f->stalls = f->logged + 1;
}

/* Reads [first, end) end, one after another; after a jump to the first, if it is not the next. */
static void pass_reads(struct fixture *f, struct order *order, size_t first, size_t end)
{
    lock_take(&order->lock);
    if (order->now != first)
        order->from = first;
    lock_drop(&order->lock);
    for (size_t i = first; i < end; i++) {
        stage_fixture_read(&f->s, order->header + order->read[i] * order->sample, order->sample);
        order_pass(order, i);
        stage_needs_changed(f->s.stage, false);
    }
}

/* The reader is ahead of the forecast's transfers, and what it has passed is dropped: no transfer
 * brings it again, neither by the forecast nor in the turn through the files. After a jump back it
 * is needed again, and comes. */
UNIT_TEST_WITH(test_guide__once_passed__not_fetched_again, temp_setup, temp_teardown)
{
    struct stage_options options = usual(STAGE_ONCE, true);
    struct order order, same;
    struct fixture *f;

    options.jobs = 2; /* one of them in the background */
    order_init(&order, 1, 1, 9);
    order_init(&same, 1, 1, 9);
    f = open_fixture(*state, &options, &order);
    stall_next(f);
    stage_begin(f->s.stage);
    wait_logged(f, 1);
    pass_reads(f, &order, 20, 200); /* none of them is in that transfer */
    fake_release(f->s.fake);
    stage_fixture_await(&f->s, &f->s.counters->evictions, 180, BLOCKS);
    wait_staged(f, SIZE - 180 * BLOCK);
    stage_fixture_stage_all(&f->s);
    assert_int_equal(fake_given(f->s.fake), SIZE);
    assert_int_equal(f->s.counters->evictions, 180);
    jump(f, &same, &order);
    wait_staged(f, SIZE);
    assert_int_equal(fake_given(f->s.fake), SIZE + 180 * BLOCK);
    pass_reads(f, &order, 0, order.n);
    wait_staged(f, 0);
    assert_int_equal(fake_given(f->s.fake), SIZE + 180 * BLOCK);
    close_fixture(f);
    order_release(&order);
    order_release(&same);
}

/* Several samples to a block: it stays until the last one of them was read. A reader without a plan
 * gets a block that has gone, and it is kept. */
UNIT_TEST_WITH(test_guide__once_samples_share_blocks__the_last_one_counts, temp_setup,
               temp_teardown)
{
    struct stage_options options = usual(STAGE_ONCE, false);
    struct order order;
    struct fixture *f;
    size_t middle, gone = 0;
    uint64_t block = BLOCKS;

    order_init(&order, 1, 4, 12);
    middle = order.n * 3 / 4;
    f = open_fixture(*state, &options, &order);
    stage_begin(f->s.stage);
    pass_reads(f, &order, 0, middle);
    for (uint64_t b = 0; b < BLOCKS; b++)
        if (order_last(&order, f->s.blob, b * BLOCK, BLOCK) == 0) {
            gone++;
            block = b;
        }
    assert_in_range(gone, BLOCKS / 5, BLOCKS / 2);
    stage_fixture_await(&f->s, &f->s.counters->evictions, gone, BLOCKS);
    assert_int_equal(f->s.counters->evictions, gone);
    stage_fixture_read(&f->s, block * BLOCK, BLOCK);
    pass_reads(f, &order, middle, order.n);
    wait_staged(f, BLOCK);
    assert_int_equal(fake_given(f->s.fake), SIZE + BLOCK);
    close_fixture(f);
    order_release(&order);
}

/* The plan changes while nothing is under way. */
UNIT_TEST_WITH(test_guide__changed_later__comes_first_again, temp_setup, temp_teardown)
{
    struct stage_options options = usual(STAGE_PIN, true);
    struct order order;
    struct fixture *f;

    options.jobs = 2;
    options.rate = 40 * 4 * BLOCK; /* so that the turn through the files lasts */
    order_init(&order, 1, 1, 7);
    order.tells = false;
    f = open_fixture(*state, &options, &order);
    f->stalls_from = 1;
    f->stalls = 2;
    test_clock_run(&f->clock, TEST_S);
    stage_begin(f->s.stage);
    wait_logged(f, 2);
    lock_take(&order.lock);
    order.tells = true;
    lock_drop(&order.lock);
    stage_needs_changed(f->s.stage, false);
    fake_release(f->s.fake);
    wait_logged(f, 7);
    test_clock_stand(&f->clock);
    lock_take(&f->lock);
    expect_order(f, &order, 2);
    lock_drop(&f->lock);
    close_fixture(f);
    order_release(&order);
}

/* ---- keep=plan ---- */

static void expect_limit(struct fixture *f, const char *folder)
{
    char line[64 + PATH_MAX];
    unsigned long long kib = 0;
    FILE *du;

    /* A count during writes may count some blocks twice. */
    assert_true(quota_used(stage_quota(f->s.stage)) <= LIMIT + LIMIT / 8);
    snprintf(line, sizeof(line), "du -sk --exclude=lost+found '%s/staged'", folder);
    du = popen(line, "r");
    if (!du || fscanf(du, "%llu", &kib) != 1)
        fail_msg("du");
    pclose(du);
    assert_true(kib * 1024 <= LIMIT);
}

/* Wait until no transfer is left, and the background begins none. When its thread has begun to wait
 * after the second change, it has looked at the first. */
static void await_quiet(struct fixture *f)
{
    unsigned before;

    do {
        uint64_t begun = 0;

        before = fake_wait_idle(f->s.fake);
        test_clock_await_begun(&f->clock, &begun);
        for (unsigned i = 0; i < 2; i++) {
            stage_needs_changed(f->s.stage, false);
            test_clock_await_begun(&f->clock, &begun);
        }
    } while (fake_wait_idle(f->s.fake) != before);
}

/* Read everything as one reader; returns the hits. slow: wait each time for what comes ahead of
 * it. */
static size_t read_epochs(struct fixture *f, struct order *o, const char *folder, bool slow)
{
    for (size_t i = 0; i < o->n; i++) {
        stage_fixture_read(&f->s, o->read[i] * o->sample, (size_t)o->sample);
        order_pass(o, i);
        test_clock_turn(&f->clock, TEST_MS);
        if (!slow)
            fake_wait_idle(f->s.fake);
        if (i % 4 == 0)
            stage_needs_changed(f->s.stage, false);
        if (slow && i % 16 == 0)
            await_quiet(f);
        if (i % 2048 == 0)
            expect_limit(f, folder);
    }
    return f->s.counters->hits;
}

/* Besides the blocks the folder holds records, and the space that a run takes in advance. */
static size_t blocks_that_fit(struct fixture *f)
{
    return (size_t)(LIMIT - quota_used(stage_quota(f->s.stage)) - BLOCKS * (8 + 16) - 8192) / BLOCK;
}

/* Hits of keep=pin with the same space. */
static size_t read_pinned(const char *folder, struct order *o)
{
    struct stage_options options = usual(STAGE_PLAN, false);
    struct fixture *f;
    size_t hits;

    options.keep = STAGE_PIN;
    f = open_fixture(folder, &options, NULL);
    for (size_t i = 0; i < o->n; i++) {
        stage_fixture_read(&f->s, o->read[i] * o->sample, (size_t)o->sample);
        fake_wait_idle(f->s.fake);
    }
    hits = f->s.counters->hits;
    close_fixture(f);
    return hits;
}

static void check_plan(const char *folder, unsigned per_block)
{
    const struct stage_options options = usual(STAGE_PLAN, false);
    char other[PATH_MAX];
    struct order order;
    struct fixture *f;
    size_t hits, best, pin;

    snprintf(other, sizeof(other), "%s/pin", folder);
    order_init(&order, EPOCHS, per_block, 10 + per_block);
    pin = read_pinned(other, &order);
    snprintf(other, sizeof(other), "%s/plan", folder);
    f = open_fixture(other, &options, &order);
    best = simulate_plan(&order, blocks_that_fit(f));
    hits = read_epochs(f, &order, other, false);
    printf("%u samples in a block: %zu hits of %zu, Belady %zu, pin %zu, %llu dropped, "
           "asked %zu times\n",
           per_block, hits, order.n, best, pin, (unsigned long long)f->s.counters->evictions,
           order_asked(&order));
    assert_true((double)hits >= 0.98 * (double)best);
    assert_true((double)hits >=
                0.98 * (double)pin); /* for one sample per block pin is optimal too */
    close_fixture(f);
    order_release(&order);
}

UNIT_TEST_WITH(test_keep__plan__as_good_as_belady, temp_setup, temp_teardown)
{
    check_plan(*state, 1);
}

UNIT_TEST_WITH(test_keep__plan_4_samples_in_a_block__as_good_as_belady, temp_setup, temp_teardown)
{
    check_plan(*state, 4);
}

/* With background transfers most reads need not wait, and hardly more is fetched. */
UNIT_TEST_WITH(test_keep__plan_ahead__fetches_hardly_more, temp_setup, temp_teardown)
{
    const struct stage_options options = usual(STAGE_PLAN, true);
    struct order order;
    struct fixture *f;
    size_t hits, best, fetched;

    order_init(&order, EPOCHS, 1, 20);
    f = open_fixture(*state, &options, &order);
    best = order.n - simulate_plan(&order, blocks_that_fit(f));
    stage_begin(f->s.stage);
    hits = read_epochs(f, &order, *state, true);
    fetched = (size_t)(fake_given(f->s.fake) / BLOCK);
    printf("ahead: %zu hits of %zu, %zu blocks fetched, Belady %zu\n", hits, order.n, fetched,
           best);
    assert_true((double)fetched <= 1.15 * (double)best);
    assert_true(hits >= order.n - best); /* how many more depends on the machine */
    close_fixture(f);
    order_release(&order);
}

/* Overflow blocks stay in memory by the same rule: disk and memory are one cache. */
static void check_plan_with_memory(const char *folder, unsigned per_block, bool background,
                                   double most)
{
    struct stage_options options = usual(STAGE_PLAN, background);
    struct order order;
    struct fixture *f;
    size_t best, fetched, on_disk;

    options.memory = SIZE / 4;
    order_init(&order, EPOCHS, per_block, 50 + per_block);
    f = open_fixture(folder, &options, &order);
    best = order.n - simulate_plan(&order, blocks_that_fit(f) + BLOCKS / 4);
    on_disk = order.n - simulate_plan(&order, blocks_that_fit(f));
    if (background)
        stage_begin(f->s.stage);
    read_epochs(f, &order, folder, background);
    fetched = (size_t)(fake_given(f->s.fake) / BLOCK);
    printf("disk and memory, %u samples in a block%s: %zu blocks fetched, Belady %zu, on disk "
           "alone %zu\n",
           per_block, background ? ", ahead" : "", fetched, best, on_disk);
    assert_true((double)fetched <= most * (double)best);
    close_fixture(f);
    order_release(&order);
}

UNIT_TEST_WITH(test_keep__plan__memory_and_disk_are_one_cache, temp_setup, temp_teardown)
{
    check_plan_with_memory(*state, 1, false, 1.05);
}

UNIT_TEST_WITH(test_keep__plan_4_samples_in_a_block__memory_and_disk_are_one_cache, temp_setup,
               temp_teardown)
{
    check_plan_with_memory(*state, 4, false, 1.05);
}

UNIT_TEST_WITH(test_keep__plan_ahead__memory_and_disk_are_one_cache, temp_setup, temp_teardown)
{
    check_plan_with_memory(*state, 1, true, 1.15);
}

struct reader {
    struct fixture *f;
    struct order *order;
    size_t from;
    pthread_t thread;
};

#define READERS 4

static void *read_some(void *arg)
{
    struct reader *r = arg;

    for (size_t i = r->from; i < r->order->n; i += READERS) {
        stage_fixture_read(&r->f->s, r->order->read[i] * r->order->sample,
                           (size_t)r->order->sample);
        order_pass(r->order, i);
        test_clock_turn(&r->f->clock, TEST_MS);
    }
    return NULL;
}

/* Blocks are dropped and others written in the same file at once: freed space is not lost. */
UNIT_TEST_WITH(test_keep__plan_readers_at_once__all_of_the_room_is_used, temp_setup, temp_teardown)
{
    struct stage_options options = usual(STAGE_PLAN, false);
    struct reader reader[READERS];
    struct order order;
    struct fixture *f;
    size_t fit, here;

    options.jobs = 16;
    order_init(&order, 2, 1, 40);
    f = open_fixture(*state, &options, &order);
    fit = blocks_that_fit(f);
    for (size_t i = 0; i < READERS; i++) {
        reader[i] = (struct reader){.f = f, .order = &order, .from = i};
        assert_int_equal(pthread_create(&reader[i].thread, NULL, read_some, &reader[i]), 0);
    }
    for (size_t i = 0; i < READERS; i++)
        pthread_join(reader[i].thread, NULL);
    fake_wait_idle(f->s.fake);
    here = (size_t)(f->s.counters->staged_bytes / BLOCK);
    printf("%d readers: %zu blocks here, %zu fit, %llu dropped\n", READERS, here, fit,
           (unsigned long long)f->s.counters->evictions);
    assert_true((double)here >= 0.9 * (double)fit);
    expect_limit(f, *state);
    close_fixture(f);
    order_release(&order);
}

/* Blocks of an earlier mount can be dropped, though this one has not read them. */
UNIT_TEST_WITH(test_keep__plan_next_stage__old_blocks_go, temp_setup, temp_teardown)
{
    const struct stage_options options = usual(STAGE_PLAN, false);
    struct order order;
    struct fixture *f;

    order_init(&order, 1, 1, 30);
    f = open_fixture(*state, &options, &order);
    for (size_t i = 0; i < order.n / 2; i++)
        stage_fixture_read(&f->s, block_of(&order, i) * BLOCK, 10);
    close_fixture(f);
    for (size_t i = 0; i < order.n / 2; i++)
        order_pass(&order, i);
    f = open_fixture(*state, &options, &order);
    for (size_t i = order.n / 2; i < order.n; i++)
        stage_fixture_read(&f->s, block_of(&order, i) * BLOCK, 10);
    assert_int_equal(f->s.counters->refused, 0);
    assert_true(f->s.counters->evictions > order.n / 4);
    expect_limit(f, *state);
    close_fixture(f);
    order_release(&order);
}

UNIT_TEST_WITH(test_keep__plan_without_guide__pin, temp_setup, temp_teardown)
{
    const struct stage_options options = usual(STAGE_PLAN, false);
    struct order order;
    struct fixture *f;

    order_init(&order, 1, 1, 31);
    f = open_fixture(*state, &options, NULL);
    for (size_t i = 0; i < order.n; i++)
        stage_fixture_read(&f->s, block_of(&order, i) * BLOCK, 10);
    assert_int_equal(f->s.counters->evictions, 0);
    assert_true(f->s.counters->refused > order.n / 3);
    close_fixture(f);
    order_release(&order);
}

/* ---- fetching ahead ---- */

static void fetch_ahead(struct fixture *f, uint64_t off, uint64_t len, struct event *event)
{
    event_init(event);
    event->clock = &f->clock.clock;
    event->waiter.ahead = true;
    event->waiter.reason = DIAG_INIT;
    atomic_store(&event->waiter.pending, 1);
    blob_fetch(f->s.blob, off, len, &event->waiter);
    waiter_done(&event->waiter, 0, NULL);
}

UNIT_TEST_WITH(test_ahead__comes_and_counts_as_background, temp_setup, temp_teardown)
{
    const struct stage_options options = usual(STAGE_PIN, false);
    struct fixture *f = open_fixture(*state, &options, NULL);
    struct event event;

    for (uint64_t i = 0; i < 20; i++) { /* in sequence, and yet nothing more comes */
        fetch_ahead(f, i * 8 * BLOCK, 8 * BLOCK, &event);
        assert_int_equal(event_wait(&event), 0);
    }
    assert_int_equal(f->s.counters->demand_bytes, 0);
    assert_int_equal(f->s.counters->background_bytes, 160 * BLOCK);
    for (uint64_t i = 159; i; i--)
        stage_fixture_read(&f->s, i * BLOCK, BLOCK);
    assert_int_equal(f->s.counters->misses, 0);
    close_fixture(f);
}

/* A reader of the same bytes gets the connection that is reserved for waiting readers. */
UNIT_TEST_WITH(test_ahead__demand_of_the_same__is_hurried, temp_setup, temp_teardown)
{
    struct stage_options options = usual(STAGE_PIN, false);
    struct fixture *f;
    struct event events[3];

    options.jobs = 2;
    f = open_fixture(*state, &options, NULL);
    f->stalls = 1;
    for (uint64_t i = 0; i < 3; i++)
        fetch_ahead(f, i * 100 * BLOCK, BLOCK, &events[i]);
    wait_logged(f, 1);
    stage_fixture_read(&f->s, 200 * BLOCK, 10); /* the other transfer still waits */
    assert_int_equal(count_logged(f), 2);
    fake_release(f->s.fake);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(event_wait(&events[i]), 0);
    assert_int_equal(fake_given(f->s.fake), 3 * BLOCK);
    close_fixture(f);
}

UNIT_TEST_WITH(test_ahead__dead_remote__ends_with_an_error, temp_setup, temp_teardown)
{
    struct stage_options options = usual(STAGE_PIN, false);
    struct fixture *f;
    struct event event;

    options.retry_limit_s = 20;
    f = open_fixture(*state, &options, NULL);
    f->dead = true;
    test_clock_run(&f->clock, 16 * TEST_S); /* the longest pause before a try */
    fetch_ahead(f, 0, BLOCK, &event);
    assert_int_equal(event_wait(&event), -EREMOTEIO);
    test_clock_stand(&f->clock); /* it has run on while this thread was woken */
    /* The clock runs on while a sanitizer's threads are slow to try again: so it is not exact. */
    assert_in_range(event.at, TEST_CLOCK_START + 20 * TEST_S, TEST_CLOCK_START + 300 * TEST_S);
    assert_int_equal(f->s.counters->errors, 0);
    lock_take(&f->lock);
    f->dead = false;
    lock_drop(&f->lock);
    stage_fixture_read(&f->s, 0, 10); /* each reader has its own retry limit */
    close_fixture(f);
}

UNIT_TEST_WITH(test_ahead__no_room__memory_has_it, temp_setup, temp_teardown)
{
    struct stage_options options = usual(STAGE_PIN, false);
    struct fixture *f;
    struct event event;

    options.limit = 1;
    options.limit_percent = 0;
    f = open_fixture(*state, &options, NULL);
    fetch_ahead(f, 100 * BLOCK, 50 * BLOCK, &event);
    assert_int_equal(event_wait(&event), 0);
    assert_int_equal(f->s.counters->demand_bytes, 0);
    for (uint64_t i = 0; i < 50; i++)
        stage_fixture_read(&f->s, (149 - i) * BLOCK, BLOCK);
    assert_int_equal(fake_given(f->s.fake), 50 * BLOCK);
    close_fixture(f);
}

/* ---- block=auto ---- */

UNIT_TEST_WITH(test_block__auto__by_the_size_of_the_file, temp_setup, temp_teardown)
{
    static const struct {
        uint64_t size;
        uint32_t block;
    } cases[] = {{0, 4096},
                 {1, 4096},
                 {UINT64_C(1) << 30, 4096},
                 {(UINT64_C(1) << 30) + 1, 8192},
                 {UINT64_C(2) << 30, 8192},
                 {UINT64_C(16) << 30, 65536},
                 {(UINT64_C(16) << 30) + 1, 131072},
                 {UINT64_C(1) << 50, 131072}};
    struct stage_options options = usual(STAGE_PIN, false);
    struct fixture *f;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(stage_auto_block(cases[i].size), cases[i].block);
    options.block = 0;
    f = open_fixture(*state, &options, NULL);
    stage_fixture_read(&f->s, 100 * BLOCK + 7, 1);
    assert_int_equal(fake_given(f->s.fake), 4096);
    close_fixture(f);
}

int unit_setup(void **state)
{
    (void)state;
    stage_fixture_content(content, sizeof(content));
    return 0;
}
