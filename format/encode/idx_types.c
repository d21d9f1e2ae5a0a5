#include "format/encode/idx_types.h"

const struct idx_type idx_types[N_IDX_TYPES] = {
    {0x08, DTYPE_U1}, {0x09, DTYPE_I1}, {0x0b, DTYPE_I2},
    {0x0c, DTYPE_I4}, {0x0d, DTYPE_F4}, {0x0e, DTYPE_F8},
};
