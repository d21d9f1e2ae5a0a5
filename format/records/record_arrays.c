/* Arrays of records: stacked if they have one shape; otherwise one after another with offsets, or
 * padded with lengths. A record's array then has its own length along its first axis. Where the
 * other axes differ as well, arrays are flat, one after another, with the shape of each, or padded
 * along each axis (record_axes.c). */
#include "format/records/record_axes.h"
#include "format/records/record_ops.h"
#include "format/records/record_slabs.h"

#include <errno.h>

#include "base/bytes.h"
#include "base/checked.h"

static int record_arrays_differs(const struct record_items *items, uint64_t sample, unsigned axis,
                                 uint64_t found)
{
    const struct record_content *c = items->content;
    unsigned long long expected = items->axis[axis], has = found;
    char where[RECORD_WHERE];

    c->ops->where(items->ds, c, sample, where);
    if (c->ndim == 2)
        return diag_set(items->reason, -EDOM,
                        "%s: expected %llu columns, as others of the batch have, got %llu; they "
                        "cannot be one array",
                        where, expected, has);
    return diag_set(items->reason, -EDOM,
                    "%s: expected %llu along axis %u, as others of the batch have, got %llu; they "
                    "cannot be one array",
                    where, expected, axis, has);
}

/* Counts the rows of the array. An array without rows fits next to any other. */
static int count_rows(void *ctx, uint64_t sample, const struct sums_pair *before,
                      struct sums_pair *ret)
{
    struct record_items *items = ctx;
    uint64_t dim[RECORD_AXES];
    int r = record_dims(items, sample, dim, items->reason);

    (void)before;
    if (r < 0)
        return r;
    ret->size = dim[0];
    if (!dim[0])
        return 0;
    if (!items->has_tail)
        record_axes_set(items, dim);
    for (unsigned i = 1; i < items->content->ndim; i++)
        if (dim[i] != items->axis[i])
            return record_arrays_differs(items, sample, i, dim[i]);
    return 0;
}

/* Counts the elements of the array, of those that differ. */
static int record_arrays_count_elements(void *ctx, uint64_t sample, const struct sums_pair *before,
                                        struct sums_pair *ret)
{
    struct record_items *items = ctx;
    uint64_t dim[RECORD_AXES];
    int r = record_dims(items, sample, dim, items->reason);

    (void)before;
    ret->size = 1;
    for (unsigned i = 0; i < items->content->ndim && r == 0; i++)
        if (!checked_mul(ret->size, dim[i], &ret->size))
            return -EFBIG;
    return r;
}

/* The sums over rows; where other axes differ, over elements. */
static int open_rows(struct record_items *items, struct sums *ret)
{
    int r = record_axes_find(items);

    return r < 0 ? r
                 : record_items_sums(
                       items, items->differs ? record_arrays_count_elements : count_rows, ret);
}

/* Add the axes [first], and those behind it, of arrays whose other axes are the same. */
static void record_arrays_add_axes(const struct record_items *items, uint64_t first,
                                   struct form *ret)
{
    ret->dim[ret->ndim++] = first;
    for (unsigned i = 1; i < items->content->ndim; i++)
        ret->dim[ret->ndim++] = items->axis[i];
}

static uint64_t only_sample(const struct selection *sel)
{
    uint64_t sample;

    selection_samples(sel, 0, 1, &sample);
    return sample;
}

static int array_item(struct record_items *items, uint64_t sample, const struct sums_pair *before,
                      uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct record_content *c = items->content;

    (void)before;
    return len ? c->ops->read(items->rc, items->ds, c, sample, off, len, dst, d) : 0;
}

/* ---- one after another ---- */

static int ragged_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
                       struct form *ret)
{
    AUTO_SUMS struct sums sums = {0};
    struct record_items items;
    int r;

    record_items_init(&items, NULL, ds, f, sel);
    if (sel->single) {
        uint64_t dim[RECORD_AXES];

        r = record_dims(&items, only_sample(sel), dim, sel->reason);
        ret->ndim = items.content->is_number ? 0 : items.content->ndim;
        for (unsigned i = 0; i < ret->ndim && r == 0; i++)
            ret->dim[i] = dim[i];
        return r;
    }
    ret->ndim = 0;
    r = open_rows(&items, &sums);
    if (r == 0 && items.differs)
        ret->dim[ret->ndim++] = sums_total(&sums).size;
    else if (r == 0)
        record_arrays_add_axes(&items, sums_total(&sums).size, ret);
    return r;
}

static int ragged_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                       const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                       struct diag *d)
{
    struct record_items items;
    int r;

    record_items_init(&items, rc, ds, f, sel);
    if (sel->single)
        return array_item(&items, only_sample(sel), NULL, off, len, dst, d);
    items.reason = d;
    record_items_read_runs(&items, false);
    r = record_axes_find(&items);
    if (r == 0 && items.differs)
        return record_items_read(&items, record_arrays_count_elements, f->width, array_item, off,
                                 len, dst, d);
    if (r < 0 || !items.tail)
        return r;
    return record_items_read(&items, count_rows, items.tail * f->width, array_item, off, len, dst,
                             d);
}

/* ---- padded ---- */

static int padded_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
                       struct form *ret)
{
    AUTO_SUMS struct sums sums = {0};
    struct record_items items;
    int r;

    record_items_init(&items, NULL, ds, f, sel);
    ret->ndim = 0;
    ret->dim[ret->ndim++] = sel->count;
    r = open_rows(&items, &sums);
    for (unsigned i = 0; i < items.content->ndim && r == 0 && items.differs; i++)
        ret->dim[ret->ndim++] = items.most[i];
    if (r == 0 && !items.differs)
        record_arrays_add_axes(&items, sums_most(&sums), ret);
    return r;
}

static int padded_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                       const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                       struct diag *d)
{
    AUTO_SUMS struct sums sums = {0};
    struct record_items items;
    int r;

    record_items_init(&items, rc, ds, f, sel);
    items.reason = d;
    r = open_rows(&items, &sums);
    if (r < 0 || !len)
        return r;
    if (items.differs)
        return record_items_read_even(&items, record_axes_padded(&items) * f->width,
                                      record_axes_read, off, len, dst, d);
    return record_items_read_even(&items, sums_most(&sums) * items.tail * f->width,
                                  record_padded_item, off, len, dst, d);
}

/* ---- lengths and offsets ---- */

/* The lengths of arrays, or their offsets: the sums before each. */
static int record_arrays_read_sums(struct record_items *items, bool lengths, uint64_t off,
                                   size_t len, uint8_t *dst)
{
    AUTO_SUMS struct sums sums = {0};
    struct sums_pair before = {0}, after = {0};
    int r = open_rows(items, &sums);

    if (r == 0 && len)
        r = sums_before(&sums, off / 8, &before);
    while (r == 0 && len) {
        uint64_t place = off / 8;

        if (place < items->sel->count)
            r = sums_after(&sums, place, &before, &after);
        store_le_part(lengths ? after.size - before.size : before.size, 8, &off, &len, &dst);
        before = after;
    }
    return r;
}

/* The shape of each array: so many numbers for a sample as it has axes. */
static int read_shapes(struct record_items *items, uint64_t off, size_t len, uint8_t *dst,
                       struct diag *d)
{
    uint64_t each = 8 * (uint64_t)items->content->ndim, dim[RECORD_AXES] = {0};
    uint64_t known = UINT64_MAX;
    int r = 0;

    while (r == 0 && len) {
        uint64_t place = off / each;

        if (place != known)
            r = record_dims(items, record_items_sample(items, place), dim, d);
        known = place;
        store_le_part(dim[off % each / 8], 8, &off, &len, &dst);
    }
    return r;
}

static void shapes_axes(const struct record_items *items, struct form *ret)
{
    ret->ndim = 2;
    ret->dim[0] = items->sel->count;
    ret->dim[1] = items->content->ndim;
}

/* Its form fails if that of the arrays fails, so their files exist together. Lengths of arrays that
 * differ in another axis than the first are their shapes. */
static int numbers_form(const struct dataset *ds, const struct field *f,
                        const struct selection *sel, struct form *ret)
{
    bool lengths = f->form == FORM_LENGTHS;
    AUTO_SUMS struct sums sums = {0};
    struct record_items items;
    int r;

    record_items_init(&items, NULL, ds, f, sel);
    ret->ndim = 1;
    ret->dim[0] = sel->count + !lengths;
    r = open_rows(&items, &sums);
    if (r == 0 && lengths && items.differs)
        shapes_axes(&items, ret);
    return r;
}

static int numbers_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                        const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                        struct diag *d)
{
    bool lengths = f->form == FORM_LENGTHS;
    struct record_items items;
    int r;

    record_items_init(&items, rc, ds, f, sel);
    items.reason = d;
    r = lengths ? record_axes_find(&items) : 0;
    if (r < 0)
        return r;
    return lengths && items.differs ? read_shapes(&items, off, len, dst, d)
                                    : record_arrays_read_sums(&items, lengths, off, len, dst);
}

/* Only a batch whose arrays differ so has shapes. */
static int shapes_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
                       struct form *ret)
{
    struct record_items items;
    int r;

    record_items_init(&items, NULL, ds, f, sel);
    r = record_axes_find(&items);
    shapes_axes(&items, ret);
    return r == 0 && !items.differs ? -ENODATA : r;
}

static int shapes_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                       const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                       struct diag *d)
{
    struct record_items items;

    record_items_init(&items, rc, ds, f, sel);
    return read_shapes(&items, off, len, dst, d);
}

/* ---- stacked ---- */

/* A sample that cannot be read has no file; for a batch, reading the file finds out. */
static int item_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
                     struct form *ret)
{
    struct record_items items;
    uint64_t dim[RECORD_AXES];

    record_items_init(&items, NULL, ds, f, sel);
    ret->ndim = 0;
    if (!sel->single)
        ret->dim[ret->ndim++] = sel->count;
    for (unsigned i = 0; i < items.content->ndim; i++)
        ret->dim[ret->ndim++] = items.content->dim[i];
    return sel->single ? record_dims(&items, only_sample(sel), dim, sel->reason) : 0;
}

static int item_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                     const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                     struct diag *d)
{
    struct record_items items;
    struct diag why = DIAG_INIT;
    int r;

    record_items_init(&items, rc, ds, f, sel);
    if ((items.content->slabs || items.content->reads_many) && sel->count > 1) {
        r = items.content->slabs
                ? record_slabs_read(&items, f->item_bytes, off, len, dst, &why)
                : record_items_read_many(&items, f->item_bytes, off, len, dst, &why);
        if (r != -EIO)
            return why.set ? diag_set(d, r, "%s", why.text) : r;
        /* A record of the slab cannot be read, perhaps none of these. */
    }
    return record_items_read_even(&items, f->item_bytes, array_item, off, len, dst, d);
}

const struct field_ops record_item_ops = {item_read, item_form};
const struct field_ops record_ragged_ops = {ragged_read, ragged_form};
const struct field_ops record_padded_ops = {padded_read, padded_form};
const struct field_ops record_numbers_ops = {numbers_read, numbers_form}; /* lengths, offsets */
const struct field_ops record_shapes_ops = {shapes_read, shapes_form};
