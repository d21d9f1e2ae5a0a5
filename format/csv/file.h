/* A file of comma-separated numbers: how its first lines say that it is read, and the index of its
 * rows. */
#ifndef EPOCHFS_FORMAT_CSV_FILE_H
#define EPOCHFS_FORMAT_CSV_FILE_H

#include "format/records/record_set.h"

#define CSV_COLUMNS_MOST 65536
#define CSV_NONE         SIZE_MAX

/* Numbers of a row of the index: where the line begins, and its bytes without the line end. */
enum { ROW_AT, ROW_BYTES, ROW_NUMBERS };

/* How the lines of a file are read. */
struct csv_shape {
    char delimiter, comment; /* comment: 0: there are none */
    size_t columns;          /* cells of a row */
    size_t label, weight;    /* their columns, or CSV_NONE */
    size_t omitted;          /* columns at the front that are no features: they number the rows */
    bool has_header;
    bool is_keyed_list; /* two whole numbers a row, the first of which counts the rows */
    uint64_t rows_at;   /* byte behind the header, */
    uint64_t lines;     /* and the lines up to there */
    struct text names;  /* of the columns, each ended by NUL; empty: no header */
    struct text note;   /* lines for people: what was decided that they may not expect */
};

static inline bool csv_is_feature(const struct csv_shape *shape, size_t column)
{
    return column >= shape->omitted && column != shape->label && column != shape->weight;
}

static inline uint64_t csv_features(const struct csv_shape *shape)
{
    return shape->columns - shape->omitted - (shape->label != CSV_NONE) -
           (shape->weight != CSV_NONE);
}

struct csv_file {
    struct record_file base;
    struct csv_shape shape;
    bool doubles;          /* numbers are shown as float64, not float32 */
    struct csv_scan *scan; /* while the index is made */
    uint64_t missing;      /* features that are empty or NaN; of a prepared file */
    char *rounded;         /* lines for people about numbers that are; the same; owned */
};

/* Read the head of a file: as much as it takes to have a line, if that is not too long. DECIMAL_PAD
 * bytes follow, of any value. *ret is the caller's, also on error. 0, or -errno with the reason in
 * d. */
int csv_read_head(struct blob *blob, uint8_t **ret, size_t *ret_len, bool *ret_whole,
                  struct diag *d);

/* Find the shape from the head of the file: its delimiter, header and columns. decided: enum
 * csv_decided. 0, or -errno with the reason in d. */
int csv_shape_read(const uint8_t *head, size_t len, bool whole, unsigned decided,
                   const struct format_options *options, const char *name, struct csv_shape *ret,
                   struct diag *d);

/* The column of that number from 0, or of that name; CSV_NONE: there is none. */
size_t csv_shape_column(const struct csv_shape *shape, const char *value);

extern const struct record_file_ops csv_file_ops;

/* Is a number too large for what it is shown as? 0; or -EBADMSG with the first, and how many, in d;
 * or another -errno. */
int csv_check(void *file, struct diag *d);

extern const struct record_format csv_records;

/* ---- probe.c: is a file a table of numbers? ---- */

bool csv_is_named(const char *name); /* does its name say that it is a table? */
enum claim csv_probe(const struct probed_file *file);
const char *csv_hint(const struct probed_file *file); /* see struct format */

/* ---- sets.c: one decision about the first lines of the files of a folder ---- */

/* What source_file.decided says. */
enum csv_decided {
    CSV_ALONE, /* the file decides by itself */
    CSV_NAMES, /* its first line is that of another file, which has names */
    CSV_ROWS,  /* its first line could be names, but its siblings have rows only */
};

/* Set `decided` of files whose first lines others decide about. Blocks until all heads are read.
 * 0 or -ENOMEM. */
int csv_decide(struct source_file *file, size_t n, const struct format_setup *setup);

#endif
