/* The fields of libsvm text: arrays with an item per row (label, weight, qid, base_margin, x), the
 * five members of a CSR matrix as scipy.sparse.save_npz writes it, and the text. */
#include "format/libsvm/rows.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/missing_ranges.h"
#include "format/core/sample_window.h"

#define INT32_SIZE (UINT64_C(1) << 31)

static const char csr[3] = {'c', 's', 'r'};

/* ---- numbers as little-endian bytes ---- */

/* Copy bytes [off, off + len) of an array; make() gives its elements one by one. */
static void copy_made(void (*make)(const void *of, uint64_t i, uint8_t ret[static 8]),
                      const void *of, unsigned width, uint64_t off, size_t len, uint8_t *dst)
{
    while (len) {
        unsigned skip = (unsigned)(off % width);
        size_t n = (size_t)min_u64(len, width - skip);
        uint8_t bytes[8];

        make(of, off / width, bytes);
        memcpy(dst, bytes + skip, n);
        dst += n;
        off += n;
        len -= n;
    }
}

static void make_u32(const void *of, uint64_t i, uint8_t ret[static 8])
{
    store_le32(ret, ((const uint32_t *)of)[i]);
}

static void make_u64(const void *of, uint64_t i, uint8_t ret[static 8])
{
    store_le64(ret, ((const uint64_t *)of)[i]);
}

static void make_widened(const void *of, uint64_t i, uint8_t ret[static 8])
{
    store_le64(ret, ((const uint32_t *)of)[i]);
}

/* Copy bytes of an array of numbers of width 4 or 8. */
static void copy_numbers(const void *of, unsigned width, uint64_t off, size_t len, uint8_t *dst)
{
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        memcpy(dst, (const uint8_t *)of + off, len);
    else
        copy_made(width == 4 ? make_u32 : make_u64, of, width, off, len, dst);
}

/* ---- arrays with an item per row ---- */

/* Copy bytes [off, off + len) of the slab's items. */
typedef void slab_copy_fn(const struct dataset *ds, const struct field *f,
                          const struct libsvm_slab *slab, uint64_t off, size_t len, uint8_t *dst);

/* The ops of a field that is read from slabs. */
struct slab_ops {
    struct field_ops ops;
    slab_copy_fn *copy;
};

static int read_items(const struct dataset *ds, const struct field *f, const struct selection *sel,
                      uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct slab_ops *ops = (const struct slab_ops *)f->ops;
    AUTO_LIBSVM_VIEW struct libsvm_view v = {0};
    int r = libsvm_view_open(&v, libsvm_rows_of(ds), sel), all = r;

    while (len && r == 0) {
        AUTO_MEMO struct memo_thing *thing = NULL;
        const struct libsvm_slab *slab = NULL;
        uint64_t place = off / f->item_bytes;
        size_t n = (size_t)min_u64(len, libsvm_view_slab_end(&v, place) * f->item_bytes - off);

        if (!missing_go_on(libsvm_view_slab(&v, place, &slab, &thing, d), &all))
            break;
        if (slab)
            ops->copy(ds, f, slab, off - slab->first * f->item_bytes, n, dst);
        dst += n;
        off += n;
        len -= n;
    }
    return all;
}

static void copy_label(const struct dataset *ds, const struct field *f,
                       const struct libsvm_slab *slab, uint64_t off, size_t len, uint8_t *dst)
{
    (void)ds;
    (void)f;
    copy_numbers(slab->label, 4, off, len, dst);
}

static void copy_weight(const struct dataset *ds, const struct field *f,
                        const struct libsvm_slab *slab, uint64_t off, size_t len, uint8_t *dst)
{
    (void)ds;
    (void)f;
    copy_numbers(slab->weight, 4, off, len, dst);
}

static void copy_qid(const struct dataset *ds, const struct field *f,
                     const struct libsvm_slab *slab, uint64_t off, size_t len, uint8_t *dst)
{
    (void)ds;
    (void)f;
    copy_numbers(slab->qid, 8, off, len, dst);
}

/* Add the features of row i of the slab that lie in its dense bytes [from, to) to the bytes at
 * dst. */
static void add_dense(const struct libsvm_slab *slab, unsigned i, uint64_t from, uint64_t to,
                      uint8_t *dst)
{
    uint64_t k = i ? slab->end[i - 1] : 0, end = slab->end[i];

    while (k < end) {
        uint32_t index = slab->index[k];
        uint64_t at = UINT64_C(4) * index;
        uint8_t bytes[4];
        float sum = 0;
        uint32_t bits;

        for (; k < end && slab->index[k] == index; k++)
            sum += slab->value[k];
        if (at + 4 <= from)
            continue;
        if (at >= to)
            return;
        memcpy(&bits, &sum, sizeof(bits));
        store_le32(bytes, bits);
        for (unsigned b = 0; b < 4; b++)
            if (at + b >= from && at + b < to)
                dst[at + b - from] = bytes[b];
    }
}

static void copy_x(const struct dataset *ds, const struct field *f, const struct libsvm_slab *slab,
                   uint64_t off, size_t len, uint8_t *dst)
{
    (void)ds;
    memset(dst, 0, len);
    while (len) {
        uint64_t from = off % f->item_bytes;
        size_t n = (size_t)min_u64(len, f->item_bytes - from);

        add_dense(slab, (unsigned)(off / f->item_bytes), from, from + n, dst);
        dst += n;
        off += n;
        len -= n;
    }
}

/* ---- side files ---- */

/* The item of one row. */
typedef void side_item_fn(const struct libsvm_rows *rows, const struct libsvm_row_at *at,
                          uint8_t *dst);

static void side_weight(const struct libsvm_rows *rows, const struct libsvm_row_at *at,
                        uint8_t *dst)
{
    float v = libsvm_side_weight(at->file->side, at->row);

    (void)rows;
    copy_numbers(&v, 4, 0, 4, dst);
}

/* Groups have running numbers over all files. */
static void side_group(const struct libsvm_rows *rows, const struct libsvm_row_at *at, uint8_t *dst)
{
    store_le64(dst, rows->groups[at->number] +
                        libsvm_side_group(&at->file->side[LIBSVM_SIDE_GROUP], at->row));
}

static void side_margin(const struct libsvm_rows *rows, const struct libsvm_row_at *at,
                        uint8_t *dst)
{
    const struct libsvm_side *side = &at->file->side[LIBSVM_SIDE_MARGIN];

    (void)rows;
    copy_numbers(side->value + at->row * side->per_row, 4, 0, (size_t)side->per_row * 4, dst);
}

/* The ops of a field that is read from side files. */
struct side_ops {
    struct field_ops ops;
    enum libsvm_side_kind kind;
    side_item_fn *item;
};

static int read_side(const struct dataset *ds, const struct field *f, const struct selection *sel,
                     uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct side_ops *ops = (const struct side_ops *)f->ops;
    const struct libsvm_rows *rows = libsvm_rows_of(ds);
    int r = libsvm_rows_side(rows, ops->kind, d);
    AUTO_FREE uint8_t *bytes = r == 0 ? malloc(f->item_bytes) : NULL;
    struct sample_window window = {.sel = sel};

    if (r < 0 || !bytes)
        return r < 0 ? r : -ENOMEM;
    while (len) {
        uint64_t skip = off % f->item_bytes;
        size_t n = (size_t)min_u64(len, f->item_bytes - skip);
        struct libsvm_row_at at;

        at = libsvm_rows_find(rows, sample_window_at(&window, off / f->item_bytes));
        ops->item(rows, &at, bytes);
        memcpy(dst, bytes + skip, n);
        dst += n;
        off += n;
        len -= n;
    }
    return 0;
}

/* ---- the matrix ---- */

/* The sums over all rows of the selection. */
static int total_sums(const struct dataset *ds, const struct selection *sel, struct row_sums *ret)
{
    AUTO_LIBSVM_VIEW struct libsvm_view v = {0};
    int r = libsvm_view_open(&v, libsvm_rows_of(ds), sel);

    if (r == 0)
        *ret = libsvm_view_sums(&v, libsvm_view_blocks(&v));
    return r;
}

static void set_form(struct form *ret, enum dtype dtype, uint64_t dim)
{
    ret->dtype = dtype;
    ret->width = dtype_info(dtype)->bytes;
    ret->ndim = 1;
    ret->dim[0] = dim;
}

static int form_data(const struct dataset *ds, const struct field *f, const struct selection *sel,
                     struct form *ret)
{
    struct row_sums sums = {0};
    int r = total_sums(ds, sel, &sums);

    (void)f;
    set_form(ret, DTYPE_F4, sums.features);
    return r;
}

static int form_indices(const struct dataset *ds, const struct field *f,
                        const struct selection *sel, struct form *ret)
{
    struct row_sums sums = {0};
    int r = total_sums(ds, sel, &sums);

    (void)f;
    set_form(ret, libsvm_rows_of(ds)->features > INT32_SIZE ? DTYPE_I8 : DTYPE_I4, sums.features);
    return r;
}

static int form_indptr(const struct dataset *ds, const struct field *f, const struct selection *sel,
                       struct form *ret)
{
    struct row_sums sums = {0};
    int r = total_sums(ds, sel, &sums);

    (void)f;
    set_form(ret, sums.features >= INT32_SIZE ? DTYPE_I8 : DTYPE_I4, sel->count + 1);
    return r;
}

static int form_format(const struct dataset *ds, const struct field *f, const struct selection *sel,
                       struct form *ret)
{
    (void)ds;
    (void)f;
    (void)sel;
    ret->dtype = DTYPE_TEXT;
    ret->width = sizeof(csr);
    ret->ndim = 0;
    return 0;
}

static int form_shape(const struct dataset *ds, const struct field *f, const struct selection *sel,
                      struct form *ret)
{
    (void)ds;
    (void)f;
    (void)sel;
    set_form(ret, DTYPE_I8, 2);
    return 0;
}

/* Copy bytes of the slab's elements. */
typedef void slab_elements_fn(const struct libsvm_slab *slab, uint64_t off, size_t len,
                              uint8_t *dst);

static void copy_values(const struct libsvm_slab *slab, uint64_t off, size_t len, uint8_t *dst)
{
    copy_numbers(slab->value, 4, off, len, dst);
}

static void copy_indices(const struct libsvm_slab *slab, uint64_t off, size_t len, uint8_t *dst)
{
    copy_numbers(slab->index, 4, off, len, dst);
}

static void copy_wide_indices(const struct libsvm_slab *slab, uint64_t off, size_t len,
                              uint8_t *dst)
{
    copy_made(make_widened, slab->index, 8, off, len, dst);
}

static int read_elements(const struct dataset *ds, const struct selection *sel, unsigned width,
                         slab_elements_fn *copy, uint64_t off, size_t len, uint8_t *dst,
                         struct diag *d)
{
    AUTO_LIBSVM_VIEW struct libsvm_view v = {0};
    int r = libsvm_view_open(&v, libsvm_rows_of(ds), sel), all = r;

    while (len && r == 0) {
        AUTO_MEMO struct memo_thing *thing = NULL;
        const struct libsvm_slab *slab = NULL;
        uint64_t end, place = libsvm_view_feature_place(&v, off / width, &end);
        size_t n = (size_t)min_u64(len, end * width - off);

        if (!missing_go_on(libsvm_view_slab(&v, place, &slab, &thing, d), &all))
            break;
        if (slab)
            copy(slab, off - slab->features_before * width, n, dst);
        dst += n;
        off += n;
        len -= n;
    }
    return all;
}

static int read_data(const struct dataset *ds, const struct field *f, const struct selection *sel,
                     uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    (void)f;
    return read_elements(ds, sel, 4, copy_values, off, len, dst, d);
}

static int read_indices(const struct dataset *ds, const struct field *f,
                        const struct selection *sel, uint64_t off, size_t len, uint8_t *dst,
                        struct diag *d)
{
    bool wide = libsvm_rows_of(ds)->features > INT32_SIZE;

    (void)f;
    return read_elements(ds, sel, wide ? 8 : 4, wide ? copy_wide_indices : copy_indices, off, len,
                         dst, d);
}

/* indptr: the sums before each row, and over all. */
static int read_indptr(const struct dataset *ds, const struct field *f, const struct selection *sel,
                       uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    AUTO_LIBSVM_VIEW struct libsvm_view v = {0};
    uint64_t sums[LIBSVM_BLOCK + 1];
    unsigned width;
    int r = libsvm_view_open(&v, libsvm_rows_of(ds), sel);

    (void)f;
    (void)d;
    if (r < 0)
        return r;
    width = libsvm_view_sums(&v, libsvm_view_blocks(&v)).features >= INT32_SIZE ? 8 : 4;
    while (len) {
        struct libsvm_row_at row[LIBSVM_BLOCK];
        uint64_t block = min_u64(off / width / LIBSVM_BLOCK,
                                 libsvm_view_blocks(&v) ? libsvm_view_blocks(&v) - 1 : 0);
        uint64_t start = block * LIBSVM_BLOCK * width;
        unsigned rows = 0;
        size_t n;

        if (sel->count)
            libsvm_view_rows(&v, block, row, &rows);
        sums[0] = libsvm_view_sums(&v, block).features;
        for (unsigned i = 0; i < rows; i++)
            sums[i + 1] = sums[i] + row[i].place.features;
        n = (size_t)min_u64(len, start + (rows + UINT64_C(1)) * width - off);
        if (width == 8) {
            copy_numbers(sums, 8, off - start, n, dst);
        } else {
            uint32_t narrow[LIBSVM_BLOCK + 1];

            for (unsigned i = 0; i <= rows; i++)
                narrow[i] = (uint32_t)sums[i];
            copy_numbers(narrow, 4, off - start, n, dst);
        }
        dst += n;
        off += n;
        len -= n;
    }
    return 0;
}

static int read_format(const struct dataset *ds, const struct field *f, const struct selection *sel,
                       uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    (void)ds;
    (void)f;
    (void)sel;
    (void)d;
    memcpy(dst, csr + off, len);
    return 0;
}

static int read_shape(const struct dataset *ds, const struct field *f, const struct selection *sel,
                      uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const uint64_t shape[2] = {sel->count, libsvm_rows_of(ds)->features};

    (void)f;
    (void)d;
    copy_numbers(shape, 8, off, len, dst);
    return 0;
}

/* ---- text ---- */

static int form_row(const struct dataset *ds, const struct field *f, const struct selection *sel,
                    struct form *ret)
{
    struct row_sums sums = {0};
    int r = total_sums(ds, sel, &sums);

    (void)f;
    ret->dtype = DTYPE_TEXT;
    ret->width = 1;
    ret->ndim = 1;
    ret->dim[0] = sums.text;
    return r;
}

/* The number of rows, from the first on, that are adjacent in the file, with one byte between
 * them. */
static unsigned run_of_rows(const struct libsvm_row_at *row, unsigned n, uint64_t off, size_t len)
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
static int copy_run(const struct libsvm_row_at *row, unsigned n, uint64_t off, size_t len,
                    uint8_t *dst, size_t *ret_len, struct diag *d)
{
    const struct blob *blob = row->file->blob;
    uint64_t start = row->place.start, text;
    size_t bytes;
    int r;

    n = run_of_rows(row, n, off, len);
    text = row[n - 1].place.start + row[n - 1].place.len -
           start; /* without the end of the last line */
    *ret_len = (size_t)min_u64(len, text + 1 - off);
    bytes = (size_t)(off < text ? min_u64(*ret_len, text - off) : 0);
    r = bytes ? blob_read(blob, dst, bytes, start + off, d) : 0;
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
static int copy_rows(const struct libsvm_row_at *row, unsigned n, uint64_t off, size_t len,
                     uint8_t *dst, size_t *ret_len, struct diag *d)
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
        if (!missing_go_on(copy_run(row + i, n - i, off, len, dst, &part, d), &all))
            break;
        dst += part;
        len -= part;
        off += part;
        *ret_len += part;
    }
    return all;
}

static int read_row(const struct dataset *ds, const struct field *f, const struct selection *sel,
                    uint64_t off, size_t len, uint8_t *dst, struct diag *d)
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
        if (!missing_go_on(
                copy_rows(row, n, off - libsvm_view_sums(&v, block).text, len, dst, &made, d),
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

static const struct slab_ops label_ops = {{.read = read_items}, copy_label};
static const struct slab_ops weight_ops = {{.read = read_items}, copy_weight};
static const struct slab_ops qid_ops = {{.read = read_items}, copy_qid};
static const struct slab_ops x_ops = {{.read = read_items}, copy_x};
static const struct side_ops side_weight_ops = {
    {.read = read_side}, LIBSVM_SIDE_WEIGHT, side_weight};
static const struct side_ops side_group_ops = {{.read = read_side}, LIBSVM_SIDE_GROUP, side_group};
static const struct side_ops margin_ops = {{.read = read_side}, LIBSVM_SIDE_MARGIN, side_margin};
static const struct field_ops data_ops = {read_data, form_data};
static const struct field_ops indices_ops = {read_indices, form_indices};
static const struct field_ops indptr_ops = {read_indptr, form_indptr};
static const struct field_ops format_ops = {read_format, form_format};
static const struct field_ops shape_ops = {read_shape, form_shape};
static const struct field_ops row_ops = {read_row, form_row};

bool libsvm_field_reads_rows(const struct field *f)
{
    return f->ops->read == read_items || f->ops == &data_ops || f->ops == &indices_ops ||
           f->ops == &row_ops;
}

/* Add a field with items of up to one axis; its length is known later. */
static int add_field(struct dataset *ds, const char *name, enum field_role role,
                     const struct field_ops *ops, enum dtype dtype)
{
    struct field *f = &ds->field[ds->n_fields];

    *f = (struct field){.role = role, .unnamed = role == FIELD_TEXT, .ops = ops, .dtype = dtype};
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
    const struct libsvm_file *file = libsvm_rows_of(ds)->file[0];
    const struct libsvm_side *side = file->side;
    const struct {
        bool is_there;
        const char *name;
        enum field_role role;
        const struct field_ops *ops;
        enum dtype dtype;
    } fields[] = {
        {true, "label", FIELD_PARSED, &label_ops.ops, DTYPE_F4},
        {side[LIBSVM_SIDE_WEIGHT].blob, "weight", FIELD_PARSED, &side_weight_ops.ops, DTYPE_F4},
        {!side[LIBSVM_SIDE_WEIGHT].blob && file->columns & LIBSVM_WEIGHT, "weight", FIELD_PARSED,
         &weight_ops.ops, DTYPE_F4},
        {side[LIBSVM_SIDE_GROUP].blob, "qid", FIELD_PARSED, &side_group_ops.ops, DTYPE_I8},
        {!side[LIBSVM_SIDE_GROUP].blob && file->columns & LIBSVM_QID, "qid", FIELD_PARSED,
         &qid_ops.ops, DTYPE_I8},
        {side[LIBSVM_SIDE_MARGIN].blob, "base_margin", FIELD_PARSED, &margin_ops.ops, DTYPE_F4},
        {true, "x", FIELD_DERIVED, &x_ops.ops, DTYPE_F4},
        {true, "data", FIELD_MEMBER, &data_ops, DTYPE_F4},
        {true, "indices", FIELD_MEMBER, &indices_ops, DTYPE_I4},
        {true, "indptr", FIELD_MEMBER, &indptr_ops, DTYPE_I4},
        {true, "format", FIELD_MEMBER, &format_ops, DTYPE_TEXT},
        {true, "shape", FIELD_MEMBER, &shape_ops, DTYPE_I8},
        {true, "row", FIELD_TEXT, &row_ops, DTYPE_TEXT},
    };

    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        int r = fields[i].is_there
                    ? add_field(ds, fields[i].name, fields[i].role, fields[i].ops, fields[i].dtype)
                    : 0;

        if (r < 0)
            return r;
    }
    dataset_add_numbering(ds);
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
    uint64_t margins = rows->file[0]->side[LIBSVM_SIDE_MARGIN].per_row;

    for (unsigned i = 0; i < ds->n_fields; i++) {
        struct field *f = &ds->field[i];

        if (f->ops == &x_ops.ops)
            set_axis(f, rows->features);
        if (f->ops == &label_ops.ops && rows->labels > 1)
            set_axis(f, rows->labels);
        if (f->ops == &margin_ops.ops && margins > 1)
            set_axis(f, margins);
    }
}
