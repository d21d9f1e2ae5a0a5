#include "format/rows/row.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/blob.h"
#include "base/diag.h"
#include "format/core/json.h"

#define WINDOW (ROW_MOST + 2) /* a row and the end of its line */

/* ---- where rows are ---- */

/* The length of the first row of bytes with the end of its line; 0: it is not complete. */
static size_t row_line_end(const char *bytes, size_t len)
{
    const char *end = memchr(bytes, '\n', len);

    return end ? (size_t)(end - bytes) + 1 : 0;
}

/* The same for CSV, where a quoted field may have lines. */
static size_t record_end(const char *bytes, size_t len)
{
    bool quoted = false, may_open = true; /* also the second of two quotes */

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
        may_open = c == ',';
    }
    return 0;
}

/* Have more of the table in the window. */
static int row_fill(struct row_walk *walk, struct diag *d)
{
    size_t skip = (size_t)(walk->at - walk->start);
    uint64_t more;
    int r;

    if (!walk->window) {
        walk->window = malloc(WINDOW);
        walk->start = walk->at;
        if (!walk->window)
            return -ENOMEM;
    } else if (skip) {
        walk->have -= skip;
        memmove(walk->window, walk->window + skip, walk->have);
        walk->start = walk->at;
    }
    more = min_u64(WINDOW - walk->have, walk->end - walk->start - walk->have);
    if (!more)
        return 0;
    r = blob_read(READ_WAITS, walk->blob, walk->window + walk->have, (size_t)more,
                  walk->start + walk->have, d);
    if (r == 0)
        walk->have += (size_t)more;
    return r;
}

static int row_find_row(struct row_walk *walk, size_t *ret, struct diag *d)
{
    for (bool filled = false;; filled = true) {
        const char *bytes = walk->window + (walk->at - walk->start);
        size_t len = walk->have - (size_t)(walk->at - walk->start);
        size_t end = !walk->window                 ? 0
                     : walk->format == TABLE_JSONL ? row_line_end(bytes, len)
                                                   : record_end(bytes, len);
        int r;

        if (!end && filled && walk->start + walk->have == walk->end)
            end = len; /* the last one ends with the table */
        if (end > ROW_MOST || (!end && filled))
            return diag_set(d, -EBADMSG,
                            "%s, line %" PRIu64 ": expected at most %" PRIu64 " bytes, got more",
                            walk->name, walk->lines + 1, ROW_MOST);
        *ret = end;
        if (end)
            return 0;
        r = row_fill(walk, d);
        if (r < 0)
            return r;
    }
}

int row_walk_next(struct row_walk *walk, struct row_bytes *ret, struct diag *d)
{
    while (walk->at < walk->end) {
        size_t len;
        int r = row_find_row(walk, &len, d);

        if (r < 0)
            return r;
        *ret = (struct row_bytes){walk->window + (walk->at - walk->start), walk->at, len};
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
    free(walk->window);
    walk->window = NULL;
}

/* ---- what is in a row ---- */

void row_release(struct row *row)
{
    for (size_t i = 0; i < row->n; i++)
        free(row->cell[i].made);
    free(row->cell);
    if (row->json)
        json_free(&row->json);
    *row = (struct row){0};
}

static struct row_cell *add_cell(struct row *row)
{
    if (array_capacity(&row->cell, row->n, sizeof(*row->cell)) < 0)
        return NULL;
    row->cell[row->n] = (struct row_cell){0};
    return &row->cell[row->n++];
}

static int parse_value(struct row_cell *cell, const json_t *value)
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
    if (json_is_integer(value)) {
        cell->type = CELL_INTEGER;
        cell->integer = json_integer_value(value);
    } else if (json_is_real(value)) {
        cell->type = CELL_REAL;
        cell->real = json_real_value(value);
    }
    cell->made = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    cell->text = cell->made;
    cell->len = cell->made ? strlen(cell->made) : 0;
    return cell->made ? 0 : -ENOMEM;
}

static int parse_json(struct row *row, const char *bytes, size_t len, const char *what,
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
        struct row_cell *cell = add_cell(row);

        if (!cell)
            return -ENOMEM;
        cell->name = name;
        r = parse_value(cell, value);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Is it a number as JSON writes it? Then "007" is none: its zeros mean something. */
static bool row_is_number(const char *text, size_t len, bool *ret_real)
{
    const char *p = text, *end = text + len, *digits;

    *ret_real = false;
    p += p < end && *p == '-';
    for (digits = p; p < end && *p >= '0' && *p <= '9';)
        p++;
    if (p == digits || (p - digits > 1 && *digits == '0'))
        return false;
    if (p < end && *p == '.') {
        *ret_real = true;
        for (digits = ++p; p < end && *p >= '0' && *p <= '9';)
            p++;
        if (p == digits)
            return false;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        *ret_real = true;
        p++;
        p += p < end && (*p == '-' || *p == '+');
        for (digits = p; p < end && *p >= '0' && *p <= '9';)
            p++;
        if (p == digits)
            return false;
    }
    return p == end;
}

/* The number that a cell of CSV is: as JSON has it. */
static int row_parse_number(struct row_cell *cell)
{
    AUTO_JSON json_t *value = NULL;
    bool real;

    if (!row_is_number(cell->text, cell->len, &real))
        return 0;
    value = json_loadb(cell->text, cell->len, JSON_DECODE_ANY, NULL);
    if (json_is_integer(value)) {
        cell->type = CELL_INTEGER;
        cell->integer = json_integer_value(value);
    } else if (json_is_real(value)) {
        cell->type = CELL_REAL;
        cell->real = json_real_value(value);
    }
    return 0; /* else it is too large, and text */
}

/* The quote that ends the one at i; len: none does. */
static size_t row_quoted_end(const char *bytes, size_t len, size_t i)
{
    for (i++; i < len; i++) {
        if (bytes[i] != '"')
            continue;
        if (i + 1 == len || bytes[i + 1] != '"')
            return i;
        i++;
    }
    return len;
}

/* The cell that begins at *at, and the comma after it. */
static int parse_field(struct row_cell *cell, const char *bytes, size_t len, size_t *at,
                       const char *what, struct diag *d)
{
    size_t i = *at, n = 0;

    if (i < len && bytes[i] == '"') {
        size_t end = row_quoted_end(bytes, len, i);

        if (end == len)
            return diag_set(d, -EBADMSG, "%s: byte %zu: a quote that does not end", what, *at);
        cell->made = malloc(end - i);
        if (!cell->made)
            return -ENOMEM;
        for (i++; i < end; i++) {
            i += bytes[i] == '"';
            cell->made[n++] = bytes[i];
        }
        i++;
        if (i < len && bytes[i] != ',')
            return diag_set(d, -EBADMSG, "%s: byte %zu: expected a comma after a quote, got '%c'",
                            what, i, bytes[i] >= ' ' && bytes[i] <= '~' ? bytes[i] : '?');
        cell->text = cell->made;
    } else {
        const char *comma = i < len ? memchr(bytes + i, ',', len - i) : NULL;

        n = comma ? (size_t)(comma - bytes) - i : len - i;
        cell->text = bytes + i;
        i += n;
    }
    cell->len = n;
    cell->is_string = true;
    cell->type = n ? CELL_TEXT : CELL_NONE;
    *at = i;
    return 0;
}

static int parse_csv(struct row *row, const char *bytes, size_t len, const char *what,
                     struct diag *d)
{
    int r = 0;

    if (memchr(bytes, '\0', len))
        return diag_set(d, -EBADMSG, "%s: a byte 0 in text", what);
    for (size_t at = 0; r == 0; at++) {
        struct row_cell *cell = add_cell(row);

        if (!cell)
            return -ENOMEM;
        r = parse_field(cell, bytes, len, &at, what, d);
        if (r == 0 && !cell->made)
            r = row_parse_number(cell);
        if (at >= len)
            break;
    }
    return r;
}

int row_parse(struct row *row, enum table_format format, const char *bytes, size_t len,
              const char *what, struct diag *d)
{
    row_release(row);
    return format == TABLE_JSONL ? parse_json(row, bytes, len, what, d)
                                 : parse_csv(row, bytes, len, what, d);
}
