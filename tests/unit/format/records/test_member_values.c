/* Values of members: which extensions have them, and integers. */
#include <string.h>

#include "base/array.h"

#include "format/records/member_values.h"
#include "support/unit.h"

static void test_extensions__last_part__says_what_is_shown(void **state)
{
    static const struct {
        const char *ext;
        enum member_shown shown;
    } rows[] = {
        {"cls", MEMBER_AS_INTEGER},   {"label.cls", MEMBER_AS_INTEGER},
        {"index", MEMBER_AS_INTEGER}, {"id", MEMBER_AS_INTEGER},
        {"npy", MEMBER_AS_ARRAY},     {"depth.npy", MEMBER_AS_ARRAY},
        {"seg.txt", MEMBER_AS_TEXT},  {"json", MEMBER_AS_TEXT},
        {"npy.gz", MEMBER_AS_BYTES},  {"xcls", MEMBER_AS_BYTES},
        {"", MEMBER_AS_BYTES},        {"jpg", MEMBER_AS_BYTES},
        {"cls.jpg", MEMBER_AS_BYTES},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (member_shown_of(rows[i].ext, strlen(rows[i].ext)) != rows[i].shown)
            fail_msg("'%s'", rows[i].ext);
}

static void test_integers(void **state)
{
    static const struct {
        const char *text;
        bool good;
        int64_t value;
    } rows[] = {
        {"0", true, 0},
        {"9223372036854775807\n", true, INT64_MAX},
        {" -9223372036854775808 ", true, INT64_MIN},
        {"+07", true, 7},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"99999999999999999999999", false, 0},
        {"", false, 0},
        {"-", false, 0},
        {"1.0", false, 0},
        {"1 2", false, 0},
        {"cat", false, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t value = 0;
        bool good =
            member_integer_parse((const uint8_t *)rows[i].text, strlen(rows[i].text), &value);

        if (good != rows[i].good || value != rows[i].value)
            fail_msg("'%s': %d %lld", rows[i].text, good, (long long)value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_extensions__last_part__says_what_is_shown),
        cmocka_unit_test(test_integers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
