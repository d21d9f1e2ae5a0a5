/* epochfs-bench-lengths: what batches by length cost.
 *
 *   epochfs-bench-lengths PLAN SAMPLES
 *
 * The lengths are pseudo-random, about lognormal, and in memory. Prints milliseconds until the
 * first batch is found, seconds to count an epoch (elapsed, and of processors), milliseconds to
 * find a batch in the middle once the counts are kept, and bytes of memory. */
#include <math.h>

#include "base/mix64.h"
#include "base/pool.h"
#include "bench/common.h"
#include "fs/plan/length_batches.h"
#include "fs/plan/schedule.h"

static uint32_t *length;

static void get_lengths(const struct plan_lengths *of, size_t count, const uint64_t *sample,
                        uint32_t *ret)
{
    (void)of;
    for (size_t i = 0; i < count; i++)
        ret[i] = length[sample[i]];
}

static const struct plan_lengths_ops ops = {.get = get_lengths};
static const struct plan_lengths lengths = {&ops, "tokens", false};

static double seconds(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint32_t *kept;
static size_t n_kept;

static int load(void *ctx, uint64_t epoch, size_t n, uint32_t *ret)
{
    (void)ctx;
    (void)epoch;
    if (n != n_kept)
        return -ENOENT;
    memcpy(ret, kept, 4 * n);
    return 0;
}

static void save(void *ctx, uint64_t epoch, size_t n, const uint32_t *sums)
{
    (void)ctx;
    (void)epoch;
    kept = malloc(4 * n);
    n_kept = n;
    memcpy(kept, sums, 4 * n);
}

static struct length_batches *open_plan(const struct plan *plan, uint64_t n, struct pool *pool,
                                        struct schedule *ret)
{
    struct plan_data data = {.samples = n, .lengths = &lengths};
    struct length_batches *b;

    if (length_batches_new(plan, &data, pool, &b, NULL) < 0)
        exit(2);
    length_batches_keep(b, &(struct length_keeper){load, save, NULL});
    data.cuts = length_batches_cuts(b);
    schedule_init_data(ret, plan, &data);
    return b;
}

static double find(const struct schedule *s, uint64_t number)
{
    double before = seconds(CLOCK_MONOTONIC);
    struct schedule_batch batch;

    if (schedule_has(s, 0, number) < 0 || schedule_batch_init(s, 0, number, &batch) < 0)
        exit(3);
    schedule_batch_release(&batch);
    return 1000 * (seconds(CLOCK_MONOTONIC) - before);
}

int main(int argc, char **argv)
{
    uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 10) : 0, batches;
    struct length_batches *b;
    struct pool *pool;
    struct schedule s;
    struct plan plan;
    double wall, cpu;

    if (!n || plan_parse(argv[1], strlen(argv[1]), ',', &plan, NULL) < 0 || pool_new(&pool) < 0)
        return 2;
    length = malloc(4 * n);
    for (uint64_t i = 0; length && i < n; i++) {
        uint64_t z = mix64(i), bits = 0; /* a sum of 4 uniform numbers */

        for (unsigned k = 0; k < 4; k++)
            bits += z >> 16 * k & 0xffff;
        length[i] = (uint32_t)(400 * exp(0.6 * 1.73 * ((double)bits / 65536 - 2)) + 1);
    }
    b = open_plan(&plan, n, pool, &s);
    printf("first batch %.1f ms\n", find(&s, 0));
    wall = seconds(CLOCK_MONOTONIC);
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    while (s.cuts->ops->ask(s.cuts, 0))
        length_batches_step(b);
    schedule_batches(&s, 0, &batches);
    printf("counted %llu batches in %.1f s, %.1f s of processors\n", (unsigned long long)batches,
           seconds(CLOCK_MONOTONIC) - wall, seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    printf("memory %llu bytes\n", (unsigned long long)length_batches_held(b).bytes);
    length_batches_free(b);
    b = open_plan(&plan, n, pool, &s);
    printf("batch %llu %.1f ms\n", (unsigned long long)batches / 3, find(&s, batches / 3));
    for (uint64_t i = 0; i < 100; i++)
        find(&s, i * (batches / 100));
    printf("memory after 100 batches %llu bytes\n",
           (unsigned long long)length_batches_held(b).bytes);
    length_batches_free(b);
    pool_free(pool);
    free(kept);
    free(length);
    return 0;
}
