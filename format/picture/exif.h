/* How a picture is to be turned, from the EXIF data in its file. What cannot be understood counts
 * as no EXIF data: the picture is shown as it is stored. */
#ifndef EPOCHFS_FORMAT_PICTURE_EXIF_H
#define EPOCHFS_FORMAT_PICTURE_EXIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* EXIF's numbers 1 to 8: which of these makes the stored picture the one that is shown? First the
 * axes are exchanged, then each stored axis runs backwards or not. */
#define ORIENTATION_AS_STORED 1

static inline bool orientation_swaps(unsigned orientation)
{
    return orientation >= 5;
}

static inline bool orientation_flips_x(unsigned orientation)
{
    return orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
}

static inline bool orientation_flips_y(unsigned orientation)
{
    return orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
}

/* 1 to 8, from the EXIF data of a file of that kind: the first APP1 segment of JPEG that has some,
 * the chunk eXIf of PNG, the chunk EXIF of WebP. */
unsigned exif_of_jpeg(const uint8_t *bytes, size_t len);
unsigned exif_of_png(const uint8_t *bytes, size_t len);
unsigned exif_of_webp(const uint8_t *bytes, size_t len);

#endif
