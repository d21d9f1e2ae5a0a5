/* Normalized pictures, as torchvision's ToTensor and Normalize make them: (x / 255 - mean) / std of
 * each color, every step rounded to float32. */
#ifndef EPOCHFS_FORMAT_PICTURE_NORMALIZE_H
#define EPOCHFS_FORMAT_PICTURE_NORMALIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/text.h"

#define NORMALIZE_CHANNELS 3

struct normalize {
    unsigned channels; /* 3, or 1; 0: nothing is normalized */
    bool is_half;      /* float16, half to even, instead of float32 */
    float mean[NORMALIZE_CHANNELS], std[NORMALIZE_CHANNELS];
    uint8_t erased[NORMALIZE_CHANNELS]; /* 255 mean, half up: what is erased; with one channel all
                                         * are alike */
    uint8_t value[NORMALIZE_CHANNELS][256][4]; /* the elements, little-endian */
};

/* What is erased without an option: the mean of ImageNet. */
extern const uint8_t normalize_erased[NORMALIZE_CHANNELS];

/* Parse imagenet, half, clip, mean/std or m/m/m/s/s/s, with :f2 for float16. 0, or -EINVAL with the
 * reason in d and *ret undefined. */
int normalize_parse(const char *text, struct normalize *ret, struct diag *d);

/* Bytes of an element. */
static inline size_t normalize_width(const struct normalize *n)
{
    return n->is_half ? 2 : 4;
}

/* Add "mean" and "std" as members of a JSON object. */
void normalize_print(const struct normalize *n, struct text *t);

#endif
