#include "format/core/dtype.h"

#include <stdio.h>

static const struct dtype_info infos[] = {
    [DTYPE_BOOL] = {"bool", 'b', 1},    [DTYPE_U1] = {"uint8", 'u', 1},
    [DTYPE_I1] = {"int8", 'i', 1},      [DTYPE_I2] = {"int16", 'i', 2},
    [DTYPE_I4] = {"int32", 'i', 4},     [DTYPE_I8] = {"int64", 'i', 8},
    [DTYPE_F4] = {"float32", 'f', 4},   [DTYPE_F8] = {"float64", 'f', 8},
    [DTYPE_U2] = {"uint16", 'u', 2},    [DTYPE_U4] = {"uint32", 'u', 4},
    [DTYPE_U8] = {"uint64", 'u', 8},    [DTYPE_F2] = {"float16", 'f', 2},
    [DTYPE_C8] = {"complex64", 'c', 8}, [DTYPE_C16] = {"complex128", 'c', 16},
    [DTYPE_TEXT] = {"bytes", 'S', 0},
};

const struct dtype_info *dtype_info(enum dtype dtype)
{
    return &infos[dtype];
}

void dtype_descr(enum dtype dtype, uint64_t width, bool big_endian,
                 char ret[static DTYPE_DESCR_SIZE])
{
    char order = width == 1 || dtype == DTYPE_TEXT ? '|' : big_endian ? '>' : '<';

    snprintf(ret, DTYPE_DESCR_SIZE, "%c%c%u", order, infos[dtype].kind, (unsigned)width);
}
