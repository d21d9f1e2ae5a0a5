#include "format/core/dtype.h"

#include <assert.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/real.h"

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

    snprintf(ret, DTYPE_DESCR_SIZE, "%c%c%u", order, infos[dtype].letter, (unsigned)width);
}

int64_t dtype_integer(enum dtype dtype, bool big_endian, const uint8_t *p)
{
    switch (dtype) {
    case DTYPE_U1:
    case DTYPE_BOOL:
        return p[0];
    case DTYPE_I1:
        return (int8_t)p[0];
    case DTYPE_I2:
        return (int16_t)(big_endian ? load_be16(p) : load_le16(p));
    case DTYPE_U2:
        return big_endian ? load_be16(p) : load_le16(p);
    case DTYPE_I4:
        return (int32_t)(big_endian ? load_be32(p) : load_le32(p));
    case DTYPE_U4:
        return big_endian ? load_be32(p) : load_le32(p);
    case DTYPE_I8:
    case DTYPE_U8:
        return (int64_t)(big_endian ? load_be64(p) : load_le64(p));
    default:
        assert(!"an integer");
        return 0;
    }
}

double dtype_real(enum dtype dtype, const uint8_t *p)
{
    switch (dtype) {
    case DTYPE_F2:
        return f2_of_bits(load_le16(p));
    case DTYPE_F4:
        return (double)f4_of_bits(load_le32(p));
    case DTYPE_F8:
        return f8_of_bits(load_le64(p));
    case DTYPE_U8:
        return (double)load_le64(p);
    case DTYPE_C8:
    case DTYPE_C16:
    case DTYPE_TEXT:
        return 0;
    default:
        return (double)dtype_integer(dtype, false, p);
    }
}
