#include <stdio.h>

#include "base/number.h"
#include "support/unit.h"

static size_t parse(const char *s, uint64_t max, uint64_t *ret)
{
    return number_parse(s, strlen(s), max, ret);
}

UNIT_TEST(test_number__good__value)
{
    static const struct {
        const char *text;
        size_t used;
        uint64_t value;
    } cases[] = {
        {"0", 1, 0},    {"7", 1, 7},
        {"10", 2, 10},  {"1of4", 1, 1},
        {"0of4", 1, 0}, {"18446744073709551615", 20, UINT64_MAX},
        {"12 ", 2, 12}, {"18446744073709551610x", 20, UINT64_MAX - 5},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t v = 99;

        assert_int_equal(parse(cases[i].text, UINT64_MAX, &v), cases[i].used);
        assert_int_equal(v, cases[i].value);
    }
}

UNIT_TEST(test_number__bad__nothing)
{
    static const char *const texts[] = {"",
                                        "-1",
                                        "+1",
                                        " 1",
                                        "x",
                                        "00",
                                        "01",
                                        "007",
                                        "18446744073709551616",
                                        "99999999999999999999",
                                        "184467440737095516150"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        uint64_t v = 99;

        if (parse(texts[i], UINT64_MAX, &v) != 0)
            fail_msg("'%s' was taken", texts[i]);
        assert_int_equal(v, 99);
    }
}

UNIT_TEST(test_number__max__is_exact)
{
    for (uint64_t max = 0; max < 1200; max++) {
        for (uint64_t n = max < 3 ? 0 : max - 3; n < max + 12; n++) {
            char text[24];
            uint64_t v = 5555;
            size_t used;

            snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
            used = parse(text, max, &v);
            assert_int_equal(used, n <= max ? strlen(text) : 0);
            assert_int_equal(v, n <= max ? n : 5555);
        }
    }
}

UNIT_TEST(test_number__length__bounds_it)
{
    uint64_t v = 0;

    assert_int_equal(number_parse("12345", 3, UINT64_MAX, &v), 3);
    assert_int_equal(v, 123);
    assert_int_equal(number_parse("12345", 0, UINT64_MAX, &v), 0);
}

static bool padded(const char *s, unsigned least, uint64_t *ret)
{
    return padded_number_parse(s, strlen(s), least, ret);
}

UNIT_TEST(test_padded_number__good__value)
{
    uint64_t v = 0;

    assert_true(padded("000007", 6, &v));
    assert_int_equal(v, 7);
    assert_true(padded("000000", 6, &v));
    assert_int_equal(v, 0);
    assert_true(padded("999999", 6, &v));
    assert_int_equal(v, 999999);
    assert_true(padded("1234567", 6, &v));
    assert_int_equal(v, 1234567);
    assert_true(padded("18446744073709551615", 6, &v));
    assert_int_equal(v, UINT64_MAX);
}

UNIT_TEST(test_padded_number__bad__false)
{
    static const char *const texts[] = {"",
                                        "7",
                                        "00007",
                                        "0000007",
                                        "00000a",
                                        "-00007",
                                        "00000 ",
                                        " 00007",
                                        "+00007",
                                        "0x0007",
                                        "18446744073709551616",
                                        "000007\n"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        uint64_t v = 0;

        if (padded(texts[i], 6, &v))
            fail_msg("'%s' was taken", texts[i]);
    }
}
