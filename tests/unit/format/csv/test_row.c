/* Cells and numbers of one line of a table. */
#include "format/csv/row.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/scope.h"
#include "support/unit.h"

/* The line in memory that ends where a line may end. */
static const uint8_t *padded(const char *line)
{
    static uint8_t text[256 + DECIMAL_PAD];

    assert_true(strlen(line) <= 256);
    memset(text, 0, sizeof(text));
    memcpy(text, line, strlen(line));
    return text;
}

UNIT_TEST(test_csv_cell__quotes_and_blanks__cut)
{
    static const struct {
        const char *line;
        char delimiter;
        const char *cell[4]; /* "!" before one that is broken; ended by NULL */
    } lines[] = {
        {"1,2", ',', {"1", "2"}},
        {" 1 ,\t2 ", ',', {"1", "2"}},
        {",", ',', {"", ""}},
        {"1,", ',', {"1", ""}},
        {"\"a,b\",c", ',', {"a,b", "c"}},
        {"\"a\" , c", ',', {"a", "c"}},
        {"\"a\"b,c", ',', {"!\"a\"b", "c"}},
        {"\"a,b", ',', {"!\"a", "b"}},
        {"a\"b", ',', {"!a\"b"}},
        {"\"\"", ',', {""}},
        {"1\t\t2", '\t', {"1", "", "2"}},
        {"  1   2 ", ' ', {"1", "2"}},
        {"1\t 2", ' ', {"1", "2"}},
        {"1;2", ',', {"1;2"}},
    };

    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        const uint8_t *line = padded(lines[i].line), *end = line + strlen(lines[i].line), *p = line;
        size_t n = 0;

        for (; p; n++) {
            const char *expected = lines[i].cell[n];
            struct csv_cell cell;

            csv_cell(p, end, lines[i].delimiter, &cell, &p);
            assert_non_null(expected);
            assert_int_equal(cell.broken, *expected == '!');
            expected += cell.broken;
            assert_int_equal(cell.len, strlen(expected));
            assert_memory_equal(cell.text, expected, cell.len);
        }
        assert_null(lines[i].cell[n]);
    }
}

UNIT_TEST(test_csv_parse__both_widths__agree)
{
    static const struct {
        const char *line;
        char delimiter;
        size_t n, bad; /* 4: none is */
        double value[4];
    } lines[] = {
        {"1,-2.5,+3e2", ',', 3, 4, {1, -2.5, 300}},
        {"\"1\",,2", ',', 3, 4, {1, (double)NAN, 2}},
        {"1,x,y", ',', 3, 1, {1, (double)NAN, (double)NAN}},
        {"1 ,2", ',', 2, 4, {1, 2}},
        {"0.1", ',', 1, 4, {0.1}},
        {"1 2  3", ' ', 3, 4, {1, 2, 3}},
        {"nan;inf;-inf", ';', 3, 4, {(double)NAN, (double)INFINITY, -(double)INFINITY}},
        {"1,2,3,4,5,6", ',', 6, 4, {1, 2, 3, 4}},
        {"1,1.2.3", ',', 2, 1, {1, (double)NAN}},
    };

    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        const uint8_t *line = padded(lines[i].line);
        size_t len = strlen(lines[i].line), bad, bad8;
        float f4[4];
        double f8[4];

        assert_int_equal(csv_parse(line, len, lines[i].delimiter, f4, 4, &bad), lines[i].n);
        assert_int_equal(csv_parse_doubles(line, len, lines[i].delimiter, f8, 4, &bad8),
                         lines[i].n);
        assert_int_equal(bad, lines[i].bad);
        assert_int_equal(bad8, lines[i].bad);
        for (size_t k = 0; k < min_u64(lines[i].n, 4); k++) {
            double expected = lines[i].value[k];

            assert_true(isnan(expected) ? isnan(f8[k]) && isnan(f4[k])
                                        : f8[k] == expected && f4[k] == (float)expected);
        }
    }
}

UNIT_TEST(test_csv_is_empty__comments)
{
    assert_true(csv_is_empty((const uint8_t *)" \t\r", 3, 0, 0));
    assert_true(csv_is_empty((const uint8_t *)" # 1", 4, 0, '#'));
    assert_false(csv_is_empty((const uint8_t *)" # 1", 4, 0, 0));
    assert_false(csv_is_empty((const uint8_t *)",", 1, 0, '#'));
    assert_true(csv_is_empty((const uint8_t *)"\t# 1", 4, 1, '#'));
    assert_true(csv_is_empty((const uint8_t *)" \r", 2, csv_tabs('\t', 1), 0));
    assert_true(csv_is_empty((const uint8_t *)" \t\r", 3, csv_tabs(',', 2), 0));
    assert_true(csv_is_empty((const uint8_t *)" \t\r", 3, csv_tabs('\t', 3), 0));
    assert_false(csv_is_empty((const uint8_t *)" \t\r", 3, csv_tabs('\t', 2), 0));
}
