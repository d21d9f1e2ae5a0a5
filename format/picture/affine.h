/* Operations that move pixels: shears, translations, rotations. Definitions: docs/spec/augment.md.
 */
#ifndef EPOCHFS_FORMAT_PICTURE_AFFINE_H
#define EPOCHFS_FORMAT_PICTURE_AFFINE_H

#include "format/picture/pixels.h"

#define AFFINE_ONE (INT64_C(1) << 32)

/* The made pixel whose middle is (x, y) comes from (xx x + xy y + x0, yx x + yy y + y0), where
 * pixel 0 has its middle at 1/2. AFFINE_ONE is 1, but of x0 and y0, which are doubled, 1/2. Between
 * the middles of given pixels lies their bilinear mean; outside of the picture it is black. xx to
 * yy: at most AFFINE_ONE, as absolute values; x0 and y0 at most 2^61. */
struct affine {
    int64_t xx, xy, x0, yx, yy, y0;
};

void pixels_affine(const struct pixels *p, const struct affine *a);

/* Source x = x + m y, or source y = y + m x, about the upper left corner; 1 is AFFINE_ONE. */
void pixels_shear_x(const struct pixels *p, int64_t m);
void pixels_shear_y(const struct pixels *p, int64_t m);

/* That many pixels to the right, or down. */
void pixels_translate_x(const struct pixels *p, int64_t n);
void pixels_translate_y(const struct pixels *p, int64_t n);

/* Counter-clockwise about the middle, by sixths of a degree, at most 1080 either way. */
void pixels_rotate(const struct pixels *p, int sixths);

#endif
