#include "base/bytes.h"
#include "base/checked.h"
#include "support/unit.h"

UNIT_TEST(test_checked_add__edges__exact)
{
    uint64_t v = 5;

    assert_true(checked_add(UINT64_MAX, 0, &v));
    assert_int_equal(v, UINT64_MAX);
    assert_true(checked_add(UINT64_MAX - 3, 3, &v));
    assert_int_equal(v, UINT64_MAX);
    v = 5;
    assert_false(checked_add(UINT64_MAX, 1, &v));
    assert_false(checked_add(UINT64_C(1) << 63, UINT64_C(1) << 63, &v));
    assert_int_equal(v, 5);
}

UNIT_TEST(test_checked_mul__edges__exact)
{
    uint64_t v = 5;

    assert_true(checked_mul(UINT64_MAX, 1, &v));
    assert_int_equal(v, UINT64_MAX);
    assert_true(checked_mul(UINT32_MAX, UINT32_MAX, &v));
    assert_int_equal(v, UINT64_C(0xfffffffe00000001));
    assert_true(checked_mul(0, UINT64_MAX, &v));
    assert_int_equal(v, 0);
    v = 5;
    assert_false(checked_mul(UINT64_C(1) << 32, UINT64_C(1) << 32, &v));
    assert_false(checked_mul(UINT64_MAX, 2, &v));
    assert_int_equal(v, 5);
}

UNIT_TEST(test_ceil_div__edges__no_overflow)
{
    assert_int_equal(ceil_div(0, 7), 0);
    assert_int_equal(ceil_div(1, 7), 1);
    assert_int_equal(ceil_div(7, 7), 1);
    assert_int_equal(ceil_div(8, 7), 2);
    assert_int_equal(ceil_div(UINT64_MAX, 2), UINT64_C(1) << 63);
    assert_int_equal(ceil_div(UINT64_MAX, UINT64_MAX), 1);
    assert_int_equal(ceil_div(UINT64_MAX, 1), UINT64_MAX);
}

UNIT_TEST(test_min_max__any__right)
{
    assert_int_equal(min_u64(1, UINT64_MAX), 1);
    assert_int_equal(min_u64(UINT64_MAX, 1), 1);
    assert_int_equal(max_u64(1, UINT64_MAX), UINT64_MAX);
    assert_int_equal(max_u64(UINT64_MAX, 1), UINT64_MAX);
}

UNIT_TEST(test_decimal_digits__powers__right)
{
    uint64_t power = 1;

    assert_int_equal(decimal_digits(0), 1);
    for (unsigned n = 1; n < 20; n++) {
        power *= 10;
        assert_int_equal(decimal_digits(power - 1), n);
        assert_int_equal(decimal_digits(power), n + 1);
    }
    assert_int_equal(decimal_digits(UINT64_MAX), 20);
}

UNIT_TEST(test_bit_width__powers__right)
{
    assert_int_equal(bit_width(0), 0);
    for (unsigned n = 0; n < 64; n++) {
        assert_int_equal(bit_width(UINT64_C(1) << n), n + 1);
        assert_int_equal(bit_width((UINT64_C(1) << n) - 1), n);
    }
    assert_int_equal(bit_width(UINT64_MAX), 64);
}

UNIT_TEST(test_bytes__any_alignment__right_order)
{
    uint8_t b[16];

    for (size_t at = 0; at < 8; at++) {
        store_be32(b + at, 0x80a1b2c3);
        assert_memory_equal(b + at, "\x80\xa1\xb2\xc3", 4);
        assert_int_equal(load_be32(b + at), 0x80a1b2c3);
        assert_int_equal(load_be16(b + at), 0x80a1);
        store_le16(b + at, 0x80a1);
        assert_memory_equal(b + at, "\xa1\x80", 2);
        store_le32(b + at, 0x80a1b2c3);
        assert_memory_equal(b + at, "\xc3\xb2\xa1\x80", 4);
        store_le64(b + at, UINT64_C(0xf1e2d3c4b5a69788));
        assert_memory_equal(b + at, "\x88\x97\xa6\xb5\xc4\xd3\xe2\xf1", 8);
        assert_int_equal(load_le64(b + at), UINT64_C(0xf1e2d3c4b5a69788));
        assert_int_equal(load_be64(b + at), UINT64_C(0x8897a6b5c4d3e2f1));
    }
}
