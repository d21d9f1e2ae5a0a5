/* The fields of libsvm text: arrays with an item per row (label, weight, qid, base_margin, x), the
 * five members of a CSR matrix as scipy.sparse.save_npz writes it, and the text, which this file
 * reads. */
#include "format/libsvm/fields_parts.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/read_context.h"

/* ---- text ---- */

static int form_row(const struct dataset *ds, const struct field *f, const struct selection *sel,
                    struct form *ret)
{
    struct row_sums sums = {0};
    int r = libsvm_total_sums(ds, sel, &sums);

    (void)f;
    if (r < 0)
        return r;
    ret->dtype = DTYPE_TEXT;
    ret->width = 1;
    ret->ndim = 1;
    ret->dim[0] = sums.text;
    return 0;
}

/* The number of rows, from the first on, that are adjacent in the file, with one byte between
 * them. */
static unsigned libsvm_fields_run_of_rows(const struct libsvm_row_at *row, unsigned n, uint64_t off,
                                          size_t len)
{
    const struct row_place *first = &row->place;
    unsigned run = 1;

    while (run < n && row[run].file == row->file &&
           row[run].place.start == row[run - 1].place.start + row[run - 1].place.len + 1 &&
           row[run].place.start < first->start + off + len)
        run++;
    return run;
}

/* Copy bytes of the text of row[0, n), from byte off of the first on; *ret_len of them, at least
 * one, even if they are missing. */
static int copy_run(struct read_context *rc, const struct libsvm_row_at *row, unsigned n,
                    uint64_t off, size_t len, uint8_t *dst, size_t *ret_len, struct diag *d)
{
    const struct blob *blob = row->file->base.blob;
    uint64_t start = row->place.start, text;
    size_t bytes;
    int r;

    n = libsvm_fields_run_of_rows(row, n, off, len);
    text = row[n - 1].place.start + row[n - 1].place.len -
           start; /* without the end of the last line */
    *ret_len = (size_t)min_u64(len, text + 1 - off);
    bytes = (size_t)(off < text ? min_u64(*ret_len, text - off) : 0);
    r = bytes ? blob_read(rc, blob, dst, bytes, start + off, d) : 0;
    if (r < 0)
        return r;
    for (unsigned i = 0; i < n; i++) {
        uint64_t end = row[i].place.start + row[i].place.len - start;

        if (end >= off && end < off + *ret_len)
            dst[end - off] = '\n';
    }
    return blob_verify(blob, d);
}

/* Copy bytes of the text of row[0, n), from byte off on; *ret_len of them. */
static int libsvm_fields_copy_rows(struct read_context *rc, const struct libsvm_row_at *row,
                                   unsigned n, uint64_t off, size_t len, uint8_t *dst,
                                   size_t *ret_len, struct diag *d)
{
    int all = 0;

    *ret_len = 0;
    for (unsigned i = 0; i < n && len;) {
        uint64_t bytes = row[i].place.len + 1;
        size_t part;

        if (off >= bytes) {
            off -= bytes;
            i++;
            continue;
        }
        if (!missing_go_on(rc, copy_run(rc, row + i, n - i, off, len, dst, &part, d), &all))
            break;
        dst += part;
        len -= part;
        off += part;
        *ret_len += part;
    }
    return all;
}

static int libsvm_fields_read_row(struct read_context *rc, const struct dataset *ds,
                                  const struct field *f, const struct selection *sel, uint64_t off,
                                  size_t len, uint8_t *dst, struct diag *d)
{
    AUTO_LIBSVM_VIEW struct libsvm_view v = {0};
    int r = libsvm_view_open(&v, libsvm_rows_of(ds), sel), all = r;

    (void)f;
    while (len && r == 0) {
        uint64_t block = libsvm_view_text_block(&v, off);
        struct libsvm_row_at row[LIBSVM_BLOCK];
        size_t made;
        unsigned n;

        libsvm_view_rows(&v, block, row, &n);
        if (!missing_go_on(rc,
                           libsvm_fields_copy_rows(rc, row, n,
                                                   off - libsvm_view_sums(&v, block).text, len, dst,
                                                   &made, d),
                           &all))
            break;
        assert(made > 0);
        dst += made;
        off += made;
        len -= made;
    }
    return all;
}

/* ---- the table ---- */

static const struct field_ops row_ops = {libsvm_fields_read_row, form_row};

bool libsvm_field_reads_rows(const struct field *f)
{
    return f->ops->read == libsvm_label_ops.ops.read || f->ops == &libsvm_data_ops ||
           f->ops == &libsvm_indices_ops || f->ops == &libsvm_field_ops ||
           f->ops == &libsvm_csc_data_ops || f->ops == &libsvm_csc_indices_ops ||
           f->ops == &libsvm_csc_field_ops || f->ops == &libsvm_csc_indptr_ops ||
           f->ops == &row_ops;
}

/* Where files show a field. */
enum offered {
    ITEM,   /* an item per row, anywhere */
    DENSE,  /* the same, too large for files of all fields */
    MEMBER, /* of the matrix */
    COLUMN, /* of the matrix by columns */
    TEXT,   /* rows as they are */
};

/* Add a field with items of up to one axis; its length is known later. */
static int libsvm_fields_add_field(struct dataset *ds, const char *name, enum offered offered,
                                   const struct field_ops *ops, enum dtype dtype)
{
    struct field *f = &ds->field[ds->n_fields];

    *f = (struct field){.ops = ops, .in = IN_ARRAYS | IN_CSC, .dtype = dtype};
    if (offered == DENSE) {
        f->in = IN_NPY_SAMPLES | IN_NPY_BATCHES | IN_PAGES;
        f->derived = true;
    } else if (offered == MEMBER) {
        f->in = IN_NPZ_SAMPLES | IN_NPZ_BATCHES;
        f->form = FORM_WHOLE;
    } else if (offered == COLUMN) {
        f->in = IN_CSC;
        f->form = FORM_WHOLE;
    } else if (offered == TEXT) {
        field_offer_bytes(f, "svm", "svm", IN_FILES);
        f->unnamed = true;
    }
    snprintf(f->name, sizeof(f->name), "%s", name);
    f->width = f->item_bytes = dtype_info(dtype)->bytes;
    f->dim = calloc(1, sizeof(*f->dim));
    if (!f->dim)
        return -ENOMEM;
    ds->n_fields++;
    return 0;
}

int libsvm_fields_init(struct dataset *ds)
{
    const struct libsvm_file *file = libsvm_rows_file(libsvm_rows_of(ds), 0);
    const struct libsvm_side *side = file->side;
    const struct {
        bool is_there;
        const char *name;
        enum offered offered;
        const struct field_ops *ops;
        enum dtype dtype;
    } fields[] = {
        {true, "label", ITEM, &libsvm_label_ops.ops, DTYPE_F4},
        {side[LIBSVM_SIDE_WEIGHT].blob, "weight", ITEM, &libsvm_side_weight_ops.ops, DTYPE_F4},
        {!side[LIBSVM_SIDE_WEIGHT].blob && file->columns & LIBSVM_WEIGHT, "weight", ITEM,
         &libsvm_weight_ops.ops, DTYPE_F4},
        {side[LIBSVM_SIDE_GROUP].blob, "qid", ITEM, &libsvm_side_group_ops.ops, DTYPE_I8},
        {!side[LIBSVM_SIDE_GROUP].blob && file->columns & LIBSVM_QID, "qid", ITEM,
         &libsvm_qid_ops.ops, DTYPE_I8},
        {side[LIBSVM_SIDE_MARGIN].blob, "base_margin", ITEM, &libsvm_margin_ops.ops, DTYPE_F4},
        {true, "x", DENSE, &libsvm_x_ops.ops, DTYPE_F4},
        {true, "data", MEMBER, &libsvm_data_ops, DTYPE_F4},
        {true, "indices", MEMBER, &libsvm_indices_ops, DTYPE_I4},
        {file->columns & LIBSVM_FIELD, "field", MEMBER, &libsvm_field_ops, DTYPE_U4},
        {true, "indptr", MEMBER, &libsvm_indptr_ops, DTYPE_I4},
        {true, "format", MEMBER, &libsvm_format_ops, DTYPE_TEXT},
        {true, "shape", MEMBER, &libsvm_shape_ops, DTYPE_I8},
        {true, "data", COLUMN, &libsvm_csc_data_ops, DTYPE_F4},
        {true, "indices", COLUMN, &libsvm_csc_indices_ops, DTYPE_I4},
        {file->columns & LIBSVM_FIELD, "field", COLUMN, &libsvm_csc_field_ops, DTYPE_U4},
        {true, "indptr", COLUMN, &libsvm_csc_indptr_ops, DTYPE_I4},
        {true, "format", COLUMN, &libsvm_csc_format_ops, DTYPE_TEXT},
        {true, "shape", COLUMN, &libsvm_csc_shape_ops, DTYPE_I8},
        {true, "row", TEXT, &row_ops, DTYPE_TEXT},
    };

    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        int r = fields[i].is_there ? libsvm_fields_add_field(ds, fields[i].name, fields[i].offered,
                                                             fields[i].ops, fields[i].dtype)
                                   : 0;

        if (r < 0)
            return r;
    }
    dataset_add_numbering(ds);
    for (unsigned i = 0; i < ds->n_fields; i++)
        ds->field[i].in |= ds->field[i].numbering ? IN_CSC : 0;
    return 0;
}

/* Give the items one axis of n elements. */
static void set_axis(struct field *f, uint64_t n)
{
    f->ndim = 1;
    f->dim[0] = n;
    f->item_bytes = f->width * n;
}

void libsvm_fields_finish(struct dataset *ds)
{
    const struct libsvm_rows *rows = libsvm_rows_of(ds);
    uint64_t margins = libsvm_rows_file(rows, 0)->side[LIBSVM_SIDE_MARGIN].per_row;

    for (unsigned i = 0; i < ds->n_fields; i++) {
        struct field *f = &ds->field[i];

        if (f->ops == &libsvm_x_ops.ops)
            set_axis(f, rows->features);
        if (f->ops == &libsvm_label_ops.ops && rows->labels > 1)
            set_axis(f, rows->labels);
        if (f->ops == &libsvm_margin_ops.ops && margins > 1)
            set_axis(f, margins);
    }
}
