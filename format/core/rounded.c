#include "format/core/rounded.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"

#define DIGITS_F4    9  /* that tell each float32 from all others */
#define DIGITS_EXACT 15 /* of a whole number that float64 holds, whatever they are */
#define WHOLE_MOST   64 /* digits that are compared */
#define WHOLE_F4     16777216.0

/* The text of a number: its digits without zeros in front, and behind a point without those at the
 * end. */
struct digits {
    char whole[WHOLE_MOST + 1]; /* those before the point, if is_whole */
    size_t n;
    bool is_whole; /* no exponent, and nothing behind the point */
};

static struct digits rounded_digits(const uint8_t *text, size_t len)
{
    struct digits digits = {.is_whole = true};
    bool behind_point = false;
    size_t zeros = 0; /* at the end so far */

    for (size_t i = 0; i < len; i++) {
        uint8_t c = text[i];

        if (c == '.') {
            behind_point = true;
        } else if (isdigit(c) && (digits.n || c != '0' || behind_point)) {
            digits.is_whole &= !behind_point || c == '0';
            if (!behind_point && digits.n < WHOLE_MOST)
                digits.whole[digits.n] = (char)c;
            zeros = c == '0' ? zeros + 1 : 0;
            digits.n += digits.n || c != '0';
        } else if (!isdigit(c) && c != '+' && c != '-') {
            digits.is_whole = false;
            break;
        }
    }
    digits.n -= behind_point ? min_u64(zeros, digits.n) : 0;
    return digits;
}

static unsigned whole_kind(const struct digits *digits, double f8, float f4, bool doubles)
{
    char shown[400];

    if (digits->n <= DIGITS_EXACT)
        return !doubles && (double)f4 != f8 ? ROUNDED_WHOLE : 0;
    snprintf(shown, sizeof(shown), "%.0f", fabs(doubles ? f8 : (double)f4));
    return strncmp(shown, digits->whole, WHOLE_MOST) ? ROUNDED_WHOLE : 0;
}

unsigned rounded_number(const uint8_t *text, size_t len, bool doubles)
{
    const struct digits digits = rounded_digits(text, len);
    double f8;
    float f4;

    if (!len || !digits.n || decimal_parse_double(text, text + len, &f8) != text + len)
        return 0;
    decimal_parse(text, text + len, &f4);
    if (!isfinite(f8) || (!doubles && !isfinite(f4)))
        return ROUNDED_LARGE;
    if (f8 == 0 || (!doubles && f4 == 0))
        return ROUNDED_SMALL;
    if (digits.n < ROUNDED_LEN || digits.n > WHOLE_MOST)
        return 0;
    if (digits.is_whole)
        return whole_kind(&digits, f8, f4, doubles);
    return !doubles && (double)f4 != f8 && (digits.n > DIGITS_F4 || fabs(f8) >= WHOLE_F4)
               ? ROUNDED_DIGITS
               : 0;
}
