/* Numbers in text that are shown as other numbers: float32 holds whole numbers up to 2^24, float64
 * up to 2^53. */
#ifndef EPOCHFS_FORMAT_CORE_ROUNDED_H
#define EPOCHFS_FORMAT_CORE_ROUNDED_H

#include "format/core/decimal.h"

#define ROUNDED_LEN 8 /* numbers of fewer characters, without an exponent, are exact enough */

/* Fractions of many digits that turned out to be exact: after so many the data was written from
 * float32, and no more of them are checked. */
#define ROUNDED_EXACT_MOST 4096

#define N_ROUNDED 4

enum rounded {
    ROUNDED_WHOLE = 1,  /* a whole number */
    ROUNDED_DIGITS = 2, /* one of more digits than are kept */
    ROUNDED_LARGE = 4,  /* it is read as infinite, */
    ROUNDED_SMALL = 8,  /* or as 0 */
};

/* Which kind of such a number the text is, as float32 or as float64; 0: it is none, or no number.
 * Readable bytes follow: see DECIMAL_PAD. */
unsigned rounded_number(const uint8_t *text, size_t len, bool doubles);

/* What has been seen of numbers that are checked together, as those of a column. Starts as {0}. */
struct rounded_seen {
    uint8_t kinds;  /* enum rounded: those that are not looked for any longer */
    uint16_t exact; /* fractions of many digits that were exact */
};

/* The first number of a kind. */
struct rounded_first {
    uint64_t at;   /* the caller's: where it is */
    char text[41]; /* its beginning; empty: there is none */
};

/* See a number as rounded_number() does; quick for most numbers. Returns its kind where it is the
 * first of the numbers of that kind, otherwise 0. */
unsigned rounded_see(struct rounded_seen *seen, const uint8_t *text, size_t len, bool doubles);

/* Has the text, which follows "e", an exponent for which a number of few digits can be too large or
 * too small? */
bool rounded_exponent_is_large(const uint8_t *p, const uint8_t *end);

/* Note a number for people. */
void rounded_set_first(struct rounded_first *first, const uint8_t *text, size_t len, uint64_t at);

#endif
