/* Numbers in text that are shown as other numbers: float32 holds whole numbers up to 2^24, float64
 * up to 2^53. */
#ifndef EPOCHFS_FORMAT_CORE_ROUNDED_H
#define EPOCHFS_FORMAT_CORE_ROUNDED_H

#include "format/core/decimal.h"

#define ROUNDED_LEN 8 /* numbers of fewer characters, without an exponent, are exact enough */

/* Fractions of many digits that turned out to be exact: after so many the data was written from
 * float32, and no more of them are checked. */
#define ROUNDED_EXACT_MOST 4096

enum rounded {
    ROUNDED_WHOLE = 1,  /* a whole number */
    ROUNDED_DIGITS = 2, /* one of more digits than are kept */
    ROUNDED_LARGE = 4,  /* it is read as infinite, */
    ROUNDED_SMALL = 8,  /* or as 0 */
};

/* Which kind of such a number the text is, as float32 or as float64; 0: it is none, or no number.
 * Readable bytes follow: see DECIMAL_PAD. */
unsigned rounded_number(const uint8_t *text, size_t len, bool doubles);

#endif
