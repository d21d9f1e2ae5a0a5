#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/blob.h"
#include "format/annotations/table_parts.h"

#define TABLE_ROWS_MOST (UINT32_MAX - 2) /* so that a row number is none of the special ones */
#define WHAT_SIZE       512              /* bytes of "file, line 7" */

static bool table_rows_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static void table_rows_trim(const char **text, size_t *len)
{
    while (*len && table_rows_is_blank(**text)) {
        (*text)++;
        (*len)--;
    }
    while (*len && table_rows_is_blank((*text)[*len - 1]))
        (*len)--;
}

/* Bytes of the first word. */
static size_t table_rows_word(const char *text, size_t len)
{
    size_t n = 0;

    while (n < len && !table_rows_is_blank(text[n]))
        n++;
    return n;
}

static int table_rows_add_text(struct table *t, const char *text, size_t len)
{
    struct row_cell *cell = row_add_cell(&t->row);

    if (!cell)
        return -ENOMEM;
    table_rows_trim(&text, &len);
    *cell = (struct row_cell){
        .type = len ? CELL_TEXT : CELL_NONE, .is_string = true, .text = text, .len = len};
    return 0;
}

/* The two cells of a line. */
static int table_rows_split_words(struct table *t, const char *text, size_t len)
{
    size_t word;
    int r;

    table_rows_trim(&text, &len);
    word = table_rows_word(text, len);
    if (word < len && picture_find(t->names, text, word) == PICTURE_NONE &&
        picture_find(t->names, text, len) != PICTURE_NONE)
        word = len;
    r = table_rows_add_text(t, text, word);
    return r < 0 ? r : table_rows_add_text(t, text + word, len - word);
}

/* Spaces and tabs around cells without quotes do not count. */
static void table_rows_trim_cells(struct table *t)
{
    for (size_t i = 0; i < t->row.n; i++) {
        struct row_cell *cell = &t->row.cell[i];

        if (!cell->is_quoted && cell->type == CELL_TEXT) {
            table_rows_trim(&cell->text, &cell->len);
            cell->type = cell->len ? CELL_TEXT : CELL_NONE;
        }
    }
}

/* A line of a list that begins with # and has no cells; but that may be the name of a picture. */
static bool table_rows_is_comment(const struct table *t, const struct row_bytes *row)
{
    return !table_is_csv(t->file) && row->len && *row->bytes == '#' &&
           (t->separator == TABLE_WORDS || !memchr(row->bytes, t->separator, row->len)) &&
           picture_find(t->names, row->bytes, table_rows_word(row->bytes, row->len)) ==
               PICTURE_NONE;
}

static int table_rows_split(struct table *t, const struct row_bytes *row)
{
    char what[WHAT_SIZE];
    int r;

    if (t->separator == TABLE_WORDS)
        return memchr(row->bytes, '\0', row->len)
                   ? diag_set(&t->problem, -EBADMSG,
                              "%s, line %" PRIu64 ": expected text, got a byte 0", t->file,
                              t->walk.line)
                   : table_rows_split_words(t, row->bytes, row->len);
    r = row_parse(&t->row, TABLE_CSV, row->bytes, row->len, NULL, NULL);
    if (r == -EBADMSG) { /* rarely: again, with the name of the row */
        snprintf(what, sizeof(what), "%s, line %" PRIu64, t->file, t->walk.line);
        r = row_parse(&t->row, TABLE_CSV, row->bytes, row->len, what, &t->problem);
    }
    if (r == 0)
        table_rows_trim_cells(t);
    return r;
}

/* The next row that is neither empty nor a comment. 1; 0: there is none; or -errno, and the problem
 * is set. */
static int table_rows_next(struct table *t)
{
    struct row_bytes row;
    int r;

    row_clear(&t->row);
    do {
        r = row_walk_next(&t->walk, &row, &t->problem);
        if (r != 1)
            return r;
    } while (table_rows_is_comment(t, &row));
    r = table_rows_split(t, &row);
    return r < 0 ? r : 1;
}

/* ---- all rows ---- */

void table_release(struct table *t)
{
    for (size_t i = 0; i < t->cells.n && t->column; i++) {
        free(t->column[i].name);
        free(t->column[i].found.picture);
    }
    free(t->column);
    free(t->line);
    value_columns_release(&t->cells);
    row_release(&t->row);
    row_walk_release(&t->walk);
}

/* Columns as the first row has them. */
static int table_rows_begin(struct table *t, size_t n)
{
    struct value_column *added;
    int r = 0;

    if (n > TABLE_COLUMNS_MOST)
        return diag_set(&t->problem, -EBADMSG, "%s, line %" PRIu64 ": expected at most %d cells",
                        t->file, t->walk.line, TABLE_COLUMNS_MOST);
    t->column = calloc(n, sizeof(*t->column));
    for (size_t i = 0; i < n && t->column && r == 0; i++)
        r = value_columns_add(&t->cells, "", VALUE_TEXT, DTYPE_U1, true, 0, &added);
    return t->column ? r : -ENOMEM;
}

static int table_rows_add(struct table *t)
{
    const struct row *row = &t->row;
    const uint64_t line = t->walk.line;
    int r = t->rows ? 0 : table_rows_begin(t, row->n);

    if (r == 0 && row->n != t->cells.n && t->even == SIZE_MAX) {
        t->even = t->rows;
        diag_set(&t->problem, -EBADMSG,
                 "%s, line %" PRIu64 ": expected %u cells, as in the first row, got %zu", t->file,
                 line, t->cells.n, row->n);
    }
    if (r == 0 && t->rows == TABLE_ROWS_MOST)
        return diag_set(&t->problem, -EBADMSG,
                        "%s, line %" PRIu64 ": expected at most %" PRIu32 " rows", t->file, line,
                        TABLE_ROWS_MOST);
    for (size_t i = 0; i < t->cells.n && r == 0; i++) {
        const bool has_cell = i < row->n && row->cell[i].type != CELL_NONE;
        struct value_column *c = &t->cells.column[i];

        if (has_cell)
            value_column_append(c, row->cell[i].text, row->cell[i].len);
        r = has_cell ? value_column_end_row(c) : value_column_end_hole(c);
    }
    if (r == 0)
        r = array_capacity(&t->line, t->rows, sizeof(*t->line));
    if (r == 0)
        t->line[t->rows++] = line;
    return r;
}

void table_read_rows(struct table *t, size_t rows)
{
    while (!t->error && !t->is_whole && t->rows < rows &&
           (rows < SIZE_MAX || t->even == SIZE_MAX)) {
        int r = table_rows_next(t);

        t->error = r == 1 ? table_rows_add(t) : r;
        t->is_whole = r == 0 || t->error;
    }
}

size_t table_integers(const char *text, size_t len, int64_t *ret, size_t most)
{
    for (size_t n = 0;; n++) {
        struct row_cell cell = {.type = CELL_TEXT};

        table_rows_trim(&text, &len);
        if (!len)
            return n;
        cell.text = text;
        cell.len = table_rows_word(text, len);
        text += cell.len;
        len -= cell.len;
        row_cell_judge_number(&cell);
        if (cell.type != CELL_INTEGER || n == most)
            return 0;
        ret[n] = cell.integer;
    }
}
