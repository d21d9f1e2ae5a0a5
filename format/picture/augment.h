/* One augmented picture: the part that a recipe's numbers choose of a file or an array, scaled,
 * flipped, changed and erased. docs/spec/augment.md has the definitions; the bytes are the same on
 * every machine, for one version of the decoders. */
#ifndef EPOCHFS_FORMAT_PICTURE_AUGMENT_H
#define EPOCHFS_FORMAT_PICTURE_AUGMENT_H

#include "format/picture/picture.h"
#include "format/picture/recipe.h"

/* How the pictures of a plan are made. */
struct picture_plan {
    uint32_t height, width; /* of what is made, 1 to PICTURE_SIDE_MAX */
    uint32_t short_side;    /* of picture=HxWofS; 0: as small as it can be. Not with RECIPE_RRC */
    struct recipe recipe;   /* {0}: the middle of each picture, as it is */
    uint64_t seed;          /* of the plan's numbers */
    uint8_t erased[3];      /* the colour of what is erased */
};

/* What the numbers chose. The made array is height x width of the scaled part, from (start_y,
 * start_x) on, which may lie outside of it, and is then black. */
struct augment_done {
    uint32_t file_height, file_width; /* of the picture, as it is shown */
    uint32_t base_height, base_width; /* what `base` makes of it; without, the same */
    struct picture_box part;          /* of that */
    uint64_t scaled_height, scaled_width;
    int64_t start_y, start_x;
    bool flipped, vflipped, is_erased;
    struct picture_box erased; /* of the made array */
};

/* What `base` makes of a picture: its short side is scaled. No number of a plan changes it. */
struct picture_base {
    uint32_t file_height, file_width;
    uint32_t height, width;
    uint8_t *rgb; /* [height][width][3]; malloc'd. NULL: the picture was not scaled */
};

/* Make a picture: ret->rgb, [plan->height][plan->width][3], which ret->height and width say too;
 * ret belongs to the caller. ret_base: gets the caller's copy of what `base` has made; may be NULL.
 * 0, or with the reason in d as picture_decode(). Any number of threads, each with its own ret. */
int augment_file(const struct picture_file *file, const struct picture_plan *plan,
                 const struct augment_numbers *n, const struct pixels *ret,
                 struct augment_done *ret_done, struct picture_base *ret_base, struct diag *d);

/* The same, of what `base` has made of the file. 0, -EFBIG or -ENOMEM. */
int augment_base(const struct picture_base *base, const struct picture_plan *plan,
                 const struct augment_numbers *n, const struct pixels *ret,
                 struct augment_done *ret_done);

/* The same of an array of at most 2^28 pixels. 0, -EFBIG or -ENOMEM. */
int augment_array(const struct picture_array *array, const struct picture_plan *plan,
                  const struct augment_numbers *n, const struct pixels *ret,
                  struct augment_done *ret_done, struct diag *d);

/* Which part of the file's picture fills the made array: left, top, width, height. Pixel x of the
 * file is at (x - left) W / width. Flipped ones begin at the right, and their width is negative. */
void augment_box(const struct picture_plan *plan, const struct augment_done *done, float ret[4]);

/* The row or column of the file's picture that is under the middle of a row or column of the made
 * array; -1: none is. */
int64_t augment_row(const struct picture_plan *plan, const struct augment_done *done, uint32_t row);
int64_t augment_column(const struct picture_plan *plan, const struct augment_done *done,
                       uint32_t column);

#endif
