#include "base/extensions.h"
#include "support/unit.h"

#include <stdio.h>

static void check_shown(struct extensions *k, const char *want)
{
    AUTO_TEXT struct text t = {0};

    extensions_show(k, false, &t);
    assert_string_equal(t.data ? t.data : "", want);
}

UNIT_TEST(test_extensions__none__nothing)
{
    struct extensions k = {.n = 0};

    check_shown(&k, "");
}

UNIT_TEST(test_extensions__several__most_frequent_first)
{
    static const char *const name[] = {"a.c", "b.h", "x/y.d/none",           ".hidden", "two.tar.H",
                                       "d.h", "c.c", "long.of-sixteen-byte", "e."};
    struct extensions k = {.n = 0};

    for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++)
        extensions_add(&k, name[i]);
    check_shown(&k, "3 .h, 3 without an extension, 2 .c, 1 .");
}

UNIT_TEST(test_extensions__many__others_counted)
{
    struct extensions k = {.n = 0};
    char name[32];

    for (unsigned i = 0; i < 100000; i++) {
        snprintf(name, sizeof(name), "a.%u", i);
        extensions_add(&k, name);
    }
    extensions_add(&k, "b.63");
    extensions_add(&k, "b.64");
    check_shown(&k, "2 .63, 1 .0, 1 .1, 1 .2, 1 .3, 1 .4, 1 .5, 1 .6, 99993 others");
}
