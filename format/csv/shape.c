/* What the first lines of a table say: the delimiter, whether there is a header, how many columns
 * there are, and which of them are the label and the weight. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "format/csv/file.h"
#include "format/csv/head.h"
#include "format/csv/row.h"

#define NAMES_SHOWN 8 /* in notes */

static void csv_shape_read_names(const uint8_t *line, size_t len, char delimiter, struct text *ret)
{
    const uint8_t *p = line;

    while (p) {
        struct csv_cell cell;

        csv_cell(p, line + len, delimiter, &cell, &p);
        text_add_bytes(ret, (const char *)cell.text, cell.len);
        text_add_bytes(ret, "", 1);
    }
}

/* The column of that name, from column `from` on; CSV_NONE: there is none. */
static size_t csv_shape_find(const struct csv_shape *shape, const char *name, size_t from,
                             int (*differ)(const char *a, const char *b))
{
    size_t at = 0;

    for (size_t i = 0; i < shape->columns && at < shape->names.len; i++) {
        if (i >= from && !differ(shape->names.data + at, name))
            return i;
        at += strlen(shape->names.data + at) + 1;
    }
    return CSV_NONE;
}

/* The column of just that name; otherwise of the name in other letters; CSV_NONE. */
static size_t csv_shape_find_name(const struct csv_shape *shape, const char *name)
{
    size_t found = csv_shape_find(shape, name, 0, strcmp);

    return found != CSV_NONE ? found : csv_shape_find(shape, name, 0, strcasecmp);
}

size_t csv_shape_column(const struct csv_shape *shape, const char *value)
{
    size_t len = strlen(value);
    uint64_t number = 0;

    if (number_parse(value, len, UINT32_MAX, &number) == len && number < shape->columns)
        return (size_t)number;
    return isdigit((unsigned char)value[0]) ? CSV_NONE : csv_shape_find_name(shape, value);
}

/* The column that an option names. */
static int csv_shape_find_column(const struct csv_shape *shape, const char *option,
                                 const char *value, const char *name, size_t *ret, struct diag *d)
{
    *ret = csv_shape_column(shape, value);
    if (*ret != CSV_NONE)
        return 0;
    return diag_set(d, -EINVAL, "%s: option %s=%s: expected a column from 0 to %zu%s, got no such",
                    name, option, value, shape->columns - 1,
                    shape->has_header ? ", or its name in line 1" : "");
}

/* The column of label=, which names a field of any dataset: not each table has it. */
static void find_label(struct csv_shape *shape, const struct format_options *options,
                       const char *name)
{
    static const char *const labels[] = {"label", "target", "y", "class"};
    const char *slash = strrchr(name, '/');
    char wanted[FORMAT_NAME];

    shape->label = options->label ? csv_shape_column(shape, options->label) : CSV_NONE;
    if (options->label && shape->label == CSV_NONE &&
        format_label_of(options->label, slash ? slash + 1 : name, wanted))
        shape->label = csv_shape_column(shape, wanted);
    for (size_t i = 0; i < ARRAY_LEN(labels) && shape->label == CSV_NONE; i++) {
        size_t first = csv_shape_find(shape, labels[i], 0, strcasecmp), second = CSV_NONE;

        shape->label = csv_shape_find_name(shape, labels[i]);
        if (first != CSV_NONE)
            second = csv_shape_find(shape, labels[i], first + 1, strcasecmp);
        if (second != CSV_NONE && !options->label_column)
            text_add(&shape->note,
                     "%s: columns %zu and %zu are named %s: the label is column %zu, and the other "
                     "a part of x. -o label_column= with a number chooses\n",
                     name, first, second, labels[i], shape->label);
    }
}

static int find_roles(struct csv_shape *shape, const struct format_options *options,
                      const char *name, struct diag *d)
{
    int r = 0;

    find_label(shape, options, name);
    shape->weight = csv_shape_find_name(shape, "weight");
    if (options->label_column)
        r = csv_shape_find_column(shape, "label_column", options->label_column, name, &shape->label,
                                  d);
    if (r == 0 && options->weight_column)
        r = csv_shape_find_column(shape, "weight_column", options->weight_column, name,
                                  &shape->weight, d);
    if (r == 0 && shape->label != CSV_NONE && shape->label == shape->weight)
        return diag_set(d, -EINVAL,
                        "%s: expected two columns as label and weight, got column %zu as "
                        "both",
                        name, shape->label);
    return r;
}

/* ---- notes ---- */

/* The first names of the columns, as people see them. */
static void csv_shape_add_names(const struct csv_shape *shape, struct text *t)
{
    const char *name = shape->names.data;

    for (size_t i = 0; i < shape->columns && i < NAMES_SHOWN; i++, name += strlen(name) + 1)
        text_add(t, "%s'%s'", i ? ", " : "", name);
    if (shape->columns > NAMES_SHOWN)
        text_add(t, " ...");
}

static void csv_shape_note_header(struct csv_shape *shape, uint64_t line, unsigned decided,
                                  const char *name)
{
    text_add(&shape->note, "%s: line %llu is ", name, (unsigned long long)line);
    if (shape->has_header) {
        text_add(&shape->note, "used as names of columns: ");
        csv_shape_add_names(shape, &shape->note);
        text_add(&shape->note, ". -o csv_header=no makes it a row\n");
    } else if (decided) {
        text_add(&shape->note,
                 "used as a row, as in other parts of the set, though it could be "
                 "names of columns. -o csv_header=yes makes the first line of each part "
                 "names\n");
    } else {
        text_add(&shape->note, "used as a row, but its numbers rise by one. If they are names of "
                               "columns: -o csv_header=yes\n");
    }
}

/* pandas writes the numbers of rows in a first column without a name, and reads that as "Unnamed:
 * 0". Such columns say nothing about a row. */
static void omit_row_numbers(struct csv_shape *shape, struct csv_head rows, const char *name)
{
    const char *column = shape->names.data;

    while (shape->has_header && shape->omitted + 1 < shape->columns &&
           shape->omitted != shape->label && shape->omitted != shape->weight &&
           (!*column || !strncmp(column, "Unnamed: 0", strlen("Unnamed: 0")))) {
        enum csv_column judged = csv_judge_column(rows, shape->delimiter, shape->omitted);

        if (judged == CSV_COLUMN_OTHER)
            return;
        text_add(&shape->note,
                 judged == CSV_COLUMN_REPEATS
                     ? "%s: column %zu (%s) is a part of x: its numbers repeat, and number no "
                       "rows\n"
                     : "%s: column %zu (%s) is omitted from x: it numbers the rows, as pandas "
                       "does. Give it a name to keep it\n",
                 name, shape->omitted, *column ? column : "without a name");
        if (judged == CSV_COLUMN_REPEATS)
            return;
        shape->omitted++;
        column += strlen(column) + 1;
    }
}

/* ---- reading ---- */

/* A first line that begins with # is names, of as many columns as the next line has cells. */
static int check_marked(const struct csv_shape *shape, struct csv_head later, uint64_t line,
                        enum csv_first first, const char *name, struct diag *d)
{
    struct csv_line next;
    size_t n =
        csv_head_next(&later, &next) ? csv_count_cells(&next, shape->delimiter).n : shape->columns;

    if (n == shape->columns && first != CSV_FIRST_MIXED)
        return 0;
    return diag_set(d, -EBADMSG,
                    "%s: line %llu: expected names of %zu columns after '#', got %zu%s. If it is a "
                    "comment: -o csv_comment='#'",
                    name, (unsigned long long)line, n, shape->columns,
                    first == CSV_FIRST_MIXED ? " cells with numbers" : "");
}

static int csv_shape_read_first(struct csv_shape *shape, struct csv_head head, unsigned decided,
                                const struct format_options *options, const char *name,
                                struct diag *d)
{
    struct csv_head before = head;
    struct csv_line line;
    struct csv_cells cells;
    bool by_numbers, is_set = options->header != CSV_HEADER_AUTO;
    enum csv_first first;

    if (!csv_head_next(&head, &line))
        return diag_set(d, -EBADMSG,
                        "%s: expected lines of numbers, got none in the first %zu bytes", name,
                        head.len);
    shape->delimiter = options->delimiter ? options->delimiter : csv_find_delimiter(before);
    cells = csv_count_cells(&line, shape->delimiter);
    if (cells.n > CSV_COLUMNS_MOST)
        return diag_set(d, -EBADMSG, "%s: line %llu: expected at most %d columns, got %zu", name,
                        (unsigned long long)head.lines, CSV_COLUMNS_MOST, cells.n);
    shape->columns = cells.n;
    before.tabs = head.tabs = csv_tabs(shape->delimiter, shape->columns);
    first = csv_judge_first(before, shape->delimiter, &by_numbers);
    if (decided)
        first = decided == CSV_NAMES ? CSV_FIRST_NAMES : CSV_FIRST_ROW;
    shape->has_header = is_set ? options->header == CSV_HEADER_YES : first == CSV_FIRST_NAMES;
    if (!is_set && line.marked) {
        int r = check_marked(shape, head, head.lines, first, name, d);

        if (r < 0)
            return r;
    }
    if (!is_set && first == CSV_FIRST_MIXED)
        return diag_set(d, -EBADMSG,
                        "%s: line %llu: expected numbers, or names and no numbers, got %zu numbers "
                        "and %zu names. If it has names of columns: -o csv_header=yes",
                        name, (unsigned long long)head.lines, cells.numbers,
                        cells.n - cells.numbers - cells.empty);
    if (shape->has_header) {
        shape->rows_at = min_u64(head.at, head.len);
        shape->lines = head.lines;
        csv_shape_read_names(line.text, line.len, shape->delimiter, &shape->names);
    }
    if (!is_set && (by_numbers || (decided && cells.numbers)) && !shape->names.failed)
        csv_shape_note_header(shape, head.lines, decided, name);
    return shape->names.failed ? -ENOMEM : 0;
}

/* Is it a list that a number of each row leads to, such as an entry for each picture? */
static bool is_keyed_list(const struct csv_shape *shape, struct csv_head head)
{
    struct csv_line line;
    uint64_t rows = 0, low = 0;

    if (shape->has_header || shape->columns != 2 || shape->omitted)
        return false;
    head.begun = true; /* a line of tabs is the first row as well */
    for (; csv_head_next(&head, &line); rows++) {
        const struct csv_cells cells = csv_count_cells(&line, shape->delimiter);

        low = rows ? low : cells.low;
        if (cells.n != 2 || cells.numbers != 2 || !cells.whole || low > 1 ||
            cells.low != low + rows)
            return false;
    }
    return rows > 2;
}

int csv_shape_read(const uint8_t *text, size_t len, bool whole, unsigned decided,
                   const struct format_options *options, const char *name, struct csv_shape *ret,
                   struct diag *d)
{
    struct csv_head head = csv_head_of(text, len, whole, options->comment);
    int r;

    ret->comment = options->comment;
    ret->rows_at = head.at;
    r = csv_shape_read_first(ret, head, decided, options, name, d);
    if (r == 0)
        r = find_roles(ret, options, name, d);
    head.tabs = csv_tabs(ret->delimiter, ret->columns);
    if (r == 0)
        omit_row_numbers(ret, head, name);
    if (r == 0)
        ret->is_keyed_list = is_keyed_list(ret, head);
    if (ret->note.data)
        text_plain(ret->note.data, "\n");
    return r == 0 && ret->note.failed ? -ENOMEM : r;
}
