/* Values of members: which extensions have them, integers and arrays, how a pass reads them, and
 * the columns that show them. */
#include "format/records/member_values.h"
#include "support/memory_blob.h"
#include "support/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bytes.h"

UNIT_TEST(test_extensions__last_part__says_what_is_shown)
{
    static const struct {
        const char *ext;
        enum member_shown shown;
    } rows[] = {
        {"cls", MEMBER_AS_INTEGER},   {"label.cls", MEMBER_AS_INTEGER},
        {"index", MEMBER_AS_INTEGER}, {"id", MEMBER_AS_INTEGER},
        {"npy", MEMBER_AS_ARRAY},     {"depth.npy", MEMBER_AS_ARRAY},
        {"seg.txt", MEMBER_AS_TEXT},  {"json", MEMBER_AS_TEXT},
        {"npy.gz", MEMBER_AS_BYTES},  {"xcls", MEMBER_AS_BYTES},
        {"", MEMBER_AS_BYTES},        {"jpg", MEMBER_AS_BYTES},
        {"cls.jpg", MEMBER_AS_BYTES},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (member_shown_of(rows[i].ext, strlen(rows[i].ext)) != rows[i].shown)
            fail_msg("'%s'", rows[i].ext);
}

UNIT_TEST(test_integers)
{
    static const struct {
        const char *text;
        bool good;
        int64_t value;
    } rows[] = {
        {"0", true, 0},
        {"9223372036854775807\n", true, INT64_MAX},
        {" -9223372036854775808 ", true, INT64_MIN},
        {"+07", true, 7},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"99999999999999999999999", false, 0},
        {"", false, 0},
        {"-", false, 0},
        {"1.0", false, 0},
        {"1 2", false, 0},
        {"cat", false, 0},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t value = 0;
        bool good =
            member_integer_parse((const uint8_t *)rows[i].text, strlen(rows[i].text), &value);

        if (good != rows[i].good || value != rows[i].value)
            fail_msg("'%s': %d %lld", rows[i].text, good, (long long)value);
    }
    for (size_t len = 1; len < 4; len++) { /* a part of a text */
        int64_t value;

        assert_true(member_integer_parse((const uint8_t *)"1234", len, &value));
        assert_int_equal(value, len == 1 ? 1 : len == 2 ? 12 : 123);
    }
}

struct bytes_reader {
    struct member_reader reader;
    const char *bytes;
    int fault;
};

static int test_bytes(struct member_reader *reader, size_t len, const uint8_t **ret, struct diag *d)
{
    const struct bytes_reader *r = (const struct bytes_reader *)reader;

    (void)len;
    (void)d;
    *ret = (const uint8_t *)r->bytes;
    return r->fault;
}

/* Integers of one column; wrong NULL: the row gets the value. */
UNIT_TEST(test_values__integers__in_the_row_or_the_column_is_of_bytes)
{
    static const struct {
        const char *text, *wrong;
        unsigned spare;
        int fault;
    } rows[] = {
        {"-7\n", NULL, 0, 0},
        {"-7", NULL, INDEX_LEARNED - 3, 0},
        {"-7", "too many fields", INDEX_LEARNED - 2, 0},
        {"", "expected a decimal integer", 0, 0},
        {"x", "expected a decimal integer", 0, 0},
        {"123456789012345678901234567890123", "expected a decimal integer", 0, 0},
        {"-7", NULL, 0, -EIO},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct index_shape shape = {.columns = 2, .learns = true};
        AUTO_INDEX_BUILDER struct index_builder *builder = NULL;
        uint64_t number[COLUMN_NUMBERS] = {[MEMBER_FORM] = MEMBER_AS_INTEGER}, row[3] = {0};
        struct bytes_reader r = {.bytes = rows[i].text, .fault = rows[i].fault};
        const char *wrong;

        assert_int_equal(index_builder_new(&shape, &builder), 0);
        r.reader = (struct member_reader){builder, 2, rows[i].spare, test_bytes};
        assert_int_equal(
            member_read_value(&r.reader, number, strlen(rows[i].text), row, &wrong, NULL),
            rows[i].fault);
        assert_int_equal(number[MEMBER_FORM], rows[i].wrong ? MEMBER_AS_BYTES : MEMBER_AS_INTEGER);
        assert_true(rows[i].wrong ? wrong && strstr(wrong, rows[i].wrong) : !wrong);
        assert_int_equal(row[2], rows[i].wrong || rows[i].fault ? 0 : (uint64_t)-7);
        /* A column without a value is good in a kept index, one with values needs its place. */
        assert_true(member_numbers_are_good(number, 2, r.reader.columns));
        number[MEMBER_ROWS] = 1;
        assert_int_equal(member_numbers_are_good(number, 2, r.reader.columns), !rows[i].fault);
    }
}

UNIT_TEST(test_numbers_of_a_kept_index__hostile__not_good)
{
    static const struct {
        uint64_t number[COLUMN_NUMBERS];
        bool good;
    } rows[] = {
        {{[MEMBER_FORM] = MEMBER_AS_ARRAY}, true},
        {{[MEMBER_FORM] = MEMBER_AS_ARRAY, [MEMBER_ROWS] = 1}, false},
        {{[MEMBER_FORM] = MEMBER_AS_ARRAY, [MEMBER_AXES] = 1}, false},
        {{[MEMBER_FORM] = MEMBER_AS_ARRAY, [MEMBER_TYPE] = N_DTYPES}, false},
        {{[MEMBER_FORM] = MEMBER_AS_ARRAY, [MEMBER_VALUE] = 2, [MEMBER_AXES] = 1}, true},
        {{[MEMBER_FORM] = MEMBER_AS_ARRAY, [MEMBER_VALUE] = 3, [MEMBER_AXES] = 1}, false},
        {{[MEMBER_FORM] = MEMBER_AS_INTEGER, [MEMBER_VALUE] = 3}, true},
        {{[MEMBER_FORM] = MEMBER_AS_INTEGER, [MEMBER_VALUE] = 4}, false},
        {{[MEMBER_FORM] = MEMBER_AS_INTEGER, [MEMBER_VALUE] = 1}, false},
        {{[MEMBER_FORM] = MEMBER_AS_TEXT, [MEMBER_ROWS] = 1}, true},
        {{[MEMBER_FORM] = N_MEMBER_SHOWN}, false},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (member_numbers_are_good(rows[i].number, 2, 4) != rows[i].good)
            fail_msg("row %zu", i);
}

/* ---- arrays ---- */

#define DATA 24 /* bytes, at most */

/* A file of .npy without data. Returns its bytes. */
static size_t make_head(const char *type, bool fortran, const char *shape, uint8_t *ret)
{
    size_t len =
        (size_t)snprintf((char *)ret + 10, 200, "{'descr': '%s', 'fortran_order': %s, 'shape': %s}",
                         type, fortran ? "True" : "False", shape);

    memcpy(ret, "\x93NUMPY\1", 8);
    store_le16(ret + 8, (uint16_t)len);
    return 10 + len;
}

struct copies {
    struct member_reader reader;
    const uint8_t *bytes;
    uint8_t *copy; /* of the last ones that were asked for */
};

static int copied_bytes(struct member_reader *reader, size_t len, const uint8_t **ret,
                        struct diag *d)
{
    struct copies *c = (struct copies *)reader;

    (void)d;
    free(c->copy);
    c->copy = malloc(len);
    assert_non_null(c->copy);
    memcpy(c->copy, c->bytes, len);
    *ret = c->copy;
    return 0;
}

/* 1 2 3, 4 5 6 in each order of bytes and of axes. */
UNIT_TEST(test_arrays__orders_of_bytes_and_axes__as_in_c)
{
    static const uint8_t want[] = {1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0};
    static const uint8_t fortran[] = {1, 4, 2, 5, 3, 6};
    const struct index_shape shape = {.columns = 2, .learns = true};

    for (unsigned way = 0; way < 4; way++) {
        AUTO_INDEX_BUILDER struct index_builder *builder = NULL;
        AUTO_BLOB struct blob *blob = NULL;
        uint64_t number[COLUMN_NUMBERS] = {[MEMBER_FORM] = MEMBER_AS_ARRAY}, row[8] = {0};
        uint64_t dim[RECORD_AXES];
        uint8_t file[300] = {0}, got[sizeof(want)];
        size_t head = make_head(way & 1 ? ">u2" : "<u2", way & 2, "(2, 3)", file);
        size_t size = head + sizeof(want);
        struct copies c = {.bytes = file};
        struct extent extent;
        struct index index;
        const char *wrong;

        for (unsigned i = 0; i < 6; i++)
            file[head + 2 * i + (way & 1)] = way & 2 ? fortran[i] : (uint8_t)(i + 1);
        assert_int_equal(index_builder_new(&shape, &builder), 0);
        c.reader = (struct member_reader){builder, 2, 0, copied_bytes};
        assert_int_equal(member_read_value(&c.reader, number, size, row, &wrong, NULL), 0);
        assert_null(wrong);
        assert_int_equal(index_add(builder, NULL, 0, row), 0);
        assert_int_equal(index_finish(builder, NULL, NULL, NULL, &index), 0);
        assert_int_equal(member_array_head(&index, 0, number), head);
        member_array_dims(&index, 0, number, dim);
        assert_true(dim[0] == 2 && dim[1] == 3);
        assert_true(member_array_is_good(&index, 0, number, size));
        assert_false(member_array_is_good(&index, 0, number, size - 1));
        blob = memory_blob_new("a.npy", file, size, size, NULL);
        extent = (struct extent){blob, head, sizeof(want)};
        for (uint64_t off = 0; off < sizeof(want); off++)
            for (size_t len = 1; len <= sizeof(want) - off; len++) {
                assert_int_equal(
                    member_array_read(READ_WAITS, &extent, &index, 0, number, off, len, got, NULL),
                    0);
                assert_memory_equal(got, want + off, len);
            }
        free(c.copy);
    }
}

/* Another order of axes takes all of the array in memory, another order of bytes does not. */
UNIT_TEST(test_arrays__fortran_order__at_most_64_MiB)
{
    const struct index_shape shape = {.columns = 4};
    const uint64_t row[] = {0, 0, (64 << MEMBER_ARRAY_SHIFT) | MEMBER_ARRAY_FORTRAN,
                            (64 << 20) + 1};
    const uint64_t swapped[] = {0, 0, (64 << MEMBER_ARRAY_SHIFT) | MEMBER_ARRAY_BIG_ENDIAN, row[3]};
    const uint64_t number[COLUMN_NUMBERS] = {
        [MEMBER_VALUE] = 2, [MEMBER_TYPE] = DTYPE_U1, [MEMBER_AXES] = 1};
    AUTO_INDEX_BUILDER struct index_builder *builder = NULL;
    AUTO_BLOB struct blob *blob = memory_blob_new("a.npy", "", 0, 64 + row[3], NULL);
    struct extent extent = {blob, 64, row[3]};
    struct diag d = DIAG_INIT;
    struct index index;
    uint8_t got = 1;

    assert_int_equal(index_builder_new(&shape, &builder), 0);
    assert_int_equal(index_add(builder, NULL, 0, row), 0);
    assert_int_equal(index_add(builder, NULL, 0, swapped), 0);
    assert_int_equal(index_finish(builder, NULL, NULL, NULL, &index), 0);
    assert_int_equal(member_array_read(READ_WAITS, &extent, &index, 0, number, 0, 1, &got, &d),
                     -EBADMSG);
    assert_diag_has(&d, "a.npy: byte 64: expected an array of at most 64 MiB in Fortran order");
    assert_int_equal(member_array_read(READ_WAITS, &extent, &index, 1, number, 0, 1, &got, &d), 0);
    assert_int_equal(got, 0);
}

/* A second array of a column, after one of <u2 (2, 3). */
UNIT_TEST(test_arrays__one_that_differs__axes_vary_or_bytes)
{
    static const struct {
        const char *type, *shape; /* NULL: it is none */
        const char *wrong;
        uint64_t dim[2]; /* of the column, afterwards */
        unsigned spare;
    } rows[] = {
        {"<u2", "(2, 3)", NULL, {2, 3}, 0},
        {"<u2", "(4, 3)", NULL, {DIM_VARIES, 3}, 0},
        {"<u2", "(2, 2)", NULL, {DIM_VARIES, DIM_VARIES}, 0},
        {"<u4", "(2, 3)", "of the type that others before it have", {2, 3}, 0},
        {"<u2", "(6,)", "as many axes as others before it have", {2, 3}, 0},
        {NULL, NULL, "expected a header of .npy, got none", {2, 3}, 0},
        {"<u2", "(2, 3)", "too many fields", {2, 3}, INDEX_LEARNED - 4},
        {"<u2", "(2, 3)", NULL, {2, 3}, INDEX_LEARNED - 5},
    };
    const struct index_shape shape = {.columns = 2, .learns = true};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_INDEX_BUILDER struct index_builder *builder = NULL;
        uint64_t number[COLUMN_NUMBERS] = {[MEMBER_FORM] = MEMBER_AS_ARRAY}, row[8] = {0};
        uint8_t file[300] = {0};
        size_t size = make_head("<u2", false, "(2, 3)", file) + 12;
        struct copies c = {.bytes = file};
        const char *wrong;

        assert_int_equal(index_builder_new(&shape, &builder), 0);
        c.reader = (struct member_reader){builder, 2, rows[i].spare, copied_bytes};
        assert_int_equal(member_read_value(&c.reader, number, size, row, &wrong, NULL), 0);
        if (!wrong) {
            memset(row, 0, sizeof(row));
            size = rows[i].type ? make_head(rows[i].type, false, rows[i].shape, file) + DATA : 20;
            if (!rows[i].type)
                memset(file, 'x', 20);
            else if (!strcmp(rows[i].shape, "(2, 2)"))
                size -= DATA - 8;
            else if (strcmp(rows[i].shape, "(4, 3)") != 0 && strcmp(rows[i].type, "<u4") != 0)
                size -= DATA - 12;
            assert_int_equal(member_read_value(&c.reader, number, size, row, &wrong, NULL), 0);
        }
        assert_true(rows[i].wrong ? wrong && strstr(wrong, rows[i].wrong) : !wrong);
        assert_int_equal(number[MEMBER_FORM], rows[i].wrong ? MEMBER_AS_BYTES : MEMBER_AS_ARRAY);
        assert_memory_equal(&number[MEMBER_DIM], rows[i].dim, sizeof(rows[i].dim));
        assert_int_equal(row[2] > 0, !rows[i].wrong);
        free(c.copy);
    }
}

/* ---- columns ---- */

static bool has_all(const void *ctx, unsigned field)
{
    (void)ctx;
    return field != 1;
}

UNIT_TEST(test_columns__of_learned_ones__as_bytes_and_as_values)
{
    static const struct {
        const char *ext;
        enum member_shown form;
        uint64_t rows;
    } learned[] = {{"jpg", MEMBER_AS_BYTES, 5},       {"label.cls", MEMBER_AS_INTEGER, 5},
                   {"depth.npy", MEMBER_AS_ARRAY, 5}, {"txt", MEMBER_AS_TEXT, 5},
                   {"seg.txt", MEMBER_AS_TEXT, 5},    {"a.json", MEMBER_AS_TEXT, 5},
                   {"cls", MEMBER_AS_INTEGER, 0}};
    static const struct {
        const char *name, *whole;
        enum record_shown shown;
        bool unnamed;
        unsigned without;
    } want[] = {
        {"jpg", "jpg", RECORD_BYTES, true, 0},
        {"label.cls", "label.cls", RECORD_BYTES, true, RECORD_NOT_ARRAYS},
        {"label", "label.cls", RECORD_NUMBERS, false, RECORD_NOT_TAR},
        {"depth.npy", "depth.npy", RECORD_BYTES, true, RECORD_NOT_ARRAYS},
        {"depth", "depth_npy", RECORD_NUMBERS, false, RECORD_NOT_TAR},
        {"txt", "txt", RECORD_BYTES, true, 0},
        {"txt", "txt", RECORD_TEXT, true, RECORD_NOT_TAR | RECORD_NOT_ARRAYS},
        {"seg.txt", "seg.txt", RECORD_BYTES, true, 0},
        {"seg", "seg.txt", RECORD_TEXT, false, RECORD_NOT_TAR | RECORD_NOT_ARRAYS},
        {"a.json", "a.json", RECORD_BYTES, true, 0},
        {"a.json", "a.json", RECORD_TEXT, false, RECORD_NOT_TAR | RECORD_NOT_ARRAYS},
        {"cls", "cls", RECORD_BYTES, true, RECORD_NOT_ARRAYS},
    };
    AUTO(column_table_release) struct column_table table = {0};
    struct member_column *shows = NULL;
    struct record_column *column = NULL;
    unsigned n = 0, i;

    for (size_t k = 0; k < ARRAY_LEN(learned); k++) {
        assert_int_equal(column_table_add(&table, learned[k].ext, strlen(learned[k].ext), &i), 0);
        table.column[i].number[MEMBER_FORM] = learned[k].form;
        table.column[i].number[MEMBER_ROWS] = learned[k].rows;
        table.column[i].number[MEMBER_AXES] = 1;
        table.column[i].number[MEMBER_TYPE] = DTYPE_F4;
    }
    assert_int_equal(member_columns_make(&table, 0, has_all, NULL, &shows, &column, &n), 0);
    assert_int_equal(n, ARRAY_LEN(want));
    for (i = 0; i < n; i++) {
        assert_string_equal(column[i].name, want[i].name);
        assert_string_equal(column[i].whole, want[i].whole);
        assert_int_equal(column[i].shown, want[i].shown);
        assert_int_equal(column[i].unnamed, want[i].unnamed);
        assert_int_equal(column[i].without, want[i].without);
        assert_int_equal(column[i].has_holes, i == 1 || i == 2);
        assert_int_equal(column[i].dtype, i == 4 ? DTYPE_F4 : DTYPE_I8);
    }
    free(shows);
    free(column);
}
