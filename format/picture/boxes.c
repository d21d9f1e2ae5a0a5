/* Boxes by ten tries. The ratio of a try is uniform in its logarithm: 24 bits of a number say in
 * which half of the range it is, in which quarter, and so on, where the middle of a range is its
 * geometric mean. So no function is needed that differs between machines. */
#include "format/picture/boxes.h"

#include "base/checked.h"

#define TRIES       10
#define FIRST_TRY   8 /* the numbers of a try are FIRST_TRY + TRY_NUMBERS i and those behind it */
#define TRY_NUMBERS 8
#define HALVINGS    24

/* The numbers of a try, from its first one on. */
enum { TRY_SHARE, TRY_RATIO, TRY_TOP, TRY_LEFT };

/* A ratio with 16 bits behind the point. */
static uint64_t boxes_ratio(const struct box_range *range, uint64_t u)
{
    uint64_t low = range->ratio_low_28, high = range->ratio_high_28;

    for (unsigned k = 0; k < HALVINGS; k++) {
        uint64_t middle = augment_square_root(low * high);

        if (u >> (63 - k) & 1)
            low = middle;
        else
            high = middle;
    }
    return low >> 12;
}

/* The sides of a try, to the nearest: the root of area times ratio, and of area by ratio. All
 * products are below 2^64, because an area is at most 2^28, a share 2^16 and a ratio 2^20. */
static void boxes_try(const struct augment_numbers *n, enum augment_word word,
                      const struct box_range *range, uint64_t area, unsigned j, uint64_t *ret_along,
                      uint64_t *ret_across)
{
    uint64_t share = range->least_16 +
                     augment_below(n, range->most_16 - range->least_16 + 1, word, j + TRY_SHARE);
    uint64_t ratio = boxes_ratio(range, augment_u64(n, word, j + TRY_RATIO));

    *ret_along = (augment_square_root(area * share * ratio >> 30) + 1) >> 1;
    *ret_across = (augment_square_root(4 * area * share / ratio) + 1) >> 1;
}

static struct picture_box boxes_place(const struct augment_numbers *n, enum augment_word word,
                                      unsigned j, uint64_t height, uint64_t width, uint32_t h,
                                      uint32_t w)
{
    return (struct picture_box){
        .top = (uint32_t)augment_below(n, height - h + 1, word, j + TRY_TOP),
        .left = (uint32_t)augment_below(n, width - w + 1, word, j + TRY_LEFT),
        .height = h,
        .width = w};
}

static struct picture_box boxes_middle(const struct box_range *range, uint64_t height,
                                       uint64_t width)
{
    uint64_t h = height, w = width;

    if (width << 28 < height * range->ratio_low_28)
        h = ((width << 29) / range->ratio_low_28 + 1) >> 1;
    else if (width << 28 > height * range->ratio_high_28)
        w = ((2 * height * range->ratio_high_28 >> 28) + 1) >> 1;
    h = max_u64(h, 1);
    w = max_u64(w, 1);
    return (struct picture_box){.top = (uint32_t)((height - h) / 2),
                                .left = (uint32_t)((width - w) / 2),
                                .height = (uint32_t)h,
                                .width = (uint32_t)w};
}

struct picture_box box_of_crop(const struct augment_numbers *n, const struct box_range *range,
                               uint32_t height, uint32_t width)
{
    for (unsigned i = 0; i < TRIES; i++) {
        unsigned j = FIRST_TRY + TRY_NUMBERS * i;
        uint64_t h, w;

        boxes_try(n, AUGMENT_CROP, range, (uint64_t)height * width, j, &w, &h);
        if (w && h && w <= width && h <= height)
            return boxes_place(n, AUGMENT_CROP, j, height, width, (uint32_t)h, (uint32_t)w);
    }
    return boxes_middle(range, height, width);
}

bool box_of_erase(const struct augment_numbers *n, const struct box_range *range, uint32_t height,
                  uint32_t width, struct picture_box *ret)
{
    for (unsigned i = 0; i < TRIES; i++) {
        unsigned j = FIRST_TRY + TRY_NUMBERS * i;
        uint64_t h, w;

        boxes_try(n, AUGMENT_ERASE, range, (uint64_t)height * width, j, &h, &w);
        if (h >= height || w >= width)
            continue;
        *ret = boxes_place(n, AUGMENT_ERASE, j, height, width, (uint32_t)h, (uint32_t)w);
        return true;
    }
    return false;
}
