/* A cache, on disk and in memory, that is much smaller than the file: a reader of small samples in
 * random order never costs more than reading them without a cache, each byte once in an epoch. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/blob.h"
#include "base/read_context.h"
#include "cache/stage/stage.h"
#include "tests/support/random.h"
#include "tests/support/stage_fixture.h"
#include "tests/support/temp_folder.h"
#include "tests/support/unit.h"

#define BLOCK   STAGE_FIXTURE_BLOCK
#define SAMPLE  784u
#define SAMPLES 5000u
#define BATCH   50u
#define SIZE    ((size_t)SAMPLES * SAMPLE)

static uint8_t content[SIZE];

static struct stage_options small(enum stage_keep keep)
{
    struct stage_options options = stage_fixture_options();

    options.keep = keep;
    options.limit = SIZE / 8;
    options.limit_percent = 0;
    options.memory = SIZE / 8;
    return options;
}

static void open_small(struct stage_fixture *f, const char *folder, enum stage_keep keep)
{
    const struct stage_fixture_remote remote = {.content = content, .size = SIZE, .threads = 16};
    const struct stage_options options = small(keep);

    stage_fixture_content(content, SIZE);
    stage_fixture_open(f, folder, &options, &remote);
}

/* A batch, as a daemon reads it: first note what is missing, then wait for all of that. */
static void read_batch(const struct stage_fixture *f, const uint32_t *sample)
{
    static uint8_t got[BATCH][SAMPLE];
    unsigned missing;

    do {
        struct read_context rc;

        read_context_init(&rc, true);
        missing = 0;
        for (unsigned i = 0; i < BATCH; i++) {
            int r = blob_pread(&rc, f->blob, got[i], SAMPLE, (uint64_t)sample[i] * SAMPLE);

            assert_true(r == 0 || r == -EAGAIN);
            missing += r < 0;
        }
        if (missing)
            assert_int_equal(missing_wait(&rc, false, NULL), 0);
        read_context_release(&rc);
    } while (missing);
    for (unsigned i = 0; i < BATCH; i++)
        assert_memory_equal(got[i], content + (size_t)sample[i] * SAMPLE, SAMPLE);
}

/* Read all samples in an order. Returns the bytes that came. */
static uint64_t read_epoch(const struct stage_fixture *f, uint64_t *x, bool shuffled)
{
    static uint32_t sample[SAMPLES];
    uint64_t before = fake_given(f->fake);

    for (uint32_t i = 0; i < SAMPLES; i++) {
        uint32_t j = shuffled ? (uint32_t)random_below(x, i + 1) : i;

        sample[i] = sample[j];
        sample[j] = i;
    }
    for (unsigned i = 0; i < SAMPLES; i += BATCH)
        read_batch(f, sample + i);
    fake_wait_idle(f->fake);
    return fake_given(f->fake) - before;
}

static void check_at_most_once(void **state, enum stage_keep keep)
{
    uint64_t x = RANDOM_SEED;
    struct stage_fixture f;

    open_small(&f, *state, keep);
    for (unsigned epoch = 0; epoch < 3; epoch++) {
        uint64_t came = read_epoch(&f, &x, true);

        if (came > SIZE + SIZE / 10)
            fail_msg("epoch %u: %llu bytes came, of %zu", epoch, (unsigned long long)came, SIZE);
    }
    stage_fixture_close(&f);
}

UNIT_TEST_WITH(test_parts__shuffled_pin__each_byte_at_most_once, temp_setup, temp_teardown)
{
    check_at_most_once(state, STAGE_PIN);
}

UNIT_TEST_WITH(test_parts__shuffled_without_forecast__each_byte_at_most_once, temp_setup,
               temp_teardown)
{
    check_at_most_once(state, STAGE_PLAN);
}

/* After that, one who reads in sequence gets whole blocks again: few requests. */
UNIT_TEST_WITH(test_parts__then_in_sequence__few_requests, temp_setup, temp_teardown)
{
    uint64_t x = RANDOM_SEED, came;
    struct stage_fixture f;
    unsigned before;

    open_small(&f, *state, STAGE_PIN);
    read_epoch(&f, &x, true);
    before = fake_started(f.fake);
    came = read_epoch(&f, &x, false);
    if (came > SIZE + SIZE / 10 || fake_started(f.fake) - before > 2 * SAMPLES / BATCH)
        fail_msg("%llu bytes of %zu, %u requests", (unsigned long long)came, SIZE,
                 fake_started(f.fake) - before);
    stage_fixture_close(&f);
}
