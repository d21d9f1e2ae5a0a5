/* The fields of libsvm text: arrays with an item per row (label, weight, qid, base_margin, x), the
 * five members of a CSR matrix as scipy.sparse.save_npz writes it, and the text, which this file
 * reads. */
#include "format/libsvm/fields_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/read_context.h"

#define RUN_ROWS 256 /* that are read at once */

/* ---- text ---- */

/* Bytes of a line and its end. */
static int count_text(void *ctx, uint64_t sample, const struct sums_pair *before,
                      struct sums_pair *ret)
{
    const struct libsvm_rows *rows = libsvm_rows_of(((const struct record_items *)ctx)->ds);
    const struct libsvm_row_at at = libsvm_rows_find(rows, sample);

    (void)before;
    ret->size = libsvm_row_text(rows, &at.place);
    return 0;
}

static void known_text(void *ctx, uint64_t sample, struct sums_pair *ret)
{
    const struct record_items *items = ctx;

    *ret = (struct sums_pair){.size = libsvm_rows_sums(libsvm_rows_of(items->ds), sample).text};
}

/* run() of struct record_items: lines that are neighbours in the file, with one byte between them.
 */
static int run_of_lines(struct record_items *items, uint64_t place, uint64_t skip, size_t len,
                        uint8_t *dst, size_t *ret_n, struct diag *d)
{
    const struct libsvm_rows *rows = libsvm_rows_of(items->ds);
    struct libsvm_row_at at = libsvm_rows_find(rows, record_items_sample(items, place));
    const struct libsvm_file *file = at.file;
    const uint64_t start = at.place.start + skip;
    uint64_t end[RUN_ROWS];
    unsigned n = 0;
    int r = 0;

    do {
        end[n++] = at.place.start + at.place.len - start;
        if (n == RUN_ROWS || end[n - 1] >= len || ++place == items->sel->count)
            break;
        at = libsvm_rows_find(rows, record_items_sample(items, place));
    } while (at.file == file && at.place.start - start == end[n - 1] + 1);
    *ret_n = (size_t)min_u64(len, end[n - 1] + 1);
    len = (size_t)min_u64(len, end[n - 1]);
    if (len)
        r = blob_read(items->rc, file->base.blob, dst, len, start, d);
    for (unsigned i = 0; i < n && r == 0; i++)
        if (end[i] < *ret_n)
            dst[end[i]] = '\n';
    return r < 0 ? r : blob_verify(file->base.blob, d);
}

static void text_items(struct record_items *items, struct read_context *rc,
                       const struct dataset *ds, const struct field *f, const struct selection *sel)
{
    record_items_init(items, rc, ds, f, sel);
    items->content = NULL;
    items->known = known_text;
    items->run = libsvm_rows_of(ds)->is_binary ? NULL : run_of_lines;
}

static int text_form(const struct dataset *ds, const struct field *f, const struct selection *sel,
                     struct form *ret)
{
    struct record_items items;

    text_items(&items, NULL, ds, f, sel);
    ret->width = 1;
    return record_items_form(&items, count_text, ret);
}

static int text_read(struct read_context *rc, const struct dataset *ds, const struct field *f,
                     const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                     struct diag *d)
{
    struct record_items items;

    text_items(&items, rc, ds, f, sel);
    return record_items_read(&items, count_text, 1, libsvm_matrix_line, off, len, dst, d);
}

/* ---- the table ---- */

static const struct field_ops row_text_ops = {text_read, text_form};

/* What the first file may have: see `needs`. */
enum {
    WEIGHT = 1,
    QID = 2,
    FIELD = 4,
    SIDE_WEIGHT = 8,
    SIDE_GROUP = 16,
    SIDE_MARGIN = 32,
    TEXT = 64,
    STORED = 128, /* << a vector of a binary file, one number or more for each row */
};

#define STORED_FIELD(name, vector)                                                                 \
    {                                                                                              \
        name, &field_as_stored, LIBSVM_SHOWS_STORED, LIBSVM_OFFERS_ITEM, DTYPE_F4,                 \
            STORED << (vector), vector                                                             \
    }

/* The names of the contents, the types, and the order of the members of an archive. */
static const struct libsvm_field fields[] = {
    {"label", &libsvm_item_ops, LIBSVM_SHOWS_LABEL, LIBSVM_OFFERS_ITEM, DTYPE_F4, TEXT, 0},
    STORED_FIELD("label", DMATRIX_LABELS),
    {"weight", &libsvm_side_ops, LIBSVM_SHOWS_WEIGHT, LIBSVM_OFFERS_ITEM, DTYPE_F4, SIDE_WEIGHT, 0},
    {"weight", &libsvm_item_ops, LIBSVM_SHOWS_WEIGHT, LIBSVM_OFFERS_ITEM, DTYPE_F4, WEIGHT, 0},
    STORED_FIELD("weight", DMATRIX_WEIGHTS),
    {"qid", &libsvm_side_ops, LIBSVM_SHOWS_QID, LIBSVM_OFFERS_ITEM, DTYPE_I8, SIDE_GROUP, 0},
    {"qid", &libsvm_item_ops, LIBSVM_SHOWS_QID, LIBSVM_OFFERS_ITEM, DTYPE_I8, QID, 0},
    {"base_margin", &libsvm_side_ops, LIBSVM_SHOWS_MARGIN, LIBSVM_OFFERS_ITEM, DTYPE_F4,
     SIDE_MARGIN, 0},
    STORED_FIELD("base_margin", DMATRIX_MARGIN),
    STORED_FIELD("label_lower_bound", DMATRIX_LOWER),
    STORED_FIELD("label_upper_bound", DMATRIX_UPPER),
    {"x", &libsvm_item_ops, LIBSVM_SHOWS_X, LIBSVM_OFFERS_DENSE, DTYPE_F4, 0, 0},
    {"data", &libsvm_matrix_ops, LIBSVM_SHOWS_DATA, LIBSVM_OFFERS_MEMBER, DTYPE_F4, 0, 0},
    {"indices", &libsvm_matrix_ops, LIBSVM_SHOWS_INDICES, LIBSVM_OFFERS_MEMBER, DTYPE_I4, 0, 0},
    {"field", &libsvm_matrix_ops, LIBSVM_SHOWS_FIELD, LIBSVM_OFFERS_MEMBER, DTYPE_U4, FIELD, 0},
    {"indptr", &libsvm_matrix_ops, LIBSVM_SHOWS_INDPTR, LIBSVM_OFFERS_MEMBER, DTYPE_I4, 0, 0},
    {"format", &libsvm_matrix_ops, LIBSVM_SHOWS_FORMAT, LIBSVM_OFFERS_MEMBER, DTYPE_TEXT, 0, 0},
    {"shape", &libsvm_matrix_ops, LIBSVM_SHOWS_SHAPE, LIBSVM_OFFERS_MEMBER, DTYPE_I8, 0, 0},
    {"data", &libsvm_matrix_ops, LIBSVM_SHOWS_DATA, LIBSVM_OFFERS_BY_ROW, DTYPE_F4, 0, 0},
    {"data", &libsvm_matrix_ops, LIBSVM_SHOWS_DATA, LIBSVM_OFFERS_BY_VALUE, DTYPE_F4, 0, 0},
    {"indices", &libsvm_matrix_ops, LIBSVM_SHOWS_INDICES, LIBSVM_OFFERS_BY_ROW, DTYPE_I4, 0, 0},
    {"indices", &libsvm_matrix_ops, LIBSVM_SHOWS_INDICES, LIBSVM_OFFERS_BY_VALUE, DTYPE_I4, 0, 0},
    {"field", &libsvm_matrix_ops, LIBSVM_SHOWS_FIELD, LIBSVM_OFFERS_BY_ROW, DTYPE_U4, FIELD, 0},
    {"field", &libsvm_matrix_ops, LIBSVM_SHOWS_FIELD, LIBSVM_OFFERS_BY_VALUE, DTYPE_U4, FIELD, 0},
    {"indptr", &libsvm_matrix_ops, LIBSVM_SHOWS_INDPTR, LIBSVM_OFFERS_COLUMN, DTYPE_I4, 0, 0},
    {"format", &libsvm_matrix_ops, LIBSVM_SHOWS_FORMAT, LIBSVM_OFFERS_COLUMN, DTYPE_TEXT, 0, 0},
    {"shape", &libsvm_matrix_ops, LIBSVM_SHOWS_SHAPE, LIBSVM_OFFERS_COLUMN, DTYPE_I8, 0, 0},
    {"row", &row_text_ops, LIBSVM_SHOWS_TEXT, LIBSVM_OFFERS_TEXT, DTYPE_TEXT,
     TEXT | STORED << DMATRIX_LABELS, 0},
};

bool libsvm_field_reads_rows(const struct field *f)
{
    const struct libsvm_field *shown = f->impl;

    return shown && shown->ops != &libsvm_side_ops && shown->content != LIBSVM_SHOWS_STORED &&
           shown->content != LIBSVM_SHOWS_FORMAT && shown->content != LIBSVM_SHOWS_SHAPE &&
           !(shown->content == LIBSVM_SHOWS_INDPTR && shown->offer == LIBSVM_OFFERS_MEMBER);
}

static unsigned matrix_has(const struct dmatrix *m)
{
    unsigned has = dmatrix_groups(m) ? SIDE_GROUP : 0;

    has |= dmatrix_weighs_groups(m) ? SIDE_WEIGHT : 0;
    for (unsigned i = 0; i < N_DMATRIX_VECTORS; i++)
        has |= m->vector[i].per_row ? (unsigned)STORED << i : 0;
    return has;
}

/* A side file replaces a column. */
static unsigned libsvm_file_has(const struct libsvm_file *file)
{
    const struct libsvm_side *side = file->side;
    unsigned has = TEXT | (file->columns & LIBSVM_FIELD ? FIELD : 0u);

    if (file->matrix)
        return matrix_has(file->matrix);

    if (side[LIBSVM_SIDE_WEIGHT].blob)
        has |= SIDE_WEIGHT;
    else if (file->columns & LIBSVM_WEIGHT)
        has |= WEIGHT;
    if (side[LIBSVM_SIDE_GROUP].blob)
        has |= SIDE_GROUP;
    else if (file->columns & LIBSVM_QID)
        has |= QID;
    return side[LIBSVM_SIDE_MARGIN].blob ? has | SIDE_MARGIN : has;
}

/* Set where the files have the numbers of a field. */
static void set_stored(struct dataset *ds, struct field *f, enum dmatrix_vector_type vector)
{
    const struct libsvm_rows *rows = libsvm_rows_of(ds);
    struct field_run *run = rows->run + vector * rows->shards.n;
    uint64_t first = 0;

    for (unsigned i = 0; i < rows->shards.n; i++) {
        const struct libsvm_file *file = libsvm_rows_file(rows, i);

        run[i] = (struct field_run){first, file->base.blob, file->matrix->vector[vector].at};
        first += file->matrix->rows;
    }
    f->blob = run->blob;
    f->offset = run->offset;
    f->run = run;
    f->n_runs = rows->shards.n;
    f->dim[0] = libsvm_rows_file(rows, 0)->matrix->vector[vector].per_row;
    f->ndim = f->dim[0] > 1;
    f->item_bytes = f->width * f->dim[0];
    f->stored_dtype = f->dtype;
    f->stored_width = f->width;
    f->stored_bytes = f->item_bytes;
}

/* Add a field with items of up to one axis; its length is known later, unless it is stored. */
static int libsvm_add_field(struct dataset *ds, const struct libsvm_field *shown)
{
    static const unsigned shown_in[] = {
        [LIBSVM_OFFERS_ITEM] = IN_ARRAYS | IN_COLUMNS,
        [LIBSVM_OFFERS_DENSE] = IN_NPY_SAMPLES | IN_NPY_BATCHES | IN_PAGES,
        [LIBSVM_OFFERS_MEMBER] = IN_NPZ_SAMPLES | IN_NPZ_BATCHES,
        [LIBSVM_OFFERS_COLUMN] = IN_COLUMNS,
        [LIBSVM_OFFERS_BY_ROW] = IN_CSC,
        [LIBSVM_OFFERS_BY_VALUE] = IN_CSC_VALUE,
        [LIBSVM_OFFERS_TEXT] = IN_ARRAYS | IN_COLUMNS,
    };
    struct field *f = &ds->field[ds->n_fields];
    bool is_member = shown->ops == &libsvm_matrix_ops;

    *f = (struct field){
        .ops = shown->ops,
        .impl = shown,
        .in = shown_in[shown->offer],
        .form = is_member ? FORM_WHOLE : FORM_ITEM,
        .derived = shown->offer == LIBSVM_OFFERS_DENSE,
        .dtype = shown->dtype,
        .width = dtype_info(shown->dtype)->bytes,
        .item_bytes = dtype_info(shown->dtype)->bytes,
        .dim = calloc(1, sizeof(*f->dim)),
    };
    if (shown->offer == LIBSVM_OFFERS_TEXT) {
        field_offer_bytes(f, "svm", "svm", IN_FILES);
        f->unnamed = true;
    }
    snprintf(f->name, sizeof(f->name), "%s", shown->name);
    if (!f->dim)
        return -ENOMEM;
    ds->n_fields++;
    if (shown->content == LIBSVM_SHOWS_STORED)
        set_stored(ds, f, shown->vector);
    return 0;
}

int libsvm_fields_init(struct dataset *ds)
{
    const unsigned has = libsvm_file_has(libsvm_rows_file(libsvm_rows_of(ds), 0));
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(fields) && r == 0; i++)
        if (!fields[i].needs || fields[i].needs & has)
            r = libsvm_add_field(ds, &fields[i]);
    if (r < 0)
        return r;
    dataset_add_numbering(ds);
    for (unsigned i = 0; i < ds->n_fields; i++)
        ds->field[i].in |= ds->field[i].numbering ? IN_COLUMNS : 0;
    return 0;
}

void libsvm_fields_finish(struct dataset *ds)
{
    const struct libsvm_rows *rows = libsvm_rows_of(ds);
    const uint64_t axis[] = {
        [LIBSVM_SHOWS_X] = rows->features,
        [LIBSVM_SHOWS_LABEL] = rows->labels,
        [LIBSVM_SHOWS_MARGIN] = libsvm_rows_file(rows, 0)->side[LIBSVM_SIDE_MARGIN].per_row,
    };

    for (unsigned i = 0; i < ds->n_fields; i++) {
        struct field *f = &ds->field[i];
        const struct libsvm_field *shown = f->impl;

        if (!shown || shown->content >= ARRAY_LEN(axis) ||
            (shown->content != LIBSVM_SHOWS_X && axis[shown->content] < 2))
            continue;
        f->ndim = 1;
        f->dim[0] = axis[shown->content];
        f->item_bytes = f->width * f->dim[0];
    }
}
