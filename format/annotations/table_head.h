/* How a table is read, by its first rows: what is between its cells, whether it has a header, which
 * columns may be the key, and what the others hold. */
#ifndef EPOCHFS_FORMAT_ANNOTATIONS_TABLE_HEAD_H
#define EPOCHFS_FORMAT_ANNOTATIONS_TABLE_HEAD_H

#include "format/annotations/table.h"
#include "format/annotations/table_rows.h"

#define TABLE_WIDTH_MOST 256 /* numbers of the rest of a line; more are text */

/* What the cells of a column are: of two the larger one holds both. */
enum table_type { TABLE_EMPTY, TABLE_INTEGERS, TABLE_REALS, TABLE_TEXTS };

struct table_column {
    char *name;           /* by the header; NULL: none */
    enum table_type type; /* of the cells so far */
    unsigned width;       /* of the rest of a line: whole numbers in it; otherwise 1 */
    size_t matched;       /* cells that name a picture, */
    size_t formed;        /* and have an extension or a path */
    uint64_t several;     /* the first line whose cell names several pictures; 0: none does */
    bool may_be_key;
};

struct table_head {
    char separator;
    bool has_header;
    size_t rows;                 /* that were read, with the header */
    struct table_column *column; /* [n] */
    size_t n;
    size_t key, label; /* columns that the options name, or SIZE_MAX */
    bool *is_omitted;  /* [n] the options do not name it; NULL: they name none */
};

struct table_source {
    const struct blob *blob;
    uint64_t at, end;
    const char *file;
    const struct picture_names *names;
    const struct table_options *options; /* or NULL */
};

/* 0; -EDOM with the reason: no row names a picture; -EBADMSG: it has no column that the options
 * name, or is malformed in the first rows although most before name pictures; -ENOMEM and others.
 */
int table_head_read(const struct table_source *source, struct table_head *ret, struct text *reason,
                    struct diag *d);
void table_head_release(struct table_head *head); /* of one that starts as {0} */
#define AUTO_TABLE_HEAD AUTO(table_head_release)

/* See a cell that may be a key. Returns the picture that it names, or PICTURE_NONE. */
uint32_t table_see_key(struct table_column *column, const struct table_rows *rows, size_t i);

/* The type of cell i of a row, for the column. The rest of a line is whole numbers if it has as
 * many as `number` has space for, and the column is wide; they are stored there. */
enum table_type table_type_of(const struct table_rows *rows, size_t i, unsigned width,
                              int64_t number[static TABLE_WIDTH_MOST]);

/* The best key of those that may be: it names `least` pictures at least, and no cell of it names
 * several. SIZE_MAX: none is. *ret_several: the first line where a possible key names several
 * pictures, or 0. */
size_t table_best_key(const struct table_column *column, size_t n, size_t least,
                      uint64_t *ret_several);

#endif
