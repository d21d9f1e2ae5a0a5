/* Where the rows of libsvm text are: one pass at memory speed, without making values.
 *
 * Most rows are plain: label, perhaps weight, features, of numbers without exponents and without
 * blanks around colons. That they are, and what their indexes are, is seen from bit masks of 64
 * bytes at a time; any other row is parsed. */
#ifndef EPOCHFS_FORMAT_LIBSVM_SCAN_H
#define EPOCHFS_FORMAT_LIBSVM_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/libsvm/line.h"

#define LIBSVM_SCAN_PAD 64 /* readable bytes before and behind the text; those behind are zero */

/* A row of the text. */
struct libsvm_span {
    uint64_t start;    /* byte of the text */
    uint64_t len;      /* without the end of the line */
    uint64_t features; /* 0 if it cannot be read */
    uint64_t line;     /* number of lines that this scan has seen before it */
};

/* What is known of many rows, those that can be read. */
struct libsvm_totals {
    uint32_t largest;    /* index */
    bool has_features;   /* any index at all */
    bool has_zero;       /* an index 0 */
    uint64_t labels;     /* the most of a row */
    uint64_t skipped;    /* rows that cannot be read and were left out */
    uint64_t text_lines; /* lines that have ended */
};

struct libsvm_scan {
    /* In, constant: */
    unsigned columns; /* enum libsvm_columns: what the rows have */
    bool skip_bad;    /* leave out rows that cannot be read */
    /* Is told each that cannot be read; may be NULL. The line has no end. */
    void (*bad)(struct libsvm_scan *scan, const uint8_t *line, size_t len,
                const struct libsvm_fault *fault);
    void *ctx;
    /* Result of all calls: */
    struct libsvm_totals totals;
    struct libsvm_span *row; /* [n], owned; the caller may set n to 0 */
    size_t n;

    size_t capacity;
    uint64_t *mask; /* owned */
    size_t mask_capacity;
};

/* Add the rows of the lines that end in text[from, to), and of the last one without an end if last.
 * The byte before text is the file's, or a LF. *ret_used: the end of those lines. 0 or -ENOMEM. */
int libsvm_scan_text(struct libsvm_scan *scan, const uint8_t *text, size_t from, size_t to,
                     bool last, size_t *ret_used);

void libsvm_scan_release(struct libsvm_scan *scan);

#endif
