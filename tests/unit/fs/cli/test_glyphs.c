/* Numbers and words as characters of a terminal. */
#include "fs/cli/glyphs.h"

#include <math.h>
#include <string.h>

#include "support/unit.h"

static const struct glyphs grey = {.columns = 80, .unicode = true, .greys = true};
static const struct glyphs plain = {.columns = 80, .unicode = true};
static const struct glyphs ascii = {.columns = 80};

static void check_words(const struct glyphs *g, const char *bytes, unsigned columns,
                        const char *want)
{
    AUTO_TEXT struct text t = {0};

    glyphs_add_words(g, bytes, strlen(bytes), columns, &t);
    assert_string_equal(t.data, want);
}

static void test_glyphs__words__cut_and_filled(void **state)
{
    (void)state;
    check_words(&plain, "one", 5, "one  ");
    check_words(&plain, "one", 2, "on");
    check_words(&plain, "", 2, "  ");
    check_words(&plain, "äöü", 2, "äö");
    check_words(&ascii, "ä", 4, "??  ");
}

static void test_glyphs__words__no_commands(void **state)
{
    (void)state;
    check_words(&plain, "a\033[2J\x7f\t", 9, "a?[2J??  ");
    check_words(&plain,
                "\xc2\x9b"
                "31m",
                6, "??31m ");                         /* CSI in UTF-8 */
    check_words(&plain, "\xff\xc3", 3, "?? ");        /* no UTF-8; cut */
    check_words(&plain, "\xe2\x96", 3, "?? ");        /* cut */
    check_words(&plain, "a\u202eb", 6, "a???b ");     /* all that follows would be turned round */
    check_words(&plain, "\xc3(\xc0\x80", 5, "?(?? "); /* not the second byte; overlong */
}

static void test_glyphs__words__wide(void **state)
{
    (void)state;
    check_words(&plain, "\u4e2d\u6587a", 6, "\u4e2d\u6587a ");
    check_words(&plain, "\u4e2d\u6587", 3, "\u4e2d ");
    check_words(&plain, "\U0001f600", 1, " ");
    check_words(&ascii, "\u4e2d", 4, "??? ");
    assert_int_equal(glyphs_columns(&plain, "\u4e2d\uac00\uff21a\u00e9", 12), 8);
}

static void test_glyphs__columns__as_words(void **state)
{
    (void)state;
    assert_int_equal(glyphs_columns(&plain, "", 0), 0);
    assert_int_equal(glyphs_columns(&plain, "äb\xff", 4), 3);
    assert_int_equal(glyphs_columns(&ascii, "äb", 3), 3);
}

static void check_bars(const struct glyphs *g, const char *want)
{
    static const float height[] = {-1, 0, 0.5f, 1, 2, NAN};
    AUTO_TEXT struct text t = {0};

    glyphs_add_bars(g, height, 6, &t);
    assert_string_equal(t.data, want);
}

static void test_glyphs__bars__within_their_steps(void **state)
{
    (void)state;
    check_bars(&plain, "  ▄██ ");
    check_bars(&ascii, "  +@@ ");
}

static void check_pixels(const struct glyphs *g, const char *want)
{
    static const float upper[] = {0, 1, 1}, lower[] = {0, 0, 1};
    AUTO_TEXT struct text t = {0};

    glyphs_add_pixels(g, upper, lower, 3, &t);
    assert_string_equal(t.data, want);
}

static void test_glyphs__pixels__two_in_a_character(void **state)
{
    (void)state;
    check_pixels(&grey, "\033[38;5;232m\033[48;5;232m▀\033[38;5;255m▀\033[48;5;255m▀\033[0m");
    check_pixels(&plain, " ▒█");
    check_pixels(&ascii, " +@");
}

static void test_glyphs__no_terminal__nothing(void **state)
{
    struct glyphs g;

    (void)state;
    assert_false(glyphs_init(&g, -1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_glyphs__words__cut_and_filled),
        cmocka_unit_test(test_glyphs__words__no_commands),
        cmocka_unit_test(test_glyphs__words__wide),
        cmocka_unit_test(test_glyphs__columns__as_words),
        cmocka_unit_test(test_glyphs__bars__within_their_steps),
        cmocka_unit_test(test_glyphs__pixels__two_in_a_character),
        cmocka_unit_test(test_glyphs__no_terminal__nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
