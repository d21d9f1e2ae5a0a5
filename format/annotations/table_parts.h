/* What the files that read a table share. Only they include this.
 *
 * All cells are read as texts, once. Then the first rows say whether there is a header and which
 * columns may be the key, and all rows what the columns hold. */
#ifndef EPOCHFS_FORMAT_ANNOTATIONS_TABLE_PARTS_H
#define EPOCHFS_FORMAT_ANNOTATIONS_TABLE_PARTS_H

#include "base/diag.h"
#include "format/annotations/table.h"
#include "format/rows/row.h"

#define TABLE_WIDTH_MOST 256 /* numbers of the rest of a line; more are text */

/* What the cells of a column are: of two the larger one holds both. */
enum table_type { TABLE_EMPTY, TABLE_INTEGERS, TABLE_REALS, TABLE_TEXTS };

struct table_text {
    const char *at;
    size_t len;
};

struct table_column {
    char *name; /* by the header; NULL: none */
    bool may_be_key;
    bool is_omitted; /* others are said */
    /* What was seen in its rows: */
    enum table_type type;
    unsigned width;             /* whole numbers in each cell */
    size_t matched;             /* cells that name a picture, */
    size_t formed;              /* and have an extension or a path */
    struct table_text match;    /* the first of them */
    uint64_t several;           /* the first line whose cell names several pictures; 0: none does */
    struct picture_table found; /* of a possible key, after all rows: what it names; picture may be
                                 * NULL */
};

struct table {
    const struct blob *blob;
    const char *file;
    const struct picture_names *names;
    const struct json_t *said; /* what a recipe says of it, or NULL */

    char separator; /* TABLE_WORDS: two cells, the first word and the rest */
    struct row_walk walk;
    struct row row;      /* that came last */
    bool is_whole;       /* there are no more rows, */
    int error;           /* or no more can be read: -errno, */
    size_t even;         /* rows before the first one with another number of cells; SIZE_MAX: all */
    struct diag problem; /* of these two, what came first */

    struct value_columns cells;  /* a column of texts for each of the table */
    uint64_t *line;              /* [rows] */
    size_t rows, head;           /* that were read; the first ones, which decide how it is read */
    struct table_column *column; /* [cells.n] */
    bool has_header;
    size_t key, label; /* columns; those that are said, or SIZE_MAX */
};

static inline struct table_text table_cell(const struct table *t, size_t column, size_t row)
{
    const uint8_t *text;
    uint64_t len = value_items(&t->cells.column[column], row, &text);

    return (struct table_text){len ? (const char *)text : "", len};
}

/* The picture that a cell names, PICTURE_NONE or PICTURE_SEVERAL. */
uint32_t table_picture(const struct table *t, size_t column, size_t row);

/* See rows [from, to) of all columns. */
void table_see(struct table *t, size_t from, size_t to);

/* Has the column a name that is not pandas' for the numbers of rows? */
bool table_is_named(const struct table_column *column);

/* Have half of the names of pictures in it an extension or a path? */
bool table_is_formed(const struct table_column *column);

/* The most pictures that a column names; and the best key of those that may be: it names `least`
 * pictures at least, and no cell of it names several. SIZE_MAX: none is. *ret_several: the first
 * line where a possible key names several pictures, or 0. */
size_t table_most_matched(const struct table *t);
size_t table_best_key(const struct table *t, size_t least, uint64_t *ret_several);

/* Is the file .csv or .tsv by its name? Others may have comments. */
static inline bool table_is_csv(const char *file)
{
    return text_ends_with(file, ".csv") || text_ends_with(file, ".tsv");
}

/* ---- table_rows.c ---- */

/* Read rows, until there are that many. An error is kept in the table. */
void table_read_rows(struct table *t, size_t rows);
void table_release(struct table *t);

/* Parse a text of whole numbers with white space between them. Returns how many there are; 0: none,
 * or more than most, or something else is in the text. */
size_t table_integers(const char *text, size_t len, int64_t *ret, size_t most);

/* ---- table_head.c ---- */

/* Read the first rows with what is between the cells. 0; -EDOM with the reason: no row names a
 * picture; or -errno. */
int table_read_head(struct table *t, struct text *reason);

/* Is the first row a header, and which columns may be the key? 0; -EBADMSG: it has no column that
 * is said; -ENOMEM. */
int table_judge_head(struct table *t, struct diag *d);

#endif
