/* Arrays as .npy files, alone or in archives. */
#ifndef EPOCHFS_FORMAT_ENCODE_NPY_H
#define EPOCHFS_FORMAT_ENCODE_NPY_H

#include "format/core/layout.h"

/* Add an array as a .npy file, with the header that numpy.save writes. */
int npy_add(struct layout *l, const struct field *f);

/* The header alone, which the caller owns, and *ret_bytes of the file with it. See
 * layout_add_headed(). */
int npy_header(struct layout *l, const struct field *f, uint8_t **ret_header, size_t *ret_len,
               uint64_t *ret_bytes);

#endif
