/* Numbers with a fraction in memory and in files: IEEE 754 of 16, 32 and 64 bits, which numpy calls
 * float16, float32 and float64. */
#ifndef EPOCHFS_BASE_REAL_H
#define EPOCHFS_BASE_REAL_H

#include "base/bytes.h"

static inline float f4_of_bits(uint32_t bits)
{
    float v;

    memcpy(&v, &bits, sizeof(v));
    return v;
}

static inline double f8_of_bits(uint64_t bits)
{
    double v;

    memcpy(&v, &bits, sizeof(v));
    return v;
}

static inline uint32_t bits_of_f4(float v)
{
    uint32_t bits;

    memcpy(&bits, &v, sizeof(bits));
    return bits;
}

static inline uint64_t bits_of_f8(double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof(bits));
    return bits;
}

/* Infinities and NaN stay what they are. */
static inline double f2_of_bits(uint16_t h)
{
    uint32_t sign = (uint32_t)(h >> 15) << 31, exponent = h >> 10 & 31, fraction = h & 1023u;

    if (!exponent)
        return (h >> 15 ? -1.0 : 1.0) * fraction / 16777216.0;
    return f4_of_bits(sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13);
}

#endif
