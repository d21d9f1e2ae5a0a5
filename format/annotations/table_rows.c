#include "format/annotations/table_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/blob.h"
#include "base/diag.h"
#include "format/annotations/table.h"

#define WHAT_SIZE 512 /* bytes of "file, line 7" */

bool table_is_csv(const char *file)
{
    return text_ends_with(file, ".csv") || text_ends_with(file, ".tsv");
}

struct table_rows table_rows_of(const struct blob *blob, uint64_t at, uint64_t end,
                                const char *file, char separator, const struct picture_names *names)
{
    return (struct table_rows){
        .walk = {.blob = blob,
                 .format = separator == TABLE_WORDS ? TABLE_LINES : TABLE_CSV,
                 .delimiter = separator,
                 .at = at,
                 .end = end,
                 .name = file},
        .separator = separator,
        .row.delimiter = separator,
        .is_list = !table_is_csv(file),
        .names = names,
    };
}

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

static int table_rows_add_text(struct table_rows *rows, const char *text, size_t len)
{
    struct row_cell *cell = row_add_cell(&rows->row);

    if (!cell)
        return -ENOMEM;
    table_rows_trim(&text, &len);
    *cell = (struct row_cell){
        .type = len ? CELL_TEXT : CELL_NONE, .is_string = true, .text = text, .len = len};
    return 0;
}

/* The two cells of a line. */
static int table_rows_split_words(struct table_rows *rows, const char *text, size_t len)
{
    size_t word = 0;
    int r;

    table_rows_trim(&text, &len);
    while (word < len && !table_rows_is_blank(text[word]))
        word++;
    rows->picture = picture_find(rows->names, text, word);
    if (word < len && rows->picture == PICTURE_NONE) {
        rows->picture = picture_find(rows->names, text, len);
        word = rows->picture == PICTURE_NONE ? word : len;
    }
    r = table_rows_add_text(rows, text, word);
    return r < 0 ? r : table_rows_add_text(rows, text + word, len - word);
}

/* Spaces and tabs around cells without quotes do not count. */
static void table_rows_trim_cells(struct table_rows *rows)
{
    for (size_t i = 0; i < rows->row.n; i++) {
        struct row_cell *cell = &rows->row.cell[i];

        if (!cell->is_quoted && cell->type == CELL_TEXT) {
            table_rows_trim(&cell->text, &cell->len);
            cell->type = cell->len ? CELL_TEXT : CELL_NONE;
        }
        row_cell_judge_number(cell);
    }
}

/* A line of a list that begins with # and has no cells; but that may be the name of a picture. */
static bool table_rows_is_comment(const struct table_rows *rows, const struct row_bytes *row)
{
    size_t word = 0;

    if (!rows->is_list || !row->len || *row->bytes != '#' ||
        (rows->separator != TABLE_WORDS && memchr(row->bytes, rows->separator, row->len)))
        return false;
    while (word < row->len && !table_rows_is_blank(row->bytes[word]))
        word++;
    return picture_find(rows->names, row->bytes, word) == PICTURE_NONE;
}

static int table_rows_split(struct table_rows *rows, const struct row_bytes *row, struct diag *d)
{
    char what[WHAT_SIZE];
    int r;

    if (rows->separator == TABLE_WORDS)
        return memchr(row->bytes, '\0', row->len)
                   ? diag_set(d, -EBADMSG, "%s, line %" PRIu64 ": expected text, got a byte 0",
                              rows->walk.name, rows->walk.line)
                   : table_rows_split_words(rows, row->bytes, row->len);
    r = row_parse(&rows->row, TABLE_CSV, row->bytes, row->len, NULL, NULL);
    if (r == -EBADMSG) { /* rarely: again, with the name of the row */
        snprintf(what, sizeof(what), "%s, line %" PRIu64, rows->walk.name, rows->walk.line);
        r = row_parse(&rows->row, TABLE_CSV, row->bytes, row->len, what, d);
    }
    if (r == 0)
        table_rows_trim_cells(rows);
    return r;
}

int table_rows_next(struct table_rows *rows, struct diag *d)
{
    struct row_bytes row;
    int r;

    row_clear(&rows->row);
    do {
        r = row_walk_next(&rows->walk, &row, d);
        if (r != 1)
            return r;
    } while (table_rows_is_comment(rows, &row));
    r = table_rows_split(rows, &row, d);
    return r < 0 ? r : 1;
}

uint32_t table_rows_picture(const struct table_rows *rows, size_t i)
{
    const struct row_cell *cell = &rows->row.cell[i];

    if (rows->separator == TABLE_WORDS)
        return i ? PICTURE_NONE : rows->picture;
    return picture_find(rows->names, cell->text, cell->len);
}

void table_rows_release(struct table_rows *rows)
{
    row_release(&rows->row);
    row_walk_release(&rows->walk);
}

size_t table_integers(const char *text, size_t len, int64_t *ret, size_t most)
{
    size_t n = 0;

    for (;;) {
        struct row_cell cell = {.type = CELL_TEXT, .text = text};

        table_rows_trim(&text, &len);
        if (!len)
            return n;
        for (cell.text = text; cell.len < len && !table_rows_is_blank(text[cell.len]);)
            cell.len++;
        text += cell.len;
        len -= cell.len;
        row_cell_judge_number(&cell);
        if (cell.type != CELL_INTEGER || n == most)
            return 0;
        ret[n++] = cell.integer;
    }
}
