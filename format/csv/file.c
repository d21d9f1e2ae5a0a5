#include "format/csv/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/read_context.h"
#include "format/core/siblings.h"
#include "format/csv/row.h"
#include "format/text/row.h"

#define ON_STACK  4096       /* bytes of the numbers of a row */
#define AT_ONCE   64         /* rows that are looked up together */
#define RUN_BYTES (1u << 20) /* of neighbouring rows read at once, */
#define RUN_GAP   512        /* and bytes between them */

static void csv_add_column(struct csv_file *file, const struct record_column *column)
{
    file->column[file->base.n_columns++] = *column;
}

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

/* The columns in the order of CSV_X and so on; those that a file has not are left out. */
static void csv_set_columns(struct csv_file *file)
{
    const struct csv_shape *s = &file->shape;
    enum dtype dtype = file->doubles ? DTYPE_F8 : DTYPE_F4;

    file->base.column = file->column;
    csv_add_column(file, &(struct record_column){.name = "x",
                                                 .shown = RECORD_NUMBERS,
                                                 .dtype = dtype,
                                                 .ndim = 1,
                                                 .dim = {csv_features(s)}});
    csv_add_column(file, &(struct record_column){.name = "csv",
                                                 .shown = RECORD_BYTES,
                                                 .ext = "csv",
                                                 .unnamed = true,
                                                 .without = RECORD_NOT_ARRAYS | RECORD_NOT_TAR});
    csv_add_column(file, &(struct record_column){.name = "rows",
                                                 .shown = RECORD_TEXT,
                                                 .ext = "csv",
                                                 .unnamed = true,
                                                 .without = RECORD_NOT_ARRAYS | RECORD_NOT_TAR});
    if (s->label != CSV_NONE)
        csv_add_column(file, &(struct record_column){
                                 .name = "label", .shown = RECORD_NUMBERS, .dtype = dtype});
    if (s->weight != CSV_NONE)
        csv_add_column(file, &(struct record_column){
                                 .name = "weight", .shown = RECORD_NUMBERS, .dtype = dtype});
}

/* The first lines are checked at once: a table with text in it is no table of numbers. */
static int csv_check_lines(const struct csv_file *file, uint8_t *head, size_t len, struct diag *d)
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
        if (end == len && len < file->base.blob->size)
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

/* Of a call: room for text and for the numbers of a row. */
struct room {
    uint8_t *text;
    size_t capacity;
    float *f4;  /* [columns], */
    double *f8; /* or these */
};

/* Number i of a row. Returns the byte behind it. */
static uint8_t *store_number(const struct room *room, size_t i, uint8_t *dst)
{
    uint64_t bits;
    uint32_t half;

    if (room->f8) {
        memcpy(&bits, &room->f8[i], sizeof(bits));
        store_le64(dst, bits);
        return dst + sizeof(bits);
    }
    memcpy(&half, &room->f4[i], sizeof(half));
    store_le32(dst, half);
    return dst + sizeof(half);
}

/* The numbers of a row as read_rows() has them: the features, the label, the weight. */
static void store_numbers(const struct csv_shape *s, const struct room *room, uint8_t *dst)
{
    const size_t last[] = {s->label, s->weight};

    for (size_t i = 0; i < s->columns; i++)
        if (csv_is_feature(s, i))
            dst = store_number(room, i, dst);
    for (size_t k = 0; k < ARRAY_LEN(last); k++)
        if (last[k] != CSV_NONE)
            dst = store_number(room, last[k], dst);
}

/* A row and where its numbers go. */
struct wanted {
    uint64_t at, bytes;
    uint8_t *dst;
};

static int room_init(struct room *room, const struct csv_file *file)
{
    *room = (struct room){0};
    if (file->doubles)
        room->f8 = malloc(file->shape.columns * sizeof(*room->f8));
    else
        room->f4 = malloc(file->shape.columns * sizeof(*room->f4));
    return room->f4 || room->f8 ? 0 : -ENOMEM;
}

static void room_release(struct room *room)
{
    free(room->text);
    free(room->f4);
    free(room->f8);
}

static int room_grow(struct room *room, size_t need)
{
    if (need <= room->capacity)
        return 0;
    free(room->text);
    room->text = malloc(need);
    room->capacity = room->text ? need : 0;
    return room->text ? 0 : -ENOMEM;
}

/* The bytes behind a row are those of the next one: for the time of parsing, they are 0. */
static int parse_row(const struct csv_file *file, const struct wanted *w, uint8_t *line,
                     const struct room *room, struct diag *d)
{
    const struct csv_shape *s = &file->shape;
    uint8_t behind = line[w->bytes];
    size_t bad, n;

    line[w->bytes] = 0;
    n = room->f8
            ? csv_parse_doubles(line, (size_t)w->bytes, s->delimiter, room->f8, s->columns, &bad)
            : csv_parse(line, (size_t)w->bytes, s->delimiter, room->f4, s->columns, &bad);
    line[w->bytes] = behind;
    if (n != s->columns || bad < s->columns)
        return diag_set(d, -ESTALE, "%s: byte %llu: expected the row of the index, got another",
                        blob_name(file->base.blob), (unsigned long long)w->at);
    store_numbers(s, room, w->dst);
    return 0;
}

/* The rows from the first on that are neighbours in the file and are read at once. */
static unsigned count_run(const struct wanted *w, unsigned n, size_t *ret_len)
{
    uint64_t end = w->at + w->bytes;
    unsigned i = 1;

    for (; i < n; i++) {
        if (w[i].at < end || w[i].at - end > RUN_GAP || w[i].at + w[i].bytes - w->at > RUN_BYTES)
            break;
        end = w[i].at + w[i].bytes;
    }
    *ret_len = (size_t)(end - w->at);
    return i;
}

static int read_wanted(struct read_context *rc, const struct csv_file *file, struct room *room,
                       const struct wanted *wanted, unsigned n, struct diag *d)
{
    int all = 0;

    for (unsigned i = 0, run; i < n; i += run) {
        const struct wanted *first = &wanted[i];
        size_t len;
        int r;

        run = count_run(first, n - i, &len);
        r = room_grow(room, len + DECIMAL_PAD);
        if (r == 0)
            r = blob_read(rc, file->base.blob, room->text, len, first->at, d);
        if (r == 0)
            memset(room->text + len, 0, DECIMAL_PAD);
        for (unsigned k = 0; k < run && r == 0 && all == 0; k++)
            r = parse_row(file, &first[k], room->text + (first[k].at - first->at), room, d);
        if (!missing_go_on(rc, r, &all))
            break;
    }
    return all;
}

static struct wanted want_row(const struct csv_file *file, uint64_t row, uint8_t *dst)
{
    const struct extent line = record_file_place(&file->base, row);

    return (struct wanted){line.off, line.len, dst};
}

int csv_read_rows(struct read_context *rc, const void *p, const uint64_t *row, unsigned n,
                  uint8_t *dst, struct diag *d)
{
    const struct csv_file *file = p;
    const size_t bytes = numbers_bytes(file);
    struct wanted wanted[AT_ONCE];
    AUTO(room_release) struct room room;
    int r = room_init(&room, file), all = r;

    for (unsigned i = 0, some; i < n && r == 0; i += some) {
        some = (unsigned)min_u64(n - i, AT_ONCE);
        for (unsigned k = 0; k < some; k++)
            wanted[k] = want_row(file, row[i + k], dst + (i + k) * bytes);
        if (!missing_go_on(rc, read_wanted(rc, file, &room, wanted, some, d), &all))
            break;
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
        return blob_read(rc, file->base.blob, dst, len, want_row(file, row, NULL).at + off, d);
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
