#include "fs/cli/status_values.h"
#include "support/unit.h"

#include <stdlib.h>

#include "base/text.h"

static const char sample[] = "{\n"
                             "  \"version\": \"0.1.0\",\n"
                             "  \"odd\": \"a\\\"b\\\\c\\u0007\\ufffd } ] , \\n\",\n"
                             "  \"list\": [{\"n\": 1}, {\"n\": [2, \"]\"]}],\n"
                             "  \"requests\": {\"read\":     12, \"deep\": {\"n\": 7}},\n"
                             "  \"read\": 18446744073709551615,\n"
                             "  \"seconds\":             1.500000,\n"
                             "  \"nothing\": null,\n"
                             "  \"empty\": {},\n"
                             "  \"reason\": \"\"      \n"
                             "}\n";

static void test_value__numbers__by_path(void **state)
{
    (void)state;
    assert_int_equal(status_number(sample, "requests.read"), 12);
    assert_int_equal(status_number(sample, "requests.deep.n"), 7);
    assert_true(status_number(sample, "read") == UINT64_MAX);
    assert_true(status_real(sample, "seconds") == 1.5);
}

static void test_value__strings__unescaped(void **state)
{
    char text[64];

    (void)state;
    assert_true(status_string(sample, "version", text, sizeof(text)));
    assert_string_equal(text, "0.1.0");
    assert_true(status_string(sample, "odd", text, sizeof(text)));
    assert_string_equal(text, "a\"b\\c\a\xef\xbf\xbd } ] , \n");
    assert_true(status_string(sample, "odd", text, 4)); /* cut */
    assert_string_equal(text, "a\"b");
    for (size_t n = 1; n < 11; n++) { /* never within a character */
        static const size_t len[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6};

        assert_true(status_string("{\"s\": \"a\u00fc\u4e2d\U0001f600\"}", "s", text, n));
        assert_int_equal(strlen(text), len[n - 1]);
    }
    assert_true(status_string(sample, "reason", text, sizeof(text)));
    assert_string_equal(text, "");
}

static void test_value__not_there__not_found(void **state)
{
    static const char *const paths[] = {"n",         "deep",      "requests.n", "requests.read.n",
                                        "version.x", "list.n",    "empty.x",    "reason.x",
                                        "",          "requests.", ".requests",  "b"};
    char text[8] = "x";

    (void)state;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        if (status_value(sample, paths[i]))
            fail_msg("got '%s'", paths[i]);
    assert_int_equal(status_number(sample, "version"), 0);
    assert_int_equal(status_number(sample, "nothing"), 0);
    assert_false(status_string(sample, "read", text, sizeof(text)));
    assert_string_equal(text, "");
}

static void test_value__lists__element_by_element(void **state)
{
    static const char json[] = "{\"a\": {\"list\": [ {\"n\": 1, \"l\": [5, {}]} , {\"n\": 2}\n]},"
                               " \"none\": [  ], \"odd\": [,], \"open\": [3, ";
    const char *at = status_first(json, "a.list");

    (void)state;
    assert_non_null(at);
    assert_int_equal(status_number(at, "n"), 1);
    at = status_next(at);
    assert_non_null(at);
    assert_int_equal(status_number(at, "n"), 2);
    assert_null(status_next(at));
    assert_null(status_first(json, "none"));
    assert_null(status_first(json, "odd"));
    assert_null(status_first(json, "a"));
    assert_null(status_first(json, "b"));
    at = status_first(json, "open");
    assert_non_null(at);
    assert_null(status_next(at));
}

/* The parser reads back whatever text_add_json() writes. */
static void test_value__any_string__as_it_was(void **state)
{
    char all[256], back[1024];
    AUTO_TEXT struct text t = {0};

    (void)state;
    for (int i = 0; i < 127; i++)
        all[i] = (char)(i + 1);
    all[127] = '\0';
    text_add(&t, "{\"s\": ");
    text_add_json(&t, all);
    text_add(&t, ", \"n\": 5}");
    assert_true(status_string(t.data, "s", back, sizeof(back)));
    assert_string_equal(back, all);
    assert_int_equal(status_number(t.data, "n"), 5);
}

/* Every truncation of the text, and every text with one byte changed: no read passes the end. */
static void test_value__damaged__no_crash(void **state)
{
    static const char *const paths[] = {"reason", "requests.deep.n", "odd", "none", "list"};
    char text[64];

    (void)state;
    for (size_t n = 0; n < sizeof(sample); n++) {
        for (int c = -1; c < 128; c++) {
            size_t len = c < 0 ? n : sizeof(sample) - 1;
            char *copy = malloc(len + 1); /* so that ASan knows its end */

            assert_non_null(copy);
            memcpy(copy, sample, len);
            copy[len] = '\0';
            if (c >= 0 && n < len)
                copy[n] = (char)c;
            for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
                status_string(copy, paths[i], text, sizeof(text));
                status_number(copy, paths[i]);
                for (const char *at = status_first(copy, paths[i]); at; at = status_next(at))
                    status_number(at, "n");
            }
            free(copy);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_value__numbers__by_path),
        cmocka_unit_test(test_value__strings__unescaped),
        cmocka_unit_test(test_value__lists__element_by_element),
        cmocka_unit_test(test_value__not_there__not_found),
        cmocka_unit_test(test_value__any_string__as_it_was),
        cmocka_unit_test(test_value__damaged__no_crash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
