/* COCO JSON: what its columns are, what is refused and how the message says so, and that neither
 * the order of its lists nor the place of a byte in a window matters. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/scope.h"
#include "base/text.h"
#include "format/annotations/coco.h"
#include "support/failing_alloc.h"
#include "support/memory_blob.h"
#include "support/unit.h"

#define IMAGES                                                                                     \
    "\"images\": [{\"file_name\": \"b.jpg\", \"id\": 30, \"height\": 9},"                          \
    " {\"id\": -9, \"file_name\": \"dir/\\u00e9\\ud83d\\ude00.jpg\", \"x\": {\"id\": [1, {}]}},"   \
    " {\"id\": 25, \"file_name\": \"c.jpg\"}]"
#define ANNOTATIONS                                                                                \
    "\"annotations\": ["                                                                           \
    "{\"segmentation\": [[1.5, 2.0]], \"area\": 6.38, \"iscrowd\": 0, \"image_id\": -9,"           \
    " \"bbox\": [1.5, 2.0, 4.25, 3.0], \"category_id\": 90, \"id\": 501},"                         \
    "{\"segmentation\": {\"counts\": [20, 5], \"size\": [9, 12]}, \"iscrowd\": 1,"                 \
    " \"image_id\": 25, \"bbox\": [-0.0, 0, 12e0, 9], \"category_id\": 1, \"id\": 502},"           \
    "{\"image_id\": -9, \"bbox\": [3.0, 1.0, 2.5, 0.1], \"segmentation\": null,"                   \
    " \"category_id\": 1, \"id\": 77, \"area\": 3}]"
#define CATEGORIES                                                                                 \
    "\"categories\": [{\"id\": 90, \"name\": \"toothbrush\"}, {\"id\": 1, \"name\": \"person\"},"  \
    " {\"supercategory\": \"v\", \"id\": 3, \"name\": \"car\"}]"
#define FILE_TEXT "{\"info\": {\"year\": 2017}, " IMAGES ", " ANNOTATIONS ", " CATEGORIES "}\n"

static const uint32_t rows_image[] = {1, 2, 0, VALUE_NO_ROW};
#define ROWS ARRAY_LEN(rows_image)

static int read_bytes(const char *text, size_t len, struct coco **ret, struct diag *d)
{
    AUTO_BLOB struct blob *blob = memory_blob_new("a.json", text, len, len, NULL);

    *d = DIAG_INIT;
    *ret = NULL;
    return blob ? coco_read(blob, "a.json", ret, d) : -ENOMEM;
}

static struct coco *read_good(const char *text)
{
    struct coco *c;
    struct diag d;
    int r = read_bytes(text, strlen(text), &c, &d);

    if (r < 0)
        fail_msg("%s", diag_text(&d, r));
    return c;
}

/* It is refused, the message has the piece, and names byte `at` if that is not negative. */
static void assert_bad(const char *text, int at, const char *piece)
{
    char byte[64];
    struct coco *c;
    struct diag d;

    assert_int_equal(read_bytes(text, strlen(text), &c, &d), -EBADMSG);
    assert_null(c);
    assert_diag_has(&d, "a.json: byte ");
    assert_diag_has(&d, "expected ");
    assert_diag_has(&d, "got ");
    assert_diag_has(&d, piece);
    assert_true(strlen(d.text) <= 300);
    snprintf(byte, sizeof(byte), "a.json: byte %d: ", at);
    if (at >= 0)
        assert_diag_has(&d, byte);
}

static const struct value_column *column(const struct value_columns *t, const char *name)
{
    const struct value_column *c = value_columns_find(t, name);

    if (!c)
        fail_msg("expected a column %s", name);
    return c;
}

static void assert_integers(const struct value_columns *t, const char *name, uint64_t row,
                            const int64_t *expected, size_t n)
{
    const struct value_column *c = column(t, name);
    const uint8_t *items;
    int64_t v;

    assert_int_equal(c->form, VALUE_NUMBERS);
    assert_int_equal(c->dtype, DTYPE_I8);
    assert_false(value_is_hole(c, row));
    assert_int_equal(value_items(c, row, &items), n);
    for (size_t i = 0; i < n; i++) {
        memcpy(&v, items + 8 * i, 8);
        assert_int_equal(v, expected[i]);
    }
}

static void assert_floats(const struct value_columns *t, const char *name, uint64_t row,
                          const float *expected, size_t n)
{
    const struct value_column *c = column(t, name);
    const uint8_t *items;

    assert_int_equal(c->dtype, DTYPE_F4);
    assert_int_equal(value_items(c, row, &items) * c->width, n);
    if (n)
        assert_memory_equal(items, expected, n * sizeof(float));
}

static void assert_text(const struct value_columns *t, const char *name, uint64_t row,
                        const char *expected)
{
    const uint8_t *bytes;
    uint64_t n = value_items(column(t, name), row, &bytes);

    assert_int_equal(n, strlen(expected));
    assert_memory_equal(bytes, expected, n);
}

static void assert_part(const struct value_columns *t, uint64_t row, uint64_t i, const char *text,
                        const char *expected)
{
    const uint8_t *items;
    struct value_part part;

    assert_true(i < value_items(column(t, "segmentation"), row, &items));
    memcpy(&part, items + i * sizeof(part), sizeof(part));
    assert_int_equal(part.len, strlen(expected));
    assert_memory_equal(text + part.at, expected, part.len);
}

#define INTEGERS(t, name, row, ...)                                                                \
    assert_integers(t, name, row, (const int64_t[]){__VA_ARGS__},                                  \
                    ARRAY_LEN(((const int64_t[]){__VA_ARGS__})))
#define FLOATS(t, name, row, ...)                                                                  \
    assert_floats(t, name, row, (const float[]){__VA_ARGS__},                                      \
                  ARRAY_LEN(((const float[]){__VA_ARGS__})))

/* ---- what it says ---- */

/* All of FILE_TEXT, with its lists in any order. */
static void check_boxes(const char *text)
{
    AUTO_COCO struct coco *c = read_good(text);
    AUTO_VALUE_COLUMNS struct value_columns t = {0};
    const uint8_t *items;
    double area[2];
    struct diag d = DIAG_INIT;

    assert_int_equal(coco_images(c), 3);
    assert_string_equal(coco_file_name(c, 1), "dir/\xc3\xa9\xf0\x9f\x98\x80.jpg");
    assert_string_equal(coco_file_name(c, 2), "c.jpg");
    assert_true(coco_has_boxes(c));
    assert_false(coco_is_classification(c));
    assert_int_equal(coco_classes(c), 3);
    assert_string_equal(coco_class_names(c)[0], "person");
    assert_string_equal(coco_class_names(c)[1], "car");
    assert_string_equal(coco_class_names(c)[2], "toothbrush");
    assert_int_equal(coco_columns(c, rows_image, ROWS, "", &t, &d), 0);
    assert_int_equal(t.n, 8);
    FLOATS(&t, "boxes", 0, 1.5f, 2.0f, 4.25f, 3.0f, 3.0f, 1.0f, 2.5f, 0.1f);
    FLOATS(&t, "boxes", 1, -0.0f, 0.0f, 12.0f, 9.0f);
    INTEGERS(&t, "box_label", 0, 2, 0);
    INTEGERS(&t, "box_label", 1, 0);
    INTEGERS(&t, "category_id", 0, 90, 1);
    INTEGERS(&t, "iscrowd", 0, 0, 0);
    INTEGERS(&t, "iscrowd", 1, 1);
    INTEGERS(&t, "annotation_id", 0, 501, 77);
    INTEGERS(&t, "image_id", 0, -9);
    INTEGERS(&t, "image_id", 2, 30);
    assert_int_equal(value_items(column(&t, "area"), 0, &items), 2);
    memcpy(area, items, sizeof(area));
    assert_true(area[0] == 6.38 && area[1] == 3.0);
    assert_int_equal(value_items(column(&t, "area"), 1, &items), 1);
    memcpy(area, items, sizeof(area[0]));
    assert_true(isnan(area[0]));
    assert_part(&t, 0, 0, text, "[[1.5, 2.0]]");
    assert_part(&t, 0, 1, text, "");
    assert_part(&t, 1, 0, text, "{\"counts\": [20, 5], \"size\": [9, 12]}");
    for (unsigned i = 0; i < t.n; i++) {
        assert_int_equal(t.column[i].rows, ROWS);
        assert_true(value_is_hole(&t.column[i], 3));
        assert_false(value_is_hole(&t.column[i], 2));
        if (t.column[i].is_list)
            assert_int_equal(value_items(&t.column[i], 2, &items), 0);
    }
}

UNIT_TEST(test_boxes__any_order_of_lists)
{
    check_boxes(FILE_TEXT);
    check_boxes("{" ANNOTATIONS "," CATEGORIES "," IMAGES "}");
    check_boxes("\xef\xbb\xbf{" CATEGORIES ",\n\t" ANNOTATIONS ", \"extra\": [[], {}, 1e999],\r"
                " \"annotations2\": null, " IMAGES "} ");
}

UNIT_TEST(test_keypoints_and_captions)
{
    AUTO_COCO struct coco *c = read_good(
        "{\"images\": [{\"id\": 1, \"file_name\": \"a\"}, {\"id\": 2, \"file_name\": \"b\"}],"
        " \"annotations\": [{\"image_id\": 1, \"keypoints\": [1, 2, 2, 0.5, 4, 1],"
        " \"num_keypoints\": 2, \"caption\": \"a \\\"b\\\"\\n\\u00e9\"},"
        " {\"image_id\": 1, \"caption\": \"\xe4\xba\xba 2\"}]}");
    AUTO_VALUE_COLUMNS struct value_columns t = {0};
    struct diag d = DIAG_INIT;

    assert_int_equal(coco_columns(c, (const uint32_t[]){1, 0}, 2, "", &t, &d), 0);
    assert_int_equal(t.n, 4);
    FLOATS(&t, "keypoints", 1, 1, 2, 2, 0.5f, 4, 1, 0, 0, 0, 0, 0, 0);
    assert_int_equal(column(&t, "keypoints")->width, 6);
    INTEGERS(&t, "num_keypoints", 1, 2, -1);
    assert_text(&t, "caption", 0, "[]");
    assert_text(&t, "caption", 1, "[\"a \\\"b\\\"\\u000a\xc3\xa9\", \"\xe4\xba\xba 2\"]");
    INTEGERS(&t, "image_id", 0, 2);
}

/* What a file has not gives no column; without categories a number of a class would be a guess. */
UNIT_TEST(test_no_categories__no_box_label)
{
    AUTO_COCO struct coco *c =
        read_good("{\"images\": [{\"id\": 1, \"file_name\": \"a\"}],"
                  " \"annotations\": [{\"image_id\": 1, \"bbox\": [0, 0, 1, 1], \"category_id\": 7,"
                  " \"iscrowd\": true}]}");
    AUTO_VALUE_COLUMNS struct value_columns t = {0};
    struct diag d = DIAG_INIT;

    assert_int_equal(coco_classes(c), 0);
    assert_int_equal(coco_columns(c, (const uint32_t[]){0}, 1, "", &t, &d), 0);
    assert_int_equal(t.n, 4);
    assert_null(value_columns_find(&t, "box_label"));
    INTEGERS(&t, "category_id", 0, 7);
    INTEGERS(&t, "iscrowd", 0, 1);
}

/* LVIS has coco_url alone; others have both, or an empty one. */
UNIT_TEST(test_urls__are_names_where_there_is_none)
{
    AUTO_COCO struct coco *c =
        read_good("{\"images\": [{\"id\": 1, \"file_name\": \"a\", \"coco_url\": \"x/b\"},"
                  " {\"id\": 2, \"coco_url\": \"http://h/c\"},"
                  " {\"id\": 3, \"coco_url\": \"\", \"file_name\": \"d\"},"
                  " {\"id\": 4, \"coco_url\": 0, \"file_name\": \"e\"}]}");

    assert_string_equal(coco_file_name(c, 0), "a");
    assert_string_equal(coco_file_name(c, 3), "e");
    assert_string_equal(coco_file_name(c, 1), "http://h/c");
    assert_string_equal(coco_file_name(c, 2), "d");
}

/* With boxes there is iscrowd even if no annotation has it; and a file may have only images. */
UNIT_TEST(test_missing_members)
{
    AUTO_COCO struct coco *box = read_good("{\"images\": [{\"id\": 1, \"file_name\": \"a\"}],"
                                           " \"annotations\": [{\"image_id\": 1, \"area\": null,"
                                           " \"bbox\": [0, 0, 1, 1]}]}");
    AUTO_COCO struct coco *none = read_good("{\"images\": [{\"id\": 1, \"file_name\": \"a\"}]}");
    AUTO_VALUE_COLUMNS struct value_columns t = {0}, u = {0};
    struct diag d = DIAG_INIT;

    assert_int_equal(coco_columns(box, (const uint32_t[]){0}, 1, "", &t, &d), 0);
    assert_int_equal(t.n, 3);
    INTEGERS(&t, "iscrowd", 0, 0);
    assert_false(coco_is_classification(none));
    assert_int_equal(coco_columns(none, (const uint32_t[]){0}, 1, "", &u, &d), 0);
    assert_int_equal(u.n, 1);
    INTEGERS(&u, "image_id", 0, 1);
}

#define CLASSES_TEXT(annotations)                                                                  \
    "{\"categories\": [{\"id\": 400, \"name\": \"400\"}, {\"id\": 7, \"name\": \"7\"}],"           \
    " \"images\": [{\"id\": 90, \"file_name\": \"x\"}, {\"id\": 91, \"file_name\": \"y\"},"        \
    " {\"id\": 92, \"file_name\": \"z\"}], \"annotations\": [" annotations "]}"

UNIT_TEST(test_classification__labels)
{
    AUTO_COCO struct coco *one =
        read_good(CLASSES_TEXT("{\"id\": 0, \"image_id\": 92, \"category_id\": 7},"
                               "{\"id\": 1, \"image_id\": 90, \"category_id\": 400}"));
    AUTO_COCO struct coco *several =
        read_good(CLASSES_TEXT("{\"id\": 0, \"image_id\": 92, \"category_id\": 7},"
                               "{\"id\": 1, \"image_id\": 92, \"category_id\": 400}"));
    const uint32_t image[] = {2, 0, 1, VALUE_NO_ROW};
    int64_t label[4];
    bool single;

    assert_true(coco_is_classification(one) && coco_is_classification(several));
    assert_false(coco_has_boxes(one));
    coco_labels(one, image, 4, label, &single);
    assert_true(single);
    assert_memory_equal(label, ((int64_t[]){0, 1, -1, -1}), sizeof(label));
    coco_labels(several, image, 4, label, &single);
    assert_false(single);
    assert_memory_equal(label, ((int64_t[]){-1, -1, -1, -1}), sizeof(label));
}

UNIT_TEST(test_second_file__names_get_the_prefix)
{
    AUTO_COCO struct coco *c = read_good(FILE_TEXT);
    AUTO_VALUE_COLUMNS struct value_columns t = {0};
    struct value_column *other;
    struct diag d = DIAG_INIT;

    assert_int_equal(value_columns_add(&t, "image_id", VALUE_NUMBERS, DTYPE_I8, false, 0, &other),
                     0);
    assert_int_equal(coco_columns(c, rows_image, ROWS, "instances_", &t, &d), 0);
    assert_int_equal(column(&t, "image_id")->rows, 0);
    INTEGERS(&t, "instances_image_id", 0, -9);
    assert_null(value_columns_find(&t, "instances_boxes"));
    assert_int_equal(coco_columns(c, rows_image, ROWS, "", &t, &d), -EBADMSG);
    assert_diag_has(&d, "field boxes");
}

/* ---- a part of the file ---- */

UNIT_TEST(test_head)
{
    static const char *const no[] = {
        "",
        "[{\"images\": []}]",
        "{\"info\": {\"images\": []}, \"shapes\": []}",
        "{\"images\": {}}",
        "{\"images\": [\"a.jpg\"",
        "{\"images\": nonsense, ",
        "{\"images\": [nonsense, ",
        "{\"info\": \"",
        "images",
        "{\"image\": [{",
        "{\"categories\": [{\"id\": 0, \"name\": \"cat\"}], \"info\": {}}", /* Label Studio's YOLO
                                                                             */
    };
    static const char *const yes[] = {
        "{\"info\": {\"a\": [1, \"}\"]}, \"images\": [{\"id\"",
        "\xef\xbb\xbf { \"annotations\" : [ ]",
        "{\"categories\":",
        "{\"im\\u0061ges\": [",
    };
    size_t needed = strstr(FILE_TEXT, "\"images\":") + strlen("\"images\":") - FILE_TEXT;

    for (size_t i = 0; i < ARRAY_LEN(no); i++)
        assert_false(coco_head_says(no[i], strlen(no[i])));
    for (size_t i = 0; i < ARRAY_LEN(yes); i++)
        assert_true(coco_head_says(yes[i], strlen(yes[i])));
    for (size_t len = 0; len <= strlen(FILE_TEXT); len++)
        assert_int_equal(coco_head_says(FILE_TEXT, len), len >= needed);
}

/* ---- what is refused ---- */

#define BEFORE                                                                                     \
    "{\"images\":[{\"id\":1,\"file_name\":\"a\"}],\"categories\":[{\"id\":1,\"name\":\"n\"}],"     \
    "\"annotations\":["
#define ONE(annotation) BEFORE annotation "]}"
#define BOX(box)        ONE("{\"image_id\":1,\"bbox\":" box "}")
#define FIRST           (int)strlen(BEFORE) /* the byte of the first annotation */

UNIT_TEST(test_bad_annotations)
{
    assert_bad(ONE("{\"image_id\":2}"), FIRST, "unknown image_id");
    assert_bad(ONE("{\"image_id\":1,\"category_id\":5}"), FIRST, "unknown category_id");
    assert_bad(ONE("{\"id\":1}"), FIRST, "image_id");
    assert_bad(ONE("{\"image_id\":null}"), FIRST, "image_id");
    assert_bad(ONE("{\"image_id\":\"1\"}"), FIRST + 12, "image_id");
    assert_bad(ONE("{\"image_id\":1.5}"), FIRST + 12, "got 1.5");
    assert_bad(ONE("{\"image_id\":1,\"image_id\":1}"), FIRST + 14, "repeated");
    assert_bad(ONE("{\"image_id\":1,\"bbox\":[0,0,1,1]},{\"image_id\":1}"), FIRST + 32, "bbox");
    assert_bad(ONE("{\"image_id\":1,\"id\":1},{\"image_id\":1}"), FIRST + 22, "no id");
    assert_bad(ONE("{\"image_id\":1,\"caption\":5}"), FIRST + 24, "caption");
    assert_bad(ONE("{\"image_id\":1,\"area\":1e999}"), FIRST + 21, "got 1e999");
    assert_bad(ONE("{\"image_id\":1,\"iscrowd\":\"yes\"}"), FIRST + 24, "expected 0 or 1");
    assert_bad(ONE("1"), FIRST, "list of objects");
}

UNIT_TEST(test_bad_boxes)
{
    assert_bad(BOX("[]"), FIRST + 21, "fewer");
    assert_bad(BOX("[1,2,3]"), FIRST + 21, "expected 4 numbers");
    assert_bad(BOX("[1,2,3,4,5]"), FIRST + 21, "more");
    assert_bad(BOX("[1,2,3,\"4\"]"), FIRST + 28, "a string");
    assert_bad(BOX("[1,2,3,null]"), FIRST + 28, "null");
    assert_bad(BOX("[1,2,3,[4]]"), FIRST + 28, "a list");
    assert_bad(BOX("[1,2,3,1e39]"), FIRST + 28, "finite");
    assert_bad(BOX("[1,2,3,NaN]"), FIRST + 28, "got NaN");
    assert_bad(BOX("[1,2,3,-Infinity]"), FIRST + 29, "got Infinity");
    assert_bad(BOX("{}"), FIRST + 21, "an object");
}

UNIT_TEST(test_bad_keypoints)
{
    assert_bad(ONE("{\"image_id\":1,\"keypoints\":[1,2]}"), FIRST + 26, "got 2 numbers");
    assert_bad(ONE("{\"image_id\":1,\"keypoints\":[]}"), FIRST + 26, "got 0 numbers");
    assert_bad(ONE("{\"image_id\":1,\"keypoints\":[1,2,3]},"
                   "{\"image_id\":1,\"keypoints\":[1,2,3,4,5,6]}"),
               FIRST + 35 + 26, "got 6 numbers");
}

UNIT_TEST(test_bad_images_and_categories)
{
    assert_bad("{\"images\":[{\"id\":1,\"file_name\":\"a\"},{\"file_name\":\"b\",\"id\":1}]}", 36,
               "image has the id");
    assert_bad(
        "{\"images\":[],\"categories\":[{\"id\":1,\"name\":\"a\"},{\"id\":1,\"name\":\"b\"}]}", 47,
        "category has the id");
    assert_bad("{\"images\":[{\"id\":1}]}", 11, "no file_name");
    assert_bad("{\"images\":[{\"id\":1,\"coco_url\":\"\"}]}", 11, "no file_name");
    assert_bad("{\"images\":[{\"id\":1,\"coco_url\":5}]}", 11, "no file_name");
    assert_bad("{\"images\":[{\"id\":1,\"coco_url\":[5]}]}", 30, "a string");
    assert_bad("{\"images\":[{\"file_name\":\"a\"}]}", 11, "no id");
    assert_bad("{\"images\":[{\"id\":1,\"file_name\":\"\"}]}", 31, "not empty");
    assert_bad("{\"images\":[{\"id\":1,\"file_name\":\"a\\u0000b\"}]}", 33, "NUL");
    assert_bad("{\"images\":{}}", 10, "list of objects");
    assert_bad("{\"images\":[],\"images\":[]}", 13, "repeated");
    assert_bad("{\"annotations\":[]}", 17, "no images");
    assert_bad("[]", 0, "an object");
}

UNIT_TEST(test_integers__int64)
{
    AUTO_COCO struct coco *c =
        read_good(ONE("{\"image_id\":1.0,\"id\":-9223372036854775808},{\"image_id\":1e0,"
                      "\"id\":9223372036854775807}"));
    AUTO_VALUE_COLUMNS struct value_columns t = {0};
    struct diag d = DIAG_INIT;

    assert_int_equal(coco_columns(c, (const uint32_t[]){0}, 1, "", &t, &d), 0);
    INTEGERS(&t, "annotation_id", 0, INT64_MIN, INT64_MAX);
    assert_bad(ONE("{\"image_id\":1,\"id\":9223372036854775808}"), FIRST + 19,
               "got 9223372036854775808");
    assert_bad(ONE("{\"image_id\":1,\"id\":-9223372036854775809}"), FIRST + 19, "64 bits");
    assert_bad(ONE("{\"image_id\":1,\"id\":1e18}"), FIRST + 19, "64 bits");
}

UNIT_TEST(test_malformed_json)
{
    static const char *const bad[] = {
        "{\"images\":[],}",
        "{\"images\":[,]}",
        "{\"images\":[]}}",
        "{\"images\":[]} x",
        "{\"images\":[]]",
        "{\"images\" []}",
        "{images:[]}",
        "{\"images\":[] \"a\":1}",
        "{\"a\":01,\"images\":[]}",
        "{\"a\":1.,\"images\":[]}",
        "{\"a\":.5,\"images\":[]}",
        "{\"a\":+5,\"images\":[]}",
        "{\"a\":1e,\"images\":[]}",
        "{\"a\":-,\"images\":[]}",
        "{\"a\":tru,\"images\":[]}",
        "{\"a\":nul",
        "{\"a\":\"\\x\",\"images\":[]}",
        "{\"a\":\"\\u12g4\",\"images\":[]}",
        "{\"a\":\"\\ud800\",\"images\":[]}",
        "{\"a\":\"\\ud800\\u0041\",\"images\":[]}",
        "{\"a\":\"\\udc00\",\"images\":[]}",
        "{\"a\":\"\xff\",\"images\":[]}",
        "{\"a\":\"\xc0\x80\",\"images\":[]}",
        "{\"a\":\"\xed\xa0\x80\",\"images\":[]}",
        "{\"a\":\"\xe2\x82\",\"images\":[]}",
        "{\"a\":\"\n\",\"images\":[]}",
        "{'a':1,\"images\":[]}",
        "{\"a\":1 /* */,\"images\":[]}",
        "{\"a\":[1}, \"images\":[]}",
        "",
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_bad(bad[i], -1, "expected ");
    assert_bad("{\"a\":[1}", 7, "a comma or ]");
}

/* Every beginning of a file is refused, and so is each of its structure bytes where it is another.
 */
UNIT_TEST(test_cut__refused)
{
    size_t last = strlen(FILE_TEXT) - 2; /* its } */
    struct coco *c;
    struct diag d;

    for (size_t len = 0; len <= last; len++) {
        assert_int_equal(read_bytes(FILE_TEXT, len, &c, &d), -EBADMSG);
        assert_diag_has(&d, "expected ");
        assert_diag_has(&d, "Copy the file again");
    }
}

UNIT_TEST(test_deep__refused)
{
    enum { DEPTH = 100000 };
    AUTO_FREE char *text = malloc(DEPTH + 32);
    struct coco *c;
    struct diag d;

    assert_non_null(text);
    memcpy(text, "{\"x\":", 5);
    memset(text + 5, '[', DEPTH);
    assert_int_equal(read_bytes(text, DEPTH, &c, &d), -EBADMSG);
    assert_diag_has(&d, "at most 1024 levels");
    assert_diag_has(&d, "byte 1028");
    assert_false(coco_head_says(text, DEPTH));
    memcpy(text + 5 + 1023, "1", 1);
    memset(text + 5 + 1024, ']', 1023);
    memcpy(text + 5 + 2047, ",\"images\":[]}", 14);
    coco_free(read_good(text));
}

/* before, n times the text, after; the caller frees it. */
static char *repeat(const char *before, const char *text, unsigned n, const char *after)
{
    struct text t = {0};
    char *made;

    text_add_bytes(&t, before, strlen(before));
    for (unsigned i = 0; i < n; i++)
        text_add_bytes(&t, text, strlen(text));
    text_add_bytes(&t, after, strlen(after));
    assert_int_equal(text_finish(&t, &made, NULL), 0);
    return made;
}

/* Strings and numbers that are skipped have any length; those that are kept have not. */
UNIT_TEST(test_long__limits)
{
    enum { LONG = (1 << 20) + 1 };
    const char *name = "{\"images\":[{\"id\":1,\"file_name\":\"",
               *id = "{\"images\":[{\"file_name\":\"a\",\"id\":";
    AUTO_FREE char *skipped_string =
        repeat("{\"x\":\"", "a", LONG, "\",\"images\":[{\"id\":1,\"file_name\":\"a\"}]}");
    AUTO_FREE char *skipped_number = repeat("{\"x\":", "1", LONG, ",\"images\":[]}");
    AUTO_FREE char *longest = repeat(name, "a", LONG - 1, "\"}]}");
    AUTO_FREE char *string = repeat(name, "a", LONG, "\"}]}");
    AUTO_FREE char *number = repeat(id, "1", 600, "}]}");

    coco_free(read_good(skipped_string));
    coco_free(read_good(skipped_number));
    coco_free(read_good(longest));
    assert_bad(string, (int)strlen(name) - 1, "too long");
    assert_bad(number, (int)strlen(id), "too long");
}

/* An annotation without keypoints takes zeros: a small file must not become large by them. */
UNIT_TEST(test_missing_keypoints__bounded)
{
    AUTO_FREE char *one = repeat("{\"images\":[{\"id\":1,\"file_name\":\"a\"}],\"annotations\":["
                                 "{\"image_id\":1,\"keypoints\":[0",
                                 ",1", 2999, "]}");
    AUTO_FREE char *few = repeat(one, ",{\"image_id\":1}", 3, "]}");
    AUTO_FREE char *many = repeat(one, ",{\"image_id\":1}", 20000, "]}");
    struct coco *c;
    struct diag d;

    coco_free(read_good(few));
    assert_int_equal(read_bytes(many, strlen(many), &c, &d), -EBADMSG);
    assert_diag_has(&d, "keypoints are missing");
}

/* ---- windows, reads and memory ---- */

UNIT_TEST(test_windows__any_place)
{
    enum { WINDOW = 256 << 10 };
    size_t len = strlen(FILE_TEXT);
    AUTO_FREE char *text = malloc(WINDOW + len + 1);

    assert_non_null(text);
    memset(text, ' ', WINDOW);
    memcpy(text + WINDOW, FILE_TEXT, len + 1);
    for (size_t before = 0; before < len; before++)
        check_boxes(text + before);
}

UNIT_TEST(test_read_fails__its_error)
{
    struct blob_faults faults = {.fail_read = 1};
    AUTO_BLOB struct blob *blob =
        memory_blob_new("x", FILE_TEXT, strlen(FILE_TEXT), strlen(FILE_TEXT), &faults);
    AUTO_BLOB struct blob *cut =
        memory_blob_new("x", FILE_TEXT, strlen(FILE_TEXT) - 5, strlen(FILE_TEXT) - 5, &faults);
    struct coco *c = NULL;
    struct diag d = DIAG_INIT;

    assert_int_equal(coco_read(blob, "x", &c, &d), -EIO);
    assert_null(c);
    faults.fail_read = 0;
    faults.stale = true;
    assert_int_equal(coco_read(blob, "x", &c, &d), -ESTALE);
    assert_int_equal(coco_read(cut, "x", &c, &d), -ESTALE);
    assert_null(c);
}

UNIT_TEST(test_no_memory__enomem)
{
    static const char text[] = ONE("{\"image_id\":1,\"caption\":\"c\",\"keypoints\":[1,2,3]}");
    AUTO_BLOB struct blob *blob = memory_blob_new("x", text, strlen(text), strlen(text), NULL);
    unsigned long n = 0;
    bool failed = true;

    while (failed) {
        AUTO_VALUE_COLUMNS struct value_columns t = {0};
        struct coco *c = NULL;
        struct diag d = DIAG_INIT;
        int r;

        failing_alloc_begin(++n);
        r = coco_read(blob, "x", &c, &d);
        if (r == 0)
            r = coco_columns(c, (const uint32_t[]){0}, 1, "", &t, &d);
        coco_free(c);
        value_columns_release(&t);
        assert_int_equal(failing_alloc_live(), 0);
        failed = failing_alloc_end();
        assert_int_equal(r, failed ? -ENOMEM : 0);
    }
    assert_true(n > 15);
}
