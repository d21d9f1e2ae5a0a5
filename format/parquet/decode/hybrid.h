/* The hybrid of runs and bit-packed groups, for levels, booleans and ids of dictionaries
 * (Encodings.md of parquet-format, "RLE / Bit-Packing Hybrid"). The bytes are hostile. */
#ifndef EPOCHFS_FORMAT_PARQUET_DECODE_HYBRID_H
#define EPOCHFS_FORMAT_PARQUET_DECODE_HYBRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HYBRID_SOME 256 /* values that are decoded together */

/* Starts as {.p, .end, .width}: the bytes, and the bits of a value, 0 to 32. With width 0 all
 * values are 0, whatever the bytes are. */
struct hybrid {
    const uint8_t *p, *end;
    unsigned width;
    /* Private: */
    size_t run, packed; /* values that are left of a run, or of groups */
    uint32_t value;     /* of the run */
    const uint8_t *group;
    size_t group_len, unpacked; /* bytes of the groups; values that were unpacked */
};

/* The next values: n, HYBRID_SOME at most, or fewer where the bytes end. Returns how many; 0: the
 * bytes end, or a header is no number below 2^32. */
size_t hybrid_some(struct hybrid *h, size_t n, uint32_t ret[static HYBRID_SOME]);

/* Decode n levels from 0 to max, which is UINT8_MAX at most. What runs have beyond n is ignored.
 * *ret_full: how many are max. 0; -ENODATA: there are fewer levels; -ERANGE: one is larger. */
int hybrid_levels(const uint8_t *bytes, size_t len, unsigned max, size_t n, uint8_t *ret,
                  size_t *ret_full);

/* Unpack values first .. first + n - 1 of bit-packed ones of width bits (0 .. 64), the lowest bit
 * first; the bytes have all of them. */
void bits_unpack(const uint8_t *bytes, size_t len, unsigned width, size_t first, size_t n,
                 uint64_t *ret);

#endif
