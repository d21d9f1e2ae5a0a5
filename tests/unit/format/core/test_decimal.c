/* decimal_parse() and decimal_parse_short() against strtof, bit by bit: millions of texts of many
 * shapes, and texts that are no numbers. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/scope.h"
#include "format/core/decimal.h"
#include "support/random.h"
#include "support/unit.h"

#define TEXTS     200000 /* of each shape */
#define TEXT_SIZE 1024
#define PUT_SIZE  200

static uint64_t rng = RANDOM_SEED;

static uint32_t bits_of(float v)
{
    uint32_t bits;

    memcpy(&bits, &v, sizeof(bits));
    return bits;
}

/* Parse text[0, len) with the byte behind after it. Returns the result of decimal_parse(). */
static const char *parse(const char *text, size_t len, char behind, float *ret)
{
    static char capacity[TEXT_SIZE + DECIMAL_PAD];
    const uint8_t *end;

    assert_true(len <= TEXT_SIZE);
    memcpy(capacity, text, len);
    memset(capacity + len, behind, DECIMAL_PAD);
    end = decimal_parse((const uint8_t *)capacity, (const uint8_t *)capacity + len, ret);
    return end ? text + (end - (const uint8_t *)capacity) : NULL;
}

/* The text is a number, all of it. */
static void check_double(const char *text)
{
    static char capacity[TEXT_SIZE + DECIMAL_PAD];
    const uint8_t *start = (const uint8_t *)capacity, *end;
    size_t len = strlen(text);
    double want = strtod(text, NULL), found = 0;

    memcpy(capacity, text, len);
    memset(capacity + len, ' ', DECIMAL_PAD);
    if (decimal_parse_double(start, start + len, &found) != start + len ||
        memcmp(&found, &want, sizeof(want)) != 0)
        fail_msg("'%s': expected %a, got %a", text, want, found);
    end = decimal_parse_short_double(start, &found);
    if (end && (end != start + len || memcmp(&found, &want, sizeof(want)) != 0))
        fail_msg("'%s': short: expected %a, got %a", text, want, found);
}

static void check_number(const char *text)
{
    static char capacity[TEXT_SIZE + DECIMAL_PAD];
    size_t len = strlen(text);
    float want = strtof(text, NULL), found = 0;
    const uint8_t *end;

    if (parse(text, len, '\0', &found) != text + len)
        fail_msg("'%s': expected a number", text);
    if (bits_of(found) != bits_of(want))
        fail_msg("'%s': expected %08x, got %08x", text, bits_of(want), bits_of(found));
    memcpy(capacity, text, len);
    memset(capacity + len, ' ', DECIMAL_PAD);
    end = decimal_parse_short((const uint8_t *)capacity, &found);
    if (end && (end != (const uint8_t *)capacity + len || bits_of(found) != bits_of(want)))
        fail_msg("'%s': short: expected %08x, got %08x", text, bits_of(want), bits_of(found));
    check_double(text);
}

/* Print at a place with PUT_SIZE bytes. Returns the end. */
static char *put(char *at, const char *format, ...) __attribute__((format(printf, 2, 3)));
static char *put(char *at, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(at, PUT_SIZE, format, args);
    va_end(args);
    assert_true(n >= 0 && n < PUT_SIZE);
    return at + n;
}

static void put_digits(char **at, uint64_t n)
{
    while (n--)
        *(*at)++ = (char)('0' + random_below(&rng, 10));
    **at = '\0';
}

/* [sign] digits . digits */
static void shape_fixed(char *text)
{
    static const char *const signs[] = {"", "", "-", "+"};
    uint64_t whole = random_below(&rng, 10), fraction = random_below(&rng, 10);

    text = put(text, "%s", signs[random_below(&rng, 4)]);
    put_digits(&text, whole);
    if (!whole || fraction || random_below(&rng, 2))
        *text++ = '.';
    put_digits(&text, whole + fraction ? fraction : 1);
}

static void shape_long(char *text)
{
    put_digits(&text, 1 + random_below(&rng, 30));
    if (random_below(&rng, 2)) {
        *text++ = '.';
        put_digits(&text, random_below(&rng, 31));
    }
}

static void shape_exponent(char *text)
{
    shape_long(text);
    text += strlen(text);
    put(text, "%c%s%d", random_below(&rng, 2) ? 'e' : 'E',
        random_below(&rng, 3) ? "" : "0000000000000000000000",
        (int)random_below(&rng, 91) - (random_below(&rng, 4) ? 60 : 45));
    if (strstr(text, "0-")) /* the sign comes before the zeros */
        put(text, "e-%03d", (int)random_below(&rng, 60));
}

static void shape_far_exponent(char *text)
{
    shape_long(text);
    text += strlen(text);
    put(text, "e%+d", (int)random_below(&rng, 801) - 400);
}

static float random_float(void)
{
    uint32_t bits = (uint32_t)random_next(&rng) & 0x7fffffff;
    float v;

    memcpy(&v, &bits, sizeof(v));
    return bits >= 0x7f800000 ? 1 : v;
}

/* The formats that programs print. */
static void shape_printed(char *text)
{
    static const char *const format[] = {"%.9g", "%.6g", "%.9e", "%.17g", "%g"};

    put(text, format[random_below(&rng, ARRAY_LEN(format))], (double)random_float());
}

/* A number between 2^e and 2^(e+1), e from -30 to 30, with all its digits or too few. */
static void shape_middle(char *text)
{
    double v = (double)(1 + (random_next(&rng) & 0xffffff)) / 16777216.0;
    int e = (int)random_below(&rng, 61) - 30;

    for (; e > 0; e--)
        v *= 2;
    for (; e < 0; e++)
        v /= 2;
    put(text, "%.*f", (int)random_below(&rng, 12), v);
}

/* At, just below and just above the middle between two float32, where one of the last digits
 * decides. */
static void shape_halfway(char *text)
{
    float low = random_float();
    uint32_t bits = bits_of(low) + 1;
    float high;
    char *at;

    memcpy(&high, &bits, sizeof(high));
    if (bits >= 0x7f800000)
        high = low;
    put(text, "%.160e", ((double)low + (double)high) / 2);
    at = strchr(text, 'e');
    switch (random_below(&rng, 4)) {
    case 0:
        break;
    case 1: /* above */
        memmove(at + 1, at, strlen(at) + 1);
        *at = '1';
        break;
    case 2: /* fewer digits */
        memmove(text + 3 + random_below(&rng, 24), at, strlen(at) + 1);
        break;
    default: /* below or above */
        at = text + 2 + random_below(&rng, 40);
        *at = (char)('0' + random_below(&rng, 10));
    }
}

/* The smallest numbers. */
static void shape_denormal(char *text)
{
    shape_long(text);
    text += strlen(text);
    put(text, "e-%u", 36 + (unsigned)random_below(&rng, 42));
}

/* A run of zeros before, within, or after the digits. */
static void shape_zeros(char *text)
{
    uint64_t zeros = random_below(&rng, 60);

    if (random_below(&rng, 2))
        put_digits(&text, random_below(&rng, 4));
    text = put(text, "%.*s", random_below(&rng, 2) ? (int)zeros : 0,
               "000000000000000000000000000000000000000000000000000000000000");
    text = put(text, "0.%.*s", (int)zeros,
               "000000000000000000000000000000000000000000000000000000000000");
    put_digits(&text, random_below(&rng, 8));
    if (random_below(&rng, 3) == 0)
        put(text, "e%d", (int)random_below(&rng, 100) - 20);
}

UNIT_TEST(test_decimal__random_texts__as_strtof)
{
    static void (*const shapes[])(char *text) = {shape_fixed,        shape_long,    shape_exponent,
                                                 shape_far_exponent, shape_printed, shape_middle,
                                                 shape_denormal,     shape_zeros};

    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        for (unsigned k = 0; k < TEXTS; k++) {
            char text[TEXT_SIZE];

            shapes[i](text);
            check_number(text);
        }
    }
    for (unsigned k = 0; k < TEXTS / 4; k++) {
        char text[TEXT_SIZE];

        shape_halfway(text);
        check_number(text);
    }
}

UNIT_TEST(test_decimal__known_cases__as_strtof)
{
    static const char *const texts[] = {
        "0",
        "-0",
        "+0",
        "-0.0",
        "00000000",
        "0e99999999999999999999",
        "-0e-5",
        "1.",
        ".5",
        "-.5e1",
        "5.e-1",
        "1e+0",
        "1E+2",
        "16777217",
        "16777217.5",
        "16777219",
        "33554434.0000000000000000000000000000000000000000000000000000000000000000001",
        "16777217.000000000000000000000000000000000000000000000000000000000000001",
        "16777216.999999999999999999999999999999999999999999999999999999999999999",
        "9007199254740993",
        "9999999999999999999",
        "10000000000000000000",
        "18446744073709551615",
        "18446744073709551616",
        "18446744073709551617",
        "123456789012345678901234567890",
        "1e38",
        "3.4028234e38",
        "3.4028235e38",
        "3.40282346638528859811704183484516925e38",
        "3.40282356779733661637539395458142568447e38",
        "3.40282356779733661637539395458142568448e38",
        "3.5e38",
        "1e39",
        "1e40",
        "1e-37",
        "1.17549435e-38",
        "1.17549428e-38",
        "1.1754942e-38",
        "1e-40",
        "1e-45",
        "7.0064923216240853546186479164495e-46",
        "7.0064923216240853546186479164496e-46",
        "7.1e-46",
        "1e-46",
        "1e-400",
        "1e400",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "1e18446744073709551616",
        "1e-18446744073709551615",
        "0.000000000000000000000000000000000000000000001",
        "1000000000000000000000000000000000000000000000e-44",
        "inf",
        "-inf",
        "+inf",
        "Infinity",
        "-INFINITY",
        "nan",
        "-nan",
        "+NaN",
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        check_number(texts[i]);
}

/* Texts of a million digits, with exponents that compensate. */
UNIT_TEST(test_decimal__very_long__as_strtof)
{
    static const struct {
        size_t zeros;
        const char *before, *behind;
    } cases[] = {
        {1000000, "0.", "1"},
        {1000000, "", "1"},
        {1000000, "1", ""},
        {150000, "0.", "1e100000"},
        {100000, "0.", "1e200000"},
        {100000, "0.", "1e100001"},
        {200000, "0.", "1e200001"},
        {99999, "0.", "1e100000"},
        {200000, "0.", "15e200040"},
        {100000, "1", "e-100000"},
        {100000, "1", "e-200000"},
        {100000, "1", "e-100045"},
        {100000, "0.", "7e-200000"},
        {63, "", "1"},
        {64, "", "1"},
        {62, "1", ""},
        {1000000, "1e", "1"},
        {1000000, "1e-", "2"},
        {300000, "16777217.", "1"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t before = strlen(cases[i].before), behind = strlen(cases[i].behind);
        size_t len = before + cases[i].zeros + behind;
        AUTO_FREE char *text = malloc(len + DECIMAL_PAD);
        float v = -1, want;

        assert_non_null(text);
        memcpy(text, cases[i].before, before);
        memset(text + before, '0', cases[i].zeros);
        memcpy(text + before + cases[i].zeros, cases[i].behind, behind);
        memset(text + len, 0, DECIMAL_PAD);
        want = strtof(text, NULL);
        assert_ptr_equal(decimal_parse((uint8_t *)text, (uint8_t *)text + len, &v), text + len);
        if (bits_of(v) != bits_of(want))
            fail_msg("'%s', %zu zeros, '%s': expected %g, got %g", cases[i].before, cases[i].zeros,
                     cases[i].behind, (double)want, (double)v);
    }
}

UNIT_TEST(test_decimal__no_number__null)
{
    static const char *const texts[] = {"",    " 1",        "-",
                                        "+",   ".",         "-.",
                                        "+-1", "--1",       "e",
                                        "e5",  ".e5",       "-e",
                                        "1e",  "1e+",       "1e-",
                                        "1.e", "in",        "na",
                                        "-in", "i",         "x1",
                                        "/",   ":",         "1e+-5",
                                        "1ee", "#",         ",1",
                                        "_",   "\xb1",      "\xff",
                                        "0e",  "12345678e", "1234567.12345678e+"};
    float v;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        for (unsigned behind = 0; behind < 256; behind++)
            if (behind < '0' || behind > '9')
                if (parse(texts[i], strlen(texts[i]), (char)behind, &v))
                    fail_msg("'%s' and bytes %02x: expected no number", texts[i], behind);
}

/* The text after a number is kept. */
UNIT_TEST(test_decimal__more_behind__left)
{
    static const struct {
        const char *text;
        size_t len;
        float want;
    } cases[] = {
        {"0x10", 1, 0},
        {"1.5f", 3, 1.5f},
        {"1.5.5", 3, 1.5f},
        {"1 2", 1, 1},
        {"1-2", 1, 1},
        {"1,2", 1, 1},
        {"1:2", 1, 1},
        {"infinit", 3, 0},
        {"nan(1)", 3, 0},
        {"infinityy", 8, 0},
        {"1e5e6", 3, 1e5f},
        {"1e5.5", 3, 1e5f},
        {"12345678:", 8, 12345678},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        float v = 0;

        assert_ptr_equal(parse(cases[i].text, strlen(cases[i].text), ' ', &v),
                         cases[i].text + cases[i].len);
        if (cases[i].want != 0)
            assert_int_equal(bits_of(v), bits_of(cases[i].want));
    }
}

/* The number ends at the end, whatever non-digit follows; and only DECIMAL_PAD bytes after it are
 * read. */
UNIT_TEST(test_decimal__at_the_end__nothing_behind)
{
    static const char behind[] = ".eE-+xin:# \n";
    static const char *const texts[] = {"1",  "12345678", "-1",  "1.5",
                                        "1.", "1e5",      "inf", "1234567.1234567"};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        size_t len = strlen(texts[i]);
        uint8_t *capacity = malloc(len + DECIMAL_PAD); /* for ASan */

        memcpy(capacity, texts[i], len);
        for (const char *c = behind; *c; c++) {
            float v = 0;

            memset(capacity + len, *c, DECIMAL_PAD);
            assert_ptr_equal(decimal_parse(capacity, capacity + len, &v), capacity + len);
            assert_int_equal(bits_of(v), bits_of(strtof(texts[i], NULL)));
        }
        free(capacity);
    }
}

UNIT_TEST(test_digits8__every_end__value)
{
    for (unsigned n = 0; n <= 8; n++) {
        for (unsigned behind = 0; behind < 256; behind++) {
            uint8_t text[8];
            uint32_t want = 0, found = 0;

            if (behind >= '0' && behind <= '9' && n < 8)
                continue;
            memset(text, (int)behind, sizeof(text));
            for (unsigned i = 0; i < n; i++) {
                text[i] = (uint8_t)('0' + random_below(&rng, 10));
                want = want * 10 + text[i] - '0';
            }
            assert_int_equal(decimal_digits8(text, &found), n);
            assert_int_equal(found, want);
        }
    }
}

/* Any bits, numbers of usual sizes, and those that end in a half of the last digit. */
static double random_number(unsigned which)
{
    uint64_t bits = random_next(&rng);
    uint32_t low = (uint32_t)bits;
    double v;
    float f;

    memcpy(&v, &bits, sizeof(v));
    memcpy(&f, &low, sizeof(f));
    switch (which % 4) {
    case 0:
        return v;
    case 1:
        return (double)f;
    case 2:
        return (double)(float)(ldexp((double)low - 2e9, -(int)(bits >> 32) % 50));
    default:
        return ((double)low - 2e9) / (bits >> 63 ? 2 : 1000);
    }
}

UNIT_TEST(test_decimal_text__random__as_printf)
{
    static const double known[] = {
        0,      -0.0,         1,          -1,       999999.95, 9999999.5,
        1e-5,   9.9999995e-5, 1234567.5,  INFINITY, -INFINITY, (double)NAN,
        5e-324, 1.5e308,      16777217.0, 1e22,     1e23,      1e-16};

    for (unsigned i = 0; i < 200000; i++) {
        double v = i < ARRAY_LEN(known) ? known[i] : random_number(i);
        uint8_t found[DECIMAL_TEXT];
        int32_t whole;
        char want[40];
        size_t len = decimal_text(v, found), n = (size_t)snprintf(want, sizeof(want), "%.7g", v);

        if (len != n || memcmp(found, want, n) != 0)
            fail_msg("%a: %.*s, expected %s", v, (int)len, (const char *)found, want);
        whole = (int32_t)(random_next(&rng) >> i % 32);
        n = (size_t)snprintf(want, sizeof(want), "%d", whole);
        assert_int_equal(decimal_text_int(whole, found), n);
        assert_memory_equal(found, want, n);
    }
}
