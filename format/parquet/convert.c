/* Values as they are shown: LogicalTypes.md of parquet-format. */
#include <errno.h>
#include <openssl/bn.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/real.h"
#include "format/parquet/file.h"

#define DECIMAL_MAX 512 /* bytes of a decimal */

/* ---- numbers ---- */

static bool convert_narrow(enum dtype dtype, const uint8_t *value, uint8_t *dst)
{
    memcpy(dst, value, dtype_info(dtype)->bytes);
    return dtype_integer(dtype, false, dst) == (int32_t)load_le32(value);
}

/* Nanoseconds of a Julian day, as Impala and Spark have them, to microseconds since 1970. */
static bool convert_int96(const uint8_t *value, uint8_t *dst)
{
    const int64_t day_us = INT64_C(86400000000), epoch = 2440588;
    int64_t ns = (int64_t)load_le64(value), us = ns / 1000 - (ns % 1000 < 0), days;

    if (__builtin_mul_overflow((int64_t)load_le32(value + 8) - epoch, day_us, &days) ||
        __builtin_add_overflow(days, us, &us))
        return false;
    store_le64(dst, (uint64_t)us);
    return true;
}

/* Big-endian, two's complement, as bytes of a decimal are. false: it has more than 64 bits. */
static bool convert_big_endian(const uint8_t *value, size_t len, int64_t *ret)
{
    uint8_t sign = len && value[0] & 0x80 ? 0xff : 0;
    uint64_t v = sign ? UINT64_MAX : 0;

    for (; len > 8; len--)
        if (*value++ != sign)
            return false;
    for (size_t i = 0; i < len; i++)
        v = v << 8 | value[i];
    *ret = (int64_t)v;
    return (*ret < 0) == (sign != 0);
}

static bool convert_decimal(const struct parquet_node *node, const uint8_t *value, size_t len,
                            uint8_t *dst)
{
    double divisor = 1;
    int64_t v;

    if (node->type == TYPE_INT32)
        v = (int32_t)load_le32(value);
    else if (node->type == TYPE_INT64)
        v = (int64_t)load_le64(value);
    else if (!convert_big_endian(value, len, &v))
        return false;
    for (unsigned i = 0; i < node->scale; i++)
        divisor *= 10; /* exact up to 10^22 */
    store_le64(dst, bits_of_f8((double)v / divisor));
    return v <= INT64_C(1000000000000000) && v >= -INT64_C(1000000000000000);
}

bool parquet_convert(const struct parquet_node *node, const uint8_t *value, size_t len,
                     uint8_t *dst)
{
    switch (node->convert) {
    case CONVERT_NARROW:
        return convert_narrow(node->dtype, value, dst);
    case CONVERT_INT96:
        return convert_int96(value, dst);
    case CONVERT_DECIMAL:
        return convert_decimal(node, value, len, dst);
    default:
        memcpy(dst, value, node->width);
        return true;
    }
}

/* ---- text ---- */

/* The digits of a number in two's complement, without its sign. NULL: no memory. */
static char *convert_digits(const uint8_t *value, size_t len, bool is_little, bool is_negative)
{
    BIGNUM *number = BN_new(), *top = BN_new();
    char *digits = NULL;

    if (number && top && (is_little ? BN_lebin2bn : BN_bin2bn)(value, (int)len, number) &&
        (!is_negative || (BN_set_bit(top, (int)len * 8) && BN_sub(number, top, number))))
        digits = BN_bn2dec(number);
    BN_free(number);
    BN_free(top);
    return digits;
}

static int convert_decimal_text(const struct parquet_node *node, const uint8_t *value, size_t len,
                                struct text *t)
{
    bool is_little = node->type == TYPE_INT32 || node->type == TYPE_INT64;
    bool is_negative = len && value[is_little ? len - 1 : 0] & 0x80;
    size_t n, all;
    char *digits;

    if (len > DECIMAL_MAX || node->scale > 1000)
        return -EBADMSG;
    digits = convert_digits(value, len, is_little, is_negative);
    if (!digits)
        return -ENOMEM;
    n = strlen(digits);
    all = n > node->scale ? n : node->scale + 1;
    text_add(t, "%s", is_negative ? "-" : "");
    for (size_t i = 0; i < all; i++) {
        if (i == all - node->scale)
            text_add_bytes(t, ".", 1);
        text_add_bytes(t, i < all - n ? "0" : digits + (i - (all - n)), 1);
    }
    OPENSSL_free(digits);
    return 0;
}

int parquet_convert_text(const struct parquet_node *node, enum parquet_convert convert,
                         const uint8_t *value, size_t len, struct text *t)
{
    if (convert == CONVERT_DECIMAL_TEXT)
        return convert_decimal_text(node, value, len, t);
    for (size_t i = 0; i < len && convert == CONVERT_UUID; i++)
        text_add(t, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", value[i]);
    if (convert != CONVERT_UUID)
        text_add_bytes(t, (const char *)value, len);
    return t->failed ? -ENOMEM : 0;
}
