#include "format/annotations/celeba.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/blob.h"
#include "base/diag.h"
#include "base/number.h"
#include "format/annotations/table.h"
#include "format/annotations/table_rows.h"

#define CELEBA_NUMBERS_MOST 256 /* of a row */

static const struct celeba_form {
    const char *name; /* of the file, without extension */
    const char *column;
    enum dtype dtype;
    size_t width;  /* numbers of a row; 0: as many as there are names */
    bool has_head; /* a text has the count and the names */
    int64_t least, most;
} celeba_forms[] = {
    [CELEBA_ATTR] = {"list_attr_celeba", "attr", DTYPE_U1, 0, true, -1, 1},
    [CELEBA_IDENTITY] = {"identity_CelebA", "identity", DTYPE_I8, 1, false, INT64_MIN, INT64_MAX},
    [CELEBA_PARTITION] = {"list_eval_partition", "partition", DTYPE_I8, 1, false, CELEBA_TRAIN,
                          CELEBA_TEST},
    [CELEBA_BBOX] = {"list_bbox_celeba", "bbox", DTYPE_I8, 4, true, INT64_MIN, INT64_MAX},
    [CELEBA_LANDMARKS] = {"list_landmarks_celeba", "landmarks", DTYPE_I8, 10, true, INT64_MIN,
                          INT64_MAX},
    [CELEBA_LANDMARKS_ALIGN] = {"list_landmarks_align_celeba", "landmarks", DTYPE_I8, 10, true,
                                INT64_MIN, INT64_MAX},
};

bool celeba_list_is(const char *path, enum celeba_list *ret)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    for (unsigned i = 0; i < ARRAY_LEN(celeba_forms); i++) {
        size_t len = strlen(celeba_forms[i].name);

        if (!strncmp(name, celeba_forms[i].name, len) &&
            (!strcmp(name + len, ".txt") || !strcmp(name + len, ".csv"))) {
            *ret = (enum celeba_list)i;
            return true;
        }
    }
    return false;
}

/* A list while it is read. */
struct celeba {
    const struct celeba_form *form;
    const char *file;
    struct table_rows rows;
    size_t width, n_pictures;
    uint64_t count, seen;        /* rows: as the head says, if it has a count; and so far */
    struct value_columns values; /* one column, in the order of the file */
    uint32_t *row;               /* [n_pictures] of it, or VALUE_NO_ROW */
    size_t unmatched;
};

static void celeba_release(struct celeba *c)
{
    table_rows_release(&c->rows);
    value_columns_release(&c->values);
    free(c->row);
}

static int celeba_bad(const struct celeba *c, struct diag *d, const char *expected)
{
    return diag_set(d, -EBADMSG, "%s, line %" PRIu64 ": expected %s", c->file, c->rows.walk.line,
                    expected);
}

/* ---- the head ---- */

/* The next row, which must exist. */
static int celeba_next(struct celeba *c, const char *expected, struct diag *d)
{
    int r = table_rows_next(&c->rows, d);

    return r == 0 ? celeba_bad(c, d, expected) : r;
}

static int celeba_add_name(struct celeba *c, const char *text, size_t len, struct text *names)
{
    AUTO_FREE char *copy = strndup(text, len);

    if (!copy)
        return -ENOMEM;
    text_add(names, c->width ? ", " : "[");
    c->width++;
    text_add_json(names, copy);
    return 0;
}

/* The names of a text are words; of CSV they are cells, the first of which is the picture's. */
static int celeba_read_names(struct celeba *c, struct text *names)
{
    int r = 0;

    if (c->rows.separator != TABLE_WORDS) {
        for (size_t i = 1; i < c->rows.row.n && r == 0; i++)
            r = celeba_add_name(c, c->rows.row.cell[i].text, c->rows.row.cell[i].len, names);
    } else {
        /* Two cells: the first word, and the line after it. */
        const char *p = c->rows.row.cell[1].text, *end = p + c->rows.row.cell[1].len;

        r = celeba_add_name(c, c->rows.row.cell[0].text, c->rows.row.cell[0].len, names);
        while (p < end && r == 0) {
            size_t word = 0;

            while (p + word < end && p[word] != ' ' && p[word] != '\t')
                word++;
            if (word)
                r = celeba_add_name(c, p, word, names);
            p += word + (p + word < end);
        }
    }
    text_add(names, c->width ? "]" : "[]");
    return r < 0 || !names->failed ? r : -ENOMEM;
}

/* What is before the rows: of a text the count and the names, of CSV the names. */
static int celeba_read_head(struct celeba *c, struct text *attr_names, struct diag *d)
{
    const bool is_text = c->rows.separator == TABLE_WORDS;
    AUTO_TEXT struct text names = {0};
    int r;

    c->count = UINT64_MAX;
    if (is_text && !c->form->has_head) {
        c->width = c->form->width;
        return 0;
    }
    if (is_text) {
        const struct row_cell *cell;

        r = celeba_next(c, "the number of rows", d);
        if (r < 0)
            return r;
        cell = c->rows.row.cell;
        if (c->rows.row.cell[1].len ||
            number_parse(cell->text, cell->len, UINT64_MAX - 1, &c->count) != cell->len)
            return celeba_bad(c, d, "the number of rows and nothing else");
    }
    r = celeba_next(c, "the names of the columns", d);
    if (r < 0)
        return r;
    r = celeba_read_names(c, &names);
    if (r < 0)
        return r;
    if (c->form->width)
        c->width = c->form->width;
    else
        text_add_bytes(attr_names, names.data, names.len);
    if (!c->width || c->width > CELEBA_NUMBERS_MOST)
        return celeba_bad(c, d, "1 to 256 names of attributes");
    return attr_names && attr_names->failed ? -ENOMEM : 0;
}

/* ---- the rows ---- */

/* The numbers of a row. */
static int celeba_read_numbers(const struct celeba *c, int64_t number[static CELEBA_NUMBERS_MOST],
                               struct diag *d)
{
    size_t n = 0;

    if (c->rows.separator == TABLE_WORDS) {
        n = table_integers(c->rows.row.cell[1].text, c->rows.row.cell[1].len, number,
                           CELEBA_NUMBERS_MOST);
    } else if (c->rows.row.n - 1 <= CELEBA_NUMBERS_MOST) {
        for (size_t i = 1; i < c->rows.row.n && c->rows.row.cell[i].type == CELL_INTEGER; i++)
            number[n++] = c->rows.row.cell[i].integer;
        n = n + 1 == c->rows.row.n ? n : 0;
    }
    if (n != c->width)
        return diag_set(d, -EBADMSG,
                        "%s, line %" PRIu64 ": expected a picture and %zu whole number%s", c->file,
                        c->rows.walk.line, c->width, c->width > 1 ? "s" : "");
    for (size_t i = 0; i < n; i++)
        if (number[i] < c->form->least || number[i] > c->form->most)
            return diag_set(d, -EBADMSG,
                            "%s, line %" PRIu64 ": expected numbers from %" PRId64 " to %" PRId64
                            ", got %" PRId64,
                            c->file, c->rows.walk.line, c->form->least, c->form->most, number[i]);
    return 0;
}

static int celeba_store(struct celeba *c, uint32_t picture, const int64_t *number)
{
    struct value_column *column = c->values.column;
    uint8_t flags[CELEBA_NUMBERS_MOST];

    for (size_t i = 0; i < c->width; i++)
        flags[i] = number[i] == 1;
    c->row[picture] = (uint32_t)column->rows;
    value_column_append(column, c->form->dtype == DTYPE_U1 ? flags : (const void *)number, 1);
    return value_column_end_row(column);
}

static int celeba_read_row(struct celeba *c, struct diag *d)
{
    int64_t number[CELEBA_NUMBERS_MOST];
    int r = celeba_read_numbers(c, number, d);
    uint32_t picture;

    if (r < 0)
        return r;
    if (++c->seen > c->count)
        return diag_set(d, -EBADMSG,
                        "%s, line %" PRIu64 ": expected %" PRIu64 " rows, as line 1 says, got more",
                        c->file, c->rows.walk.line, c->count);
    picture = table_rows_picture(&c->rows, 0);
    if (picture == PICTURE_NONE) {
        c->unmatched++;
        return 0;
    }
    if (picture >= c->n_pictures)
        return celeba_bad(c, d, "the name of one picture, got that of several");
    if (c->row[picture] != VALUE_NO_ROW)
        return celeba_bad(c, d, "another picture, this one has a row already");
    return celeba_store(c, picture, number);
}

/* Begin the column, once its width is known. */
static int celeba_begin(struct celeba *c)
{
    struct value_column *column;

    c->row = malloc((c->n_pictures + 1) * sizeof(*c->row));
    for (size_t i = 0; i < c->n_pictures && c->row; i++)
        c->row[i] = VALUE_NO_ROW;
    return c->row ? value_columns_add(&c->values, c->form->column, VALUE_NUMBERS, c->form->dtype,
                                      false, c->form->width == 1 ? 0 : (unsigned)c->width, &column)
                  : -ENOMEM;
}

int celeba_read(const struct blob *blob, uint64_t at, uint64_t len, const char *file,
                enum celeba_list list, const struct picture_names *names, size_t n_pictures,
                struct value_columns *ret, size_t *ret_unmatched, struct text *attr_names,
                struct diag *d)
{
    AUTO(celeba_release)
    struct celeba c = {
        .form = &celeba_forms[list],
        .file = file,
        .n_pictures = n_pictures,
        .rows =
            table_rows_of(blob, at, at + len, file, table_is_csv(file) ? ',' : TABLE_WORDS, names),
    };
    const unsigned n_before = ret->n;
    int r = celeba_read_head(&c, attr_names, d);

    if (r == 0)
        r = celeba_begin(&c);
    if (r < 0)
        return r;
    while ((r = table_rows_next(&c.rows, d)) == 1)
        if ((r = celeba_read_row(&c, d)) < 0)
            break;
    if (r == 0)
        r = blob_verify(blob, d);
    if (r < 0)
        return r;
    if (c.count != UINT64_MAX && c.seen != c.count)
        return diag_set(d, -EBADMSG,
                        "%s, line 1: expected the number of rows, %" PRIu64 ", got %" PRIu64, file,
                        c.seen, c.count);
    *ret_unmatched = c.unmatched;
    r = value_columns_pick(&c.values, c.row, n_pictures, ret);
    if (r < 0 && ret->n > n_before)
        value_columns_remove(ret, n_before);
    return r;
}
