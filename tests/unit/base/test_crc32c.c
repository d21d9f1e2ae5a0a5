#include "base/crc32c.h"
#include "support/unit.h"

#include <stdlib.h>

#include "base/scope.h"
#include "support/random.h"

#define MOST 7000

/* Vectors of RFC 3720, B.4, and the common one of nine digits. */
UNIT_TEST(test_crc32c__known_bytes__known_sums)
{
    uint8_t zeros[32] = {0}, ones[32], up[32], down[32];

    for (unsigned i = 0; i < 32; i++) {
        ones[i] = 0xff;
        up[i] = (uint8_t)i;
        down[i] = (uint8_t)(31 - i);
    }
    assert_int_equal(crc32c(0, "", 0), 0);
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(crc32c(0, zeros, 32), 0x8a9136aa);
    assert_int_equal(crc32c(0, ones, 32), 0x62a8ab43);
    assert_int_equal(crc32c(0, up, 32), 0x46dd794e);
    assert_int_equal(crc32c(0, down, 32), 0x113fdb5c);
    assert_int_equal(crc32c_tables(0, down, 32), 0x113fdb5c);
}

/* Bit by bit, as the polynomial is defined. */
static uint32_t slow(const uint8_t *p, size_t len)
{
    uint32_t v = UINT32_MAX;

    for (size_t i = 0; i < len; i++) {
        v ^= p[i];
        for (unsigned bit = 0; bit < 8; bit++)
            v = v >> 1 ^ (v & 1 ? 0x82f63b78 : 0);
    }
    return ~v;
}

UNIT_TEST(test_crc32c__any_length_and_place__same_as_bit_by_bit)
{
    AUTO_FREE uint8_t *bytes = malloc(MOST + 8);
    uint64_t random = 1;

    for (size_t i = 0; i < MOST + 8; i++)
        bytes[i] = (uint8_t)random_next(&random);
    for (size_t len = 0; len < MOST; len += len < 300 ? 1 : 37) {
        const uint8_t *p = bytes + len % 8;
        uint32_t want = slow(p, len);

        assert_int_equal(crc32c(0, p, len), want);
        assert_int_equal(crc32c_tables(0, p, len), want);
    }
}

UNIT_TEST(test_crc32c__in_two_parts__same_sum)
{
    uint8_t bytes[1000];
    uint64_t random = 2;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)random_next(&random);
    for (size_t cut = 0; cut <= sizeof(bytes); cut++)
        assert_int_equal(crc32c(crc32c(0, bytes, cut), bytes + cut, sizeof(bytes) - cut),
                         crc32c_tables(0, bytes, sizeof(bytes)));
}
