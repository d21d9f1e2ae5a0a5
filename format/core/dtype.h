/* The types of array elements, named as numpy names them. */
#ifndef EPOCHFS_FORMAT_CORE_DTYPE_H
#define EPOCHFS_FORMAT_CORE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dtype {
    DTYPE_U1,
    DTYPE_I1,
    DTYPE_I2,
    DTYPE_I4,
    DTYPE_I8,
    DTYPE_F4,
    DTYPE_F8,
    DTYPE_TEXT, /* bytes of a fixed width, which the field gives */
    DTYPE_BOOL, /* a byte, 0 or 1 */
    DTYPE_U2,
    DTYPE_U4,
    DTYPE_U8,
    DTYPE_F2,
    DTYPE_C8, /* complex: two numbers of half the bytes */
    DTYPE_C16,
    N_DTYPES,
};

struct dtype_info {
    const char *name; /* "uint8" */
    char letter;      /* 'b', 'u', 'i', 'f', 'c', 'S' */
    uint8_t bytes;    /* of an element; 0 for text */
};

const struct dtype_info *dtype_info(enum dtype dtype);

/* The integer (or bool) at p. An uint64 of 2^63 or more is negative. */
int64_t dtype_integer(enum dtype dtype, bool big_endian, const uint8_t *p);

/* The number at p, little-endian; 0 of types that are none. */
double dtype_real(enum dtype dtype, const uint8_t *p);

/* numpy's short form, such as "<f4", "|u1" or "|S6", NUL-terminated. width: bytes of an element. */
#define DTYPE_DESCR_SIZE 24
void dtype_descr(enum dtype dtype, uint64_t width, bool big_endian,
                 char ret[static DTYPE_DESCR_SIZE]);

#endif
