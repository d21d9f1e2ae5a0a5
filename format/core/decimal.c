/* Most numbers have few digits and a small exponent. For them digits / 10^k or digits x 10^k in
 * double is at most 3 units of its last place from the true value. Both then round to the same
 * float32, unless a boundary between two float32 lies within that error; the 29 bits that double
 * has beyond float32 show whether it does. Such numbers, and everything unusual, go to strtof. The
 * program never sets a locale, so strtof expects a point. */
#include "format/core/decimal.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/scope.h"

#define EXPONENT_MAX 30
#define EXPONENT_ANY (INT64_C(1) << 60) /* more than any number has digits */
#define SHORT_NUMBER 64

static const double powers[EXPONENT_MAX + 1] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27, 1e28, 1e29, 1e30,
};

/* 10^n, and the bounds below which a number takes n more digits in 64 bits. */
static const uint64_t shifts[9] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
#define ROOM_FOR(n) (UINT64_C(10000000000000000000) / shifts[n])

/* digits x 10^exponent; false if only strtof can tell. */
static bool quick_float(uint64_t digits, int64_t exponent, float *ret)
{
    double v;

    if (!digits) {
        *ret = 0;
        return true;
    }
    if (exponent < -EXPONENT_MAX || exponent > EXPONENT_MAX)
        return false;
    v = exponent < 0 ? (double)digits / powers[-exponent] : (double)digits * powers[exponent];
    return v >= 2 * (double)FLT_MIN && v <= (double)FLT_MAX / 2 && decimal_round(v, ret);
}

/* Append the digits at p to *digits; clears *fits if they exceed 64 bits. Returns their end. */
static const uint8_t *take_digits(const uint8_t *p, uint64_t *digits, bool *fits)
{
    uint32_t more = 0;
    unsigned n;

    do {
        n = decimal_digits8(p, &more);
        if (n) {
            *fits = *fits && *digits < ROOM_FOR(n);
            *digits = *digits * shifts[n] + more;
        }
        p += n;
    } while (n == 8);
    return p;
}

static const uint8_t *parse_word(const uint8_t *p, const uint8_t *end, bool negative, float *ret)
{
    static const struct {
        const char *word;
        float value;
    } words[] = {{"infinity", INFINITY}, {"inf", INFINITY}, {"nan", NAN}};

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        size_t len = strlen(words[i].word);

        if ((size_t)(end - p) >= len && !strncasecmp((const char *)p, words[i].word, len)) {
            *ret = negative ? -words[i].value : words[i].value;
            return p + len;
        }
    }
    return NULL;
}

/* [p, end) is a number by the grammar of decimal_parse(): to one of the two. False: no memory. */
static bool slow_number(const uint8_t *p, const uint8_t *end, float *ret, double *ret_double)
{
    size_t len = (size_t)(end - p);
    char inside[SHORT_NUMBER];
    AUTO_FREE char *outside = len < sizeof(inside) ? NULL : malloc(len + 1);
    char *text = len < sizeof(inside) ? inside : outside;

    if (!text)
        return false;
    memcpy(text, p, len);
    text[len] = '\0';
    if (ret)
        *ret = strtof(text, NULL);
    else
        *ret_double = strtod(text, NULL);
    return true;
}

static const uint8_t *take_exponent(const uint8_t *p, int64_t *ret)
{
    const uint8_t *at = p + 1;
    bool negative = *at == '-', fits = true;
    uint64_t v = 0;
    const uint8_t *end;

    at += *at == '-' || *at == '+';
    end = take_digits(at, &v, &fits);
    if (end == at)
        return NULL;
    *ret = !fits || v > EXPONENT_ANY ? EXPONENT_ANY : (int64_t)v;
    *ret = negative ? -*ret : *ret;
    return end;
}

/* A number of digits, digits x 10^exponent if fits, or a word. */
struct number {
    bool negative, fits, is_word;
    uint64_t digits;
    int64_t exponent;
    float word;
};

/* Returns the byte after the number, or NULL. */
static inline const uint8_t *decimal_take_number(const uint8_t *p, const uint8_t *end,
                                                 struct number *ret)
{
    bool negative = *p == '-', fits = true;
    const uint8_t *at = p + (negative || *p == '+'), *start = at;
    uint64_t digits = 0;
    int64_t exponent = 0, fraction = 0;
    size_t n;

    at = take_digits(at, &digits, &fits);
    n = (size_t)(at - start);
    if (*at == '.' && at < end) {
        const uint8_t *point = at + 1;

        at = take_digits(point, &digits, &fits);
        fraction = at - point;
        n += (size_t)(at - point);
    }
    if (!n || at > end) {
        ret->is_word = true;
        return start < end ? parse_word(start, end, negative, &ret->word) : NULL;
    }
    if ((*at == 'e' || *at == 'E') && at < end) {
        at = take_exponent(at, &exponent);
        if (!at || at > end)
            return NULL;
    }
    *ret = (struct number){
        .negative = negative, .fits = fits, .digits = digits, .exponent = exponent - fraction};
    return at;
}

const uint8_t *decimal_parse(const uint8_t *p, const uint8_t *end, float *ret)
{
    struct number number;
    const uint8_t *behind = decimal_take_number(p, end, &number);

    if (!behind)
        return NULL;
    if (number.is_word) {
        *ret = number.word;
        return behind;
    }
    if (number.fits && quick_float(number.digits, number.exponent, ret)) {
        *ret = number.negative ? -*ret : *ret;
        return behind;
    }
    return slow_number(p, behind, ret, NULL) ? behind : NULL;
}

const uint8_t *decimal_parse_double(const uint8_t *p, const uint8_t *end, double *ret)
{
    struct number number;
    const uint8_t *behind = decimal_take_number(p, end, &number);

    if (!behind)
        return NULL;
    if (number.is_word) {
        *ret = (double)number.word;
        return behind;
    }
    return slow_number(p, behind, NULL, ret) ? behind : NULL;
}
