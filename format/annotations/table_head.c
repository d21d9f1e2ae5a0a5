/* Each separator that may be is tried on the first rows, and the one by which a column names most
 * pictures is taken. Where no row of them names one, more rows are tried before the file is
 * refused: the pictures of a folder may be the last ones of a long table. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/blob.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/number.h"
#include "format/annotations/table_parts.h"

#define HEAD_ROWS      1000
#define HEAD_ROWS_MOST 65536
#define EXTENSION_MOST 5 /* bytes */

/* ---- what cells are ---- */

/* Bytes of the extension of a name with its dot: a few letters and digits, with a letter; 0: none.
 */
static size_t table_extension(struct table_text name)
{
    bool has_letter = false;

    for (size_t n = 0; n < name.len; n++) {
        char c = name.at[name.len - 1 - n];

        if (c == '.')
            return has_letter && n + 1 < name.len ? n + 1 : 0;
        if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')
            has_letter = true;
        else if (c < '0' || c > '9')
            break;
        if (n == EXTENSION_MOST)
            break;
    }
    return 0;
}

static enum table_type table_type_of(const struct table *t, struct table_text text,
                                     unsigned *ret_width)
{
    struct row_cell cell = {.type = CELL_TEXT, .text = text.at, .len = text.len};
    int64_t number[TABLE_WIDTH_MOST];

    *ret_width = 1;
    if (!text.len)
        return TABLE_EMPTY;
    if (t->separator == TABLE_WORDS) {
        *ret_width = (unsigned)table_integers(text.at, text.len, number, TABLE_WIDTH_MOST);
        return *ret_width ? TABLE_INTEGERS : TABLE_TEXTS;
    }
    row_cell_judge_number(&cell);
    return cell.type == CELL_TEXT      ? TABLE_TEXTS
           : cell.type == CELL_INTEGER ? TABLE_INTEGERS
                                       : TABLE_REALS;
}

uint32_t table_picture(const struct table *t, size_t column, size_t row)
{
    const struct table_text cell = table_cell(t, column, row);

    return column && t->separator == TABLE_WORDS ? PICTURE_NONE
                                                 : picture_find(t->names, cell.at, cell.len);
}

static void table_see_cell(const struct table *t, size_t i, size_t row)
{
    struct table_column *column = &t->column[i];
    const struct table_text cell = table_cell(t, i, row);
    unsigned width;
    enum table_type type = table_type_of(t, cell, &width);
    uint32_t picture = column->may_be_key ? table_picture(t, i, row) : PICTURE_NONE;

    if (type == TABLE_EMPTY)
        return;
    column->width = column->type == TABLE_EMPTY ? width : column->width;
    type = width == column->width ? type : TABLE_TEXTS;
    column->type = type > column->type ? type : column->type;
    if (picture == PICTURE_NONE)
        return;
    column->match = column->matched++ ? column->match : cell;
    column->formed +=
        table_extension(cell) || memchr(cell.at, '/', cell.len) || memchr(cell.at, '\\', cell.len);
    if (picture == PICTURE_SEVERAL && !column->several)
        column->several = t->line[row];
}

void table_see(struct table *t, size_t from, size_t to)
{
    for (size_t i = 0; i < t->cells.n; i++) {
        struct table_column *column = &t->column[i];

        *column = (struct table_column){.name = column->name,
                                        .may_be_key = column->may_be_key,
                                        .is_omitted = column->is_omitted};
        for (size_t row = from; row < to; row++)
            table_see_cell(t, i, row);
    }
}

bool table_is_named(const struct table_column *column)
{
    return column->name && strncmp(column->name, "Unnamed: ", strlen("Unnamed: ")) != 0;
}

bool table_is_formed(const struct table_column *column)
{
    return 2 * column->formed >= column->matched;
}

static bool table_is_better_key(const struct table_column *a, const struct table_column *b)
{
    if (table_is_formed(a) != table_is_formed(b))
        return table_is_formed(a);
    /* A column without a name may be pandas' numbers of rows; but one whose pictures recur is none
     * of ids: labels from 0 to 9 are names of pictures also. */
    if (table_is_named(a) != table_is_named(b)) {
        const struct table_column *named = table_is_named(a) ? a : b;

        if (named->found.matched == named->matched)
            return named == a;
    }
    return a->matched != b->matched ? a->matched > b->matched : a->found.matched > b->found.matched;
}

size_t table_most_matched(const struct table *t)
{
    size_t most = 0;

    for (size_t i = 0; i < t->cells.n; i++)
        most = t->column[i].matched > most ? t->column[i].matched : most;
    return most;
}

size_t table_best_key(const struct table *t, size_t least, uint64_t *ret_several)
{
    size_t best = SIZE_MAX;

    *ret_several = 0;
    for (size_t i = 0; i < t->cells.n; i++) {
        const struct table_column *c = &t->column[i];

        if (!c->may_be_key || !c->matched || c->matched < least)
            continue;
        if (c->several && !*ret_several)
            *ret_several = c->several;
        if (!c->several && (best == SIZE_MAX || table_is_better_key(c, &t->column[best])))
            best = i;
    }
    return best;
}

/* ---- the header ---- */

static size_t table_digits(struct table_text text)
{
    size_t n = 0;

    for (size_t i = 0; i < text.len; i++)
        n += text.at[i] >= '0' && text.at[i] <= '9';
    return n;
}

/* Do two names without an extension look like two of a series: both have digits? But a number
 * alone is not like a name. */
static bool table_are_alike(struct table_text a, struct table_text b)
{
    size_t n = table_digits(a), k = table_digits(b);

    return n == a.len ? k == b.len : n && k;
}

/* The same question where the names have no extension: do the other cells look like those of a row?
 */
static bool table_has_values(const struct table *t, size_t key)
{
    for (size_t i = 0; i < t->cells.n; i++) {
        const enum table_type below = t->column[i].type;
        unsigned width;
        enum table_type type = table_type_of(t, table_cell(t, i, 0), &width);

        if (i != key && (type == TABLE_INTEGERS || type == TABLE_REALS) &&
            (below == TABLE_INTEGERS || below == TABLE_REALS))
            return true;
    }
    return t->separator == TABLE_WORDS && t->column[1].type != TABLE_INTEGERS;
}

/* Is the text of the first row also in a later one? */
static bool table_recurs(const struct table *t, size_t column)
{
    const struct table_text first = table_cell(t, column, 0);
    unsigned width;

    if (table_type_of(t, first, &width) != TABLE_TEXTS)
        return false;
    for (size_t row = 1; row < t->head; row++) {
        struct table_text cell = table_cell(t, column, row);

        if (cell.len == first.len && !memcmp(cell.at, first.at, cell.len))
            return true;
    }
    return false;
}

/* Is the first row a header? Its cell of the key names no picture, and it does not look like a row
 * whose picture is missing. */
static bool table_is_header(const struct table *t, size_t key)
{
    const struct table_text text = table_cell(t, key, 0), match = t->column[key].match;

    if (picture_find(t->names, text.at, text.len) != PICTURE_NONE)
        return false;
    if (!match.len)
        return true;
    for (size_t i = 0; i < t->cells.n; i++)
        if (i != key && table_recurs(t, i))
            return false;
    if (table_extension(match))
        return !table_extension(text);
    return !table_has_values(t, key) && (!text.len || !table_are_alike(text, match));
}

/* Names of fields from the cells of the header. */
static int table_name_columns(struct table *t)
{
    for (size_t i = 0; i < t->cells.n; i++) {
        struct table_column *column = &t->column[i];
        struct table_text text = table_cell(t, i, 0);
        AUTO_TEXT struct text name = {0};

        if (!text.len || (t->separator == TABLE_WORDS &&
                          (column->type != TABLE_INTEGERS || column->width != 1 ||
                           memchr(text.at, ' ', text.len) || memchr(text.at, '\t', text.len))))
            continue;
        for (size_t n; text.len; text.at += n, text.len -= n) {
            bool is_good = (n = text_character(text.at, text.len)) && !text_command(text.at, n);

            n = n ? n : 1;
            text_add_bytes(&name, is_good && *text.at != '/' ? text.at : "_",
                           is_good && *text.at != '/' ? n : 1);
        }
        if (text_finish(&name, &column->name, NULL) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* ---- columns that are said ---- */

/* The column of that name, or of that number from 0; digits are a name only in a header. SIZE_MAX:
 * none. A name makes the first row a header. */
static size_t table_named_column(struct table *t, const char *name)
{
    const size_t len = strlen(name);
    const bool is_number = len && table_digits((struct table_text){name, len}) == len;
    uint64_t number = 0;

    for (size_t i = 0; i < t->cells.n && (t->has_header || !is_number); i++) {
        struct table_text cell = table_cell(t, i, 0);

        if (cell.len == len && !memcmp(cell.at, name, len)) {
            t->has_header = true;
            return i;
        }
    }
    return is_number && number_parse(name, len, t->cells.n - 1, &number) == len ? (size_t)number
                                                                                : SIZE_MAX;
}

static int table_resolve(struct table *t, const json_t *column, size_t *ret, struct diag *d)
{
    const struct table_text first = table_cell(t, 0, 0), last = table_cell(t, t->cells.n - 1, 0);
    const char *name = json_string_value(column);
    char number[24];

    if (json_is_integer(column)) {
        snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(column));
        name = number;
    }
    *ret = name ? table_named_column(t, name) : SIZE_MAX;
    if (!name || *ret != SIZE_MAX)
        return 0;
    return diag_set(d, -EBADMSG,
                    "%s: it has no column \"%s\": expected one of its first row, \"%.*s\" to "
                    "\"%.*s\", or a number from 0 to %u",
                    t->file, name, (int)(first.len < 60 ? first.len : 60), first.at,
                    (int)(last.len < 60 ? last.len : 60), last.at, t->cells.n - 1);
}

static int table_resolve_fields(struct table *t, struct diag *d)
{
    const json_t *columns = json_object_get(t->said, "columns");
    int r = table_resolve(t, json_object_get(t->said, "label"), &t->label, d);

    for (size_t i = 0; i < t->cells.n; i++)
        t->column[i].is_omitted = columns && i != t->label;
    for (size_t i = 0; i < json_array_size(columns) && r == 0; i++) {
        size_t column;

        r = table_resolve(t, json_array_get(columns, i), &column, d);
        if (r == 0)
            t->column[column].is_omitted = false;
    }
    return r;
}

/* ---- all of it ---- */

static bool table_is_better(const struct table *a, const struct table *b)
{
    size_t n = table_most_matched(a), k = table_most_matched(b);

    if (n != k)
        return n > k;
    n = !a->error && a->even == SIZE_MAX;
    k = !b->error && b->even == SIZE_MAX;
    return n != k ? n : a->cells.n > b->cells.n;
}

/* Try each separator on so many rows. A malformed row is reported once it is chosen. */
static int table_try(struct table *t, size_t rows)
{
    static const char orders[][5] = {",\t;", "\t,;", {'\t', TABLE_WORDS, ',', ';'}};
    const char *only = json_string_value(json_object_get(t->said, "separator"));
    const char *order = orders[table_is_csv(t->file) ? text_ends_with(t->file, ".tsv") : 2];
    const struct table start = *t;

    order = only ? only : order;
    for (const char *separator = order; *separator; separator++) {
        AUTO(table_release) struct table trial = start;

        trial.separator = *separator;
        trial.row.delimiter = *separator;
        trial.walk =
            (struct row_walk){.blob = t->blob,
                              .format = *separator == TABLE_WORDS ? TABLE_LINES : TABLE_CSV,
                              .delimiter = *separator,
                              .end = t->blob->size,
                              .name = t->file};
        table_read_rows(&trial, rows);
        if (trial.error && trial.error != -EBADMSG)
            return diag_set(&t->problem, trial.error, "%s", diag_text(&trial.problem, trial.error));
        for (size_t i = 0; i < trial.cells.n; i++)
            trial.column[i].may_be_key = true;
        table_see(&trial, 0, trial.rows);
        if (separator == order || table_is_better(&trial, t)) {
            struct table worse = *t;

            *t = trial;
            trial = worse;
        }
    }
    return 0;
}

int table_read_head(struct table *t, struct text *reason)
{
    const bool has_key = json_object_get(t->said, "key");
    const struct table start = *t;
    int r = table_try(t, HEAD_ROWS);

    if (r == 0 && !table_most_matched(t) && !t->is_whole && !has_key) {
        table_release(t);
        *t = start;
        r = table_try(t, HEAD_ROWS_MOST);
    }
    t->head = t->rows;
    if (r < 0 || (t->rows && (has_key || table_most_matched(t))))
        return r;
    text_add(reason, !t->rows ? "it has no rows" : "no row names a picture");
    if (t->rows && !t->is_whole)
        text_add(reason, ", of the first %d", HEAD_ROWS_MOST);
    return -EDOM;
}

int table_judge_head(struct table *t, struct diag *d)
{
    uint64_t several;
    size_t key;
    int r;

    table_see(t, 1, t->head);
    r = table_resolve(t, json_object_get(t->said, "key"), &t->key, d);
    if (r < 0)
        return r;
    key = t->key != SIZE_MAX ? t->key : table_best_key(t, 1, &several);
    if (key != SIZE_MAX)
        t->has_header |= table_is_header(t, key);
    r = table_resolve_fields(t, d);
    if (r == 0 && t->has_header)
        r = table_name_columns(t);
    for (size_t i = 0; i < t->cells.n; i++)
        t->column[i].may_be_key =
            t->key != SIZE_MAX ? i == t->key
                               : t->column[i].matched ||
                                     (!t->has_header && table_picture(t, i, 0) != PICTURE_NONE);
    return r;
}
