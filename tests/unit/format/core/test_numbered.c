/* Texts that a pass finds, and then a second one, as after a read that failed. */
#include <string.h>

#include "base/checked.h"
#include "format/core/numbered.h"
#include "support/unit.h"

static void add_all(struct numbered *t, const char *texts, const uint32_t *number)
{
    for (size_t i = 0; texts[i]; i++) {
        uint32_t found;

        assert_int_equal(numbered_add(t, &texts[i], 1, &found), 0);
        assert_int_equal(found, number[i]);
    }
}

static void check_sorted(struct numbered *t, const char *sorted)
{
    assert_int_equal(numbered_sort(t), 0);
    assert_int_equal(t->n, strlen(sorted));
    for (uint32_t i = 0; i < t->n; i++) {
        size_t len;
        const char *text = numbered_text(t, t->sorted[i], &len);

        assert_int_equal(len, 1);
        assert_int_equal(*text, sorted[i]);
        assert_int_equal(t->place[t->sorted[i]], i);
    }
}

UNIT_TEST(test_texts__second_pass_has_more__all_sorted)
{
    AUTO_NUMBERED struct numbered t = {0};

    add_all(&t, "cbc", (const uint32_t[]){0, 1, 0});
    check_sorted(&t, "bc");
    add_all(&t, "cbca", (const uint32_t[]){0, 1, 0, 2});
    check_sorted(&t, "abc");
}
