#include "format/picture/mask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/scope.h"
#include "format/picture/magic.h"
#include "format/picture/parts.h"

#define PNG_COLOUR_AT 25 /* of the byte of its header that says which colours it has */
#define PNG_HAS_RGB   2  /* a bit of it, which palettes have too: */
#define PNG_PALETTE   3

unsigned mask_channels(const uint8_t *head, size_t len)
{
    uint8_t colour;

    if (!picture_is(head, len))
        return 0;
    if (picture_format_of(head, len) != PICTURE_PNG || len <= PNG_COLOUR_AT)
        return 3;
    colour = head[PNG_COLOUR_AT];
    return colour == PNG_PALETTE || !(colour & PNG_HAS_RGB) ? 1 : 3;
}

/* All pixels of a mask. */
struct mask_pixels {
    const struct picture_file *file;
    const struct augment_done *done;
    uint32_t height, width;
    uint8_t *rgb; /* [height][width][3]; owned */
    struct diag *d;
};

/* Has the mask the shape of the picture, except for what rounding to whole pixels changes? */
static bool mask_fits(const struct mask_pixels *m)
{
    uint64_t a = (uint64_t)m->height * m->done->file_width;
    uint64_t b = (uint64_t)m->width * m->done->file_height;
    uint64_t side =
        max_u64(max_u64(m->height, m->width), max_u64(m->done->file_height, m->done->file_width));

    return (a > b ? a - b : b - a) <= (m->height == m->done->file_height ? 0 : side);
}

static int mask_choose(void *ctx, uint32_t height, uint32_t width, struct picture_cut *ret_cut,
                       struct pixel_rows *ret_rows)
{
    struct mask_pixels *m = ctx;
    uint64_t bytes = (uint64_t)height * width * 3;

    m->height = height;
    m->width = width;
    if (!mask_fits(m))
        return diag_set(m->d, -EBADMSG,
                        "%s: expected a mask with the shape of its picture, %u x %u, got %u x %u",
                        m->file->name, m->done->file_height, m->done->file_width, height, width);
    if (bytes > PICTURE_MEMORY_MAX)
        return diag_set(m->d, -EFBIG, "%s: expected a mask of at most %llu bytes, got %llu",
                        m->file->name, (unsigned long long)PICTURE_MEMORY_MAX,
                        (unsigned long long)bytes);
    *ret_cut = (struct picture_cut){.height = height,
                                    .width = width,
                                    .scaled_height = height,
                                    .scaled_width = width,
                                    .made_height = height,
                                    .made_width = width};
    m->rgb = malloc(bytes);
    *ret_rows = (struct pixel_rows){m->rgb, (ptrdiff_t)width * 3, false};
    return m->rgb ? 0 : -ENOMEM;
}

/* One row of what is made. column: [plan->width] of the mask; -1: outside. */
static void mask_make_row(const struct mask_pixels *m, int64_t row, const int64_t *column,
                          uint32_t width, unsigned channels, uint8_t *ret)
{
    for (uint32_t x = 0; x < width; x++, ret += channels) {
        if (row < 0 || column[x] < 0)
            memset(ret, MASK_NONE, channels);
        else
            memcpy(ret, m->rgb + ((uint64_t)row * m->width + (uint64_t)column[x]) * 3, channels);
    }
}

int mask_make(const struct picture_file *file, const struct picture_plan *plan,
              const struct augment_done *done, unsigned channels, uint8_t *ret, struct diag *d)
{
    struct mask_pixels m = {.file = file, .done = done, .d = d};
    AUTO_FREE int64_t *column = malloc(plan->width * sizeof(*column));
    const struct picture_chooser chooser = {mask_choose, &m};
    struct augment_done of_mask = *done;
    int r;

    if (!column)
        return -ENOMEM;
    if (channels == 1 && mask_channels(file->bytes, file->len) == 3)
        return diag_set(d, -EBADMSG,
                        "%s: expected a mask with one channel, as the first one has, got colors; "
                        "store all masks alike",
                        file->name);
    r = channels == 1 ? picture_decode_numbers(file, &chooser, d)
                      : picture_decode_part(file, &chooser, d);
    of_mask.file_height = m.height;
    of_mask.file_width = m.width;
    for (uint32_t x = 0; r == 0 && x < plan->width; x++)
        column[x] = augment_column(plan, &of_mask, x);
    for (uint32_t y = 0; r == 0 && y < plan->height; y++)
        mask_make_row(&m, augment_row(plan, &of_mask, y), column, plan->width, channels,
                      ret + (size_t)y * plan->width * channels);
    free(m.rgb);
    return r;
}
