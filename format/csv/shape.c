/* What the first lines of a table say: the delimiter, whether there is a header, how many columns
 * there are, and which of them are the label and the weight. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "format/csv/file.h"
#include "format/csv/row.h"

static const uint8_t bom[] = {0xef, 0xbb, 0xbf};

/* The next line with cells, from *at on, and how many lines end there; *ret_at: where it begins.
 * false: there is none. */
static bool next_line(const uint8_t *head, size_t len, bool whole, char comment, size_t *at,
                      uint64_t *lines, size_t *ret_at, size_t *ret_len)
{
    while (*at < len) {
        size_t start = *at, end = start;

        while (end < len && head[end] != '\n' && head[end] != '\r')
            end++;
        if (end == len && !whole)
            return false;
        *at = end + 1;
        if (*at < len && head[end] == '\r' && head[*at] == '\n')
            ++*at;
        ++*lines;
        if (csv_is_empty(head + start, end - start, comment))
            continue;
        *ret_at = start;
        *ret_len = end - start;
        return true;
    }
    return false;
}

static char find_delimiter(const uint8_t *line, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (line[i] == ',' || line[i] == '\t' || line[i] == ';')
            return (char)line[i];
    return ',';
}

struct cells {
    size_t n, numbers, empty;
};

static struct cells count_cells(const uint8_t *line, size_t len, char delimiter)
{
    const uint8_t *p = line;
    struct cells cells = {0};

    while (p) {
        struct csv_cell cell;
        uint8_t copy[64 + DECIMAL_PAD] = {0};
        float number;

        csv_cell(p, line + len, delimiter, &cell, &p);
        cells.n++;
        cells.empty += !cell.len;
        if (!cell.len || cell.len > 64)
            continue;
        memcpy(copy, cell.text, cell.len);
        cell.text = copy;
        cells.numbers += csv_number(&cell, &number);
    }
    return cells;
}

static void read_names(const uint8_t *line, size_t len, char delimiter, struct text *ret)
{
    const uint8_t *p = line;

    while (p) {
        struct csv_cell cell;

        csv_cell(p, line + len, delimiter, &cell, &p);
        text_add_bytes(ret, (const char *)cell.text, cell.len);
        text_add_bytes(ret, "", 1);
    }
}

/* The column of that name; CSV_NONE: there is none. */
static size_t find_name(const struct csv_shape *shape, const char *name)
{
    size_t at = 0;

    for (size_t i = 0; i < shape->columns && at < shape->names.len; i++) {
        if (!strcasecmp(shape->names.data + at, name))
            return i;
        at += strlen(shape->names.data + at) + 1;
    }
    return CSV_NONE;
}

/* The column that an option names, by its number from 0 or by its name. */
static int find_column(const struct csv_shape *shape, const char *option, const char *value,
                       const char *name, size_t *ret, struct diag *d)
{
    size_t len = strlen(value);
    uint64_t number = 0;

    *ret = CSV_NONE;
    if (number_parse(value, len, UINT32_MAX, &number) == len && number < shape->columns)
        *ret = (size_t)number;
    else if (!isdigit((unsigned char)value[0]))
        *ret = find_name(shape, value);
    if (*ret != CSV_NONE)
        return 0;
    return diag_set(d, -EINVAL, "%s: option %s=%s: want a column from 0 to %zu%s, found no such",
                    name, option, value, shape->columns - 1,
                    shape->has_header ? ", or its name in line 1" : "");
}

static int find_roles(struct csv_shape *shape, const struct format_options *options,
                      const char *name, struct diag *d)
{
    static const char *const labels[] = {"label", "target", "y", "class"};
    int r = 0;

    shape->label = shape->weight = CSV_NONE;
    for (size_t i = 0; i < ARRAY_LEN(labels) && shape->label == CSV_NONE; i++)
        shape->label = find_name(shape, labels[i]);
    shape->weight = find_name(shape, "weight");
    if (options->label_column)
        r = find_column(shape, "label_column", options->label_column, name, &shape->label, d);
    if (r == 0 && options->weight_column)
        r = find_column(shape, "weight_column", options->weight_column, name, &shape->weight, d);
    if (r == 0 && shape->label != CSV_NONE && shape->label == shape->weight)
        return diag_set(d, -EINVAL,
                        "%s: want two columns as label and weight, found column %zu as "
                        "both",
                        name, shape->label);
    return r;
}

int csv_shape_read(const uint8_t *head, size_t len, bool whole,
                   const struct format_options *options, const char *name, struct csv_shape *ret,
                   struct diag *d)
{
    size_t at = len >= sizeof(bom) && !memcmp(head, bom, sizeof(bom)) ? sizeof(bom) : 0;
    size_t line, line_len;
    uint64_t lines = 0;
    struct cells cells;

    ret->comment = options->comment;
    ret->rows_at = at;
    if (!next_line(head, len, whole, ret->comment, &at, &lines, &line, &line_len))
        return diag_set(d, -EBADMSG, "%s: want lines of numbers, found none in the first %zu bytes",
                        name, len);
    ret->delimiter =
        options->delimiter ? options->delimiter : find_delimiter(head + line, line_len);
    cells = count_cells(head + line, line_len, ret->delimiter);
    if (cells.n > CSV_COLUMNS_MOST)
        return diag_set(d, -EBADMSG, "%s: line %llu: want at most %d columns, found %zu", name,
                        (unsigned long long)lines, CSV_COLUMNS_MOST, cells.n);
    ret->columns = cells.n;
    ret->has_header = !cells.numbers && cells.empty < cells.n;
    if (!ret->has_header && cells.numbers + cells.empty < cells.n)
        return diag_set(d, -EBADMSG,
                        "%s: line %llu: want numbers, or names and no numbers, found %zu "
                        "numbers and %zu names",
                        name, (unsigned long long)lines, cells.numbers,
                        cells.n - cells.numbers - cells.empty);
    if (ret->has_header) {
        ret->rows_at = at;
        ret->lines = lines;
        read_names(head + line, line_len, ret->delimiter, &ret->names);
    }
    return ret->names.failed ? -ENOMEM : find_roles(ret, options, name, d);
}
