/* Boxes of VOC, YOLO and KITTI: as the files have them, and hostile files. */
#include "format/annotations/boxes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/real.h"
#include "support/failing_alloc.h"
#include "support/random.h"
#include "support/unit.h"

/* The columns of some files. */
struct reading {
    int r;
    struct diag d;
    struct value_columns columns;
    struct box_classes classes;
    struct text note;
};

/* files: texts, "" for a sample without a file; ended by NULL. The files are called file-0 .. */
static void read_files(struct reading *ret, const char *format, const char *const *files)
{
    AUTO_BOX_READER struct box_reader *reader = NULL;

    *ret = (struct reading){.d = DIAG_INIT};
    assert_int_equal(box_reader_new(box_format_find(format), &reader), 0);
    for (size_t i = 0; files[i] && ret->r == 0; i++) {
        const char *bytes = *files[i] ? files[i] : NULL;
        char name[32];

        snprintf(name, sizeof(name), "file-%zu", i);
        ret->r = box_reader_add(reader, bytes, strlen(files[i]), name, &ret->d);
    }
    if (ret->r == 0)
        assert_int_equal(box_reader_finish(reader, &ret->columns, &ret->classes, &ret->note), 0);
}

static void reading_release(struct reading *reading)
{
    value_columns_release(&reading->columns);
    box_classes_release(&reading->classes);
    text_release(&reading->note);
}
#define AUTO_READING AUTO(reading_release)

static void read_file(struct reading *ret, const char *format, const char *file)
{
    read_files(ret, format, (const char *const[]){file, NULL});
}

static void assert_bad(const char *format, const char *file, const char *message)
{
    AUTO_READING struct reading reading;

    read_file(&reading, format, file);
    assert_int_equal(reading.r, -EBADMSG);
    assert_diag_has(&reading.d, message);
}

/* Row i of a column is these n numbers. */
static void assert_row(const struct reading *reading, const char *name, uint64_t i, size_t n,
                       const double *expected)
{
    const struct value_column *c = value_columns_find(&reading->columns, name);
    const uint8_t *items;
    size_t width;

    assert_non_null(c);
    width = c->width ? c->width : 1;
    assert_int_equal(value_items(c, i, &items) * width, n);
    for (size_t k = 0; k < n; k++) {
        if (c->dtype == DTYPE_F4)
            assert_true(f4_of_bits(load_le32(items + 4 * k)) == (float)expected[k]);
        else
            assert_int_equal((int64_t)load_le64(items + 8 * k), (int64_t)expected[k]);
    }
}

#define ROW(...)                                                                                   \
    sizeof((const double[]){__VA_ARGS__}) / sizeof(double), (const double[])                       \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static void assert_classes(const struct box_classes *classes, const char *const *names)
{
    size_t n = 0;

    for (; names[n]; n++) {
        assert_true(n < classes->n);
        assert_string_equal(classes->item[n].name, names[n]);
        assert_int_equal(classes->item[n].number, n);
    }
    assert_int_equal(classes->n, n);
}

#define NAMES(...)                                                                                 \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

/* ---- VOC ---- */

#define BOX(a, b, c, d)                                                                            \
    "<bndbox><xmin>" a "</xmin><ymin>" b "</ymin><xmax>" c "</xmax><ymax>" d "</ymax></bndbox>"

UNIT_TEST(test_voc__several_files__classes_by_bytes)
{
    AUTO_READING struct reading reading;

    read_files(&reading, "voc",
               NAMES("<annotation><object><name>person</name>" BOX("1", "2", "3", "4") //
                     "<difficult>1</difficult></object><object><name>Zebra</name>"     //
                     BOX("45.70000076293945", "1e1", "-3", "0.1") "</object></annotation>",
                     "", "<annotation/>",
                     "<annotation><object><name>person</name>" BOX("5", "6", "7", "8") //
                     "</object></annotation>",
                     "<annotation><object><name>aeroplane</name>" BOX(
                         "5", "6", "7", "8") "</object></annotation>"));
    assert_int_equal(reading.r, 0);
    assert_int_equal(reading.columns.n, 3); /* no file has <truncated> */
    assert_classes(&reading.classes, NAMES("Zebra", "aeroplane", "person"));
    assert_row(&reading, "boxes", 0, ROW(1, 2, 3, 4, 45.70000076293945, 10, -3, 0.1));
    assert_row(&reading, "box_label", 0, ROW(2, 0));
    assert_row(&reading, "difficult", 0, ROW(1, 0));
    for (uint64_t i = 1; i < 3; i++) {
        assert_row(&reading, "boxes", i, 0, NULL);
        assert_row(&reading, "box_label", i, 0, NULL);
        assert_row(&reading, "difficult", i, 0, NULL);
    }
    assert_row(&reading, "boxes", 3, ROW(5, 6, 7, 8));
    assert_row(&reading, "box_label", 3, ROW(2));
    assert_row(&reading, "box_label", 4, ROW(1));
    assert_null(reading.note.data);
}

UNIT_TEST(test_voc__parts_and_order__children_only)
{
    AUTO_READING struct reading reading;

    read_file(
        &reading, "voc",
        "\xef\xbb\xbf<?xml version=\"1.0\"?>\n<!-- <object> -->\n<annotation>\n"
        "  <name>no</name>" BOX("9", "9", "9",
                                "9") "<source><name>no</name></source>\n"
                                     "  <object>\n"
                                     "    <part><name>head</name>" BOX(
                                         "7", "7", "7",
                                         "7") "</part>\n"
                                              "    <truncated> 1\n</truncated><bndbox>\n"
                                              "      <ymax>4</ymax><xmax> 3 "
                                              "</xmax><ymin>\n2\n</ymin><xmin>1</xmin></bndbox>\n"
                                              "    <difficult>Unspecified</difficult>\n"
                                              "    <actions><name>no</name></actions>\n"
                                              "    <name> traffic &amp; <![CDATA[light]]> </name>\n"
                                              "  </object>\n"
                                              "  <object><name>a</name>" BOX(
                                                  "1", "1", "1", "1") "<truncated/></object>\n"
                                                                      "</annotation>\n");
    assert_int_equal(reading.r, 0);
    assert_classes(&reading.classes, NAMES("a", "traffic & light"));
    assert_row(&reading, "boxes", 0, ROW(1, 2, 3, 4, 1, 1, 1, 1));
    assert_row(&reading, "box_label", 0, ROW(1, 0));
    assert_row(&reading, "difficult", 0, ROW(0, 0));
    assert_row(&reading, "truncated", 0, ROW(1, 0));
}

UNIT_TEST(test_voc__malformed__rejected_with_line)
{
    static const struct {
        const char *file, *message;
    } files[] = {
        {"", NULL},
        {"text", "file-0: line 1: the XML is malformed"},
        {"<annotation>\n<object>\n</annotation>", "line 3: the XML is malformed: mismatched tag"},
        {"<annotation>\n", "the XML is malformed"},
        {"<annotations/>", "line 1: expected <annotation>, got <annotations>"},
        {"<annotation><object>" BOX("1", "2", "3", "4") "</object></annotation>",
         "expected <name> in an <object>, got none"},
        {"<annotation><object><name>a</name></object></annotation>", "expected <xmin> in the"},
        {"<annotation><object><name>a</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>1</xmax>"
         "</bndbox></object></annotation>",
         "expected <ymax> in the"},
        {"<annotation><object><name> </name>" BOX("1", "2", "3", "4") "</object></annotation>",
         "expected 1 to 1024 bytes, got 0"},
        {"<annotation><object><name>a</name><name>b</name></object></annotation>",
         "expected one <name> in an <object>, got two"},
        {"<annotation><object>" BOX("1", "2", "3", "4") BOX("1", "2", "3", "4") "</object>",
         "expected one <bndbox>"},
        {"<annotation>\n<object>" BOX("1", "nan", "3", "4"), "line 2: ymin: expected a finite"},
        {"<annotation><object>" BOX("inf", "2", "3", "4"), "xmin: expected a finite"},
        {"<annotation><object>" BOX("1", "2", "1e99", "4"), "xmax: expected a finite"},
        {"<annotation><object>" BOX("1", "2", "3", ""), "ymax: expected a finite"},
        {"<annotation><object>" BOX("1", "2", "3", "4px"), "ymax: expected a finite"},
        {"<annotation><object>" BOX("1", "2", "3", "0x4"), "ymax: expected a finite"},
        {"<annotation><object>" BOX("1,5", "2", "3", "4"), "got '1,5'"},
        {"<annotation><object><difficult>0.5</difficult>", "difficult: expected a whole number"},
        {"<annotation><object><truncated>no</truncated>", "truncated: expected a whole number"},
        {"<annotation>&lol;</annotation>", "undefined entity"},
        {"<!DOCTYPE a [<!ENTITY lol \"lol\">]>\n<annotation>&lol;</annotation>",
         "entity lol: expected no declarations"},
        {"<!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><annotation>&x;</annotation>",
         "entity x: expected no declarations"},
        {"<!DOCTYPE a [<!ENTITY % x SYSTEM \"http://a/b\"> %x;]><annotation/>",
         "entity x: expected no declarations"},
        {"<!DOCTYPE annotation SYSTEM \"a.dtd\"><annotation>&x;</annotation>",
         "entity x is not declared"},
        {"<?xml version=\"1.0\" encoding=\"none\"?><annotation/>", "unknown encoding"},
    };

    for (size_t i = 1; i < ARRAY_LEN(files); i++)
        assert_bad("voc", files[i].file, files[i].message);
    { /* an empty file is no sample without a file */
        AUTO_BOX_READER struct box_reader *reader = NULL;
        struct diag d = DIAG_INIT;

        assert_int_equal(box_reader_new(box_format_find("voc"), &reader), 0);
        assert_int_equal(box_reader_add(reader, "", 0, "empty", &d), -EBADMSG);
        assert_diag_has(&d, "empty: line 1: the XML is malformed");
    }
}

/* n copies of a text, between a begin and an end. */
static char *repeated(const char *begin, const char *text, size_t n, const char *end)
{
    size_t len = strlen(text);
    char *s = malloc(strlen(begin) + n * len + strlen(end) + 1), *p = s;

    assert_non_null(s);
    p = stpcpy(p, begin);
    for (size_t i = 0; i < n; i++)
        p = stpcpy(p, text);
    stpcpy(p, end);
    return s;
}

UNIT_TEST(test_voc__bombs__bounded)
{
    static const struct {
        const char *begin, *text;
        size_t n;
        const char *message;
    } files[] = {
        {"<annotation>", "<a>", 1000000, "expected at most 64 nested elements"},
        {"", " ", BOX_FILE_MAX + 1, "expected a file of at most 16777216 bytes"},
        {"<annotation><object><name>", "n", BOX_NAME_MAX + 1, "<name>: expected at most 1024"},
        {"<annotation><object><bndbox><xmin>", "1", BOX_NAME_MAX + 1, "<xmin>: expected at most"},
    };

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        AUTO_FREE char *file = repeated(files[i].begin, files[i].text, files[i].n, "");

        assert_bad("voc", file, files[i].message);
    }
}

UNIT_TEST(test_voc__many_digits__rounded_once)
{
    AUTO_FREE char *file =
        repeated("<annotation><object><name>a</name><bndbox><xmin>0.", "3", BOX_NAME_MAX - 2,
                 "</xmin><ymin>1</ymin><xmax>1</xmax><ymax>1</ymax></bndbox>"
                 "</object></annotation>");
    AUTO_READING struct reading reading;

    read_file(&reading, "voc", file);
    assert_int_equal(reading.r, 0);
    assert_row(&reading, "boxes", 0, ROW(1. / 3, 1, 1, 1));
}

UNIT_TEST(test_voc__classes__at_most_65536)
{
    AUTO_BOX_READER struct box_reader *reader = NULL;
    struct diag d = DIAG_INIT;
    int r = 0;

    assert_int_equal(box_reader_new(box_format_find("voc"), &reader), 0);
    for (unsigned i = 0; i <= BOX_CLASSES_MAX; i++) {
        char file[256];

        assert_int_equal(r, 0);
        snprintf(file, sizeof(file),
                 "<annotation><object><name>%u</name>" BOX("1", "1", "1", "1") "</object>"
                                                                               "</annotation>",
                 i * 48271 % BOX_CLASSES_MAX + (i == BOX_CLASSES_MAX ? 70000 : 0));
        r = box_reader_add(reader, file, strlen(file), "last", &d);
    }
    assert_int_equal(r, -EBADMSG);
    assert_diag_has(&d, "last: line 1: expected at most 65536 names of classes");
}

/* ---- YOLO ---- */

UNIT_TEST(test_yolo__lines__as_stored)
{
    AUTO_READING struct reading reading;

    read_files(&reading, "yolo",
               NAMES("45 0.479492 0.688771 0.955609 0.5955\r\n\r\n"
                     "50\t0.736516 0.247188 .498875 4.76417e-1",
                     "", "\n", "0 1 1 1 1\n0 1 1 1 1\n",
                     "\xef\xbb\xbf"
                     "7.0 -0.1 1.5 2 0\n"));
    assert_int_equal(reading.r, 0);
    assert_int_equal(reading.columns.n, 2);
    assert_int_equal(reading.classes.n, 0);
    assert_row(&reading, "boxes", 0,
               ROW(0.479492, 0.688771, 0.955609, 0.5955, 0.736516, 0.247188, 0.498875, 0.476417));
    assert_row(&reading, "box_label", 0, ROW(45, 50));
    assert_row(&reading, "boxes", 1, 0, NULL);
    assert_row(&reading, "box_label", 2, 0, NULL);
    assert_row(&reading, "boxes", 3, ROW(1, 1, 1, 1, 1, 1, 1, 1)); /* equal lines are kept */
    assert_row(&reading, "boxes", 4, ROW(-0.1, 1.5, 2, 0));
    assert_row(&reading, "box_label", 4, ROW(7));
}

UNIT_TEST(test_yolo__other_lengths__no_boxes_and_a_note)
{
    static const char *const files[] = {
        "0 0.1 0.1 0.2 0.2 0.3 0.3 0.4 0.4\n",   /* a polygon, or corners */
        "0 0.1 0.1 0.2 0.2 0.3 0.3 2 0.4 0.4 2", /* a pose */
        "3\n",                                   /* a class alone */
        "a dog\n",
    };

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        AUTO_READING struct reading reading;

        read_files(&reading, "yolo", NAMES("0 1 1 1 1\n", files[i], "0 nan 1 1 1\n"));
        assert_int_equal(reading.r, 0);
        assert_int_equal(reading.columns.n, 0);
        assert_notes_have(&(struct { struct text text; }){reading.note},
                          "file-1: line 1: expected the 5 columns of a box, got ");
    }
}

UNIT_TEST(test_yolo__malformed__rejected_with_line)
{
    assert_bad("yolo", "0 1 1 1 1\n-1 1 1 1 1\n",
               "file-0: line 2: class: expected a whole number of 0 or more, got '-1'");
    assert_bad("yolo", "0.5 1 1 1 1", "class: expected a whole number");
    assert_bad("yolo", "nan 1 1 1 1", "class: expected a whole number");
    assert_bad("yolo", "inf 1 1 1 1", "class: expected a whole number");
    assert_bad("yolo", "1e300 1 1 1 1", "class: expected a whole number");
    assert_bad("yolo", "0 1 NaN 1 1", "cy: expected a finite number of float32, got 'NaN'");
    assert_bad("yolo", "0 1 1 -inf 1", "w: expected a finite");
    assert_bad("yolo", "\n\n0 1 1 1 1e39", "line 3: h: expected a finite");
    assert_bad("yolo", "a dog in the snow", "class: expected");
    assert_bad("yolo", "0 1 1 1 0x1", "h: expected a finite");
}

UNIT_TEST(test_yolo_names__yaml__all_ways)
{
    static const char *const files[] = {
        "names: [a, 'b c', \"d\"]",
        "# names: [x]\npath: ../names\nnames : # list\n- a\n\n# b\n-  b c # d\n"
        "- 'd'\nnc: 3\n",
        "nc: 3\r\nnames:\r\n  - a\r\n  - \"b c\"\r\n  - d\r\ntrain: x\r\n",
        "names: {0: a, 1: b c, 2: d}\n",
        "names:\n  2: d\n  0: a\n  1: b c\nother:\n  3: e\n",
        "names: {\"0\": \"a\", '1':'b c',\n  2: d,}  # all\nnc: 3",
        "names: [a, b\n   c, # names\n d\n ]\nx: [e]",
        "\"names\": [\n\"\\x61\", \"b\\ \\\n  c\", \"\\u0064\",\n]\n---\n",
        "names: ['a', 'b\n c', d]",
        "{names: [&x a, b c, d]}\n",
        "names:\n  - a\n  - b\n    c\n  - !!str d\ndownload: |\n  *x\nagain: *x\n",
        "\xef\xbb\xbfnames: [a,b c,d]\n...\n",
        "train: x\nnames: [a, b c, d]\ntrain: y\n",
    };
    AUTO_BOX_CLASSES struct box_classes classes = {0};
    struct diag d = DIAG_INIT;

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        if (yolo_names(files[i], strlen(files[i]), "a/data.yaml", &classes, &d) < 0)
            fail_msg("%s: %s", files[i], d.text);
        assert_classes(&classes, NAMES("a", "b c", "d"));
        box_classes_release(&classes);
    }
}

UNIT_TEST(test_yolo_names__others__text_kept)
{
    static const char yaml[] = "names:\n"
                               "  0: person # one\n"
                               "  23: it's #1, [a] {b}\n"
                               "  45: 'it''s: # 2'\n"
                               "  50: \"\\U0001f600\\u4eba \\\"\\\\\\/\\t\"\n"
                               "  7: no\n";
    static const char *const names[] = {"person", "no", "it's #1, [a] {b}"};
    AUTO_BOX_CLASSES struct box_classes classes = {0};
    struct diag d = DIAG_INIT;

    /* ' #' begins a comment */
    assert_int_equal(yolo_names(yaml, strlen(yaml), "x.yml", &classes, &d), 0);
    assert_int_equal(classes.n, 5);
    assert_string_equal(classes.item[0].name, names[0]);
    assert_int_equal(classes.item[1].number, 7);
    assert_string_equal(classes.item[1].name, names[1]);
    assert_int_equal(classes.item[2].number, 23);
    assert_string_equal(classes.item[2].name, "it's");
    assert_string_equal(classes.item[3].name, "it's: # 2");
    assert_string_equal(classes.item[4].name, "\xf0\x9f\x98\x80\xe4\xba\xba \"\\/\t");
    box_classes_release(&classes);

    assert_int_equal(yolo_names("a\r\n\n b c \n\n", 10, "obj.names", &classes, &d), 0);
    assert_int_equal(classes.n, 2);
    assert_int_equal(classes.item[1].number, 2);
    assert_string_equal(classes.item[1].name, "b c");
    box_classes_release(&classes);

    assert_int_equal(yolo_names("path: x\ntrain: y\n", 17, "data.yaml", &classes, &d), 0);
    assert_int_equal(classes.n, 0);
    assert_int_equal(yolo_names("names:\nnc: 0\n", 13, "data.yaml", &classes, &d), 0);
    assert_int_equal(classes.n, 0);
    assert_int_equal(yolo_names("names: []\n", 10, "data.yaml", &classes, &d), 0);
    assert_int_equal(classes.n, 0);
    assert_int_equal(yolo_names(NULL, 0, "classes.txt", &classes, &d), 0);
    assert_int_equal(classes.n, 0);
}

UNIT_TEST(test_yolo_names__malformed__rejected_with_line)
{
    static const struct {
        const char *file, *message;
    } files[] = {
        {"a: b\nnames: x.names\n", "data.yaml: names: expected a list or a map of names"},
        {"names: *other\n", "expected a list or a map"},
        {"names: |\n  a\n", "expected a list or a map"},
        {"names: [a, b\n", "data.yaml: line 2: did not find expected"},
        {"names: [a, [b]]", "expected a list or a map of names"},
        {"names: [a, b]]", "line 1: did not find expected"},
        {"names: [a b, {c: d}]", "expected a list or a map of names"},
        {"names: [a, , b]", "line 1: did not find expected"},
        {"names: ['a, b]", "unexpected end of stream"},
        {"names: [\"\\q\"]", "unknown escape character"},
        {"names: [\"\\ud800\"]", "invalid Unicode character"},
        {"names: [\"\\x00\"]", "expected UTF-8, got byte 00"},
        {"names: [\xff]", "invalid leading UTF-8 octet"},
        {"names: ['']", "expected 1 to 1024 bytes, got 0"},
        {"names: [a # b\n c]", "line 2: did not find expected"},
        {"names: {a: b}", "expected the number of a class"},
        {"names: {-1: b}", "expected the number of a class"},
        {"names: {0:b}", "expected the number of a class"},
        {"names: {99999999999: b}", "expected the number of a class"},
        {"names: {0: a, 0: b}", "expected a list or a map of names, got another"},
        {"names:\n  0: a\n  00: b\n", "expected the number of a class"},
        {"names:\n  - a\n  1: b\n", "line 3: did not find expected"},
        {"names:\n  - a\n- b\n", "line 3: did not find expected"},
        {"names:\n\t- a\n", "line 2: found character that cannot start"},
        {"names:\n  - a: b\n", "expected a list or a map of names"},
        {"names:\n  -\n", "expected a list or a map of names"},
        {"names: [a]\nnames: [b]\n", "expected a list or a map of names, got another"},
        {"? [a]\n: b\n", "line 1: expected a key that is a text"},
    };
    AUTO_FREE char *large = repeated("names: [", "a,", BOX_CLASSES_MAX + 1, "]");
    AUTO_FREE char *name = repeated("names: [", "a", BOX_NAME_MAX + 1, "]");
    AUTO_BOX_CLASSES struct box_classes classes = {0};

    for (size_t i = 0; i < ARRAY_LEN(files) + 2; i++) {
        const char *file = i < ARRAY_LEN(files) ? files[i].file : large;
        const char *message = "expected at most 65536 names of classes";
        struct diag d = DIAG_INIT;

        if (i < ARRAY_LEN(files))
            message = files[i].message;
        if (i > ARRAY_LEN(files)) {
            file = name;
            message = "expected 1 to 1024 bytes, got 1025";
        }
        if (yolo_names(file, strlen(file), "data.yaml", &classes, &d) != -EBADMSG)
            fail_msg("%.80s: expected an error", file);
        assert_diag_has(&d, message);
        assert_int_equal(classes.n, 0);
    }
}

/* ---- KITTI ---- */

#define TRUCK "Truck 0.00 0 -1.57 599.41 156.40 629.75 189.25 2.85 2.63 12.34 0.47 1.49 69.44 -1.56"

UNIT_TEST(test_kitti__lines__boxes_values_classes)
{
    AUTO_READING struct reading reading;

    read_files(&reading, "kitti",
               NAMES(TRUCK "\n"
                           "DontCare -1 -1 -10 503.89 169.71 590.61 190.13 -1 -1 -1 -1000 -1000 "
                           "-1000 -10\n",
                     "", TRUCK " 0.99\n"));
    assert_int_equal(reading.r, 0);
    assert_classes(&reading.classes, NAMES("DontCare", "Truck"));
    assert_row(&reading, "boxes", 0,
               ROW(599.41, 156.40, 629.75, 189.25, 503.89, 169.71, 590.61, 190.13));
    assert_row(&reading, "box_label", 0, ROW(1, 0));
    assert_row(&reading, "box_values", 0,
               ROW(0, 0, -1.57, 599.41, 156.40, 629.75, 189.25, 2.85, 2.63, 12.34, 0.47, 1.49,
                   69.44, -1.56, -1, -1, -10, 503.89, 169.71, 590.61, 190.13, -1, -1, -1, -1000,
                   -1000, -1000, -10));
    assert_row(&reading, "box_values", 1, 0, NULL);
    assert_row(&reading, "box_label", 2, ROW(1));
    assert_string_equal(reading.note.data, "1 lines have a score, column 16, which is ignored\n");
}

UNIT_TEST(test_kitti__malformed__rejected_with_line)
{
    assert_bad("kitti", TRUCK "\nTruck 1 2\n", "line 2: expected 15 columns, or 16 with a score");
    assert_bad("kitti", TRUCK " 1 2\n", "got 17");
    assert_bad("kitti", "Car 0 0 nan 1 2 3 4 5 6 7 8 9 10 11", "alpha: expected a finite");
    assert_bad("kitti", "Car 0 0 0 1 2 3 4 5 6 7 8 9 10 x", "rotation_y: expected a finite");
    assert_bad("kitti", TRUCK " inf", "score: expected a finite");
    assert_bad("kitti", "\xff 0 0 0 1 2 3 4 5 6 7 8 9 10 11", "expected UTF-8, got byte ff");
}

/* ---- which format a file has ---- */

UNIT_TEST(test_head_says__files__own_format_only)
{
    static const struct {
        const char *head, *whole, *part; /* formats that say yes, of a whole file and of a head */
    } heads[] = {
        {"0 0.5 0.5 0.25 0.5\n", "y", "y"},
        {"0 0.5 0.5 0.25 0.5", "y", ""},
        {"0 0.5 0.5 0.25 0.5\n1 0.5 0.", "", "y"},
        {"0 0.5 0.5 0.25 1.005\n", "y", "y"},
        {"0 0.1 0.1 0.2 0.2 0.3 0.3\n", "y", "y"},
        {"0 0.1 0.1 0.2 0.2 0.3 0.3 0.1 0.", "y", "y"},
        {"0 0.1 0.1 0.2 0.2 0.3 0.3 2 0.1 0.1 2\n", "y", "y"},
        {"5 10 20 30 40\n", "", ""},
        {"-1 0 0 0 0\n", "", ""},
        {"0 0.5 -0.1 0.25 0.5\n", "", ""},
        {"Car 0 0 x 1 2 3 4 5 6 7 8 9 10 11\n", "", ""},
        {"99999999999 0 0 0 0\n", "", ""},
        {"a photo of a dog\n", "", ""},
        {"0 nan 0 0 0\n", "", ""},
        {"P0: 7.2e+02 0 6.1e+02 0\n", "", ""},
        {TRUCK "\n", "k", "k"},
        {TRUCK " 0.5\n" TRUCK "\n", "k", "k"},
        {"1 0.00 0 -1.57 0.1 0.2 0.3 0.4 0 0 0 0 0 0 0\n", "", ""},
        {"", "yk", ""},
        {"\n", "yk", "ykv"},
        {"<annotation>", "v", "v"},
        {"\n<?xml version=\"1.0\"?>\n<!-- a -->\n<!DOCTYPE a>\n<annotation verified=\"yes\">", "v",
         "v"},
        {"<annotation><object><name>a</name><bndbox>", "v", "v"},
        {"<annotation><object><name>a</name>", "", "v"},
        {"<annotation><object><name>a</name><polygon>", "", ""},
        {"<annotation><object><bndbox/><polygon>", "v", "v"},
        {"<annotations>", "", ""},
        {"<?xml version=\"1.0\"?>", "", "v"},
        {"<html>", "", ""},
    };

    for (size_t i = 0; i < ARRAY_LEN(heads); i++)
        for (size_t k = 0; box_formats[k]; k++)
            for (int is_whole = 0; is_whole < 2; is_whole++) {
                const char *expected = is_whole ? heads[i].whole : heads[i].part;
                bool says =
                    box_format_says(box_formats[k], heads[i].head, strlen(heads[i].head), is_whole);

                if (says != (strchr(expected, box_formats[k]->name[0]) != NULL))
                    fail_msg("head %zu, %s, whole %d: says %d", i, box_formats[k]->name, is_whole,
                             says);
            }
    assert_null(box_format_find("coco"));
}

/* A file whose bytes are changed, or that is cut, gives rows that are complete, or an error. */
UNIT_TEST(test_reader__random_changes__complete_rows)
{
    static const char *const files[] = {
        "<annotation><object><name>a</name>" BOX("1", "2", "3", "4") "</object></annotation>",
        "0 0.5 0.5 0.25 0.5\n1 0.5 0.5 0.25 0.5\n",
        TRUCK "\n" TRUCK " 1\n",
    };
    uint64_t random = RANDOM_SEED;

    for (unsigned round = 0; round < 20000; round++) {
        const struct box_format *format = box_formats[round % 3];
        AUTO_BOX_READER struct box_reader *reader = NULL;
        AUTO_READING struct reading reading = {.d = DIAG_INIT};
        AUTO_FREE char *file = strdup(files[round % 3]);
        size_t len = strlen(file), at = random_below(&random, len);

        file[at] = (char)random_next(&random);
        if (random_below(&random, 4) == 0)
            len = at;
        assert_int_equal(box_reader_new(format, &reader), 0);
        reading.r = box_reader_add(reader, file, len, "file", &reading.d);
        if (reading.r < 0) {
            assert_int_equal(reading.r, -EBADMSG);
            assert_diag_has(&reading.d, "file: line ");
            continue;
        }
        assert_int_equal(
            box_reader_finish(reader, &reading.columns, &reading.classes, &reading.note), 0);
        for (unsigned i = 0; i < reading.columns.n; i++) {
            const struct value_column *c = &reading.columns.column[i];

            assert_int_equal(c->rows, 1);
            assert_int_equal(c->end[0], reading.columns.column[0].end[0]);
        }
    }
}

/* Allocation n = 1, 2, 3 ... fails, until none does: nothing leaks. expat's are its own. */
UNIT_TEST(test_reader__no_memory__enomem)
{
    static const struct {
        const char *format, *file;
    } files[] = {
        {"voc",
         "<annotation><object><name>b</name>" BOX(
             "1", "2", "3", "4") "</object><object>"
                                 "<name>a</name>" BOX("1", "2", "3", "4") "</object></annotation>"},
        {"yolo", "0 0.5 0.5 0.25 0.5\n1 0.5 0.5 0.25 0.5\n"},
        {"yolo", "0 0.5 0.5 0.25 0.5 0.5 0.5\n"},
        {"kitti", TRUCK " 1\n"},
    };

    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        for (unsigned long n = 1, failed = 1; failed; n++) {
            AUTO_BOX_READER struct box_reader *reader = NULL;
            AUTO_READING struct reading reading = {.d = DIAG_INIT};
            bool lost;
            int r;

            failing_alloc_begin(n);
            r = box_reader_new(box_format_find(files[i].format), &reader);
            for (int k = 0; k < 2 && r == 0; k++)
                r = box_reader_add(reader, files[i].file, strlen(files[i].file), "file",
                                   &reading.d);
            if (r == 0)
                r = box_reader_finish(reader, &reading.columns, &reading.classes, &reading.note);
            lost = reading.note.failed; /* the note: text_finish() reports that */
            box_reader_free(TAKE_PTR(reader));
            reading_release(&reading);
            assert_int_equal(failing_alloc_live(), 0);
            failed = failing_alloc_end();
            assert_int_equal(r, failed && !lost ? -ENOMEM : 0);
        }
}

UNIT_TEST(test_yolo_names__no_memory__enomem)
{
    static const char file[] = "names: [a, b, c]\n";

    for (unsigned long n = 1, failed = 1; failed; n++) {
        AUTO_BOX_CLASSES struct box_classes classes = {0};
        struct diag d = DIAG_INIT;
        int r;

        failing_alloc_begin(n);
        r = yolo_names(file, strlen(file), "data.yaml", &classes, &d);
        box_classes_release(&classes);
        assert_int_equal(failing_alloc_live(), 0);
        failed = failing_alloc_end();
        assert_int_equal(r, failed ? -ENOMEM : 0);
    }
}
