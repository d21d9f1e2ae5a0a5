#include "format/annotations/celeba.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/blob.h"
#include "base/diag.h"
#include "base/number.h"
#include "format/rows/row.h"

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

/* A list while it is read. CSV of these lists needs no more than words between commas. */
struct celeba {
    const struct celeba_form *form;
    struct row_walk walk;
    struct celeba_word {
        const char *text;
        size_t len;
    } word[CELEBA_NUMBERS_MOST + 2]; /* of the line; those that are more are counted */
    size_t n;
    size_t width, n_pictures;
    uint64_t count, seen;        /* rows: as the head says, if it has a count; and so far */
    struct value_columns values; /* one column, in the order of the file */
    uint32_t *row;               /* [n_pictures] of it, or VALUE_NO_ROW */
    size_t unmatched;
};

static void celeba_release(struct celeba *c)
{
    row_walk_release(&c->walk);
    value_columns_release(&c->values);
    free(c->row);
}

static int celeba_bad(const struct celeba *c, struct diag *d, const char *expected)
{
    return diag_set(d, -EBADMSG, "%s, line %" PRIu64 ": expected %s", c->walk.name, c->walk.line,
                    expected);
}

/* The words of the next line. expected: what it must be; NULL: it may be missing. 1, 0 or -errno.
 */
static int celeba_next(struct celeba *c, const char *expected, struct diag *d)
{
    const char *between = text_ends_with(c->walk.name, ".csv") ? " \t\r,\"" : " \t\r";
    struct row_bytes row;
    int r = row_walk_next(&c->walk, &row, d);

    c->n = 0;
    for (size_t at = 0, len; r == 1 && at < row.len; at += len + 1) {
        for (len = 0; at + len < row.len && !memchr(between, row.bytes[at + len], strlen(between));)
            len++;
        if (len && c->n < ARRAY_LEN(c->word))
            c->word[c->n] = (struct celeba_word){row.bytes + at, len};
        c->n += len > 0;
    }
    return r == 0 && expected ? celeba_bad(c, d, expected) : r;
}

/* What is before the rows: of a text the count and the names, of CSV the names. */
static int celeba_read_head(struct celeba *c, struct text *attr_names, struct diag *d)
{
    const bool is_csv = text_ends_with(c->walk.name, ".csv");
    int r = 1;

    c->count = UINT64_MAX;
    c->width = c->form->width;
    if (!is_csv && !c->form->has_head)
        return 0;
    if (!is_csv)
        r = celeba_next(c, "the number of rows", d);
    if (r == 1 && !is_csv &&
        (c->n != 1 ||
         number_parse(c->word->text, c->word->len, UINT64_MAX - 1, &c->count) != c->word->len))
        return celeba_bad(c, d, "the number of rows and nothing else");
    if (r == 1)
        r = celeba_next(c, "the names of the columns", d);
    if (r < 0 || c->width)
        return r < 0 ? r : 0;
    c->width = c->n - (is_csv && c->n); /* the first one is the picture's */
    if (!c->width || c->width > CELEBA_NUMBERS_MOST)
        return celeba_bad(c, d, "1 to 256 names of attributes");
    json_open(attr_names, NULL, NULL, "[");
    for (size_t i = c->n - c->width; i < c->n; i++)
        json_add_bytes(attr_names, c->word[i].text, c->word[i].len);
    json_close(attr_names, NULL, "]");
    return attr_names->failed ? -ENOMEM : 0;
}

/* The numbers of a row. */
static int celeba_read_numbers(const struct celeba *c, int64_t number[static CELEBA_NUMBERS_MOST],
                               struct diag *d)
{
    bool is_good = c->n == c->width + 1;

    for (size_t i = 0; i < c->width && is_good; i++) {
        struct row_cell cell = {
            .type = CELL_TEXT, .text = c->word[i + 1].text, .len = c->word[i + 1].len};

        row_cell_judge_number(&cell);
        is_good = cell.type == CELL_INTEGER;
        number[i] = is_good ? cell.integer : 0;
    }
    if (!is_good)
        return diag_set(d, -EBADMSG,
                        "%s, line %" PRIu64 ": expected a picture and %zu whole number%s",
                        c->walk.name, c->walk.line, c->width, c->width > 1 ? "s" : "");
    for (size_t i = 0; i < c->width; i++)
        if (number[i] < c->form->least || number[i] > c->form->most)
            return diag_set(d, -EBADMSG,
                            "%s, line %" PRIu64 ": expected numbers from %" PRId64 " to %" PRId64
                            ", got %" PRId64,
                            c->walk.name, c->walk.line, c->form->least, c->form->most, number[i]);
    return 0;
}

static int celeba_read_row(struct celeba *c, const struct picture_names *names, struct diag *d)
{
    struct value_column *column = c->values.column;
    int64_t number[CELEBA_NUMBERS_MOST];
    uint8_t flags[CELEBA_NUMBERS_MOST];
    int r = celeba_read_numbers(c, number, d);
    const char *dot;
    uint32_t picture;

    picture = c->n ? picture_find(names, c->word->text, c->word->len) : PICTURE_NONE;
    dot = c->n && picture == PICTURE_NONE ? memrchr(c->word->text, '.', c->word->len) : NULL;
    if (dot) /* the pictures are .png in one of the archives */
        picture = picture_find(names, c->word->text, (size_t)(dot - c->word->text));
    if (dot && picture >= c->n_pictures)
        picture = PICTURE_NONE;
    if (r < 0)
        return r == -EBADMSG && c->walk.line == 1 && picture == PICTURE_NONE ? -EDOM : r;
    if (++c->seen > c->count)
        return diag_set(d, -EBADMSG,
                        "%s, line %" PRIu64 ": expected %" PRIu64 " rows, as line 1 says, got more",
                        c->walk.name, c->walk.line, c->count);
    if (picture == PICTURE_NONE) {
        c->unmatched++;
        return 0;
    }
    if (picture >= c->n_pictures)
        return celeba_bad(c, d, "the name of one picture, got that of several");
    if (c->row[picture] != VALUE_NO_ROW)
        return celeba_bad(c, d, "another picture, this one has a row already");
    for (size_t i = 0; i < c->width; i++)
        flags[i] = number[i] == 1;
    c->row[picture] = (uint32_t)column->rows;
    return value_column_set(column, column->rows,
                            c->form->dtype == DTYPE_U1 ? flags : (const void *)number, 1);
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

int celeba_read(const struct blob *blob, const char *file, enum celeba_list list,
                const struct picture_names *names, size_t n_pictures, struct value_columns *ret,
                size_t *ret_unmatched, struct text *attr_names, struct diag *d)
{
    AUTO(celeba_release)
    struct celeba c = {
        .form = &celeba_forms[list],
        .n_pictures = n_pictures,
        .walk = {.blob = blob, .format = TABLE_LINES, .end = blob->size, .name = file}};
    const unsigned n_before = ret->n;
    int r = celeba_read_head(&c, attr_names, d);

    if (r == 0)
        r = celeba_begin(&c);
    if (r < 0)
        return r;
    while ((r = celeba_next(&c, NULL, d)) == 1)
        if ((r = celeba_read_row(&c, names, d)) < 0)
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
