/* Scaling: against the sum that defines it, and where it has edges. */
#include "format/picture/scale.h"
#include "support/random.h"
#include "support/unit.h"

#include <math.h>
#include <stdlib.h>

#include "base/checked.h"

#define SIDE 40

struct sizes {
    uint64_t width, height, scaled_width, scaled_height;
    uint32_t left, top, out_width, out_height;
    unsigned reduced;
};

static struct axis_fit fit_of(uint64_t source, uint64_t scaled, uint64_t start, uint32_t length)
{
    return (struct axis_fit){source, 0, source, scaled, start, length};
}

/* Scale rows of exactly the pixels there are, and one more. */
static void scale(const struct sizes *z, const uint8_t *pixels, uint8_t *ret)
{
    AUTO_SCALER struct scaler s = {0};
    struct axis_fit x = fit_of(z->width, z->scaled_width, z->left, z->out_width);
    struct axis_fit y = fit_of(z->height, z->scaled_height, z->top, z->out_height);
    size_t w = (size_t)ceil_div(z->width, z->reduced), h = (size_t)ceil_div(z->height, z->reduced);

    assert_int_equal(scaler_init(&s, &x, &y, z->reduced,
                                 &(struct pixel_rows){ret, (ptrdiff_t)z->out_width * 3, false}),
                     0);
    for (size_t row = 0; row < h; row++) {
        AUTO_FREE uint8_t *one = calloc(w + 1, PIXEL_BYTES);

        assert_non_null(one);
        memcpy(one, pixels + row * w * PIXEL_BYTES, w * PIXEL_BYTES);
        scaler_row(&s, one);
    }
    assert_int_equal(s.ready, z->out_height);
}

/* The weight of given pixel x for pixel i, not normalized. */
static double weight(uint64_t source, uint64_t scaled, unsigned reduced, double i, double x)
{
    double step = (double)source / (double)scaled;
    double radius = step > reduced ? step : reduced;
    double distance = fabs((x + 0.5) * reduced - (i + 0.5) * step);

    return distance < radius ? 1 - distance / radius : 0;
}

static double expected(const struct sizes *z, const uint8_t *pixels, uint32_t i, uint32_t j,
                       unsigned colour)
{
    size_t w = (size_t)ceil_div(z->width, z->reduced), h = (size_t)ceil_div(z->height, z->reduced);
    double sum = 0, all = 0;

    for (size_t y = 0; y < h; y++)
        for (size_t x = 0; x < w; x++) {
            double v = weight(z->width, z->scaled_width, z->reduced, j + z->left, (double)x) *
                       weight(z->height, z->scaled_height, z->reduced, i + z->top, (double)y);

            sum += v * pixels[(y * w + x) * PIXEL_BYTES + colour];
            all += v;
        }
    return sum / all;
}

static void check(const struct sizes *z)
{
    uint64_t random = RANDOM_SEED;
    AUTO_FREE uint8_t *pixels = malloc(z->width * z->height * PIXEL_BYTES);
    AUTO_FREE uint8_t *out = malloc((size_t)z->out_width * z->out_height * 3);

    assert_non_null(pixels);
    assert_non_null(out);
    for (size_t i = 0; i < z->width * z->height * PIXEL_BYTES; i++)
        pixels[i] = (uint8_t)random_below(&random, 256);
    scale(z, pixels, out);
    for (uint32_t i = 0; i < z->out_height; i++)
        for (uint32_t j = 0; j < z->out_width; j++)
            for (unsigned c = 0; c < 3; c++) {
                double want = expected(z, pixels, i, j, c);
                uint8_t found = out[((size_t)i * z->out_width + j) * 3 + c];

                if (fabs(want - found) > 0.6)
                    fail_msg("%u, %u: expected %f, got %u", i, j, want, found);
            }
}

UNIT_TEST(test_scale__many_sizes__triangle_filter)
{
    for (uint64_t w = 1; w <= SIDE; w += 3)
        for (uint64_t h = 2; h <= SIDE; h += 5)
            for (uint32_t out = 1; out <= 21; out += 4)
                check(&(struct sizes){w, h, out, out + 2, 0, 0, out, out + 2, 1});
}

UNIT_TEST(test_scale__cut__the_same_pixels)
{
    check(&(struct sizes){37, 31, 29, 24, 3, 7, 20, 11, 1});
    check(&(struct sizes){37, 31, 290, 240, 133, 77, 20, 11, 1});
    check(&(struct sizes){7, 9, 7, 9, 6, 8, 1, 1, 1});
}

UNIT_TEST(test_scale__reduced_by_decoder__places_of_the_source)
{
    for (unsigned n = 2; n <= 8; n *= 2)
        for (uint64_t w = 8; w <= SIDE; w += 3)
            check(&(struct sizes){w, SIDE - w / 2, 5, 4, 1, 0, 3, 4, n});
}

UNIT_TEST(test_scale__one_colour__stays)
{
    for (uint64_t w = 1; w < 5000; w = w * 3 + 1)
        for (uint32_t out = 1; out <= 91; out += 10) {
            AUTO_FREE uint8_t *pixels = malloc(w * 3 * PIXEL_BYTES), *ret = malloc(out * 2 * 3);

            assert_non_null(pixels);
            assert_non_null(ret);
            for (unsigned colour = 0; colour < 256; colour += 51) {
                memset(pixels, (int)colour, w * 3 * PIXEL_BYTES);
                scale(&(struct sizes){w, 3, out, 2, 0, 0, out, 2, 1}, pixels, ret);
                for (uint32_t i = 0; i < out * 2 * 3; i++)
                    assert_int_equal(ret[i], colour);
            }
        }
}

UNIT_TEST(test_scale__same_size__same_pixels)
{
    uint8_t pixels[6 * 7 * PIXEL_BYTES], ret[6 * 7 * 3];

    for (size_t i = 0; i < sizeof(pixels); i++)
        pixels[i] = (uint8_t)(i * 37);
    scale(&(struct sizes){6, 7, 6, 7, 0, 0, 6, 7, 1}, pixels, ret);
    for (size_t i = 0; i < 6 * 7; i++)
        assert_memory_equal(ret + 3 * i, pixels + PIXEL_BYTES * i, 3);
}

/* The numbers at their bounds: nothing overflows, and memory depends on what is wanted. */
UNIT_TEST(test_scale__widest_picture__scaled)
{
    const uint64_t side = (1u << 20) - 1;
    struct axis_fit wide = fit_of(side, side << 12, (side << 11) - 2048, 4096);
    struct axis_fit long_way = fit_of(side, 1, 0, 1), one = fit_of(1, 4096, 0, 8);
    AUTO_FREE uint8_t *row = calloc(side + 1, PIXEL_BYTES), *ret = calloc(8 * 3, 4096);
    AUTO_SCALER struct scaler s = {0}, t = {0};
    const struct pixel_rows rows = {ret, (ptrdiff_t)3 * 4096, false};

    assert_non_null(row);
    assert_non_null(ret);
    memset(row, 200, side * PIXEL_BYTES);
    assert_int_equal(scaler_init(&s, &wide, &one, 1, &rows), 0);
    scaler_row(&s, row);
    assert_int_equal(s.ready, 8);
    assert_int_equal(ret[0], 200);
    assert_int_equal(ret[8 * 4096 * 3 - 1], 200);
    assert_int_equal(scaler_init(&t, &long_way, &long_way, 1, &rows), 0);
    for (uint64_t y = 0; y < side; y++)
        if (y < 3 || y + 3 > side || y % 65536 == 0)
            scaler_row(&t, row);
    assert_int_equal(t.slots, 1);
}
