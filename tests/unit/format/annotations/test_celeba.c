/* The lists of CelebA, as texts and as CSV. */
#include <stdlib.h>

#include "base/blob.h"
#include "format/annotations/celeba.h"
#include "support/failing_alloc.h"
#include "support/memory_blob.h"
#include "support/picture_list.h"
#include "support/unit.h"

#define PICTURES "img/000001.jpg img/000002.jpg img/000003.jpg "

static struct diag d;

static int read_list(const char *file, const char *bytes, struct value_columns *columns,
                     size_t *unmatched, struct text *names)
{
    struct picture_list list = PICTURE_LIST(PICTURES);
    size_t len = strlen(bytes);
    AUTO_BLOB struct blob *blob = memory_blob_new(file, bytes, len, len, NULL);
    enum celeba_list which;

    assert_non_null(blob);
    assert_true(celeba_list_is(file, &which));
    d = DIAG_INIT;
    return celeba_read(blob, file, which, &list.names, 3, columns, unmatched, names, &d);
}

static void check_fails(const char *file, const char *bytes, const char *problem, int error)
{
    AUTO_VALUE_COLUMNS struct value_columns columns = {0};
    AUTO_TEXT struct text names = {0};
    size_t unmatched;

    assert_int_equal(read_list(file, bytes, &columns, &unmatched, &names), error);
    assert_diag_has(&d, problem);
    assert_int_equal(columns.n, 0);
}

static void check_refused(const char *file, const char *bytes, const char *problem)
{
    check_fails(file, bytes, problem, -EBADMSG);
}

/* The numbers of a column, 8 bytes each; holes are skipped. */
static void check_numbers(const char *file, const char *bytes, const char *name, unsigned width,
                          const int64_t *expected)
{
    AUTO_VALUE_COLUMNS struct value_columns columns = {0};
    size_t unmatched = 0;
    const struct value_column *c;

    assert_int_equal(read_list(file, bytes, &columns, &unmatched, NULL), 0);
    assert_int_equal(columns.n, 1);
    c = columns.column;
    assert_string_equal(c->name, name);
    assert_int_equal(c->rows, 3);
    assert_int_equal(c->width, width);
    assert_false(c->is_list);
    for (uint64_t row = 0; row < 3; row++) {
        const uint8_t *items;

        value_items(c, row, &items);
        if (!value_is_hole(c, row))
            assert_memory_equal(items, expected + row * (width ? width : 1), value_item_bytes(c));
    }
}

static void check_attributes(const char *file, const char *bytes, size_t expected_unmatched)
{
    static const uint8_t expected[] = {0, 1, 1, 0, 0, 1};
    AUTO_VALUE_COLUMNS struct value_columns columns = {0};
    AUTO_TEXT struct text names = {0};
    size_t unmatched = 0;

    assert_int_equal(read_list(file, bytes, &columns, &unmatched, &names), 0);
    assert_int_equal(unmatched, expected_unmatched);
    assert_string_equal(names.data, "[\"5_o_Clock_Shadow\", \"Young\"]");
    assert_int_equal(columns.column->width, 2);
    assert_int_equal(columns.column->dtype, DTYPE_U1);
    assert_int_equal(columns.column->rows, 3);
    assert_true(value_is_hole(columns.column, 2));
    assert_memory_equal(columns.column->bytes, expected, 4);
}

UNIT_TEST(test_celeba__attributes)
{
    check_attributes("a/list_attr_celeba.txt",
                     "3\n5_o_Clock_Shadow  Young \n000009.jpg  1  1\n000002.jpg  1 -1\n"
                     "000001.jpg -1  1\n",
                     1);
    check_attributes("list_attr_celeba.csv",
                     "image_id,5_o_Clock_Shadow,Young\r\n000001.jpg,-1,1\r\n000002.jpg,1,-1\r\n",
                     0);
}

UNIT_TEST(test_celeba__numbers)
{
    static const int64_t identity[] = {2880, 0, 12}, partition[] = {0, 1, 2};
    static const int64_t box[] = {95, 71, 226, 313, 0, 0, 0, 0, 1, 2, 3, 4};
    static const int64_t points[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};

    check_numbers("identity_CelebA.txt", "000003.jpg 12\n000001.jpg 2880\n", "identity", 0,
                  identity);
    check_numbers("list_eval_partition.txt", "000001.jpg 0\n000002.jpg 1\n000003.jpg 2\n",
                  "partition", 0, partition);
    check_numbers("list_eval_partition.csv",
                  "image_id,partition\n000001.jpg,0\n000002.jpg,1\n000003.jpg,2\n", "partition", 0,
                  partition);
    check_numbers("list_bbox_celeba.txt",
                  "2\nimage_id x_1 y_1 width height\n000001.jpg     95   71  226  313\n"
                  "000003.jpg 1 2 3 4\n",
                  "bbox", 4, box);
    check_numbers("list_landmarks_align_celeba.csv",
                  "image_id,a,b,c,d,e,f,g,h,i,j\n000001.jpg,1,2,3,4,5,6,7,8,9,10\n", "landmarks",
                  10, points);
    check_numbers("list_landmarks_celeba.txt",
                  "1\na b c d e f g h i j\n000001.jpg  1 2 3 4 5 6 7 8 9 10\n", "landmarks", 10,
                  points);
}

UNIT_TEST(test_celeba__malformed)
{
    check_refused("list_attr_celeba.txt", "2\na b\n000001.jpg 1 1\n",
                  "list_attr_celeba.txt, line 1: expected the number of rows, 1, got 2");
    check_refused("list_attr_celeba.txt", "1\na b\n000001.jpg 1 1\n000002.jpg 1 1\n",
                  "line 4: expected 1 rows, as line 1 says, got more");
    check_refused("list_attr_celeba.txt", "1\na b\n000001.jpg 1\n",
                  "line 3: expected a picture and 2 whole numbers");
    check_refused("list_attr_celeba.txt", "1\na b\n000001.jpg 1 2\n",
                  "line 3: expected numbers from -1 to 1, got 2");
    check_refused("list_attr_celeba.txt", "a b\n000001.jpg 1 1\n",
                  "line 1: expected the number of");
    check_refused("list_attr_celeba.txt", "1 x\na b\n000001.jpg 1 1\n",
                  "line 1: expected the number of rows and nothing else");
    check_refused("list_attr_celeba.txt", "18446744073709551615\na b\n000001.jpg 1 1\n",
                  "line 1: expected the number of rows and nothing else");
    check_refused("list_attr_celeba.txt", "1\n", "expected the names of the columns");
    check_refused("list_attr_celeba.csv", "image_id\n", "expected 1 to 256 names of attributes");
    check_refused("list_eval_partition.txt", "000001.jpg 3\n",
                  "line 1: expected numbers from 0 to 2");
    check_refused("list_eval_partition.csv", "image_id,partition\n000001.jpg,0,1\n", "line 2");
    check_refused("identity_CelebA.txt", "000001.jpg 1\n000001.jpg 2\n",
                  "line 2: expected another picture, this one has a row already");
    check_refused("identity_CelebA.txt", "000001.jpg x\n", "line 1");
    check_refused("identity_CelebA.txt", "000001.jpg\n", "line 1");
    /* DeepFashion has this one. */
    check_fails("list_eval_partition.txt", "2\nimage_name evaluation_status\n000001.jpg  train\n",
                "line 1", -EDOM);
}

/* Each allocation fails once: -ENOMEM, no column, and nothing leaks. */
UNIT_TEST(test_celeba__no_memory)
{
    static const char bytes[] = "1\na b c\n000001.jpg 1 1 -1\n";
    struct picture_list list = PICTURE_LIST(PICTURES);
    const size_t len = sizeof(bytes) - 1;
    AUTO_BLOB struct blob *blob = memory_blob_new("a", bytes, len, len, NULL);
    bool failed = true;

    for (unsigned long n = 1; failed; n++) {
        struct value_columns columns = {0};
        struct text names = {0};
        size_t unmatched;
        int r;

        failing_alloc_begin(n);
        r = celeba_read(blob, "list_attr_celeba.txt", CELEBA_ATTR, &list.names, 3, &columns,
                        &unmatched, &names, &d);
        assert_int_equal(columns.n, r == 0);
        value_columns_release(&columns);
        text_release(&names);
        assert_int_equal(failing_alloc_live(), 0);
        failed = failing_alloc_end();
        assert_int_equal(r, failed ? -ENOMEM : 0);
    }
}

UNIT_TEST(test_celeba_list_is__names)
{
    enum celeba_list list;

    assert_true(celeba_list_is("x/list_landmarks_align_celeba.txt", &list));
    assert_int_equal(list, CELEBA_LANDMARKS_ALIGN);
    assert_true(celeba_list_is("list_landmarks_celeba.csv", &list));
    assert_int_equal(list, CELEBA_LANDMARKS);
    assert_false(celeba_list_is("list_attr_celeba.txt.bak", &list));
    assert_false(celeba_list_is("list_attr_celeba.txt/x", &list));
    assert_false(celeba_list_is("identity_celeba.txt", &list));
}
