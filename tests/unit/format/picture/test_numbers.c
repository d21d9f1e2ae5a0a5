/* The numbers of augmented pictures, compared with those of a reference in Python. */
#include "format/picture/numbers.h"
#include "support/unit.h"

#include "base/scope.h"

static const struct {
    uint64_t seed, epoch, index, position, salt, crop, flip;
} vectors[] = {
    {0, 0, 0, 0, 0, 0x0ab9e7bd5a887343, 0x1984ab94612b0736},
    {7, 0, 0, 0, 0, 0x2a0c55079827bd10, 0xa2e57c9c5b9a2b36},
    {7, 0, 5, 1, 0, 0x520dd1c6bbe8da84, 0xf4c09cc6d000a83e},
    {7, 3, 2, 17, 0, 0x7181c900f846bf20, 0x3cef6187f2880f60},
    {7, 1000000000000, 40, 123456789, 0, 0x7f87b1d6a8047bda, 0x4d15b92e3022181b},
    {UINT64_MAX, 1, (UINT64_C(1) << 48) - 1, UINT64_C(1) << 40, 0, 0xe3f3798cd8c05d03,
     0x4a9ba790c58db75b},
};

UNIT_TEST(test_numbers__vectors__equal)
{
    struct augment_numbers salted = augment_numbers_of(7, 0, 0, 0, 1);

    for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
        struct augment_numbers n =
            augment_numbers_of(vectors[i].seed, vectors[i].epoch, vectors[i].index,
                               vectors[i].position, vectors[i].salt);

        assert_int_equal(augment_u64(&n, AUGMENT_CROP, 0), vectors[i].crop);
        assert_int_equal(augment_u64(&n, AUGMENT_FLIP, 0), vectors[i].flip);
        assert_int_equal(augment_below(&n, 1000, AUGMENT_CROP, 0),
                         (vectors[i].crop >> 32) * 1000 >> 32);
    }
    assert_int_equal(augment_u64(&salted, AUGMENT_CROP, 0), 0x3b32db51c2d162d9);
}

UNIT_TEST(test_numbers__chance__never_always_and_half)
{
    struct augment_numbers low = augment_numbers_of(0, 0, 0, 0, 0);
    struct augment_numbers high = augment_numbers_of(7, 0, 0, 0, 0);

    assert_false(augment_chance(&low, augment_fixed(0, 32), AUGMENT_FLIP, 0));
    assert_true(augment_chance(&high, augment_fixed(1000000, 32), AUGMENT_FLIP, 0));
    assert_true(augment_chance(&low, augment_fixed(500000, 32), AUGMENT_FLIP, 0));
    assert_false(augment_chance(&high, augment_fixed(500000, 32), AUGMENT_FLIP, 0));
}

UNIT_TEST(test_numbers__fixed__rounded_half_up)
{
    assert_int_equal(augment_fixed(80000, 16), 5243);
    assert_int_equal(augment_fixed(1333333, 28), 357913852);
    assert_int_equal(augment_fixed(1000000, 32), UINT64_C(1) << 32);
    assert_int_equal(augment_fixed(500000, 0), 1);
}

UNIT_TEST(test_numbers__square_root__floor)
{
    const uint64_t roots[] = {0, 1, 2, 3, 1000, 65535, 65536, UINT32_MAX - 1, UINT32_MAX};

    for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
        uint64_t square = roots[i] * roots[i];

        assert_int_equal(augment_square_root(square), roots[i]);
        assert_int_equal(augment_square_root(square + 2 * roots[i]), roots[i]);
        if (roots[i])
            assert_int_equal(augment_square_root(square - 1), roots[i] - 1);
    }
}
