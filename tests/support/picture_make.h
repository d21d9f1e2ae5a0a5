/* Files of pictures, made by the libraries that epochfs decodes them with. */
#ifndef EPOCHFS_TESTS_SUPPORT_PICTURE_MAKE_H
#define EPOCHFS_TESTS_SUPPORT_PICTURE_MAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct made_picture {
    uint8_t *bytes; /* the caller frees it */
    size_t len;
};

/* A JPEG of [height][width][channels]: 1 grey, 3 colours, 4 CMYK as files have it, inverted. All
 * pixels have full colour, or one for so many along each axis; quality 100. exif: bytes of the
 * segment APP1, or none. */
struct made_jpeg {
    uint32_t width, height;
    unsigned channels;
    bool is_progressive;
    const uint8_t *exif;
    size_t exif_len;
    int along_x, along_y; /* pixels of one colour; 0: 1 */
};
struct made_picture make_jpeg(const struct made_jpeg *how, const uint8_t *pixels);

/* A PNG of rows as that type and depth stores them. */
struct made_png {
    uint32_t width, height;
    int colour_type, depth; /* PNG_COLOR_TYPE_... */
    bool is_interlaced;
    const uint8_t *exif;
    size_t exif_len;
};
struct made_picture make_png(const struct made_png *how, const uint8_t *rows);

/* EXIF data, without JPEG's head, whose directory has that orientation. */
#define MADE_EXIF_BYTES 26
void make_exif(bool big_endian, unsigned orientation, uint8_t ret[static MADE_EXIF_BYTES]);

#endif
