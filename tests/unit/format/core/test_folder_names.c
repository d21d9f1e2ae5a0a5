/* Which names lie beside a file. */
#include <stdlib.h>
#include <string.h>

#include "format/core/format.h"
#include "support/unit.h"

static void test_names(void **state)
{
    struct folder_name name[] = {{"b.idx.gz", 5, 0}, {"a", 1, 1}, {"ab", 2, 2}, {"b.bin", 5, 3}};
    struct folder_names names = {name, ARRAY_LEN(name)};

    (void)state;
    folder_names_sort(&names);
    assert_true(folder_names_has(&names, "a", 1));
    assert_true(folder_names_has(&names, "ab", 2));
    assert_int_equal(folder_names_find(&names, "b.idx", 5)->number, 0);
    assert_true(!folder_names_has(&names, "b.idx.gz", 8));
    assert_true(!folder_names_has(&names, "abc", 3));
    assert_true(!folder_names_has(&names, "", 0));
    assert_true(!folder_names_has(&(struct folder_names){0}, "a", 1));
}

static void test_siblings(void **state)
{
    struct folder_name name[] = {{"x.y.bin", 7, 0}, {"x.y.idx", 7, 1}, {"z", 1, 2}};
    struct probed_file file = {.name = "x.y.idx", .folder = {name, ARRAY_LEN(name)}};

    (void)state;
    assert_true(probed_has_sibling(&file, ".bin"));
    assert_true(!probed_has_sibling(&file, ".index"));
    file.name = "z";
    assert_true(probed_has_sibling(&file, ""));
    assert_true(!probed_has_sibling(&file, ".bin"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_siblings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
