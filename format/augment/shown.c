/* The arrays of a batch of made pictures: each item is a part of a made picture, or follows from
 * it. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/read_context.h"
#include "format/augment/made.h"

/* Write bytes [off, off + len) of the item of a picture that is not bad. */
typedef void shown_fn(const struct augment_impl *impl, const struct picture_plan *plan,
                      const struct made_picture *made, uint64_t off, size_t len, uint8_t *dst);

/* The items of places, each of `bytes` bytes. Items of bad pictures are zeros, or an error; those
 * of bad masks are an error, because zeros would be numbers. */
static int shown_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                      const struct selection *sel, uint64_t bytes, shown_fn *show, uint64_t off,
                      size_t len, uint8_t *dst, struct diag *d)
{
    const struct augment_impl *impl = f->impl;
    struct made_walk walk;
    int all = 0;

    made_walk_init(&walk, rc, ds, impl, sel, f->ops == &made_mask_ops);
    while (len) {
        uint64_t place = off / bytes, within = off % bytes;
        size_t n = (size_t)min_u64(len, bytes - within);
        AUTO_MEMO struct memo_thing *thing = NULL;
        int r = made_walk_at(&walk, place, ceil_div(within + len, bytes), &thing, d);
        const struct made_picture *made = r == 0 ? memo_bytes(thing) : NULL;

        if (made && !made->is_bad)
            show(impl, sel->pictures, made, within, n, dst);
        else if (made && impl->files && impl->files->zeros_bad && !made->is_mask)
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
    return all;
}

static void shown_form(const struct selection *sel, enum dtype dtype, uint64_t width, unsigned ndim,
                       const uint64_t *dim, struct form *ret)
{
    ret->dtype = dtype;
    ret->width = width;
    ret->ndim = ndim + 1;
    ret->dim[0] = sel->count;
    for (unsigned i = 0; i < ndim; i++)
        ret->dim[1 + i] = dim[i];
}

/* ---- image ---- */

static void show_image(const struct augment_impl *impl, const struct picture_plan *plan,
                       const struct made_picture *made, uint64_t off, size_t len, uint8_t *dst)
{
    (void)impl;
    (void)plan;
    memcpy(dst, made->bytes + off, len);
}

static int made_image_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                           const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                           struct diag *d)
{
    const struct augment_impl *impl = f->impl;
    uint64_t bytes = (uint64_t)sel->pictures->height * sel->pictures->width * impl->channels;

    return shown_read(rc, ds, f, sel, bytes, show_image, off, len, dst, d);
}

static int made_image_form(const struct dataset *ds, const struct field *f,
                           const struct selection *sel, struct form *ret)
{
    struct made_shape shape = augment_shape(f->impl, sel->pictures);

    (void)ds;
    shown_form(sel, DTYPE_U1, 1, shape.ndim, shape.dim, ret);
    return 0;
}

/* ---- mask ---- */

static int made_mask_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                          const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                          struct diag *d)
{
    const struct augment_impl *impl = f->impl;
    uint64_t bytes = (uint64_t)sel->pictures->height * sel->pictures->width * impl->mask_channels;

    return shown_read(rc, ds, f, sel, bytes, show_image, off, len, dst, d);
}

static int made_mask_form(const struct dataset *ds, const struct field *f,
                          const struct selection *sel, struct form *ret)
{
    unsigned channels = ((const struct augment_impl *)f->impl)->mask_channels;
    const uint64_t dim[] = {sel->pictures->height, sel->pictures->width, channels};

    (void)ds;
    shown_form(sel, DTYPE_U1, 1, channels == 1 ? 2 : 3, dim, ret);
    return 0;
}

/* ---- image_box ---- */

#define BOX_NUMBERS 4

static void show_box(const struct augment_impl *impl, const struct picture_plan *plan,
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

static int made_box_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                         const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                         struct diag *d)
{
    return shown_read(rc, ds, f, sel, 4 * BOX_NUMBERS, show_box, off, len, dst, d);
}

static int made_box_form(const struct dataset *ds, const struct field *f,
                         const struct selection *sel, struct form *ret)
{
    (void)ds;
    (void)f;
    shown_form(sel, DTYPE_F4, 4, 1, (const uint64_t[]){BOX_NUMBERS}, ret);
    return 0;
}

/* ---- image_ok ---- */

static void show_ok(const struct augment_impl *impl, const struct picture_plan *plan,
                    const struct made_picture *made, uint64_t off, size_t len, uint8_t *dst)
{
    (void)impl;
    (void)plan;
    (void)made;
    (void)off;
    memset(dst, 1, len);
}

static int made_ok_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                        const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                        struct diag *d)
{
    return shown_read(rc, ds, f, sel, 1, show_ok, off, len, dst, d);
}

static int made_ok_form(const struct dataset *ds, const struct field *f,
                        const struct selection *sel, struct form *ret)
{
    (void)ds;
    (void)f;
    shown_form(sel, DTYPE_BOOL, 1, 0, NULL, ret);
    return 0;
}

/* ---- image_norm ---- */

static void show_norm(const struct augment_impl *impl, const struct picture_plan *plan,
                      const struct made_picture *made, uint64_t off, size_t len, uint8_t *dst)
{
    struct picture_array pixels = augment_layout(impl, plan->height, plan->width, made->bytes);

    norm_write(impl->normalize, &pixels, &made->done, off, len, dst);
}

static int made_norm_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                          const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                          struct diag *d)
{
    const struct normalize *n = ((const struct augment_impl *)f->impl)->normalize;
    uint64_t bytes =
        (uint64_t)sel->pictures->height * sel->pictures->width * n->channels * normalize_width(n);

    return shown_read(rc, ds, f, sel, bytes, show_norm, off, len, dst, d);
}

static int made_norm_form(const struct dataset *ds, const struct field *f,
                          const struct selection *sel, struct form *ret)
{
    const struct normalize *n = ((const struct augment_impl *)f->impl)->normalize;
    const uint64_t dim[] = {n->channels, sel->pictures->height, sel->pictures->width};

    (void)ds;
    shown_form(sel, n->is_half ? DTYPE_F2 : DTYPE_F4, normalize_width(n), 3, dim, ret);
    return 0;
}

const struct field_ops made_image_ops = {made_image_read, made_image_form};
const struct field_ops made_box_ops = {made_box_read, made_box_form};
const struct field_ops made_ok_ops = {made_ok_read, made_ok_form};
const struct field_ops made_mask_ops = {made_mask_read, made_mask_form};
const struct field_ops made_norm_ops = {made_norm_read, made_norm_form};
