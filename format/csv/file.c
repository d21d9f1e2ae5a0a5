#include "format/csv/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/csv/row.h"

#define ON_STACK 4096 /* bytes of a line */

static void add_column(struct csv_file *file, const struct record_column *column)
{
    file->column[file->n_columns++] = *column;
}

/* The columns in the order of CSV_X and so on; those that a file has not are left out. */
static void set_columns(struct csv_file *file)
{
    const struct csv_shape *s = &file->shape;
    uint64_t features = s->columns - (s->label != CSV_NONE) - (s->weight != CSV_NONE);

    add_column(
        file,
        &(struct record_column){
            .name = "x", .shown = RECORD_NUMBERS, .dtype = DTYPE_F4, .ndim = 1, .dim = {features}});
    add_column(file, &(struct record_column){.name = "csv",
                                             .shown = RECORD_BYTES,
                                             .ext = "csv",
                                             .unnamed = true,
                                             .without = RECORD_NOT_ARRAYS | RECORD_NOT_TAR});
    add_column(file, &(struct record_column){.name = "rows",
                                             .shown = RECORD_TEXT,
                                             .ext = "csv",
                                             .unnamed = true,
                                             .without = RECORD_NOT_ARRAYS | RECORD_NOT_TAR});
    if (s->label != CSV_NONE)
        add_column(file, &(struct record_column){
                             .name = "label", .shown = RECORD_NUMBERS, .dtype = DTYPE_F4});
    if (s->weight != CSV_NONE)
        add_column(file, &(struct record_column){
                             .name = "weight", .shown = RECORD_NUMBERS, .dtype = DTYPE_F4});
}

/* The first lines are checked at once: a table with text in it is no table of numbers. */
static int check_lines(const struct csv_file *file, uint8_t *head, size_t len, struct diag *d)
{
    AUTO_FREE float *value = malloc(file->shape.columns * sizeof(*value));
    uint64_t line = file->shape.lines + 1;
    int r = 0;

    if (!value)
        return -ENOMEM;
    for (size_t at = (size_t)file->shape.rows_at, end; at < len && r == 0 && line < 100;
         at = end + 1) {
        uint8_t behind;

        for (end = at; end < len && head[end] != '\n' && head[end] != '\r';)
            end++;
        if (end == len && len < file->blob->size)
            break;
        behind = head[end];
        head[end] = 0;
        if (!csv_is_empty(head + at, end - at, file->shape.comment))
            r = csv_check_line(file, line, head + at, end - at, value, d);
        head[end] = behind;
        line += behind != '\r' || head[end + 1] != '\n';
    }
    return r;
}

static int read_shape(struct csv_file *file, const struct format_options *options, struct diag *d)
{
    AUTO_FREE uint8_t *head = NULL;
    size_t len = FORMAT_HEAD;

    /* The first line may be longer than a head. */
    for (;; len *= 4) {
        size_t n = (size_t)min_u64(len, file->blob->size);
        uint8_t *grown = realloc(head, n + DECIMAL_PAD);
        int r;

        if (!grown)
            return -ENOMEM;
        head = grown;
        r = blob_read(READ_WAITS, file->blob, head, n, 0, d);
        if (r < 0)
            return r;
        memset(head + n, 0, DECIMAL_PAD);
        if (n < file->blob->size && len <= CSV_LINE_MOST && !memchr(head, '\n', n) &&
            !memchr(head, '\r', n))
            continue;
        r = csv_shape_read(head, n, n == file->blob->size, options, blob_name(file->blob),
                           &file->shape, d);
        return r < 0 ? r : check_lines(file, head, n, d);
    }
}

int csv_open(struct source_file *source, size_t n, size_t i, const struct format_setup *setup,
             struct shard *ret, struct diag *d)
{
    struct csv_file *file = calloc(1, sizeof(*file));
    int r;

    (void)n;
    if (!file)
        return -ENOMEM;
    file->blob = TAKE_PTR(source[i].blob);
    file->users = 1;
    r = read_shape(file, &setup->options, d);
    if (r < 0) {
        csv_drop(file);
        return r;
    }
    set_columns(file);
    file->prepared = (struct prepared){
        .ops = &csv_index_ops,
        .impl = file,
        .keep = setup->keep,
        .kind = "rows",
        .name = blob_name(file->blob),
        .source = blob_source(file->blob),
        .size = file->blob->size,
        .shape = {.columns = ROW_NUMBERS, .rising = 1u << ROW_AT},
    };
    *ret = (struct shard){file, file->blob, &file->prepared};
    return 0;
}

void csv_share(void *file)
{
    ((struct csv_file *)file)->users++;
}

void csv_drop(void *p)
{
    struct csv_file *file = p;

    if (--file->users)
        return;
    prepared_release(&file->prepared);
    csv_scan_free(file->scan);
    text_release(&file->shape.names);
    blob_free(file->blob);
    free(file);
}

uint64_t csv_cut(const void *p, uint64_t off)
{
    const struct csv_file *file = p;

    return off ? index_first_above(&file->prepared.index, ROW_AT, off) : 0;
}

/* ---- the contents of a row ---- */

const struct record_column *csv_columns(const void *p, unsigned *ret_n)
{
    const struct csv_file *file = p;

    *ret_n = file->n_columns;
    return file->column;
}

int csv_dims(const void *p, uint64_t row, unsigned column, uint64_t ret[static RECORD_AXES],
             struct diag *d)
{
    const struct csv_file *file = p;
    const struct record_column *c = &file->column[column];

    (void)d;
    if (c->shown == RECORD_NUMBERS)
        ret[0] = c->ndim ? c->dim[0] : 1;
    else
        ret[0] = index_number(&file->prepared.index, row, ROW_BYTES);
    return 0;
}

bool csv_extent(const void *p, uint64_t row, unsigned column, struct extent *ret)
{
    const struct csv_file *file = p;
    uint64_t number[ROW_NUMBERS];

    (void)column;
    index_row(&file->prepared.index, row, number);
    *ret = (struct extent){file->blob, number[ROW_AT], number[ROW_BYTES]};
    return number[ROW_BYTES] > 0;
}

/* Drop the columns that are not features. */
static size_t keep_features(const struct csv_shape *s, float *value)
{
    size_t n = 0;

    for (size_t i = 0; i < s->columns; i++)
        if (i != s->label && i != s->weight)
            value[n++] = value[i];
    return n;
}

static void copy_floats(const float *value, uint64_t off, size_t len, uint8_t *dst)
{
    for (size_t i = 0; i < len; i++) {
        uint64_t at = off + i;
        uint32_t bits;

        if (at % 4 == 0 && len - i >= 4) {
            memcpy(&bits, &value[at / 4], 4);
            store_le32(dst + i, bits);
            i += 3;
        } else {
            memcpy(&bits, &value[at / 4], 4);
            dst[i] = (uint8_t)(bits >> at % 4 * 8);
        }
    }
}

int csv_read(struct read_context *rc, const void *p, uint64_t row, unsigned column, uint64_t off,
             size_t len, uint8_t *dst, struct diag *d)
{
    const struct csv_file *file = p;
    const struct csv_shape *s = &file->shape;
    const struct record_column *c = &file->column[column];
    uint8_t few[ON_STACK + DECIMAL_PAD], *line = few;
    float some[ON_STACK / 4], *value = some;
    AUTO_FREE uint8_t *more = NULL;
    AUTO_FREE float *many = NULL;
    uint64_t number[ROW_NUMBERS];
    size_t bad;
    int r;

    index_row(&file->prepared.index, row, number);
    if (c->shown != RECORD_NUMBERS)
        return blob_read(rc, file->blob, dst, len, number[ROW_AT] + off, d);
    if (number[ROW_BYTES] > ON_STACK)
        line = more = malloc(number[ROW_BYTES] + DECIMAL_PAD);
    if (s->columns > ARRAY_LEN(some))
        value = many = malloc(s->columns * sizeof(*many));
    if (!line || !value)
        return -ENOMEM;
    r = blob_read(rc, file->blob, line, number[ROW_BYTES], number[ROW_AT], d);
    if (r < 0)
        return r;
    memset(line + number[ROW_BYTES], 0, DECIMAL_PAD);
    if (csv_parse(line, number[ROW_BYTES], s->delimiter, value, s->columns, &bad) != s->columns ||
        bad < s->columns)
        return diag_set(d, -ESTALE, "%s: byte %llu: want the row that was here, found another",
                        blob_name(file->blob), (unsigned long long)number[ROW_AT]);
    if (!strcmp(c->name, "label"))
        value = &value[s->label];
    else if (!strcmp(c->name, "weight"))
        value = &value[s->weight];
    else
        keep_features(s, value);
    copy_floats(value, off, len, dst);
    return 0;
}
