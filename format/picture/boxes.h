/* Random boxes of pictures, in integers: which part RandomResizedCrop shows, and which part
 * RandomErasing fills. Each is the same on every machine. */
#ifndef EPOCHFS_FORMAT_PICTURE_BOXES_H
#define EPOCHFS_FORMAT_PICTURE_BOXES_H

#include "format/picture/numbers.h"

/* What a box may be: shares of the picture's area, and width by height, or height by width. From
 * augment_fixed() with as many bits behind the point as their names say. */
struct box_range {
    uint64_t least_16, most_16;           /* at most 1 */
    uint64_t ratio_low_28, ratio_high_28; /* low <= high, from 1/16 to below 16 */
};

struct picture_box {
    uint32_t top, left, height, width;
};

/* The box of a crop. height, width: of the picture, at least 1, at most 2^28 pixels. If ten tries
 * do not fit, it is the middle of the picture, as large as the ratios allow. */
struct picture_box box_of_crop(const struct augment_numbers *n, const struct box_range *range,
                               uint32_t height, uint32_t width);

/* The box that is erased, smaller than the picture along both sides; it may be empty. false: ten
 * tries do not fit. */
bool box_of_erase(const struct augment_numbers *n, const struct box_range *range, uint32_t height,
                  uint32_t width, struct picture_box *ret);

#endif
