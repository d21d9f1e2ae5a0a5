/* Arrays of records: stacked if they have one shape; else one after another with offsets, or padded
 * with lengths. A record's array then has its own length along its first axis; the other axes are
 * the same in a whole selection. */
#include "format/records/record_ops.h"
#include "format/records/record_slabs.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"

/* The elements of a row of the first axis. */
static uint64_t row_elements(const struct record_content *c, const uint64_t *dim)
{
    uint64_t n = 1;

    for (unsigned i = 1; i < c->ndim; i++)
        n *= dim[i];
    return n;
}

static void set_tail(struct record_items *items, const uint64_t *dim)
{
    memcpy(items->axis, dim, sizeof(items->axis));
    items->tail = row_elements(items->content, dim);
    items->has_tail = true;
}

static int differs(const struct record_items *items, uint64_t sample, unsigned axis, uint64_t found)
{
    const struct record_content *c = items->content;
    unsigned long long want = items->axis[axis], has = found;
    char where[RECORD_WHERE];

    c->ops->where(items->ds, c, sample, where);
    if (c->ndim == 2)
        return diag_set(items->reason, -EDOM,
                        "%s: want %llu columns, as others of the batch have, found %llu; they "
                        "cannot be one array",
                        where, want, has);
    return diag_set(items->reason, -EDOM,
                    "%s: want %llu along axis %u, as others of the batch have, found %llu; they "
                    "cannot be one array",
                    where, want, axis, has);
}

/* Counts the rows of the array. An array without rows fits beside any other. */
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
        set_tail(items, dim);
    for (unsigned i = 1; i < items->content->ndim; i++)
        if (dim[i] != items->axis[i])
            return differs(items, sample, i, dim[i]);
    return 0;
}

/* Find the axes behind the first: those of the first array that has rows. */
static int find_tail(struct record_items *items)
{
    const struct record_content *c = items->content;
    bool varies = false;
    int r = 0;

    for (unsigned i = 1; i < c->ndim; i++)
        varies = varies || c->dim[i] == DIM_VARIES;
    if (!varies) {
        set_tail(items, c->dim);
        return 0;
    }
    for (uint64_t place = 0; place < items->sel->count && !items->has_tail && r == 0; place++) {
        uint64_t dim[RECORD_AXES];

        r = record_dims(items, record_items_sample(items, place), dim, items->reason);
        if (r == 0 && dim[0])
            set_tail(items, dim);
    }
    return r;
}

static int open_rows(struct record_items *items, struct sums *ret)
{
    int r = find_tail(items);

    return r < 0 ? r : record_items_sums(items, count_rows, ret);
}

/* Add the axes [first], and those behind it. */
static void add_axes(const struct record_items *items, uint64_t first, struct form *ret)
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
    if (r == 0)
        add_axes(&items, sums_total(&sums).size, ret);
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
    r = find_tail(&items);
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
    if (r == 0)
        add_axes(&items, sums_most(&sums), ret);
    return r;
}

/* An array, then zeros. */
static int padded_item(struct record_items *items, uint64_t sample, const struct sums_pair *before,
                       uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    uint64_t dim[RECORD_AXES];
    int r = record_dims(items, sample, dim, d);

    (void)before;
    return r < 0 ? r
                 : record_read_padded(items, sample, record_bytes(items->content, dim), 0, off, len,
                                      dst, d);
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
    return record_items_read_even(&items, sums_most(&sums) * items.tail * f->width, padded_item,
                                  off, len, dst, d);
}

/* ---- lengths and offsets ---- */

/* Make int64 numbers, one by one. */
static int read_numbers(struct read_context *rc, const struct dataset *ds, const struct field *f,
                        const struct selection *sel, bool lengths, uint64_t off, size_t len,
                        uint8_t *dst, struct diag *d)
{
    AUTO_SUMS struct sums sums = {0};
    struct sums_pair before = {0}, after = {0};
    struct record_items items;
    int r;

    record_items_init(&items, rc, ds, f, sel);
    items.reason = d;
    r = open_rows(&items, &sums);
    if (r == 0 && len)
        r = sums_before(&sums, off / 8, &before);
    while (r == 0 && len) {
        uint64_t place = off / 8;
        size_t skip = (size_t)(off % 8), n = (size_t)min_u64(len, 8 - skip);
        uint8_t bytes[8];

        if (place < sel->count)
            r = sums_after(&sums, place, &before, &after);
        store_le64(bytes, lengths ? after.size - before.size : before.size);
        memcpy(dst, bytes + skip, n);
        before = after;
        dst += n;
        off += n;
        len -= n;
    }
    return r;
}

/* A file of lengths or offsets exists if the file of the arrays does: its form fails if theirs
 * fails. */
static int numbers_form(const struct dataset *ds, const struct field *f,
                        const struct selection *sel, uint64_t count, struct form *ret)
{
    AUTO_SUMS struct sums sums = {0};
    struct record_items items;

    record_items_init(&items, NULL, ds, f, sel);
    ret->ndim = 1;
    ret->dim[0] = count;
    return open_rows(&items, &sums);
}

static int lengths_form(const struct dataset *ds, const struct field *f,
                        const struct selection *sel, struct form *ret)
{
    return numbers_form(ds, f, sel, sel->count, ret);
}

static int lengths_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                        const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                        struct diag *d)
{
    return read_numbers(rc, ds, f, sel, true, off, len, dst, d);
}

static int offsets_form(const struct dataset *ds, const struct field *f,
                        const struct selection *sel, struct form *ret)
{
    return numbers_form(ds, f, sel, sel->count + 1, ret);
}

static int offsets_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                        const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                        struct diag *d)
{
    return read_numbers(rc, ds, f, sel, false, off, len, dst, d);
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

    record_items_init(&items, rc, ds, f, sel);
    if (items.content->slabs && sel->count > 1)
        return record_slabs_read(&items, f->item_bytes, off, len, dst, d);
    return record_items_read_even(&items, f->item_bytes, array_item, off, len, dst, d);
}

const struct field_ops record_item_ops = {item_read, item_form};
const struct field_ops record_ragged_ops = {ragged_read, ragged_form};
const struct field_ops record_padded_ops = {padded_read, padded_form};
const struct field_ops record_lengths_ops = {lengths_read, lengths_form};
const struct field_ops record_offsets_ops = {offsets_read, offsets_form};
