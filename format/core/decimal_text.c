/* Numbers as printf's "%.7g" writes them. A number times a power of ten, in double, is at most 3e-9
 * off if it has 7 digits before its point. So its digits are certain unless what follows them is
 * close to a half; such numbers, and those of other sizes, go to printf. */
#include <math.h>
#include <stdio.h>

#include "format/core/decimal.h"

#define DIGITS   7
#define POWER    22   /* of ten, on both sides of 0 */
#define DOUBT    1e-7 /* around a half */
#define LOG10_2  1233 /* times 4096 */
#define ZEROS    UINT64_C(0x3030303030303030)
#define EXPONENT 0x7ff

static const double tens[2 * POWER + 1] = {
    1e-22, 1e-21, 1e-20, 1e-19, 1e-18, 1e-17, 1e-16, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11,
    1e-10, 1e-9,  1e-8,  1e-7,  1e-6,  1e-5,  1e-4,  1e-3,  1e-2,  1e-1,  1e0,   1e1,
    1e2,   1e3,   1e4,   1e5,   1e6,   1e7,   1e8,   1e9,   1e10,  1e11,  1e12,  1e13,
    1e14,  1e15,  1e16,  1e17,  1e18,  1e19,  1e20,  1e21,  1e22};

static size_t text_by_printf(double v, uint8_t *ret)
{
    return (size_t)snprintf((char *)ret, DECIMAL_TEXT, "%.*g", DIGITS, v);
}

/* n below 10^7 as 7 bytes from 0 to 9, the first digit in the lowest one. */
static uint64_t seven_digits(uint32_t n)
{
    uint64_t v = n / 10000 | (uint64_t)(n % 10000) << 32, high;

    high = (v * 10486 >> 20) & UINT64_C(0x7f0000007f);
    v = high | (v - 100 * high) << 16;
    high = (v * 103 >> 10) & UINT64_C(0xf000f000f000f);
    v = high | (v - 10 * high) << 8;
    return v >> 8;
}

/* The digits at their place: the first one stands for 10^exponent, and n of them count. */
static size_t text_put(uint8_t *ret, uint64_t digits, unsigned n, int exponent)
{
    if (exponent >= DIGITS || exponent < -4) {
        unsigned size = (unsigned)(exponent < 0 ? -exponent : exponent);
        size_t at = n + (n > 1);

        ret[0] = (uint8_t)digits;
        ret[1] = n > 1 ? '.' : 'e';
        store_le64(ret + 2, digits >> 8);
        ret[at] = 'e';
        ret[at + 1] = exponent < 0 ? '-' : '+';
        ret[at + 2] = (uint8_t)('0' + size / 10);
        ret[at + 3] = (uint8_t)('0' + size % 10);
        return at + 4;
    }
    if (exponent < 0) {
        store_le64(ret, ZEROS);
        ret[1] = '.';
        store_le64(ret + 1 - exponent, digits);
        return n + 1 + (size_t)-exponent;
    }
    store_le64(ret, digits);
    if (n <= (unsigned)exponent + 1)
        return (size_t)exponent + 1;
    store_le64(ret + exponent + 2, digits >> 8 * (exponent + 1));
    ret[exponent + 1] = '.';
    return n + 1;
}

size_t decimal_text(double v, uint8_t ret[static DECIMAL_TEXT])
{
    double size = fabs(v), scaled, fraction;
    uint64_t bits, digits;
    bool negative;
    int exponent;
    uint32_t n;

    memcpy(&bits, &v, sizeof(bits));
    negative = bits >> 63;
    *ret = '-';
    if (size == 0) {
        ret[negative] = '0';
        return 1u + negative;
    }
    /* That of the power of two below the number, so it may be one too small. */
    exponent = (((int)(bits >> 52 & EXPONENT) - 1023) * LOG10_2) >> 12;
    if (exponent < DIGITS - POWER || exponent >= POWER)
        return text_by_printf(v, ret);
    exponent += size >= tens[POWER + exponent + 1];
    scaled = size * tens[POWER + DIGITS - 1 - exponent];
    n = (uint32_t)scaled;
    fraction = scaled - n;
    if (fabs(fraction - 0.5) < DOUBT)
        return text_by_printf(v, ret);
    n += fraction > 0.5;
    if (n == 10000000) {
        n = 1000000;
        exponent++;
    }
    digits = seven_digits(n);
    n = (63 - (unsigned)__builtin_clzll(digits)) / 8 + 1;
    return text_put(ret + negative, digits | ZEROS, n, exponent) + negative;
}

size_t decimal_text_int(int32_t v, uint8_t ret[static DECIMAL_TEXT])
{
    uint8_t digits[DECIMAL_TEXT];
    uint32_t left = v < 0 ? -(uint32_t)v : (uint32_t)v;
    size_t at = sizeof(digits);

    do
        digits[--at] = (uint8_t)('0' + left % 10);
    while (left /= 10);
    if (v < 0)
        digits[--at] = '-';
    memcpy(ret, digits + at, sizeof(digits) - at);
    return sizeof(digits) - at;
}
