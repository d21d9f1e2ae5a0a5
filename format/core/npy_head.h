/* The header of a .npy file: numpy's format.py, versions 1.0 to 3.0. It is hostile. */
#ifndef EPOCHFS_FORMAT_CORE_NPY_HEAD_H
#define EPOCHFS_FORMAT_CORE_NPY_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/core/dtype.h"

struct form;

#define NPY_MAGIC      "\x93NUMPY"
#define NPY_HEAD_START 12    /* bytes from which its length follows */
#define NPY_HEAD_MAX   65536 /* bytes, at most */
#define NPY_AXES       8     /* at most */

struct npy_head {
    enum dtype dtype; /* a number, or bool; complex only with ret_other */
    bool big_endian;
    bool fortran; /* the order of elements differs from that of C */
    unsigned ndim;
    uint64_t dim[NPY_AXES]; /* [ndim] */
    size_t bytes;           /* of the header: the array begins there */
    uint64_t array_bytes;   /* of the array: they are inside the file */
};

/* The bytes of the header, from the first NPY_HEAD_START bytes of a file (fewer if it is shorter):
 * at most NPY_HEAD_MAX. 0: that is no .npy, or its header is too long. */
size_t npy_head_bytes(const uint8_t *start, size_t len);

/* Parse a header of that many bytes; size: of the file. NULL, or what is wrong with it: "expected
 * ..., got ...". *ret_other (also on failure): the header is good, except the type, which is not of
 * numbers: its letter, '[' of records; otherwise 0. Then *ret has the shape. NULL: complex numbers
 * are none either. */
const char *npy_head_parse(const uint8_t *head, size_t len, uint64_t size, struct npy_head *ret,
                           char *ret_other);

/* The header of an array in C order, which the caller owns: byte for byte what numpy.save (1.23 and
 * later) writes. 0 or -ENOMEM. */
int npy_head_write(const struct form *form, uint8_t **ret, size_t *ret_len);

#endif
