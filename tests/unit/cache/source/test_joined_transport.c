/* The transport of joined files: bytes in order whatever comes first, many at once, retries and
 * changes of single members, stopping; and the stage on top of it. */
#include "cache/source/joined_transport.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/blob.h"
#include "base/checked.h"
#include "base/lock.h"
#include "cache/disk/sha256.h"
#include "cache/stage/stage.h"
#include "tests/support/fake_transport.h"
#include "tests/support/random.h"
#include "tests/support/stage_fixture.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_clock.h"
#include "tests/support/unit.h"

#define MEMBERS    300
#define LARGE      77 /* the member of LARGE_SIZE bytes; number 5 and some others are empty */
#define LARGE_SIZE (UINT64_C(3) << 20)
#define THREADS    64

/* The request that fails next: all of the first ones, then some. */
#ifdef SLOW_BUILD
#define NEXT(n) ((n) + ((n) < 4 ? 1 : 41))
#else
#define NEXT(n) ((n) + ((n) < 20 ? 1 : 37))
#endif

static uint8_t *content;
static uint64_t size;
static struct members members;
static struct lock lock;
static pthread_cond_t changed;

/* ---- the folder of members ---- */

static void members_fill(void)
{
    const uint64_t version[2] = {1, 2};
    uint64_t rng = RANDOM_SEED;
    char name[32];
    uint32_t folder;

    assert_int_equal(members_add_folder(&members, "", &folder), 0);
    for (size_t i = 0; i < MEMBERS; i++) {
        uint64_t n = i % 50 == 5 ? 0 : 1 + random_next(&rng) % 20000;

        snprintf(name, sizeof(name), "%04zu.jpg", i);
        assert_int_equal(members_add(&members, folder, name, i == LARGE ? LARGE_SIZE : n, version),
                         0);
    }
    size = members_end(&members);
    content = malloc(size);
    assert_non_null(content);
    stage_fixture_content(content, size);
}

/* The size of the members, for tests that set it; NULL: unknown. */
static uint8_t *sums;

static int where(const struct joined_parts *parts, size_t i, char **ret_url,
                 struct remote_version *ret_version)
{
    assert_ptr_equal(parts->members, &members);
    *ret_version = (struct remote_version){.size = members_size(&members, i)};
    return asprintf(ret_url, "fake://%zu@%llu", i, (unsigned long long)members.member[i].place) < 0
               ? -ENOMEM
               : 0;
}

static void parts_free(struct joined_parts *parts)
{
    free(parts);
}

/* ---- transfers ---- */

struct world {
    struct fake *fake;
    struct transport *transport;
    char url[JOINED_URL_SIZE];
    struct test_clock clock;
};

static void add_parts(struct world *w)
{
    struct joined_parts *parts = calloc(1, sizeof(*parts));

    assert_non_null(parts);
    *parts = (struct joined_parts){
        .members = &members, .sha256 = sums, .where = where, .free = parts_free};
    assert_int_equal(joined_transport_add(w->transport, parts, w->url), 0);
}

static void world_open(struct world *w, unsigned jobs)
{
    test_clock_init(&w->clock);
    assert_int_equal(fake_new(content, size, THREADS, &w->clock.clock, &w->fake), 0);
    assert_int_equal(joined_transport_new(fake_transport(w->fake), jobs, &w->transport), 0);
    add_parts(w);
}

static void world_close(struct world *w)
{
    transport_free(w->transport);
    test_clock_release(&w->clock);
}

/* A transfer and its result. */
struct job {
    struct transfer transfer; /* first */
    struct remote_version version;
    uint64_t stop_at; /* bytes after which data() says stop; 0: never */
    /* Guarded by lock: */
    uint64_t got;   /* bytes, with stale ones */
    uint64_t stale; /* bytes */
    uint64_t stale_at;
    int error; /* of the stale ones */
    unsigned ends;
    enum transfer_end how;
    uint64_t retry_ms;
    struct diag why;
};

static bool take_data(struct transfer *transfer, const void *bytes, size_t n)
{
    struct job *job = (struct job *)transfer;
    LOCK_SCOPE(&lock);

    assert_true(job->got + n <= transfer->len);
    assert_memory_equal(bytes, content + transfer->off + job->got, n);
    job->got += n;
    pthread_cond_broadcast(&changed);
    return !job->stop_at || job->got < job->stop_at;
}

static bool take_stale(struct transfer *transfer, uint64_t n, int error, const struct diag *d)
{
    struct job *job = (struct job *)transfer;
    LOCK_SCOPE(&lock);

    assert_true(d->set);
    assert_true(job->got + n <= transfer->len);
    job->stale_at = job->stale ? job->stale_at : transfer->off + job->got;
    job->got += n;
    job->stale += n;
    job->error = error;
    pthread_cond_broadcast(&changed);
    return true;
}

static void take_end(struct transfer *transfer, enum transfer_end how, uint64_t retry_ms,
                     const struct diag *d)
{
    struct job *job = (struct job *)transfer;
    LOCK_SCOPE(&lock);

    job->how = how;
    job->retry_ms = retry_ms;
    job->why = *d;
    job->ends++;
    pthread_cond_broadcast(&changed);
}

static void job_start(struct job *job, struct world *w, uint64_t off, uint64_t len)
{
    *job = (struct job){.transfer = {.url = w->url,
                                     .off = off,
                                     .len = len,
                                     .data = take_data,
                                     .end = take_end,
                                     .stale = take_stale},
                        .version = {.size = size}};
    job->transfer.version = &job->version;
    assert_int_equal(transport_start(w->transport, &job->transfer), 0);
}

static void job_wait(struct job *job)
{
    lock_take(&lock);
    while (!job->ends)
        lock_wait(&lock, &changed);
    assert_int_equal(job->ends, 1);
    lock_drop(&lock);
}

static void job_await_bytes(struct job *job, uint64_t n)
{
    lock_take(&lock);
    while (job->got < n)
        lock_wait(&lock, &changed);
    lock_drop(&lock);
}

static void check_end(struct job *job, enum transfer_end how)
{
    job_wait(job);
    if (job->how != how)
        fail_msg("ends with %d, expected %d: %s", job->how, how, job->why.text);
    if (how == TRANSFER_DONE)
        assert_int_equal(job->got, job->transfer.len);
}

static size_t member_of(const struct transfer *transfer)
{
    return (size_t)strtoull(transfer->url + strlen("fake://"), NULL, 10);
}

/* ---- bytes ---- */

UNIT_TEST(test_joined__any_range__bytes_in_order)
{
    uint64_t rng = RANDOM_SEED;
    struct world w;
    struct job job;

    world_open(&w, 16);
    job_start(&job, &w, 0, size);
    check_end(&job, TRANSFER_DONE);
    assert_int_equal(fake_given(w.fake), size);
    for (unsigned i = 0; i < 200; i++) {
        uint64_t off = random_next(&rng) % size, len = 1 + random_next(&rng) % 60000;

        job_start(&job, &w, off, min_u64(len, size - off));
        check_end(&job, TRANSFER_DONE);
    }
    world_close(&w);
}

UNIT_TEST(test_joined__outside__einval)
{
    struct world w;
    struct job job = {.version = {.size = size}};

    world_open(&w, 4);
    job.transfer = (struct transfer){
        .url = w.url, .version = &job.version, .off = size - 1, .len = 2, .end = take_end};
    assert_int_equal(transport_start(w.transport, &job.transfer), -EINVAL);
    job.transfer.len = 0;
    assert_int_equal(transport_start(w.transport, &job.transfer), -EINVAL);
    job.transfer.len = 1;
    job.transfer.url = "joined:99";
    assert_int_equal(transport_start(w.transport, &job.transfer), -EINVAL);
    world_close(&w);
}

UNIT_TEST(test_joined__other_file__passes_through)
{
    _Atomic uint64_t requests = 0;
    struct world w;
    struct job job;

    world_open(&w, 4);
    w.transport->requests = &requests;
    snprintf(w.url, sizeof(w.url), "fake://file");
    job_start(&job, &w, 1000, size - 1000);
    check_end(&job, TRANSFER_DONE);
    assert_int_equal(fake_started(w.fake), 1);
    assert_int_equal(requests, 1);
    world_close(&w);
}

/* ---- many at once, in any order ---- */

static struct fake_answer stall_all(void *ctx, const struct transfer *transfer, unsigned number)
{
    (void)ctx;
    (void)transfer;
    (void)number;
    return (struct fake_answer){.end = TRANSFER_DONE, .bytes = 0, .stalls = true, .goes_on = true};
}

UNIT_TEST(test_joined__many_members__half_of_all_at_once)
{
    struct world w;
    struct job job, other;

    world_open(&w, 16);
    fake_set_script(w.fake, stall_all, NULL);
    job_start(&job, &w, 0, members.member[LARGE].place);
    fake_wait_stalled(w.fake, 8);
    assert_int_equal(fake_at_once(w.fake), 8);
    job_start(&other, &w, members.member[LARGE + 1].place, UINT64_C(1) << 20);
    fake_wait_stalled(w.fake, 16); /* one that came later has its share at once */
    assert_int_equal(fake_at_once(w.fake), 16);
    fake_release(w.fake);
    check_end(&job, TRANSFER_DONE);
    check_end(&other, TRANSFER_DONE);
    assert_true(fake_most_at_once(w.fake) <= 16);
    world_close(&w);
}

/* The first member comes last. */
static struct fake_answer stall_first(void *ctx, const struct transfer *transfer, unsigned number)
{
    (void)ctx;
    (void)number;
    return (struct fake_answer){.end = TRANSFER_DONE,
                                .bytes = member_of(transfer) ? UINT64_MAX : 10,
                                .stalls = !member_of(transfer),
                                .goes_on = true};
}

UNIT_TEST(test_joined__first_comes_last__window_in_order)
{
    const uint64_t window = UINT64_C(4) << 20;
    struct world w;
    struct job job;

    world_open(&w, 16);
    fake_set_script(w.fake, stall_first, NULL);
    job_start(&job, &w, 0, size);
    job_await_bytes(&job, 10);
    fake_wait_stalled(w.fake, 1);
    /* What comes after it is bounded. */
    fake_wait_given(w.fake, window - 2 * (UINT64_C(1) << 20));
    assert_true(fake_given(w.fake) <= window);
    assert_int_equal(job.got, 10);
    fake_release(w.fake);
    check_end(&job, TRANSFER_DONE);
    assert_int_equal(fake_given(w.fake), size);
    world_close(&w);
}

/* ---- failures ---- */

#define BAD 40

/* Member BAD fails, as ctx says, the first time. */
struct fault {
    struct fake_answer answer;
    _Atomic unsigned times, seen;
};

static struct fake_answer fail_bad(void *ctx, const struct transfer *transfer, unsigned number)
{
    struct fault *fault = ctx;

    (void)number;
    if (member_of(transfer) != BAD || atomic_fetch_add(&fault->seen, 1) >= fault->times)
        return (struct fake_answer){.end = TRANSFER_DONE, .bytes = UINT64_MAX};
    return fault->answer;
}

UNIT_TEST(test_joined__member_fails__only_it_is_asked_again)
{
    struct fault fault = {{.end = TRANSFER_AGAIN, .bytes = 1, .stalls = true, .retry_ms = 7},
                          .times = 1};
    const uint64_t end = members.member[BAD + 30].place,
                   others = end - members_size(&members, BAD) + 1;
    struct world w;
    struct job job;

    world_open(&w, 16);
    fake_set_script(w.fake, fail_bad, &fault);
    job_start(&job, &w, 0, end);
    fake_wait_given(w.fake, others); /* it fails when all others have come */
    fake_release(w.fake);
    check_end(&job, TRANSFER_AGAIN);
    assert_int_equal(job.retry_ms, 7);
    assert_diag_has(&job.why, "fake://40");
    assert_int_equal(job.got, members.member[BAD].place + 1);
    job_start(&job, &w, job.got, end - job.got);
    check_end(&job, TRANSFER_DONE);
    assert_int_equal(fake_given(w.fake), end);
    assert_int_equal(fake_started(w.fake), BAD + 30 - 2 + 1); /* two are empty */
    world_close(&w);
}

/* The next tries end and begin within members that are kept. */
UNIT_TEST(test_joined__tries_cut_kept_members__no_byte_twice)
{
    struct fault fault = {{.end = TRANSFER_AGAIN, .bytes = 0, .stalls = true}, .times = 1};
    const uint64_t first = members.member[BAD].place, end = members.member[BAD + 30].place,
                   others = end - first - members_size(&members, BAD);
    struct world w;
    struct job job;

    world_open(&w, 16);
    fake_set_script(w.fake, fail_bad, &fault);
    job_start(&job, &w, first, end - first);
    fake_wait_given(w.fake, others);
    fake_release(w.fake);
    check_end(&job, TRANSFER_AGAIN);
    for (uint64_t at = end, n = 7000; at > first; at -= n) { /* from behind */
        n = min_u64(n, at - first);
        job_start(&job, &w, at - n, n);
        check_end(&job, TRANSFER_DONE);
    }
    assert_int_equal(fake_given(w.fake), end - first);
    world_close(&w);
}

/* Member BAD fails when it is released, and half of the next one comes. */
static struct fake_answer fail_behind(void *ctx, const struct transfer *transfer, unsigned number)
{
    _Atomic unsigned *seen = ctx;

    (void)number;
    if (member_of(transfer) == BAD && !seen[0]++)
        return (struct fake_answer){.end = TRANSFER_AGAIN, .bytes = 0, .stalls = true};
    if (member_of(transfer) == BAD + 1 && !seen[1]++)
        return (struct fake_answer){.end = TRANSFER_AGAIN, .bytes = transfer->len / 2};
    return (struct fake_answer){.end = TRANSFER_DONE, .bytes = UINT64_MAX};
}

/* The next try begins within the half that is kept, and goes on behind it. */
UNIT_TEST(test_joined__half_is_kept_and_cut__right_bytes)
{
    _Atomic unsigned seen[2] = {0};
    const uint64_t first = members.member[BAD].place, next = members.member[BAD + 1].place,
                   n = members_size(&members, BAD + 1), skip = n / 4;
    struct world w;
    struct job job;

    assert_true(skip > 0);
    world_open(&w, 16);
    fake_set_script(w.fake, fail_behind, seen);
    job_start(&job, &w, first, next + n - first);
    fake_wait_given(w.fake, n / 2);
    fake_release(w.fake);
    check_end(&job, TRANSFER_AGAIN);
    job_start(&job, &w, next + skip, n - skip);
    check_end(&job, TRANSFER_DONE);
    assert_int_equal(fake_given(w.fake), n);
    world_close(&w);
}

UNIT_TEST(test_joined__member_changed__stale_and_not_asked_again)
{
    struct fault fault = {{.end = TRANSFER_CHANGED, .bytes = 0}, .times = 99};
    const uint64_t end = members.member[BAD + 30].place;
    struct world w;
    struct job job;

    world_open(&w, 16);
    fake_set_script(w.fake, fail_bad, &fault);
    job_start(&job, &w, 0, end);
    check_end(&job, TRANSFER_DONE);
    assert_int_equal(job.stale_at, members.member[BAD].place);
    assert_int_equal(job.stale, members_size(&members, BAD));
    assert_int_equal(job.error, -ESTALE);
    job_start(&job, &w, members.member[BAD].place + 1, 1);
    check_end(&job, TRANSFER_DONE);
    assert_int_equal(job.stale, 1);
    assert_int_equal(fault.seen, 1);
    world_close(&w);
}

/* It is cut short while it comes: what came before is of the right version. */
UNIT_TEST(test_joined__member_changes_within__its_rest_is_stale)
{
    struct fault fault = {{.end = TRANSFER_CHANGED, .bytes = 100}, .times = 1};
    struct world w;
    struct job job;

    world_open(&w, 16);
    fake_set_script(w.fake, fail_bad, &fault);
    job_start(&job, &w, 0, members.member[BAD + 3].place);
    check_end(&job, TRANSFER_DONE);
    assert_int_equal(job.stale_at, members.member[BAD].place + 100);
    assert_int_equal(job.stale, members_size(&members, BAD) - 100);
    world_close(&w);
}

/* Members with a SHA-256: those that are what it says come as ever, and of the other one nothing.
 */
UNIT_TEST(test_joined__other_sha256__its_bytes_are_bad)
{
    const uint64_t from = members.member[BAD - 20].place, end = members.member[BAD + 30].place;
    struct world w;
    struct job job;

    sums = calloc(MEMBERS, 32);
    assert_non_null(sums);
    for (size_t i = BAD - 20; i < BAD + 20; i++) { /* those behind are unknown */
        AUTO_DIGEST struct digest *digest = NULL;

        assert_int_equal(digest_new(&digest), 0);
        assert_int_equal(
            digest_add(digest, content + members.member[i].place, members_size(&members, i)), 0);
        assert_int_equal(digest_finish(digest, sums + 32 * i), 0);
    }
    sums[32 * BAD + 31] ^= 1;
    world_open(&w, 16);
    job_start(&job, &w, from + 1, end - from - 1);
    check_end(&job, TRANSFER_DONE);
    assert_int_equal(job.stale_at, members.member[BAD].place);
    assert_int_equal(job.stale, members_size(&members, BAD));
    assert_int_equal(job.error, -EBADMSG);
    job_start(&job, &w, members.member[BAD].place, 1);
    check_end(&job, TRANSFER_DONE);
    assert_int_equal(job.error, -EBADMSG);
    world_close(&w);
    free(sums);
    sums = NULL;
}

/* One is refused and those next to it come: its readers alone get an error, and it is not asked for
 * for ever. */
UNIT_TEST(test_joined__one_refused__the_others_come)
{
    struct fault fault = {{.end = TRANSFER_REFUSED, .bytes = 0}, .times = 99};
    struct world w;
    struct job job;

    world_open(&w, 16);
    fake_set_script(w.fake, fail_bad, &fault);
    job_start(&job, &w, members.member[BAD - 20].place,
              members.member[BAD + 3].place - members.member[BAD - 20].place);
    check_end(&job, TRANSFER_DONE);
    assert_int_equal(job.stale_at, members.member[BAD].place);
    assert_int_equal(job.stale, members_size(&members, BAD));
    assert_int_equal(job.error, -EACCES);
    job_start(&job, &w, members.member[BAD].place + 1, 1);
    check_end(&job, TRANSFER_DONE);
    assert_int_equal(job.error, -EACCES);
    assert_in_range(fault.seen, 1, 2);
    world_close(&w);
}

/* Nothing tells whether the member is refused or we are: that may pass. */
UNIT_TEST(test_joined__refused_and_no_other_comes__asked_again_later)
{
    struct fault fault = {{.end = TRANSFER_REFUSED, .bytes = 0}, .times = 2};
    struct world w;
    struct job job;

    world_open(&w, 16);
    fake_set_script(w.fake, fail_bad, &fault);
    job_start(&job, &w, members.member[BAD].place, members_size(&members, BAD));
    check_end(&job, TRANSFER_REFUSED);
    assert_int_equal(job.got, 0);
    job_start(&job, &w, members.member[BAD].place, members_size(&members, BAD));
    check_end(&job, TRANSFER_DONE);
    assert_int_equal(job.stale, 0);
    world_close(&w);
}

static struct fake_answer refuse_all(void *ctx, const struct transfer *transfer, unsigned number)
{
    (void)transfer;
    (void)number;
    return (struct fake_answer){.end = *(bool *)ctx ? TRANSFER_REFUSED : TRANSFER_DONE,
                                .bytes = *(bool *)ctx ? 0 : UINT64_MAX};
}

UNIT_TEST(test_joined__all_refused__none_is_stale)
{
    bool refuses = true;
    struct world w;
    struct job job;

    world_open(&w, 16);
    fake_set_script(w.fake, refuse_all, &refuses);
    job_start(&job, &w, 0, members.member[50].place);
    check_end(&job, TRANSFER_REFUSED);
    refuses = false;
    job_start(&job, &w, 0, members.member[50].place);
    check_end(&job, TRANSFER_DONE);
    assert_int_equal(job.stale, 0);
    world_close(&w);
}

/* The remote sends whole objects only. */
static struct fake_answer only_whole(void *ctx, const struct transfer *transfer, unsigned number)
{
    bool part = transfer->len < transfer->version->size;

    (void)ctx;
    (void)number;
    return (struct fake_answer){.end = part && !transfer->version->whole_only ? TRANSFER_WHOLE
                                                                              : TRANSFER_DONE,
                                .bytes = part && !transfer->version->whole_only ? 0 : UINT64_MAX};
}

UNIT_TEST(test_joined__no_ranges__whole_members)
{
    struct world w;
    struct job job;

    world_open(&w, 8);
    fake_set_script(w.fake, only_whole, NULL);
    job_start(&job, &w, members.member[10].place + 3, 100000);
    check_end(&job, TRANSFER_DONE);
    world_close(&w);
}

UNIT_TEST(test_joined__crowded_and_refused__fewer_at_once)
{
    struct fault fault = {{.end = TRANSFER_AGAIN, .bytes = 0, .retry_ms = 60000}, .times = 1};
    struct limiter limiter;
    struct world w;
    struct job job;

    test_clock_init(&w.clock);
    limiter_init(&limiter, 4, 32, &w.clock.clock);
    assert_int_equal(fake_new(content, size, THREADS, NULL, &w.fake), 0);
    fake_transport(w.fake)->limiter = &limiter;
    assert_int_equal(joined_transport_new(fake_transport(w.fake), 0, &w.transport), 0);
    add_parts(&w);
    fake_set_script(w.fake, stall_all, NULL);
    job_start(&job, &w, members.member[BAD + 60].place, UINT64_C(200) << 10);
    fake_wait_stalled(w.fake, 16);
    assert_int_equal(fake_at_once(w.fake), 16);
    transport_stop(w.transport, &job.transfer);
    check_end(&job, TRANSFER_STOPPED);
    fake_release(w.fake);
    while (fake_at_once(w.fake)) /* what goes on without it */
        sched_yield();
    assert_int_equal(limiter_most(&limiter), 32);
    limiter_refused(&limiter, 0); /* as others may have been */
    assert_int_equal(limiter_most(&limiter), 4);
    fake_hold(w.fake);
    job_start(&job, &w, members.member[BAD].place, UINT64_C(200) << 10);
    fake_wait_stalled(w.fake, 2);
    assert_int_equal(fake_at_once(w.fake), 2);
    fake_set_script(w.fake, fail_bad, &fault);
    fake_release(w.fake);
    check_end(&job, TRANSFER_DONE);
    world_close(&w);
    limiter_release(&limiter);
}

/* ---- stopping ---- */

/* Small pieces come to their end without the joint. The next one takes them over; one that begins
 * in the middle of a piece waits for its end. */
UNIT_TEST(test_joined__stopped__small_pieces_go_on)
{
    const uint64_t first = members.member[BAD].place, end = members.member[BAD + 3].place;

    for (unsigned less = 0; less < 2; less++) {
        struct world w;
        struct job job;

        world_open(&w, 8);
        fake_set_script(w.fake, stall_all, NULL);
        job_start(&job, &w, first, end - first);
        fake_wait_stalled(w.fake, 3);
        transport_stop(w.transport, &job.transfer);
        check_end(&job, TRANSFER_STOPPED);
        assert_int_equal(fake_at_once(w.fake), 3);
        job_start(&job, &w, first + less, end - first - 2 * less);
        fake_release(w.fake);
        check_end(&job, TRANSFER_DONE);
        assert_int_equal(fake_given(w.fake), end - first);
        assert_int_equal(fake_started(w.fake), 3);
        world_close(&w);
    }
}

/* A piece that goes on and fails is asked for again, from the byte that it did not bring. */
UNIT_TEST(test_joined__stopped__piece_fails__asked_for_anew)
{
    struct fault fault = {{.end = TRANSFER_AGAIN, .bytes = 1, .stalls = true}, .times = 1};
    const uint64_t first = members.member[BAD].place, end = members.member[BAD + 1].place;
    struct world w;
    struct job job;

    world_open(&w, 8);
    fake_set_script(w.fake, fail_bad, &fault);
    job_start(&job, &w, first, end - first);
    job_await_bytes(&job, 1);
    fake_wait_stalled(w.fake, 1);
    transport_stop(w.transport, &job.transfer);
    check_end(&job, TRANSFER_STOPPED);
    job_start(&job, &w, first + 1, end - first - 1);
    fake_release(w.fake);
    job_wait(&job);
    if (job.how == TRANSFER_AGAIN) { /* it took the piece over before that failed */
        job_start(&job, &w, first + 1, end - first - 1);
        job_wait(&job);
    }
    check_end(&job, TRANSFER_DONE);
    assert_int_equal(fake_given(w.fake), end - first);
    world_close(&w);
}

UNIT_TEST(test_joined__stopped_and_nothing_comes__ends_at_once)
{
    struct world w;
    struct job job;

    world_open(&w, 8);
    fake_set_script(w.fake, stall_all, NULL);
    job_start(&job, &w, 0, size);
    fake_wait_stalled(w.fake, 4);
    transport_stop(w.transport, &job.transfer);
    check_end(&job, TRANSFER_STOPPED);
    world_close(&w); /* which stops what goes on */
}

UNIT_TEST(test_joined__stopped_at_once__ends_once)
{
    struct world w;
    struct job job;

    world_open(&w, 8);
    job_start(&job, &w, 0, size);
    transport_stop(w.transport, &job.transfer);
    check_end(&job, TRANSFER_STOPPED);
    world_close(&w);
}

/* A large member is no use to wait for. */
UNIT_TEST(test_joined__stopped_in_a_large_member__ends_at_once)
{
    struct world w;
    struct job job;

    world_open(&w, 8);
    fake_set_script(w.fake, stall_all, NULL);
    job_start(&job, &w, members.member[LARGE].place, LARGE_SIZE);
    fake_wait_stalled(w.fake, 1);
    transport_stop(w.transport, &job.transfer);
    check_end(&job, TRANSFER_STOPPED);
    world_close(&w);
}

/* Bytes that are not asked for again also count as received. */
UNIT_TEST(test_joined__kept_in_vain__counted)
{
    struct fault fault = {{.end = TRANSFER_AGAIN, .bytes = 0, .stalls = true}, .times = 1};
    const uint64_t first = members.member[BAD].place, end = members.member[BAD + 30].place,
                   others = end - first - members_size(&members, BAD), cut = 100;
    _Atomic uint64_t spare = 0;
    struct world w;
    struct job job;

    world_open(&w, 16);
    w.transport->spare_bytes = &spare;
    fake_set_script(w.fake, fail_bad, &fault);
    job_start(&job, &w, first, end - first);
    fake_wait_given(w.fake, others);
    fake_release(w.fake);
    check_end(&job, TRANSFER_AGAIN);
    job_start(&job, &w, members.member[BAD + 1].place, cut);
    check_end(&job, TRANSFER_DONE);
    assert_int_equal(spare, 0);
    world_close(&w);
    assert_int_equal(spare, others - cut);
}

UNIT_TEST(test_joined__data_says_stop__ends)
{
    struct world w;
    struct job job = {.transfer = {.url = w.url,
                                   .version = &job.version,
                                   .len = size,
                                   .data = take_data,
                                   .end = take_end,
                                   .stale = take_stale},
                      .version = {.size = size},
                      .stop_at = 100000};

    world_open(&w, 8);
    assert_int_equal(transport_start(w.transport, &job.transfer), 0);
    check_end(&job, TRANSFER_STOPPED);
    assert_true(job.got >= 100000 && job.got < size);
    world_close(&w);
}

UNIT_TEST(test_joined__paused__asks_for_nothing_more)
{
    unsigned started;
    struct world w;
    struct job job;

    world_open(&w, 8);
    fake_set_script(w.fake, stall_all, NULL);
    job_start(&job, &w, 0, size);
    fake_wait_stalled(w.fake, 4);
    transport_pause(w.transport, &job.transfer, true);
    started = fake_started(w.fake);
    fake_release(w.fake);
    job_await_bytes(&job, 1);
    transport_rest(fake_transport(w.fake)); /* all that was started has come */
    assert_int_equal(fake_started(w.fake), started);
    transport_pause(w.transport, &job.transfer, false);
    check_end(&job, TRANSFER_DONE);
    world_close(&w);
}

/* ---- with the stage ---- */

struct staged {
    struct cache_folder cache;
    struct fake *fake;
    struct stage *stage;
    struct blob *blob;
    struct test_clock clock;
};

static void staged_open(struct staged *s, const char *folder, uint32_t block, fake_script *script,
                        void *ctx)
{
    struct stage_options options = {.limit_percent = 100,
                                    .block = block,
                                    .jobs = 4,
                                    .small_jobs = 32,
                                    .retry_limit_s = 1000000,
                                    .background = true};
    struct joined_parts *parts = calloc(1, sizeof(*parts));
    struct remote_version version = {.size = size, .etag = "\"1\""};
    struct diag d = DIAG_INIT;
    char url[JOINED_URL_SIZE];
    struct transport *transport;

    *s = (struct staged){.fake = NULL};
    test_clock_init(&s->clock);
    options.clock = &s->clock.clock;
    test_clock_run(&s->clock, 100 * TEST_S);
    assert_int_equal(cache_folder_init(&s->cache, folder), 0);
    assert_int_equal(fake_new(content, size, THREADS, options.clock, &s->fake), 0);
    fake_set_script(s->fake, script, ctx);
    assert_int_equal(joined_transport_new(fake_transport(s->fake), 16, &transport), 0);
    *parts = (struct joined_parts){
        .members = &members, .sha256 = sums, .where = where, .free = parts_free};
    assert_int_equal(joined_transport_add(transport, parts, url), 0);
    assert_int_equal(stage_new(&options, &s->cache, transport, &s->stage, &d), 0);
    assert_int_equal(
        stage_add(s->stage,
                  &(struct stage_file){
                      .url = url, .key = "fake://folder/", .name = "folder", .version = &version},
                  &s->blob, &d),
        0);
}

static void staged_close(struct staged *s)
{
    test_clock_stand(&s->clock);
    stage_free(s->stage);
    cache_folder_release(&s->cache);
    test_clock_release(&s->clock);
}

/* Read every member: all have their bytes, except *stale, which is -ESTALE. NULL: none is. A read
 * can be what finds the change. */
static void read_members(const struct staged *s, const _Atomic size_t *stale)
{
    for (size_t i = 0; i < members.n; i++) {
        size_t n = members_size(&members, i);
        uint8_t *buf = malloc(n + 1);
        int r;

        assert_non_null(buf);
        if (!n) {
            free(buf);
            continue;
        }
        r = blob_pread(READ_WAITS, s->blob, buf, n, members.member[i].place);
        assert_int_equal(r, stale && i == *stale ? -ESTALE : 0);
        if (r == 0)
            assert_memory_equal(buf, content + members.member[i].place, n);
        free(buf);
    }
}

/* Request number n ends so. */
struct nth {
    unsigned n;
    enum transfer_end end;
    uint64_t bytes;
    _Atomic unsigned seen;
    _Atomic size_t member;
};

static struct fake_answer fail_nth(void *ctx, const struct transfer *transfer, unsigned number)
{
    struct nth *nth = ctx;
    bool is_it = atomic_fetch_add(&nth->seen, 1) == nth->n;

    (void)number;
    if (is_it)
        nth->member = member_of(transfer);
    return (struct fake_answer){.end = is_it ? nth->end : TRANSFER_DONE,
                                .bytes = is_it ? nth->bytes : UINT64_MAX};
}

/* Fail request n for n = 0, 1, 2 ... until the run is clean; then some n only, for the same. */
static void fail_each(const char *folder, uint32_t block, enum transfer_end end, uint64_t bytes)
{
    bool clean = false;

    for (unsigned n = 0; !clean; n = NEXT(n)) {
        struct nth nth = {.n = n, .end = end, .bytes = bytes, .member = SIZE_MAX};
        struct staged s;

        staged_open(&s, folder, block, fail_nth, &nth);
        read_members(&s, NULL);
        if (bytes == 0)
            assert_int_equal(fake_given(s.fake), size);
        assert_int_equal(stage_counters(s.stage)->demand_bytes +
                             stage_counters(s.stage)->background_bytes,
                         size);
        assert_int_equal(stage_counters(s.stage)->distinct_bytes, size);
        assert_int_equal(stage_counters(s.stage)->requests, fake_started(s.fake));
        clean = nth.member == SIZE_MAX;
        staged_close(&s);
        temp_remove(folder);
    }
}

UNIT_TEST_WITH(test_stage__request_n_fails__every_byte_right_and_once, temp_setup, temp_teardown)
{
    char folder[PATH_MAX];

    temp_path(*state, "cache", folder);
    fail_each(folder, 4096, TRANSFER_AGAIN, 0);
    fail_each(folder, 131072, TRANSFER_AGAIN, 0);
    fail_each(folder, 65536, TRANSFER_AGAIN, 1000);
}

UNIT_TEST_WITH(test_stage__request_n_finds_a_change__only_its_member_is_stale, temp_setup,
               temp_teardown)
{
    char folder[PATH_MAX];
    bool clean = false;

    temp_path(*state, "cache", folder);
    for (unsigned n = 0; !clean; n = NEXT(n)) {
        struct nth nth = {.n = n, .end = TRANSFER_CHANGED, .member = SIZE_MAX};
        struct diag d = DIAG_INIT;
        struct staged s;
        int r;

        staged_open(&s, folder, 16384, fail_nth, &nth);
        stage_begin(s.stage);
        while ((r = stage_wait(s.stage, 60000, &d)) == 0)
            continue;
        if (r != 1 && r != -ESTALE)
            fail_msg("request %u: %s", n, d.text);
        if (nth.member != LARGE)
            read_members(&s, &nth.member);
        assert_int_equal(stage_counters(s.stage)->distinct_bytes, fake_given(s.fake));
        clean = nth.member == SIZE_MAX;
        staged_close(&s);
        staged_open(&s, folder, 16384, NULL, NULL); /* what the next mount finds is good */
        read_members(&s, NULL);
        staged_close(&s);
        temp_remove(folder);
    }
}

/* Each transfer fails or stops now and then, for four readers. */
static struct fake_answer fail_often(void *ctx, const struct transfer *transfer, unsigned number)
{
    uint64_t rng = (uint64_t)number * 2654435761u + 1;

    (void)ctx;
    random_next(&rng);
    return (struct fake_answer){.end = random_next(&rng) % 8 ? TRANSFER_DONE : TRANSFER_AGAIN,
                                .bytes = random_next(&rng) % 8 ? UINT64_MAX : transfer->len / 2};
}

struct reader {
    const struct staged *staged;
    uint64_t rng;
};

static void *read_randomly(void *arg)
{
    struct reader *reader = arg;
    uint8_t buf[20000];

    for (unsigned k = 0; k < 150; k++) {
        size_t i = (size_t)(random_next(&reader->rng) % MEMBERS);
        size_t n = (size_t)min_u64(members_size(&members, i), sizeof(buf));
        uint64_t off = members.member[i].place;

        if (!n)
            continue;
        assert_int_equal(blob_pread(READ_WAITS, reader->staged->blob, buf, n, off), 0);
        assert_memory_equal(buf, content + off, n);
    }
    return NULL;
}

UNIT_TEST_WITH(test_stage__many_readers_and_failures__bytes_are_right, temp_setup, temp_teardown)
{
    struct reader reader[4];
    pthread_t thread[4];
    struct staged s;

    staged_open(&s, *state, 16384, fail_often, NULL);
    stage_begin(s.stage);
    for (unsigned i = 0; i < 4; i++) {
        reader[i] = (struct reader){&s, RANDOM_SEED + i};
        assert_int_equal(pthread_create(&thread[i], NULL, read_randomly, &reader[i]), 0);
    }
    for (unsigned i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    read_members(&s, NULL);
    staged_close(&s);
}

int unit_setup(void **state)
{
    (void)state;
    lock_init(&lock);
    pthread_cond_init(&changed, NULL);
    members_fill();
    return 0;
}

int unit_teardown(void **state)
{
    (void)state;
    members_release(&members);
    free(content);
    return 0;
}
