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

#define ON_STACK      4096 /* bytes of the numbers of a row */
#define AT_ONCE       64   /* rows that are read together */
#define LINES_CHECKED 99   /* when a file is opened */

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

/* The columns in the order of CSV_X and so on; those that a file has not are omitted. */
static void csv_set_columns(struct csv_file *file)
{
    static const struct record_column columns[CSV_FIELDS] = {
        [CSV_X] = {"x", RECORD_NUMBERS, .ndim = 1},
        [CSV_LINE] = {"csv", RECORD_BYTES, "csv", .unnamed = true,
                      .without = RECORD_NOT_ARRAYS | RECORD_NOT_TAR},
        [CSV_TEXT] = {"rows", RECORD_TEXT, "csv", .unnamed = true,
                      .without = RECORD_NOT_ARRAYS | RECORD_NOT_TAR},
        [CSV_LABEL] = {"label", RECORD_NUMBERS},
        [CSV_WEIGHT] = {"weight", RECORD_NUMBERS},
    };

    for (unsigned i = 0; i < CSV_FIELDS; i++) {
        struct record_column *column = &file->column[file->base.n_columns];

        if ((i == CSV_LABEL && file->shape.label == CSV_NONE) ||
            (i == CSV_WEIGHT && file->shape.weight == CSV_NONE))
            continue;
        *column = columns[i];
        if (column->shown == RECORD_NUMBERS)
            column->dtype = file->doubles ? DTYPE_F8 : DTYPE_F4;
        file->base.n_columns++;
    }
    file->column[CSV_X].dim[0] = csv_features(&file->shape);
    file->base.column = file->column;
}

/* The first lines are checked at once: a table with text in it is no table of numbers. */
static int csv_check_lines(const struct csv_file *file, uint8_t *text, size_t len, struct diag *d)
{
    const struct csv_shape *s = &file->shape;
    AUTO_FREE float *value = malloc(s->columns * sizeof(*value));
    struct csv_head head = {.text = text,
                            .len = len,
                            .whole = len == file->base.blob->size,
                            .comment = s->comment,
                            .begun = true,
                            .at = (size_t)s->rows_at,
                            .lines = s->lines};
    struct csv_line line;
    int r = value ? 0 : -ENOMEM;

    while (r == 0 && head.lines < LINES_CHECKED && csv_head_next(&head, &line)) {
        uint8_t *end = text + (line.text - text) + line.len, behind = *end;

        *end = 0;
        r = csv_check_line(file, head.lines, line.text, line.len, value, d);
        *end = behind;
    }
    return r;
}

int csv_read_head(struct blob *blob, uint8_t **ret, size_t *ret_len, bool *ret_whole,
                  struct diag *d)
{
    size_t len = FORMAT_HEAD;

    /* The first line may be longer than a head. */
    for (;; len *= 4) {
        size_t n = (size_t)min_u64(len, blob->size);
        uint8_t *grown = realloc(*ret, n + DECIMAL_PAD);
        int r;

        if (!grown)
            return -ENOMEM;
        *ret = grown;
        r = blob_read(READ_WAITS, blob, grown, n, 0, d);
        if (r < 0)
            return r;
        memset(grown + n, 0, DECIMAL_PAD);
        if (n < blob->size && len <= CSV_LINE_MOST && !memchr(grown, '\n', n) &&
            !memchr(grown, '\r', n))
            continue;
        *ret_len = n;
        *ret_whole = n == blob->size;
        return 0;
    }
}

static int csv_read_shape(struct csv_file *file, unsigned decided,
                          const struct format_options *options, struct diag *d)
{
    AUTO_FREE uint8_t *head = NULL;
    size_t len;
    bool whole;
    int r = csv_read_head(file->base.blob, &head, &len, &whole, d);

    if (r == 0)
        r = csv_shape_read(head, len, whole, decided, options, blob_name(file->base.blob),
                           &file->shape, d);
    return r < 0 ? r : csv_check_lines(file, head, len, d);
}

int csv_open(void *p, const struct record_source *source, struct diag *d)
{
    const struct format_setup *setup = source->setup;
    struct csv_file *file = p;
    int r;

    file->doubles = setup->options.doubles;
    r = csv_read_shape(file, source->file[source->i].decided, &setup->options, d);
    file->shape.is_keyed_list &= !setup->is_list; /* the user says that it joins */
    if (r == 0)
        csv_set_columns(file);
    return r;
}

void csv_release(void *p)
{
    struct csv_file *file = p;

    csv_scan_free(file->scan);
    text_release(&file->shape.names);
    text_release(&file->shape.note);
    free(file->rounded);
}

/* ---- the contents of a row ---- */

int csv_dims(const void *p, uint64_t row, unsigned column, uint64_t ret[static RECORD_AXES],
             struct diag *d)
{
    const struct csv_file *file = p;
    const struct record_column *c = &file->column[column];

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

int csv_read_rows(struct read_context *rc, const void *p, const uint64_t *row, unsigned n,
                  uint8_t *dst, struct diag *d)
{
    const struct csv_file *file = p;
    AUTO_FREE void *value = malloc(file->shape.columns * width(file));
    struct reading reading = {.file = file, .value = value, .dst = dst};
    int all = value ? 0 : -ENOMEM;

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
    const struct record_column *c = &file->column[column];
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
    r = csv_read_rows(rc, file, &row, 1, numbers, d);
    for (const struct record_column *before = file->column; before < c; before++)
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
