/* Numbers as text, from people and from file names. */
#ifndef EPOCHFS_BASE_NUMBER_H
#define EPOCHFS_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An unsigned decimal number: digits only, no sign, no space; leading zeros are ignored.
 * Returns the number of characters used; 0: there is no such number, or it is above max. */
static inline size_t digits_parse(const char *s, size_t len, uint64_t max, uint64_t *ret)
{
    uint64_t v = 0;
    size_t i = 0;

    for (; i < len && s[i] >= '0' && s[i] <= '9'; i++) {
        unsigned digit = (unsigned)(s[i] - '0');

        if (digit > max || v > (max - digit) / 10)
            return 0;
        v = v * 10 + digit;
    }
    if (i)
        *ret = v;
    return i;
}

/* The same without a leading zero, except "0". */
static inline size_t number_parse(const char *s, size_t len, uint64_t max, uint64_t *ret)
{
    bool zero = len > 1 && s[0] == '0' && s[1] >= '0' && s[1] <= '9';

    return zero ? 0 : digits_parse(s, len, max, ret);
}

/* A number of exactly len characters that is zero-padded to least digits: "000007", "1234567" for
 * least = 6, but not "0000007". */
static inline bool padded_number_parse(const char *s, size_t len, unsigned least, uint64_t *ret)
{
    size_t zeros = 0;

    if (len < least)
        return false;
    if (len == least)
        while (zeros + 1 < len && s[zeros] == '0')
            zeros++;
    return number_parse(s + zeros, len - zeros, UINT64_MAX, ret) == len - zeros;
}

#endif
