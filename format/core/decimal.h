/* Decimal text to the nearest float32 or double, ties to even: the result of strtof and strtod, but
 * faster. And numbers as text. */
#ifndef EPOCHFS_FORMAT_CORE_DECIMAL_H
#define EPOCHFS_FORMAT_CORE_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

#define DECIMAL_PAD 8 /* readable bytes that must follow a text; the first of them is no digit */

/* Parse the number at p, which ends before end:
 *     [+-] (digits [. [digits]] | . digits) [(e|E) [+-] digits]   or
 *     [+-] (inf | infinity | nan), of any case
 * Returns the byte after the number, or NULL if there is no number. The caller judges what
 * follows. */
const uint8_t *decimal_parse(const uint8_t *p, const uint8_t *end, float *ret);

/* The same to the nearest double: the result of strtod. */
const uint8_t *decimal_parse_double(const uint8_t *p, const uint8_t *end, double *ret);

/* The decimal digits at p, at most 8: returns how many there are, and sets *ret to their value if
 * there are any. Examines all eight bytes at once. */
static inline unsigned decimal_digits8(const uint8_t *p, uint32_t *ret)
{
    uint64_t x = load_le64(p) ^ UINT64_C(0x3030303030303030); /* digits become 0 to 9 */
    uint64_t others = ((x + UINT64_C(0x7676767676767676)) | x) & UINT64_C(0x8080808080808080);
    unsigned n = others ? (unsigned)__builtin_ctzll(others) / 8 : 8;

    if (!n)
        return 0;
    x <<= 64 - 8 * n; /* leading zeros replace the bytes after the digits */
    x = x * 10 + (x >> 8);
    *ret = (uint32_t)(((x & UINT64_C(0xff000000ff)) * (100 + (UINT64_C(1000000) << 32)) +
                       (x >> 16 & UINT64_C(0xff000000ff)) * (1 + (UINT64_C(10000) << 32))) >>
                      32);
    return n;
}

/* MORE_BITS: significand bits that double has beyond float32. DOUBT: how close, in units of the
 * double's last place, a double made with up to three roundings may come to the boundary between
 * two float32 before its rounding is in doubt; with room to spare. */
#define DECIMAL_MORE_BITS 29
#define DECIMAL_DOUBT     8

/* Round to float32; false if the exact value may lie on the other side of a boundary. v is normal
 * as a float32, or 0. */
static inline bool decimal_round(double v, float *ret)
{
    const uint64_t half = UINT64_C(1) << (DECIMAL_MORE_BITS - 1);
    uint64_t bits;

    memcpy(&bits, &v, sizeof(bits));
    bits &= (UINT64_C(1) << DECIMAL_MORE_BITS) - 1;
    *ret = (float)v;
    return bits - (half - DECIMAL_DOUBT) > 2 * DECIMAL_DOUBT;
}

/* The same as decimal_parse() for the most common numbers: [-] up to 7 digits [. up to 7 digits].
 * NULL: call decimal_parse(). */
static inline const uint8_t *decimal_parse_short(const uint8_t *p, float *ret)
{
    static const double scale[2][8] = {{1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7},
                                       {-1e0, -1e-1, -1e-2, -1e-3, -1e-4, -1e-5, -1e-6, -1e-7}};
    static const uint32_t shift[8] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
    bool negative = *p == '-';
    const uint8_t *at = p + negative;
    uint32_t whole = 0, fraction = 0;
    unsigned n = decimal_digits8(at, &whole), k = 0;
    double v;

    at += n;
    if (*at == '.')
        k = decimal_digits8(at + 1, &fraction);
    at += *at == '.' ? 1 + k : 0;
    if (n == 8 || k == 8 || n + k == 0 || (*at | 0x20) == 'e')
        return NULL;
    /* The sign is as random as the data: a table avoids a mispredicted branch. */
    v = (double)((uint64_t)whole * shift[k] + fraction) * scale[negative][k];
    return decimal_round(v, ret) ? at : NULL;
}

/* The same as decimal_parse_double() for [-] up to 7 digits [. up to 7 digits]: the digits and the
 * power of ten are exact as double, so their quotient is rounded once. NULL: call
 * decimal_parse_double(). */
static inline const uint8_t *decimal_parse_short_double(const uint8_t *p, double *ret)
{
    static const double power[2][8] = {{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7},
                                       {-1e0, -1e1, -1e2, -1e3, -1e4, -1e5, -1e6, -1e7}};
    bool negative = *p == '-';
    const uint8_t *at = p + negative;
    uint32_t whole = 0, fraction = 0;
    unsigned n = decimal_digits8(at, &whole), k = 0;

    at += n;
    if (*at == '.')
        k = decimal_digits8(at + 1, &fraction);
    at += *at == '.' ? 1 + k : 0;
    if (n == 8 || k == 8 || n + k == 0 || (*at | 0x20) == 'e')
        return NULL;
    *ret = ((double)whole * power[0][k] + fraction) / power[negative][k];
    return at;
}

/* Write a number as printf's "%.7g" does, without a NUL: 7 significant digits. Returns its bytes,
 * 14 at most; the others of ret are overwritten. */
#define DECIMAL_TEXT 24
size_t decimal_text(double v, uint8_t ret[static DECIMAL_TEXT]);
size_t decimal_text_int(int32_t v, uint8_t ret[static DECIMAL_TEXT]); /* as "%d" */

#endif
