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
#include "format/picture/scale.h"

#define PICTURE_SIDE_MAX        4096 /* of the wanted size */
#define PICTURE_SOURCE_SIDE_MAX (1u << 20)
#define PICTURE_HEAD            16                  /* bytes that say what a file is */
#define PICTURE_MAX_BYTES       (UINT64_C(1) << 28) /* of a file */

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

/* A part of a picture as it is shown, and what becomes of it: height x width pixels at (top, left)
 * are scaled to scaled_height x scaled_width; made_height x made_width of those, from (start_y,
 * start_x) on, are made. All sizes are at least 1. Pixels outside of the part count for nothing. */
struct picture_cut {
    uint32_t top, left, height, width;
    uint64_t scaled_height, scaled_width, start_y, start_x;
    uint32_t made_height, made_width;
};

/* The cut that makes the middle of a whole picture of that size. short_side: what its shorter side
 * is scaled to, at least made_height and made_width. 0: it is scaled until it just covers both. */
void picture_centre_cut(uint32_t height, uint32_t width, uint32_t made_height, uint32_t made_width,
                        uint32_t short_side, struct picture_cut *ret);

/* Says what is wanted of a picture once its size, as it is shown, is known: *ret_cut, and where the
 * made_height rows of made_width pixels go. 0, or -errno, which picture_decode_part() returns. */
struct picture_chooser {
    int (*choose)(void *ctx, uint32_t height, uint32_t width, struct picture_cut *ret_cut,
                  struct pixel_rows *ret_rows);
    void *ctx;
};
int picture_decode_part(const struct picture_file *file, const struct picture_chooser *chooser,
                        struct diag *d);

/* The same of a picture of numbers: those of a palette, not its colours, in each of the three
 * channels. Numbers of 16 bits are -EBADMSG. */
int picture_decode_numbers(const struct picture_file *file, const struct picture_chooser *chooser,
                           struct diag *d);

/* Pixels in memory, as files of arrays have them: a colour of a pixel is the byte at row * row_step
 * + column * pixel_step + colour * colour_step. Gray ones have a colour_step of 0. */
struct picture_array {
    const uint8_t *bytes;
    uint32_t height, width; /* 1 to PICTURE_SOURCE_SIDE_MAX */
    size_t row_step, pixel_step, colour_step;
};

/* The same of an array. 0 or -ENOMEM. */
int picture_cut_array(const struct picture_array *array, const struct picture_cut *cut,
                      const struct pixel_rows *ret);

/* Add the names and versions of what decodes and scales, with commas. */
void picture_add_versions(struct text *t);

#endif
