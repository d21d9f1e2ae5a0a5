/* What the first rows of a file say about all: whether they have weights, qids and values; and
 * whether the first row is none, but the header of a file of the Extreme Classification Repository:
 * `rows features labels`, or of a matrix: `rows columns`. */
#ifndef EPOCHFS_FORMAT_LIBSVM_FIRST_H
#define EPOCHFS_FORMAT_LIBSVM_FIRST_H

#include "format/libsvm/line.h"

#define LIBSVM_COUNTS_MOST 3

struct libsvm_header {
    unsigned counts; /* 0: there is no header */
    uint64_t count[LIBSVM_COUNTS_MOST];
    size_t bytes;   /* up to the first line after it, */
    uint64_t lines; /* and the lines */
    bool no_labels; /* the rows after it begin with a feature: a matrix */
};

/* For whole lines. known: enum libsvm_columns that the format and the options say. false: no row
 * can be read. The text is followed by LIBSVM_PAD bytes. */
bool libsvm_first_rows(const uint8_t *text, size_t len, unsigned known, unsigned *ret_columns,
                       struct libsvm_header *ret_header);

#endif
