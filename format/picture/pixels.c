#include "format/picture/pixels.h"

#include <string.h>

void pixels_fill(const struct pixels *p, uint32_t top, uint32_t left, uint32_t height,
                 uint32_t width, const uint8_t colour[3])
{
    for (uint32_t y = top; y < top + height; y++)
        for (uint32_t x = left; x < left + width; x++)
            memcpy(p->rgb + ((size_t)y * p->width + x) * 3, colour, 3);
}
