#include "base/text.h"
#include "support/unit.h"

#include <stdio.h>

static void check_json(const char *bytes, const char *want)
{
    AUTO_TEXT struct text t = {0};

    text_add_json(&t, bytes);
    assert_false(t.failed);
    assert_string_equal(t.data, want);
    assert_int_equal(t.len, strlen(want));
}

UNIT_TEST(test_text_json__plain__quoted)
{
    check_json(NULL, "null");
    check_json("", "\"\"");
    check_json("abc/def", "\"abc/def\"");
    check_json("say \"hi\"\\", "\"say \\\"hi\\\"\\\\\"");
}

UNIT_TEST(test_text_json__control__escaped)
{
    check_json("a\nb\tc\x01\x1f\x7f", "\"a\\u000ab\\u0009c\\u0001\\u001f\\u007f\"");
}

UNIT_TEST(test_text_json__utf8__kept)
{
    check_json("\xc2\x80\xdf\xbf", "\"\xc2\x80\xdf\xbf\"");
    check_json("\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf",
               "\"\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\"");
    check_json("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", "\"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\"");
}

#define BAD "\\ufffd"

UNIT_TEST(test_text_json__bad_utf8__replaced)
{
    check_json("\x80", "\"" BAD "\"");                         /* continuation alone */
    check_json("\xc3", "\"" BAD "\"");                         /* cut short */
    check_json("\xe2\x82", "\"" BAD BAD "\"");                 /* cut short */
    check_json("\xf0\x9f\x98", "\"" BAD BAD BAD "\"");         /* cut short */
    check_json("\xe2\x82z", "\"" BAD BAD "z\"");               /* wrong byte inside */
    check_json("\xc0\xaf", "\"" BAD BAD "\"");                 /* overlong '/' */
    check_json("\xc1\xbf", "\"" BAD BAD "\"");                 /* overlong */
    check_json("\xe0\x9f\xbf", "\"" BAD BAD BAD "\"");         /* overlong */
    check_json("\xf0\x8f\xbf\xbf", "\"" BAD BAD BAD BAD "\""); /* overlong */
    check_json("\xed\xa0\x80", "\"" BAD BAD BAD "\"");         /* a surrogate */
    check_json("\xf4\x90\x80\x80", "\"" BAD BAD BAD BAD "\""); /* above U+10FFFF */
    check_json("\xf8\x88\x80\x80\x80", "\"" BAD BAD BAD BAD BAD "\"");
    check_json("\xff\xfe", "\"" BAD BAD "\"");
    check_json("\xe2\x82\xc3\xa9", "\"" BAD BAD "\xc3\xa9\""); /* continues after the bad bytes */
}

UNIT_TEST(test_json__parts__commas_between_values_only)
{
    AUTO_TEXT struct text t = {0};
    char *two[] = {"a\"b", "c"};

    text_add(&t, "{\n");
    json_add_number(&t, "  ", "n", UINT64_MAX);
    json_open(&t, "  ", "line", "{");
    json_add_text(&t, NULL, "say \"x\"", NULL);
    json_add_texts(&t, NULL, "two", two, sizeof(*two), 2);
    json_open(&t, NULL, "none", "[");
    json_close(&t, NULL, "]");
    json_add(&t, NULL, "is", "%s", "true");
    json_close(&t, "  ", "}");
    json_open(&t, "  ", NULL, "[");
    json_open(&t, NULL, NULL, "{");
    json_close(&t, NULL, "}");
    json_add_bytes(&t, "\0,", 2);
    json_close(&t, "  ", "]");
    assert_string_equal(t.data,
                        "{\n"
                        "  \"n\": 18446744073709551615,\n"
                        "  \"line\": {\"say \\\"x\\\"\": null, \"two\": [\"a\\\"b\", \"c\"], "
                        "\"none\": [], \"is\": true},\n"
                        "  [{}, \"\\u0000,\"],\n");
}

UNIT_TEST(test_text__many_appends__all_there)
{
    struct text t = {0};
    char *data = NULL;
    size_t len = 0, at = 0;

    for (int i = 0; i < 5000; i++)
        text_add(&t, "%d,", i);
    text_add_bytes(&t, "a\0b", 3);
    assert_int_equal(text_finish(&t, &data, &len), 0);
    for (int i = 0; i < 5000; i++) {
        char want[16];
        int n = snprintf(want, sizeof(want), "%d,", i);

        assert_memory_equal(data + at, want, (size_t)n);
        at += (size_t)n;
    }
    assert_memory_equal(data + at, "a\0b", 4);
    assert_int_equal(len, at + 3);
    assert_null(t.data);
    free(data);
}

UNIT_TEST(test_text_plain__control__replaced)
{
    char s[] = "a\033[31m\n\x7f\xc2\x9bM\xc3\xa9", lines[] = "a\n\tb";
    char turned[] = "\u061ca\u200e\u200fb\u2028\u2029\u202a\u202ec\u2066\u2069";
    char other[] = "\u061b\u200d\u2010\u2027\u202f\u2065\u206a\u05d0\xe2\x80";

    text_plain(s, "");
    assert_string_equal(s, "a?[31m????M\xc3\xa9");
    text_plain(lines, "\n");
    assert_string_equal(lines, "a\n?b");
    text_plain(turned, "");
    assert_string_equal(turned, "??a"
                                "??????"
                                "b"
                                "????????????"
                                "c"
                                "??????");
    text_plain(other, "");
    assert_string_equal(other, "\u061b\u200d\u2010\u2027\u202f\u2065\u206a\u05d0\xe2\x80");
}

UNIT_TEST(test_text_finish__nothing_added__empty_string)
{
    struct text t = {0};
    char *data = NULL;
    size_t len = 9;

    assert_int_equal(text_finish(&t, &data, &len), 0);
    assert_string_equal(data, "");
    assert_int_equal(len, 0);
    free(data);
}

UNIT_TEST(test_text_finish__failed__enomem_once)
{
    struct text t = {0};
    char *data = NULL;

    text_add(&t, "x");
    t.failed = true;
    text_add(&t, "y");
    text_add_bytes(&t, "z", 1);
    text_add_json(&t, "w");
    assert_int_equal(t.len, 1);
    assert_true(text_finish(&t, &data, NULL) < 0);
    assert_null(data);
    assert_null(t.data);
    assert_false(t.failed);
}

UNIT_TEST(test_text_fit__long__capacity_of_its_length)
{
    AUTO_TEXT struct text t = {0};

    text_fit(&t);
    assert_null(t.data);
    for (unsigned i = 0; i < 1000; i++)
        text_add(&t, "%03u", i);
    text_fit(&t);
    assert_int_equal(t.capacity, 3001);
    assert_int_equal(strlen(t.data), 3000);
    text_add(&t, "more");
    assert_string_equal(t.data + 2997, "999more");
}

UNIT_TEST(test_text_ends_with)
{
    assert_true(text_ends_with("a.csv", ".csv"));
    assert_true(text_ends_with("A.CSV", ".csv"));
    assert_true(text_ends_with(".csv", ".csv"));
    assert_true(text_ends_with("a", ""));
    assert_true(!text_ends_with("csv", ".csv"));
    assert_true(!text_ends_with("a.csv.gz", ".csv"));
}

UNIT_TEST(test_text_trim)
{
    static const char *const cases[][2] = {
        {" \t a b\r\n", "a b"}, {"a", "a"}, {"", ""}, {" \n", ""}, {"a\v", "a\v"}};
    char text[16];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        snprintf(text, sizeof(text), "%s", cases[i][0]);
        text_trim(text);
        assert_string_equal(text, cases[i][1]);
    }
}

UNIT_TEST(test_texts__sorted_from_the_third__each_once)
{
    static const char *const some[] = {"z", "a", "c", "b", "c", "b", "c"}, *const want = "zabc";
    AUTO_TEXTS struct texts list = {0};

    texts_sort(&list, 0);
    for (size_t i = 0; i < ARRAY_LEN(some); i++)
        assert_int_equal(texts_add(&list, some[i]), 0);
    texts_sort(&list, 2);
    assert_int_equal(list.n, strlen(want));
    for (size_t i = 0; i < list.n; i++)
        assert_int_equal(*list.text[i], want[i]);
}
