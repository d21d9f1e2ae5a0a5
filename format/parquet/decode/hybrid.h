/* The hybrid of runs and bit-packed groups, for levels, booleans and ids of dictionaries
 * (Encodings.md of parquet-format, "RLE / Bit-Packing Hybrid"). The bytes are hostile. */
#ifndef EPOCHFS_FORMAT_PARQUET_DECODE_HYBRID_H
#define EPOCHFS_FORMAT_PARQUET_DECODE_HYBRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decode n values of width bits (0 .. 32) from the bytes to ret; if it is NULL, to level, which has
 * UINT8_MAX for larger ones of runs. What runs have beyond n is ignored. With width 0 all are 0,
 * whatever the bytes are. false: the bytes end before, or a header is no number below 2^32. */
bool hybrid_decode(const uint8_t *bytes, size_t len, unsigned width, size_t n, uint32_t *ret,
                   uint8_t *level);

/* Unpack values first .. first + n - 1 of bit-packed ones of width bits (0 .. 64), the lowest bit
 * first; the bytes have all of them. */
void bits_unpack(const uint8_t *bytes, size_t len, unsigned width, size_t first, size_t n,
                 uint64_t *ret);

#endif
