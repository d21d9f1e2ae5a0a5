/* The form of a field's array for a selection: its axes, its bytes, its text; and what
 * fields offer. */
#include "format/core/dataset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"

void field_offer_bytes(struct field *f, const char *folder, const char *ext, unsigned in)
{
    f->in = in;
    f->form = FORM_BYTES;
    snprintf(f->folder, sizeof(f->folder), "%s", folder);
    snprintf(f->ext, sizeof(f->ext), "%s", ext);
}

/* IDX is big-endian, and shows stored bytes. */
static bool has_idx_type(enum dtype dtype)
{
    return dtype == DTYPE_U1 || dtype == DTYPE_I1 || dtype == DTYPE_I2 || dtype == DTYPE_I4 ||
           dtype == DTYPE_F4 || dtype == DTYPE_F8;
}

/* Offer an array that is stored, wherever its shape and type allow it. */
static void form_offer_stored(struct field *f)
{
    f->in = IN_ARRAYS | IN_RAW | IN_TAR;
    if (has_idx_type(f->dtype) && (f->stored_big_endian || f->width == 1))
        f->in |= IN_IDX;
    f->form = FORM_ITEM;
    if (f->dtype == DTYPE_U1 && f->ndim == 2 && f->item_bytes > 0 && !f->stored_as)
        f->in |= IN_PICTURES;
    if (field_is_scalar_integer(f) && !f->stored_as)
        f->in |= IN_CLS;
}

struct field *dataset_add_stored(struct dataset *ds, const char *name, const struct field *stored,
                                 const uint64_t *dim)
{
    struct field *f = &ds->field[ds->n_fields];

    *f = *stored;
    f->dim = calloc(f->ndim + 1u, sizeof(*f->dim));
    if (!f->dim)
        return NULL;
    ds->n_fields++;
    snprintf(f->name, sizeof(f->name), "%s", name);
    f->stored_dtype = f->dtype;
    f->width = f->stored_width = f->item_bytes = dtype_info(f->dtype)->bytes;
    for (unsigned i = 0; i < f->ndim; i++)
        f->item_bytes *= f->dim[i] = dim[i];
    f->stored_bytes = f->item_bytes;
    if (!f->ops)
        f->ops = f->stored_big_endian && f->width > 1 ? &field_converted : &field_as_stored;
    form_offer_stored(f);
    return f;
}

uint64_t field_stored_dim(const struct field *f, unsigned i)
{
    bool exchanged = f->ops == &field_transposed;

    if (f->ops == &field_planes)
        return f->dim[(i + 2) % 3];
    return f->dim[exchanged ? f->ndim - 1 - i : i];
}

/* A batch axis and the axes of an item. */
static void form_add_axes(const struct field *f, const struct selection *sel, bool stored,
                          struct form *ret)
{
    ret->ndim = 0;
    if (!sel->single)
        ret->dim[ret->ndim++] = sel->count;
    for (unsigned i = 0; i < f->ndim; i++)
        ret->dim[ret->ndim++] = stored ? field_stored_dim(f, i) : f->dim[i];
}

int field_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
               struct form *ret, uint64_t *ret_bytes)
{
    uint64_t bytes;
    bool fits = true;

    ret->dtype = f->dtype;
    ret->width = f->width;
    if (f->ops->form) {
        int r = f->ops->form(ds, f, sel, ret);

        if (r < 0)
            return r;
    } else {
        form_add_axes(f, sel, false, ret);
    }
    bytes = ret->width;
    for (unsigned i = 0; i < ret->ndim; i++) {
        if (!ret->dim[i]) {
            *ret_bytes = 0;
            return 0;
        }
        fits = fits && checked_mul(bytes, ret->dim[i], &bytes);
    }
    *ret_bytes = bytes;
    return fits ? 0 : -EFBIG;
}

void field_stored_form(const struct field *f, const struct selection *sel, struct form *ret)
{
    ret->dtype = f->stored_dtype;
    ret->width = f->stored_width;
    form_add_axes(f, sel, true, ret);
}

void form_shape_text(const struct form *form, struct text *t)
{
    text_add(t, "(");
    for (unsigned i = 0; i < form->ndim; i++)
        text_add(t, "%s%llu", i ? ", " : "", (unsigned long long)form->dim[i]);
    text_add(t, form->ndim == 1 ? ",)" : ")");
}
