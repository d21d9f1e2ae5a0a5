/* Decimal text to the nearest float32, ties to even: what strtof gives, but faster. */
#ifndef EPOCHFS_FORMAT_DECIMAL_H
#define EPOCHFS_FORMAT_DECIMAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

#define DECIMAL_PAD 8 /* bytes behind a text that must be readable, and no digit where it ends */

/* Parse the number at p, which ends before end:
 *     [+-] (digits [. [digits]] | . digits) [(e|E) [+-] digits]   or
 *     [+-] (inf | infinity | nan), of any case
 * Returns the byte behind it, NULL where there is none. What follows is the caller's to judge. */
const uint8_t *decimal_parse(const uint8_t *p, const uint8_t *end, float *ret);

/* The decimal digits at p, at most 8 of them: their number, and their value in *ret if there are
 * any. All eight bytes are looked at together. */
static inline unsigned decimal_digits8(const uint8_t *p, uint32_t *ret)
{
    uint64_t x = load_le64(p) ^ UINT64_C(0x3030303030303030); /* digits become 0 to 9 */
    uint64_t others = ((x + UINT64_C(0x7676767676767676)) | x) & UINT64_C(0x8080808080808080);
    unsigned n = others ? (unsigned)__builtin_ctzll(others) / 8 : 8;

    if (!n)
        return 0;
    x <<= 64 - 8 * n; /* leading zeros instead of what follows */
    x = x * 10 + (x >> 8);
    *ret = (uint32_t)(((x & UINT64_C(0xff000000ff)) * (100 + (UINT64_C(1000000) << 32)) +
                       (x >> 16 & UINT64_C(0xff000000ff)) * (1 + (UINT64_C(10000) << 32))) >>
                      32);
    return n;
}

#endif
