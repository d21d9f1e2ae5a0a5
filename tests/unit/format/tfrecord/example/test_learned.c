/* What byte strings look like. */
#include "format/tfrecord/example/learned.h"
#include "support/unit.h"

#include <stdlib.h>

static enum looks look(enum looks before, const char *text)
{
    return looks_of(before, (const uint8_t *)text, strlen(text));
}

UNIT_TEST(test_looks__one_value__by_its_start)
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

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(looks_of(LOOKS_UNKNOWN, (const uint8_t *)cases[i].bytes, cases[i].len),
                         cases[i].want);
}

UNIT_TEST(test_looks__several_values__what_all_are)
{
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
