/* Numbers of 16 bits with a fraction: IEEE 754 binary16, float16 of numpy. */
#ifndef EPOCHFS_BASE_HALF_H
#define EPOCHFS_BASE_HALF_H

#include <stdint.h>
#include <string.h>

/* The value of its bits; infinities and NaN stay what they are. */
static inline double half_to_double(uint16_t h)
{
    uint32_t sign = (uint32_t)(h >> 15) << 31, exponent = h >> 10 & 31, fraction = h & 1023u, bits;
    float f;

    if (!exponent)
        return (h >> 15 ? -1.0 : 1.0) * fraction / 16777216.0;
    bits = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

#endif
