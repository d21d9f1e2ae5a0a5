/* One line of a table as dmlc reads it: cells between delimiters, each a number or nothing. */
#ifndef EPOCHFS_FORMAT_CSV_ROW_H
#define EPOCHFS_FORMAT_CSV_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/core/decimal.h"

#define CSV_LINE_MOST (UINT64_C(16) << 20) /* bytes of a line */

/* A cell: its text without the white space around it and without quotes. */
struct csv_cell {
    const uint8_t *text;
    size_t len;
    bool broken; /* a quote is not where one may be */
    bool quoted;
};

/* The cell that begins at p; *ret_next: the byte behind its delimiter, NULL: it was the last. A
 * text in quotes holds no quote, and no delimiter counts in it. Delimiter ' ': cells are between
 * blanks, any number of them, before the first and after the last as well. */
void csv_cell(const uint8_t *p, const uint8_t *end, char delimiter, struct csv_cell *ret,
              const uint8_t **ret_next);

/* The number that a cell is: all of it; NaN if the cell is empty. false: it is none. Readable bytes
 * follow the text: see DECIMAL_PAD. */
bool csv_number(const struct csv_cell *cell, float *ret);

/* The cells of a line as numbers, of which value has room for most. *ret_bad: the first that is no
 * number, or `most` if there is none. Returns how many cells the line has. */
size_t csv_parse(const uint8_t *line, size_t len, char delimiter, float *value, size_t most,
                 size_t *ret_bad);
size_t csv_parse_doubles(const uint8_t *line, size_t len, char delimiter, double *value,
                         size_t most, size_t *ret_bad);

/* How many tabs a row has whose cells are all missing; 0: other delimiters are used. */
static inline size_t csv_tabs(char delimiter, size_t columns)
{
    return delimiter == '\t' ? columns - 1 : 0;
}

/* Is a line not a row? It is a comment (0: the file has none), or has only spaces and tabs, and not
 * `tabs` tabs. */
bool csv_is_empty(const uint8_t *line, size_t len, size_t tabs, char comment);

#endif
