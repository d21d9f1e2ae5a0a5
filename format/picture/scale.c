/* The weights of an axis come from distances between the middles of pixels, measured in units in
 * which all of them are integers. They are rounded so that their sum is exact: what is one colour
 * stays that colour. A row is scaled along x to 15 bits; rows are summed up along y to 29 bits, and
 * rounded once; two rows at a time, which is how processors multiply. So a sum never leaves its
 * type, and a result never leaves 0 to 255. */
#include "format/picture/scale.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define WEIGHT_BITS    14
#define LINE_BITS      7 /* of a row scaled along x: behind the 8 of a colour */
#define TAPS_ALIGNMENT 2

/* ---- the weights of an axis ---- */

struct weights {
    uint64_t one;    /* from one given pixel to the next, in half units */
    uint64_t middle; /* of the pixel that is made */
    uint64_t radius; /* where the triangle ends */
};

static uint64_t distance_weight(const struct weights *w, uint64_t x)
{
    uint64_t at = (2 * x + 1) * w->one, distance = at > w->middle ? at - w->middle : w->middle - at;

    return distance < w->radius ? w->radius - distance : 0;
}

/* The half units: 1 / (2 * scaled) of a pixel of the source. */
static struct weights weights_of(const struct axis_fit *fit, unsigned reduced, uint32_t i)
{
    struct weights w = {.one = fit->scaled * reduced,
                        .middle =
                            (2 * (fit->start + i) + 1) * fit->size + 2 * fit->first * fit->scaled};

    w.radius = 2 * max_u64(fit->size, w.one);
    return w;
}

/* The given pixels that are nearer than the radius, of those from begin up to n. */
static void find_taps(const struct weights *w, uint64_t begin, uint64_t n, uint32_t *ret_first,
                      uint32_t *ret_n)
{
    uint64_t low = w->middle > w->radius ? w->middle - w->radius : 0, first, end;

    first = max_u64(min_u64(low / (2 * w->one), n - 1), begin);
    while (first + 1 < n && !distance_weight(w, first))
        first++;
    end = first + 1;
    while (end < n && distance_weight(w, end))
        end++;
    *ret_first = (uint32_t)first;
    *ret_n = (uint32_t)(end - first);
}

/* Each weight is the step between two rounded shares of the sum, which is below 2^42: if the source
 * has more pixels than are made, 2^20 weights are below 2^22; otherwise a few are below 2^38. */
static void set_weights(const struct weights *w, const struct taps *taps, int16_t *weight)
{
    uint64_t sum = 0, before = 0, share = 0;

    for (uint32_t k = 0; k < taps->n; k++)
        sum += distance_weight(w, taps->first + k);
    for (uint32_t k = 0; k < taps->n; k++) {
        uint64_t last = share;

        before += distance_weight(w, taps->first + k);
        share = ((before << WEIGHT_BITS) + sum / 2) / sum;
        weight[taps->at + k] = (int16_t)(share - last);
    }
}

static int axis_init(struct axis *axis, const struct axis_fit *fit, unsigned reduced)
{
    uint64_t begin = fit->first / reduced, end = ceil_div(fit->first + fit->size, reduced), at = 0;

    axis->length = fit->length;
    axis->taps = calloc(fit->length, sizeof(*axis->taps));
    for (uint32_t i = 0; axis->taps && i < fit->length; i++) {
        struct weights w = weights_of(fit, reduced, i);
        struct taps *taps = &axis->taps[i];

        find_taps(&w, begin, end, &taps->first, &taps->n);
        taps->at = (uint32_t)at;
        at += (taps->n + TAPS_ALIGNMENT - 1) / TAPS_ALIGNMENT * TAPS_ALIGNMENT;
    }
    axis->weight = calloc(at ? at : 1, sizeof(*axis->weight));
    if (!axis->taps || !axis->weight)
        return -ENOMEM;
    for (uint32_t i = 0; i < fit->length; i++) {
        struct weights w = weights_of(fit, reduced, i);

        set_weights(&w, &axis->taps[i], axis->weight);
    }
    return 0;
}

/* Let all pixels have as many taps, so that the processor foresees where its loop over them ends:
 * what is added has the weight 0. end: of the given pixels; one more can be read. */
static int axis_even_out(struct axis *axis, uint64_t end)
{
    int16_t *weight;
    uint32_t most = 0;

    for (uint32_t i = 0; i < axis->length; i++)
        most = (uint32_t)max_u64(most, axis->taps[i].n);
    most = (most + TAPS_ALIGNMENT - 1) / TAPS_ALIGNMENT * TAPS_ALIGNMENT;
    weight = calloc((size_t)axis->length * most, sizeof(*weight));
    if (!weight)
        return -ENOMEM;
    for (uint32_t i = 0; i < axis->length; i++) {
        struct taps *taps = &axis->taps[i];
        uint32_t first = (uint32_t)min_u64(taps->first, end > most ? end - most : 0);

        memcpy(weight + (size_t)i * most + (taps->first - first), axis->weight + taps->at,
               taps->n * sizeof(*weight));
        *taps = (struct taps){first, most, i * most};
    }
    free(axis->weight);
    axis->weight = weight;
    return 0;
}

/* The most pixels that a given pixel is part of. */
static uint32_t most_users(const struct axis *axis)
{
    uint32_t most = 1, first = 0;

    for (uint32_t i = 0; i < axis->length; i++) {
        while (axis->taps[first].first + axis->taps[first].n <= axis->taps[i].first)
            first++;
        if (i - first + 1 > most)
            most = i - first + 1;
    }
    return most;
}

int scaler_init(struct scaler *s, const struct axis_fit *x, const struct axis_fit *y,
                unsigned reduced, const struct pixel_rows *dst)
{
    int r = axis_init(&s->x, x, reduced);

    if (r == 0)
        r = axis_even_out(&s->x, ceil_div(x->first + x->size, reduced));
    if (r == 0)
        r = axis_init(&s->y, y, reduced);
    if (r < 0)
        return r;
    s->slots = most_users(&s->y);
    s->line = calloc((size_t)2 * x->length * PIXEL_BYTES, sizeof(*s->line));
    s->sum = calloc((size_t)s->slots * x->length * PIXEL_BYTES, sizeof(*s->sum));
    s->dst = *dst;
    return s->line && s->sum ? 0 : -ENOMEM;
}

static void axis_release(struct axis *axis)
{
    free(axis->taps);
    free(axis->weight);
}

void scaler_release(struct scaler *s)
{
    axis_release(&s->x);
    axis_release(&s->y);
    free(s->line);
    free(s->sum);
}

/* ---- rows ---- */

typedef int32_t sums __attribute__((vector_size(16))); /* of the colours of a pixel */

/* The sums of two pixels with their weights, from one byte a colour, and from two; and the lower
 * bits of sums, as such pixels. */
#if defined(__SSE2__)

static inline __m128i both_weights(const int16_t *weight)
{
    int32_t both;

    memcpy(&both, weight, sizeof(both));
    return _mm_set1_epi32(both);
}

static inline sums sum_colours(const uint8_t *a, const uint8_t *b, const int16_t *weight)
{
    const __m128i zero = _mm_setzero_si128();
    int32_t x, y;
    __m128i two;

    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    two = _mm_unpacklo_epi8(_mm_cvtsi32_si128(x), _mm_cvtsi32_si128(y));
    return (sums)_mm_madd_epi16(_mm_unpacklo_epi8(two, zero), both_weights(weight));
}

static inline sums sum_words(const int16_t *a, const int16_t *b, const int16_t *weight)
{
    __m128i two = _mm_unpacklo_epi16(_mm_loadl_epi64((const __m128i *)(const void *)a),
                                     _mm_loadl_epi64((const __m128i *)(const void *)b));

    return (sums)_mm_madd_epi16(two, both_weights(weight));
}

static inline void store_words(sums v, int16_t *words)
{
    _mm_storel_epi64((__m128i *)(void *)words, _mm_packs_epi32((__m128i)v, (__m128i)v));
}

static inline uint32_t colours_of(sums v)
{
    __m128i words = _mm_packs_epi32((__m128i)v, (__m128i)v);

    return (uint32_t)_mm_cvtsi128_si32(_mm_packus_epi16(words, words));
}

#else

static inline sums sum_colours(const uint8_t *a, const uint8_t *b, const int16_t *weight)
{
    return (sums){a[0], a[1], a[2], a[3]} * weight[0] + (sums){b[0], b[1], b[2], b[3]} * weight[1];
}

static inline sums sum_words(const int16_t *a, const int16_t *b, const int16_t *weight)
{
    return (sums){a[0], a[1], a[2], a[3]} * weight[0] + (sums){b[0], b[1], b[2], b[3]} * weight[1];
}

static inline void store_words(sums v, int16_t *words)
{
    for (unsigned c = 0; c < PIXEL_BYTES; c++)
        words[c] = (int16_t)v[c];
}

static inline uint32_t colours_of(sums v)
{
    uint32_t bytes;

    for (unsigned c = 0; c < PIXEL_BYTES; c++)
        ((uint8_t *)&bytes)[c] = (uint8_t)v[c];
    return bytes;
}

#endif

/* n: of all taps. Where the compiler knows it, there is no loop over them. */
static inline __attribute__((always_inline)) void scale_line_of(const struct axis *x, uint32_t n,
                                                                const uint8_t *row, int16_t *line)
{
    const struct taps *taps = x->taps, *end = taps + x->length;
    const int16_t *weight = x->weight;

    for (; taps < end; taps++, line += PIXEL_BYTES) {
        const uint8_t *pixel = row + (size_t)taps->first * PIXEL_BYTES;
        sums sum = (sums){0} + (1 << (WEIGHT_BITS - LINE_BITS - 1));

        for (uint32_t k = 0; k < n; k += 2, pixel += 2 * PIXEL_BYTES, weight += 2)
            sum += sum_colours(pixel, pixel + PIXEL_BYTES, weight);
        store_words(sum >> (WEIGHT_BITS - LINE_BITS), line);
    }
}

static void scale_line(const struct axis *x, const uint8_t *row, int16_t *line)
{
    if (x->taps->n == 2)
        scale_line_of(x, 2, row, line);
    else if (x->taps->n == 4)
        scale_line_of(x, 4, row, line);
    else
        scale_line_of(x, x->taps->n, row, line);
}

/* Add lines a and b to wanted row y, or set its sum to them. After the last ones, it is rounded:
 * each pixel is written with a byte that the next one replaces. */
static inline __attribute__((always_inline)) void scale_add_of(const struct scaler *s, uint32_t y,
                                                               const int16_t *a, const int16_t *b,
                                                               const int16_t *weight, bool is_first,
                                                               bool is_last)
{
    const int16_t both[2] = {weight[0], weight[1]};
    const ptrdiff_t step = is_last && s->dst.is_mirrored ? -PIXEL_BYTES : PIXEL_BYTES;
    ptrdiff_t at = step < 0 ? (ptrdiff_t)PIXEL_BYTES * (s->x.length - 1) : 0;
    int32_t *sum = s->sum + (size_t)(y % s->slots) * s->x.length * PIXEL_BYTES;
    uint8_t *dst = s->dst.rgb + y * s->dst.row_step;

    for (uint32_t left = s->x.length; left; left--, at += step, dst += 3) {
        sums before = {0}, v = sum_words(a + at, b + at, both);
        uint32_t pixel;

        if (!is_first)
            memcpy(&before, sum + at, sizeof(before));
        v += before;
        if (!is_last) {
            memcpy(sum + at, &v, sizeof(v));
            continue;
        }
        pixel = colours_of((v + (1 << (WEIGHT_BITS + LINE_BITS - 1))) >> (WEIGHT_BITS + LINE_BITS));
        memcpy(dst, &pixel, left > 1 ? 4 : 3);
    }
}

/* A row of the source has its line: add it to each wanted row with the one before, or alone if it
 * is the last of an odd number. */
static void scale_add(struct scaler *s, uint32_t source_row)
{
    for (uint32_t y = s->ready; y < s->y.length && s->y.taps[y].first <= source_row; y++) {
        const struct taps *taps = &s->y.taps[y];
        uint32_t k = source_row - taps->first;
        bool is_first = k < 2, is_last = k + 1 == taps->n;
        const size_t n = (size_t)s->x.length * PIXEL_BYTES;
        const int16_t *a = s->line + ((source_row - k % 2) & 1) * n;
        const int16_t *b = s->line + ((source_row - k % 2 + 1) & 1) * n;
        const int16_t *weight = s->y.weight + taps->at + (k & ~1u);

        if (is_last && is_first)
            scale_add_of(s, y, a, b, weight, true, true);
        else if (is_last)
            scale_add_of(s, y, a, b, weight, false, true);
        else if (k % 2)
            scale_add_of(s, y, a, b, weight, is_first, false);
        if (is_last)
            s->ready = y + 1;
    }
}

void scaler_row(struct scaler *s, const uint8_t *row)
{
    uint32_t source_row = s->row++;

    if (s->ready == s->y.length || source_row < s->y.taps[s->ready].first)
        return;
    scale_line(&s->x, row, s->line + (size_t)(source_row & 1) * s->x.length * PIXEL_BYTES);
    scale_add(s, source_row);
}

struct scaler_box scaler_needs(const struct scaler *s)
{
    const struct taps *x = &s->x.taps[s->x.length - 1], *y = &s->y.taps[s->y.length - 1];

    return (struct scaler_box){s->x.taps[0].first, x->first + x->n, s->y.taps[0].first,
                               y->first + y->n};
}

void scaler_skip(struct scaler *s, uint32_t rows)
{
    s->row = rows;
}
