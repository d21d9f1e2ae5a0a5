#include "format/csv/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/read_context.h"
#include "format/core/siblings.h"
#include "format/csv/head.h"
#include "format/csv/row.h"
#include "format/text/row.h"

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

int csv_dims(const void *p, uint64_t row, unsigned column, uint64_t ret[static RECORD_AXES],
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

bool csv_extent(const void *p, uint64_t row, unsigned column, struct extent *ret)
{
    (void)column;
    *ret = record_file_place(p, row);
    return ret->len > 0;
}

int csv_verify(struct read_context *rc, const void *p, uint64_t row, struct diag *d)
{
    const struct csv_file *file = p;
    const struct extent line = record_file_place(p, row);

    return text_row_verify(rc, line.blob, file->shape.rows_at, line.off, line.len, true, d);
}

/* Rows that are read, and where their numbers go. */
struct reading {
    const struct csv_file *file;
    struct extent line[AT_ONCE];
    void *value;  /* [columns] of a row: float or double */
    uint8_t *dst; /* [rows][numbers_bytes()] */
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
    const size_t last[] = {s->label, s->weight};
    uint8_t *dst = reading->dst + row * numbers_bytes(reading->file);
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
    for (size_t k = 0; k < ARRAY_LEN(last); k++)
        if (last[k] != CSV_NONE)
            dst = store_number(reading, last[k], dst);
    return 0;
}

/* All numbers of the rows; the columns are all that are of numbers. */
int csv_read_rows(struct read_context *rc, const void *p, const uint64_t *row, unsigned n,
                  const unsigned *column, unsigned n_columns, uint8_t *dst, struct diag *d)
{
    const struct csv_file *file = p;
    AUTO_FREE void *value = malloc(file->shape.columns * width(file));
    struct reading reading = {.file = file, .value = value, .dst = dst};
    int all = value ? 0 : -ENOMEM;

    (void)column;
    (void)n_columns;
    for (unsigned i = 0, some; i < n && value; i += some) {
        some = (unsigned)min_u64(n - i, AT_ONCE);
        for (unsigned k = 0; k < some; k++)
            reading.line[k] = record_file_place(p, row[i + k]);
        if (!missing_go_on(rc, text_rows_parse(rc, reading.line, some, csv_read_row, &reading, d),
                           &all))
            break;
        reading.dst += some * numbers_bytes(file);
    }
    return all;
}

int csv_read(struct read_context *rc, const void *p, uint64_t row, unsigned column, uint64_t off,
             size_t len, uint8_t *dst, struct diag *d)
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
    r = csv_read_rows(rc, file, &row, 1, NULL, 0, numbers, d);
    for (const struct record_column *before = file->base.column; before < c; before++)
        if (before->shown == RECORD_NUMBERS)
            at += width(file) * (before->ndim ? before->dim[0] : 1);
    if (r == 0)
        memcpy(dst, numbers + at + off, len);
    return r;
}

void csv_note(const void *p, struct text *t)
{
    const struct csv_file *file = p;

    if (file->shape.note.len)
        text_add(t, "%s", file->shape.note.data);
    text_add(t, "%s", file->rounded);
}

void csv_joined(const void *p, const void *other, struct text *t)
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

/* Columns are joined by their names where both files have names; else by their places. */
static bool same_names(const struct csv_shape *a, const struct csv_shape *b)
{
    return !b->has_header || (a->has_header && a->names.len == b->names.len &&
                              !memcmp(a->names.data, b->names.data, a->names.len));
}

int csv_joins(const void *p, const void *other, struct diag *d)
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
