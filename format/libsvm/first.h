/* What the first rows of a file say about all: whether it is libsvm text, or LibFM text; whether
 * rows have weights, qids and values; and whether the first line is a header: `rows features
 * labels` in files of the Extreme Classification Repository, `rows columns` in those of a matrix.
 */
#ifndef EPOCHFS_FORMAT_LIBSVM_FIRST_H
#define EPOCHFS_FORMAT_LIBSVM_FIRST_H

#include "format/core/format.h"
#include "format/libsvm/line.h"

#define LIBSVM_COUNTS_MOST 3

struct libsvm_header {
    unsigned counts; /* 0: there is no header */
    uint64_t count[LIBSVM_COUNTS_MOST];
    size_t bytes;   /* up to the first line after it, */
    uint64_t lines; /* and the lines */
    bool no_labels; /* the rows after it begin with a feature: a matrix */
};

struct libsvm_first {
    unsigned rows;    /* that were looked at: */
    unsigned strong;  /* those with index:value */
    unsigned weak;    /* others that can be read */
    uint64_t cells;   /* of the first of these: label and indexes, */
    bool ragged;      /* and others differ from it, or have a weight or a qid */
    unsigned lists;   /* of these, rows with a list of labels: perhaps comma-separated values */
    unsigned alike;   /* lines that cannot be read, but are meant as rows */
    unsigned bad;     /* other lines that cannot be read */
    bool is_found;    /* a row can be read: */
    unsigned columns; /* enum libsvm_columns of the first such, after a header */
    struct libsvm_header header;
    /* Private: */
    bool has_values, is_found_behind;
    unsigned columns_behind; /* of the first such row after row 0 */
};

/* Look at the first rows of a text, which LIBSVM_PAD zeros follow. whole: the text ends with its
 * last line, which otherwise is looked at without its last word, if no row is before it: a 0
 * replaces that. known: enum libsvm_columns that the format and the options say. */
struct libsvm_first libsvm_first_rows(uint8_t *text, size_t len, bool whole, unsigned known);

/* The same of the first bytes of a file, FORMAT_HEAD at most. columns: 0, or LIBSVM_FIELD: as LibFM
 * text. */
struct libsvm_first libsvm_first_of_head(const uint8_t *head, size_t len, bool whole,
                                         unsigned columns);

enum claim libsvm_probe(const struct probed_file *file);
enum claim libfm_probe(const struct probed_file *file);

#endif
