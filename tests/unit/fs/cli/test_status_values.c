#include "fs/cli/status_values.h"
#include "support/unit.h"

#include <string.h>

#include "base/text.h"

static const char sample[] = "{\n"
                             "  \"version\": \"0.1.0\",\n"
                             "  \"odd\": \"a\\\"b\\\\c\\u0007\\ufffd } ] , \\n\",\n"
                             "  \"list\": [{\"n\": 1}, {\"n\": [2, \"]\"]}],\n"
                             "  \"requests\": {\"read\":     12, \"deep\": {\"n\": 7}},\n"
                             "  \"read\": 18446744073709551615,\n"
                             "  \"seconds\":             1.500000,\n"
                             "  \"below\": -1,\n"
                             "  \"nothing\": null,\n"
                             "  \"empty\": {},\n"
                             "  \"reason\": \"\"      \n"
                             "}\n";

UNIT_TEST(test_value__numbers__by_path)
{
    AUTO_JSON json_t *json = status_parse(sample);

    assert_int_equal(status_number(json, "requests.read"), 12);
    assert_int_equal(status_number(json, "requests.deep.n"), 7);
    assert_true(status_number(json, "read") == UINT64_MAX);
    assert_true(status_real(json, "seconds") == 1.5);
    assert_int_equal(status_number(json, "below"), 0);
}

UNIT_TEST(test_value__strings__cut_after_a_character)
{
    AUTO_JSON json_t *json = status_parse(sample);
    AUTO_JSON json_t *wide = status_parse("{\"s\": \"a\u00fc\u4e2d\U0001f600\"}");
    char text[64];

    assert_true(status_string(json, "version", text, sizeof(text)));
    assert_string_equal(text, "0.1.0");
    assert_true(status_string(json, "odd", text, sizeof(text)));
    assert_string_equal(text, "a\"b\\c\a\xef\xbf\xbd } ] , \n");
    assert_true(status_string(json, "odd", text, 4));
    assert_string_equal(text, "a\"b");
    for (size_t n = 1; n < 12; n++) {
        static const size_t len[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};

        assert_true(status_string(wide, "s", text, n));
        assert_int_equal(strlen(text), len[n - 1]);
    }
    assert_true(status_string(json, "reason", text, sizeof(text)));
    assert_string_equal(text, "");
}

UNIT_TEST(test_value__not_there__not_found)
{
    static const char *const paths[] = {"n",         "deep",      "requests.n", "requests.read.n",
                                        "version.x", "list.n",    "empty.x",    "reason.x",
                                        "",          "requests.", ".requests",  "b"};
    AUTO_JSON json_t *json = status_parse(sample);
    char text[8] = "x";

    assert_non_null(json);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        if (status_value(json, paths[i]))
            fail_msg("got '%s'", paths[i]);
    assert_int_equal(status_number(json, "version"), 0);
    assert_int_equal(status_number(json, "nothing"), 0);
    assert_false(status_string(json, "read", text, sizeof(text)));
    assert_string_equal(text, "");
}

/* What cannot be parsed has nothing. */
UNIT_TEST(test_value__no_json__nothing)
{
    static const char *const texts[] = {"", "{", "{\"a\": 1", "[1]", "{\"a\": \"\\u0000\"}"};
    char text[8];

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        AUTO_JSON json_t *json = status_parse(texts[i]);

        assert_int_equal(status_number(json, "a"), 0);
        assert_false(status_string(json, "a", text, sizeof(text)));
    }
    assert_null(status_parse(NULL));
}

/* The parser reads back whatever text_add_json() writes. */
UNIT_TEST(test_value__any_string__as_it_was)
{
    char all[256], back[1024];
    AUTO_TEXT struct text t = {0};
    AUTO_JSON json_t *json = NULL;

    for (int i = 0; i < 127; i++)
        all[i] = (char)(i + 1);
    all[127] = '\0';
    text_add(&t, "{\"s\": ");
    text_add_json(&t, all);
    text_add(&t, ", \"n\": 5}");
    json = status_parse(t.data);
    assert_true(status_string(json, "s", back, sizeof(back)));
    assert_string_equal(back, all);
    assert_int_equal(status_number(json, "n"), 5);
}
