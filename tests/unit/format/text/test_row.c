/* Rows of an index of text against the text. */
#include "format/text/row.h"

#include <errno.h>
#include <stdio.h>
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

UNIT_TEST(test_text_row__lines__found)
{
    static const char text[] = "HEADabc\nde\r\n\nf";

    assert_int_equal(verify(text, 4, 4, 3, false), 0);
    assert_int_equal(verify(text, 4, 8, 2, false), 0);
    assert_int_equal(verify(text, 4, 8, 2, true), 0);
    assert_int_equal(verify(text, 4, 8, 3, false), 0); /* CR is data */
    assert_int_equal(verify(text, 4, 12, 0, false), 0);
    assert_int_equal(verify(text, 4, 13, 1, false), 0);
    assert_int_equal(verify("a\rb", 0, 2, 1, true), 0);
}

UNIT_TEST(test_text_row__others__ebadmsg)
{
    static const struct {
        uint64_t at, len;
        bool has_cr;
    } bad[] = {{5, 2, false}, {4, 2, false}, {4, 4, false}, {4, 6, false},
               {9, 1, false}, {8, 1, false}, {8, 3, true},  {12, 2, false}};

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(verify("HEADabc\nde\r\n\nf", 4, bad[i].at, bad[i].len, bad[i].has_cr),
                         -EBADMSG);
    assert_int_equal(verify("a\rb", 0, 2, 1, false), -EBADMSG);
}

static int join(void *ctx, unsigned i, const uint8_t *line, struct diag *d)
{
    char *joined = ctx;

    (void)d;
    if (line[0] == 'x')
        return -EBADMSG;
    snprintf(joined + strlen(joined), 64 - strlen(joined), "%u:%s ", i, (const char *)line);
    return 0;
}

/* Each row is read as if it were alone, in the order of rows, up to one that cannot be parsed. */
UNIT_TEST(test_text_rows_parse__any_order__each)
{
    static const char text[] = "ab\ncde\nf\nx\n";
    AUTO_BLOB struct blob *blob = memory_blob_new("x", text, strlen(text), 1 << 21, NULL);
    const struct extent rows[] = {{blob, 0, 2}, {blob, 3, 3},       {blob, 7, 1}, {blob, 3, 3},
                                  {blob, 0, 0}, {blob, 1 << 20, 0}, {blob, 9, 1}, {blob, 7, 1}};
    char joined[64] = "";

    assert_non_null(blob);
    assert_int_equal(text_rows_parse(READ_WAITS, rows, 6, join, joined, NULL), 0);
    assert_string_equal(joined, "0:ab 1:cde 2:f 3:cde 4: 5: ");
    *joined = 0;
    assert_int_equal(text_rows_parse(READ_WAITS, rows + 6, 2, join, joined, NULL), -EBADMSG);
    assert_string_equal(joined, "");
}

UNIT_TEST(test_text_line_number__both_ends)
{
    static const char text[] = "a\r\nb\rc\n\nd";
    AUTO_BLOB struct blob *blob = memory_blob_new("x", text, strlen(text), strlen(text), NULL);
    const uint64_t number[][2] = {{1, 1}, {1, 1}, {2, 1}, {2, 2}, {2, 2}, {3, 2}, {3, 2}, {4, 3}};
    uint64_t found;

    assert_non_null(blob);
    for (uint64_t at = 0; at < ARRAY_LEN(number); at++)
        for (unsigned lf_only = 0; lf_only < 2; lf_only++) {
            assert_int_equal(text_line_number(blob, at, !lf_only, &found, NULL), 0);
            assert_int_equal(found, number[at][lf_only]);
        }
}
