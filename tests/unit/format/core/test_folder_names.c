/* Which names lie next to a file. */
#include <stdlib.h>
#include <string.h>

#include "format/core/format.h"
#include "support/unit.h"

UNIT_TEST(test_names)
{
    struct folder_name name[] = {{"b.idx.gz", 5, 0}, {"a", 1, 1}, {"ab", 2, 2}, {"b.bin", 5, 3}};
    struct folder_names names = {name, ARRAY_LEN(name)};

    folder_names_sort(&names);
    assert_true(folder_names_has(&names, "a", 1));
    assert_true(folder_names_has(&names, "ab", 2));
    assert_int_equal(folder_names_find(&names, "b.idx", 5)->number, 0);
    assert_true(!folder_names_has(&names, "b.idx.gz", 8));
    assert_true(!folder_names_has(&names, "abc", 3));
    assert_true(!folder_names_has(&names, "", 0));
    assert_true(!folder_names_has(&(struct folder_names){0}, "a", 1));
}
