/* A collection whose samples are the rows of a table of metadata, as one file of records. The table
 * is a member of the collection like the files that it names. */
#ifndef EPOCHFS_FORMAT_FILES_METADATA_H
#define EPOCHFS_FORMAT_FILES_METADATA_H

#include "format/files/source.h"
#include "format/records/column_table.h"
#include "format/records/record_set.h"
#include "format/rows/row.h"

/* Columns of the index: two of each row, then two for each column of the table: what the cell is
 * (enum metadata_tag, and the bytes of its text shifted by METADATA_TAG_BITS), and its value. */
enum { METADATA_AT, METADATA_LEN, METADATA_FIXED };
#define METADATA_TAG_BITS 3

enum metadata_tag {
    METADATA_HOLE,
    METADATA_INTEGER,
    METADATA_REAL,
    METADATA_TEXT,
    METADATA_FILE,    /* value: its member */
    METADATA_MISSING, /* no such file */
    METADATA_REFUSED, /* no name of a file below the table's folder */
};

#define METADATA_COLUMNS_MAX 500 /* of a table */
#define METADATA_TEXT_MAX    (16 * ROW_MOST)

/* Numbers of a column of the table. */
enum {
    METADATA_COUNT, /* rows that have it */
    METADATA_SEEN,  /* 1 << enum metadata_tag of each cell */
    METADATA_NAMES, /* 1: its texts name files */
};

struct metadata_file {
    struct record_file base;
    struct files_source source;
    enum table_kind kind;
    size_t table;      /* the member that is the table, */
    char *name;        /* and its path below SOURCE; owned */
    const char *other; /* a second table, of another format: it is refused. NULL: there is none */
    bool is_parquet;   /* so is this */

    struct row_walk walk; /* while the index is made */
    struct row row;
    uint64_t *number; /* of a row of the index */

    struct column_table cells; /* columns of the table */

    /* Once it is prepared: */
    uint64_t missing, refused, unnamed; /* cells, cells, files without a row */
    struct column_table exts;           /* names of the columns that have files */
    struct record_column *columns;      /* [n_columns] */
    struct metadata_column {
        unsigned cell;                    /* number in cells */
        const struct learned_column *ext; /* of files: its name; NULL: of others */
        char name[RECORD_NAME_MAX + 1], shown_ext[RECORD_NAME_MAX + 1];
    } * shows; /* [n_columns] */
};

/* Open a collection; takes over blob and what c->impl owns, also on error. 0; -ENOMEM; or
 * -errno with the reason in d: the table is not there. */
int metadata_open(struct collection *c, struct blob *blob, const struct members *members,
                  const struct format_setup *setup, struct record_file **ret, struct diag *d);

/* ---- what it shows: shown.c ---- */

/* Set columns of a prepared file. 0; -ENOMEM; or -EBADMSG with the reason in d: no row names a
 * file. */
int metadata_make_columns(struct metadata_file *file, struct diag *d);

/* The functions of struct record_format. */
bool metadata_has(const void *file, uint64_t row, unsigned column);
int metadata_dims(const void *file, uint64_t row, unsigned column, uint64_t ret[static RECORD_AXES],
                  struct diag *d);
bool metadata_extent(const void *file, uint64_t row, unsigned column, struct extent *ret);
int metadata_read(struct read_context *rc, const void *file, uint64_t row, unsigned column,
                  uint64_t off, size_t len, uint8_t *dst, struct diag *d);
bool metadata_path(const void *file, uint64_t row, unsigned column, char *ret, size_t size);
void metadata_locate(const void *file, const struct extent *e, struct text *t);
void metadata_note(const void *file, struct text *t);
void metadata_describe(struct record_file *const *file, unsigned n, const char *indent,
                       struct text *t);

#endif
