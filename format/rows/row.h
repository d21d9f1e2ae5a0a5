/* Tables with metadata of files, row by row: metadata.jsonl, a JSON object in each line; CSV (RFC
 * 4180), also with another delimiter; and texts of lines. All are hostile. */
#ifndef EPOCHFS_FORMAT_ROWS_ROW_H
#define EPOCHFS_FORMAT_ROWS_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/scope.h"
#include "format/index/pass_window.h"

struct json_t;

#define ROW_MOST (UINT64_C(1) << 20) /* bytes of a row */

enum table_format {
    TABLE_JSONL,
    TABLE_CSV,
    TABLE_LINES, /* texts without quotes: row_walk_next() only */
};

/* ---- where rows are ---- */

/* A walk over the rows of a table, which is bytes [at, end) of a blob. */
struct row_walk {
    const struct blob *blob;
    enum table_format format;
    char delimiter; /* of CSV; 0: a comma */
    uint64_t at, end;
    uint64_t line;    /* of the row that came last, from 1 */
    const char *name; /* of the table, in messages; the caller's */

    /* Private: */
    uint64_t lines; /* before at */
    struct pass_window window;
};

struct row_bytes {
    const char *bytes; /* valid until the next call; without the end of the line */
    uint64_t at;       /* in the blob */
    size_t len;
};

/* The next row that is not empty. 1; 0: there is none; or -errno with the reason in d: -EBADMSG is
 * for good, after others it may be called again. */
int row_walk_next(struct row_walk *walk, struct row_bytes *ret, struct diag *d);
void row_walk_release(struct row_walk *walk); /* of one that starts as {0} */

/* ---- what is in a row ---- */

enum cell_type { CELL_NONE, CELL_INTEGER, CELL_REAL, CELL_TEXT };

struct row_cell {
    const char *name; /* of JSON: its column; CSV: NULL, for the place says it */
    enum cell_type type;
    bool is_string; /* not another value of JSON as text */
    union {
        int64_t integer;
        double real;
    };
    const char *text; /* of each kind but CELL_NONE: as it is written, without quotes around it */
    size_t len;
    bool is_quoted;
    char *made; /* private */
};

struct row {
    struct row_cell *cell; /* [n] */
    size_t n;
    char delimiter; /* of CSV; 0: a comma */

    /* Private: */
    size_t capacity; /* of cell: it is kept from row to row */
    struct json_t *json;
};

/* Forget the cells; and add one, which is {0}: NULL: no memory. */
void row_clear(struct row *row);
struct row_cell *row_add_cell(struct row *row);

/* If a text is a number as JSON writes it, make its cell one: "007" is none, its zeros mean
 * something. One that is too large for its type stays a text. */
void row_cell_judge_number(struct row_cell *cell);

/* Parse a row; what names it in messages, and may be NULL if d is. null, and an empty cell of CSV,
 * are CELL_NONE; other values of JSON are text; a cell of CSV that is written as a number is one.
 * 0; -ENOMEM; or -EBADMSG with the reason in d. */
int row_parse(struct row *row, enum table_format format, const char *bytes, size_t len,
              const char *what, struct diag *d);
void row_release(struct row *row); /* of one that starts as {0}; it may be used again */
#define AUTO_ROW AUTO(row_release)

#endif
