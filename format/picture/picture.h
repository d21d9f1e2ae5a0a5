/* A picture's file as an array of one size: uint8 [height][width][3], red, green, blue.
 *
 * The picture is turned as its EXIF orientation says, scaled until its short side, or whichever
 * side needs it, has the size that is wanted, and cut to that size around its centre. Sizes and
 * places are those of torchvision's Resize and CenterCrop; the filter is a triangle as wide as the
 * scale (PIL's BILINEAR). All arithmetic is of integers: the same bytes on every machine, for one
 * version of the decoders. */
#ifndef EPOCHFS_FORMAT_PICTURE_PICTURE_H
#define EPOCHFS_FORMAT_PICTURE_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/text.h"

#define PICTURE_SIDE_MAX  4096                /* of the wanted size */
#define PICTURE_HEAD      16                  /* bytes that say what a file is */
#define PICTURE_MAX_BYTES (UINT64_C(1) << 28) /* of a file */

struct picture_file {
    const char *name; /* in messages */
    const uint8_t *bytes;
    size_t len;
};

/* Is it a picture of a kind that this room knows, by its first bytes? Also where this build has no
 * decoder for it: names must not depend on the build. */
bool picture_is(const uint8_t *head, size_t len);

/* Decode a file to ret, [height][width][3]; height, width: 1 to PICTURE_SIDE_MAX. 0, or with the
 * reason in d: -EBADMSG not a picture, or damaged, or cut short; -EFBIG more pixels or memory than
 * a picture may have; -EOPNOTSUPP a kind that is not decoded; -ENOMEM. On error ret is undefined.
 * Any number of threads. */
int picture_decode(const struct picture_file *file, uint32_t height, uint32_t width, uint8_t *ret,
                   struct diag *d);

/* Add the names and versions of what decodes and scales, with commas. */
void picture_add_versions(struct text *t);

#endif
