/* Numbers of libsvm text that float32 does not hold: labels, weights, margins, values. */
#ifndef EPOCHFS_FORMAT_LIBSVM_ROUNDED_H
#define EPOCHFS_FORMAT_LIBSVM_ROUNDED_H

#include "format/core/rounded.h"
#include "format/libsvm/line.h"

struct text;

#define LIBSVM_ROUNDED_KINDS 4

/* The first number of each kind. Starts as {0}. */
struct libsvm_rounded {
    unsigned seen;  /* enum rounded */
    unsigned exact; /* fractions of many digits that float32 holds */
    struct {
        uint64_t at; /* its byte in the file */
        char text[41];
    } first[LIBSVM_ROUNDED_KINDS];
};

/* Are fractions of many digits still checked? Only until one is rounded, or ROUNDED_EXACT_MOST of
 * them were exact. */
static inline bool libsvm_rounded_looks_at_digits(const struct libsvm_rounded *rounded)
{
    return !(rounded->seen & ROUNDED_DIGITS) && rounded->exact < ROUNDED_EXACT_MOST;
}

/* See a number, which begins at that byte of the file. Readable bytes follow: see DECIMAL_PAD. */
void libsvm_rounded_number(struct libsvm_rounded *rounded, const uint8_t *text, size_t len,
                           uint64_t at);

/* Has the line a number with an exponent that float32 may not reach? Quick. */
bool libsvm_rounded_exponents(const uint8_t *line, size_t len);

/* See the numbers of a row that can be read, which begins at that byte of the file. columns: enum
 * libsvm_columns. */
void libsvm_rounded_row(struct libsvm_rounded *rounded, const uint8_t *line, size_t len,
                        unsigned columns, uint64_t at);

void libsvm_rounded_merge(struct libsvm_rounded *rounded, const struct libsvm_rounded *other);

/* Add a line for people for each kind that was seen in the file of that name. end: of the line. */
void libsvm_rounded_note(const struct libsvm_rounded *rounded, const char *name, const char *end,
                         struct text *t);

#endif
