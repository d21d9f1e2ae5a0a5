/* Numbers of libsvm text that float32 does not hold: labels, weights, margins, values. */
#ifndef EPOCHFS_FORMAT_LIBSVM_ROUNDED_H
#define EPOCHFS_FORMAT_LIBSVM_ROUNDED_H

#include "format/core/rounded.h"

struct text;

/* Starts as {0}. */
struct libsvm_rounded {
    struct rounded_seen seen;
    struct rounded_first first[N_ROUNDED]; /* with their bytes in the file */
};

/* See a number, which begins at that byte of the file. Readable bytes follow: see DECIMAL_PAD. */
void libsvm_rounded_number(struct libsvm_rounded *rounded, const uint8_t *text, size_t len,
                           uint64_t at);

/* Has the line a number with an exponent that float32 may not reach? Quick. */
bool libsvm_rounded_exponents(const uint8_t *line, size_t len);

void libsvm_rounded_merge(struct libsvm_rounded *rounded, const struct libsvm_rounded *other);

/* Add a line for people for each kind that was seen in the file of that name. end: of the line. */
void libsvm_rounded_note(const struct libsvm_rounded *rounded, const char *name, const char *end,
                         struct text *t);

#endif
