/* Operations on pixels, and which of them the numbers of a sample choose, against checksums of what
 * a model of the definitions in Python gave. */
#include "format/picture/colour.h"
#include "format/picture/policy.h"
#include "support/random.h"
#include "support/unit.h"

#include <stdlib.h>
#include <zlib.h>

#include "base/scope.h"

#define OPS (OP_INVERT + 1)

enum picture_type {
    NOISE,
    SLOPES,
    ONE_COLOUR,
    FEW_VALUES,
    PICTURE_TYPES,
};

static const struct size {
    uint32_t height, width;
} sizes[] = {{1, 1}, {1, 7}, {9, 1}, {2, 2}, {3, 3}, {2, 5}, {5, 2}, {4, 3}, {13, 17}, {31, 22}};

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* A picture and its copy for plain code, in memory of exactly their size. */
struct both {
    uint8_t *rgb[2], *scratch;
    struct size size;
};

static void both_release(struct both *b)
{
    free(b->rgb[0]);
    free(b->rgb[1]);
    free(b->scratch);
}
#define AUTO_BOTH AUTO(both_release)

static size_t bytes_of(const struct both *b)
{
    return (size_t)b->size.height * b->size.width * 3;
}

static uint8_t colour_at(enum picture_type type, uint32_t y, uint32_t x, unsigned c,
                         uint64_t *random)
{
    switch (type) {
    case NOISE:
        return (uint8_t)random_below(random, 256);
    case SLOPES:
        return (uint8_t)(c == 0 ? x * 5 + y * 3 : c == 1 ? (x * x / 7 + 40) % 200 : 77);
    case ONE_COLOUR:
        return (uint8_t)(255 >> 4 * c);
    default:
        return (uint8_t)(100 + random_below(random, 40));
    }
}

static void both_init(struct both *b, struct size size, enum picture_type type)
{
    uint64_t random = RANDOM_SEED;
    uint8_t *rgb;

    *b = (struct both){.size = size};
    for (unsigned i = 0; i < 2; i++) {
        b->rgb[i] = malloc(bytes_of(b));
        assert_non_null(b->rgb[i]);
    }
    b->scratch = malloc(bytes_of(b));
    assert_non_null(b->scratch);
    rgb = b->rgb[0];
    for (uint32_t y = 0; y < size.height; y++)
        for (uint32_t x = 0; x < size.width; x++)
            for (unsigned c = 0; c < 3; c++)
                *rgb++ = colour_at(type, y, x, c, &random);
    memcpy(b->rgb[1], b->rgb[0], bytes_of(b));
}

static struct pixels pixels_of(const struct both *b, bool plain)
{
    return (struct pixels){b->rgb[plain], b->scratch, b->size.height, b->size.width, plain};
}

/* Add what both paths made, which is equal, to a checksum. */
static uint32_t sum_both(const struct both *b, uint32_t sum)
{
    assert_memory_equal(b->rgb[0], b->rgb[1], bytes_of(b));
    return (uint32_t)crc32(sum, b->rgb[0], (uInt)bytes_of(b));
}

static uint32_t sum_step(const struct policy_step *step, uint32_t sum)
{
    for (unsigned i = 0; i < SIZES; i++)
        for (enum picture_type type = 0; type < PICTURE_TYPES; type++) {
            AUTO_BOTH struct both b = {0};

            both_init(&b, sizes[i], type);
            for (unsigned plain = 0; plain < 2; plain++) {
                struct pixels p = pixels_of(&b, plain);

                policy_apply(step, &p);
            }
            sum = sum_both(&b, sum);
        }
    return sum;
}

/* All levels, with either sign. */
static void check_op(enum policy_op op, unsigned levels, bool is_wide, uint32_t expected)
{
    uint32_t sum = 0;

    for (unsigned level = 0; level < levels; level++)
        for (unsigned negative = 0; negative < 2; negative++)
            sum = sum_step(&(struct policy_step){op, level, levels, negative, is_wide}, sum);
    if (sum != expected)
        fail_msg("operation %u of %u levels: expected 0x%08x, got 0x%08x", op, levels, expected,
                 sum);
}

UNIT_TEST(test_policy_apply__all_levels__as_the_model)
{
    static const uint32_t expected[OPS][3] = {
        {0x2af58bde, 0x2d46661c, 0x2d46661c}, {0xc4953747, 0x313a4d63, 0x8f185283},
        {0x68668564, 0x0bc86375, 0x157c64d1}, {0x59d18ce1, 0x7a3fe692, 0xa9d9cf6f},
        {0x6fc061ac, 0xaec6d949, 0x7d01075b}, {0x6f668dea, 0xb4d47ad8, 0x71c5ffe7},
        {0x06616dd8, 0xb1156e84, 0x7e964160}, {0xa6f35efe, 0x14436ab2, 0x9378c238},
        {0x230bdff2, 0xeacb1282, 0x3a7f2157}, {0xbcf93ab8, 0xd5c8d4ff, 0x7305c1a1},
        {0xd46bff1e, 0xaec1999a, 0xdb6b87a9}, {0x2831dec7, 0x1670e33c, 0x1670e33c},
        {0x81a1eefb, 0x2e5432dd, 0x2e5432dd}, {0x829e2236, 0xd7f3704f, 0xd7f3704f},
        {0xbd4db7a5, 0x71fb68a4, 0x71fb68a4},
    };

    for (enum policy_op op = 0; op < OPS; op++) {
        check_op(op, POLICY_AUTO_LEVELS, false, expected[op][0]);
        check_op(op, POLICY_LEVELS, false, expected[op][1]);
        check_op(op, POLICY_LEVELS, true, expected[op][2]);
    }
}

/* Each step of jitter with any factor, the largest among them. */
UNIT_TEST(test_jitter_apply__any_factor__as_the_model)
{
    static const uint32_t factors[] = {0,     1,     32767,  32768,  65535,   65536,
                                       65537, 98304, 131072, 200000, 1 << 20, COLOUR_FACTOR_MAX};
    static const uint32_t expected[] = {0xcbf91b78, 0x95bfbdc7, 0xbbeae672, 0xd78ba295};

    for (enum policy_op op = OP_BRIGHTNESS; op <= OP_SHARPNESS; op++) {
        uint32_t sum = 0;

        for (unsigned f = 0; f < sizeof(factors) / sizeof(factors[0]); f++)
            for (unsigned i = 0; i < SIZES; i++) {
                AUTO_BOTH struct both b = {0};

                both_init(&b, sizes[i], NOISE);
                for (unsigned plain = 0; plain < 2; plain++) {
                    struct pixels p = pixels_of(&b, plain);

                    jitter_apply(&(struct jitter_step){op, factors[f]}, &p);
                }
                sum = sum_both(&b, sum);
            }
        assert_int_equal(sum, expected[op - OP_BRIGHTNESS]);
    }
}

UNIT_TEST(test_pixels__fill_gray__by_hand)
{
    uint8_t rgb[] = {13, 14, 15, 0, 255, 0, 200, 100, 50, 7, 8, 9, 4, 5, 6, 1, 2, 3}, scratch[18];
    struct pixels p = {rgb, scratch, 2, 3, false};
    static const uint8_t filled[] = {13, 14, 15, 0,  255, 0,  200, 100, 50,
                                     7,  8,  9,  90, 91,  92, 90,  91,  92};
    static const uint8_t grays[] = {14, 14, 14, 150, 150, 150, 124, 124, 124,
                                    8,  8,  8,  91,  91,  91,  91,  91,  91};

    pixels_fill(&p, 1, 1, 1, 2, (const uint8_t[]){90, 91, 92});
    assert_memory_equal(rgb, filled, sizeof(rgb));
    assert_int_equal(pixels_mean_gray(&p), 80);
    pixels_gray(&p);
    assert_memory_equal(rgb, grays, sizeof(rgb));
}

/* ---- choices ---- */

#define SAMPLES 4000

static struct augment_numbers numbers_of(unsigned i)
{
    return augment_numbers_of(7, i % 5, UINT64_C(37) * i, i, i & 1);
}

UNIT_TEST(test_policy_choose__many_samples__as_the_model)
{
    static const struct {
        struct policy policy;
        uint32_t sum;
    } cases[] = {
        {{POLICY_AUTO, POLICY_IMAGENET, 0, 0}, 0x4d477ae3},
        {{POLICY_AUTO, POLICY_CIFAR10, 0, 0}, 0x1ca34038},
        {{POLICY_AUTO, POLICY_SVHN, 0, 0}, 0x07699040},
        {{POLICY_RAND, 0, 2, 9}, 0x6ea866c3},
        {{POLICY_RAND, 0, 8, 30}, 0xad596dc8},
        {{POLICY_TRIVIAL, 0, 0, 0}, 0xa9933403},
    };

    for (unsigned k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        uint32_t sum = 0;

        for (unsigned i = 0; i < SAMPLES; i++) {
            struct augment_numbers n = numbers_of(i);
            struct policy_step steps[POLICY_STEPS_MAX];
            unsigned count = policy_choose(&cases[k].policy, &n, steps);

            sum = (uint32_t)crc32(sum, (const uint8_t[]){(uint8_t)count}, 1);
            for (unsigned s = 0; s < count; s++) {
                const uint8_t step[] = {(uint8_t)steps[s].op, (uint8_t)steps[s].level,
                                        (uint8_t)steps[s].levels, steps[s].negative};

                sum = (uint32_t)crc32(sum, step, sizeof(step));
                assert_int_equal(steps[s].is_wide, cases[k].policy.type == POLICY_TRIVIAL);
            }
        }
        if (sum != cases[k].sum)
            fail_msg("policy %u: expected 0x%08x, got 0x%08x", k, cases[k].sum, sum);
    }
}

UNIT_TEST(test_policy_choose__none__no_steps)
{
    struct augment_numbers n = numbers_of(0);
    struct policy_step steps[POLICY_STEPS_MAX];

    assert_int_equal(policy_choose(&(struct policy){POLICY_NONE, 0, 2, 9}, &n, steps), 0);
}

/* The table of numbers in docs/spec/augment.md. */
UNIT_TEST(test_policy_choose__written_down__as_written)
{
    static const struct {
        uint64_t seed, epoch, index, position;
        struct policy_step step;
    } cases[] = {
        {7, 0, 0, 0, {OP_TRANSLATE_X, 27, 31, false, true}},
        {7, 0, 5, 1, {OP_SHEAR_X, 1, 31, true, true}},
        {7, 3, 2, 17, {OP_SHEAR_X, 18, 31, true, true}},
    };

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct augment_numbers n =
            augment_numbers_of(cases[i].seed, cases[i].epoch, cases[i].index, cases[i].position, 0);
        struct policy_step steps[POLICY_STEPS_MAX];

        assert_int_equal(policy_choose(&(struct policy){.type = POLICY_TRIVIAL}, &n, steps), 1);
        assert_int_equal(steps[0].op, cases[i].step.op);
        assert_int_equal(steps[0].level, cases[i].step.level);
        assert_int_equal(steps[0].negative, cases[i].step.negative);
    }
}

UNIT_TEST(test_jitter_choose__many_samples__as_the_model)
{
    static const struct {
        uint64_t chance;
        uint32_t by, sum;
    } cases[] = {{UINT64_C(1) << 32, 26214, 0x646cc3a7},
                 {UINT64_C(3435973837), 52429, 0x0e46ce82},
                 {UINT64_C(1) << 31, 98304, 0x1fe8fb49},
                 {0, 26214, 0x3a8b93be}};

    for (unsigned k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        uint32_t sum = 0;

        for (unsigned i = 0; i < SAMPLES; i++) {
            struct augment_numbers n = numbers_of(i);
            struct jitter_step steps[JITTER_STEPS];
            unsigned count = jitter_choose(cases[k].chance, cases[k].by, &n, steps);

            sum = (uint32_t)crc32(sum, (const uint8_t[]){(uint8_t)count}, 1);
            for (unsigned s = 0; s < count; s++) {
                const uint8_t step[] = {(uint8_t)steps[s].op, (uint8_t)steps[s].factor,
                                        (uint8_t)(steps[s].factor >> 8),
                                        (uint8_t)(steps[s].factor >> 16)};

                sum = (uint32_t)crc32(sum, step, sizeof(step));
            }
        }
        if (sum != cases[k].sum)
            fail_msg("jitter %u: expected 0x%08x, got 0x%08x", k, cases[k].sum, sum);
    }
}
