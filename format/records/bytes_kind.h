/* What the bytes of a record are, by their first ones: pictures, arrays of .npy, or anything. */
#ifndef EPOCHFS_FORMAT_RECORDS_BYTES_KIND_H
#define EPOCHFS_FORMAT_RECORDS_BYTES_KIND_H

#include "format/picture/kind.h"

/* In indexes that are kept: numbers stay as they are. */
enum bytes_kind {
    BYTES_ANY,
    BYTES_JPG,
    BYTES_PNG,
    BYTES_GIF,
    BYTES_BMP,
    BYTES_WEBP,
    BYTES_TIFF,
    BYTES_NPY,
    N_BYTES_KINDS,
};

#define BYTES_KIND_HEAD PICTURE_KIND_HEAD

/* head: the first bytes of len; BYTES_KIND_HEAD of them are enough. */
enum bytes_kind bytes_kind_of(const void *head, uint64_t len);

/* The extension of files of that kind: "jpg"; of any bytes "bin". */
const char *bytes_kind_ext(enum bytes_kind type);

#endif
