/* Numbers of libsvm text that float32 does not hold: labels, weights, margins, values. */
#ifndef EPOCHFS_FORMAT_LIBSVM_ROUNDED_H
#define EPOCHFS_FORMAT_LIBSVM_ROUNDED_H

#include "format/core/rounded.h"
#include "format/libsvm/line.h"

struct text;

#define LIBSVM_ROUNDED_KINDS 4

/* The first number of each kind. Starts as {0}. */
struct libsvm_rounded {
    unsigned seen; /* enum rounded */
    struct {
        uint64_t at; /* its byte in the file */
        char text[41];
    } first[LIBSVM_ROUNDED_KINDS];
};

/* See a number, which begins at that byte of the file. Readable bytes follow: see DECIMAL_PAD. */
void libsvm_rounded_number(struct libsvm_rounded *rounded, const uint8_t *text, size_t len,
                           uint64_t at);

/* See the numbers of a row that can be read, which begins at that byte of the file. columns: enum
 * libsvm_columns. */
void libsvm_rounded_row(struct libsvm_rounded *rounded, const uint8_t *line, size_t len,
                        unsigned columns, uint64_t at);

void libsvm_rounded_merge(struct libsvm_rounded *rounded, const struct libsvm_rounded *other);

/* Add a line for people for each kind that was seen in the file of that name. end: of the line. */
void libsvm_rounded_note(const struct libsvm_rounded *rounded, const char *name, const char *end,
                         struct text *t);

#endif
