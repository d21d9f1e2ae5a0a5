/* The first lines of a table: what is between their cells, and whether the first line has names. */
#ifndef EPOCHFS_FORMAT_CSV_HEAD_H
#define EPOCHFS_FORMAT_CSV_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The lines of a text that have cells, one after another. A copy walks on its own. */
struct csv_head {
    const uint8_t *text;
    size_t len;
    bool whole;     /* text is all of the file; otherwise its last line may go on */
    char comment;   /* 0: there are none */
    size_t tabs;    /* csv_tabs(); 0: not known yet, and lines of spaces and tabs are empty */
    bool begun;     /* a line with cells has been read */
    size_t at;      /* byte of the next line */
    uint64_t lines; /* that have ended, with cells or without */
};

struct csv_line {
    const uint8_t *text;
    size_t len;
    bool marked; /* "# " is before it, as numpy.savetxt() writes it before names. Only line 1 */
};

/* Begins after a byte order mark. */
struct csv_head csv_head_of(const uint8_t *text, size_t len, bool whole, char comment);
bool csv_head_next(struct csv_head *head, struct csv_line *ret);

enum csv_cell_type { CSV_EMPTY, CSV_NUMBER, CSV_NAME };

/* What the cells of a line are. */
struct csv_cells {
    size_t n, numbers, empty, quoted;
    enum csv_cell_type first;
    bool whole;    /* all numbers are digits only, */
    bool rising;   /* each is larger than the one before, */
    bool by_one;   /* by one, */
    uint64_t low;  /* the first of them, */
    uint64_t high; /* and the largest */
};

struct csv_cells csv_count_cells(const struct csv_line *line, char delimiter);

/* Numbers, or cells without text? */
static inline bool csv_is_row(const struct csv_cells *cells)
{
    return cells->numbers + cells->empty == cells->n;
}

/* What is between the cells of the next lines: the first comma, tab or semicolon, otherwise blanks.
 */
char csv_find_delimiter(struct csv_head head);

enum csv_first { CSV_FIRST_ROW, CSV_FIRST_NAMES, CSV_FIRST_MIXED };

/* What the next line is. *ret_by_numbers: it has numbers, and is names or could be. */
enum csv_first csv_judge_first(struct csv_head head, char delimiter, bool *ret_by_numbers);

/* Do the next lines have whole numbers only? */
bool csv_rest_is_whole(struct csv_head head, char delimiter);

enum csv_column { CSV_COLUMN_OTHER, CSV_COLUMN_REPEATS, CSV_COLUMN_COUNTS };

/* What the lines after the next one have in that column: whole numbers, each another one; or such
 * of which some are the same; or anything else. */
enum csv_column csv_judge_column(struct csv_head head, char delimiter, size_t column);

#endif
