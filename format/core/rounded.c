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

#define SEEN_ALL       (ROUNDED_WHOLE | ROUNDED_DIGITS | ROUNDED_LARGE | ROUNDED_SMALL)
#define DIGITS_LEN     11 /* bytes of a number with a point and more digits than float32 needs */
#define SMALL_LEN      32 /* bytes of a number that can be too small without an exponent */
#define EXPONENT_LARGE 27 /* float32 reaches from 1.4e-45 to 3.4e38 */

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

static unsigned whole_rounded(const struct digits *digits, double f8, float f4, bool doubles)
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
        return whole_rounded(&digits, f8, f4, doubles);
    return !doubles && (double)f4 != f8 && (digits.n > DIGITS_F4 || fabs(f8) >= WHOLE_F4)
               ? ROUNDED_DIGITS
               : 0;
}

bool rounded_exponent_is_large(const uint8_t *p, const uint8_t *end)
{
    unsigned exponent = 0;

    p += p < end && (*p == '-' || *p == '+');
    for (; p < end && isdigit(*p) && exponent < EXPONENT_LARGE; p++)
        exponent = exponent * 10 + (unsigned)(*p - '0');
    return exponent >= EXPONENT_LARGE;
}

/* Could the number be of a kind that was not seen yet? */
static bool is_doubtful(const struct rounded_seen *seen, const uint8_t *text, size_t len)
{
    size_t sign = len && (*text == '-' || *text == '+');
    bool checks_digits = !(seen->kinds & ROUNDED_DIGITS);
    uint32_t ignored;

    if (seen->kinds == SEEN_ALL || len < strlen("1e39"))
        return false;
    for (size_t i = 0; i < len; i++)
        if ((text[i] | ' ') == 'e')
            return (i >= DIGITS_LEN + sign && checks_digits) ||
                   rounded_exponent_is_large(text + i + 1, text + len);
    if (len < ROUNDED_LEN + sign)
        return false;
    /* A whole number of so few digits is neither too large nor too small. */
    if (seen->kinds & ROUNDED_WHOLE && len < SMALL_LEN && !memchr(text, '.', len))
        return false;
    return (len >= DIGITS_LEN + sign && checks_digits) || len >= SMALL_LEN ||
           decimal_digits8(text + sign, &ignored) == ROUNDED_LEN;
}

unsigned rounded_see(struct rounded_seen *seen, const uint8_t *text, size_t len, bool doubles)
{
    unsigned found;

    if (!is_doubtful(seen, text, len))
        return 0;
    found = rounded_number(text, len, doubles);
    if (!found && memchr(text, '.', len) && ++seen->exact == ROUNDED_EXACT_MOST)
        seen->kinds |= ROUNDED_DIGITS;
    found &= ~(unsigned)seen->kinds;
    seen->kinds |= (uint8_t)found;
    return found;
}

void rounded_set_first(struct rounded_first *first, const uint8_t *text, size_t len, uint64_t at)
{
    first->at = at;
    snprintf(first->text, sizeof(first->text), "%.*s", (int)min_u64(len, sizeof(first->text) - 1),
             (const char *)text);
}
