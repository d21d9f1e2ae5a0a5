/* Is a file libsvm text, or LibFM text? By its first rows. */
#ifndef EPOCHFS_FORMAT_LIBSVM_PROBE_H
#define EPOCHFS_FORMAT_LIBSVM_PROBE_H

#include "format/core/format.h"

/* Counts over the first rows. */
struct impression {
    unsigned strong; /* rows with index:value */
    unsigned weak;   /* other rows that can be read */
    uint64_t cells;  /* of the first of these: label and indexes, */
    bool ragged;     /* and others differ from it, or have a weight or a qid */
    unsigned lists;  /* of these, rows with a list of labels: perhaps comma-separated values */
    unsigned alike;  /* lines that cannot be read, but are meant as rows */
    unsigned bad;    /* other lines that cannot be read */
};

/* Look at the first rows of a file. columns: 0, or LIBSVM_FIELD: as LibFM text. */
struct impression look_at_rows(const uint8_t *head, size_t len, bool whole, unsigned columns);

unsigned impression_rows(const struct impression *seen); /* that were looked at */

enum claim libsvm_probe(const struct probed_file *file);
enum claim libfm_probe(const struct probed_file *file);

#endif
