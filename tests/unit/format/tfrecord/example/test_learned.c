/* What byte strings look like, and which files are shards of one set. */
#include "format/records/group.h"
#include "format/tfrecord/example/learned.h"
#include "support/unit.h"

#include <stdlib.h>

static enum looks look(enum looks before, const char *text)
{
    return looks_of(before, (const uint8_t *)text, strlen(text));
}

static void test_looks__one_value__by_its_start(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        enum looks want;
    } cases[] = {
        {"", 0, LOOKS_UNKNOWN},
        {"\xff\xd8\xff\xe0", 4, LOOKS_JPEG},
        {"\x89PNG\r\n\x1a\n", 8, LOOKS_PNG},
        {"\x89PNG\r\n\x1a", 7, LOOKS_BYTES},
        {"GIF89a", 6, LOOKS_GIF},
        {"RIFF\1\2\3\4WEBP", 12, LOOKS_WEBP},
        {"RIFF\1\2\3\4WAVE", 12, LOOKS_WAVE},
        {"RIFF\1\2\3\4WAV", 11, LOOKS_BYTES},
        {"l\xc3\xadnea\ttwo", 10, LOOKS_LINE},
        {"two\nlines", 9, LOOKS_TEXT},
        {"nul\0inside", 10, LOOKS_BYTES},
        {"cut \xe2\x82", 6, LOOKS_BYTES},
        {"\x7f", 1, LOOKS_BYTES},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(looks_of(LOOKS_UNKNOWN, (const uint8_t *)cases[i].bytes, cases[i].len),
                         cases[i].want);
}

static void test_looks__several_values__what_all_are(void **state)
{
    (void)state;
    assert_int_equal(look(LOOKS_LINE, "line"), LOOKS_LINE);
    assert_int_equal(look(LOOKS_LINE, "two\nlines"), LOOKS_TEXT);
    assert_int_equal(look(LOOKS_TEXT, "line"), LOOKS_TEXT);
    assert_int_equal(look(LOOKS_LINE, "\xff\xd8\xff"), LOOKS_BYTES);
    assert_int_equal(look(LOOKS_JPEG, "\xff\xd8\xff"), LOOKS_JPEG);
    assert_int_equal(look(LOOKS_JPEG, "GIF89a"), LOOKS_BYTES);
    assert_int_equal(look(LOOKS_JPEG, "text"), LOOKS_BYTES);
    assert_int_equal(look(LOOKS_BYTES, "text"), LOOKS_BYTES);
    assert_int_equal(look(LOOKS_JPEG, ""), LOOKS_JPEG);
}

static void test_group__names__set_and_suffix(void **state)
{
    static const char *const cases[][2] = {
        {"train-00000-of-00010", "train"},
        {"train.tfrecord-00003-of-00010", "train.tfrecord"},
        {"train-0000-of-0001.data", "train.data"},
        {"a-1-of-2-00000-of-00010", "a-1-of-2"},
        {"train-00010-of-00010", NULL}, /* they count from 0 */
        {"train-00000-of-", NULL},
        {"train-of-00010", NULL},
        {"00000-of-00010", NULL},
        {"-00000-of-00010", NULL},
        {"train00000-of-00010", NULL},
        {"train-00000-of-9999999999", NULL},
        {"train-0-of-0", NULL},
        {"train", NULL},
        {"", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char name[RECORD_GROUP_SIZE] = "";

        assert_int_equal(group_name(cases[i][0], name), cases[i][1] != NULL);
        if (cases[i][1])
            assert_string_equal(name, cases[i][1]);
    }
}

static void test_group_missing__some_there__said_once(void **state)
{
    static const struct source_file all[] = {{.name = "a-00000-of-00002"},
                                             {.name = "a-00001-of-00002"},
                                             {.name = "b.rec-00001-of-00004"},
                                             {.name = "b.rec-00003-of-00004"},
                                             {.name = "c"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        char *text = group_missing(all, ARRAY_LEN(all), i);

        if (i == 2)
            assert_string_equal(text,
                                "2 of 4 files of `b.rec` are not here, the first is number 0");
        else
            assert_null(text);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_looks__one_value__by_its_start),
        cmocka_unit_test(test_looks__several_values__what_all_are),
        cmocka_unit_test(test_group__names__set_and_suffix),
        cmocka_unit_test(test_group_missing__some_there__said_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
