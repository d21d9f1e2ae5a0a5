/* Operations that give each value of a colour another one, whatever its neighbours are.
 * Definitions: docs/spec/augment.md. */
#ifndef EPOCHFS_FORMAT_PICTURE_TABLES_H
#define EPOCHFS_FORMAT_PICTURE_TABLES_H

#include "format/picture/pixels.h"

/* The upper bits of each value, 0 to 8. */
void pixels_posterize(const struct pixels *p, unsigned bits);

/* Values of which value * scale is threshold or more are inverted. */
void pixels_solarize(const struct pixels *p, uint32_t scale, uint32_t threshold);
void pixels_invert(const struct pixels *p);

/* Each colour by itself: its values from 0 to 255; its values equally frequent. */
void pixels_auto_contrast(const struct pixels *p);
void pixels_equalize(const struct pixels *p);

/* (65536 dull + factor (value - dull)) >> 16, clipped, where dull is 0, or the mean gray of the
 * picture. factor: at most COLOUR_FACTOR_MAX. */
void pixels_brightness(const struct pixels *p, uint32_t factor);
void pixels_contrast(const struct pixels *p, uint32_t factor);

#endif
