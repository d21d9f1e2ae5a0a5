/* The way of the pass through a column of a row group: it makes the states of its rows, a unit at a
 * time. One thread. */
#ifndef EPOCHFS_FORMAT_PARQUET_CURSOR_H
#define EPOCHFS_FORMAT_PARQUET_CURSOR_H

#include "format/parquet/file.h"

#define PARQUET_UNIT_VALUES (UINT64_C(1) << 20)  /* with nulls: a unit of so many is full */
#define PARQUET_UNIT_BYTES  (UINT64_C(64) << 10) /* of values, at least, except the last unit */

/* What the index has of a row. */
struct cursor_row {
    uint64_t state, place;
};

struct cursor {
    struct parquet_walk walk;
    bool has_page;            /* walk is at a page that was not decoded */
    struct page_data pending; /* pages of the next unit */
    bool is_cut;
    uint64_t pending_at;
    unsigned group;
    uint64_t row, end;       /* rows of the file: the next to be made; of the group's end */
    struct cursor_row *made; /* [n] owned; not yet used: those from pos on */
    size_t n, pos;
    struct parquet_unit *unit; /* [n_units] of the group; owned */
    size_t n_units;
};

/* Begin a unit at that byte. 0 or -ENOMEM. */
int parquet_cursor_add_unit(struct cursor *c, uint64_t at);

/* Make the states of the next unit. 0, or -errno with the reason in d: it is called again. */
int parquet_cursor_fill(struct parquet_file *file, struct cursor *c, struct parquet_column *column,
                        struct diag *d);

void parquet_cursor_release(struct cursor *c); /* of one that starts as {0} */

#endif
