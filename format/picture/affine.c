/* Places in the source are in units of 2^-33 of a pixel, which is exact. What lies between pixels
 * has 16 bits of fraction. In each row, first the pixels are found whose source lies in the
 * picture: a range, because the map is linear; then the range of those all of whose four neighbours
 * exist, and are followed by two bytes, so that vector instructions may read eight bytes. */
#include "format/picture/affine.h"

#include <math.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define AFFINE_PIXEL (2 * AFFINE_ONE)
#define FRACTION(v)  ((uint32_t)((v) >> 17) & 65535)

/* Where the made pixels of a row lie in the source, less half a pixel: the place of the upper left
 * of four neighbours. */
struct affine_row {
    const uint8_t *source;
    int64_t height, width;
    int64_t x, y;           /* of made pixel 0 */
    int64_t x_step, y_step; /* to the next one */
};

struct affine_range {
    int64_t first, end;
};

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* Narrow the range to those i for which low <= at + i step < high. */
static void narrow(struct affine_range *range, int64_t at, int64_t step, int64_t low, int64_t high)
{
    int64_t first = range->first, end = range->end;

    if (step > 0) { /* the first for which it is not below low; not below high */
        first = -floor_div(at - low, step);
        end = -floor_div(at - high, step);
    } else if (step < 0) { /* the first for which it is below high; below low */
        first = floor_div(high - at, step) + 1;
        end = floor_div(low - at, step) + 1;
    } else if (at < low || at >= high) {
        end = first;
    }
    if (first > range->first)
        range->first = first < range->end ? first : range->end;
    if (end < range->end)
        range->end = end > range->first ? end : range->first;
}

static int64_t clamped(int64_t v, int64_t n)
{
    return v < 0 ? 0 : v < n ? v : n - 1;
}

/* One pixel, neighbours clamped. */
static void affine_pixel(const struct affine_row *row, int64_t i, uint8_t *ret)
{
    int64_t x = row->x + i * row->x_step, y = row->y + i * row->y_step;
    uint64_t dx = FRACTION(x), dy = FRACTION(y);
    const uint8_t *line[2], *upper, *lower;
    int64_t column[2];

    for (int k = 0; k < 2; k++) {
        line[k] = row->source + clamped((y >> 33) + k, row->height) * row->width * 3;
        column[k] = clamped((x >> 33) + k, row->width) * 3;
    }
    for (unsigned c = 0; c < 3; c++) {
        uint64_t v;

        upper = line[0] + c;
        lower = line[1] + c;
        v = (upper[column[0]] * (65536 - dx) + upper[column[1]] * dx) * (65536 - dy) +
            (lower[column[0]] * (65536 - dx) + lower[column[1]] * dx) * dy;
        ret[c] = (uint8_t)(v >> 32);
    }
}

static void affine_pixels(const struct affine_row *row, int64_t first, int64_t end, uint8_t *line)
{
    for (int64_t i = first; i < end; i++)
        affine_pixel(row, i, line + i * 3);
}

#if defined(__SSE2__)
#define SSE41 __attribute__((target("sse4.1")))

/* a 65536 + (b - a) f for a fraction of 16 bits, as (b - a) (f - 32768) + 2 (a + b) 16384: two
 * multiplications of 16 bits that are one instruction. Four values from each half of a and b. */
SSE41 static void vector_between(__m128i a, __m128i b, uint32_t f, __m128i *ret_lower,
                                 __m128i *ret_upper)
{
    const __m128i weights = _mm_set1_epi32((int32_t)(16384u << 16 | ((f - 32768) & 65535)));
    __m128i difference = _mm_sub_epi16(b, a), twice = _mm_slli_epi16(_mm_add_epi16(a, b), 1);

    *ret_lower = _mm_madd_epi16(_mm_unpacklo_epi16(difference, twice), weights);
    *ret_upper = _mm_madd_epi16(_mm_unpackhi_epi16(difference, twice), weights);
}

/* (a (65536 - f) + b f) >> 32 for numbers of 24 bits. */
SSE41 static __m128i vector_finish(__m128i a, __m128i b, uint32_t f)
{
    const __m128i one = _mm_set1_epi64x(65536 - f), other = _mm_set1_epi64x(f);
    __m128i even = _mm_add_epi64(_mm_mul_epu32(a, one), _mm_mul_epu32(b, other));
    __m128i odd = _mm_add_epi64(_mm_mul_epu32(_mm_srli_epi64(a, 32), one),
                                _mm_mul_epu32(_mm_srli_epi64(b, 32), other));

    return _mm_blend_epi16(_mm_srli_epi64(even, 32), odd, 0xcc);
}

SSE41 static uint32_t vector_pixel(const uint8_t *upper, const uint8_t *lower, uint32_t dx,
                                   uint32_t dy)
{
    const __m128i left = _mm_setr_epi8(0, -1, 1, -1, 2, -1, -1, -1, 8, -1, 9, -1, 10, -1, -1, -1);
    const __m128i right =
        _mm_setr_epi8(3, -1, 4, -1, 5, -1, -1, -1, 11, -1, 12, -1, 13, -1, -1, -1);
    __m128i four = _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i *)(const void *)upper),
                                      _mm_loadl_epi64((const __m128i *)(const void *)lower));
    __m128i above, below;

    vector_between(_mm_shuffle_epi8(four, left), _mm_shuffle_epi8(four, right), dx, &above, &below);
    four = _mm_shuffle_epi8(
        vector_finish(above, below, dy),
        _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
    return (uint32_t)_mm_cvtsi128_si32(four);
}

/* All neighbours exist; so does another pixel to the right. Each pixel is written with a byte that
 * the next one replaces. */
SSE41 static void affine_pixels_fast(const struct affine_row *row, int64_t first, int64_t end,
                                     uint8_t *line)
{
    int64_t x = row->x + first * row->x_step, y = row->y + first * row->y_step;
    const int64_t pitch = row->width * 3;

    for (int64_t i = first; i < end; i++, x += row->x_step, y += row->y_step) {
        const uint8_t *upper = row->source + (y >> 33) * pitch + (x >> 33) * 3;
        uint32_t made = vector_pixel(upper, upper + pitch, FRACTION(x), FRACTION(y));

        if (i + 1 < end)
            memcpy(line + i * 3, &made, 4);
        else
            memcpy(line + i * 3, &made, 3);
    }
}

static bool affine_has_vectors(void)
{
    return __builtin_cpu_supports("sse4.1");
}
#else
static void affine_pixels_fast(const struct affine_row *row, int64_t first, int64_t end,
                               uint8_t *line)
{
    affine_pixels(row, first, end, line);
}

static bool affine_has_vectors(void)
{
    return false;
}
#endif

/* Are the pixels of the row copies of pixels that follow one another? */
static bool affine_copies(const struct affine_row *row)
{
    return row->x_step == AFFINE_PIXEL && !row->y_step && !((row->x | row->y) % AFFINE_PIXEL);
}

static void affine_copy(const struct affine_row *row, int64_t first, int64_t end, uint8_t *line)
{
    const uint8_t *source =
        row->source + (row->y / AFFINE_PIXEL * row->width + row->x / AFFINE_PIXEL + first) * 3;

    memcpy(line + first * 3, source, (size_t)(end - first) * 3);
}

static void affine_line(const struct affine_row *row, bool plain, uint8_t *line)
{
    struct affine_range inside = {0, row->width}, quick;

    narrow(&inside, row->x, row->x_step, -AFFINE_ONE, row->width * AFFINE_PIXEL - AFFINE_ONE);
    narrow(&inside, row->y, row->y_step, -AFFINE_ONE, row->height * AFFINE_PIXEL - AFFINE_ONE);
    quick = inside;
    narrow(&quick, row->x, row->x_step, 0, (row->width - 2) * AFFINE_PIXEL);
    narrow(&quick, row->y, row->y_step, 0, (row->height - 1) * AFFINE_PIXEL);
    memset(line, 0, (size_t)inside.first * 3);
    if (plain) {
        affine_pixels(row, inside.first, inside.end, line);
    } else if (affine_copies(row)) {
        affine_copy(row, inside.first, inside.end, line);
    } else {
        affine_pixels(row, inside.first, quick.first, line);
        affine_pixels_fast(row, quick.first, quick.end, line);
        affine_pixels(row, quick.end, inside.end, line);
    }
    memset(line + inside.end * 3, 0, (size_t)(row->width - inside.end) * 3);
}

void pixels_affine(const struct pixels *p, const struct affine *a)
{
    struct affine_row row = {p->scratch, p->height, p->width, 0, 0, 2 * a->xx, 2 * a->yx};
    bool plain = p->plain || !affine_has_vectors();

    memcpy(p->scratch, p->rgb, pixels_count(p) * 3);
    for (int64_t y = 0; y < row.height; y++) {
        row.x = a->xx + a->xy * (2 * y + 1) + a->x0 - AFFINE_ONE;
        row.y = a->yx + a->yy * (2 * y + 1) + a->y0 - AFFINE_ONE;
        affine_line(&row, plain, p->rgb + y * row.width * 3);
    }
}

void pixels_shear_x(const struct pixels *p, int64_t m)
{
    pixels_affine(p, &(struct affine){AFFINE_ONE, m, 0, 0, AFFINE_ONE, 0});
}

void pixels_shear_y(const struct pixels *p, int64_t m)
{
    pixels_affine(p, &(struct affine){AFFINE_ONE, 0, 0, m, AFFINE_ONE, 0});
}

void pixels_translate_x(const struct pixels *p, int64_t n)
{
    pixels_affine(p, &(struct affine){AFFINE_ONE, 0, -n * AFFINE_PIXEL, 0, AFFINE_ONE, 0});
}

void pixels_translate_y(const struct pixels *p, int64_t n)
{
    pixels_affine(p, &(struct affine){AFFINE_ONE, 0, 0, 0, AFFINE_ONE, -n * AFFINE_PIXEL});
}

/* The sine and cosine of no multiple of a sixth of a degree that a policy has are so near to the
 * middle between two numbers of 32 bits that the last bits of a double could matter. */
void pixels_rotate(const struct pixels *p, int sixths)
{
    double radians = sixths * (3.14159265358979323846 / 1080);
    int64_t cosine = llround(cos(radians) * (double)AFFINE_ONE);
    int64_t sine = llround(sin(radians) * (double)AFFINE_ONE);
    int64_t w = p->width, h = p->height;

    pixels_affine(p, &(struct affine){cosine, -sine, w * AFFINE_ONE - cosine * w + sine * h, sine,
                                      cosine, h * AFFINE_ONE - sine * w - cosine * h});
}
