#include "format/picture/tables.h"

#include "format/picture/colour.h"

typedef uint8_t table[256];

static void tables_apply(const struct pixels *p, table t[3])
{
    size_t n = pixels_count(p);
    uint8_t *rgb = p->rgb;

    for (size_t i = 0; i < n; i++, rgb += 3)
        for (unsigned c = 0; c < 3; c++)
            rgb[c] = t[c][rgb[c]];
}

static void table_apply(const struct pixels *p, const table one)
{
    size_t n = pixels_count(p) * 3;

    for (size_t i = 0; i < n; i++)
        p->rgb[i] = one[p->rgb[i]];
}

void pixels_posterize(const struct pixels *p, unsigned bits)
{
    table t;

    for (unsigned i = 0; i < 256; i++)
        t[i] = (uint8_t)(i & (0xff00u >> bits));
    table_apply(p, t);
}

void pixels_solarize(const struct pixels *p, uint32_t scale, uint32_t threshold)
{
    table t;

    for (unsigned i = 0; i < 256; i++)
        t[i] = (uint8_t)(i * scale >= threshold ? 255 - i : i);
    table_apply(p, t);
}

void pixels_invert(const struct pixels *p)
{
    pixels_solarize(p, 1, 0);
}

static void table_blend(const struct pixels *p, int dull, uint32_t factor)
{
    table t;

    for (int i = 0; i < 256; i++)
        t[i] = colour_blend(dull, i, factor);
    table_apply(p, t);
}

void pixels_brightness(const struct pixels *p, uint32_t factor)
{
    table_blend(p, 0, factor);
}

void pixels_contrast(const struct pixels *p, uint32_t factor)
{
    table_blend(p, pixels_mean_gray(p), factor);
}

/* ---- tables that are made of how often each value occurs ---- */

/* Pixels by turns in one of two counts: those that follow one another are often equal, and a
 * processor waits for a count that it has just written. */
static void count_values(const struct pixels *p, uint32_t counts[3][256])
{
    uint32_t others[3][256] = {0};
    size_t n = pixels_count(p) * 3;
    const uint8_t *rgb = p->rgb;

    for (size_t i = 0; i + 3 < n; i += 6)
        for (unsigned c = 0; c < 3; c++) {
            counts[c][rgb[i + c]]++;
            others[c][rgb[i + 3 + c]]++;
        }
    for (unsigned c = 0; c < 3; c++) {
        if (n % 2)
            counts[c][rgb[n - 3 + c]]++;
        for (unsigned i = 0; i < 256; i++)
            counts[c][i] += others[c][i];
    }
}

/* The table for the values that occur. At least one does. */
static void table_stretch(const uint32_t counts[256], table ret)
{
    unsigned low = 0, high = 255;

    while (!counts[low])
        low++;
    while (!counts[high])
        high--;
    for (unsigned i = low; i <= high; i++)
        ret[i] = (uint8_t)(high > low ? (i - low) * 255 / (high - low) : i);
}

/* As PIL's ImageOps.equalize: the pixels of the highest value do not count for the step. */
static void table_equalize(const uint32_t counts[256], table ret)
{
    uint64_t all = 0, last = 0, sum, step;

    for (unsigned i = 0; i < 256; i++)
        if (counts[i]) {
            last = counts[i];
            all += last;
        }
    step = (all - last) / 255;
    sum = step / 2;
    for (unsigned i = 0; i < 256; i++) {
        uint64_t v = step ? sum / step : i;

        ret[i] = (uint8_t)(v > 255 ? 255 : v);
        sum += counts[i];
    }
}

static void tables_by_counts(const struct pixels *p,
                             void (*make)(const uint32_t *counts, table ret))
{
    uint32_t counts[3][256] = {0};
    table t[3];

    count_values(p, counts);
    for (unsigned c = 0; c < 3; c++)
        make(counts[c], t[c]);
    tables_apply(p, t);
}

void pixels_auto_contrast(const struct pixels *p)
{
    tables_by_counts(p, table_stretch);
}

void pixels_equalize(const struct pixels *p)
{
    tables_by_counts(p, table_equalize);
}
