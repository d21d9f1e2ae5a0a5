/* Normalized pixels: each value of a color is an element of a table. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/read_context.h"
#include "base/scope.h"
#include "format/augment/made.h"

static bool norm_is_erased(const struct augment_done *done, uint64_t y, uint64_t x)
{
    return done && done->is_erased && y - done->erased.top < done->erased.height &&
           x - done->erased.left < done->erased.width;
}

/* Write elements first to first + count - 1 of a row of a color, from column x on. */
static void norm_row(const struct normalize *n, const struct picture_array *pixels,
                     const struct augment_done *done, unsigned c, uint64_t y, uint64_t x,
                     size_t count, uint8_t *dst)
{
    const uint8_t *from =
        pixels->bytes + y * pixels->row_step + x * pixels->pixel_step + c * pixels->colour_step;
    size_t width = normalize_width(n);

    for (size_t i = 0; i < count; i++, from += pixels->pixel_step, dst += width) {
        if (width == 4)
            memcpy(dst, n->value[c][*from], 4);
        else
            memcpy(dst, n->value[c][*from], 2);
    }
    for (size_t i = 0; done && done->is_erased && i < count; i++)
        if (norm_is_erased(done, y, x + i))
            memset(dst - (count - i) * width, 0, width);
}

void norm_write(const struct normalize *n, const struct picture_array *pixels,
                const struct augment_done *done, uint64_t off, size_t len, uint8_t *dst)
{
    uint64_t width = normalize_width(n), pixel_count = (uint64_t)pixels->height * pixels->width;

    while (len) {
        uint64_t element = off / width, at = element % pixel_count;
        uint64_t y = at / pixels->width, x = at % pixels->width, skip = off % width;
        unsigned c = (unsigned)(element / pixel_count);
        size_t count = (size_t)min_u64(pixels->width - x, len / width), bytes = count * width;

        if (skip || !count) { /* a part of an element */
            uint8_t one[4];

            norm_row(n, pixels, done, c, y, x, 1, one);
            bytes = (size_t)min_u64(width - skip, len);
            memcpy(dst, one + skip, bytes);
        } else {
            norm_row(n, pixels, done, c, y, x, count, dst);
        }
        dst += bytes;
        off += bytes;
        len -= bytes;
    }
}

/* ---- of the items of another field ---- */

/* Items are read one at a time, as their own field reads them. */
static int stored_norm_read(struct read_context *rc, const struct dataset *ds,
                            const struct field *f, const struct selection *sel, uint64_t off,
                            size_t len, uint8_t *dst, struct diag *d)
{
    const struct stored_norm *norm = &((const struct augment_impl *)ds->plan_fields->impl)->norm;
    const struct field *base = f->base_field;
    AUTO_FREE uint8_t *item = malloc(base->item_bytes);
    int all = 0;

    if (!item)
        return -ENOMEM;
    while (len) {
        uint64_t place = off / f->item_bytes, within = off % f->item_bytes;
        size_t n = (size_t)min_u64(len, f->item_bytes - within);
        int r = base->ops->read(rc, ds, base, sel, place * base->item_bytes,
                                (size_t)base->item_bytes, item, d);
        struct picture_array pixels =
            augment_layout(norm->is_planar, norm->normalize->channels, (uint32_t)f->dim[1],
                           (uint32_t)f->dim[2], item);

        if (r == 0)
            norm_write(norm->normalize, &pixels, NULL, within, n, dst);
        if (!missing_go_on(rc, r, &all))
            break;
        dst += n;
        off += n;
        len -= n;
    }
    return all;
}

const struct field_ops stored_norm_ops = {.read = stored_norm_read};
