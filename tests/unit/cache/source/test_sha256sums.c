/* SHA256SUMS: the lines of sha256sum, and anything else that a server may send under that name. */
#include <errno.h>

#include "base/scope.h"
#include "cache/source/sha256sums.h"
#include "support/unit.h"

#define A64 "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF"

/* The one line. */
static int parse(const char *text, struct sum *ret, const char **ret_why)
{
    size_t at = 0;

    *ret_why = "";
    return sums_next(text, strlen(text), &at, ret, ret_why);
}

UNIT_TEST(test_sums__lines__names_and_sums)
{
    static const char text[] =
        A64 "  a b\n" A64 " *sub/deep/c.gz\r\n\n# comment\n" A64 "  ./d\n" A64 "  last";
    static const char *const names[] = {"a b", "sub/deep/c.gz", "d", "last"};
    const char *why = NULL;
    struct sum sum;
    size_t at = 0, n = 0;
    int r;

    while ((r = sums_next(text, sizeof(text) - 1, &at, &sum, &why)) != 0) {
        if (r == -ENODATA)
            continue;
        assert_int_equal(r, 1);
        assert_string_equal(sum.path, names[n++]);
        assert_int_equal(sum.sha256[1], 0x11);
        assert_int_equal(sum.sha256[31], 0xff);
    }
    assert_int_equal(n, ARRAY_LEN(names));
}

UNIT_TEST(test_sums__escaped__decoded)
{
    const char *why;
    struct sum sum;

    assert_int_equal(parse("\\" A64 "  back\\\\slash", &sum, &why), 1);
    assert_string_equal(sum.path, "back\\slash");
    assert_int_equal(parse(A64 "  back\\\\slash", &sum, &why), 1);
    assert_string_equal(sum.path, "back\\\\slash");
    assert_int_equal(parse("\\" A64 "  line\\nend", &sum, &why), -EINVAL);
    assert_string_equal(why, "control characters");
    assert_int_equal(parse("\\" A64 "  un\\known", &sum, &why), -EINVAL);
    assert_int_equal(parse("\\" A64 "  end\\", &sum, &why), -EINVAL);
}

UNIT_TEST(test_sums__hostile__einval)
{
    static const char *const lines[] = {
        A64 "  ../up",
        A64 "  a/../../b",
        A64 "  /etc/passwd",
        A64 "  a//b",
        A64 "  ",
        A64 "  a/",
        A64 " a",
        A64 "a",
        "0011  short",
        "<html>",
        A64 "  tab\there",
        A64 "  a/./b",
        "SHA256 (x) = 00",
        A64,
        "\\",
        A64 "  .",
    };
    const char *why;
    struct sum sum;

    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        assert_int_equal(parse(lines[i], &sum, &why), -EINVAL);
        assert_true(*why);
    }
    assert_int_equal(parse(A64 "  .hidden", &sum, &why), -ENODATA);
    assert_int_equal(parse(A64 "  .git/config", &sum, &why), -ENODATA);
}

UNIT_TEST(test_sums__nul_and_long_names__einval)
{
    static char text[6000];
    const char *why;
    struct sum sum;
    size_t at = 0;

    memset(text, 'x', sizeof(text));
    memcpy(text, A64 "  ", 66);
    assert_int_equal(sums_next(text, sizeof(text), &at, &sum, &why), -EINVAL);
    at = 0;
    assert_int_equal(sums_next(text, 66 + 256, &at, &sum, &why), -EINVAL);
    at = 0;
    assert_int_equal(sums_next(text, 66 + 255, &at, &sum, &why), 1);
    text[70] = '\0';
    at = 0;
    assert_int_equal(sums_next(text, 100, &at, &sum, &why), -EINVAL);
}
