#include "fs/plan/forecast.h"
#include "support/unit.h"

#include <math.h>

#define MiB 1048576.0

/* 60,000 samples of 784 bytes: 44.9 MiB in blocks of 128 KiB, 1 MiB per second. */
static struct forecast_task task;

static int setup(void **state)
{
    (void)state;
    task = (struct forecast_task){
        .bytes = 60000 * 784.0,
        .samples = 60000,
        .list = 60000,
        .elements = 60000,
        .batch = 128,
        .batches = 469,
        .block = 131072,
        .capacity = 1e12,
        .ahead = true,
        .rate = MiB,
        .compute = 0.2,
        .epochs = 10,
    };
    return 0;
}

static struct forecast make(void)
{
    struct forecast f;

    forecast_make(&task, &f);
    return f;
}

/* Computed by hand: compute takes longer than staging, so the job waits only for the first
 * batch. */
UNIT_TEST_WITH(test_forecast__stored_order_slow_job__hides, setup, NULL)
{
    struct forecast f = make();

    assert_near(f.epoch, 60000 * 784, 1e-9);
    assert_near(f.read, 60000 * 784, 1e-9);
    assert_near(f.staging, 44.86, 1e-3);
    assert_near(f.first_batch, 128 * 784 / MiB, 1e-6);
    assert_near(f.compute, 93.8, 1e-6);
    assert_near(f.first.seconds, 93.8 + f.first_batch, 1e-6);
    assert_near(f.first.wait, f.first_batch, 1e-6);
    assert_true(f.hides);
    assert_near(f.hides_at, 128 * 784 / MiB, 0.01);
    assert_near(f.later.seconds, 93.8, 1e-6);
    assert_near(f.later.fetched, 0, 0);
    assert_near(f.total, 938 + f.first_batch, 1e-6);
    assert_near(f.copy, 938 + 44.86, 1e-3);
    assert_near(f.direct, 10 * (93.8 + f.first_batch), 1e-3);
    assert_true(f.fits);
}

UNIT_TEST_WITH(test_forecast__fast_job__as_long_as_staging, setup, NULL)
{
    struct forecast f;

    task.compute = 0.01;
    f = make();
    assert_near(f.first.seconds, f.staging + 0.01, 1e-3);
    assert_near(f.first.wait, f.staging + 0.01 - 4.69, 1e-3);
    assert_false(f.hides);
    assert_near(f.later.wait, 0, 0);
    assert_near(f.direct, 10 * (f.staging + 0.01), 1e-3);
}

/* A full shuffle needs nearly all blocks after a few batches, so little staging can be hidden; a
 * window shuffle is in between. */
UNIT_TEST_WITH(test_forecast__shuffled__first_batches_need_most, setup, NULL)
{
    struct forecast full, window;

    task.is_shuffled = true;
    full = make();
    assert_near(full.epoch, 60000 * 784, 1e-9);
    /* 128 samples at random have bytes in 1 - (1 - 128/60000)^168 of 359 blocks: 30 %. */
    assert_near(full.first_batch, 0.302 * 44.86, 0.01);
    assert_true(full.first.wait > 20 && full.first.wait < 44.86);
    assert_false(full.hides && full.first.wait > full.first_batch + 0.001);
    task.window = 512;
    window = make();
    assert_true(window.first_batch < full.first_batch / 4);
    assert_near(window.epoch, 60000 * 784, 1e-9);
    assert_true(window.first.wait < 4 && window.first.wait >= window.first_batch - 1e-9);
}

/* An epoch that shows a quarter of the list, each of those samples four times. */
UNIT_TEST_WITH(test_forecast__samples_repeat__only_their_bytes, setup, NULL)
{
    struct forecast f;

    task.bytes = 1e12; /* 16 MB each */
    task.is_shuffled = true;
    task.distinct = 15000;
    f = make();
    assert_near(f.epoch, 0.25e12, 0.02);
    assert_near(f.first.fetched, 0.25e12, 0.02);
    assert_near(f.all_epochs, 1e12, 0.02);
    assert_near(f.first_batch, 0.25e12 / MiB / 469, 0.05);
}

UNIT_TEST_WITH(test_forecast__large_samples_shuffled__as_in_order, setup, NULL)
{
    struct forecast f;

    task.bytes = 1e12; /* 16 MB each */
    task.is_shuffled = true;
    f = make();
    assert_near(f.first_batch, 1e12 / MiB / 469, 0.02);
    assert_near(f.first.fetched, 1e12, 0.02);
}

UNIT_TEST_WITH(test_forecast__half_is_staged__half_the_time, setup, NULL)
{
    struct forecast f;

    task.here = task.bytes / 2;
    f = make();
    assert_near(f.staging, 44.86 / 2, 1e-3);
    assert_near(f.here, f.missing, 1e-9);
    task.here = task.bytes;
    task.rate = 0;
    f = make();
    assert_near(f.staging, 0, 0);
    assert_near(f.total, 938, 1e-9);
    assert_true(isnan(f.copy));
}

/* A cache for half of the data: with pin half of the reads hit. A full shuffle of small samples
 * returns to a block many times, and keep=plan knows when, so it keeps the right blocks. */
UNIT_TEST_WITH(test_forecast__too_large__shares_by_keep, setup, NULL)
{
    struct forecast f;

    task.capacity = task.bytes / 2;
    f = make();
    assert_false(f.fits);
    assert_near(f.pin, 0.5, 1e-9);
    assert_near(f.plan, 0.5, 1e-9);
    assert_near(f.later.fetched, task.bytes / 2, 1e-6);
    task.is_shuffled = true;
    f = make();
    assert_near(f.pin, 0.5, 1e-9);
    assert_near(f.plan, 0.81, 0.02);                    /* 1 - e^-t where 1 - (1 + t) e^-t = 1/2 */
    assert_near(f.later.fetched, task.bytes / 2, 1e-6); /* samples without their blocks */
    task.keep = FORECAST_PLAN;
    assert_true(make().later.fetched <= f.later.fetched);
    task.window = 512; /* a group of it fits */
    f = make();
    assert_near(f.later.fetched, task.bytes / 2, 1e-6);
    task.is_shuffled = false;
    task.keep = FORECAST_ONCE;
    assert_near(make().later.fetched, task.bytes, 1e-6);
}

/* keep=once: what the announced epochs need stays until the last of them, then nothing does.
 * tests/mount/cli/case-plan-command.py compares the same with mounts. */
UNIT_TEST_WITH(test_forecast__once__announced_epochs_keep, setup, NULL)
{
    struct forecast f;

    task.keep = FORECAST_ONCE;
    task.is_shuffled = true;
    task.announced = 1;
    task.epochs = 3;
    f = make();
    assert_near(f.first.fetched, task.bytes, 1e-6);
    assert_near(f.later.fetched, task.bytes, 1e-6);
    assert_near(f.total, 3 * f.first.seconds, 1e-6);
    task.announced = 3;
    f = make();
    assert_near(f.first.fetched, task.bytes, 1e-6);
    assert_near(f.later.fetched, 0, 0);
    assert_near(f.total, f.first.seconds + 2 * 93.8, 1e-6);
    task.announced = 1000; /* the job reads less */
    assert_near(make().total, f.total, 1e-9);
    task.epochs = 1000 * 1000;
    task.announced = 999 * 1000; /* the last thousand are fetched again, each */
    f = make();
    assert_near(f.later.fetched, task.bytes, 1e-6);
    assert_near(f.total, 998999 * 93.8 + 1001 * f.first.seconds, 1e-9);
}

/* A rank's share of a shuffle has other samples in each epoch, so that all data comes in the
 * end. */
UNIT_TEST_WITH(test_forecast__rank_of_shuffle__all_in_the_end, setup, NULL)
{
    struct forecast f;

    task.bytes = 60000.0 * 1310720; /* ten blocks each */
    task.elements = 7500;
    task.batches = 59;
    task.is_shuffled = true;
    f = make();
    assert_near(f.all_epochs, task.bytes, 1e-9);
    assert_near(f.epoch, task.bytes / 8, 0.12);
    assert_near(f.read, task.bytes / 8, 1e-9);
    assert_true(f.later.fetched > 0 && f.later.fetched < f.first.fetched);
    task.is_shuffled = false; /* the same samples in each epoch */
    f = make();
    assert_near(f.later.fetched, 0, 0);
    assert_near(f.all_epochs, f.epoch, 1e-9);
}

UNIT_TEST_WITH(test_forecast__not_known__nan, setup, NULL)
{
    struct forecast f;

    task.compute = -1;
    f = make();
    assert_true(isnan(f.total) && isnan(f.compute) && isnan(f.copy) && isnan(f.first.seconds));
    assert_near(f.staging, 44.86, 1e-3);
    assert_false(f.hides);
    task.rate = 0;
    f = make();
    assert_true(isnan(f.staging) && isnan(f.hides_at));
}

UNIT_TEST_WITH(test_forecast__only_what_is_read__nothing_hides, setup, NULL)
{
    struct forecast f;

    task.ahead = false;
    f = make();
    assert_near(f.first.seconds, 93.8 + 44.86, 1e-3);
    assert_near(f.first.wait, 44.86, 1e-3);
}

UNIT_TEST_WITH(test_forecast__no_batches__nothing, setup, NULL)
{
    struct forecast f;

    task.elements = task.batches = task.list = 0;
    task.is_shuffled = true;
    f = make();
    assert_near(f.total, 0, 0);
    assert_near(f.staging, 0, 0);
    assert_near(f.first_batch, 0, 0);
    task.is_shuffled = false;
    f = make();
    assert_near(f.total, 0, 0);
    assert_near(f.plan, 1, 0);
}

/* A tenth of the samples, which are twice as large as the others. */
UNIT_TEST_WITH(test_forecast__part_with_larger_samples__its_own_bytes, setup, NULL)
{
    struct forecast f;

    task.list = task.elements = 6000;
    task.batches = 47;
    task.listed = 6000 * 1568.0;
    f = make();
    assert_near(f.epoch, 6000 * 1568, 1e-9);
    assert_near(f.read, 6000 * 1568, 1e-9);
    assert_near(f.all_epochs, 6000 * 1568, 1e-9);
    task.elements = 3000; /* a rank of it */
    f = make();
    assert_near(f.read, 3000 * 1568, 1e-9);
}
