/* One line of libsvm text: its values, or the place and reason of its fault. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/scope.h"
#include "format/libsvm/line.h"
#include "support/random.h"
#include "support/unit.h"

#define ROOM 16
#define BOTH (LIBSVM_WEIGHT | LIBSVM_QID)

/* Parse with exactly the bytes after the line that the header requires. */
static int parse(const char *line, unsigned columns, struct libsvm_row *row,
                 struct libsvm_fault *fault, char behind)
{
    size_t len = strlen(line);
    AUTO_FREE uint8_t *text = malloc(len + LIBSVM_PAD);

    assert_non_null(text);
    memcpy(text, line, len);
    memset(text + len, behind, LIBSVM_PAD);
    return libsvm_line_parse(text, len, columns, row, fault);
}

static const struct {
    const char *line;
    unsigned columns;
    const char *labels;   /* as shown below */
    const char *features; /* as shown below */
} good[] = {
    {"1", 0, "1", ""},
    {"+1", 0, "1", ""},
    {"1 ", 0, "1", ""},
    {"-1.5e1\t", 0, "-15", ""},
    {"1 0:1.5 3:2", 0, "1", "0:1.5 3:2"},
    {"1 0:1.5\t3:2\v4:5\f6:7 ", 0, "1", "0:1.5 3:2 4:5 6:7"},
    {"1  0:1.5   3:2", 0, "1", "0:1.5 3:2"},
    {"1 0:1 # note 5:6", 0, "1", "0:1"},
    {"1 0:1# note 5:6", 0, "1", "0:1"},
    {"1#c", 0, "1", ""},
    {"1#c 5:6", 0, "1", ""},
    {"1,2#c 5:6", 0, "1,2", ""},
    {"0 # only", 0, "0", ""},
    {"1 0 3 5", 0, "1", "0:1 3:1 5:1"},
    {"1 3#5", 0, "1", "3:1"},
    {"1 0 : 1\t3 :2 5: 6 7\t:\t8", 0, "1", "0:1 3:2 5:6 7:8"},
    {"1,2 0:1", 0, "1,2", "0:1"},
    {"1,2,3", 0, "1,2,3", ""},
    {"1,nan,-inf 7:8", 0, "1,nan,-inf", "7:8"},
    {"1,2,3,4,5,6,7 0:1", 0, "1,2,3,4,5,6,7", "0:1"},
    {" 2:3.5", 0, "", "2:3.5"},
    {"\t2 : 3.5 4:5", 0, "", "2:3.5 4:5"},
    {" 2:3.5", LIBSVM_ANY, "", "2:3.5"},
    {" 7 2:3.5", 0, "7", "2:3.5"},
    {" 1.5 2:3.5", 0, "1.5", "2:3.5"},
    {" -1 2:3.5", 0, "-1", "2:3.5"},
    {"nan 0:1", 0, "nan", "0:1"},
    {"Infinity 0:-inf 1:+nan 2:INF", 0, "inf", "0:-inf 1:nan 2:inf"},
    {"1e0 0:1e-3 1:1E+2 2:-.5 3:5. 4:+7", 0, "1", "0:0.001 1:100 2:-0.5 3:5 4:7"},
    {"1 0:1e40 1:1e-46 2:-0", 0, "1", "0:inf 1:0 2:-0"},
    {"1 5:1 2:2", 0, "1", "5:1 2:2"},
    {"1 2:1 2:5", 0, "1", "2:1 2:5"},
    {"1 4294967295:2", 0, "1", "4294967295:2"},
    {"1 0000000000000000004294967295:2", 0, "1", "4294967295:2"},
    {"1 12345678:1 00000001:2 1234567:3", 0, "1", "12345678:1 1:2 1234567:3"},
    {"1:0.5 0:1", LIBSVM_WEIGHT, "1 w0.5", "0:1"},
    {"1:0.5 0:1", LIBSVM_ANY, "1 w0.5", "0:1"},
    {"1 : 0.5 0 : 1", LIBSVM_WEIGHT, "1 w0.5", "0:1"},
    {"1 :5 1:2", LIBSVM_ANY, "1 w5", "1:2"},
    {" 2:3 1:1", LIBSVM_WEIGHT, "2 w3", "1:1"},
    {"1,2:3 0:1", LIBSVM_WEIGHT, "1,2 w3", "0:1"},
    {"1 qid:7 2:3", LIBSVM_QID, "1 q7", "2:3"},
    {"1\tqid:7\t2:3", LIBSVM_ANY, "1 q7", "2:3"},
    {"1 qid: 7 2:3", LIBSVM_QID, "1 q7", "2:3"},
    {"1 qid:7", LIBSVM_QID, "1 q7", ""},
    {"1 qid:7#8", LIBSVM_QID, "1 q7", ""},
    {"1 qid:-3 2:3", LIBSVM_QID, "1 q-3", "2:3"},
    {"1 qid:+3 2:3", LIBSVM_QID, "1 q3", "2:3"},
    {"1 qid:007 2:3", LIBSVM_QID, "1 q7", "2:3"},
    {"1 qid:9223372036854775807", LIBSVM_QID, "1 q9223372036854775807", ""},
    {"1 qid:-9223372036854775808", LIBSVM_QID, "1 q-9223372036854775808", ""},
    {"1:2 qid:3 4:5", BOTH, "1 w2 q3", "4:5"},
    {"1:2 qid:3 4:5", LIBSVM_ANY, "1 w2 q3", "4:5"},
    {"1 1:2 5:6", LIBSVM_FROM_ONE, "1", "1:2 5:6"},
    {"1 +7:2 +8 : 3", 0, "1", "7:2 8:3"},
    {"1 +7:2", LIBSVM_FROM_ONE, "1", "7:2"},
    {"1", LIBSVM_VALUES, "1", ""},
    {"1 3:1", LIBSVM_VALUES, "1", "3:1"},
    {"1 1 5", LIBSVM_FROM_ONE, "1", "1:1 5:1"},
    /* LibFM */
    {"1", LIBSVM_FIELD, "1", ""},
    {"1 2:3:4.5", LIBSVM_FIELD, "1", "2/3:4.5"},
    {"1 9:3:4 2:0:-1\t4294967295:4294967295:0", LIBSVM_FIELD, "1",
     "9/3:4 2/0:-1 4294967295/4294967295:0"},
    {"1 2:3 7:1", LIBSVM_FIELD, "1", "2/3:1 7/1:1"},
    {"1 0:12345678:1", LIBSVM_FIELD, "1", "0/12345678:1"},
    {"1 2 : 3 : 4", LIBSVM_FIELD, "1", "2/3:4"},
    {"1 2:3:4 # 5:6:7", LIBSVM_FIELD, "1", "2/3:4"},
    {" 1 2:3:4", LIBSVM_FIELD, "1", "2/3:4"},
    {"1:0.5 2:3:4", LIBSVM_FIELD | LIBSVM_WEIGHT, "1 w0.5", "2/3:4"},
    {"1 1:1:4", LIBSVM_FIELD | LIBSVM_FROM_ONE, "1", "1/1:4"},
};

/* The start of a row as text: its labels, " w" weight, " q" qid. */
static void show_start(const struct libsvm_row *row, char *ret, size_t capacity)
{
    size_t n = 0;

    *ret = '\0';
    for (uint64_t i = 0; i < row->n_labels && i < row->label_capacity; i++)
        n += (size_t)snprintf(ret + n, capacity - n, "%s%g", i ? "," : "", (double)row->label[i]);
    if (row->columns & LIBSVM_WEIGHT)
        n += (size_t)snprintf(ret + n, capacity - n, " w%g", (double)row->weight);
    if (row->columns & LIBSVM_QID)
        snprintf(ret + n, capacity - n, " q%lld", (long long)row->qid);
}

static void show_features(const struct libsvm_row *row, char *ret, size_t capacity)
{
    size_t n = 0;

    *ret = '\0';
    for (uint64_t i = 0; i < row->n && i < row->capacity; i++) {
        n += (size_t)snprintf(ret + n, capacity - n, "%s", i ? " " : "");
        if (row->field)
            n += (size_t)snprintf(ret + n, capacity - n, "%u/", row->field[i]);
        n += (size_t)snprintf(ret + n, capacity - n, "%u:%g", row->index[i], (double)row->value[i]);
    }
}

/* largest, has_zero and sorted follow from the features. */
static void check_summary(const struct libsvm_row *row)
{
    uint32_t largest = 0, largest_field = 0;
    bool zero = false, sorted = true;

    for (uint64_t i = 0; i < row->n; i++) {
        uint32_t field = row->field ? row->field[i] : 0;

        largest = row->index[i] > largest ? row->index[i] : largest;
        largest_field = field > largest_field ? field : largest_field;
        zero = zero || !row->index[i] || (row->field && !field);
        sorted = sorted && (!i || row->index[i - 1] <= row->index[i]);
    }
    assert_int_equal(row->largest, largest);
    assert_int_equal(row->largest_field, largest_field);
    assert_int_equal(row->has_zero, zero);
    assert_int_equal(row->sorted, sorted);
}

/* Has each feature a value, by its colons? */
static bool has_values(const char *line, const struct libsvm_row *row)
{
    const size_t len = strcspn(line, "#");
    uint64_t colons = 0;

    for (size_t i = 0; i < len; i++)
        colons += line[i] == ':';
    colons -= row->columns & LIBSVM_WEIGHT ? 1 : 0;
    colons -= row->columns & LIBSVM_QID ? 1 : 0;
    return row->n && colons == row->n * (row->field ? 2 : 1);
}

UNIT_TEST(test_line__good__what_it_says)
{
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        float label[ROOM], value[ROOM];
        uint32_t index[ROOM], field[ROOM];
        struct libsvm_row row = {.label = label,
                                 .label_capacity = ROOM,
                                 .index = index,
                                 .field = good[i].columns & LIBSVM_FIELD ? field : NULL,
                                 .value = value,
                                 .capacity = ROOM};
        struct libsvm_row counted = {0};
        struct libsvm_fault fault;
        char text[512];

        if (parse(good[i].line, good[i].columns, &row, &fault, i % 2 ? '\n' : 0) != 0)
            fail_msg("'%s': byte %zu: expected %s", good[i].line, fault.at, fault.expected);
        show_start(&row, text, sizeof(text));
        assert_string_equal(text, good[i].labels);
        for (uint64_t k = row.n_labels; k < ROOM; k++)
            assert_true(isnan(label[k]));
        show_features(&row, text, sizeof(text));
        assert_string_equal(text, good[i].features);
        check_summary(&row);
        assert_int_equal(row.has_values, has_values(good[i].line, &row));
        if (!(row.columns & LIBSVM_WEIGHT))
            assert_true(row.weight == 1);

        /* With no capacity, the counts are the same. */
        assert_int_equal(parse(good[i].line, good[i].columns, &counted, &fault, '\r'), 0);
        assert_int_equal(counted.n, row.n);
        assert_int_equal(counted.n_labels, row.n_labels);
        assert_int_equal(counted.largest, row.largest);
        assert_int_equal(counted.largest_field, row.largest_field);
        assert_int_equal(counted.has_zero, row.has_zero);
        assert_int_equal(counted.sorted, row.sorted);
    }
}

UNIT_TEST(test_line__too_little_room__filled_and_counted)
{
    float label[3] = {0, 0, -1}, value[3] = {0, 0, -1};
    uint32_t index[3] = {0, 0, 77};
    struct libsvm_row row = {
        .label = label, .label_capacity = 2, .index = index, .value = value, .capacity = 2};
    struct libsvm_fault fault;

    for (unsigned slow = 0; slow < 2; slow++) {
        const char *line = slow ? "1,2,3 4 :5 6 :7 8 :9" : "1,2,3 4:5 6:7 8:9";

        assert_int_equal(parse(line, 0, &row, &fault, 0), 0);
        assert_int_equal(row.n_labels, 3);
        assert_int_equal(row.n, 3);
        assert_int_equal(row.largest, 8);
        assert_true(label[1] == 2 && label[2] == -1);
        assert_true(index[1] == 6 && index[2] == 77 && value[1] == 7 && value[2] == -1);
    }
}

static const struct {
    const char *line;
    unsigned columns;
    size_t at;
    const char *want; /* a piece of it */
} bad[] = {
    {"abc 0:1", 0, 0, "a number as label"},
    {"e 0:1", 0, 0, "a number as label"},
    {":5 1:2", 0, 0, "a number as label"},
    {"  x", 0, 2, "a number as label"},
    {"1,", 0, 2, "a number as label"},
    {"1,,2 0:1", 0, 2, "a number as label"},
    {"1, 2 0:1", 0, 2, "a number as label"},
    {"0x10 0:1", 0, 1, "white space after the label"},
    {"1.5f 0:1", 0, 3, "white space after the label"},
    {"1\xc2\xa0", 0, 1, "white space after the label"},
    {"1:2x 0:1", LIBSVM_ANY, 3, "white space after the label"},
    {"1:2,3 0:1", LIBSVM_ANY, 3, "white space after the label"},
    {"1:x 0:1", LIBSVM_ANY, 2, "a number as weight"},
    {"1: # 0:1", LIBSVM_ANY, 3, "a number as weight"},
    {"1:", LIBSVM_ANY, 2, "a number as weight"},
    {"1 qid:", LIBSVM_ANY, 6, "as qid"},
    {"1 qid:x", LIBSVM_ANY, 6, "as qid"},
    {"1 qid: 1.5 2:3", LIBSVM_ANY, 7, "as qid"},
    {"1 qid:+-1 2:3", LIBSVM_ANY, 6, "as qid"},
    {"1 qid:9223372036854775808", LIBSVM_ANY, 6, "as qid"},
    {"1 qid:-9223372036854775809", LIBSVM_ANY, 6, "as qid"},
    {"1 qid:99999999999999999999 2:3", LIBSVM_ANY, 6, "as qid"},
    {"1 qid:1:2", LIBSVM_ANY, 6, "as qid"},
    {"1:2 3:4", 0, 0, "without a weight"},
    {"1 3:4", LIBSVM_WEIGHT, 0, "label:weight"},
    {"1 qid:2 3:4", 0, 7, "no qid"},
    {"1 3:4", LIBSVM_QID, 2, "qid:"},
    {" 2:3.5", LIBSVM_QID, 1, "qid: as in the first row"},
    {"1 2:3 qid:7", 0, 6, "an index from 0 to 4294967295"},
    {"1 sid:7", 0, 2, "an index from 0 to 4294967295"},
    {"1 0:1 -1:2", 0, 6, "an index from 0 to 4294967295"},
    {"1 +:2", 0, 2, "an index from 0 to 4294967295"},
    {"1 4294967296:2", 0, 2, "an index from 0 to 4294967295"},
    {"1 18446744073709551617:2", 0, 2, "an index from 0 to 4294967295"},
    {"1 0:1 :5", 0, 6, "an index from 0 to 4294967295"},
    {"1 0:1 x", 0, 6, "an index from 0 to 4294967295"},
    {"1 0:1\x01", 0, 5, "white space after the value"},
    {"1 0:1,2:3", 0, 5, "white space after the value"},
    {"1 0:1:2", 0, 5, "white space after the value"},
    {"1 0:0x10", 0, 5, "white space after the value"},
    {"1 0:1.5f", 0, 7, "white space after the value"},
    {"1 0:", 0, 4, "a number as value"},
    {"1 0: ", 0, 5, "a number as value"},
    {"1 0:#", 0, 4, "a number as value"},
    {"1 0:1 5: # c", 0, 9, "a number as value"},
    {"1 0::1", 0, 4, "a number as value"},
    {"1 0:x 1:2", 0, 4, "a number as value"},
    {"1 1.5:2", 0, 3, "a colon after the index"},
    {"1 5x:2", 0, 3, "a colon after the index"},
    {"1 12345678x", 0, 10, "a colon after the index"},
    {"1 0 3:2", 0, 5, "without a value as before"},
    {"1 0 3 : 2", 0, 5, "without a value as before"},
    {"1 0:1 3", 0, 7, "a colon and a value"},
    {"1 0:1 3 4:5", 0, 7, "a colon and a value"},
    {"1 1:2 0:1", LIBSVM_FROM_ONE, 6, "an index from 1"},
    {"1 00:1", LIBSVM_FROM_ONE, 2, "an index from 1"},
    {"1 4 3", LIBSVM_VALUES, 2, "index:value, as in other rows"},
    {"1  4 # c", LIBSVM_VALUES | LIBSVM_FROM_ONE, 3, "index:value, as in other rows"},
    /* LibFM */
    {"1,2 2:3:4", LIBSVM_FIELD, 1, "white space after the label"},
    {" 2:3:4", LIBSVM_FIELD | LIBSVM_ANY, 4, "white space after the label"},
    {"1 qid:3 2:3:4", LIBSVM_FIELD | LIBSVM_ANY, 2, "a field from 0 to 4294967295"},
    {"1 7 0:1:2", LIBSVM_FIELD, 2, "a field from 0 to 4294967295"},
    {"1 +7:1:2", LIBSVM_FIELD, 2, "a field from 0 to 4294967295"},
    {"1 4294967296:1:2", LIBSVM_FIELD, 2, "a field from 0 to 4294967295"},
    {"1 0:1:2 3", LIBSVM_FIELD, 8, "a field from 0 to 4294967295"},
    {"1 2:", LIBSVM_FIELD, 4, "an index from 0 to 4294967295"},
    {"1 2: # 3", LIBSVM_FIELD, 5, "an index from 0 to 4294967295"},
    {"1 2:x:1", LIBSVM_FIELD, 4, "an index from 0 to 4294967295"},
    {"1 2:4294967296:1", LIBSVM_FIELD, 4, "an index from 0 to 4294967295"},
    {"1 2:3:", LIBSVM_FIELD, 6, "a number as value"},
    {"1 2:3:4:5", LIBSVM_FIELD, 7, "white space after the value"},
    {"1 2:3.5:4", LIBSVM_FIELD, 5, "a colon after the index"},
    {"1 2:3 4:5:6", LIBSVM_FIELD, 9, "without a value as before"},
    {"1 2:3:4 5:6", LIBSVM_FIELD, 11, "a colon and a value"},
    {"1 2:3:4 0:1:1", LIBSVM_FIELD | LIBSVM_FROM_ONE, 8, "a field and an index from 1"},
    {"1 2:3:4 1:0:1", LIBSVM_FIELD | LIBSVM_FROM_ONE, 8, "a field and an index from 1"},
};

UNIT_TEST(test_line__bad__where_and_why)
{
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        float label[ROOM], value[ROOM];
        uint32_t index[ROOM], field[ROOM];
        struct libsvm_row row = {.label = label,
                                 .label_capacity = ROOM,
                                 .index = index,
                                 .field = field,
                                 .value = value,
                                 .capacity = ROOM};
        struct libsvm_fault fault = {0};

        if (parse(bad[i].line, bad[i].columns, &row, &fault, '\n') != -EBADMSG)
            fail_msg("'%s': expected a fault", bad[i].line);
        if (fault.at != bad[i].at || !strstr(fault.expected, bad[i].want))
            fail_msg("'%s': expected byte %zu: %s, got byte %zu: %s", bad[i].line, bad[i].at,
                     bad[i].want, fault.at, fault.expected);
    }
}

UNIT_TEST(test_line__nul__error)
{
    static const uint8_t line[8 + LIBSVM_PAD] = "1 0:1\0"
                                                "2";
    struct libsvm_row row = {0};
    struct libsvm_fault fault;

    assert_int_equal(libsvm_line_parse(line, 7, 0, &row, &fault), -EBADMSG);
    assert_int_equal(fault.at, 5);
}

UNIT_TEST(test_is_row__blanks_and_comments__none)
{
    static const struct {
        const char *line;
        bool want;
    } cases[] = {{"", false}, {" \t\v\f", false}, {"#", false}, {" # 1 2:3", false},
                 {"1", true}, {" x", true},       {":", true},  {"\x01", true}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(libsvm_is_row((const uint8_t *)cases[i].line, strlen(cases[i].line)),
                         cases[i].want);
}

UNIT_TEST(test_sort__random__stable)
{
    uint64_t rng = RANDOM_SEED;

    for (uint64_t n = 0; n < 300; n++) {
        uint32_t index[300], field[300], counts[8] = {0}, seen[8] = {0};
        float value[300];

        for (uint64_t i = 0; i < n; i++) {
            uint32_t pick = (uint32_t)random_below(&rng, 8);

            index[i] = pick == 7 ? UINT32_MAX : pick;
            field[i] = 300 * pick + counts[pick];
            value[i] = (float)counts[pick]++; /* numbers features with the same index */
        }
        assert_int_equal(libsvm_row_sort(index, n % 2 ? field : NULL, value, n), 0);
        for (uint64_t i = 0; i < n; i++) {
            uint32_t pick = index[i] == UINT32_MAX ? 7 : index[i];

            assert_true(!i || index[i - 1] <= index[i]);
            assert_true(n % 2 == 0 || field[i] == 300 * pick + seen[pick]);
            assert_true(value[i] == (float)seen[pick]++);
        }
    }
}
