/* One pass over a file of libsvm text, a piece at a time: to index it, or to check it. */
#ifndef EPOCHFS_FORMAT_LIBSVM_PASS_H
#define EPOCHFS_FORMAT_LIBSVM_PASS_H

#include "base/blob.h"
#include "base/diag.h"
#include "format/libsvm/places.h"
#include "format/libsvm/scan.h"

#define LIBSVM_PASS_THREADS 4

struct libsvm_pass {
    const struct blob *blob;
    unsigned threads; /* that scan one piece; with 1, rows and faults come in order */
    unsigned mark;    /* bytes of a byte order mark */
    uint64_t at;      /* byte of the first line not seen yet */
    uint64_t lines;   /* before it */
    uint8_t *buffer;  /* owned */
    size_t capacity;
    size_t piece; /* bytes to read next */
    /* Inside a line that is longer than a row may be: */
    bool in_long_line, long_is_row;
    struct row_place long_line; /* so far */
    struct libsvm_scan scan[LIBSVM_PASS_THREADS];
};

/* Starts after a byte order mark, of mark bytes. threads 0: one per processor. */
void libsvm_pass_init(struct libsvm_pass *pass, const struct blob *blob, unsigned mark,
                      unsigned columns, bool skip_bad, unsigned threads);
void libsvm_pass_release(struct libsvm_pass *pass);

/* Is called for each row, in order. lines: of the file, before the row. qid: or PLACES_NO_QID. */
typedef int libsvm_row_fn(void *ctx, const struct row_place *place, uint64_t lines, int64_t qid);

/* Read on, and call row() for each row found. 1 at
 * the end of the file, 0 before, or -errno with the reason in d; after an error of a read the next
 * step goes on where the last good one ended. */
int libsvm_pass_step(struct libsvm_pass *pass, libsvm_row_fn *row, void *ctx, struct diag *d);

/* The totals of all scans, added to those that start as {0}. */
void libsvm_pass_totals(const struct libsvm_pass *pass, struct libsvm_totals *totals,
                        struct libsvm_rounded *rounded);

#endif
