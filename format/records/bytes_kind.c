#include "format/records/bytes_kind.h"

#include <string.h>

#include "format/core/npy_head.h"

enum bytes_kind bytes_kind_of(const void *head, uint64_t len)
{
    static const enum bytes_kind kinds[N_PICTURE_KINDS] = {
        [PICTURE_NONE] = BYTES_ANY,  [PICTURE_JPEG] = BYTES_JPG, [PICTURE_PNG] = BYTES_PNG,
        [PICTURE_GIF] = BYTES_GIF,   [PICTURE_BMP] = BYTES_BMP,  [PICTURE_WEBP] = BYTES_WEBP,
        [PICTURE_TIFF] = BYTES_TIFF,
    };

    if (len >= strlen(NPY_MAGIC) && !memcmp(head, NPY_MAGIC, strlen(NPY_MAGIC)))
        return BYTES_NPY;
    return kinds[picture_kind_of(head, len)];
}

const char *bytes_kind_ext(enum bytes_kind type)
{
    static const char *const exts[N_BYTES_KINDS] = {
        [BYTES_ANY] = "bin", [BYTES_JPG] = "jpg",   [BYTES_PNG] = "png",   [BYTES_GIF] = "gif",
        [BYTES_BMP] = "bmp", [BYTES_WEBP] = "webp", [BYTES_TIFF] = "tiff", [BYTES_NPY] = "npy",
    };

    return exts[type];
}
