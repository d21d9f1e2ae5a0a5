/* The text of normalize=, and its tables against those that numpy makes in float32 and float16. */
#include "format/picture/normalize.h"
#include "support/unit.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/scope.h"

/* A number that all elements of a color's table make, in their order. */
static uint64_t sum_of(const struct normalize *n, unsigned c)
{
    uint64_t sum = 0;

    for (unsigned x = 0; x < 256; x++)
        sum = sum * 31 + (n->is_half ? load_le16(n->value[c][x]) : load_le32(n->value[c][x]));
    return sum;
}

static const struct {
    const char *text;
    unsigned channels, color;
    uint64_t sum; /* of numpy's elements */
} tables[] = {
    {"imagenet", 3, 0, 0xd37db30ea447438e},         {"imagenet:f2", 3, 0, 0x6d94b5d93597a92e},
    {"0.485/0.229", 1, 0, 0xd37db30ea447438e},      {"clip", 3, 2, 0x2fc878aacda8121},
    {"clip:f2", 3, 2, 0xf5292445b69a21f1},          {"0.5/0.0000001", 1, 0, 0x8953001109fcd2aa},
    {"0.5/0.0000001:f2", 1, 0, 0x2ae8931aa64ba7ff}, /* infinities */
};

UNIT_TEST(test_normalize__tables__as_numpy_has_them)
{
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        struct normalize n;
        struct diag d = DIAG_INIT;

        if (normalize_parse(tables[i].text, &n, &d) < 0)
            fail_msg("%s: %s", tables[i].text, d.text);
        assert_int_equal(n.channels, tables[i].channels);
        if (sum_of(&n, tables[i].color) != tables[i].sum)
            fail_msg("%s: other elements than numpy's", tables[i].text);
    }
}

UNIT_TEST(test_normalize__erased__the_mean_half_up)
{
    struct normalize n;

    assert_int_equal(normalize_parse("imagenet", &n, NULL), 0);
    assert_memory_equal(n.erased, normalize_erased, NORMALIZE_CHANNELS);
    assert_int_equal(normalize_parse("clip", &n, NULL), 0);
    assert_memory_equal(n.erased, ((const uint8_t[]){123, 117, 104}), NORMALIZE_CHANNELS);
    assert_int_equal(normalize_parse("1/1", &n, NULL), 0);
    assert_memory_equal(n.erased, ((const uint8_t[]){255, 255, 255}), NORMALIZE_CHANNELS);
}

UNIT_TEST(test_normalize__bad__refused)
{
    static const char *const bad[] = {
        "",
        "net",
        "imagenet:f4",
        "0.5",
        "0.5/0",
        "0/0/0/1/1",
        "nan/1",
        "1.1/1",
        "0.5/inf",
        "-0.5/1",
        "0.5/0.0000000",
        "0.5/1/",
        ".5/1",
        "0.5./1",
        "0.5/1:f2:f2",
        "123.675/58",
        "0.5/1e-3",
        "0.5,1",
        "0x1p-1",
        "00.5/1",
        "0.12345678901234567/1",
        "0/0/0/1/1/1/1",
        "imagenet/0.5/1",
        ":f2",
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct normalize n;
        struct diag d = DIAG_INIT;

        if (normalize_parse(bad[i], &n, &d) != -EINVAL)
            fail_msg("'%s' was not refused", bad[i]);
        assert_non_null(strstr(d.text, "expected imagenet, half, clip"));
    }
}
