#include "format/index/key_name.h"

#include <stdio.h>
#include <string.h>

#include "format/index/index.h"

#define CUT_BYTES 18 /* "%~" and the hash */

static bool is_escaped(uint8_t byte, size_t at, bool dots)
{
    return byte == '/' || byte == '\0' || byte == '%' || (byte == '.' && (dots || at == 0));
}

static uint8_t *put_escaped(uint8_t *at, uint8_t byte)
{
    static const char digits[] = "0123456789ABCDEF";

    at[0] = '%';
    at[1] = (uint8_t)digits[byte >> 4];
    at[2] = (uint8_t)digits[byte & 15];
    return at + 3;
}

size_t key_name(const void *key, size_t len, bool dots, char ret[static KEY_NAME_SIZE])
{
    const uint8_t *bytes = key;
    uint8_t *at = (uint8_t *)ret, *cut = at;

    for (size_t i = 0; i < len; i++) {
        bool skipped = dots && i == 0 && len > 1 && !memcmp(bytes, "__", 2);
        size_t need = is_escaped(bytes[i], i, dots) || skipped ? 3 : 1;
        size_t used = (size_t)(at - (uint8_t *)ret);

        if (used <= KEY_NAME_MAX - CUT_BYTES)
            cut = at;
        if (used + need > KEY_NAME_MAX) {
            snprintf((char *)cut, CUT_BYTES + 1, "%%~%016llx",
                     (unsigned long long)key_hash(key, len));
            return (size_t)(cut - (uint8_t *)ret) + CUT_BYTES;
        }
        if (need == 3)
            at = put_escaped(at, bytes[i]);
        else
            *at++ = bytes[i];
    }
    *at = '\0';
    return (size_t)(at - (uint8_t *)ret);
}

static int key_name_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool key_of_name(const char *name, size_t len, uint8_t *ret, size_t *ret_len)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        int high, low;

        if (name[i] != '%') {
            if (is_escaped((uint8_t)name[i], n, false))
                return false;
            ret[n++] = (uint8_t)name[i];
            continue;
        }
        high = i + 2 < len ? key_name_hex_digit(name[i + 1]) : -1;
        low = i + 2 < len ? key_name_hex_digit(name[i + 2]) : -1;
        if (high < 0 || low < 0 || !is_escaped((uint8_t)(high << 4 | low), n, false))
            return false;
        ret[n++] = (uint8_t)(high << 4 | low);
        i += 2;
    }
    *ret_len = n;
    return n > 0;
}

bool key_name_is_cut(const char *name, size_t len, uint64_t *ret_hash)
{
    const char *digits;
    uint64_t hash = 0;

    if (len < CUT_BYTES)
        return false;
    digits = name + len - 16;
    if (digits[-2] != '%' || digits[-1] != '~')
        return false;
    for (unsigned i = 0; i < 16; i++) {
        int digit = digits[i] >= 'a' && digits[i] <= 'f'   ? digits[i] - 'a' + 10
                    : digits[i] >= '0' && digits[i] <= '9' ? digits[i] - '0'
                                                           : -1;

        if (digit < 0)
            return false;
        hash = hash << 4 | (unsigned)digit;
    }
    *ret_hash = hash;
    return true;
}
