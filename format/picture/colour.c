/* A factor is split into 65536 q + r with -32768 <= r < 32768, so that
 * factor * difference >> 16 = q * difference + (r * difference >> 16): two multiplications of 16
 * bits, without loss. Vector instructions are SSE2, which each x86-64 has, and SSSE3 where bytes
 * change places. */
#include "format/picture/colour.h"

#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#define SSSE3 __attribute__((target("ssse3")))

struct vector_factor {
    __m128i q, r;
};

static struct vector_factor vector_factor_of(uint32_t factor)
{
    return (struct vector_factor){_mm_set1_epi16((int16_t)((factor + 32768) >> 16)),
                                  _mm_set1_epi16((int16_t)(uint16_t)factor)};
}

/* Eight values of 16 bits. The sums stay within them for factors up to COLOUR_FACTOR_MAX. */
static __m128i vector_blend(__m128i dull, __m128i value, const struct vector_factor *f)
{
    __m128i difference = _mm_sub_epi16(value, dull);

    dull = _mm_add_epi16(dull, _mm_mullo_epi16(difference, f->q));
    return _mm_add_epi16(dull, _mm_mulhi_epi16(difference, f->r));
}

static __m128i vector_load8(const uint8_t *bytes)
{
    return _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)(const void *)bytes),
                             _mm_setzero_si128());
}

/* The grays of four pixels, 32 bits each. The four bytes after them are read. */
SSSE3 static __m128i vector_gray(__m128i rgb)
{
    const __m128i rg = _mm_setr_epi8(0, -1, 1, -1, 3, -1, 4, -1, 6, -1, 7, -1, 9, -1, 10, -1);
    const __m128i gb = _mm_setr_epi8(1, -1, 2, -1, 4, -1, 5, -1, 7, -1, 8, -1, 10, -1, 11, -1);
    __m128i sum = _mm_madd_epi16(_mm_shuffle_epi8(rgb, rg), _mm_set1_epi32(19235 << 16 | 19595));

    sum = _mm_add_epi32(
        sum, _mm_madd_epi16(_mm_shuffle_epi8(rgb, gb), _mm_set1_epi32(7471 << 16 | 19235)));
    return _mm_srli_epi32(_mm_add_epi32(sum, _mm_set1_epi32(32768)), 16);
}

/* How many of n pixels are multiples of 4 and have four bytes after them. */
static size_t vector_fours(const struct pixels *p, size_t n)
{
    return !p->plain && n > 4 && __builtin_cpu_supports("ssse3") ? (n - 2) / 4 * 4 : 0;
}

SSSE3 static void vector_colour(uint8_t *rgb, size_t n, uint32_t factor)
{
    const __m128i spread = _mm_setr_epi8(0, 0, 0, 4, 4, 4, 8, 8, 8, 12, 12, 12, -1, -1, -1, -1);
    const __m128i zero = _mm_setzero_si128();
    struct vector_factor f = vector_factor_of(factor);

    for (size_t i = 0; i < n; i += 4, rgb += 12) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)rgb);
        __m128i gray = _mm_shuffle_epi8(vector_gray(v), spread);
        uint32_t last;

        v = _mm_packus_epi16(
            vector_blend(_mm_unpacklo_epi8(gray, zero), _mm_unpacklo_epi8(v, zero), &f),
            vector_blend(_mm_unpackhi_epi8(gray, zero), _mm_unpackhi_epi8(v, zero), &f));
        _mm_storel_epi64((__m128i *)(void *)rgb, v);
        last = (uint32_t)_mm_cvtsi128_si32(_mm_srli_si128(v, 8));
        memcpy(rgb + 8, &last, sizeof(last));
    }
}

/* The sum of the grays. */
SSSE3 static uint64_t vector_sum_gray(const uint8_t *rgb, size_t n)
{
    __m128i sum = _mm_setzero_si128();
    uint64_t halves[2];

    for (size_t i = 0; i < n; i += 4, rgb += 12)
        sum = _mm_add_epi64(
            sum, _mm_sad_epu8(vector_gray(_mm_loadu_si128((const __m128i *)(const void *)rgb)),
                              _mm_setzero_si128()));
    _mm_storeu_si128((__m128i *)(void *)halves, sum);
    return halves[0] + halves[1];
}

/* As many of n bytes of a row as are multiples of 8; `row` bytes lead to the next one. */
static size_t vector_sharpen(const struct pixels *p, const uint8_t *from, size_t row, uint8_t *to,
                             size_t n, uint32_t factor)
{
    struct vector_factor f = vector_factor_of(factor);
    size_t i = 0;

    for (; !p->plain && i + 8 <= n; i += 8) {
        const uint8_t *at = from + i;
        __m128i middle = vector_load8(at), sum = _mm_slli_epi16(middle, 2);

        for (unsigned k = 0; k < 3; k++) {
            const uint8_t *line = at + k * row - row;

            sum = _mm_add_epi16(sum, vector_load8(line - 3));
            sum = _mm_add_epi16(sum, vector_load8(line));
            sum = _mm_add_epi16(sum, vector_load8(line + 3));
        }
        /* (2 sum + 13) div 26 = (2 sum + 13) 40330 div 2^20: so for numbers below 2^18 */
        sum = _mm_add_epi16(_mm_add_epi16(sum, sum), _mm_set1_epi16(13));
        sum = _mm_srli_epi16(_mm_mulhi_epu16(sum, _mm_set1_epi16((int16_t)(uint16_t)40330)), 4);
        sum = vector_blend(sum, middle, &f);
        _mm_storel_epi64((__m128i *)(void *)(to + i), _mm_packus_epi16(sum, sum));
    }
    return i;
}

#else

static size_t vector_fours(const struct pixels *p, size_t n)
{
    (void)p;
    (void)n;
    return 0;
}

static void vector_colour(uint8_t *rgb, size_t n, uint32_t factor)
{
    (void)rgb;
    (void)n;
    (void)factor;
}

static uint64_t vector_sum_gray(const uint8_t *rgb, size_t n)
{
    (void)rgb;
    (void)n;
    return 0;
}

static size_t vector_sharpen(const struct pixels *p, const uint8_t *from, size_t row, uint8_t *to,
                             size_t n, uint32_t factor)
{
    (void)p;
    (void)from;
    (void)row;
    (void)to;
    (void)n;
    (void)factor;
    return 0;
}

#endif

void pixels_colour(const struct pixels *p, uint32_t factor)
{
    size_t n = pixels_count(p), fast = vector_fours(p, n);

    vector_colour(p->rgb, fast, factor);
    for (uint8_t *rgb = p->rgb + fast * 3; rgb < p->rgb + n * 3; rgb += 3) {
        uint8_t gray = pixel_gray(rgb);

        for (unsigned c = 0; c < 3; c++)
            rgb[c] = colour_blend(gray, rgb[c], factor);
    }
}

void pixels_gray(const struct pixels *p)
{
    pixels_colour(p, 0);
}

uint8_t pixels_mean_gray(const struct pixels *p)
{
    size_t n = pixels_count(p), fast = vector_fours(p, n);
    uint64_t sum = vector_sum_gray(p->rgb, fast);

    for (size_t i = fast; i < n; i++)
        sum += pixel_gray(p->rgb + i * 3);
    return (uint8_t)((2 * sum + n) / (2 * n));
}

static uint8_t smoothed(const uint8_t *at, size_t row)
{
    unsigned sum = 4u * at[0];

    for (unsigned k = 0; k < 3; k++) {
        const uint8_t *line = at + k * row - row;

        sum += (unsigned)line[-3] + line[0] + line[3];
    }
    return (uint8_t)((2 * sum + 13) / 26);
}

void pixels_sharpness(const struct pixels *p, uint32_t factor)
{
    size_t row = (size_t)p->width * 3;

    if (p->height < 3 || p->width < 3)
        return;
    memcpy(p->scratch, p->rgb, row * p->height);
    for (uint32_t y = 1; y + 1 < p->height; y++) {
        const uint8_t *from = p->scratch + y * row + 3;
        uint8_t *to = p->rgb + y * row + 3;
        size_t n = row - 6;

        for (size_t i = vector_sharpen(p, from, row, to, n, factor); i < n; i++)
            to[i] = colour_blend(smoothed(from + i, row), from[i], factor);
    }
}

void pixels_fill(const struct pixels *p, uint32_t top, uint32_t left, uint32_t height,
                 uint32_t width, const uint8_t colour[3])
{
    for (uint32_t y = top; y < top + height; y++)
        for (uint32_t x = left; x < left + width; x++)
            memcpy(p->rgb + ((size_t)y * p->width + x) * 3, colour, 3);
}
