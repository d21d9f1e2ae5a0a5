/* A collection whose samples are the rows of a table of metadata, as one file of records. The table
 * is a member of the collection like the files that it names. */
#ifndef EPOCHFS_FORMAT_FILES_ROWS_H
#define EPOCHFS_FORMAT_FILES_ROWS_H

#include "base/members.h"
#include "format/files/claim.h"
#include "format/files/row.h"
#include "format/records/column_table.h"
#include "format/records/record_set.h"

/* Columns of the index: two of each row, then two for each column of the table: what the cell is
 * (enum row_cell_tag, and the bytes of its text shifted by ROWS_TAG_BITS), and its value. */
enum { ROWS_AT, ROWS_LEN, ROWS_FIXED };
#define ROWS_TAG_BITS 3

enum row_cell_tag {
    ROWS_HOLE,
    ROWS_INTEGER,
    ROWS_REAL,
    ROWS_TEXT,
    ROWS_FILE,    /* value: its member */
    ROWS_MISSING, /* no such file */
    ROWS_REFUSED, /* no name of a file below the table's folder */
};

#define ROWS_COLUMNS_MAX 500 /* of a table */
#define ROWS_TEXT_MAX    (16 * ROW_MOST)

/* Numbers of a column of the table. */
enum {
    ROWS_COUNT, /* rows that have it */
    ROWS_SEEN,  /* 1 << enum row_cell_tag of each cell */
    ROWS_NAMES, /* 1: its texts name files */
};

struct rows_file {
    struct blob *blob; /* owned, and has members */
    const struct members *members;
    char *root;
    enum table_kind kind;
    size_t table;      /* the member that is the table */
    const char *other; /* a second table, of another format: it is refused. NULL: there is none */
    char *aside;
    size_t n_unread; /* files that cannot be read, */
    char *unread;    /* and why the first cannot; NULL: there are none */
    unsigned users;

    struct row_walk walk; /* while the index is made */
    struct row row;
    uint64_t *number; /* of a row of the index */

    struct prepared prepared;
    struct column_table cells; /* columns of the table */

    /* Once it is prepared: */
    uint64_t missing, refused, unnamed; /* cells, cells, files without a row */
    struct column_table exts;           /* names of the columns that have files */
    struct record_column *columns;      /* [n_columns] */
    struct rows_column {
        unsigned cell;                    /* number in cells */
        const struct learned_column *ext; /* of files: its name; NULL: of others */
        char name[RECORD_NAME_MAX + 1], shown_ext[RECORD_NAME_MAX + 1];
    } * shows; /* [n_columns] */
    unsigned n_columns;
};

/* open_collection() of struct format. Takes over what c->impl owns, too. */
int rows_open_collection(struct collection *c, struct blob *blob, const struct members *members,
                         const struct format_setup *setup, struct finds *finds);

/* ---- what it shows: rows_shown.c ---- */

/* Set columns of a prepared file. 0; -ENOMEM; or -EBADMSG with the reason in d: no row names a
 * file. */
int rows_make_columns(struct rows_file *file, struct diag *d);

/* The functions of struct record_format. */
bool rows_has(const void *file, uint64_t row, unsigned column);
int rows_dims(const void *file, uint64_t row, unsigned column, uint64_t ret[static RECORD_AXES],
              struct diag *d);
bool rows_extent(const void *file, uint64_t row, unsigned column, struct extent *ret);
int rows_read(struct read_context *rc, const void *file, uint64_t row, unsigned column,
              uint64_t off, size_t len, uint8_t *dst, struct diag *d);
void rows_locate(const void *file, const struct extent *e, struct text *t);
void rows_note(const void *file, struct text *t);
void rows_describe(const struct shard *shard, unsigned n, const char *indent, struct text *t);

#endif
