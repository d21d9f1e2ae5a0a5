/* The pass over a table: lines of plain numbers are told from bit masks, others are parsed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/core/rounded.h"
#include "format/csv/file.h"
#include "format/csv/head.h"
#include "format/csv/row.h"
#include "format/text/lines.h"

#define PIECE         (UINT64_C(1) << 20)
#define PAD           64
#define LINES_CHECKED 99 /* when a file is opened */

/* Numbers that are shown rounded. */
enum { WHOLE, DIGITS, ROUNDED };

struct csv_scan {
    uint8_t *text; /* [capacity + PAD], zeros behind `used` */
    size_t capacity, used;
    uint64_t text_at; /* the byte of the file that text begins with: a line begins there */
    uint64_t read;    /* bytes of the file so far */
    uint64_t lines;   /* before text */
    uint8_t last;     /* the line end before text */
    struct text_masks *mask;
    float *value;              /* [columns] */
    struct rounded_seen *seen; /* [columns] */
    size_t open;               /* columns where fractions of many digits are looked for */
    struct {
        size_t columns, column;     /* that have such numbers, and the first of them */
        struct rounded_first first; /* in that line */
    } rounded[ROUNDED];
};

static void csv_scan_free(struct csv_scan *scan)
{
    if (!scan)
        return;
    free(scan->text);
    free(scan->mask);
    free(scan->value);
    free(scan->seen);
    free(scan);
}

static void csv_scan_keep(void *impl, struct kept *k)
{
    struct csv_file *file = impl;

    kept_number(k, &file->missing, UINT64_MAX);
    kept_text(k, &file->rounded);
}

static int csv_scan_begin(void *impl)
{
    struct csv_file *file = impl;
    struct csv_scan *scan = calloc(1, sizeof(*scan));

    if (!scan)
        return -ENOMEM;
    file->scan = scan;
    scan->capacity = PIECE;
    scan->text = calloc(scan->capacity + PAD, 1);
    scan->mask = malloc((scan->capacity / 64 + 2) * sizeof(*scan->mask));
    scan->value = malloc(file->shape.columns * sizeof(*scan->value));
    scan->seen = calloc(file->shape.columns, sizeof(*scan->seen));
    scan->open = file->shape.columns - file->shape.omitted;
    scan->text_at = scan->read = file->shape.rows_at;
    scan->lines = file->shape.lines;
    /* What is too large is left to a check. */
    for (size_t i = 0; i < file->shape.columns && scan->seen; i++)
        scan->seen[i].kinds = i < file->shape.omitted
                                  ? ROUNDED_WHOLE | ROUNDED_DIGITS | ROUNDED_LARGE | ROUNDED_SMALL
                                  : ROUNDED_LARGE | ROUNDED_SMALL;
    return scan->text && scan->mask && scan->value && scan->seen ? 0 : -ENOMEM;
}

/* Room for a line that is longer than all so far. */
static int csv_scan_grow(struct csv_scan *scan)
{
    size_t capacity = scan->capacity * 2;
    uint8_t *text = realloc(scan->text, capacity + PAD);
    struct text_masks *mask;

    if (!text)
        return -ENOMEM;
    scan->text = text;
    mask = realloc(scan->mask, (capacity / 64 + 2) * sizeof(*mask));
    if (!mask)
        return -ENOMEM;
    scan->mask = mask;
    scan->capacity = capacity;
    return 0;
}

/* Has the line, which ends before byte end, just plain numbers or nothing in each column? *missing
 * grows by the columns with nothing. */
static bool is_plain(const struct csv_scan *scan, const struct csv_shape *shape, size_t start,
                     size_t end, uint64_t *missing)
{
    size_t marks = 0, empty = 0;
    uint64_t before = 1; /* is the byte before this word a mark, or the end of the line before? */

    if (text_masks_odd(scan->mask, start, end))
        return false;
    for (size_t word = start / 64; word * 64 < end; word++) {
        const struct text_masks *m = &scan->mask[word];
        uint64_t inside = ~UINT64_C(0), mark, after;

        if (word * 64 < start) {
            inside <<= start % 64;
            before <<= start % 64;
        }
        if (end - word * 64 < 64)
            inside &= (UINT64_C(1) << (end - word * 64)) - 1;
        if (m->space & inside)
            return false;
        mark = m->mark & inside;
        after = mark << 1 | before;
        if (mark & after)
            empty += (unsigned)__builtin_popcountll(mark & after);
        marks += (unsigned)__builtin_popcountll(mark);
        before = mark >> 63;
    }
    empty += end % 64 ? scan->mask[end / 64].mark >> (end % 64 - 1) & 1 : before;
    /* An empty label is parsed, and refused. */
    if (marks + 1 != shape->columns || shape->label != CSV_NONE || shape->weight != CSV_NONE ||
        (empty && (shape->omitted || shape->delimiter == ' ')))
        return false;
    *missing += empty;
    return true;
}

static int refuse_cell(const struct csv_file *file, uint64_t line, const uint8_t *text, size_t len,
                       size_t column, const char *expected, const char *fix, struct diag *d)
{
    const uint8_t *p = text;
    struct csv_cell cell = {0};

    for (size_t i = 0; p && i <= column; i++)
        csv_cell(p, text + len, file->shape.delimiter, &cell, &p);
    for (size_t i = 0; i < cell.len && i < 40; i++)
        if (cell.text[i] < ' ' || cell.text[i] > '~')
            return diag_set(d, -EBADMSG, "%s: line %llu, column %zu: expected %s, got byte %02x",
                            blob_name(file->base.blob), (unsigned long long)line, column, expected,
                            cell.text[i]);
    return diag_set(d, -EBADMSG, "%s: line %llu, column %zu: expected %s, got '%.*s'%s",
                    blob_name(file->base.blob), (unsigned long long)line, column, expected,
                    (int)min_u64(cell.len, 40), (const char *)cell.text, fix);
}

static bool csv_scan_is_missing(const float *value, size_t column)
{
    return column != CSV_NONE && value[column] != value[column];
}

/* Can the line be read? Readable bytes follow it (DECIMAL_PAD), the first of them is 0. value: room
 * for as many as there are columns. 0, or -EBADMSG with the reason in d. */
static int csv_check_line(const struct csv_file *file, uint64_t line, const uint8_t *text,
                          size_t len, float *value, struct diag *d)
{
    const struct csv_shape *shape = &file->shape;
    size_t bad, n = csv_parse(text, len, shape->delimiter, value, shape->columns, &bad);

    if (bad < shape->columns)
        return refuse_cell(file, line, text, len, bad, "a number",
                           ". Leave missing numbers empty; write text as numbers, or the rows as "
                           "JSON lines or Parquet",
                           d);
    if (n != shape->columns)
        return diag_set(d, -EBADMSG,
                        "%s: line %llu: expected %zu columns, as in the first line, got "
                        "%zu",
                        blob_name(file->base.blob), (unsigned long long)line, shape->columns, n);
    if (csv_scan_is_missing(value, shape->label))
        return refuse_cell(file, line, text, len, shape->label, "a number as the label", "", d);
    if (csv_scan_is_missing(value, shape->weight))
        return refuse_cell(file, line, text, len, shape->weight, "a number as the weight", "", d);
    return 0;
}

/* See the cells of a line that can be read. */
static void see_rounded(const struct csv_file *file, uint64_t line, const uint8_t *text, size_t len)
{
    struct csv_scan *scan = file->scan;
    const uint8_t *p = text;

    for (size_t column = 0; p && column < file->shape.columns; column++) {
        struct rounded_seen *seen = &scan->seen[column];
        unsigned found, before = seen->kinds & ROUNDED_DIGITS;
        struct csv_cell cell;

        csv_cell(p, text + len, file->shape.delimiter, &cell, &p);
        found = cell.broken ? 0 : rounded_see(seen, cell.text, cell.len, file->doubles);
        scan->open -= !before && seen->kinds & ROUNDED_DIGITS;
        if (!found || scan->rounded[found == ROUNDED_DIGITS].columns++)
            continue;
        scan->rounded[found == ROUNDED_DIGITS].column = column;
        rounded_set_first(&scan->rounded[found == ROUNDED_DIGITS].first, cell.text, cell.len, line);
    }
}

static int csv_scan_see_line(struct csv_file *file, size_t start, size_t end, uint64_t line,
                             struct diag *d)
{
    struct csv_scan *scan = file->scan;
    const struct csv_shape *shape = &file->shape;
    const uint8_t *text = scan->text + start;
    uint64_t number[ROW_NUMBERS] = {[ROW_AT] = scan->text_at + start, [ROW_BYTES] = end - start};
    int r = 0;

    if (csv_is_empty(text, end - start, csv_tabs(shape->delimiter, shape->columns), shape->comment))
        return 0;
    if (end - start > CSV_LINE_MOST)
        return diag_set(d, -EBADMSG, "%s: line %llu: expected at most %llu bytes, got %zu",
                        blob_name(file->base.blob), (unsigned long long)line,
                        (unsigned long long)CSV_LINE_MOST, end - start);
    if (!is_plain(scan, shape, start, end, &file->missing)) {
        uint8_t behind = scan->text[end];

        scan->text[end] = 0; /* what is parsed must end */
        r = csv_check_line(file, line, text, end - start, scan->value, d);
        scan->text[end] = behind;
        for (size_t i = 0; i < shape->columns && r == 0; i++)
            file->missing += i >= shape->omitted && csv_scan_is_missing(scan->value, i);
    }
    if (r == 0 && text_masks_long(scan->mask, start, end, scan->open))
        see_rounded(file, line, text, end - start);
    return r < 0 ? r : index_add(file->base.prepared.builder, NULL, 0, number);
}

/* The lines that end in the text, and if last the one that has no end. What is left moves to the
 * front. */
static int see_text(struct csv_file *file, bool last, struct diag *d)
{
    struct csv_scan *scan = file->scan;
    struct text_lines lines = text_lines_of(scan->text, scan->used, scan->mask, scan->last);
    struct text_line line;
    int r = 0;

    memset(scan->text + scan->used, 0, PAD);
    text_masks_make(scan->text, scan->used / 64 + 1, file->shape.delimiter, false, scan->mask);
    while (r == 0 && text_lines_next(&lines, &line))
        r = csv_scan_see_line(file, line.start, line.end, ++scan->lines, d);
    if (lines.start)
        scan->last = scan->text[lines.start - 1];
    if (last && lines.start < scan->used && r == 0) {
        r = csv_scan_see_line(file, lines.start, scan->used, scan->lines + 1, d);
        lines.start = scan->used;
    }
    if (r < 0)
        return r;
    scan->used -= lines.start;
    scan->text_at += lines.start;
    memmove(scan->text, scan->text + lines.start, scan->used);
    return scan->used > CSV_LINE_MOST
               ? diag_set(d, -EBADMSG, "%s: line %llu: expected at most %llu bytes, got more",
                          blob_name(file->base.blob), (unsigned long long)scan->lines + 1,
                          (unsigned long long)CSV_LINE_MOST)
               : 0;
}

static int note_rounded(struct csv_file *file)
{
    static const char *const numbers[ROUNDED] = {"whole numbers", "numbers of many digits"};
    AUTO_TEXT struct text t = {0};

    for (unsigned i = 0; i < ROUNDED; i++) {
        const size_t columns = file->scan->rounded[i].columns;
        const struct rounded_first *first = &file->scan->rounded[i].first;

        if (columns)
            text_add(&t,
                     "%s: %zu column%s %s that %s rounds. The first is '%s', line %llu, column "
                     "%zu. %s\n",
                     blob_name(file->base.blob), columns, columns > 1 ? "s have" : " has",
                     numbers[i], file->doubles ? "float64" : "float32", first->text,
                     (unsigned long long)first->at, file->scan->rounded[i].column,
                     file->doubles ? "The lines in csv/ have all digits"
                                   : "-o csv_dtype=float64 shows float64");
    }
    return text_finish(&t, &file->rounded, NULL);
}

static int csv_scan_step(void *impl, struct diag *d)
{
    struct csv_file *file = impl;
    struct csv_scan *scan = file->scan;
    uint64_t left = file->base.blob->size - scan->read;
    size_t n;
    int r = scan->used == scan->capacity ? csv_scan_grow(scan) : 0;

    if (r < 0)
        return r;
    n = (size_t)min_u64(scan->capacity - scan->used, left);
    if (n)
        r = blob_read(READ_WAITS, file->base.blob, scan->text + scan->used, n, scan->read, d);
    if (r < 0)
        return r;
    scan->used += n;
    scan->read += n;
    r = see_text(file, scan->read == file->base.blob->size, d);
    atomic_store(&file->base.prepared.seen, scan->read);
    if (r < 0 || scan->read < file->base.blob->size)
        return r;
    file->base.prepared.end[ROW_AT] = file->base.blob->size;
    r = note_rounded(file);
    csv_scan_free(TAKE_PTR(file->scan));
    return r < 0 ? r : 1;
}

/* ---- opening ---- */

static int csv_set_columns(struct csv_file *file)
{
    const struct csv_shape *shape = &file->shape;
    const enum dtype dtype = file->doubles ? DTYPE_F8 : DTYPE_F4;
    const struct record_column columns[] = {
        {"x", RECORD_NUMBERS, .dtype = dtype, .ndim = 1, .dim = {csv_features(shape)}},
        {"csv", RECORD_BYTES, "csv", .unnamed = true,
         .without = RECORD_NOT_ARRAYS | RECORD_NOT_TAR},
        {"rows", RECORD_TEXT, "csv", .unnamed = true,
         .without = RECORD_NOT_ARRAYS | RECORD_NOT_TAR},
        {"label", RECORD_NUMBERS, .dtype = dtype, .field = shape->label == CSV_NONE},
        {"weight", RECORD_NUMBERS, .dtype = dtype, .field = shape->weight == CSV_NONE},
    };
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(columns) && r == 0; i++)
        if (!columns[i].field) /* the file has it */
            r = record_file_add(&file->base, &columns[i]);
    return r;
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
                            .tabs = csv_tabs(s->delimiter, s->columns),
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

static int csv_open(void *p, const struct record_source *source, struct diag *d)
{
    const struct format_setup *setup = source->setup;
    struct csv_file *file = p;
    const struct csv_shape *s = &file->shape;
    int r;

    file->doubles = setup->options.doubles;
    r = csv_read_shape(file, source->file[source->i].decided, &setup->options, d);
    file->shape.is_keyed_list &= !setup->is_list; /* the user says that it joins */
    if (r == 0)
        r = csv_set_columns(file);
    return r < 0 ? r
                 : text_print(&file->base.prepared.depends, " %d %d %zu %zu %zu %zu %d %llu",
                              s->delimiter, s->comment, s->columns, s->omitted, s->label, s->weight,
                              file->doubles, (unsigned long long)s->rows_at);
}

static void csv_release(void *p)
{
    struct csv_file *file = p;

    csv_scan_free(file->scan);
    text_release(&file->shape.names);
    text_release(&file->shape.note);
}

const struct record_file_ops csv_file_ops = {
    .size = sizeof(struct csv_file),
    .index = {.version = "csv 5",
              .keep = csv_scan_keep,
              .begin = csv_scan_begin,
              .step = csv_scan_step},
    .shape = {.columns = ROW_NUMBERS, .rising = 1u << ROW_AT},
    .has_places = true,
    .bytes = ROW_BYTES,
    .checks_rows = true,
    .side_by_side = true,
    .cuts = true,
    .open = csv_open,
    .release = csv_release,
};
