/* Where the rows of libsvm text are: found in one pass at memory speed, without parsing values.
 *
 * Most rows are plain: a label, perhaps a weight, and features; no exponents in numbers, no white
 * space around colons. The scan tells plain rows, and their indexes, from bit masks over 64 bytes
 * at a time; it parses any other row. */
#ifndef EPOCHFS_FORMAT_LIBSVM_SCAN_H
#define EPOCHFS_FORMAT_LIBSVM_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/libsvm/line.h"
#include "format/libsvm/places.h"
#include "format/libsvm/rounded.h"

#define LIBSVM_SCAN_PAD 64 /* readable bytes before and after the text; those after it are zero */

/* A row of the text. */
struct libsvm_span {
    uint64_t start;    /* byte of the text */
    uint64_t len;      /* bytes, without the end of the line */
    uint64_t features; /* 0 if it cannot be read */
    uint64_t line;     /* number of lines that this scan has seen before it */
    int64_t qid;       /* PLACES_NO_QID: it has none, or cannot be read */
};

/* Totals over the rows that can be read. */
struct libsvm_totals {
    uint32_t largest; /* index */
    uint32_t largest_field;
    bool has_features;   /* any index at all */
    bool has_zero;       /* an index 0 */
    uint64_t labels;     /* of the row with the most */
    uint64_t skipped;    /* rows omitted because they cannot be read */
    uint64_t text_lines; /* lines that have ended */
};

void libsvm_totals_add(struct libsvm_totals *sum, const struct libsvm_totals *t);

struct libsvm_scan {
    /* In, constant: */
    unsigned columns; /* enum libsvm_columns: what the rows have */
    bool skip_bad;    /* omit rows that cannot be read */
    /* Called for each row that cannot be read; may be NULL. The line comes without its end. */
    void (*bad)(struct libsvm_scan *scan, const uint8_t *line, size_t len,
                const struct libsvm_fault *fault);
    void *ctx;
    uint64_t at; /* byte of the file that the text begins with */
    /* Result of all calls: */
    struct libsvm_totals totals;
    struct libsvm_rounded rounded;
    struct libsvm_span *row; /* [n], owned; the caller may reset n to 0 */
    size_t n;

    size_t capacity;
    uint64_t *mask; /* owned */
    size_t mask_capacity;
};

/* Add the rows of the lines that end in text[from, to); if last, also of a final line without an
 * end. The byte before text is the file's previous byte, or LF. *ret_used: the end of those lines.
 * 0 or -ENOMEM. */
int libsvm_scan_text(struct libsvm_scan *scan, const uint8_t *text, size_t from, size_t to,
                     bool last, size_t *ret_used);

void libsvm_scan_release(struct libsvm_scan *scan);

#endif
