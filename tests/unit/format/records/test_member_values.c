/* Values of members: which extensions have them, integers, and how a pass reads them. */
#include <string.h>

#include "base/array.h"

#include "format/records/member_values.h"
#include "support/unit.h"

#include <errno.h>

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

struct bytes_reader {
    struct member_reader reader;
    const char *bytes;
    int fault;
};

static int test_bytes(struct member_reader *reader, size_t len, const uint8_t **ret, struct diag *d)
{
    const struct bytes_reader *r = (const struct bytes_reader *)reader;

    (void)len;
    (void)d;
    *ret = (const uint8_t *)r->bytes;
    return r->fault;
}

/* Integers of one column; wrong NULL: the row gets the value. */
static void test_values__integers__in_the_row_or_the_column_is_of_bytes(void **state)
{
    static const struct {
        const char *text, *wrong;
        unsigned spare;
        int fault;
    } rows[] = {
        {"-7\n", NULL, 0, 0},
        {"-7", NULL, INDEX_LEARNED - 3, 0},
        {"-7", "too many fields", INDEX_LEARNED - 2, 0},
        {"", "expected a decimal integer", 0, 0},
        {"x", "expected a decimal integer", 0, 0},
        {"123456789012345678901234567890123", "expected a decimal integer", 0, 0},
        {"-7", NULL, 0, -EIO},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct index_shape shape = {.columns = 2, .learns = true};
        AUTO_INDEX_BUILDER struct index_builder *builder = NULL;
        uint64_t number[COLUMN_NUMBERS] = {[MEMBER_FORM] = MEMBER_AS_INTEGER}, row[3] = {0};
        struct bytes_reader r = {.bytes = rows[i].text, .fault = rows[i].fault};
        const char *wrong;

        assert_int_equal(index_builder_new(&shape, &builder), 0);
        r.reader = (struct member_reader){builder, 2, rows[i].spare, test_bytes};
        assert_int_equal(
            member_read_value(&r.reader, number, strlen(rows[i].text), row, &wrong, NULL),
            rows[i].fault);
        assert_int_equal(number[MEMBER_FORM], rows[i].wrong ? MEMBER_AS_BYTES : MEMBER_AS_INTEGER);
        assert_true(rows[i].wrong ? wrong && strstr(wrong, rows[i].wrong) : !wrong);
        assert_int_equal(row[2], rows[i].wrong || rows[i].fault ? 0 : (uint64_t)-7);
        /* A column without a value is good in a kept index, one with values needs its place. */
        assert_true(member_numbers_are_good(number, 2, r.reader.columns));
        number[MEMBER_ROWS] = 1;
        assert_int_equal(member_numbers_are_good(number, 2, r.reader.columns), !rows[i].fault);
    }
}

static void test_numbers_of_a_kept_index__hostile__not_good(void **state)
{
    static const struct {
        uint64_t number[COLUMN_NUMBERS];
        bool good;
    } rows[] = {
        {{[MEMBER_FORM] = MEMBER_AS_ARRAY}, true},
        {{[MEMBER_FORM] = MEMBER_AS_ARRAY, [MEMBER_ROWS] = 1}, false},
        {{[MEMBER_FORM] = MEMBER_AS_ARRAY, [MEMBER_AXES] = 1}, false},
        {{[MEMBER_FORM] = MEMBER_AS_ARRAY, [MEMBER_TYPE] = N_DTYPES}, false},
        {{[MEMBER_FORM] = MEMBER_AS_ARRAY, [MEMBER_VALUE] = 2, [MEMBER_AXES] = 1}, true},
        {{[MEMBER_FORM] = MEMBER_AS_ARRAY, [MEMBER_VALUE] = 3, [MEMBER_AXES] = 1}, false},
        {{[MEMBER_FORM] = MEMBER_AS_INTEGER, [MEMBER_VALUE] = 3}, true},
        {{[MEMBER_FORM] = MEMBER_AS_INTEGER, [MEMBER_VALUE] = 4}, false},
        {{[MEMBER_FORM] = MEMBER_AS_INTEGER, [MEMBER_VALUE] = 1}, false},
        {{[MEMBER_FORM] = N_MEMBER_SHOWN}, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (member_numbers_are_good(rows[i].number, 2, 4) != rows[i].good)
            fail_msg("row %zu", i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_extensions__last_part__says_what_is_shown),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_values__integers__in_the_row_or_the_column_is_of_bytes),
        cmocka_unit_test(test_numbers_of_a_kept_index__hostile__not_good),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
