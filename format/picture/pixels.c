#include "format/picture/pixels.h"

#include <string.h>

/* Each pixel except the last is written with a byte that the next one replaces. */
static void flip_row(const uint8_t *from, uint8_t *to, size_t width)
{
    memcpy(to, from + (width - 1) * 3, 3);
    for (size_t x = 1; x + 1 < width; x++)
        memcpy(to + x * 3, from + (width - 1 - x) * 3, 4);
    if (width > 1)
        memcpy(to + (width - 1) * 3, from, 3);
}

void pixels_flip(const struct pixels *p)
{
    size_t row = (size_t)p->width * 3;

    for (uint32_t y = 0; y < p->height; y++) {
        memcpy(p->scratch, p->rgb + y * row, row);
        flip_row(p->scratch, p->rgb + y * row, p->width);
    }
}

void pixels_flip_vertically(const struct pixels *p)
{
    size_t row = (size_t)p->width * 3;

    for (uint32_t y = 0; y < p->height / 2; y++) {
        uint8_t *upper = p->rgb + y * row, *lower = p->rgb + (p->height - 1 - y) * row;

        memcpy(p->scratch, upper, row);
        memcpy(upper, lower, row);
        memcpy(lower, p->scratch, row);
    }
}

void pixels_fill(const struct pixels *p, uint32_t top, uint32_t left, uint32_t height,
                 uint32_t width, const uint8_t colour[3])
{
    for (uint32_t y = top; y < top + height; y++)
        for (uint32_t x = left; x < left + width; x++)
            memcpy(p->rgb + ((size_t)y * p->width + x) * 3, colour, 3);
}
