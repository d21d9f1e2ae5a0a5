/* The stage under all troubles at once: a remote that fails, stages that share the folder, blocks
 * that are dropped, a disk that corrupts data, stages and processes that end in the middle. Every
 * read is right, or fails with the proper error; nothing hangs.
 *
 * What happens meanwhile happens after so many reads or transfers. The stages go by the real clock,
 * because they try again after a while: nothing could say when all threads and processes have
 * nothing else to do, so that a test clock may go on. So also a stalled transfer stalls by it, and
 * two limits of a few seconds are real: a stage ends, and a read among processes that are killed
 * does not wait until blocks are taken from a process that gives no sign of life.
 *
 *     test_stage_stress                    the usual seeds
 *     test_stage_stress threads 7 [N]      seeds 7 to 7 + N - 1; processes: the same */
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/read_context.h"
#include "cache/disk/quota.h"
#include "cache/disk/staged_file.h"
#include "cache/stage/stage.h"
#include "tests/support/fake_transport.h"
#include "tests/support/random.h"
#include "tests/support/stage_fixture.h"
#include "tests/support/temp_folder.h"
#include "tests/support/unit.h"

#define BLOCK       STAGE_FIXTURE_BLOCK
#define SIZE_MOST   (400 * BLOCK)
#define STAGES      3
#define READERS     8
#define CHILDREN    3
#define WATCH_S     100  /* between two reads that end, or two that a child reports */
#define AT_RECORDS  1536 /* docs/spec/cache-format.md, "A staged file" */
#define LOCK_CLAIMS (UINT64_C(1) << 61)
#define LOCK_DROP   ((UINT64_C(1) << 62) + 2)

#ifdef SLOW_BUILD
#define SEEDS 6
#define READS 40
#define KILLS 30
#else
#define SEEDS 16
#define READS 100
#define KILLS 30
#endif

static uint8_t content[SIZE_MOST];
static uint64_t seed_now;
static bool is_late; /* a read of it took too long: in one the machine may have stood still */

static uint64_t begin_random(uint64_t seed)
{
    uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15) + RANDOM_SEED;

    for (unsigned i = 0; i < 4; i++)
        random_next(&x);
    return x ? x : 1;
}

static bool chance(uint64_t *x, unsigned percent)
{
    return random_below(x, 100) < percent;
}

/* Let other threads run, so many times: a transfer lasts. Few: on a busy machine each takes a
 * while. */
static void yield_times(uint64_t n)
{
    for (; n; n--)
        sched_yield();
}

/* ---- steps ---- */

/* The reads of a case: what happens in its middle happens after so many. */
static struct {
    struct lock lock;
    pthread_cond_t changed;
    /* Guarded by lock: */
    uint64_t reads;   /* that have ended */
    unsigned readers; /* that go on */
} steps;

static void steps_begin(unsigned readers)
{
    LOCK_SCOPE(&steps.lock);

    steps.reads = 0;
    steps.readers = readers;
}

static void step_done(void)
{
    LOCK_SCOPE(&steps.lock);

    steps.reads++;
    alarm(WATCH_S);
    pthread_cond_broadcast(&steps.changed);
}

static void step_last(void)
{
    LOCK_SCOPE(&steps.lock);

    steps.readers--;
    pthread_cond_broadcast(&steps.changed);
}

/* Wait for so many further reads. False: no reader goes on. */
static bool steps_wait(uint64_t n)
{
    LOCK_SCOPE(&steps.lock);
    uint64_t until = steps.reads + n;

    while (steps.reads < until && steps.readers)
        lock_wait(&steps.lock, &steps.changed);
    return steps.readers;
}

/* ---- the watchdog ---- */

static void on_alarm(int signal)
{
    void *frames[64];
    char line[100];
    int n = snprintf(line, sizeof(line), "seed %llu: it hangs\n", (unsigned long long)seed_now);

    (void)signal;
    if (write(2, line, (size_t)n) == n)
        backtrace_symbols_fd(frames, backtrace(frames, 64), 2);
    if (getenv("STRESS_WAIT")) /* for a debugger */
        for (;;)
            pause();
    abort();
}

static void watch(void)
{
    signal(SIGALRM, on_alarm);
    alarm(WATCH_S);
}

/* ---- a case ---- */

struct plan {
    uint64_t seed;
    uint64_t size;
    unsigned stages;
    struct stage_options options[STAGES];
    unsigned fails, stalls; /* percent of the transfers */
    bool slow;
    bool refuses;  /* the failures may be final: then part of a block comes twice */
    bool whole;    /* the remote gives no parts */
    bool damages;  /* a thread damages the files on disk */
    unsigned cuts; /* percent of the damages that truncate the file to nothing */
    bool restarts; /* a stage ends in the middle */
    bool guided;   /* with a forecast of needs; readers jump */
    unsigned patience;
};

/* A stage, which is replaced in the middle. */
struct slot {
    struct stage_fixture s;
    const struct plan *plan;
    const char *folder;
    unsigned number;
    uint64_t given;    /* by transports that have ended */
    uint64_t distinct; /* of stages that have ended */
    _Atomic unsigned answers;
    struct stage_needs needs;
    _Atomic uint64_t time,
        reported; /* the forecast's present time, and the end of what next() has reported */
    struct lock lock;
    pthread_cond_t changed;
    /* Guarded by lock: */
    unsigned readers;
    bool closed; /* no reader may begin */
};

struct reader {
    struct slot *slot;
    uint64_t random;
    bool collects;
    pthread_t thread;
    const char *wrong;
    uint64_t off, len;
    int error;
};

static struct fake_answer answer(void *ctx, const struct transfer *transfer, unsigned number)
{
    struct slot *slot = ctx;
    const struct plan *plan = slot->plan;
    uint64_t x = begin_random(plan->seed * 1000 + slot->number * 100000 +
                              atomic_fetch_add(&slot->answers, 1));
    struct fake_answer a = {.end = TRANSFER_DONE, .bytes = UINT64_MAX, .whole = plan->whole};

    (void)number;
    if (plan->slow)
        yield_times(random_below(&x, 4));
    if (chance(&x, plan->fails)) {
        a.bytes = random_below(&x, transfer->len + 1);
        a.end = chance(&x, 80)                    ? TRANSFER_AGAIN
                : plan->refuses && chance(&x, 50) ? TRANSFER_REFUSED
                                                  : TRANSFER_DONE; /* fewer bytes than it reports */
    } else if (chance(&x, plan->stalls)) {
        a.bytes = random_below(&x, transfer->len + 1);
        a.end = TRANSFER_AGAIN;
        a.stalls = true;
        a.stall_ms = 1 + (unsigned)random_below(&x, 400); /* the stage gives up a dead remote */
    }
    return a;
}

/* ---- a forecast of needs ---- */

/* Each block is needed once in PERIOD reads. */
#define PERIOD 500

static uint64_t phase_of(uint64_t block)
{
    return (block * UINT64_C(0x9e3779b97f4a7c15) >> 40) % PERIOD;
}

static void needs_when(void *ctx, size_t n, struct stage_need *need)
{
    struct slot *slot = ctx;
    uint64_t now = atomic_load(&slot->time);

    for (size_t i = 0; i < n; i++) {
        need[i].when = STAGE_NEVER;
        for (uint64_t b = need[i].off / BLOCK; b < ceil_div(need[i].off + need[i].len, BLOCK); b++)
            need[i].when =
                min_u64(need[i].when, now + (phase_of(b) + PERIOD - now % PERIOD) % PERIOD);
    }
}

static size_t needs_next(void *ctx, struct stage_need *ret, size_t capacity)
{
    struct slot *slot = ctx;
    size_t n = 0;

    while (atomic_load(&slot->reported) < atomic_load(&slot->time) + PERIOD && n + 20 < capacity) {
        uint64_t time = atomic_fetch_add(&slot->reported, 1);

        for (uint64_t b = 0; b < slot->plan->size / BLOCK && n < capacity; b++)
            if (phase_of(b) == time % PERIOD)
                ret[n++] = (struct stage_need){slot->s.blob, b * BLOCK, BLOCK, time};
    }
    return n;
}

/* keep=once: a block is needed last in its phase of every second period. */
static uint64_t needs_last(void *ctx, const struct blob *blob, uint64_t off, uint64_t len)
{
    struct slot *slot = ctx;
    uint64_t now = atomic_load(&slot->time);

    (void)len;
    (void)blob;
    return now / PERIOD % 2 && now % PERIOD > phase_of(off / BLOCK) ? 0 : now + PERIOD / 10;
}

static uint64_t needs_now(void *ctx, uint64_t *ret_version)
{
    struct slot *slot = ctx;

    *ret_version = 1;
    return atomic_load(&slot->time);
}

/* A reader has read again, or has jumped. */
static void needs_tell(struct slot *slot, uint64_t *x)
{
    bool jumps = chance(x, 3);

    atomic_fetch_add(&slot->time, jumps ? random_below(x, PERIOD) : 1);
    if (jumps)
        atomic_store(&slot->reported, atomic_load(&slot->time));
    if (slot->plan->guided && (jumps || chance(x, 30)))
        stage_needs_changed(slot->s.stage, jumps);
}

static void slot_open(struct slot *slot)
{
    const struct stage_fixture_remote remote = {
        .content = content, .size = slot->plan->size, .threads = 8, .script = answer, .ctx = slot};

    stage_fixture_open(&slot->s, slot->folder, &slot->plan->options[slot->number], &remote);
    slot->needs = (struct stage_needs){
        .next = needs_next, .when = needs_when, .last = needs_last, .now = needs_now, .ctx = slot};
    if (slot->plan->guided)
        stage_set_needs(slot->s.stage, &slot->needs);
    stage_begin(slot->s.stage);
}

static void slot_close(struct slot *slot)
{
    int64_t began = monotonic_ns();

    stage_end(slot->s.stage);
    slot->given += fake_given(slot->s.fake);
    slot->distinct += atomic_load(&slot->s.counters->distinct_bytes);
    stage_fixture_close(&slot->s);
    if (monotonic_ns() - began > INT64_C(3000000000))
        fail_msg("seed %llu: the end took %lld ms", (unsigned long long)seed_now,
                 (long long)(monotonic_ns() - began) / 1000000);
}

static void slot_enter(struct slot *slot)
{
    LOCK_SCOPE(&slot->lock);

    while (slot->closed)
        lock_wait(&slot->lock, &slot->changed);
    slot->readers++;
}

static void slot_leave(struct slot *slot)
{
    LOCK_SCOPE(&slot->lock);

    slot->readers--;
    pthread_cond_broadcast(&slot->changed);
}

/* ---- readers ---- */

static int fetch_and_wait(struct read_context *rc)
{
    static _Atomic unsigned number;

    return missing_wait(rc, atomic_fetch_add(&number, 1) % 4 == 0, NULL);
}

/* Read as a request of the kernel does. */
static int read_collecting(const struct blob *blob, uint8_t *buf, size_t len, uint64_t off,
                           bool collects)
{
    struct read_context rc;
    int r = -EAGAIN;

    for (unsigned round = 0; r == -EAGAIN; round++) {
        read_context_init(&rc, collects && round < 20);
        rc.again = round > 0;
        r = blob_pread(&rc, blob, buf, len, off);
        if (r == -EAGAIN) {
            int error = fetch_and_wait(&rc);

            r = error < 0 ? error : r;
        }
        read_context_release(&rc);
    }
    return r;
}

static bool is_allowed(const struct plan *plan, int r)
{
    return (r == -EREMOTEIO && (plan->refuses || plan->stalls)) || (r == -EINTR && plan->restarts);
}

static void *reader_main(void *arg)
{
    struct reader *reader = arg;
    struct slot *slot = reader->slot;
    const struct plan *plan = slot->plan;
    uint8_t *buf = malloc(SIZE_MOST);
    uint64_t *x = &reader->random, at = 0;

    for (unsigned i = 0; i < READS && !reader->wrong; i++) {
        uint64_t len = 1 + random_below(x, chance(x, 10) ? 40 * BLOCK : 3 * BLOCK), off;
        int r;

        if (i % 20 == 0)
            at = random_below(x, plan->size);
        off = chance(x, 50) ? at : random_below(x, plan->size);
        off = off < plan->size ? off : 0;
        len = min_u64(len, plan->size - off);
        at = off + len;
        slot_enter(slot);
        memset(buf, 0, (size_t)len);
        r = read_collecting(slot->s.blob, buf, (size_t)len, off, reader->collects);
        needs_tell(slot, x);
        slot_leave(slot);
        step_done();
        reader->off = off;
        reader->len = len;
        reader->error = r;
        if (r < 0 && !is_allowed(plan, r))
            reader->wrong = "an error";
        else if (r == 0 && memcmp(buf, content + off, (size_t)len) != 0)
            reader->wrong = "other bytes";
        for (uint64_t k = 0; reader->wrong && r == 0 && k < len; k++)
            if (buf[k] != content[off + k]) {
                reader->error = buf[k];
                reader->off = off + k;
                break;
            }
    }
    free(buf);
    step_last();
    return NULL;
}

/* ---- damage ---- */

struct damager {
    const struct plan *plan;
    const char *folder;
    uint64_t random;
    pthread_t thread;
};

static bool lock_byte(int fd, short type, uint64_t at, bool wait)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)at, .l_len = 1};

    return fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &lock) == 0;
}

/* Where the count of drops is, after the content. */
static off_t drops_at(uint64_t size)
{
    return (off_t)(ceil_div(size, 8) * 8);
}

/* suffix: "": the records; ".content" */
static int open_staged(const char *folder, const char *suffix)
{
    char pattern[PATH_MAX + 50];
    glob_t found;
    int fd = -1;

    snprintf(pattern, sizeof(pattern), "%s/staged/*[0-9a-f]%s", folder, suffix);
    if (glob(pattern, 0, NULL, &found) == 0) {
        fd = open(found.gl_pathv[0], O_RDWR | O_CLOEXEC);
        globfree(&found);
    }
    return fd;
}

/* A stage does not check again what it knows to be good while the count of drops is the same. So
 * this changes content and also the count. */
static void damage_block(int fd, int records, uint64_t size, uint64_t *x)
{
    uint64_t blocks = ceil_div(size, BLOCK), block = random_below(x, blocks);
    uint64_t record = 0, drops;
    const uint64_t none = 0;
    uint8_t bytes[8], junk[64];

    if (!lock_byte(fd, F_WRLCK, LOCK_CLAIMS + block, false))
        return;
    lock_byte(fd, F_WRLCK, LOCK_DROP, true);
    if (pread(records, &record, 8, (off_t)(AT_RECORDS + 8 * block)) == 8 && record &&
        pwrite(records, &none, 8, (off_t)(AT_RECORDS + 8 * block)) == 8 &&
        pread(fd, bytes, 8, drops_at(size)) == 8) {
        drops = load_le64(bytes);
        store_le64(bytes, drops + 1);
        memset(junk, 0, sizeof(junk));
        if (drops && pwrite(fd, bytes, 8, drops_at(size)) == 8) {
            if (chance(x, 20))
                record ^= UINT64_C(1) << random_below(x, 64);
            else if (pwrite(fd, junk, sizeof(junk),
                            (off_t)(block * BLOCK + random_below(x, BLOCK / 2))) < 0)
                record = 0;
            if (pwrite(records, &record, 8, (off_t)(AT_RECORDS + 8 * block)) != 8)
                abort();
        }
    }
    lock_byte(fd, F_UNLCK, LOCK_DROP, false);
    lock_byte(fd, F_UNLCK, LOCK_CLAIMS + block, false);
}

/* Truncate it anywhere, and perhaps extend it again. */
static bool cut_file(int fd, uint64_t size, uint64_t *x)
{
    uint64_t len = (uint64_t)drops_at(size) + 8, most = chance(x, 50) ? AT_RECORDS + 1 : len;
    bool grows = chance(x, 30);

    return ftruncate(fd, (off_t)random_below(x, most)) == 0 &&
           (!grows || ftruncate(fd, (off_t)len) == 0);
}

static void *damager_main(void *arg)
{
    struct damager *damager = arg;
    int fd = open_staged(damager->folder, ".content"), records = open_staged(damager->folder, "");

    /* Not without reads: if a file is truncated faster than it arrives, no large read ends. */
    while (fd >= 0 && records >= 0 && steps_wait(random_below(&damager->random, 3))) {
        if (!chance(&damager->random, damager->plan->cuts))
            damage_block(fd, records, damager->plan->size, &damager->random);
        else if (!cut_file(chance(&damager->random, 20) ? records : fd, damager->plan->size,
                           &damager->random))
            break;
    }
    if (fd >= 0)
        close(fd);
    if (records >= 0)
        close(records);
    return NULL;
}

/* ---- all of it ---- */

static struct plan make_plan(uint64_t seed)
{
    uint64_t x = begin_random(seed), limit = 0;
    struct plan plan = {.seed = seed, .stages = 2 + (unsigned)random_below(&x, 2)};
    bool tiny = chance(&x, 40), background = chance(&x, 60), once = chance(&x, 30);

    plan.size = (20 + random_below(&x, 370)) * BLOCK + random_below(&x, BLOCK);
    plan.fails = chance(&x, 50) ? 0 : (unsigned)random_below(&x, 15);
    plan.refuses = chance(&x, 50);
    plan.stalls = chance(&x, 20) ? 3 : 0;
    plan.slow = chance(&x, 70);
    plan.whole = chance(&x, 15);
    plan.damages = chance(&x, 40);
    plan.restarts = chance(&x, 40);
    if (tiny)
        limit = plan.size / 4 + random_below(&x, plan.size / 2) + 32768;
    for (unsigned i = 0; i < plan.stages; i++)
        plan.options[i] = (struct stage_options){
            .keep = once && (i == 0 || chance(&x, 30)) ? STAGE_ONCE : STAGE_PIN,
            .limit = limit,
            .limit_percent = limit ? 0 : 100,
            .block = BLOCK,
            .jobs = 2 + (unsigned)random_below(&x, 5),
            .small_jobs = (unsigned)random_below(&x, 20),
            .far_ms = 2,
            .retry_limit_s = plan.stalls ? 1 : 20,
            .background = background,
        };
    plan.cuts = chance(&x, 30) ? 30 : 2;
    plan.guided = chance(&x, 60);
    for (unsigned i = 0; i < plan.stages; i++)
        if (plan.guided && tiny && chance(&x, 80))
            plan.options[i].keep = STAGE_PLAN;
    return plan;
}

static void tell_plan(const struct plan *plan)
{
    bool once = false, keeps = false;

    for (unsigned i = 0; i < plan->stages; i++) {
        once = once || plan->options[i].keep == STAGE_ONCE;
        keeps = keeps || plan->options[i].keep == STAGE_PLAN;
    }
    printf("seed %llu: %llu bytes, %u stages%s%s%s%s%s%s%s%s, fails %u %%, stalls %u %%\n",
           (unsigned long long)plan->seed, (unsigned long long)plan->size, plan->stages,
           plan->options[0].limit ? ", tiny" : "", once ? ", once" : "",
           plan->guided ? ", guided" : "", keeps ? ", keep=plan" : "",
           plan->options[0].background ? ", background" : "", plan->whole ? ", whole" : "",
           plan->damages ? ", damage" : "", plan->restarts ? ", restarts" : "", plan->fails,
           plan->stalls);
    fflush(stdout);
}

static bool is_plain(const struct plan *plan)
{
    for (unsigned i = 0; i < plan->stages; i++)
        if (plan->options[i].keep != STAGE_PIN)
            return false;
    return !plan->options[0].limit && !plan->whole && !plan->damages && !plan->restarts &&
           !plan->stalls && !(plan->fails && plan->refuses);
}

static void restart(struct slot *slot, bool rests)
{
    lock_take(&slot->lock);
    slot->closed = true;
    lock_drop(&slot->lock);
    if (!rests)
        stage_end(slot->s.stage);
    lock_take(&slot->lock);
    while (slot->readers)
        lock_wait(&slot->lock, &slot->changed);
    lock_drop(&slot->lock);
    if (rests) {
        stage_rest(slot->s.stage);
        stage_begin(slot->s.stage);
    } else {
        slot_close(slot);
        slot_open(slot);
    }
    lock_take(&slot->lock);
    slot->closed = false;
    pthread_cond_broadcast(&slot->changed);
    lock_drop(&slot->lock);
}

/* Whatever has happened: once nothing fails any more, everything can be read. */
static void read_all(struct slot *slot)
{
    const struct plan *plan = slot->plan;
    uint8_t *buf = malloc(plan->size);
    int r;

    fake_set_script(slot->s.fake, NULL, NULL);
    fake_release(slot->s.fake);
    do /* the remote may count as dead for a while */
        r = read_collecting(slot->s.blob, buf, plan->size, 0, false);
    while (r == -EREMOTEIO);
    if (r < 0)
        fail_msg("seed %llu: at the end: %s", (unsigned long long)plan->seed, strerror(-r));
    if (memcmp(buf, content, plan->size) != 0)
        fail_msg("seed %llu: at the end: other bytes", (unsigned long long)plan->seed);
    free(buf);
}

static void expect_sums(struct slot *slots, const struct plan *plan)
{
    uint64_t given = 0, distinct = 0, counted = 0;

    for (unsigned i = 0; i < plan->stages; i++) {
        const struct stage_counters *c = slots[i].s.counters;

        given += slots[i].given + fake_given(slots[i].s.fake);
        distinct += slots[i].distinct + c->distinct_bytes;
        counted += c->demand_bytes + c->background_bytes;
        if (c->served_bytes == 0 || c->staged_bytes != plan->size)
            fail_msg("seed %llu: %llu bytes staged, not all %llu", (unsigned long long)plan->seed,
                     (unsigned long long)c->staged_bytes, (unsigned long long)plan->size);
    }
    if (given != plan->size || distinct != given || counted != given)
        fail_msg("seed %llu: of %llu bytes %llu were given, %llu distinct, %llu counted",
                 (unsigned long long)plan->seed, (unsigned long long)plan->size,
                 (unsigned long long)given, (unsigned long long)distinct,
                 (unsigned long long)counted);
}

/* When nothing is under way, the reported space is what the files take. */
static void expect_capacity(const struct slot *slot)
{
    uint64_t before, after;
    struct quota *quota;
    struct diag d = DIAG_INIT;

    stage_rest(slot->s.stage);
    assert_int_equal(quota_open(&slot->s.cache, 0, 100, NULL, &quota, &d), 0);
    before = quota_used(quota);
    assert_int_equal(quota_recount(quota), 0);
    after = quota_used(quota);
    quota_close(quota);
    if (before > after + 65536 || after > before + 65536)
        fail_msg("seed %llu: room %llu, but the files take %llu", (unsigned long long)seed_now,
                 (unsigned long long)before, (unsigned long long)after);
}

static void run_case(const struct plan *plan, const char *folder)
{
    struct reader readers[READERS];
    struct slot slots[STAGES] = {0};
    struct damager damager = {.plan = plan, .folder = folder, .random = begin_random(~plan->seed)};
    uint64_t x = begin_random(plan->seed + 77);

    steps_begin(READERS);
    for (unsigned i = 0; i < plan->stages; i++) {
        slots[i] = (struct slot){.plan = plan, .folder = folder, .number = i};
        lock_init(&slots[i].lock);
        pthread_cond_init(&slots[i].changed, NULL);
        slot_open(&slots[i]);
    }
    for (unsigned i = 0; i < READERS; i++) {
        readers[i] = (struct reader){.slot = &slots[i % plan->stages],
                                     .random = begin_random(plan->seed * 100 + i),
                                     .collects = i & 2};
        pthread_create(&readers[i].thread, NULL, reader_main, &readers[i]);
    }
    if (plan->damages)
        pthread_create(&damager.thread, NULL, damager_main, &damager);
    for (unsigned i = 0; plan->restarts && i < 3; i++) {
        steps_wait(random_below(&x, READERS * READS / 4));
        restart(&slots[random_below(&x, plan->stages)], chance(&x, 30));
    }
    for (unsigned i = 0; i < READERS; i++) {
        pthread_join(readers[i].thread, NULL);
        if (readers[i].wrong)
            fail_msg("seed %llu: reader %u: %s, %d, of %llu at %llu",
                     (unsigned long long)plan->seed, i, readers[i].wrong, readers[i].error,
                     (unsigned long long)readers[i].len, (unsigned long long)readers[i].off);
    }
    if (plan->damages)
        pthread_join(damager.thread, NULL);
    for (unsigned i = 0; i < plan->stages; i++)
        read_all(&slots[i]);
    if (is_plain(plan)) {
        expect_sums(slots, plan);
        expect_capacity(&slots[0]);
    }
    for (unsigned i = 0; i < plan->stages; i++) {
        slot_close(&slots[i]);
        pthread_cond_destroy(&slots[i].changed);
        lock_release(&slots[i].lock);
    }
}

static uint64_t first_seed = 1, n_seeds = SEEDS;

static void test_threads(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + n_seeds; seed++) {
        const struct plan plan = make_plan(seed);
        void *folder;

        temp_setup(&folder);
        seed_now = seed;
        tell_plan(&plan);
        watch();
        run_case(&plan, folder);
        alarm(0);
        temp_teardown(&folder);
    }
}

/* ---- processes ---- */

#define EVENTS       300                 /* of a child, at most, before the next is killed */
#define READ_MOST_NS INT64_C(4500000000) /* less than STEAL_S of cache/stage/blocks.c */
#define EVENTS_ALL   (UINT64_C(1) << 32) /* a child has ended: more than anyone waits for */
#define ONE_LATE     6                   /* exit status: of all reads one took too long */

struct child {
    pid_t pid;
    int end;    /* a byte written to it makes the child end */
    int events; /* an eventfd: its transfers that have begun, and its reads that have ended */
};

static void note_events(int events, uint64_t n)
{
    if (write(events, &n, sizeof(n)) != sizeof(n))
        abort();
    alarm(WATCH_S);
}

static struct fake_answer slowly(void *ctx, const struct transfer *transfer, unsigned number)
{
    const int *events = ctx;

    (void)transfer;
    (void)number;
    note_events(*events, 1);
    yield_times(2);
    return (struct fake_answer){.end = TRANSFER_DONE, .bytes = UINT64_MAX};
}

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

/* Wait for n events of a child from now on, or for its end. */
static void await_events(const struct child *child, uint64_t n)
{
    uint64_t more, sum = 0;

    if (is_readable(child->events))
        assert_int_equal(read(child->events, &more, sizeof(more)), sizeof(more));
    while (sum < n) {
        assert_int_equal(read(child->events, &more, sizeof(more)), sizeof(more));
        alarm(WATCH_S);
        sum += more;
    }
}

struct child_reader {
    struct slot *slot;
    uint64_t random;
    int end, events;
    unsigned late; /* reads that took too long */
    int wrong;
    pthread_t thread;
};

static void *child_reader_main(void *arg)
{
    struct child_reader *reader = arg;
    uint64_t *x = &reader->random, size = reader->slot->plan->size;
    uint8_t *buf = malloc(10 * BLOCK);

    while (!reader->wrong && !is_readable(reader->end)) {
        uint64_t off = random_below(x, size),
                 len = min_u64(1 + random_below(x, 9 * BLOCK), size - off);
        int64_t began = monotonic_ns();

        memset(buf, 0, (size_t)len);
        needs_tell(reader->slot, x);
        if (read_collecting(reader->slot->s.blob, buf, (size_t)len, off, chance(x, 50)))
            reader->wrong = 3;
        else if (memcmp(buf, content + off, (size_t)len) != 0)
            reader->wrong = 4;
        reader->late += monotonic_ns() - began > READ_MOST_NS;
        note_events(reader->events, 1);
    }
    free(buf);
    return NULL;
}

/* The exit status: 0; 3: an error; 4: a wrong byte; 5: several reads took too long; ONE_LATE. */
static int child_main(const struct plan *plan, const char *folder, unsigned number, uint64_t random,
                      int end, int events)
{
    struct slot slot = {.plan = plan, .folder = folder, .number = number};
    struct child_reader readers[2];
    unsigned late = 0;
    int wrong = 0;

    slot_open(&slot);
    fake_set_script(slot.s.fake, slowly, &events);
    for (unsigned i = 0; i < 2; i++) {
        readers[i] = (struct child_reader){
            .slot = &slot, .random = begin_random(random + i), .end = end, .events = events};
        pthread_create(&readers[i].thread, NULL, child_reader_main, &readers[i]);
    }
    for (unsigned i = 0; i < 2; i++) {
        pthread_join(readers[i].thread, NULL);
        wrong = wrong ? wrong : readers[i].wrong;
        late += readers[i].late;
    }
    slot_close(&slot);
    return wrong ? wrong : late > 1 ? 5 : late ? ONE_LATE : 0;
}

static struct child begin_child(const struct plan *plan, const char *folder, unsigned number,
                                uint64_t random)
{
    struct child child;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    child.events = eventfd(0, 0);
    assert_true(child.events >= 0);
    child.pid = fork();
    assert_true(child.pid >= 0);
    if (!child.pid) {
        int wrong;

        close(ends[1]);
        watch();
        wrong = child_main(plan, folder, number, random, ends[0], child.events);
        note_events(child.events, EVENTS_ALL);
        _exit(wrong);
    }
    close(ends[0]);
    child.end = ends[1];
    return child;
}

static void end_child(struct child *child, bool kills)
{
    int status;

    if (kills)
        kill(child->pid, SIGKILL);
    else
        assert_int_equal(write(child->end, "", 1), 1); /* the other children have it open too */
    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
    close(child->end);
    close(child->events);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && kills)
        return;
    if (WIFEXITED(status) && WEXITSTATUS(status) == ONE_LATE && !is_late)
        is_late = true;
    else if (status)
        fail_msg("seed %llu: a child ended with status 0x%x", (unsigned long long)seed_now,
                 (unsigned)status);
}

/* One process drops what it has read, another what its plan needs last, so there is always
 * something to fetch. */
static void run_processes(uint64_t seed, const char *folder)
{
    struct plan plan = {
        .seed = seed, .size = 250 * BLOCK + 99, .stages = CHILDREN, .guided = seed & 1};
    struct child children[CHILDREN];
    uint64_t x = begin_random(seed);

    for (unsigned i = 0; i < CHILDREN; i++) {
        plan.options[i] = (struct stage_options){.keep = i ? STAGE_PIN : STAGE_ONCE,
                                                 .limit_percent = 100,
                                                 .block = BLOCK,
                                                 .jobs = 4,
                                                 .retry_limit_s = 20,
                                                 .background = i == 2};
        if (i == 1 && plan.guided) {
            plan.options[i].keep = STAGE_PLAN;
            plan.options[i].limit = 150 * BLOCK;
            plan.options[i].limit_percent = 0;
        }
        children[i] = begin_child(&plan, folder, i, random_next(&x));
    }
    for (unsigned i = 0; i < KILLS; i++) {
        unsigned which = (unsigned)random_below(&x, CHILDREN);

        await_events(&children[which], random_below(&x, EVENTS));
        end_child(&children[which], true);
        children[which] = begin_child(&plan, folder, which, random_next(&x));
    }
    for (unsigned i = 0; i < CHILDREN; i++)
        await_events(&children[i], EVENTS);
    for (unsigned i = 0; i < CHILDREN; i++)
        end_child(&children[i], false);
}

static void test_processes(void **state)
{
    uint64_t n = n_seeds == SEEDS ? 1 : n_seeds;

    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + n; seed++) {
        void *folder;

        temp_setup(&folder);
        seed_now = seed;
        is_late = false;
        printf("processes, seed %llu\n", (unsigned long long)seed);
        fflush(stdout);
        watch();
        run_processes(seed, folder);
        alarm(0);
        temp_teardown(&folder);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes), /* first: the parent has had no threads */
        cmocka_unit_test(test_threads),
    };

    lock_init(&steps.lock);
    pthread_cond_init(&steps.changed, NULL);
    stage_fixture_content(content, sizeof(content));
    if (argc > 2) {
        first_seed = strtoull(argv[2], NULL, 10);
        n_seeds = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    }
    if (argc > 1)
        return unit_run(argv[1], &tests[strcmp(argv[1], "threads") == 0 ? 1 : 0], 1, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
