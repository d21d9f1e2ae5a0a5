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
    const uint8_t(*value)[4] = n->value[c];
    size_t width = normalize_width(n), step = pixels->pixel_step;

    if (width == 4)
        for (size_t i = 0; i < count; i++)
            memcpy(dst + 4 * i, value[from[i * step]], 4);
    else
        for (size_t i = 0; i < count; i++)
            memcpy(dst + 2 * i, value[from[i * step]], 2);
    for (size_t i = 0; done && done->is_erased && i < count; i++)
        if (norm_is_erased(done, y, x + i))
            memset(dst + i * width, 0, width);
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

/* Items are read as their own field reads them, small ones several at once. */
static int stored_norm_read(struct read_context *rc, const struct dataset *ds,
                            const struct field *f, const struct selection *sel, uint64_t off,
                            size_t len, uint8_t *dst, struct diag *d)
{
    const struct stored_norm *norm = &((const struct augment_impl *)ds->plan_fields->impl)->norm;
    const struct field *base = f->base_field;
    uint64_t n = min_u64(ceil_div(off % f->item_bytes + len, f->item_bytes),
                         block_pictures(base->item_bytes));
    AUTO_FREE uint8_t *items = malloc(n * base->item_bytes);
    int all = 0;

    if (!items)
        return -ENOMEM;
    while (len) {
        uint64_t place = off / f->item_bytes;
        int r;

        n = min_u64(n, ceil_div(off % f->item_bytes + len, f->item_bytes));
        r = base->ops->read(rc, ds, base, sel, place * base->item_bytes, n * base->item_bytes,
                            items, d);
        if (!missing_go_on(rc, r, &all))
            break;
        for (uint64_t i = 0; i < n; i++) {
            struct picture_array pixels =
                augment_layout(norm->is_planar, norm->normalize->channels, (uint32_t)f->dim[1],
                               (uint32_t)f->dim[2], items + i * base->item_bytes);
            uint64_t within = off % f->item_bytes;
            size_t made = (size_t)min_u64(len, f->item_bytes - within);

            if (r == 0)
                norm_write(norm->normalize, &pixels, NULL, within, made, dst);
            dst += made;
            off += made;
            len -= made;
        }
    }
    return all;
}

const struct field_ops stored_norm_ops = {.read = stored_norm_read};
