/* The arrays of a batch of made pictures: each item is a part of a made picture, or follows from
 * it. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/read_context.h"
#include "format/augment/made.h"

static int shown_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
                      struct form *ret)
{
    (void)ds;
    ((const struct shown *)f->ops)->form(f->impl, sel->pictures, ret);
    ret->dim[0] = sel->count;
    return 0;
}

/* Items of bad pictures are zeros, or an error; those of bad masks are an error, because zeros
 * would be numbers. */
static int shown_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                      const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                      struct diag *d)
{
    const struct shown *shown = (const struct shown *)f->ops;
    const struct augment_impl *impl = f->impl;
    struct made_walk walk;
    struct form form;
    uint64_t bytes;
    int all = 0;

    shown->form(impl, sel->pictures, &form);
    bytes = form.width;
    for (unsigned i = 1; i < form.ndim; i++)
        bytes *= form.dim[i];
    made_walk_init(&walk, rc, ds, impl, sel, shown == &made_mask);
    while (len) {
        uint64_t place = off / bytes, within = off % bytes;
        size_t n = (size_t)min_u64(len, bytes - within);
        const struct made_picture *made = NULL;
        int r = made_walk_at(&walk, place, ceil_div(within + len, bytes), &made, d);

        if (made && !made->is_bad)
            shown->write(impl, sel->pictures, made, within, n, dst);
        else if (made && impl->files->zeros_bad && !made->is_mask)
            memset(dst, 0, n);
        else if (made)
            r = diag_set(d, -EBADMSG, "%s%s", (const char *)made->bytes,
                         made->is_mask ? "" : ". epochfs info --check lists all such pictures");
        if (!missing_go_on(rc, r, &all))
            break;
        dst += n;
        off += n;
        len -= n;
    }
    made_walk_release(&walk);
    return all;
}

/* ---- image, mask ---- */

static void image_form(const struct augment_impl *impl, const struct picture_plan *plan,
                       struct form *ret)
{
    unsigned ndim = impl->array ? impl->array->ndim : 3;

    *ret = (struct form){DTYPE_U1, 1, 1 + ndim, {0, plan->height, plan->width, impl->channels}};
    if (impl->is_planar)
        *ret = (struct form){DTYPE_U1, 1, 4, {0, impl->channels, plan->height, plan->width}};
}

static void mask_form(const struct augment_impl *impl, const struct picture_plan *plan,
                      struct form *ret)
{
    unsigned channels = impl->mask_channels;

    *ret =
        (struct form){DTYPE_U1, 1, channels == 1 ? 3 : 4, {0, plan->height, plan->width, channels}};
}

static void image_write(const struct augment_impl *impl, const struct picture_plan *plan,
                        const struct made_picture *made, uint64_t off, size_t len, uint8_t *dst)
{
    (void)impl;
    (void)plan;
    memcpy(dst, made->bytes + off, len);
}

/* ---- image_box ---- */

#define BOX_NUMBERS 4

static void box_form(const struct augment_impl *impl, const struct picture_plan *plan,
                     struct form *ret)
{
    (void)impl;
    (void)plan;
    *ret = (struct form){DTYPE_F4, 4, 2, {0, BOX_NUMBERS}};
}

static void box_write(const struct augment_impl *impl, const struct picture_plan *plan,
                      const struct made_picture *made, uint64_t off, size_t len, uint8_t *dst)
{
    uint8_t bytes[4 * BOX_NUMBERS];
    float box[BOX_NUMBERS];

    (void)impl;
    augment_box(plan, &made->done, box);
    for (size_t i = 0; i < BOX_NUMBERS; i++) {
        uint32_t bits;

        memcpy(&bits, &box[i], sizeof(bits));
        store_le32(bytes + 4 * i, bits);
    }
    memcpy(dst, bytes + off, len);
}

/* ---- image_ok ---- */

static void ok_form(const struct augment_impl *impl, const struct picture_plan *plan,
                    struct form *ret)
{
    (void)impl;
    (void)plan;
    *ret = (struct form){DTYPE_BOOL, 1, 1, {0}};
}

static void ok_write(const struct augment_impl *impl, const struct picture_plan *plan,
                     const struct made_picture *made, uint64_t off, size_t len, uint8_t *dst)
{
    (void)impl;
    (void)plan;
    (void)made;
    (void)off;
    memset(dst, 1, len);
}

/* ---- image_norm ---- */

static void norm_form(const struct augment_impl *impl, const struct picture_plan *plan,
                      struct form *ret)
{
    const struct normalize *n = impl->normalize;

    *ret = (struct form){n->is_half ? DTYPE_F2 : DTYPE_F4,
                         normalize_width(n),
                         4,
                         {0, n->channels, plan->height, plan->width}};
}

static void norm_write_made(const struct augment_impl *impl, const struct picture_plan *plan,
                            const struct made_picture *made, uint64_t off, size_t len, uint8_t *dst)
{
    struct picture_array pixels =
        augment_layout(impl->is_planar, impl->channels, plan->height, plan->width, made->bytes);

    norm_write(impl->normalize, &pixels, &made->done, off, len, dst);
}

const struct shown made_image = {{shown_read, shown_form}, image_form, image_write};
const struct shown made_mask = {{shown_read, shown_form}, mask_form, image_write};
const struct shown made_box = {{shown_read, shown_form}, box_form, box_write};
const struct shown made_ok = {{shown_read, shown_form}, ok_form, ok_write};
const struct shown made_norm = {{shown_read, shown_form}, norm_form, norm_write_made};
