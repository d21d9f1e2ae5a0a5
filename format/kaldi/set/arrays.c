/* Arrays of cells: concatenated with offsets, or padded with lengths. A sample's array has its own
 * length along its first axis. */
#include "format/kaldi/set/work.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"

/* Counts the rows of the array; all arrays have the same second axis. */
static int count_rows(void *ctx, uint64_t sample, const struct sums_pair *before,
                      struct sums_pair *ret)
{
    struct kaldi_work *w = ctx;
    struct kaldi_cell cell;
    uint64_t dim[2];
    int r = kaldi_work_cell(w, sample, &cell, w->reason);

    (void)before;
    if (r < 0)
        return r;
    kaldi_cell_form(&cell, w->base_field->array, dim);
    ret->size = dim[0];
    if (!dim[0])
        return 0;
    if (!w->tail)
        w->tail = dim[1];
    if (dim[1] != w->tail)
        return diag_set(w->reason, -EDOM,
                        "%s: row %llu: want %llu columns, as others of the batch have, found %llu; "
                        "they cannot be one array",
                        blob_name(cell.table->blob), (unsigned long long)cell.number + 1,
                        (unsigned long long)w->tail, (unsigned long long)dim[1]);
    return 0;
}

static int array_item(struct read_context *rc, struct kaldi_work *w, uint64_t sample,
                      const struct sums_pair *before, uint64_t off, size_t len, uint8_t *dst,
                      struct diag *d)
{
    struct kaldi_cell cell;
    int r = kaldi_work_cell(w, sample, &cell, d);
    const struct kaldi_column *c = &w->set->column[w->base_field->column];
    const struct kaldi_array *array = &kaldi_types[c->table->type].array[w->base_field->array];

    (void)before;
    return r < 0 ? r
                 : kaldi_cell_array(rc, w->set, &cell, w->base_field->array,
                                    array->real ? c->real : array->dtype, off, len, dst, d);
}

/* Set w->tail to the size of the second axis of a selection's arrays; to 1 if they have one
 * axis. */
static int find_tail(struct kaldi_work *w)
{
    const struct kaldi_column *c = &w->set->column[w->base_field->column];
    int r = 0;

    if (kaldi_axes(c, w->base_field->array) < 2) {
        w->tail = 1;
    } else if (kaldi_types[c->table->type].n_arrays && c->table->type != KALDI_MATRIX) {
        w->tail = 2; /* pairs */
    } else if (!c->varies) {
        w->tail = c->tail;
    } else {
        for (uint64_t place = 0; place < w->sel->count && !w->tail && r == 0; place++) {
            struct kaldi_cell cell;
            uint64_t dim[2];

            r = kaldi_work_cell(w, kaldi_work_sample(w, place), &cell, w->reason);
            if (r == 0)
                kaldi_cell_form(&cell, w->base_field->array, dim);
            if (r == 0 && dim[0])
                w->tail = dim[1];
        }
    }
    return r;
}

static int one_form(struct kaldi_work *w, struct form *ret)
{
    struct kaldi_cell cell;
    uint64_t sample;
    int r;

    w->sel->samples(w->sel, 0, 1, &sample);
    r = kaldi_work_cell(w, sample, &cell, w->reason);
    if (r == 0)
        ret->ndim = kaldi_cell_form(&cell, w->base_field->array, ret->dim);
    return r;
}

/* Add the axes [first] and, if there is one, the second. */
static void add_axes(const struct kaldi_work *w, uint64_t first, struct form *ret)
{
    ret->dim[ret->ndim++] = first;
    if (kaldi_axes(&w->set->column[w->base_field->column], w->base_field->array) > 1)
        ret->dim[ret->ndim++] = w->tail;
}

static int ragged_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
                       struct form *ret)
{
    AUTO_SUMS struct sums sums = {0};
    struct kaldi_work w;
    int r;

    kaldi_work_init(&w, ds, f, sel);
    if (sel->single)
        return one_form(&w, ret);
    ret->ndim = 0;
    r = find_tail(&w);
    if (r == 0)
        r = kaldi_work_sums(&w, count_rows, &sums);
    if (r == 0)
        add_axes(&w, sums_total(&sums).size, ret);
    return r;
}

static int ragged_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                       const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                       struct diag *d)
{
    struct kaldi_work w;
    uint64_t sample;
    int r;

    kaldi_work_init(&w, ds, f, sel);
    if (sel->single) {
        sel->samples(sel, 0, 1, &sample);
        return array_item(rc, &w, sample, NULL, off, len, dst, d);
    }
    w.reason = d;
    r = find_tail(&w);
    if (r < 0 || !w.tail)
        return r;
    return kaldi_read_summed(rc, &w, count_rows, w.tail * f->width, array_item, off, len, dst, d);
}

static int padded_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
                       struct form *ret)
{
    AUTO_SUMS struct sums sums = {0};
    struct kaldi_work w;
    int r;

    kaldi_work_init(&w, ds, f, sel);
    ret->ndim = 0;
    ret->dim[ret->ndim++] = sel->count;
    r = find_tail(&w);
    if (r == 0)
        r = kaldi_work_sums(&w, count_rows, &sums);
    if (r == 0)
        add_axes(&w, sums_most(&sums), ret);
    return r;
}

/* An array, then zeros. */
static int padded_item(struct read_context *rc, struct kaldi_work *w, uint64_t sample,
                       const struct sums_pair *before, uint64_t off, size_t len, uint8_t *dst,
                       struct diag *d)
{
    const struct kaldi_column *c = &w->set->column[w->base_field->column];
    const struct kaldi_array *array = &kaldi_types[c->table->type].array[w->base_field->array];
    unsigned width = c->table->type == KALDI_WAVE ? 2
                     : array->real                ? dtype_info(c->real)->bytes
                                                  : dtype_info(array->dtype)->bytes;
    struct kaldi_cell cell;
    uint64_t dim[2], bytes;
    size_t n;
    int r = kaldi_work_cell(w, sample, &cell, d);

    (void)before;
    if (r < 0)
        return r;
    kaldi_cell_form(&cell, w->base_field->array, dim);
    bytes = dim[0] * dim[1] * width;
    n = off < bytes ? (size_t)min_u64(len, bytes - off) : 0;
    memset(dst + n, 0, len - n);
    return n ? array_item(rc, w, sample, NULL, off, n, dst, d) : 0;
}

static int padded_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                       const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                       struct diag *d)
{
    AUTO_SUMS struct sums sums = {0};
    struct kaldi_work w;
    int r;

    kaldi_work_init(&w, ds, f, sel);
    w.reason = d;
    r = find_tail(&w);
    if (r == 0)
        r = kaldi_work_sums(&w, count_rows, &sums);
    if (r < 0 || !len)
        return r;
    return kaldi_read_even(rc, &w, sums_most(&sums) * w.tail * f->width, padded_item, off, len, dst,
                           d);
}

/* Make int64 numbers, one by one. */
static int read_numbers(struct kaldi_work *w, bool lengths, uint64_t off, size_t len, uint8_t *dst,
                        struct diag *d)
{
    AUTO_SUMS struct sums sums = {0};
    struct sums_pair before = {0}, after = {0};
    int r;

    w->reason = d;
    r = find_tail(w);
    if (r == 0)
        r = kaldi_work_sums(w, count_rows, &sums);
    if (r == 0 && len)
        r = sums_before(&sums, off / 8, &before);
    while (r == 0 && len) {
        uint64_t place = off / 8;
        size_t skip = (size_t)(off % 8), n = (size_t)min_u64(len, 8 - skip);
        uint8_t bytes[8];

        if (place < w->sel->count)
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
static int numbers_form(struct kaldi_work *w, uint64_t count, struct form *ret)
{
    AUTO_SUMS struct sums sums = {0};
    int r = find_tail(w);

    ret->ndim = 1;
    ret->dim[0] = count;
    return r < 0 ? r : kaldi_work_sums(w, count_rows, &sums);
}

static int lengths_form(const struct dataset *ds, const struct field *f,
                        const struct selection *sel, struct form *ret)
{
    struct kaldi_work w;

    kaldi_work_init(&w, ds, f, sel);
    return numbers_form(&w, sel->count, ret);
}

static int lengths_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                        const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                        struct diag *d)
{
    struct kaldi_work w;

    (void)rc;
    kaldi_work_init(&w, ds, f, sel);
    return read_numbers(&w, true, off, len, dst, d);
}

static int offsets_form(const struct dataset *ds, const struct field *f,
                        const struct selection *sel, struct form *ret)
{
    struct kaldi_work w;

    kaldi_work_init(&w, ds, f, sel);
    return numbers_form(&w, sel->count + 1, ret);
}

static int offsets_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                        const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                        struct diag *d)
{
    struct kaldi_work w;

    (void)rc;
    kaldi_work_init(&w, ds, f, sel);
    return read_numbers(&w, false, off, len, dst, d);
}

/* A sample that cannot be read has no file; for a batch, reading the file finds out. */
static int value_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
                      struct form *ret)
{
    struct kaldi_cell cell;
    struct kaldi_work w;
    uint64_t sample;

    kaldi_work_init(&w, ds, f, sel);
    ret->ndim = 0;
    if (!sel->single) {
        ret->dim[ret->ndim++] = sel->count;
        return 0;
    }
    sel->samples(sel, 0, 1, &sample);
    return kaldi_work_cell(&w, sample, &cell, sel->reason);
}

static int value_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                      const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                      struct diag *d)
{
    struct kaldi_work w;

    kaldi_work_init(&w, ds, f, sel);
    return kaldi_read_even(rc, &w, f->width, array_item, off, len, dst, d);
}

/* The samples per second of audio. */
static int rate_item(struct read_context *rc, struct kaldi_work *w, uint64_t sample,
                     const struct sums_pair *before, uint64_t off, size_t len, uint8_t *dst,
                     struct diag *d)
{
    struct kaldi_cell cell;
    uint8_t bytes[4];
    int r = kaldi_work_cell(w, sample, &cell, d);

    (void)rc;
    (void)before;
    if (r < 0)
        return r;
    store_le32(bytes, (uint32_t)cell.row.object.dim[2]);
    memcpy(dst, bytes + off, len);
    return 0;
}

static int rate_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                     const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                     struct diag *d)
{
    struct kaldi_work w;

    kaldi_work_init(&w, ds, f, sel);
    return kaldi_read_even(rc, &w, 4, rate_item, off, len, dst, d);
}

const struct field_ops kaldi_ragged_ops = {ragged_read, ragged_form};
const struct field_ops kaldi_padded_ops = {padded_read, padded_form};
const struct field_ops kaldi_lengths_ops = {lengths_read, lengths_form};
const struct field_ops kaldi_offsets_ops = {offsets_read, offsets_form};
const struct field_ops kaldi_value_ops = {value_read, value_form};
const struct field_ops kaldi_rate_ops = {rate_read, value_form};
