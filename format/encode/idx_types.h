/* The type codes of IDX files (byte 2 of the header). http://yann.lecun.com/exdb/mnist */
#ifndef EPOCHFS_FORMAT_ENCODE_IDX_TYPES_H
#define EPOCHFS_FORMAT_ENCODE_IDX_TYPES_H

#include <stdint.h>

#include "format/core/dtype.h"

struct idx_type {
    uint8_t code;
    enum dtype dtype;
};

#define N_IDX_TYPES 6
extern const struct idx_type idx_types[N_IDX_TYPES];

#endif
