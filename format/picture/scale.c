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

/* The most pixels that two given pixels, of which the first has an even number, are part of. */
static uint32_t most_users(const struct axis *axis)
{
    uint32_t most = 1, first = 0;

    for (uint32_t i = 0; i < axis->length; i++) {
        while (axis->taps[first].first + axis->taps[first].n <= (axis->taps[i].first & ~1u))
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

#if defined(__SSE2__)

/* Two pixels with their two weights at a time, all colours side by side. */
static void scale_line(const struct axis *x, const uint8_t *row, int16_t *line)
{
    const __m128i zero = _mm_setzero_si128();
    const __m128i half = _mm_set1_epi32(1 << (WEIGHT_BITS - LINE_BITS - 1));
    const uint32_t n = x->taps[0].n;
    const int16_t *weight = x->weight;

    for (uint32_t i = 0; i < x->length; i++, weight += n) {
        const uint8_t *pixel = row + (size_t)x->taps[i].first * PIXEL_BYTES;
        __m128i sum = half;

        for (uint32_t k = 0; k < n; k += 2) {
            __m128i two = _mm_loadl_epi64((const __m128i *)(const void *)(pixel + 4 * (size_t)k));
            int32_t weights;

            memcpy(&weights, weight + k, sizeof(weights));
            two = _mm_unpacklo_epi8(two, _mm_srli_si128(two, PIXEL_BYTES));
            sum = _mm_add_epi32(
                sum, _mm_madd_epi16(_mm_unpacklo_epi8(two, zero), _mm_set1_epi32(weights)));
        }
        sum = _mm_srai_epi32(sum, WEIGHT_BITS - LINE_BITS);
        _mm_storel_epi64((__m128i *)(void *)(line + (size_t)i * PIXEL_BYTES),
                         _mm_packs_epi32(sum, sum));
    }
}

/* Add two lines, or set the sum to them. n is a multiple of PIXEL_BYTES. */
static void scale_add_lines(int32_t *sum, bool set, const int16_t *line, size_t n,
                            const int16_t weight[2])
{
    const __m128i weights =
        _mm_set1_epi32((int32_t)((uint32_t)(uint16_t)weight[1] << 16 | (uint16_t)weight[0]));

    for (size_t i = 0; i < n; i += PIXEL_BYTES) {
        __m128i *at = (__m128i *)(void *)(sum + i);
        __m128i a = _mm_loadl_epi64((const __m128i *)(const void *)(line + i));
        __m128i b = _mm_loadl_epi64((const __m128i *)(const void *)(line + n + i));

        a = _mm_madd_epi16(_mm_unpacklo_epi16(a, b), weights);
        _mm_storeu_si128(at, set ? a : _mm_add_epi32(_mm_loadu_si128(at), a));
    }
}

/* Four colours of a pixel, rounded. */
static uint32_t finish_pixel(const int32_t *sum)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)sum);

    v = _mm_add_epi32(v, _mm_set1_epi32(1 << (WEIGHT_BITS + LINE_BITS - 1)));
    v = _mm_srai_epi32(v, WEIGHT_BITS + LINE_BITS);
    v = _mm_packs_epi32(v, v);
    return (uint32_t)_mm_cvtsi128_si32(_mm_packus_epi16(v, v));
}

#else

static void scale_line(const struct axis *x, const uint8_t *row, int16_t *line)
{
    for (uint32_t i = 0; i < x->length; i++) {
        const struct taps *taps = &x->taps[i];
        const uint8_t *pixel = row + (size_t)taps->first * PIXEL_BYTES;
        int32_t sum[PIXEL_BYTES] = {0};

        for (uint32_t k = 0; k < taps->n; k++)
            for (unsigned c = 0; c < PIXEL_BYTES; c++)
                sum[c] += pixel[(size_t)k * PIXEL_BYTES + c] * x->weight[taps->at + k];
        for (unsigned c = 0; c < PIXEL_BYTES; c++)
            line[(size_t)i * PIXEL_BYTES + c] =
                (int16_t)((sum[c] + (1 << (WEIGHT_BITS - LINE_BITS - 1))) >>
                          (WEIGHT_BITS - LINE_BITS));
    }
}

static void scale_add_lines(int32_t *sum, bool set, const int16_t *line, size_t n,
                            const int16_t weight[2])
{
    for (size_t i = 0; i < n; i++)
        sum[i] = (set ? 0 : sum[i]) + line[i] * weight[0] + line[n + i] * weight[1];
}

static uint32_t finish_pixel(const int32_t *sum)
{
    uint8_t colour[PIXEL_BYTES];
    uint32_t v;

    for (unsigned c = 0; c < PIXEL_BYTES; c++)
        colour[c] =
            (uint8_t)((sum[c] + (1 << (WEIGHT_BITS + LINE_BITS - 1))) >> (WEIGHT_BITS + LINE_BITS));
    memcpy(&v, colour, sizeof(v));
    return v;
}

#endif

static int32_t *scale_sum_of(const struct scaler *s, uint32_t y)
{
    return s->sum + (size_t)(y % s->slots) * s->x.length * PIXEL_BYTES;
}

/* A wanted row is complete: round it. Each pixel is written with a byte that the next
 * one replaces. */
static void finish_row(const struct scaler *s, uint32_t y)
{
    const ptrdiff_t last = (ptrdiff_t)PIXEL_BYTES * (s->x.length - 1);
    const ptrdiff_t step = s->dst.is_mirrored ? -PIXEL_BYTES : PIXEL_BYTES;
    const int32_t *sum = scale_sum_of(s, y) + (s->dst.is_mirrored ? last : 0);
    uint8_t *dst = s->dst.rgb + y * s->dst.row_step;
    uint32_t pixel;

    for (uint32_t i = 0; i + 1 < s->x.length; i++, sum += step, dst += 3) {
        pixel = finish_pixel(sum);
        memcpy(dst, &pixel, 4);
    }
    pixel = finish_pixel(sum);
    memcpy(dst, &pixel, 3);
}

static int16_t weight_at(const struct axis *axis, const struct taps *taps, uint32_t source_row)
{
    return source_row >= taps->first && source_row - taps->first < taps->n
               ? axis->weight[taps->at + source_row - taps->first]
               : 0;
}

/* Add the lines of rows `given` and the next to whatever needs them. */
static void scale_add_pair(struct scaler *s, uint32_t source_row)
{
    const size_t n = (size_t)s->x.length * PIXEL_BYTES;

    for (uint32_t y = s->ready; y < s->y.length && s->y.taps[y].first <= source_row + 1; y++) {
        const struct taps *taps = &s->y.taps[y];
        const int16_t weight[2] = {weight_at(&s->y, taps, source_row),
                                   weight_at(&s->y, taps, source_row + 1)};

        scale_add_lines(scale_sum_of(s, y), taps->first >= source_row, s->line, n, weight);
        if (taps->first + taps->n <= source_row + 2) {
            finish_row(s, y);
            s->ready = y + 1;
        }
    }
}

void scaler_row(struct scaler *s, const uint8_t *row)
{
    const struct taps *last = &s->y.taps[s->y.length - 1];
    uint32_t source_row = s->row++;

    if (s->ready == s->y.length || source_row < s->y.taps[s->ready].first)
        return;
    scale_line(&s->x, row, s->line + (size_t)(source_row & 1) * s->x.length * PIXEL_BYTES);
    if (source_row & 1 || source_row + 1 == last->first + last->n)
        scale_add_pair(s, source_row & ~1u);
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
