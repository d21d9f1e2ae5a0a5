/* Columns that files learn: the table of one file, kept and read again, also when its bytes are
 * hostile; and the columns of several files as one dataset's. */
#include <errno.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "format/records/column_table.h"
#include "format/records/column_union.h"
#include "support/unit.h"

/* ---- the table of a file ---- */

UNIT_TEST(test_column_table__names_of_any_bytes__found)
{
    AUTO(column_table_release) struct column_table t = {0};
    unsigned i, again;

    assert_false(column_table_find(&t, "a", 1, &i));
    for (unsigned k = 0; k < COLUMNS_LEARNED; k++) {
        assert_int_equal(column_table_add(&t, &k, 2 + k % 3, &i), 0);
        assert_int_equal(i, k);
        t.column[i].number[0] = k;
    }
    for (unsigned k = 0; k < COLUMNS_LEARNED; k++) {
        assert_int_equal(column_table_add(&t, &k, 2 + k % 3, &i), 0);
        assert_true(column_table_find(&t, &k, 2 + k % 3, &again));
        assert_true(i == k && again == k);
    }
    assert_false(column_table_find(&t, "no", 2, &i));
    assert_false(column_table_find(&t, "", 0, &i));
    /* The table is full: what does not fit is counted, and the first is named. */
    assert_int_equal(column_table_add(&t, "first", 5, &i), -E2BIG);
    assert_int_equal(column_table_add(&t, "second", 6, &i), -E2BIG);
    assert_int_equal(t.left_out, 2);
    assert_string_equal(t.first_out, "first");
    column_table_settle(&t);
    for (unsigned k = 0; k < COLUMNS_LEARNED; k += 100)
        assert_true(column_table_find(&t, &k, 2 + k % 3, &i) && i == k);
    assert_false(column_table_find(&t, "no", 2, &i));
}

static void make_table(struct column_table *t, struct text *ret)
{
    static const char *const names[] = {"jpg", "a\0b", "seg.png"};
    unsigned i;

    for (unsigned k = 0; k < ARRAY_LEN(names); k++) {
        assert_int_equal(column_table_add(t, names[k], k == 1 ? 3 : strlen(names[k]), &i), 0);
        for (unsigned n = 0; n < COLUMN_NUMBERS; n++)
            t->column[i].number[n] = UINT64_MAX / (k * COLUMN_NUMBERS + n + 1);
    }
    t->most = ARRAY_LEN(names);
    assert_int_equal(column_table_add(t, "more", 4, &i), -E2BIG);
    column_table_keep(&(struct kept){.out = ret}, t);
    assert_false(ret->failed);
}

UNIT_TEST(test_column_table__kept__the_same)
{
    AUTO(column_table_release) struct column_table t = {0}, again = {0};
    AUTO_TEXT struct text text = {0};
    struct kept k = {0};

    make_table(&t, &text);
    text_add(&text, "more of the format");
    k.at = (const uint8_t *)text.data;
    k.left = text.len;
    column_table_keep(&k, &again);
    assert_int_equal(k.error, 0);
    assert_string_equal((const char *)k.at, "more of the format");
    assert_int_equal(again.n, t.n);
    for (unsigned i = 0; i < t.n; i++) {
        assert_int_equal(again.column[i].len, t.column[i].len);
        assert_memory_equal(again.column[i].name, t.column[i].name, t.column[i].len + 1);
        assert_memory_equal(again.column[i].number, t.column[i].number, sizeof(t.column[i].number));
    }
    assert_int_equal(again.left_out, 1);
    assert_string_equal(again.first_out, "more");
}

static int read_table(const void *bytes, size_t len)
{
    AUTO(column_table_release) struct column_table again = {0};
    struct kept k = {.at = bytes, .left = len};

    column_table_keep(&k, &again);
    assert_int_equal(again.n, k.error ? 0 : 3);
    return k.error;
}

/* Bytes cut short, a name twice, an empty one, one that is too long, more columns than there may
 * be: refused, and nothing outside is read. */
UNIT_TEST(test_column_table__hostile__ebadmsg)
{
    enum { HEAD = 8 + 8 + 8 + 4 };
    AUTO(column_table_release) struct column_table t = {0};
    AUTO_TEXT struct text text = {0};
    static const struct {
        size_t at;
        uint64_t value;
    } cases[] = {{0, 4},    {0, UINT64_MAX}, {16, 5000},        {16, UINT64_MAX},
                 {HEAD, 0}, {HEAD, 4097},    {HEAD, UINT64_MAX}};

    make_table(&t, &text);
    for (size_t len = 0; len < text.len; len++) {
        AUTO_FREE uint8_t *bytes = malloc(len + 1); /* for ASan */

        assert_non_null(bytes);
        memcpy(bytes, text.data, len);
        assert_int_equal(read_table(bytes, len), -EBADMSG);
    }
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint8_t *at = (uint8_t *)text.data + cases[i].at;
        uint64_t was = load_le64(at);

        store_le64(at, cases[i].value);
        if (read_table(text.data, text.len) != -EBADMSG)
            fail_msg("case %zu", i);
        store_le64(at, was);
    }
    assert_int_equal(read_table(text.data, text.len), 0);
    memcpy(text.data + HEAD + 8, "a\0b", 3); /* as the second */
    assert_int_equal(read_table(text.data, text.len), -EBADMSG);
}

/* ---- the columns of a dataset ---- */

struct made {
    struct record_column column[8];
    unsigned n;
};

static const struct record_column *columns_of(void *ctx, unsigned i, unsigned *ret_n)
{
    const struct made *file = &((const struct made *)ctx)[i];

    *ret_n = file->n;
    return file->column;
}

static void check_column(const struct column_union *u, unsigned i, const char *name, unsigned ndim,
                         uint64_t first, bool has_holes)
{
    assert_true(i < u->n);
    assert_string_equal(u->column[i].name, name);
    if (u->column[i].shown == RECORD_NUMBERS) {
        assert_int_equal(u->column[i].ndim, ndim);
        assert_true(!ndim || u->column[i].dim[0] == first);
    }
    assert_int_equal(u->column[i].has_holes, has_holes);
}

#define I8(title, ...)                                                                             \
    {                                                                                              \
        .name = title, .dtype = DTYPE_I8, __VA_ARGS__                                              \
    }
#define BYTES(title, suffix, ...)                                                                  \
    {                                                                                              \
        .name = title, .shown = RECORD_BYTES, .ext = suffix, __VA_ARGS__                           \
    }

UNIT_TEST(test_column_union__shapes_differ__an_axis_varies)
{
    static const struct made files[] = {
        {{I8("both"), I8("list", .ndim = 1, .dim = {3}), I8("matrix", .ndim = 2, .dim = {2, 3}),
          I8("number"), I8("same", .ndim = 1, .dim = {4})},
         5},
        {{I8("same", .ndim = 1, .dim = {4}), I8("number", .ndim = 1, .dim = {1}),
          I8("matrix", .ndim = 2, .dim = {2, 4}), I8("list", .ndim = 1, .dim = {5}), I8("both")},
         5},
    };
    AUTO(column_union_release) struct column_union u = {0};

    assert_int_equal(column_union_make(&u, 2, columns_of, (void *)(uintptr_t)files), 0);
    assert_int_equal(u.n, 5);
    check_column(&u, 0, "both", 0, 0, false);
    check_column(&u, 1, "list", 1, DIM_VARIES, false);
    check_column(&u, 2, "matrix", 2, DIM_VARIES, false);
    assert_true(u.column[2].dim[1] == DIM_VARIES);
    check_column(&u, 3, "number", 1, DIM_VARIES, false);
    check_column(&u, 4, "same", 1, 4, false);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(u.map[0][i], i);
        assert_int_equal(u.map[1][i], 4 - i);
    }
}

UNIT_TEST(test_column_union__columns_missing__holes)
{
    static const struct made files[] = {{{I8("a"), I8("b")}, 2},
                                        {{I8("a"), I8("b", .has_holes = true)}, 2},
                                        {{I8("a"), I8("b")}, 2},
                                        {{I8("c")}, 1}};
    AUTO(column_union_release) struct column_union u = {0};

    assert_int_equal(column_union_make(&u, 3, columns_of, (void *)(uintptr_t)files), 0);
    check_column(&u, 0, "a", 0, 0, false);
    check_column(&u, 1, "b", 0, 0, true);
    assert_ptr_equal(u.map[0], u.map[2]); /* files that are alike share it */
    column_union_release(&u);
    assert_int_equal(column_union_make(&u, 4, columns_of, (void *)(uintptr_t)files), 0);
    check_column(&u, 0, "a", 0, 0, true);
    check_column(&u, 2, "c", 0, 0, true);
    assert_int_equal(u.map[3][0], NO_COLUMN);
    assert_int_equal(u.map[3][2], 0);
    assert_int_equal(u.map[0][2], NO_COLUMN);
}

/* Kinds that differ are shown under names that say so, whatever the order of the files. */
UNIT_TEST(test_column_union__kinds_differ__named)
{
    static const struct made files[] = {
        {{I8("label"), BYTES("image", "jpg"), I8("m", .ndim = 2, .dim = {1, 2})}, 3},
        {{{.name = "label", .shown = RECORD_TEXT}, BYTES("image", "png"), I8("m")}, 3},
        {{{.name = "label", .dtype = DTYPE_F4},
          BYTES("label", "cls", .without = RECORD_NOT_ARRAYS)},
         2}};
    static const char *const want[] = {"image_jpg",  "image_png", "label_int64", "label_float32",
                                       "label_text", "label",     "m_int64",     "m_int64_2d"};

    for (unsigned turn = 0; turn < 2; turn++) {
        AUTO(column_union_release) struct column_union u = {0};
        const struct made turned[] = {files[turn ? 2 : 0], files[1], files[turn ? 0 : 2]};

        assert_int_equal(column_union_make(&u, 3, columns_of, (void *)(uintptr_t)turned), 0);
        assert_int_equal(u.n, ARRAY_LEN(want));
        for (unsigned i = 0; i < u.n; i++)
            check_column(&u, i, want[i], u.column[i].ndim, u.column[i].dim[0], true);
    }
}

/* Columns whose names were cut to the same one are not mixed, in one file or in several, whatever
 * their order. */
UNIT_TEST(test_column_union__cut_names_meet__whole)
{
    static const struct made files[] = {{{I8("x", .whole = "x.cls"),
                                          I8("y", .whole = "y.cls"),
                                          BYTES("z", "z"),
                                          {.name = "t", .whole = "t.txt", .shown = RECORD_TEXT}},
                                         4},
                                        {{I8("x", .whole = "x.id"),
                                          I8("y", .whole = "y.cls"),
                                          I8("z", .whole = "z.id"),
                                          {.name = "t", .whole = "t", .shown = RECORD_TEXT}},
                                         4},
                                        {{I8("x", .whole = "x.id"), I8("x", .whole = "x.cls")}, 2}};
    static const char *const want[] = {"t", "t.txt", "x.cls", "x.id", "y", "z.id", "z"};

    for (unsigned turn = 0; turn < 2; turn++) {
        AUTO(column_union_release) struct column_union u = {0};
        const struct made turned[] = {files[turn ? 2 : 0], files[1], files[turn ? 0 : 2]};

        assert_int_equal(column_union_make(&u, 3, columns_of, (void *)(uintptr_t)turned), 0);
        assert_int_equal(u.n, ARRAY_LEN(want));
        for (unsigned i = 0; i < u.n; i++)
            assert_string_equal(u.column[i].name, want[i]);
        assert_int_equal(u.map[turn ? 0 : 2][2], 1);
        assert_int_equal(u.map[turn ? 0 : 2][3], 0);
        assert_int_equal(u.map[1][2], NO_COLUMN);
        assert_int_equal(u.map[1][3], 0);
    }
}

/* Names that the dataset has itself, or that another column makes, are no column's. */
UNIT_TEST(test_column_union__names_taken__changed)
{
    static const char longest[] = "a_name_of_fifty_five_bytes_which_is_the_most_there_may_";
    static const struct made files[] = {
        {{I8("a"), I8("a_len"), I8("a_offsets"), I8("b_len"), I8("index"), I8("index_int64"),
          I8("key"), BYTES("raw", "bin")},
         8},
        {{I8(longest), {.name = longest, .shown = RECORD_TEXT}}, 2}};
    static const char *const want[] = {
        "a",         "a_len_int64", "a_offsets_int64", "b_len", "index_int64~2", "index_int64",
        "key_int64", "raw"};
    AUTO(column_union_release) struct column_union u = {0};

    assert_int_equal(column_union_make(&u, 1, columns_of, (void *)(uintptr_t)files), 0);
    for (unsigned i = 0; i < ARRAY_LEN(want); i++)
        check_column(&u, i, want[i], 0, 0, false);
    column_union_release(&u);
    assert_int_equal(strlen(longest), RECORD_NAME_MAX);
    assert_int_equal(column_union_make(&u, 1, columns_of, (void *)(uintptr_t)&files[1]), 0);
    assert_int_equal(strlen(u.column[0].name), RECORD_NAME_MAX);
    assert_int_equal(strlen(u.column[1].name), RECORD_NAME_MAX);
    assert_string_not_equal(u.column[0].name, u.column[1].name);
}

static char many_names[3000][8];

static const struct record_column *many_columns(void *ctx, unsigned i, unsigned *ret_n)
{
    static struct record_column column[1000];

    (void)ctx;
    *ret_n = 1000;
    for (unsigned k = 0; k < 1000; k++) /* the last file has the first names */
        column[k] = (struct record_column){.name = many_names[(2 - i) * 1000 + k]};
    return column;
}

UNIT_TEST(test_column_union__very_many__the_first_by_name)
{
    AUTO(column_union_release) struct column_union u = {0};

    for (unsigned k = 0; k < 3000; k++)
        snprintf(many_names[k], sizeof(many_names[k]), "c%04u", k);
    assert_int_equal(column_union_make(&u, 3, many_columns, NULL), 0);
    assert_true(u.is_full);
    assert_int_equal(u.n, RECORD_COLUMNS_MAX);
    for (unsigned k = 0; k < RECORD_COLUMNS_MAX; k++)
        assert_string_equal(u.column[k].name, many_names[k]);
    assert_int_equal(u.map[2][999], 999);
    assert_int_equal(u.map[1][1000], 0);
    assert_int_equal(u.map[0][1000], NO_COLUMN);
}

UNIT_TEST(test_record_name__any_bytes__safe)
{
    static const struct {
        const char *bytes;
        size_t len, most;
        const char *want;
    } cases[] = {
        {"image/encoded", 13, 55, "image%2Fencoded"},
        {"a\0b", 3, 55, "a%00b"},
        {".x", 2, 55, "%2Ex"},
        {"", 0, 55, "_"},
        {"abcdefghijklmnopqrstuvwxyz", 26, 26, "abcdefghijklmnopqrstuvwxyz"},
    };
    char name[RECORD_NAME_MAX + 1], other[RECORD_NAME_MAX + 1];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        record_name(cases[i].bytes, cases[i].len, cases[i].most, name);
        assert_string_equal(name, cases[i].want);
    }
    record_name("abcdefghijklmnopqrstuvwxyz", 26, 20, name);
    record_name("abcdefghijklmnopqrstuvwxyY", 26, 20, other);
    assert_int_equal(strlen(name), 20);
    assert_memory_equal(name, "abcdefghijk~", 12);
    assert_string_not_equal(name, other);
    record_name("0123456789/////////////////", 27, 20, name); /* no escape is cut */
    assert_memory_equal(name, "0123456789~", 11);
}
