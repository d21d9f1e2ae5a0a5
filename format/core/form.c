/* The form of a field's array for a selection: its axes, its bytes, its text; and the files that
 * show a field of some role. */
#include "format/core/dataset.h"

#include <errno.h>

#include "base/checked.h"

static const unsigned places[N_FIELD_ROLES] = {
    [FIELD_STORED] =
        IN_NPY_SAMPLES | IN_NPY_BATCHES | IN_NPZ_SAMPLES | IN_NPZ_BATCHES | IN_TAR | IN_PAGES,
    [FIELD_PARSED] = IN_NPY_SAMPLES | IN_NPY_BATCHES | IN_NPZ_SAMPLES | IN_NPZ_BATCHES | IN_PAGES,
    [FIELD_DERIVED] = IN_NPY_SAMPLES | IN_NPY_BATCHES | IN_PAGES,
    [FIELD_MEMBER] = IN_NPZ_SAMPLES | IN_NPZ_BATCHES,
    [FIELD_NUMBER] = IN_NPY_BATCHES | IN_NPZ_BATCHES | IN_PAGES,
    [FIELD_KEY] = IN_NPZ_BATCHES | IN_PAGES,
    [FIELD_VALUE] =
        IN_NPY_SAMPLES | IN_NPY_BATCHES | IN_NPZ_SAMPLES | IN_NPZ_BATCHES | IN_TAR | IN_PAGES,
    [FIELD_RAGGED] = IN_NPY_SAMPLES | IN_NPZ_SAMPLES | IN_NPZ_BATCHES | IN_TAR | IN_PAGES,
    [FIELD_DECODED] = IN_NPY_SAMPLES | IN_NPZ_SAMPLES | IN_NPZ_BATCHES | IN_PAGES,
    [FIELD_PADDED] = IN_NPY_BATCHES,
    [FIELD_LENGTHS] = IN_NPY_BATCHES,
    [FIELD_OFFSETS] = IN_NPZ_BATCHES,
    [FIELD_STRING] = IN_NPZ_SAMPLES | IN_NPZ_BATCHES | IN_PAGES,
    [FIELD_LINE] = IN_TAR,
    [FIELD_KEY_LINES] = 0,
    [FIELD_AUDIO] = IN_TAR,
};

bool field_is_in(const struct field *f, unsigned place)
{
    return places[f->role] & place;
}

uint64_t field_stored_dim(const struct field *f, unsigned i)
{
    bool exchanged = f->ops == &field_transposed || f->ops == &field_unit_transposed;

    return f->dim[exchanged ? f->ndim - 1 - i : i];
}

/* A batch axis and the axes of an item. */
static void add_axes(const struct field *f, const struct selection *sel, bool stored,
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
        add_axes(f, sel, false, ret);
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
    add_axes(f, sel, true, ret);
}

void form_shape_text(const struct form *form, struct text *t)
{
    text_add(t, "(");
    for (unsigned i = 0; i < form->ndim; i++)
        text_add(t, "%s%llu", i ? ", " : "", (unsigned long long)form->dim[i]);
    text_add(t, form->ndim == 1 ? ",)" : ")");
}
