/* A picture in memory that operations change: uint8 [height][width][3], red, green, blue, rows
 * without padding, and another buffer of as many bytes for operations that need the pixels from
 * before. Both belong to the caller; no operation allocates or fails. Operations on one picture run
 * one after another; different pictures in any number of threads.
 *
 * Bounds: height and width at least 1, height * width at most 2^28. */
#ifndef EPOCHFS_FORMAT_PICTURE_PIXELS_H
#define EPOCHFS_FORMAT_PICTURE_PIXELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pixels {
    uint8_t *rgb, *scratch; /* the result is always in rgb; scratch is undefined after each call */
    uint32_t height, width;
    bool plain; /* no vector instructions. The bytes are equal; tests compare them */
};

static inline size_t pixels_count(const struct pixels *p)
{
    return (size_t)p->height * p->width;
}

/* The three 8-bit colours of a pixel as one: (0.299 R + 0.587 G + 0.114 B) in 16 bits, half up. */
static inline uint8_t pixel_gray(const uint8_t *rgb)
{
    return (uint8_t)((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 32768u) >> 16);
}

#endif
