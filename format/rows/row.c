#include "format/rows/row.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/blob.h"
#include "base/diag.h"
#include "base/json.h"
#include "format/core/decimal.h"

#define ROW_GUESS    UINT64_C(4096) /* bytes that nearly all rows have */
#define WINDOW_LEAST (1 << 16)      /* bytes that are read at once, */
#define WINDOW_MOST  (1 << 20)      /* and after some rows */
#define NUMBER_MOST  1024           /* bytes of a number; a longer one is text */

/* ---- where rows are ---- */

/* The length of the first row of bytes with the end of its line; 0: it is not complete. */
static size_t row_line_end(const char *bytes, size_t len, char delimiter)
{
    const char *end = memchr(bytes, '\n', len);

    (void)delimiter;
    return end ? (size_t)(end - bytes) + 1 : 0;
}

/* The same for CSV, where a quoted field may have lines. */
static size_t row_record_end(const char *bytes, size_t len, char delimiter)
{
    const char *end = memchr(bytes, '\n', len);
    bool quoted = false, may_open = true; /* also the second of two quotes */

    if (end && !memchr(bytes, '"', (size_t)(end - bytes)))
        return (size_t)(end - bytes) + 1;
    for (size_t i = 0; i < len; i++) {
        char c = bytes[i];

        if (quoted) {
            quoted = c != '"';
            may_open = !quoted;
            continue;
        }
        if (c == '\n')
            return i + 1;
        quoted = c == '"' && may_open;
        may_open = c == delimiter;
    }
    return 0;
}

/* The bytes of the next row, with the end of its line; the last one ends with the table. */
static int row_find(struct row_walk *walk, const uint8_t **ret, size_t *ret_len, struct diag *d)
{
    uint64_t left = walk->end - walk->at;
    const char delimiter = walk->delimiter ? walk->delimiter : ',';
    size_t (*const row_end)(const char *bytes, size_t len, char delimiter) =
        walk->format == TABLE_CSV ? row_record_end : row_line_end;

    walk->window.least = WINDOW_LEAST;
    walk->window.most = WINDOW_MOST;
    for (uint64_t len = min_u64(left, ROW_GUESS);; len = min_u64(left, 8 * len)) {
        int r = pass_window_at(&walk->window, walk->blob, walk->at, len, walk->end, ret, d);

        if (r < 0)
            return r;
        *ret_len = row_end((const char *)*ret, (size_t)len, delimiter);
        if (!*ret_len && len == left)
            *ret_len = (size_t)left;
        if (*ret_len > ROW_MOST || (!*ret_len && len > ROW_MOST))
            return diag_set(d, -EBADMSG,
                            "%s, line %" PRIu64 ": expected at most %" PRIu64 " bytes, got more",
                            walk->name, walk->lines + 1, ROW_MOST);
        if (*ret_len)
            return 0;
    }
}

int row_walk_next(struct row_walk *walk, struct row_bytes *ret, struct diag *d)
{
    while (walk->at < walk->end) {
        const uint8_t *bytes;
        size_t len;
        int r = row_find(walk, &bytes, &len, d);

        if (r < 0)
            return r;
        *ret = (struct row_bytes){(const char *)bytes, walk->at, len};
        walk->line = walk->lines + 1;
        for (size_t i = 0; i < len; i++)
            walk->lines += ret->bytes[i] == '\n';
        walk->at += len;
        if (walk->line == 1 && len >= 3 && !memcmp(ret->bytes, "\xef\xbb\xbf", 3)) {
            ret->bytes += 3; /* byte order mark */
            ret->at += 3;
            ret->len -= 3;
        }
        while (ret->len && strchr("\r\n", ret->bytes[ret->len - 1]) && ret->bytes[ret->len - 1])
            ret->len--;
        for (size_t i = 0; i < ret->len; i++)
            if (ret->bytes[i] != ' ' && ret->bytes[i] != '\t')
                return 1;
    }
    return 0;
}

void row_walk_release(struct row_walk *walk)
{
    pass_window_release(&walk->window);
}

/* ---- what is in a row ---- */

void row_clear(struct row *row)
{
    for (size_t i = 0; i < row->n; i++)
        free(row->cell[i].made);
    row->n = 0;
    if (row->json)
        json_free(&row->json);
    row->json = NULL;
}

void row_release(struct row *row)
{
    row_clear(row);
    free(row->cell);
    *row = (struct row){0};
}

struct row_cell *row_add_cell(struct row *row)
{
    if (row->n == row->capacity) {
        if (array_capacity(&row->cell, row->n, sizeof(*row->cell)) < 0)
            return NULL;
        row->capacity++;
    }
    row->cell[row->n] = (struct row_cell){0};
    return &row->cell[row->n++];
}

static void row_set_number(struct row_cell *cell, const json_t *value)
{
    if (json_is_integer(value)) {
        cell->type = CELL_INTEGER;
        cell->integer = json_integer_value(value);
    } else if (json_is_real(value)) {
        cell->type = CELL_REAL;
        cell->real = json_real_value(value);
    }
}

static int row_parse_value(struct row_cell *cell, const json_t *value)
{
    if (json_is_null(value))
        return 0;
    cell->type = CELL_TEXT;
    cell->is_string = json_is_string(value);
    if (cell->is_string) {
        cell->text = json_string_value(value);
        cell->len = json_string_length(value);
        return 0;
    }
    row_set_number(cell, value);
    cell->made = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    cell->text = cell->made;
    cell->len = cell->made ? strlen(cell->made) : 0;
    return cell->made ? 0 : -ENOMEM;
}

static int row_parse_json(struct row *row, const char *bytes, size_t len, const char *what,
                          struct diag *d)
{
    const char *name;
    json_t *value;
    int r = json_read(bytes, len, what, json_budget(len), &row->json, d);

    if (r < 0)
        return r == -EFBIG ? -EBADMSG : r;
    if (!json_is_object(row->json))
        return diag_set(d, -EBADMSG, "%s: expected a JSON object, {\"file_name\": ...}", what);
    json_object_foreach(row->json, name, value)
    {
        struct row_cell *cell = row_add_cell(row);

        if (!cell)
            return -ENOMEM;
        cell->name = name;
        r = row_parse_value(cell, value);
        if (r < 0)
            return r;
    }
    return 0;
}

/* The digits at p. */
static const char *row_skip_digits(const char *p, const char *end)
{
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p;
}

/* The number at text ends where the text does. *ret_whole: it has neither fraction nor exponent. */
static bool row_is_number(const char *text, size_t len, bool *ret_whole)
{
    const char *end = text + len, *p = text + (len && *text == '-'), *digits = p;

    p = row_skip_digits(p, end);
    if (p == digits || (*digits == '0' && p > digits + 1))
        return false;
    *ret_whole = p == end;
    if (p < end && *p == '.') {
        digits = p + 1;
        p = row_skip_digits(digits, end);
        if (p == digits)
            return false;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        digits = p + 1;
        digits += digits < end && (*digits == '+' || *digits == '-');
        p = row_skip_digits(digits, end);
        if (p == digits)
            return false;
    }
    return p == end;
}

static void row_set_integer(struct row_cell *cell)
{
    bool negative = *cell->text == '-';
    int64_t value = 0;

    for (size_t i = negative; i < cell->len; i++) {
        int digit = negative ? '0' - cell->text[i] : cell->text[i] - '0';

        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return;
    }
    cell->type = CELL_INTEGER;
    cell->integer = value;
}

/* Not inlined: cells of text need no such stack. */
static __attribute__((noinline)) void row_set_real(struct row_cell *cell)
{
    uint8_t copy[NUMBER_MOST + DECIMAL_PAD];

    memcpy(copy, cell->text, cell->len);
    memset(copy + cell->len, 0, DECIMAL_PAD);
    if (decimal_parse_double(copy, copy + cell->len, &cell->real) && isfinite(cell->real))
        cell->type = CELL_REAL;
}

void row_cell_judge_number(struct row_cell *cell)
{
    bool whole;

    if (cell->type != CELL_TEXT || *cell->text > '9' || cell->len > NUMBER_MOST ||
        !row_is_number(cell->text, cell->len, &whole))
        return;
    if (whole)
        row_set_integer(cell);
    else
        row_set_real(cell);
}

/* The quote that ends the one at i; len: none does. *ret_twice: two quotes stand for one in it. */
static size_t row_quoted_end(const char *bytes, size_t len, size_t i, bool *ret_twice)
{
    *ret_twice = false;
    for (i++; i < len; i++) {
        if (bytes[i] != '"')
            continue;
        if (i + 1 == len || bytes[i + 1] != '"')
            return i;
        *ret_twice = true;
        i++;
    }
    return len;
}

/* The cell in the quotes at byte *at, which becomes the byte after them. */
static int row_read_quoted(struct row_cell *cell, const char *bytes, size_t len, size_t *at,
                           const char *what, struct diag *d)
{
    bool twice;
    size_t end = row_quoted_end(bytes, len, *at, &twice), n = 0;

    if (end == len)
        return diag_set(d, -EBADMSG, "%s: byte %zu: a quote that does not end", what, *at);
    cell->is_quoted = true;
    cell->text = bytes + *at + 1;
    cell->len = end - *at - 1;
    if (twice) {
        cell->made = malloc(cell->len);
        if (!cell->made)
            return -ENOMEM;
        for (size_t i = *at + 1; i < end; i++) {
            i += bytes[i] == '"';
            cell->made[n++] = bytes[i];
        }
        cell->text = cell->made;
        cell->len = n;
    }
    *at = end + 1;
    return 0;
}

/* The cell at byte *at of a row, a text or CELL_NONE. *at becomes the byte of the delimiter after
 * it, at least len after the last. */
static int row_read_cell(struct row_cell *cell, const char *bytes, size_t len, char delimiter,
                         size_t *at, const char *what, struct diag *d)
{
    cell->is_string = true;
    if (*at < len && bytes[*at] == '"') {
        int r = row_read_quoted(cell, bytes, len, at, what, d);

        if (r < 0)
            return r;
        if (*at < len && bytes[*at] != delimiter)
            return diag_set(d, -EBADMSG, "%s: byte %zu: expected a %s after a quote, got '%c'",
                            what, *at, delimiter == ',' ? "comma" : "delimiter",
                            bytes[*at] >= ' ' && bytes[*at] <= '~' ? bytes[*at] : '?');
    } else {
        const char *text = bytes + *at;
        const char *end = *at < len ? memchr(text, delimiter, len - *at) : NULL;

        cell->text = text;
        cell->len = end ? (size_t)(end - text) : len - *at;
        *at += cell->len;
    }
    cell->type = cell->len ? CELL_TEXT : CELL_NONE;
    return 0;
}

static int row_parse_csv(struct row *row, const char *bytes, size_t len, const char *what,
                         struct diag *d)
{
    const char delimiter = row->delimiter ? row->delimiter : ',';
    int r = 0;

    if (memchr(bytes, '\0', len))
        return diag_set(d, -EBADMSG, "%s: expected text, got a byte 0", what);
    for (size_t at = 0; r == 0; at++) {
        struct row_cell *cell = row_add_cell(row);

        if (!cell)
            return -ENOMEM;
        r = row_read_cell(cell, bytes, len, delimiter, &at, what, d);
        if (r == 0 && !cell->is_quoted)
            row_cell_judge_number(cell);
        if (at >= len)
            break;
    }
    return r;
}

int row_parse(struct row *row, enum table_format format, const char *bytes, size_t len,
              const char *what, struct diag *d)
{
    row_clear(row);
    return format == TABLE_JSONL ? row_parse_json(row, bytes, len, what, d)
                                 : row_parse_csv(row, bytes, len, what, d);
}
