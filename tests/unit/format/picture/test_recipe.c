/* The grammar of recipes: what it takes, what it refuses and how, and back to text. */
#include "format/picture/recipe.h"
#include "support/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void expect_printed(const char *words, const char *want)
{
    AUTO_TEXT struct text t = {0}, again = {0};
    struct recipe recipe;
    struct diag d = DIAG_INIT;

    if (recipe_parse(words, strlen(words), &recipe, &d) < 0)
        fail_msg("%s: %s", words, d.text);
    recipe_print(&recipe, &t);
    assert_string_equal(t.data, want);
    assert_int_equal(recipe_parse(want, strlen(want), &recipe, NULL), 0);
    recipe_print(&recipe, &again);
    assert_string_equal(again.data, want);
}

UNIT_TEST(test_recipe__defaults__written_out_in_order)
{
    expect_printed("flip+rrc", "rrc:scale=0.08-1:ratio=0.75-1.333333+flip:0.5");
    expect_printed("salt:18446744073709551615+erase+gray+jitter+trivial+vflip+crop+base:16",
                   "base:16+crop:0+vflip:0.5+trivial+jitter:0.4:p=1+gray:0.1"
                   "+erase:0.5:scale=0.02-0.33:ratio=0.3-3.3+salt:18446744073709551615");
    expect_printed("rand", "rand:ops=2:magnitude=9");
    expect_printed("auto", "auto:imagenet");
    expect_printed("salt:0", "salt:0");
}

UNIT_TEST(test_recipe__values__in_any_order)
{
    expect_printed("rrc:ratio=0.0625-15.999999:scale=0.000001-0.35",
                   "rrc:scale=0.000001-0.35:ratio=0.0625-15.999999");
    expect_printed("rand:magnitude=30:ops=8", "rand:ops=8:magnitude=30");
    expect_printed("jitter:0.8:p=0.8", "jitter:0.8:p=0.8");
    expect_printed("jitter:p=0.25", "jitter:0.4:p=0.25");
    expect_printed("erase:1.000000:scale=0.1-0.1", "erase:1:scale=0.1-0.1:ratio=0.3-3.3");
    expect_printed("flip:0+auto:svhn+crop:256", "crop:256+flip:0+auto:svhn");
}

static const struct {
    const char *words, *reason;
} bad[] = {
    {"", "'' is not a word of recipes: expected base, rrc, crop,"},
    {"rrc+", "'' is not a word of recipes"},
    {"rcc", "'rcc' is not a word of recipes: expected base, rrc"},
    {"jitter+hue:0.1", "hue is not offered"},
    {"flip+flip", "flip is given twice"},
    {"rrc+crop:4", "expected one of rrc|crop, got rrc and crop"},
    {"rand+flip+trivial", "expected one of auto|rand|trivial, got rand and trivial"},
    {"base", "base: expected base:S, S from 16 to 4096, got 'base:'"},
    {"base:15", "S from 16 to 4096, got 'base:15'"},
    {"base:4097", "S from 16 to 4096, got 'base:4097'"},
    {"crop:257", "P from 0 to 256, got 'crop:257'"},
    {"crop:04", "got 'crop:04'"},
    {"flip:1.000001", "P from 0 to 1, got 'flip:1.000001'"},
    {"flip:0.1234567", "got 'flip:0.1234567'"},
    {"flip:.5", "got 'flip:.5'"},
    {"flip:1.", "got 'flip:1.'"},
    {"flip:-1", "got 'flip:-1'"},
    {"flip:nan", "got 'flip:nan'"},
    {"flip:", "got 'flip:'"},
    {"flip:0.5:0.5", "got 'flip:0.5:0.5'"},
    {"flip:p=0.5", "got 'flip:p=0.5'"},
    {"rrc:scale=0-1", "0 < scale <= 1, 0.0625 <= ratio < 16, got 'rrc:scale=0-1'"},
    {"rrc:scale=0.5-0.4", "got 'rrc:scale=0.5-0.4'"},
    {"rrc:scale=0.5", "got 'rrc:scale=0.5'"},
    {"rrc:scale=0.5-", "got 'rrc:scale=0.5-'"},
    {"rrc:scale=0.1-0.2:scale=0.1-0.2", "got 'rrc:scale=0.1-0.2:scale=0.1-0.2'"},
    {"rrc:ratio=0.0624-1", "got 'rrc:ratio=0.0624-1'"},
    {"rrc:ratio=1-16", "got 'rrc:ratio=1-16'"},
    {"rrc:colour=1-2", "got 'rrc:colour=1-2'"},
    {"rrc:=0.1-0.2", "got 'rrc:=0.1-0.2'"},
    {"trivial:1", "trivial: expected trivial, got 'trivial:1'"},
    {"auto:mnist", "auto[:imagenet|cifar10|svhn], got 'auto:mnist'"},
    {"rand:ops=9", "got 'rand:ops=9'"},
    {"rand:ops=0", "got 'rand:ops=0'"},
    {"rand:magnitude=31", "got 'rand:magnitude=31'"},
    {"salt:18446744073709551616", "N from 0 to 2^64-1"},
    {"jitter:15.1", "V from 0 to 15"},
};

UNIT_TEST(test_recipe__bad__refused_with_what_is_allowed)
{
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct recipe recipe;
        struct diag d = DIAG_INIT;

        assert_int_equal(recipe_parse(bad[i].words, strlen(bad[i].words), &recipe, &d), -EINVAL);
        if (!strstr(d.text, bad[i].reason))
            fail_msg("%s: expected '%s', got '%s'", bad[i].words, bad[i].reason, d.text);
    }
}

UNIT_TEST(test_recipe__ten_thousand_characters__a_short_reason)
{
    AUTO_FREE char *words = malloc(10001);
    struct recipe recipe;
    struct diag d = DIAG_INIT;

    assert_non_null(words);
    memset(words, 'r', 10000);
    assert_int_equal(recipe_parse(words, 10000, &recipe, &d), -EINVAL);
    assert_true(strlen(d.text) < 300);
    memcpy(words, "rrc:", 4);
    d = DIAG_INIT;
    assert_int_equal(recipe_parse(words, 10000, &recipe, &d), -EINVAL);
    assert_true(strlen(d.text) < 300);
}
