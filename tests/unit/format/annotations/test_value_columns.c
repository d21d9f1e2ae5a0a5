/* Columns of values in memory: rows, holes, picking, and what is kept of them. */
#include "format/annotations/value_columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "support/unit.h"

/* Three rows: a number, a list of pairs, a text. Row 1 has no number and no text. */
static void make_columns(struct value_columns *t)
{
    static const float pairs[] = {1, 2, 3, 4, 5, 6};
    static const char *const texts[] = {"one", NULL, "three"};
    static const size_t n_pairs[] = {1, 0, 2};
    struct value_column *number, *list, *text;
    size_t at = 0;

    assert_int_equal(value_columns_add(t, "number", VALUE_NUMBERS, DTYPE_I8, false, 0, &number), 0);
    assert_int_equal(value_columns_add(t, "list", VALUE_NUMBERS, DTYPE_F4, true, 2, &list), 0);
    assert_int_equal(value_columns_add(t, "text", VALUE_TEXT, DTYPE_U1, true, 0, &text), 0);
    number = value_columns_find(t, "number");
    list = value_columns_find(t, "list");
    for (int64_t row = 0; row < 3; row++) {
        int64_t value = row + 10;

        if (row != 1)
            assert_int_equal(value_column_append(number, &value, 1), 0);
        assert_int_equal(value_column_end_row(number), 0); /* without an item: a hole */
        assert_int_equal(value_column_append(list, pairs + 2 * at, n_pairs[row]), 0);
        assert_int_equal(value_column_end_row(list), 0);
        at += n_pairs[row];
        if (texts[row]) {
            assert_int_equal(value_column_append(text, texts[row], strlen(texts[row])), 0);
            assert_int_equal(value_column_end_row(text), 0);
        } else {
            assert_int_equal(value_column_end_hole(text), 0);
        }
    }
}

static void check_row(const struct value_columns *t, uint64_t row, int64_t number, uint64_t n_pairs,
                      float first, const char *text)
{
    const struct value_column *c = value_columns_find(t, "number");
    const uint8_t *items;
    float pair[2];
    int64_t value;

    assert_int_equal(value_is_hole(c, row), number == 0);
    assert_int_equal(value_items(c, row, &items), 1);
    memcpy(&value, items, sizeof(value));
    assert_int_equal(value, number);
    c = value_columns_find(t, "list");
    assert_int_equal(value_items(c, row, &items), n_pairs);
    if (n_pairs) {
        memcpy(pair, items, sizeof(pair));
        assert_true(pair[0] == first);
    }
    c = value_columns_find(t, "text");
    assert_int_equal(value_is_hole(c, row), !text);
    assert_int_equal(value_items(c, row, &items), text ? strlen(text) : 0);
    if (text)
        assert_memory_equal(items, text, strlen(text));
}

UNIT_TEST(test_columns__rows_and_holes__as_added)
{
    AUTO_VALUE_COLUMNS struct value_columns t = {0};

    make_columns(&t);
    check_row(&t, 0, 10, 1, 1, "one");
    check_row(&t, 1, 0, 0, 0, NULL);
    check_row(&t, 2, 12, 2, 3, "three");
}

UNIT_TEST(test_pick__any_rows_in_any_order__and_holes)
{
    AUTO_VALUE_COLUMNS struct value_columns t = {0}, picked = {0};

    make_columns(&t);
    assert_int_equal(
        value_columns_pick(&t, (const uint32_t[]){2, VALUE_NO_ROW, 2, 0, 1}, 5, &picked), 0);
    check_row(&picked, 0, 12, 2, 3, "three");
    assert_true(value_is_hole(value_columns_find(&picked, "list"), 1));
    check_row(&picked, 2, 12, 2, 3, "three");
    check_row(&picked, 3, 10, 1, 1, "one");
    check_row(&picked, 4, 0, 0, 0, NULL);
}

UNIT_TEST(test_read__what_was_written__the_same)
{
    AUTO_VALUE_COLUMNS struct value_columns t = {0}, again = {0};
    AUTO_TEXT struct text kept = {0};
    struct kept k = {.out = &kept};

    make_columns(&t);
    value_columns_keep(&k, &t, 3);
    text_add_bytes(&kept, "rest", 4);
    k = (struct kept){.at = (uint8_t *)kept.data, .left = kept.len};
    value_columns_keep(&k, &again, 3);
    assert_int_equal(k.error, 0);
    assert_int_equal(k.left, 4);
    check_row(&again, 0, 10, 1, 1, "one");
    check_row(&again, 1, 0, 0, 0, NULL);
    check_row(&again, 2, 12, 2, 3, "three");
}

static int read_kept(struct value_columns *ret, uint64_t rows, const uint8_t *bytes, size_t len)
{
    struct kept k = {.at = bytes, .left = len};

    value_columns_keep(&k, ret, rows);
    return k.error;
}

/* Cut anywhere, with each byte changed, and for another number of rows: refused, or rows that stay
 * inside what was kept. */
UNIT_TEST(test_read__hostile_bytes__refused_or_inside)
{
    AUTO_VALUE_COLUMNS struct value_columns t = {0};
    AUTO_TEXT struct text kept = {0};
    struct kept k = {.out = &kept};

    make_columns(&t);
    value_columns_keep(&k, &t, 3);
    for (size_t len = 0; len < kept.len; len++) {
        AUTO_VALUE_COLUMNS struct value_columns cut = {0};
        AUTO_FREE uint8_t *bytes = malloc(len + 1); /* of that length, for sanitizers */

        memcpy(bytes, kept.data, len);
        assert_int_equal(read_kept(&cut, 3, bytes, len), -EBADMSG);
    }
    for (size_t at = 0; at < kept.len; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            AUTO_VALUE_COLUMNS struct value_columns changed = {0};
            int r;

            kept.data[at] ^= (char)(1u << bit);
            r = read_kept(&changed, 3, (uint8_t *)kept.data, kept.len);
            kept.data[at] ^= (char)(1u << bit);
            assert_true(r == 0 || r == -EBADMSG);
            for (unsigned i = 0; r == 0 && i < changed.n; i++)
                for (uint64_t row = 0; row < 3; row++) {
                    const struct value_column *c = &changed.column[i];
                    const uint8_t *items;
                    uint64_t n = value_items(c, row, &items);

                    assert_true(items + n * value_item_bytes(c) <= c->bytes + c->len);
                }
        }
    for (uint64_t rows = 0; rows < 6; rows++) {
        AUTO_VALUE_COLUMNS struct value_columns other = {0};

        if (rows != 3)
            assert_int_equal(read_kept(&other, rows, (uint8_t *)kept.data, kept.len), -EBADMSG);
    }
}
