/* Rows of an index of text against the text. */
#include "format/text/row.h"

#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "support/memory_blob.h"
#include "support/unit.h"

static int verify(const char *text, uint64_t first, uint64_t at, uint64_t len, bool has_cr)
{
    AUTO_BLOB struct blob *blob = memory_blob_new("x", text, strlen(text), strlen(text), NULL);
    struct diag d = DIAG_INIT;
    int r;

    assert_non_null(blob);
    r = text_row_verify(READ_WAITS, blob, first, at, len, has_cr, &d);
    assert_int_equal(d.set, r < 0);
    return r;
}

static void test_text_row__lines__found(void **state)
{
    static const char text[] = "HEADabc\nde\r\n\nf";

    (void)state;
    assert_int_equal(verify(text, 4, 4, 3, false), 0);
    assert_int_equal(verify(text, 4, 8, 2, false), 0);
    assert_int_equal(verify(text, 4, 8, 2, true), 0);
    assert_int_equal(verify(text, 4, 8, 3, false), 0); /* CR is data */
    assert_int_equal(verify(text, 4, 12, 0, false), 0);
    assert_int_equal(verify(text, 4, 13, 1, false), 0);
    assert_int_equal(verify("a\rb", 0, 2, 1, true), 0);
}

static void test_text_row__others__ebadmsg(void **state)
{
    static const struct {
        uint64_t at, len;
        bool has_cr;
    } bad[] = {{5, 2, false}, {4, 2, false}, {4, 4, false}, {4, 6, false},
               {9, 1, false}, {8, 1, false}, {8, 3, true},  {12, 2, false}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(verify("HEADabc\nde\r\n\nf", 4, bad[i].at, bad[i].len, bad[i].has_cr),
                         -EBADMSG);
    assert_int_equal(verify("a\rb", 0, 2, 1, false), -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_row__lines__found),
        cmocka_unit_test(test_text_row__others__ebadmsg),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
