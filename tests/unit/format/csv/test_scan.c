/* Lines that are longer than what the pass reads at once; and rows that begin at each bit of the
 * masks that tell plain numbers. */
#include "format/csv/file.h"
#include "format/csv/row.h"
#include "support/libsvm_make.h"
#include "support/one_store.h"
#include "support/unit.h"

#include <errno.h>
#include <stdlib.h>

extern const struct format format_csv;

#define PIECE (1 << 20) /* what the pass reads at once */

/* Two rows, the first of which is as long as said, most of it blanks. */
static void check_line(size_t len, bool has_end, const char *want)
{
    static const char first[] = "1,2\n";
    size_t before = sizeof(first) - 1, size = before + len + (has_end ? 4 : 0);
    AUTO_FREE char *text = malloc(size + 1);
    struct format_setup setup = {.keep = &no_store};
    AUTO(found_release) struct found found;
    struct blob *blob;
    struct dataset *ds;
    struct bytes x;
    struct one_sample one;

    assert_non_null(text);
    memset(text, ' ', size);
    memcpy(text, first, before);
    memcpy(text + before, "3,", 2);
    text[before + len - 1] = '4';
    if (has_end)
        memcpy(text + before + len, "\n5,6", 4);
    blob = memory_blob_new("a.csv", text, size, size, NULL);
    assert_int_equal(memo_new(1 << 20, &setup.memo), 0);
    assert_int_equal(format_open(&format_csv, &blob, 1, &setup, &found), 0);
    ds = found.item[0].ds;
    assert_non_null(ds);
    while (dataset_state(ds) == DATASET_PREPARING && !dataset_prepare(ds))
        ;
    if (want) {
        assert_int_equal(dataset_state(ds), DATASET_FAILED);
        assert_diag_has(&ds->reason, want);
    } else {
        const float expected[] = {3, 4};

        assert_int_equal(dataset_state(ds), DATASET_READY);
        assert_int_equal(ds->samples, has_end ? 3 : 2);
        one_sample_init(&one, 1);
        assert_int_equal(field_bytes(ds, "x", &one.sel, &x, NULL), 0);
        assert_int_equal(x.len, sizeof(expected));
        assert_memory_equal(x.at, expected, sizeof(expected));
        free(x.at);
    }
    memo_free(setup.memo);
}

UNIT_TEST(test_csv_lines__long)
{
    for (size_t i = 0; i < 2; i++) {
        check_line(PIECE - 5, i, NULL);
        check_line(PIECE - 4, i, NULL);
        check_line(3 * PIECE, i, NULL);
        check_line(CSV_LINE_MOST + 1, i,
                   "a.csv: line 2: expected at most 16777216 bytes, got 1677");
    }
    check_line(CSV_LINE_MOST, true, NULL);
}

/* A line that has no end for a while is refused before all of it is read. */
UNIT_TEST(test_csv_lines__without_end__refused_early)
{
    struct blob_faults faults = {.fail_read = 10}; /* pieces grow: this one is of 64 MiB */
    struct format_setup setup = {.keep = &no_store};
    struct blob *blob =
        memory_blob_new("a.csv", "1,2\n3,", 6, UINT64_C(64) * CSV_LINE_MOST, &faults);
    AUTO(found_release) struct found found;
    struct dataset *ds;

    assert_int_equal(memo_new(1 << 20, &setup.memo), 0);
    assert_int_equal(format_open(&format_csv, &blob, 1, &setup, &found), 0);
    ds = found.item[0].ds;
    assert_non_null(ds);
    while (dataset_state(ds) == DATASET_PREPARING && !dataset_prepare(ds))
        ;
    assert_diag_has(&ds->reason, "a.csv: line 2: expected at most 16777216 bytes, got more");
    assert_true(faults.reads <= 8);
    memo_free(setup.memo);
}

#define CHECKED 99 /* lines that are looked at when a file is opened */
#define SHIFTS  130

/* Prepare the index of the text. 1, or -errno with the reason in d. */
static int scan(const char *text, const struct format_options *options, struct csv_file **ret,
                struct diag *d)
{
    const struct format_setup setup = {.keep = &no_store, .options = *options};
    struct source_file source = {.name = "x", .file_name = "x", .folder = ""};
    int r;

    source.blob = memory_blob_new("x", text, strlen(text), strlen(text), NULL);
    r = record_file_open(&csv_file_ops, &(struct record_source){&source, 1, 0, &setup}, ret, d);
    while (r == 0)
        r = prepared_step(&(*ret)->base.prepared, d);
    return r;
}

UNIT_TEST(test_csv_scan__rows_at_each_bit__counted_or_refused)
{
#define GOOD(text, n_rows, n_missing, ...)                                                         \
    {                                                                                              \
        .rows = (text), .n = (n_rows), .missing = (n_missing), __VA_ARGS__                         \
    }
#define BAD(text, wrong, ...)                                                                      \
    {                                                                                              \
        .rows = (text), .want = (wrong), __VA_ARGS__                                               \
    }
    static const struct {
        const char *rows; /* after CHECKED lines, and one of some digits */
        const char *want; /* what is wrong; NULL: nothing */
        uint64_t n, missing;
        struct format_options options;
    } rows[] = {
        GOOD("1,2,3\n", 1, 0),
        GOOD(",5,\n7,,9\n,,\n8,,\n", 4, 8),
        GOOD(" 1,2,3\n\"1\",,3\n1, ,3\n", 3, 2),
        GOOD("\n \n1,2,3\r\n\r\n4,5,6", 2, 0),
        GOOD("#1,2\n4,5,6\n", 1, 0, .options.comment = '#'),
        GOOD("123456789012345678901234567890123,,123456789012345678901234567890\n,1.5,-2e3\n", 2,
             2),
        GOOD("nan,2,3\n", 1, 1),
        BAD("1,2\n", "expected 3 columns, as in the first line, got 2"),
        BAD("1,2\n3,x", "expected 3 columns, as in the first line, got 2"),
        BAD("1,2,3,4\n", "expected 3 columns, as in the first line, got 4"),
        BAD("1,2,33333333333333333333,4\n", "expected 3 columns, as in the first line, got 4"),
        BAD("1,2,3,", "expected 3 columns, as in the first line, got 4"),
        BAD("1,2,\n3,4", "expected 3 columns, as in the first line, got 2"),
        BAD("1,,,\n", "expected 3 columns, as in the first line, got 4"),
        BAD("1,x,3\n", "column 1: expected a number, got 'x'"),
        BAD("1,2,3 4\n", "column 2: expected a number, got '3 4'"),
        BAD("1,2,3\n4,5,-\n", "column 2: expected a number, got '-'"),
        BAD("nan,2,3\n", "column 0: expected a number as the label, got 'nan'",
            .options.label_column = "0"),
        BAD("1,2,\n", "column 2: expected a number as the weight, got ''",
            .options.weight_column = "2"),
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (unsigned shift = 1; shift < SHIFTS; shift++) {
            struct csv_file *file = NULL;
            struct diag d = DIAG_INIT;
            char text[2048] = "", *end = text;

            for (unsigned k = 0; k < CHECKED; k++)
                end = stpcpy(end, "7,8,9\n");
            memset(end, '1', shift);
            end = stpcpy(stpcpy(end + shift, ",2,3\n"), rows[i].rows);
            assert_true(end < text + sizeof(text));
            if (rows[i].want) {
                assert_int_equal(scan(text, &rows[i].options, &file, &d), -EBADMSG);
                assert_diag_has(&d, rows[i].want);
            } else {
                assert_int_equal(scan(text, &rows[i].options, &file, &d), 1);
                assert_int_equal(file->base.prepared.index.rows, CHECKED + 1 + rows[i].n);
                assert_int_equal(file->missing, rows[i].missing);
            }
            if (file)
                record_file_drop(&file->base);
        }
}

/* A line of tabs is a row of missing values if it has a tab between all columns. */
UNIT_TEST(test_csv_scan__lines_of_tabs__rows_or_empty)
{
    static const struct {
        const char *text, *want; /* want: what is wrong; NULL: nothing */
        uint64_t n, missing;
        struct format_options options;
    } rows[] = {
        {"1\t2\t3\n\t\t\n4\t5\t6\n", NULL, 3, 3, {0}},
        {"1\t2\t3\n \t \t \r\n4\t5\t6\n\t\t", NULL, 4, 6, {0}},
        {"\t\t\n1\t2\t3\n", NULL, 2, 3, {0}},
        {"\t\t\na\tb\tc\n1\t2\t3\n", NULL, 1, 0, {0}}, /* before the names */
        {"a\tb\tc\n1\t2\t3\n\t\n \n\t\t\t\n4\t5\t6\n", NULL, 2, 0, {0}},
        {"1\n\t\n2\n", NULL, 2, 0, {.delimiter = '\t'}},
        {"1 2\n\t\n3 4\n", NULL, 2, 0, {0}},
        {"1\t2\n\t#\n3\t4\n", NULL, 2, 0, {.comment = '#'}},
        {"1\t2\n\t\n",
         "column 1: expected a number as the label, got ''",
         0,
         0,
         {.label_column = "1"}},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct csv_file *file = NULL;
        struct diag d = DIAG_INIT;

        if (rows[i].want) {
            assert_int_equal(scan(rows[i].text, &rows[i].options, &file, &d), -EBADMSG);
            assert_diag_has(&d, rows[i].want);
        } else {
            assert_int_equal(scan(rows[i].text, &rows[i].options, &file, &d), 1);
            assert_int_equal(file->base.prepared.index.rows, rows[i].n);
            assert_int_equal(file->missing, rows[i].missing);
        }
        if (file)
            record_file_drop(&file->base);
    }
}
