/* Masks: pictures whose pixels are numbers, one for each pixel of another picture, or its colours.
 * Nothing is mixed: each made pixel is the pixel of the mask that is under its middle. */
#ifndef EPOCHFS_FORMAT_PICTURE_MASK_H
#define EPOCHFS_FORMAT_PICTURE_MASK_H

#include "format/picture/augment.h"

#define MASK_HEAD 26  /* bytes that say how many channels a mask has */
#define MASK_NONE 255 /* in each channel of a pixel that lies outside of the mask */

/* By the first bytes of a file, len of MASK_HEAD: 1 for PNG with a palette or in gray, 3 for other
 * pictures; 0: it is no picture that this room knows. */
unsigned mask_channels(const uint8_t *head, size_t len);

/* Make the mask of a picture that was made by that plan, with the same part and flips: ret,
 * [plan->height][plan->width][channels]. One channel: the numbers of a palette, or gray. A mask of
 * another size has the shape of the picture, within a pixel. One of another shape, with 16 bits, or
 * with colours where one channel is expected, is -EBADMSG. Other errors as of picture_decode(). */
int mask_make(const struct picture_file *file, const struct picture_plan *plan,
              const struct augment_done *done, unsigned channels, uint8_t *ret, struct diag *d);

#endif
