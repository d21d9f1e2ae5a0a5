/* Each separator that may be is tried on the first rows, and the one by which a column names most
 * pictures is taken. Where no row of them names one, more rows are tried before the file is
 * refused: the pictures of a folder may be the last ones of a long table. */
#include "format/annotations/table_head.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/blob.h"
#include "base/diag.h"
#include "base/number.h"

#define HEAD_ROWS      1000
#define HEAD_ROWS_MOST 65536
#define EXTENSION_MOST 5 /* bytes */

/* ---- keys ---- */

/* Bytes of the extension of a name with its dot: a few letters and digits, with a letter; 0: none.
 */
static size_t table_extension(const char *text, size_t len)
{
    bool has_letter = false;

    for (size_t n = 0; n < len; n++) {
        char c = text[len - 1 - n];

        if (c == '.')
            return has_letter && n + 1 < len ? n + 1 : 0;
        if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')
            has_letter = true;
        else if (c < '0' || c > '9')
            break;
        if (n == EXTENSION_MOST)
            break;
    }
    return 0;
}

static bool table_is_formed(const char *text, size_t len)
{
    return table_extension(text, len) || memchr(text, '/', len) || memchr(text, '\\', len);
}

uint32_t table_see_key(struct table_column *column, const struct table_rows *rows, size_t i)
{
    const struct row_cell *cell = &rows->row.cell[i];
    uint32_t picture = table_rows_picture(rows, i);

    if (picture == PICTURE_NONE)
        return PICTURE_NONE;
    column->matched++;
    column->formed += table_is_formed(cell->text, cell->len);
    if (picture == PICTURE_SEVERAL && !column->several)
        column->several = rows->walk.line;
    return picture;
}

static bool table_is_better_key(const struct table_column *a, const struct table_column *b)
{
    bool a_is_formed = 2 * a->formed >= a->matched, b_is_formed = 2 * b->formed >= b->matched;

    return a_is_formed != b_is_formed ? a_is_formed : a->matched > b->matched;
}

size_t table_best_key(const struct table_column *column, size_t n, size_t least,
                      uint64_t *ret_several)
{
    size_t best = SIZE_MAX;

    *ret_several = 0;
    for (size_t i = 0; i < n; i++) {
        const struct table_column *c = &column[i];

        if (!c->may_be_key || !c->matched || c->matched < least)
            continue;
        if (c->several && !*ret_several)
            *ret_several = c->several;
        if (!c->several && (best == SIZE_MAX || table_is_better_key(c, &column[best])))
            best = i;
    }
    return best;
}

/* ---- types ---- */

enum table_type table_type_of(const struct table_rows *rows, size_t i, unsigned width,
                              int64_t number[static TABLE_WIDTH_MOST])
{
    const struct row_cell *cell = &rows->row.cell[i];

    if (cell->type == CELL_NONE)
        return TABLE_EMPTY;
    if (rows->separator == TABLE_WORDS)
        return table_integers(cell->text, cell->len, number, TABLE_WIDTH_MOST) == width
                   ? TABLE_INTEGERS
                   : TABLE_TEXTS;
    if (cell->type == CELL_TEXT)
        return TABLE_TEXTS;
    number[0] = cell->integer;
    return cell->type == CELL_INTEGER ? TABLE_INTEGERS : TABLE_REALS;
}

/* ---- which separator ---- */

struct table_trial {
    char separator;
    size_t rows, n, matches;
    bool is_even;  /* all rows have n cells */
    bool is_whole; /* it ended where the table does */
};

static int table_trial_count(struct table_trial *trial, struct table_rows *rows, size_t most,
                             struct diag *d)
{
    AUTO_FREE size_t *matches = NULL;
    int r = 0;

    while (trial->rows < most && (r = table_rows_next(rows, d)) == 1) {
        if (!trial->rows++) {
            trial->n = rows->row.n;
            matches =
                rows->row.n <= TABLE_COLUMNS_MOST ? calloc(rows->row.n, sizeof(*matches)) : NULL;
            if (!matches)
                return rows->row.n <= TABLE_COLUMNS_MOST ? -ENOMEM : -EBADMSG;
        }
        trial->is_even &= rows->row.n == trial->n;
        for (size_t i = 0; i < trial->n && i < rows->row.n; i++) {
            matches[i] += table_rows_picture(rows, i) != PICTURE_NONE;
            trial->matches = matches[i] > trial->matches ? matches[i] : trial->matches;
        }
    }
    trial->is_whole = r == 0 && trial->rows < most;
    return r < 0 ? r : 0;
}

/* A malformed row ends the trial: the pass over all rows will report it. */
static int table_try(const struct table_source *source, size_t most, struct table_trial *trial)
{
    AUTO_TABLE_ROWS struct table_rows rows = table_rows_of(
        source->blob, source->at, source->end, source->file, trial->separator, source->names);
    struct diag ignored = DIAG_INIT;
    int r = table_trial_count(trial, &rows, most, &ignored);

    if (r != -EBADMSG)
        return r;
    trial->is_even = false;
    trial->is_whole = true;
    return 0;
}

static bool table_is_better_trial(const struct table_trial *a, const struct table_trial *b)
{
    if (a->matches != b->matches)
        return a->matches > b->matches;
    return a->is_even != b->is_even ? a->is_even : a->n > b->n;
}

static int table_find_separator(const struct table_source *source, size_t most,
                                struct table_trial *ret)
{
    static const char orders[][5] = {",\t;", "\t,;", {'\t', TABLE_WORDS, ',', ';'}};
    char only[2] = {source->options ? source->options->separator : 0};
    const char *order =
        orders[table_is_csv(source->file) ? text_ends_with(source->file, ".tsv") : 2];

    order = *only ? only : order;
    for (const char *separator = order; *separator; separator++) {
        struct table_trial trial = {.separator = *separator, .is_even = true};
        int r = table_try(source, most, &trial);

        if (r < 0)
            return r;
        if (separator == order || table_is_better_trial(&trial, ret))
            *ret = trial;
    }
    return 0;
}

/* ---- the header ---- */

/* The first row, and what the rows after it say of it. */
struct table_first {
    struct first_cell {
        char *text;  /* an empty one: "" */
        char *match; /* the first later cell that names a picture, or NULL */
        enum table_type type;
        bool recurs; /* a later row has the same cell */
    } * cell;        /* [n] */
    size_t n;
};

static void table_first_release(struct table_first *first)
{
    for (size_t i = 0; i < first->n; i++) {
        free(first->cell[i].text);
        free(first->cell[i].match);
    }
    free(first->cell);
}

static enum table_type table_first_type(const struct table_rows *rows, size_t i)
{
    int64_t number[TABLE_WIDTH_MOST];
    const struct row_cell *cell = &rows->row.cell[i];
    size_t width = 1;

    if (rows->separator == TABLE_WORDS)
        width = table_integers(cell->text, cell->len, number, TABLE_WIDTH_MOST);
    return table_type_of(rows, i, width ? (unsigned)width : UINT32_MAX, number);
}

static int table_first_read(struct table_first *first, const struct table_rows *rows)
{
    first->cell = calloc(rows->row.n, sizeof(*first->cell));
    if (!first->cell)
        return -ENOMEM;
    for (first->n = 0; first->n < rows->row.n; first->n++) {
        const struct row_cell *cell = &rows->row.cell[first->n];
        struct first_cell *kept = &first->cell[first->n];

        kept->text = strndup(cell->len ? cell->text : "", cell->len);
        kept->type = table_first_type(rows, first->n);
        if (!kept->text)
            return -ENOMEM;
    }
    return 0;
}

static bool table_is_digits(const char *text)
{
    return *text && !text[strspn(text, "0123456789")];
}

/* Do two names without an extension look like two of a series: both have digits? But a number
 * alone is not like a name. */
static bool table_are_alike(const char *a, const char *b)
{
    static const char digits[] = "0123456789";

    if (table_is_digits(a))
        return table_is_digits(b);
    return strpbrk(a, digits) && strpbrk(b, digits);
}

/* The same question where the names have no extension: do the other cells look like those of a row?
 */
static bool table_has_values(const struct table_head *head, const struct table_first *first,
                             size_t key)
{
    for (size_t i = 0; i < first->n; i++) {
        bool are_numbers =
            first->cell[i].type == TABLE_INTEGERS || first->cell[i].type == TABLE_REALS;
        enum table_type below = head->column[i].type;

        if (i != key && are_numbers && (below == TABLE_INTEGERS || below == TABLE_REALS))
            return true;
    }
    return head->separator == TABLE_WORDS && head->column[1].type != TABLE_INTEGERS;
}

/* Is the first row a header? Its cell of the key names no picture, and it does not look like a row
 * whose picture is missing. */
static bool table_is_header(const struct table_head *head, const struct table_first *first,
                            size_t key, const struct picture_names *names)
{
    const char *text = first->cell[key].text, *match = first->cell[key].match;

    if (picture_find(names, text, strlen(text)) != PICTURE_NONE)
        return false;
    if (!match)
        return true;
    for (size_t i = 0; i < first->n; i++)
        if (i != key && first->cell[i].recurs && first->cell[i].type == TABLE_TEXTS)
            return false;
    if (table_extension(match, strlen(match)))
        return !table_extension(text, strlen(text));
    return !table_has_values(head, first, key) && (!*text || !table_are_alike(text, match));
}

/* A name of a field from a cell of the header; NULL in *ret: it cannot be one. */
static int table_name(const char *text, char **ret)
{
    AUTO_TEXT struct text name = {0};

    *ret = NULL;
    if (!*text)
        return 0;
    while (*text) {
        size_t n = text_character(text, strlen(text));

        if (!n || text_command(text, n) || *text == '/')
            text_add_bytes(&name, "_", 1);
        else
            text_add_bytes(&name, text, n);
        text += n ? n : 1;
    }
    return text_finish(&name, ret, NULL);
}

static int table_head_name(struct table_head *head, const struct table_first *first)
{
    for (size_t i = 0; i < head->n; i++) {
        struct table_column *column = &head->column[i];
        int r;

        if (head->separator == TABLE_WORDS &&
            (column->type != TABLE_INTEGERS || column->width != 1 ||
             strpbrk(first->cell[i].text, " \t")))
            continue;
        r = table_name(first->cell[i].text, &column->name);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- columns that the options name ---- */

/* The column of that name, or of that number from 0; digits are a name only in a header. SIZE_MAX:
 * none. A name makes the first row a header. */
static size_t table_named_column(struct table_head *head, const struct table_first *first,
                                 const char *name)
{
    const bool is_number = table_is_digits(name);
    uint64_t number = 0;

    for (size_t i = 0; i < first->n && (head->has_header || !is_number); i++) {
        if (!strcmp(first->cell[i].text, name)) {
            head->has_header = true;
            return i;
        }
    }
    return is_number && number_parse(name, strlen(name), first->n - 1, &number) == strlen(name)
               ? (size_t)number
               : SIZE_MAX;
}

static int table_resolve(const struct table_source *source, struct table_head *head,
                         const struct table_first *first, const char *name, size_t *ret,
                         struct diag *d)
{
    *ret = name ? table_named_column(head, first, name) : SIZE_MAX;
    if (!name || *ret != SIZE_MAX)
        return 0;
    return diag_set(d, -EBADMSG,
                    "%s: it has no column \"%s\": expected one of its first row, \"%.60s\" to "
                    "\"%.60s\", or a number from 0 to %zu",
                    source->file, name, first->cell[0].text, first->cell[first->n - 1].text,
                    first->n - 1);
}

static int table_resolve_options(const struct table_source *source, struct table_head *head,
                                 const struct table_first *first, struct diag *d)
{
    const struct table_options *options = source->options;
    int r;

    r = table_resolve(source, head, first, options->label, &head->label, d);
    if (r < 0 || !options->columns)
        return r;
    head->is_omitted = malloc(head->n * sizeof(*head->is_omitted));
    if (!head->is_omitted)
        return -ENOMEM;
    memset(head->is_omitted, true, head->n * sizeof(*head->is_omitted));
    for (size_t i = 0; i < options->n_columns && r == 0; i++) {
        size_t column;

        r = table_resolve(source, head, first, options->columns[i], &column, d);
        if (r == 0)
            head->is_omitted[column] = false;
    }
    if (r == 0 && head->label != SIZE_MAX)
        head->is_omitted[head->label] = false;
    return r;
}

/* ---- all of it ---- */

static int table_head_see_row(struct table_head *head, struct table_first *first,
                              const struct table_rows *rows)
{
    int64_t number[TABLE_WIDTH_MOST];

    for (size_t i = 0; i < rows->row.n; i++) {
        const struct row_cell *cell = &rows->row.cell[i];
        struct table_column *column = &head->column[i];
        enum table_type type;

        if (head->separator == TABLE_WORDS && column->type == TABLE_EMPTY && cell->len)
            column->width =
                (unsigned)table_integers(cell->text, cell->len, number, TABLE_WIDTH_MOST);
        type = table_type_of(rows, i, column->width ? column->width : UINT32_MAX, number);
        column->type = type > column->type ? type : column->type;
        first->cell[i].recurs |= cell->len && strlen(first->cell[i].text) == cell->len &&
                                 !memcmp(first->cell[i].text, cell->text, cell->len);
        if (!column->may_be_key || table_see_key(column, rows, i) == PICTURE_NONE ||
            first->cell[i].match)
            continue;
        first->cell[i].match = strndup(cell->text, cell->len);
        if (!first->cell[i].match)
            return -ENOMEM;
    }
    return 0;
}

/* The rows that the trial has read, again: now it is known what is between cells. */
static int table_head_see(const struct table_source *source, struct table_head *head,
                          struct table_first *first)
{
    AUTO_TABLE_ROWS struct table_rows rows = table_rows_of(
        source->blob, source->at, source->end, source->file, head->separator, source->names);
    struct diag ignored = DIAG_INIT;
    int r = 0;

    for (size_t i = 0; i < head->rows && r == 0; i++) {
        int next = table_rows_next(&rows, &ignored);

        if (next < 0 && next != -EBADMSG)
            return next;
        if (next != 1 || rows.row.n != head->n)
            break;
        r = i ? table_head_see_row(head, first, &rows) : table_first_read(first, &rows);
    }
    return r;
}

/* The first row is one of them. */
static void table_head_join_first(struct table_head *head, const struct table_first *first,
                                  const struct picture_names *names)
{
    for (size_t i = 0; i < head->n; i++) {
        struct table_column *column = &head->column[i];

        if (head->separator == TABLE_WORDS && column->type == TABLE_EMPTY) {
            int64_t number[TABLE_WIDTH_MOST];
            const char *text = first->cell[i].text;

            column->width = (unsigned)table_integers(text, strlen(text), number, TABLE_WIDTH_MOST);
            column->type = column->width ? TABLE_INTEGERS : *text ? TABLE_TEXTS : TABLE_EMPTY;
        } else if (first->cell[i].type > column->type && head->separator != TABLE_WORDS) {
            column->type = first->cell[i].type;
        }
        column->matched +=
            picture_find(names, first->cell[i].text, strlen(first->cell[i].text)) != PICTURE_NONE;
    }
}

static int table_head_judge(const struct table_source *source, struct table_head *head,
                            struct table_first *first, struct diag *d)
{
    uint64_t several;
    size_t key;
    int r = table_head_see(source, head, first);

    if (r == 0 && !first->n)
        return diag_set(d, -ESTALE, "%s: it changed while it was read", source->file);
    head->key = head->label = SIZE_MAX;
    if (r == 0 && source->options)
        r = table_resolve(source, head, first, source->options->key, &head->key, d);
    if (r < 0)
        return r;
    key = head->key != SIZE_MAX ? head->key : table_best_key(head->column, head->n, 1, &several);
    if (key != SIZE_MAX)
        head->has_header |= table_is_header(head, first, key, source->names);
    if (source->options)
        r = table_resolve_options(source, head, first, d);
    if (r < 0)
        return r;
    if (head->has_header)
        r = table_head_name(head, first);
    else
        table_head_join_first(head, first, source->names);
    for (size_t i = 0; i < head->n; i++) {
        struct table_column *column = &head->column[i];

        column->may_be_key = head->key != SIZE_MAX ? i == head->key : column->matched;
        column->matched = column->formed = 0;
        column->several = 0;
    }
    return r;
}

int table_head_read(const struct table_source *source, struct table_head *ret, struct text *reason,
                    struct diag *d)
{
    AUTO(table_first_release) struct table_first first = {0};
    const bool has_key = source->options && source->options->key;
    struct table_trial trial;
    int r = table_find_separator(source, HEAD_ROWS, &trial);

    if (r == 0 && !trial.matches && !trial.is_whole && !has_key)
        r = table_find_separator(source, HEAD_ROWS_MOST, &trial);
    if (r < 0)
        return r;
    if (!trial.rows || (!trial.matches && !has_key)) {
        text_add(reason, !trial.rows ? "it has no rows" : "no row names a picture");
        if (trial.rows && !trial.is_whole)
            text_add(reason, ", of the first %d", HEAD_ROWS_MOST);
        return -EDOM;
    }
    ret->separator = trial.separator;
    ret->rows = trial.rows;
    ret->n = trial.n;
    ret->column = calloc(trial.n, sizeof(*ret->column));
    if (!ret->column)
        return -ENOMEM;
    for (size_t i = 0; i < ret->n; i++) {
        ret->column[i].may_be_key = ret->separator != TABLE_WORDS || !i;
        ret->column[i].width = ret->separator != TABLE_WORDS;
    }
    return table_head_judge(source, ret, &first, d);
}

void table_head_release(struct table_head *head)
{
    for (size_t i = 0; i < head->n && head->column; i++)
        free(head->column[i].name);
    free(head->column);
    free(head->is_omitted);
    *head = (struct table_head){0};
}
