/* Arithmetic on numbers that come from files, servers and users: each returns false, and leaves
 * *ret alone, where the result does not fit. */
#ifndef EPOCHFS_BASE_CHECKED_H
#define EPOCHFS_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

static inline bool checked_add(uint64_t a, uint64_t b, uint64_t *ret)
{
    uint64_t r;

    if (__builtin_add_overflow(a, b, &r))
        return false;
    *ret = r;
    return true;
}

static inline bool checked_mul(uint64_t a, uint64_t b, uint64_t *ret)
{
    uint64_t r;

    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *ret = r;
    return true;
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ceil(a / b), b > 0, without overflow. */
static inline uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* The greatest common divisor; that of 0 and b is b. */
static inline uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t remainder = a % b;

        a = b;
        b = remainder;
    }
    return a;
}

/* The number of decimal digits of v, at least 1. */
static inline unsigned decimal_digits(uint64_t v)
{
    unsigned n = 1;

    while (v >= 10) {
        v /= 10;
        n++;
    }
    return n;
}

/* The number of bits needed for the values 0..v. */
static inline unsigned bit_width(uint64_t v)
{
    return v ? 64u - (unsigned)__builtin_clzll(v) : 0;
}

#endif
