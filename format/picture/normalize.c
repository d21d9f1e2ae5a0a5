#include "format/picture/normalize.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/scope.h"
#include "format/picture/numbers.h"

__extension__ typedef unsigned __int128 u128;

#define NUMBERS_MOST 6
#define NUMBER_SIZE  16 /* of a number's text, and its NUL */

const uint8_t normalize_erased[NORMALIZE_CHANNELS] = {124, 116, 104};

static const struct {
    const char *name, *numbers;
} presets[] = {
    {"imagenet", "0.485/0.456/0.406/0.229/0.224/0.225"},
    {"half", "0.5/0.5/0.5/0.5/0.5/0.5"},
    {"clip", "0.48145466/0.4578275/0.40821073/0.26862954/0.26130258/0.27577711"},
};

/* Digits, perhaps a point and digits: a number from 0 to 1, so that no locale matters. Returns the
 * characters used; 0: it is none. */
static size_t normalize_number(const char *s, double *ret, uint64_t *ret_fixed)
{
    uint64_t digits = 0, unit = 1;
    size_t n = s[0] == '0' || s[0] == '1';

    if (!n)
        return 0;
    digits = (uint64_t)(s[0] - '0');
    for (n += s[1] == '.'; n > 1 && s[n] >= '0' && s[n] <= '9' && n < NUMBER_SIZE; n++) {
        digits = digits * 10 + (uint64_t)(s[n] - '0');
        unit *= 10;
    }
    if (s[n - 1] == '.' || n == NUMBER_SIZE || digits > unit)
        return 0;
    *ret = (double)digits / (double)unit; /* both are exact below 2^53, so this is the nearest */
    *ret_fixed = (uint64_t)((((u128)digits << 25) + unit) / (2 * unit)); /* half up */
    return n;
}

/* Write float32 v as float16, half to even. Normal numbers and 0, which is all that there is. */
static void normalize_store_half(float v, uint8_t *ret)
{
    uint32_t bits, sign, exponent, mantissa, shift = 13, half;

    memcpy(&bits, &v, sizeof(bits));
    sign = bits >> 16 & 0x8000;
    exponent = bits >> 23 & 255;
    mantissa = (bits & 0x7fffff) | (exponent ? 0x800000 : 0);
    if (exponent >= 143) { /* 65536 and more */
        store_le16(ret, (uint16_t)(sign | 0x7c00));
        return;
    }
    if (exponent < 113) { /* below the least normal one */
        shift += 113 - exponent;
        exponent = 113;
        mantissa = shift > 31 ? 0 : mantissa;
        shift = shift > 31 ? 31 : shift;
        half = mantissa >> shift;
    } else {
        half = (exponent - 113) << 10;
        half += mantissa >> shift;
    }
    mantissa &= (1u << shift) - 1;
    half += mantissa > 1u << (shift - 1) || (mantissa == 1u << (shift - 1) && (half & 1));
    store_le16(ret, (uint16_t)(sign | half));
}

static void normalize_fill(struct normalize *n)
{
    for (unsigned c = 0; c < n->channels; c++)
        for (unsigned x = 0; x < 256; x++) {
            /* volatile: no step is left in a wider register, or contracted */
            volatile float v = (float)x / 255.0f;

            v = v - n->mean[c];
            v = v / n->std[c];
            if (n->is_half) {
                normalize_store_half(v, n->value[c][x]);
            } else {
                float element = v;
                uint32_t bits;

                memcpy(&bits, &element, sizeof(bits));
                store_le32(n->value[c][x], bits);
            }
        }
}

/* The numbers of a text that ends at len. Returns how many; 0: it has another form. */
static unsigned normalize_numbers(const char *s, size_t len, double value[NUMBERS_MOST],
                                  uint64_t fixed[NUMBERS_MOST])
{
    unsigned n = 0;

    while (n < NUMBERS_MOST) {
        size_t used = normalize_number(s, &value[n], &fixed[n]);

        if (!used || used > len)
            return 0;
        n++;
        s += used;
        len -= used;
        if (!len)
            return n;
        if (*s != '/')
            return 0;
        s++;
        len--;
    }
    return 0;
}

int normalize_parse(const char *text, struct normalize *ret, struct diag *d)
{
    const char *colon = strchr(text, ':'), *numbers = text;
    size_t len = colon ? (size_t)(colon - text) : strlen(text), numbers_len = len;
    double value[NUMBERS_MOST];
    uint64_t fixed[NUMBERS_MOST];
    unsigned n;
    bool is_good = !colon || !strcmp(colon, ":f2");

    for (size_t i = 0; i < ARRAY_LEN(presets); i++)
        if (len == strlen(presets[i].name) && !memcmp(text, presets[i].name, len)) {
            numbers = presets[i].numbers;
            numbers_len = strlen(numbers);
        }
    n = normalize_numbers(numbers, numbers_len, value, fixed);
    is_good = is_good && (n == 2 || n == 6);
    for (unsigned c = 0; is_good && c < n / 2; c++)
        is_good = (float)value[n / 2 + c] > 0;
    if (!is_good)
        return diag_set(d, -EINVAL,
                        "expected imagenet, half, clip, MEAN/STD or M/M/M/S/S/S with numbers from "
                        "0 to 1 and no STD of 0, perhaps with :f2, got '%.60s'%s",
                        text, n == 2 || n == 6 ? "" : "; values are divided by 255 first");
    *ret = (struct normalize){.channels = n / 2, .is_half = colon};
    for (unsigned c = 0; c < NORMALIZE_CHANNELS; c++) {
        unsigned from = c < ret->channels ? c : 0;

        ret->mean[c] = (float)value[from];
        ret->std[c] = (float)value[ret->channels + from];
        ret->erased[c] = (uint8_t)((fixed[from] * 255 + (1u << 23)) >> 24);
    }
    normalize_fill(ret);
    return 0;
}

void normalize_print(const struct normalize *n, struct text *t)
{
    for (unsigned k = 0; k < 2; k++) {
        json_open(t, NULL, k ? "std" : "mean", "[");
        for (unsigned c = 0; c < n->channels; c++)
            json_add(t, NULL, NULL, "%.9g", (double)(k ? n->std[c] : n->mean[c]));
        json_close(t, NULL, "]");
    }
}
