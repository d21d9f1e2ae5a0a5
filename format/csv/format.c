/* CSV: tables of numbers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/read_context.h"
#include "format/core/siblings.h"
#include "format/csv/file.h"
#include "format/csv/row.h"
#include "format/text/row.h"

extern const struct format format_csv;

#define ON_STACK 4096 /* bytes of the numbers of a row */
#define AT_ONCE  64   /* rows that are read together */

/* Bytes of a number as it is shown. */
static size_t width(const struct csv_file *file)
{
    return file->doubles ? sizeof(double) : sizeof(float);
}

/* Bytes of the numbers of a row: see read_rows(). */
static size_t numbers_bytes(const struct csv_file *file)
{
    return (file->shape.columns - file->shape.omitted) * width(file);
}

/* ---- the contents of a row ---- */

static int csv_dims(const void *p, uint64_t row, unsigned column, uint64_t ret[static RECORD_AXES],
                    struct diag *d)
{
    const struct csv_file *file = p;
    const struct record_column *c = &file->base.column[column];

    (void)d;
    if (c->shown == RECORD_NUMBERS)
        ret[0] = c->ndim ? c->dim[0] : 1;
    else
        ret[0] = record_file_place(p, row).len;
    return 0;
}

static bool csv_extent(const void *p, uint64_t row, unsigned column, struct extent *ret)
{
    (void)column;
    *ret = record_file_place(p, row);
    return ret->len > 0;
}

static int csv_verify(struct read_context *rc, const void *p, uint64_t row, struct diag *d)
{
    const struct csv_file *file = p;
    const struct extent line = record_file_place(p, row);

    return text_row_verify(rc, line.blob, file->shape.rows_at, line.off, line.len, true, d);
}

/* Rows that are read, and where their numbers go. */
struct reading {
    const struct csv_file *file;
    struct extent line[AT_ONCE];
    void *value; /* [columns] of a row: float or double */
    uint8_t *dst;
    unsigned first, n_dst; /* see read_rows() */
};

/* Number i of a row. Returns the byte behind it. */
static uint8_t *store_number(const struct reading *reading, size_t i, uint8_t *dst)
{
    uint64_t bits;
    uint32_t half;

    if (reading->file->doubles) {
        memcpy(&bits, (const double *)reading->value + i, sizeof(bits));
        store_le64(dst, bits);
        return dst + sizeof(bits);
    }
    memcpy(&half, (const float *)reading->value + i, sizeof(half));
    store_le32(dst, half);
    return dst + sizeof(half);
}

/* Parse a row, and store its numbers as read_rows() has them: the features, the label, the
 * weight. */
static int csv_read_row(void *ctx, unsigned row, const uint8_t *text, struct diag *d)
{
    const struct reading *reading = ctx;
    const struct extent *line = &reading->line[row];
    const struct csv_shape *s = &reading->file->shape;
    const size_t last[] = {s->label, s->weight}, at = reading->first + row;
    const size_t each = width(reading->file), features = (size_t)csv_features(s) * each;
    uint8_t *dst = reading->dst + at * features;
    size_t bad, n;

    n = reading->file->doubles
            ? csv_parse_doubles(text, (size_t)line->len, s->delimiter, reading->value, s->columns,
                                &bad)
            : csv_parse(text, (size_t)line->len, s->delimiter, reading->value, s->columns, &bad);
    if (n != s->columns || bad < s->columns)
        return diag_set(d, -ESTALE, "%s: byte %llu: expected the row of the index, got another",
                        blob_name(line->blob), (unsigned long long)line->off);
    for (size_t i = 0; i < s->columns; i++)
        if (csv_is_feature(s, i))
            dst = store_number(reading, i, dst);
    dst = reading->dst + reading->n_dst * features;
    for (size_t k = 0; k < ARRAY_LEN(last); k++)
        if (last[k] != CSV_NONE) {
            store_number(reading, last[k], dst + at * each);
            dst += reading->n_dst * each;
        }
    return 0;
}

/* All numbers of the rows; the columns are all that are of numbers. */
static int csv_read_rows(struct read_context *rc, const void *p, const uint64_t *row, unsigned n,
                         uint8_t *dst, unsigned first, unsigned n_dst, struct diag *d)
{
    const struct csv_file *file = p;
    AUTO_FREE void *value = malloc(file->shape.columns * width(file));
    struct reading reading = {
        .file = file, .value = value, .dst = dst, .first = first, .n_dst = n_dst};
    int all = value ? 0 : -ENOMEM;

    for (unsigned i = 0, some; i < n && value; i += some) {
        some = (unsigned)min_u64(n - i, AT_ONCE);
        for (unsigned k = 0; k < some; k++)
            reading.line[k] = record_file_place(p, row[i + k]);
        if (!missing_go_on(rc, text_rows_parse(rc, reading.line, some, csv_read_row, &reading, d),
                           &all))
            break;
        reading.first += some;
    }
    return all;
}

static int csv_read(struct read_context *rc, const void *p, uint64_t row, unsigned column,
                    uint64_t off, size_t len, uint8_t *dst, struct diag *d)
{
    const struct csv_file *file = p;
    const struct record_column *c = &file->base.column[column];
    uint8_t few[ON_STACK], *numbers = few;
    AUTO_FREE uint8_t *more = NULL;
    uint64_t at = 0;
    int r;

    if (c->shown != RECORD_NUMBERS)
        return blob_read(rc, file->base.blob, dst, len, record_file_place(p, row).off + off, d);
    if (numbers_bytes(file) > sizeof(few))
        numbers = more = malloc(numbers_bytes(file));
    if (!numbers)
        return -ENOMEM;
    r = csv_read_rows(rc, file, &row, 1, numbers, 0, 1, d);
    for (const struct record_column *before = file->base.column; before < c; before++)
        if (before->shown == RECORD_NUMBERS)
            at += width(file) * (before->ndim ? before->dim[0] : 1);
    if (r == 0)
        memcpy(dst, numbers + at + off, len);
    return r;
}

static void csv_note(const void *p, struct text *t)
{
    const struct csv_file *file = p;

    if (file->shape.note.len)
        text_add(t, "%s", file->shape.note.data);
    text_add(t, "%s", file->rounded);
}

static void csv_joined(const void *p, const void *other, struct text *t)
{
    const struct csv_file *a = p, *b = other;

    if (a->shape.has_header && !b->shape.has_header)
        text_add(t, "%s: has no names of columns: they are used in the order of %s\n",
                 blob_name(b->base.blob), blob_name(a->base.blob));
}

static void csv_add_names(const struct csv_shape *shape, struct text *t)
{
    const char *name = shape->names.data;

    if (!shape->has_header)
        text_add(t, "no names");
    for (size_t i = 0; i < shape->columns && shape->has_header; i++, name += strlen(name) + 1)
        text_add(t, "%s%s", i ? "," : "", name);
    if (t->data)
        text_plain(t->data, "");
}

/* Columns are joined by their names where both files have names; otherwise by their places. */
static bool same_names(const struct csv_shape *a, const struct csv_shape *b)
{
    return !b->has_header || (a->has_header && a->names.len == b->names.len &&
                              !memcmp(a->names.data, b->names.data, a->names.len));
}

static int csv_joins(const void *p, const void *other, struct diag *d)
{
    const struct csv_file *a = p, *b = other;
    const struct csv_shape *one = &a->shape, *two = &b->shape;
    AUTO_TEXT struct text first = {0}, second = {0};

    if ((one->is_keyed_list || two->is_keyed_list) &&
        !are_siblings(blob_name(a->base.blob), blob_name(b->base.blob)))
        return diag_set(
            d, -EDOM,
            "%s: rows of a number that counts them and another one are a list about "
            "something else: the files of this folder are not one table. A list of files, "
            "'a.csv;b.csv', joins what it names",
            blob_name(two->is_keyed_list ? b->base.blob : a->base.blob));
    if (one->columns != two->columns)
        return diag_set(
            d, -EDOM, "%s: has %zu columns, %s has %zu: the files of this folder are not one table",
            blob_name(b->base.blob), two->columns, blob_name(a->base.blob), one->columns);
    if (!same_names(one, two)) {
        csv_add_names(one, &first);
        csv_add_names(two, &second);
        return diag_set(d, -EDOM,
                        "%s: its columns are not those of %s in the same order: expected %.400s, "
                        "got %.400s. The files of this folder are not one table",
                        blob_name(b->base.blob), blob_name(a->base.blob),
                        first.data ? first.data : "", second.data ? second.data : "");
    }
    if (one->omitted != two->omitted)
        return diag_set(d, -EDOM,
                        "%s: %zu of its columns number the rows, %zu in %s: the files of this "
                        "folder are not one table",
                        blob_name(b->base.blob), two->omitted, one->omitted,
                        blob_name(a->base.blob));
    if (one->label != two->label || one->weight != two->weight)
        return diag_set(d, -EDOM,
                        "%s: has its label or weight in another column than %s: the files of this "
                        "folder are not one table. -o label_column= and -o weight_column= with "
                        "numbers say it for files without names",
                        blob_name(b->base.blob), blob_name(a->base.blob));
    return 0;
}

/* ---- the format ---- */

static const struct csv_file *csv_file_of(const struct record_file *file)
{
    return (const struct csv_file *)file;
}

/* The names of columns are those of the first file. */
static void column_names(struct record_file *const *files, unsigned n, struct text *t)
{
    const struct csv_file *first = csv_file_of(files[0]);
    const struct csv_shape *s = &first->shape;
    size_t at = 0;

    (void)n;
    for (size_t i = 0; i < s->columns && at < s->names.len && s->has_header; i++) {
        if (csv_is_feature(s, i))
            json_add_text(t, NULL, NULL, s->names.data + at);
        at += strlen(s->names.data + at) + 1;
    }
}

/* The counts that XGBoost keeps of a table. */
static void csv_describe(struct record_file *const *files, unsigned n, const char *indent,
                         struct text *t)
{
    const struct csv_file *first = csv_file_of(files[0]);
    const struct csv_shape *s = &first->shape;
    uint64_t features = csv_features(s);
    uint64_t rows = 0, missing = 0;

    for (unsigned i = 0; i < n; i++) {
        const struct csv_file *file = csv_file_of(files[i]);

        rows += file->base.prepared.index.rows;
        missing += min_u64(file->missing, file->base.prepared.index.rows * features);
    }
    json_add_number(t, indent, "num_row", rows);
    json_add_number(t, indent, "num_col", features);
    json_add_number(t, indent, "num_nonzero", rows * features - missing);
    if (!s->has_header)
        return;
    json_open(t, indent, "columns", "[");
    column_names(files, n, t);
    json_close(t, indent, "]");
}

static bool calls_label(const void *file, const char *name)
{
    const struct csv_shape *s = &csv_file_of(file)->shape;

    return s->label != CSV_NONE && csv_shape_column(s, name) == s->label;
}

const struct record_format csv_records = {
    .format = &format_csv,
    .file = &csv_file_ops,
    .has_groups = true,
    .text_folder = "csv",
    .dims = csv_dims,
    .extent = csv_extent,
    .joins = csv_joins,
    .joined = csv_joined,
    .read_rows = csv_read_rows,
    .read = csv_read,
    .verify = csv_verify,
    .note = csv_note,
    .check = csv_check,
    .describe = csv_describe,
    .column_names = column_names,
    .calls_label = calls_label,
};

static int csv_open_folder(struct source_file *files, size_t n, const struct format_setup *setup,
                           struct finds *finds)
{
    int r = csv_decide(files, n, setup);

    return r < 0 ? r : record_set_open_folder(&csv_records, files, n, setup, finds);
}

static const char *csv_option(const struct format_options *options)
{
    return options->label_column    ? "label_column"
           : options->weight_column ? "weight_column"
           : options->delimiter     ? "csv_delimiter"
           : options->comment       ? "csv_comment"
           : options->header        ? "csv_header"
           : options->doubles       ? "csv_dtype"
                                    : NULL;
}

const struct format format_csv = {
    .name = "csv",
    .probe = csv_probe,
    .open_folder = csv_open_folder,
    .hint = csv_hint,
    .option = csv_option,
    .has_empty_files = true,
    .title = "CSV of numbers",
    .example = "  batch = np.load(root + '/batches/batch=1024,seed=7/epoch=0/npz/000000.npz')\n"
               "  x = batch['x']\n",
};
