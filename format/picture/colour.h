/* Operations that mix a picture with a duller or smoother one:
 * (65536 dull + factor (value - dull)) >> 16, clipped to 0 to 255. A factor of 0 is the dull one,
 * 65536 the picture as it is. Definitions: docs/spec/augment.md. */
#ifndef EPOCHFS_FORMAT_PICTURE_COLOUR_H
#define EPOCHFS_FORMAT_PICTURE_COLOUR_H

#include "format/picture/pixels.h"

#define COLOUR_FACTOR_MAX (1u << 22)

static inline uint8_t colour_blend(int32_t dull, int32_t value, uint32_t factor)
{
    int32_t v = dull + ((value - dull) * (int32_t)factor >> 16);

    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* With the pixel's gray, and with the mean of it and its neighbours, it itself counting five times;
 * pixels at the border are kept. factor: at most COLOUR_FACTOR_MAX. */
void pixels_colour(const struct pixels *p, uint32_t factor);
void pixels_sharpness(const struct pixels *p, uint32_t factor);

/* All three colours become the pixel's gray. */
void pixels_gray(const struct pixels *p);

/* The mean of all grays, half up. */
uint8_t pixels_mean_gray(const struct pixels *p);

/* One colour for height x width pixels from (top, left) on, all of which the picture has. */
void pixels_fill(const struct pixels *p, uint32_t top, uint32_t left, uint32_t height,
                 uint32_t width, const uint8_t colour[3]);

#endif
