/* The stage with one thread at a time, in many orders: readers, a transport that fails, blocks that
 * are dropped, a stage that ends. Every byte is right, a failure has its reason, no thread waits
 * for ever, and without failures no reader waits longer than the transfers take.
 *
 *     test_cache_stage_schedules           2,000 runs, as in each test run
 *     test_cache_stage_schedules N [SEED]  N runs, from this seed on
 *
 * A run that goes wrong prints its seed, which gives the same run again. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/read_context.h"
#include "cache/disk/staged_file.h"
#include "cache/stage/stage.h"
#include "support/fake_transport.h"
#include "support/random.h"
#include "support/schedule.h"
#include "support/temp_folder.h"

#define BLOCK   4096
#define SIZE    42000 /* 10 blocks, and a part */
#define READERS 3
#define FILES   2
#define JOBS    2
#define SMALL   8
#define PIECES  6
#define ROUNDS  6 /* then it waits for each piece: blocks may be dropped before it reads again */
#define RUNS    2000
#define AGAIN   28 /* runs that are compared with a second one */

static uint8_t content[FILES * SIZE];
static const char *folder;
static const char *const urls[FILES] = {"fake://file", "fake://other@42000"};

/* What may happen, and what readers may get. */
struct scenario {
    const char *name;
    unsigned stages; /* that share the folder */
    unsigned fails;  /* of a hundred transfers, so many break after a part */
    unsigned early;  /* see schedule_begin() */
    bool is_refused; /* more transfers than JOBS at once are refused */
    uint64_t limit;  /* bytes of the cache folder; 0: all of the disk */
    enum stage_keep keep;
    bool background; /* everything is fetched meanwhile */
    bool is_dropped; /* another process drops blocks */
    void (*meanwhile)(struct stage *stage);
    int error; /* that a reader may get; 0: none */
};

/* `epochfs stage`, and a signal. */
static void stage_all(struct stage *stage)
{
    struct diag d = {0};
    int r;

    stage_begin(stage);
    for (unsigned i = 0; (r = stage_wait(stage, 5000, &d)) == 0 && i < 20; i++)
        continue;
    if (r < 0 && r != -ENOSPC)
        schedule_fail("stage_wait(): %d %s", r, d.text);
}

static const struct scenario scenarios[] = {
    {"readers", .stages = 1},
    {"readers and the background", .stages = 1, .background = true},
    {"transfers that break", .stages = 1, .fails = 30},
    {"transfers that break, and slow threads", .stages = 1, .fails = 30, .early = 20},
    {"a remote that refuses many", .stages = 1, .is_refused = true},
    {"a cache that is too small", .stages = 1, .limit = 40 << 10, .keep = STAGE_PLAN,
     .background = true},
    {"blocks that are dropped", .stages = 1, .is_dropped = true},
    {"a command that stages all", .stages = 1, .fails = 10, .background = true,
     .meanwhile = stage_all},
    {"the same without space", .stages = 1, .background = true, .limit = 64 << 10,
     .meanwhile = stage_all},
    {"two processes", .stages = 2},
    {"two processes, and transfers that break", .stages = 2, .fails = 30, .background = true},
    {"two processes whose cache is too small", .stages = 2, .limit = 44 << 10, .keep = STAGE_PLAN,
     .early = 2},
    {"the end of a mount", .stages = 1, .fails = 10, .meanwhile = stage_end, .error = -EINTR},
    {"a fork", .stages = 1, .fails = 10, .background = true, .meanwhile = stage_rest,
     .error = -EINTR},
};

/* A run. */
static struct {
    const struct scenario *scenario;
    struct fake *fake[2];
    struct stage *stage[2];
    struct blob *blob[2][FILES];
} run;

/* Blocks of several files are dropped in the order of their addresses, which are not of the seed.
 */
static unsigned n_files(void)
{
    return run.scenario->keep == STAGE_PLAN ? 1 : FILES;
}

static struct fake_answer script(void *ctx, const struct transfer *transfer, unsigned number)
{
    struct fake *fake = ctx;
    struct fake_answer answer = {.end = TRANSFER_DONE, .bytes = UINT64_MAX};

    (void)number;
    if (schedule_random(100) < run.scenario->fails ||
        (run.scenario->is_refused && fake_at_once(fake) > JOBS)) {
        answer.end = TRANSFER_AGAIN;
        answer.bytes = schedule_random(transfer->len + 1);
    }
    return answer;
}

static int read_waiting(struct blob *blob, uint8_t *buf, size_t len, uint64_t off, struct diag *d)
{
    return blob_read(READ_WAITS, blob, buf, len, off, d);
}

/* As a request of the kernel: what is missing is noted, and comes before it is read again. In
 * pieces, as a batch is. */
static int read_collecting(struct blob *blob, uint8_t *buf, size_t len, uint64_t off,
                           struct diag *d)
{
    struct blob_piece piece[PIECES];
    struct read_context rc;
    size_t n = 0, step = 1 + schedule_random(len);
    int r;

    step = max_u64(step, ceil_div(len, PIECES));
    for (size_t at = 0; at < len; at += step)
        piece[n++] = (struct blob_piece){buf + at, min_u64(step, len - at), off + at};
    read_context_init(&rc, true);
    for (unsigned round = 0; (r = blob_read_many(&rc, blob, piece, n, d)) == -EAGAIN; round++) {
        rc.collects = round < ROUNDS;
        if ((r = missing_wait(&rc, false, d)) < 0)
            break;
    }
    read_context_release(&rc);
    return r;
}

static void *reader_main(void *arg)
{
    struct blob *const *blobs = arg;
    uint8_t buf[SIZE];

    for (unsigned i = 0; i < (run.scenario->limit || run.scenario->is_dropped ? 4 : 2); i++) {
        uint64_t off = schedule_random(run.scenario->is_dropped ? 2 * BLOCK : SIZE);
        size_t len = 1 + schedule_random(min_u64(SIZE - off, 3 * BLOCK));
        unsigned f = (unsigned)schedule_random(n_files());
        struct diag d = {0};
        int r;

        memset(buf, 0, sizeof(buf));
        r = (schedule_random(2) ? read_waiting : read_collecting)(blobs[f], buf, len, off, &d);

        if (r < 0 && r != run.scenario->error)
            schedule_fail("a read of %zu bytes at %llu: %d %s", len, (unsigned long long)off, r,
                          d.text);
        if (r == 0 && memcmp(buf, content + f * SIZE + off, len) != 0)
            schedule_fail("a read of %zu bytes at %llu: other bytes", len, (unsigned long long)off);
    }
    return NULL;
}

/* Another process opens the staged file, and drops blocks of it. */
static void *dropper_main(void *arg)
{
    struct staged_key key = {urls[0], arg, SIZE, BLOCK};
    struct staged staged;
    struct staged_dropped dropped;
    struct cache_folder cache;
    struct diag d = {0};

    if (cache_folder_init(&cache, folder) < 0 || staged_open(&staged, &cache, &key, &d) < 0)
        schedule_fail("staged_open(): %s", d.text);
    for (unsigned i = 0; i < 4; i++) {
        uint64_t first = schedule_random(3);

        schedule_pause((unsigned)schedule_random(100));
        staged_drop_ranges(&staged, &(struct staged_range){first, 1 + schedule_random(2)}, 1,
                           &dropped);
    }
    staged_close(&staged);
    cache_folder_release(&cache);
    return NULL;
}

/* A forecast by which blocks are needed in some order, so that there is one to drop. */
static size_t needs_next(void *ctx, struct stage_need *ret, size_t capacity)
{
    (void)ctx;
    (void)ret;
    (void)capacity;
    return 0;
}

static void needs_when(void *ctx, size_t n, struct stage_need *need)
{
    (void)ctx;
    for (size_t i = 0; i < n; i++)
        need[i].when = 32 * schedule_choices() + need[i].off / BLOCK * 7 % 11;
}

static const struct stage_needs needs = {.next = needs_next, .when = needs_when};

static void open_stage(unsigned i, const struct cache_folder *cache, const char *etag)
{
    const struct scenario *s = run.scenario;
    const struct stage_options options = {
        .limit = s->limit,
        .limit_percent = s->limit ? 0 : 100,
        .keep = s->keep,
        .memory = 4 * BLOCK, /* of blocks that have no place on disk */
        .block = BLOCK,
        .jobs = JOBS,
        .small_jobs = SMALL,
        .retry_limit_s = 600,
        .background = s->background,
    };
    struct remote_version version = {.size = SIZE};
    struct stage_file file = {.version = &version, .mode = 0444};
    struct diag d = {0};

    snprintf(version.etag, sizeof(version.etag), "%s", etag);
    if (fake_new(content, sizeof(content), SMALL, NULL, &run.fake[i]) < 0)
        schedule_fail("no memory");
    fake_set_script(run.fake[i], script, run.fake[i]);
    if (stage_new(&options, cache, fake_transport(run.fake[i]), &run.stage[i], &d) < 0)
        schedule_fail("the stage: %s", d.text);
    for (unsigned f = 0; f < n_files(); f++) {
        file.url = file.key = file.name = urls[f];
        if (stage_add(run.stage[i], &file, &run.blob[i][f], &d) < 0)
            schedule_fail("the stage: %s", d.text);
    }
    if (s->keep == STAGE_PLAN)
        stage_set_needs(run.stage[i], &needs);
    if (s->background)
        stage_begin(run.stage[i]);
}

/* Without failures no byte comes twice, to any process, and nothing waits for a time limit; but a
 * process looks now and then what another one fetches. */
static void check_calm(const struct scenario *s)
{
    if (s->fails || s->early || s->is_refused || s->limit || s->meanwhile || s->is_dropped)
        return;
    if (schedule_passed() > (s->stages > 1 ? 60 : 1) * INT64_C(1000000000))
        schedule_fail("%lld ms have passed: a thread was not woken",
                      (long long)(schedule_passed() / 1000000));
    for (uint64_t at = 0; at < sizeof(content); at += BLOCK)
        if (fake_given_at(run.fake[0], at) + (s->stages > 1 ? fake_given_at(run.fake[1], at) : 0) >
            1)
            schedule_fail("the byte at %llu has come twice", (unsigned long long)at);
}

static uint64_t run_one(uint64_t seed)
{
    const struct scenario *s = &scenarios[seed % (sizeof(scenarios) / sizeof(scenarios[0]))];
    struct cache_folder cache;
    pthread_t reader[READERS], dropper;
    char etag[40], version[80];

    schedule_begin(s->name, seed, s->early);
    run.scenario = s;
    if (cache_folder_init(&cache, folder) < 0)
        schedule_fail("no memory");
    snprintf(etag, sizeof(etag), "\"%llu\"", (unsigned long long)seed);
    for (unsigned i = 0; i < s->stages; i++)
        open_stage(i, &cache, etag);
    for (unsigned i = 0; i < READERS; i++)
        pthread_create(&reader[i], NULL, reader_main, run.blob[i % s->stages]);
    snprintf(version, sizeof(version), "%d %s 0.000000000", SIZE, etag);
    if (s->is_dropped)
        pthread_create(&dropper, NULL, dropper_main, version);
    schedule_pause((unsigned)schedule_random(s->meanwhile ? 100 : 1));
    if (s->meanwhile)
        s->meanwhile(run.stage[0]);
    for (unsigned i = 0; i < READERS; i++)
        pthread_join(reader[i], NULL);
    if (s->is_dropped)
        pthread_join(dropper, NULL);
    check_calm(s);
    for (unsigned i = 0; i < s->stages; i++)
        stage_free(run.stage[i]);
    cache_folder_release(&cache);
    return schedule_end();
}

int main(int argc, char **argv)
{
    uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : RUNS;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 0, all = 0, x = RANDOM_SEED;
    const char *memory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : getenv("TMPDIR");
    char made[PATH_MAX];

    snprintf(made, sizeof(made), "%s/epochfs-schedules-XXXXXX", memory ? memory : "/tmp");
    if (argc > 3 || !n || !mkdtemp(made)) {
        fprintf(stderr, "usage: %s [N [SEED]]\n", argv[0]);
        return 2;
    }
    folder = made;
    for (size_t i = 0; i < sizeof(content); i++)
        content[i] = (uint8_t)(random_next(&x) >> 20 | 1); /* a hole has 0 */
    for (uint64_t i = 0; i < n; i++) {
        uint64_t trace = run_one(seed + i);

        all += schedule_choices();
        temp_remove(folder);
        if (i < AGAIN && run_one(seed + i) != trace)
            schedule_fail("the same seed has given another run");
        if (i < AGAIN)
            temp_remove(folder);
    }
    printf("%llu runs, %llu choices\n", (unsigned long long)n, (unsigned long long)all);
    return 0;
}
