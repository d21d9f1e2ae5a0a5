/* What the first lines of a table say of it, alone and next to its siblings. */
#include "format/core/decimal.h"
#include "format/csv/file.h"
#include "support/memory_blob.h"
#include "support/unit.h"

#include <errno.h>

#include "base/checked.h"

static void show(const struct csv_shape *s, struct text *t)
{
    text_add(t, "%zu by '%c'", s->columns, s->delimiter);
    if (s->label != CSV_NONE)
        text_add(t, ", label %zu", s->label);
    if (s->weight != CSV_NONE)
        text_add(t, ", weight %zu", s->weight);
    if (s->omitted)
        text_add(t, ", omitted %zu", s->omitted);
    if (s->is_keyed_list)
        text_add(t, ", keyed");
    text_add(t, ", rows at %llu after %llu lines", (unsigned long long)s->rows_at,
             (unsigned long long)s->lines);
    for (size_t at = 0; s->has_header && at < s->names.len; at += strlen(s->names.data + at) + 1)
        text_add(t, "%s%s", at ? "|" : ": ", s->names.data + at);
    if (s->note.len)
        text_add(t, "; %s", s->note.data);
}

#define ROW(before, after, ...)                                                                    \
    {                                                                                              \
        .text = (before), .want = (after), __VA_ARGS__                                             \
    }
#define KEPT  "a.csv: line 1 is used as names of columns: "
#define IS_NO ". -o csv_header=no makes it a row\n"
#define RISES                                                                                      \
    "; a.csv: line 1 is used as a row, but its numbers rise by one. If they are names of "         \
    "columns: "                                                                                    \
    "-o csv_header=yes\n"
#define OMITTED(n, name)                                                                           \
    "a.csv: column " n " (" name ") is omitted from x: it numbers the rows, as pandas does. Give " \
    "it a name to keep it\n"
#define DIGITS_16 "0000000000000000"
#define DIGITS_63 DIGITS_16 DIGITS_16 DIGITS_16 "000000000000000"

UNIT_TEST(test_csv_shape__first_lines__what_they_say)
{
    static const struct {
        const char *text, *want; /* want: the shape, or what is wrong */
        int error;
        struct format_options options;
        unsigned decided;
        bool is_cut; /* the text is not all of the file */
    } rows[] = {
        ROW("1,2\n3,4\n", "2 by ',', rows at 0 after 0 lines"),
        ROW("1\n2\n", "1 by ' ', rows at 0 after 0 lines"),
        ROW("1\t2\n", "2 by '\t', rows at 0 after 0 lines"),
        ROW("1;2\n", "2 by ';', rows at 0 after 0 lines"),
        ROW("1 2;3,4\n", "2 by ';', rows at 0 after 0 lines", .options.header = CSV_HEADER_NO),
        ROW(" 1  2 \n", "2 by ' ', rows at 0 after 0 lines"),
        ROW("a,b\n1,2\n", "2 by ',', rows at 4 after 1 lines: a|b"),
        ROW("a b\n1 2\n", "2 by ' ', rows at 4 after 1 lines: a|b"),
        ROW("a b\n1\n", "1 by ',', rows at 4 after 1 lines: a b"),
        ROW("a,b", "2 by ',', rows at 3 after 1 lines: a|b"),
        ROW("\n\r\na, b \n1,2\n", "2 by ',', rows at 9 after 3 lines: a|b"),
        ROW("\xef\xbb\xbf"
            "1,2\n",
            "2 by ',', rows at 3 after 0 lines"),
        ROW("\xef\xbb\xbf"
            "a,b\n1,2\n",
            "2 by ',', rows at 7 after 1 lines: a|b"),
        ROW(",\n1,2\n", "2 by ',', rows at 0 after 0 lines"),
        ROW("a,\n1,2\n", "2 by ',', rows at 3 after 1 lines: a|"),
        ROW("a|b\n1|2\n", "2 by '|', rows at 4 after 1 lines: a|b", .options.delimiter = '|'),
        /* '#' before names, or comments */
        ROW("# a,b\n1,2\n", "2 by ',', rows at 6 after 1 lines: a|b"),
        ROW("##\t a b\n1 2\n", "2 by ' ', rows at 8 after 1 lines: a|b"),
        ROW("#a,b\n", "2 by ',', rows at 5 after 1 lines: a|b"),
        ROW("#\n1\n", "1 by ' ', rows at 2 after 1 lines: #"),
        ROW("# 1,2\n3,4\n", "got 2 cells with numbers", .error = -EBADMSG),
        ROW("# a,b\n1,2,3\n", "expected names of 3 columns after '#', got 2. If",
            .error = -EBADMSG),
        ROW("# a,b\n1,2\n", "2 by ',', rows at 0 after 0 lines", .options.comment = '#'),
        ROW("# a,b\n% 1,2,3\n2\n", "expected names of 1 columns after '#', got 2",
            .error = -EBADMSG, .options.comment = '%'),
        /* roles */
        ROW("x,label\n1,2\n", "2 by ',', label 1, rows at 8 after 1 lines: x|label"),
        ROW("x,Target\n1,2\n", "2 by ',', label 1, rows at 9 after 1 lines: x|Target"),
        ROW("y,x\n1,2\n", "2 by ',', label 0, rows at 4 after 1 lines: y|x"),
        ROW("class,target\n1,2\n", "2 by ',', label 1, rows at 13 after 1 lines: class|target"),
        ROW("Y,x,y\n1,2,3\n",
            "3 by ',', label 2, rows at 6 after 1 lines: Y|x|y; a.csv: columns 0 and 2 are named "
            "y: "
            "the label is column 2, and the other a part of x. -o label_column= with a number "
            "chooses\n"),
        ROW("Y,x,y\n1,2,3\n", "3 by ',', label 0, rows at 6 after 1 lines: Y|x|y",
            .options.label_column = "0"),
        ROW("a,b\n1,2\n", "2 by ',', label 1, rows at 4 after 1 lines: a|b", .options.label = "b"),
        ROW("a,y\n1,2\n", "2 by ',', label 1, rows at 4 after 1 lines: a|y", .options.label = "c"),
        ROW("a,Weight\n1,2\n", "2 by ',', weight 1, rows at 9 after 1 lines: a|Weight"),
        ROW("a,b,A\n1,2,3\n", "3 by ',', label 2, weight 0, rows at 6 after 1 lines: a|b|A",
            .options = {.label_column = "A", .weight_column = "a"}),
        ROW("a,b\n1,2\n", "2 by ',', label 1, rows at 4 after 1 lines: a|b",
            .options.label_column = "B"),
        ROW("1,2\n3,4\n", "2 by ',', label 1, weight 0, rows at 0 after 0 lines",
            .options = {.label_column = "1", .weight_column = "0"}),
        ROW("a,b\n1,2\n",
            "a.csv: option label_column=2: expected a column from 0 to 1, or its name in line 1, "
            "got "
            "no such",
            .error = -EINVAL, .options.label_column = "2"),
        ROW("1,2\n3,4\n",
            "a.csv: option weight_column=b: expected a column from 0 to 1, got no such",
            .error = -EINVAL, .options.weight_column = "b"),
        ROW("1a,2b\n3,4\n", "option label_column=1a: expected", .error = -EINVAL,
            .options.label_column = "1a"),
        ROW("a,b\n1,2\n", "expected two columns as label and weight, got column 1 as both",
            .error = -EINVAL, .options = {.label_column = "1", .weight_column = "b"}),
        /* numbers as names */
        ROW("0,1,2\n5,6,7\n",
            "3 by ',', rows at 6 after 1 lines: 0|1|2; " KEPT "'0', '1', '2'" IS_NO),
        ROW("0,1\n5,6.5\n", "2 by ',', rows at 4 after 1 lines: 0|1; " KEPT "'0', '1'" IS_NO),
        ROW("0,1\n5,6\n", "2 by ',', rows at 0 after 0 lines"),
        ROW("0,1,2\n", "3 by ',', rows at 0 after 0 lines"),
        ROW("0,1,3\n5,6,7\n", "3 by ',', rows at 0 after 0 lines"),
        ROW("0\n5.5\n", "1 by ' ', rows at 0 after 0 lines"),
        ROW("0,1,2.0\n5,6,7\n", "3 by ',', rows at 0 after 0 lines"),
        ROW("0,1,\n5,6,7\n", "3 by ',', rows at 0 after 0 lines"),
        ROW("1,2,3,4\n9,9,9,9\n", "4 by ',', rows at 0 after 0 lines" RISES),
        ROW("1,2,3\n9,9,9\n", "3 by ',', rows at 0 after 0 lines"),
        ROW("2,3,4,5\n9,9,9,9\n", "4 by ',', rows at 0 after 0 lines"),
        ROW("1,2,3,4\n", "4 by ',', rows at 0 after 0 lines"),
        ROW("1800,1801\n5,6\n",
            "2 by ',', rows at 10 after 1 lines: 1800|1801; " KEPT "'1800', '1801'" IS_NO),
        ROW("2199,2200\n5,6\n",
            "2 by ',', rows at 10 after 1 lines: 2199|2200; " KEPT "'2199', '2200'" IS_NO),
        ROW("1799,1800\n5,6\n", "2 by ',', rows at 0 after 0 lines"),
        ROW("2200,2201\n5,6\n", "2 by ',', rows at 0 after 0 lines"),
        ROW("1990,1991\n5,6\n1992,1995\n", "2 by ',', rows at 0 after 0 lines"),
        ROW("1990,1991\n5,6\n5,1992\n",
            "2 by ',', rows at 10 after 1 lines: 1990|1991; " KEPT "'1990', '1991'" IS_NO),
        ROW("\"1\",\"2\"\n3,4\n", "2 by ',', rows at 8 after 1 lines: 1|2; " KEPT "'1', '2'" IS_NO),
        ROW("\"1\",2\n3,4\n", "2 by ',', rows at 0 after 0 lines"),
        ROW("\"1\",\"3\"\n3,\"4\"\n", "2 by ',', rows at 0 after 0 lines"),
        ROW("\"1\",\"2\"\n", "2 by ',', rows at 0 after 0 lines"),
        ROW("a,1,2\n3,4,5\n",
            "3 by ',', rows at 6 after 1 lines: a|1|2; " KEPT "'a', '1', '2'" IS_NO),
        ROW("a,1,3\n3,4,5\n",
            "a.csv: line 1: expected numbers, or names and no numbers, got 2 numbers and 1 names",
            .error = -EBADMSG),
        ROW("\n,a,b,1\n3,4,5,6\n",
            "a.csv: line 2: expected numbers, or names and no numbers, got 1 "
            "numbers and 2 names. If it has names of columns: -o csv_header=yes",
            .error = -EBADMSG),
        ROW("a,1\n3,4\n", "2 by ',', rows at 4 after 1 lines: a|1",
            .options.header = CSV_HEADER_YES),
        ROW("1,2\n3,4\n", "2 by ',', rows at 4 after 1 lines: 1|2",
            .options.header = CSV_HEADER_YES),
        ROW("0,1,2\n3,4,5\n", "3 by ',', rows at 0 after 0 lines", .options.header = CSV_HEADER_NO),
        ROW("0,1,2\n3,4,5\n",
            "3 by ',', rows at 0 after 0 lines; a.csv: line 1 is used as a row, as in other parts "
            "of "
            "the set, though it could be names of columns. -o csv_header=yes makes the first line "
            "of "
            "each part names\n",
            .decided = CSV_ROWS),
        ROW("5,6\n3,4\n", "2 by ',', rows at 4 after 1 lines: 5|6; " KEPT "'5', '6'" IS_NO,
            .decided = CSV_NAMES),
        ROW("a,b\n3,4\n", "2 by ',', rows at 4 after 1 lines: a|b", .decided = CSV_NAMES),
        ROW("1" DIGITS_63 ",2\n3,4\n", "2 by ',', rows at 0 after 0 lines"),
        ROW("10" DIGITS_63 ",2\n3,4\n", "got 1 numbers and 1 names", .error = -EBADMSG),
        /* numbers of rows */
        ROW(",0,1\n0,5,6\n1,7,8\n", "3 by ',', omitted 1, rows at 5 after 1 lines: |0|1; " KEPT
                                    "'', '0', '1'" IS_NO OMITTED("0", "without a name")),
        ROW(",0,2\n0,5,6\n1,7,8\n", "3 by ',', omitted 1, rows at 5 after 1 lines: |0|2; " KEPT
                                    "'', '0', '2'" IS_NO OMITTED("0", "without a name")),
        ROW(",2,1\n0,5,6\n1,7,8\n", "3 by ',', rows at 0 after 0 lines"),
        ROW(",0,1\n0,5,6\n,7,8\n", "3 by ',', rows at 0 after 0 lines"),
        ROW("Unnamed: 0.1,Unnamed: 0,a\n0,0,5\n1,1,6\n",
            "3 by ',', omitted 2, rows at 26 after 1 lines: Unnamed: 0.1|Unnamed: 0|a; " OMITTED(
                "0", "Unnamed: 0.1") OMITTED("1", "Unnamed: 0")),
        ROW("Unnamed: 0\n0\n1\n", "1 by ',', rows at 11 after 1 lines: Unnamed: 0"),
        ROW("Unnamed: 0;\n0;1\n1;2\n",
            "2 by ';', omitted 1, rows at 12 after 1 lines: Unnamed: 0|; " OMITTED("0",
                                                                                   "Unnamed: 0")),
        ROW("Unnamed: 1,a\n0,5\n1,6\n", "2 by ',', rows at 13 after 1 lines: Unnamed: 1|a"),
        ROW(",a\n123456789012345678,5\n2,6\n",
            "2 by ',', omitted 1, rows at 3 after 1 lines: |a; " OMITTED("0", "without a name")),
        ROW(",a\n1234567890123456789,5\n2,6\n", "2 by ',', rows at 3 after 1 lines: |a"),
        ROW(",a\n7,5\n7,6\n", "2 by ',', rows at 3 after 1 lines: |a; a.csv: column 0 (without a "
                              "name) is a part of x: "
                              "its numbers repeat, and number no rows\n"),
        ROW(",a\n7,5\n7.5,6\n", "2 by ',', rows at 3 after 1 lines: |a"),
        ROW(",a\n7,5\n,6\n", "2 by ',', rows at 3 after 1 lines: |a"),
        ROW(",a\n0,5\n1,6\n", "2 by ',', label 0, rows at 3 after 1 lines: |a",
            .options.label_column = "0"),
        ROW(",a\n0,5\n1,6\n", "2 by ',', weight 0, rows at 3 after 1 lines: |a",
            .options.weight_column = "0"),
        /* lines of tabs are rows where they have the tabs of one, here as ",," is */
        ROW("\t0\t1\n5\t2\t3\n\t\t\n", "3 by '\t', rows at 0 after 0 lines"),
        ROW("\t0\t1\n5\t2\t3\n\t\n", "3 by '\t', omitted 1, rows at 5 after 1 lines: |0|1; " KEPT
                                     "'', '0', '1'" IS_NO OMITTED("0", "without a name")),
        ROW("\ta\tb\n0\t1\t2\n\t\t\n2\t5\t6\n", "3 by '\t', rows at 5 after 1 lines: |a|b"),
        ROW("\t\t\n\ta\tb\n0\t1\t2\n",
            "3 by '\t', omitted 1, rows at 8 after 2 lines: |a|b; " OMITTED("0", "without a name")),
        ROW("# a\tb\n\t\n", "2 by '\t', rows at 6 after 1 lines: a|b"),
        ROW("1\t2\t3\t4\n\t\t\t\n", "4 by '\t', rows at 0 after 0 lines" RISES),
        ROW("0\t5\n1\t7\n\t\n2\t9\n", "2 by '\t', rows at 0 after 0 lines"),
        ROW("\t\n0\t5\n1\t7\n2\t9\n", "2 by '\t', rows at 0 after 0 lines"),
        ROW("0\t5\n1\t7\n\t\t\n2\t9\n", "2 by '\t', keyed, rows at 0 after 0 lines"),
        /* lists about something else */
        ROW("0,5\n1,7\n2,9\n", "2 by ',', keyed, rows at 0 after 0 lines"),
        ROW("1,5\n2,7\n3,9\n", "2 by ',', keyed, rows at 0 after 0 lines"),
        ROW("2,5\n3,7\n4,9\n", "2 by ',', rows at 0 after 0 lines"),
        ROW("0,5\n1,7\n", "2 by ',', rows at 0 after 0 lines"),
        ROW("0,5\n1,7\n3,9\n", "2 by ',', rows at 0 after 0 lines"),
        ROW("0,5\n1,\n2,9\n", "2 by ',', rows at 0 after 0 lines"),
        ROW("0,5\n1,7\n2,9.5\n", "2 by ',', rows at 0 after 0 lines"),
        ROW("0,5\n1,7,8\n2,9\n", "2 by ',', rows at 0 after 0 lines"),
        ROW("0,5,5\n1,7,5\n2,9,5\n", "3 by ',', rows at 0 after 0 lines"),
        ROW("a,b\n0,5\n1,7\n2,9\n", "2 by ',', rows at 4 after 1 lines: a|b"),
        /* nothing */
        ROW("", "a.csv: expected lines of numbers, got none in the first 0 bytes",
            .error = -EBADMSG),
        ROW("\n \n", "a.csv: expected lines of numbers, got none in the first 3 bytes",
            .error = -EBADMSG),
        ROW("1,2", "2 by ',', rows at 0 after 0 lines"),
        ROW("1,2", "got none in the first 3 bytes", .error = -EBADMSG, .is_cut = true),
        ROW("1,2\n3", "2 by ',', rows at 0 after 0 lines", .is_cut = true),
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_TEXT struct text t = {0};
        struct csv_shape shape = {.label = CSV_NONE};
        struct diag d = DIAG_INIT;
        size_t len = strlen(rows[i].text);
        AUTO_FREE uint8_t *head = calloc(len + DECIMAL_PAD, 1);

        assert_non_null(head);
        memcpy(head, rows[i].text, len);
        assert_int_equal(csv_shape_read(head, len, !rows[i].is_cut, rows[i].decided,
                                        &rows[i].options, "a.csv", &shape, &d),
                         rows[i].error);
        show(&shape, &t);
        if (rows[i].error)
            assert_diag_has(&d, rows[i].want);
        else
            assert_string_equal(t.data, rows[i].want);
        text_release(&shape.names);
        text_release(&shape.note);
    }
}

/* The siblings t-0.csv, t-1.csv ...: what is decided of each, a digit of enum csv_decided. */
UNIT_TEST(test_csv_decide__siblings__one_decision)
{
#define THESE(...)                                                                                 \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define SET(after, ...)                                                                            \
    {                                                                                              \
        .want = after, .text = __VA_ARGS__                                                         \
    }
    static const struct {
        const char *text[3]; /* "!": it cannot be read */
        const char *want;
        enum csv_header header;
        bool is_list;
    } rows[] = {
        SET("02", THESE("5,6,9\n1,2,3\n", "0,1,2\n5,6,7.5\n")),
        SET("20", THESE("0,1,2\n5,6,7\n", "5,6,9\n1,2,3\n")),
        SET("00", THESE("0,1,2\n5,6,7.5\n", "5,6,9\n1,2,3\n")), /* not by chance */
        SET("20", THESE("0,1,2,3,4,5,6,7\n5,6,7,8,9,9,9,9\n", "7,1,2,3,4,5,6,7\n")),
        SET("00", THESE("0,1,2,3,4,5,6,7,8\n5,6,7,8,9,9,9,9,9\n", "7,1,2,3,4,5,6,7,8\n")),
        SET("00", THESE(",0,1\n5,6,7\n", "5,6,9\n1,2,3\n")),
        SET("00", THESE("0,1,2\n5,6,7\n", "5,6\n1,2\n")), /* other columns */
        SET("020", THESE("0,1,2\n5,6,7\n", "0,1\n5,6.5\n", "5,6\n1,2\n")),
        SET("200", THESE("0,1,2\n5,6,7\n", "5,6,9\n1,2,3\n", "5,6,4\n1,2,3\n")),
        SET("11", THESE("0,1\n5,6.5\n", "0,1\n5,6\n")), /* the same line */
        SET("011", THESE("5,6\n1,2\n", "0,1\n5,6.5\n", "0,1\n5,6\n")),
        SET("00", THESE("0,1\n5,6\n", "0,1\n7,8\n")),
        SET("11", THESE("a,b\n1,2\n", "a,b\n3,4\n")),
        SET("00", THESE("a,b\n1,2\n", "a,c\n3,4\n")),
        SET("00", THESE("a,b\n1,2\n", "5,6\n3,4\n")),
        SET("00", THESE("\"0\",\"1\"\n5,6\n", "7,9\n5,6\n")),
        SET("000", THESE("", "", "0,1,2\n5,6,7\n")),
        SET("020", THESE("!", "0,1,2\n5,6,7\n", "5,6,9\n1,2,3\n")),
        SET("00", THESE("5,6,9\n1,2,3\n", "0,1,2\n5,6,7.5\n"), .header = CSV_HEADER_NO),
        SET("00", THESE("5,6,9\n1,2,3\n", "0,1,2\n5,6,7.5\n"), .is_list = true),
        SET("11", THESE("a,b\n1,2\n", "a,b\n3,4\n"), .is_list = true),
        SET("0", THESE("0,1,2\n5,6,7\n")),
        SET("00", THESE("\t0\t1\n5\t2\t3\n\t\n", "0\t1\t2\n5\t6\t7\n")),
        SET("02", THESE("\t0\t1\n5\t2\t3\n\t\t\n", "0\t1\t2\n5\t6\t7\n")), /* a row */
    };
    static const char *const names[] = {"t-0.csv", "t-1.csv", "t-2.csv"};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct format_setup setup = {.options.header = rows[i].header,
                                           .is_list = rows[i].is_list};
        struct blob_faults faults = {.fail_read = 1};
        struct source_file file[3] = {{.name = NULL}};
        char found[4] = "";
        size_t n = strlen(rows[i].want);

        for (size_t k = 0; k < n; k++) {
            const char *text = rows[i].text[k];

            file[k] = (struct source_file){.name = names[k], .file_name = names[k], .folder = ""};
            file[k].blob = memory_blob_new(names[k], text, strlen(text), strlen(text),
                                           *text == '!' ? &faults : NULL);
            assert_non_null(file[k].blob);
        }
        assert_int_equal(csv_decide(file, n, &setup), 0);
        for (size_t k = 0; k < n; k++) {
            found[k] = (char)('0' + file[k].decided);
            blob_free(file[k].blob);
        }
        assert_string_equal(found, rows[i].want);
    }
}
