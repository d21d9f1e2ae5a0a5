/* What the bytes of a record are, by their first ones: pictures, arrays of .npy, or anything. */
#ifndef EPOCHFS_FORMAT_RECORDS_BYTES_FORMAT_H
#define EPOCHFS_FORMAT_RECORDS_BYTES_FORMAT_H

#include "format/picture/magic.h"

/* In indexes that are kept: numbers stay as they are. */
enum bytes_format {
    BYTES_ANY,
    BYTES_JPG,
    BYTES_PNG,
    BYTES_GIF,
    BYTES_BMP,
    BYTES_WEBP,
    BYTES_TIFF,
    BYTES_NPY,
    N_BYTES_FORMATS,
};

#define BYTES_MAGIC_SIZE PICTURE_MAGIC_SIZE

/* head: the first bytes of len; BYTES_MAGIC_SIZE of them are enough. */
enum bytes_format bytes_format_of(const void *head, uint64_t len);

/* The extension of files of that kind: "jpg"; of any bytes "bin". */
const char *bytes_format_ext(enum bytes_format type);

#endif
