/* Arrays as .npy files, alone or in archives. */
#ifndef EPOCHFS_FORMAT_ENCODE_NPY_H
#define EPOCHFS_FORMAT_ENCODE_NPY_H

#include "format/core/layout.h"

/* Add an array as a .npy file, with the header that numpy.save writes. */
int npy_add(struct layout *l, const struct field *f);

/* The same in two steps. The caller owns *ret_header, or passes it to npy_add_with(), which takes
 * ownership, also on error. *ret_bytes: of the file. */
int npy_header(struct layout *l, const struct field *f, uint8_t **ret_header, size_t *ret_len,
               uint64_t *ret_bytes);
int npy_add_with(struct layout *l, const struct field *f, uint8_t *header, size_t len);

#endif
