#include "format/records/bytes_format.h"

#include <string.h>

#include "format/core/npy_head.h"

enum bytes_format bytes_format_of(const void *head, uint64_t len)
{
    static const enum bytes_format formats[N_PICTURE_FORMATS] = {
        [PICTURE_NONE] = BYTES_ANY,  [PICTURE_JPEG] = BYTES_JPG, [PICTURE_PNG] = BYTES_PNG,
        [PICTURE_GIF] = BYTES_GIF,   [PICTURE_BMP] = BYTES_BMP,  [PICTURE_WEBP] = BYTES_WEBP,
        [PICTURE_TIFF] = BYTES_TIFF,
    };

    if (len >= strlen(NPY_MAGIC) && !memcmp(head, NPY_MAGIC, strlen(NPY_MAGIC)))
        return BYTES_NPY;
    return formats[picture_format_of(head, len)];
}

const char *bytes_format_ext(enum bytes_format type)
{
    static const char *const exts[N_BYTES_FORMATS] = {
        [BYTES_ANY] = "bin", [BYTES_JPG] = "jpg",   [BYTES_PNG] = "png",   [BYTES_GIF] = "gif",
        [BYTES_BMP] = "bmp", [BYTES_WEBP] = "webp", [BYTES_TIFF] = "tiff", [BYTES_NPY] = "npy",
    };

    return exts[type];
}
